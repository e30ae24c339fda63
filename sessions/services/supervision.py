"""Changes that a person makes to an agent's session, with permission check and change record."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from catalog.access import actors
from catalog.access.roles import Role
from catalog.models.changes import Action, Subject
from catalog.services import changes
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession
from sessions.offers.states import read_loaded
from sessions.services import lifecycle, write_behind
from sessions.services.loading import SearchCall, search_and_load

MOST_NAMES = 50


def reset_session(*, session: AgentSession, actor: actors.Actor) -> AgentSession:
    """Decide every tool of the session again and drop what its searches loaded."""
    actors.require(actor, Role.EDITOR)
    with transaction.atomic():
        before = _describe(session, read_loaded(session))
        after = lifecycle.reset(session=session, by=actor.label)
        _record(session, actor, Action.CHANGED, before, _describe(after, read_loaded(after)))
    write_behind.flush()  # the page that follows tells of it
    return after


def unload_tools(*, session: AgentSession, actor: actors.Actor, names: Sequence[str] | None = None) -> int:
    """Unload these tools, or every one that a search loaded. Returns how many."""
    actors.require(actor, Role.EDITOR)
    with transaction.atomic():
        loaded = read_loaded(session)
        wanted = [tool.name for tool in loaded] if names is None else names
        lifecycle.unload(session=session, names=wanted, by=actor.label)
        left = read_loaded(session)
        gone = len(loaded) - len(left)
        if gone:
            _record(session, actor, Action.CHANGED, _name_tools(loaded), _name_tools(left))
    write_behind.flush()
    return gone


def load_found(*, session: AgentSession, call: SearchCall, actor: actors.Actor) -> tuple[str, ...]:
    """Search in the agent's place and return what was loaded. Raises InvalidInput as the search does."""
    actors.require(actor, Role.EDITOR)
    with transaction.atomic():
        before = read_loaded(session)
        result = search_and_load(session=session, call=call, by=actor.label)
        if result.loaded:
            after = _name_tools(read_loaded(session))
            _record(session, actor, Action.CHANGED, _name_tools(before), after)
    write_behind.flush()
    return result.loaded


@transaction.atomic
def delete_session(*, session: AgentSession, actor: actors.Actor) -> None:
    """Delete the session; the agent's next call gets 404."""
    actors.require(actor, Role.ADMIN)
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
    actor: actors.Actor,
    action: Action,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    name = str(session.pk) if session.external_id is None else f"{session.external_id} ({session.pk})"
    changes.record_change(
        actor=actor, subject=Subject.SESSION, name=name, action=action, before=before, after=after
    )
