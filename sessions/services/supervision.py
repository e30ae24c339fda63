"""What a person does to an agent's session: what the agent could do itself, with permission and on record."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from catalog.access import Role
from catalog.models.changes import Action, Subject
from catalog.services import changes
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession
from sessions.reading.states import read_loaded
from sessions.services import lifecycle, records
from sessions.services.loading import SearchCall, search_and_load

MOST_NAMES = 50


def reset_session(*, session: AgentSession, actor: changes.Actor) -> AgentSession:
    """Decide every tool of the session again and drop what its searches loaded."""
    changes.require(actor, Role.EDITOR)
    with transaction.atomic():
        before = _describe(session, read_loaded(session))
        after = lifecycle.reset(session=session, by=actor.label)
        _record(session, actor, Action.CHANGED, before, _describe(after, read_loaded(after)))
    records.write_notes()  # the page that follows tells of it
    return after


def unload_tools(*, session: AgentSession, actor: changes.Actor, names: Sequence[str] | None = None) -> int:
    """Drop these tools, or every one that a search loaded, and say how many went."""
    changes.require(actor, Role.EDITOR)
    with transaction.atomic():
        loaded = read_loaded(session)
        wanted = [tool.name for tool in loaded] if names is None else names
        lifecycle.unload(session=session, names=wanted, by=actor.label)
        left = read_loaded(session)
        gone = len(loaded) - len(left)
        if gone:
            _record(session, actor, Action.CHANGED, _name_tools(loaded), _name_tools(left))
    records.write_notes()
    return gone


def load_found(*, session: AgentSession, call: SearchCall, actor: changes.Actor) -> tuple[str, ...]:
    """Search in the agent's place, and say what that loaded. Raises InvalidInput as the search does."""
    changes.require(actor, Role.EDITOR)
    with transaction.atomic():
        before = read_loaded(session)
        result = search_and_load(session=session, call=call, by=actor.label)
        if result.loaded:
            after = _name_tools(read_loaded(session))
            _record(session, actor, Action.CHANGED, _name_tools(before), after)
    records.write_notes()
    return result.loaded


@transaction.atomic
def delete_session(*, session: AgentSession, actor: changes.Actor) -> None:
    """The agent's next call is told that there is no such session."""
    changes.require(actor, Role.ADMIN)
    before = {"policy": session.policy.slug, "key": session.key.name}
    _record(session, actor, Action.DELETED, {**before, **_describe(session, read_loaded(session))}, {})
    lifecycle.delete_session(session=session)


def _describe(session: AgentSession, loaded: LoadedTools) -> dict[str, object]:
    return {"turn": session.turn, "context_used": session.context_used, **_name_tools(loaded)}


def _name_tools(loaded: LoadedTools) -> dict[str, object]:
    names = [tool.name for tool in loaded]
    rest = len(names) - MOST_NAMES
    return {"loaded": [*names[:MOST_NAMES], f"and {rest} more"] if rest > 0 else names}


def _record(
    session: AgentSession,
    actor: changes.Actor,
    action: Action,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    name = str(session.pk) if session.external_id is None else f"{session.external_id} ({session.pk})"
    changes.record(actor=actor, subject=Subject.SESSION, name=name, action=action, before=before, after=after)
