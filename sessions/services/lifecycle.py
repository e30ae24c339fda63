"""Creates, changes, resets and deletes sessions, and ends their turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from catalog.domain.errors import InvalidInput
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.values import BadValueError, read_globs
from catalog.models import Policy
from catalog.selectors.facts import read_policy
from sessions.domain import loaded
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession, EventKind
from sessions.offers import builtins, offer_cache
from sessions.services import eviction, write_behind
from sessions.services.events import Cause, PendingEvent
from sessions.services.session_changes import edit_session

Globs = Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Created:
    session: AgentSession
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFields:
    """The fields that an agent sets. `shown_window` is the window of a state that is sent back: it becomes
    the session's own only where nothing else gives the same.
    """

    model: str = ""
    context_window: int | None = None
    shown_window: int | None = None
    visible: Globs = None
    builtin_tools: Sequence[Mapping[str, Any]] = ()


def create_session(
    *, key_id: int, policy: Policy, fields: SessionFields, external_id: str | None = None
) -> Created:
    """A new session, or the existing one where this key has used the `external_id` before."""
    values = _check_fields(fields)
    if external_id is not None and (known := _find_known(key_id, external_id)) is not None:
        return Created(known, is_new=False)
    now = timezone.now()
    try:
        with transaction.atomic():
            session = AgentSession(
                key_id=key_id,
                policy=policy,
                external_id=external_id,
                last_seen_at=now,
                expires_at=now + policy.session_ttl,
                **values,
            )
            if fields.shown_window is not None:
                _take_window(session, read_policy(policy), fields.shown_window)
            session.own_bytes = eviction.measure_own(session)
            session.save(force_insert=True)
            eviction.make_room(session)
            eviction.make_room_for_bytes(session)
            write_behind.enqueue_event(PendingEvent(Cause(EventKind.BEGAN), session, (), ()))
    except IntegrityError:  # another request with the same external_id was quicker
        known = _find_known(key_id, external_id) if external_id is not None else None
        if known is None:
            raise
        return Created(known, is_new=False)
    return Created(session, is_new=True)


def change_fields(*, session: AgentSession, changed: Mapping[str, Any]) -> AgentSession:
    """Change the fields given: `model`, `context_window` or `shown_window`, `visible`, `builtin_tools`."""
    values = {name: _check_field(name, value) for name, value in changed.items()}
    shown_window = values.pop("shown_window", None)

    def edit(row: AgentSession, policy: DomainPolicy, before: LoadedTools) -> LoadedTools:
        _take_window(row, policy, shown_window)
        for name, value in values.items():
            setattr(row, name, value)
        return before

    after = edit_session(session_id=session.pk, cause=Cause(EventKind.CHANGED), edit=edit)
    eviction.make_room_for_bytes(after)  # when the row is free again: two such calls may end each other's
    return after


def _take_window(row: AgentSession, policy: DomainPolicy, shown: int | None) -> None:
    """The window in force, sent back as a state shows it, does not become the session's own."""
    if shown is not None and shown != offer_cache.window_of(row, policy):
        row.context_window = shown


def end_turn(
    *,
    session: AgentSession,
    context_used: int | None = None,
    called: Sequence[str] = (),
    visible: Globs = None,
) -> AgentSession:
    """End a turn: store what it used, unload by the policy's rules; `visible` narrows the next turn only."""
    narrowing = _check_field("visible", visible)
    names = offer_cache.offer_of_session(session).names_meant(called)

    def edit(row: AgentSession, policy: DomainPolicy, before: LoadedTools) -> LoadedTools:
        after = loaded.end_turn(loaded.use(before, names, turn=row.turn), policy, turn=row.turn)
        row.turn += 1
        row.turn_visible = narrowing
        if context_used is not None:
            row.context_used = context_used
        return after

    after = edit_session(session_id=session.pk, cause=Cause(EventKind.TURN), edit=edit)
    if narrowing is not None:
        eviction.make_room_for_bytes(after)
    return after


def unload(*, session: AgentSession, names: Sequence[str], by: str = "") -> AgentSession:
    """Unload tools that a search loaded, by qualified or bare name. A tool that a rule loads stays."""
    meant = offer_cache.offer_of_session(session).names_meant(names) | set(names)
    return edit_session(
        session_id=session.pk,
        cause=Cause(EventKind.UNLOADED, by),
        edit=lambda _row, _policy, before: loaded.unload(before, meant),
    )


def reset(*, session: AgentSession, by: str = "") -> AgentSession:
    """Decide every tool again: nothing is loaded, and the context counts as empty."""

    def edit(row: AgentSession, _policy: DomainPolicy, _before: LoadedTools) -> LoadedTools:
        row.context_used, row.context_was_over = 0, False
        return ()

    return edit_session(session_id=session.pk, cause=Cause(EventKind.RESET, by), edit=edit)


def delete_session(*, session: AgentSession) -> None:
    AgentSession.objects.filter(pk=session.pk).end()


def _find_known(key_id: int, external_id: str) -> AgentSession | None:
    """The session of that `external_id`; an expired one is deleted."""
    known = AgentSession.objects.select_related("policy").filter(key=key_id, external_id=external_id)
    known.expired(now=timezone.now()).end()
    return known.first()


def _check_fields(fields: SessionFields) -> dict[str, Any]:
    given = {
        "model": fields.model,
        "context_window": fields.context_window,
        "visible": fields.visible,
        "builtin_tools": fields.builtin_tools,
    }
    return {name: _check_field(name, value) for name, value in given.items()}


def _check_field(name: str, value: Any) -> Any:
    match name:
        case "visible":
            return None if value is None else _check_globs(value)
        case "builtin_tools":
            definitions = list(value or ())
            builtins.check_names(definitions)
            return definitions
        case "model":
            return value or ""
        case _:
            return value


def _check_globs(value: Sequence[str]) -> list[str]:
    try:
        return list(read_globs(value))
    except BadValueError as error:
        place = "visible" if error.index is None else f"visible[{error.index}]"
        raise InvalidInput.at(place, str(error)) from None
