"""Changes a session under a lock on its row, from the first read to the last write."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from django.db import transaction
from django.utils import timezone

from catalog.domain.errors import NotFound
from catalog.domain.policy import Policy as DomainPolicy
from catalog.selectors.facts import read_policy
from sessions.domain.loaded import STORED, Loaded, LoadedTools
from sessions.models import AgentSession, LoadedTool
from sessions.offers.offer_cache import is_past_context_used
from sessions.services import eviction, write_behind
from sessions.services.events import Cause, PendingEvent

Edit = Callable[[AgentSession, DomainPolicy, LoadedTools], LoadedTools]


@transaction.atomic
def edit_session(*, session_id: uuid.UUID, cause: Cause, edit: Edit) -> AgentSession:
    """Call `edit`, which changes the row and returns the loaded tools. `version` grows when the list may
    differ.

    Only changes by the agent itself extend the session's life.
    """
    session = lock_session(session_id)
    stored = _read_fields(session)
    policy = read_policy(session.policy)
    places = _read_places(session)
    before, listed_before = tuple(places), _what_lists(session, policy)
    after = edit(session, policy, before)
    session.context_was_over = session.context_was_over or is_past_context_used(session, policy)
    _store_loaded(session, places, after)
    if [tool.name for tool in before] != [tool.name for tool in after] or (
        _what_lists(session, policy) != listed_before
    ):
        session.version += 1
        session.own_bytes = eviction.measure_own(session, loaded=len(after))
    if not cause.by:
        touch(session, now=timezone.now())
    session.save(
        update_fields=[name for name, value in _read_fields(session).items() if value != stored[name]]
    )
    write_behind.enqueue_event(PendingEvent(cause, session, before, after))
    return session


def lock_session(session_id: uuid.UUID) -> AgentSession:
    """The row, locked until the transaction ends. SQLite has one writer anyway."""
    sessions = AgentSession.objects.select_for_update(of=("self",)).select_related("policy")
    session = sessions.live(now=timezone.now()).filter(pk=session_id).first()
    if session is None:
        raise NotFound("There is no such session.")
    return session


def touch(session: AgentSession, *, now: datetime) -> None:
    session.last_seen_at, session.expires_at = now, now + session.policy.session_ttl


def _read_fields(session: AgentSession) -> dict[str, Any]:
    return {field.attname: getattr(session, field.attname) for field in session._meta.concrete_fields}


def _read_places(session: AgentSession) -> dict[Loaded, int]:
    """The loaded tools in load order, each with its position."""
    rows = LoadedTool.objects.filter(session=session).order_by("position")
    return {Loaded(*loaded): position for position, *loaded in rows.values_list("position", *STORED)}


def _store_loaded(session: AgentSession, places: Mapping[Loaded, int], after: LoadedTools) -> None:
    """Write the difference: new tools go to the end, unless the order itself was changed."""
    stay = _unmoved(tuple(places), after)
    if len(stay) < len(places):
        rows = LoadedTool.objects.filter(session=session)
        rows.exclude(name__in=[tool.name for tool in stay]).delete()
    known = {tool.name: position for tool, position in places.items()}
    used = [(tool, known[tool.name]) for tool in stay if tool not in places]
    end = max(known.values(), default=0)
    added = [(tool, position) for position, tool in enumerate(after[len(stay) :], start=end + 1)]
    if used or added:
        _write_rows(session, [*used, *added])


def _write_rows(session: AgentSession, tools: Sequence[tuple[Loaded, int]]) -> None:
    """One statement for tools that come in and tools that are used again."""
    LoadedTool.objects.bulk_create(
        [
            LoadedTool(
                session=session,
                name=tool.name,
                position=position,
                loaded_turn=tool.loaded_turn,
                used_turn=tool.used_turn,
                used_order=tool.used_order,
            )
            for tool, position in tools
        ],
        update_conflicts=True,
        unique_fields=["session", "name"],
        update_fields=["used_turn", "used_order"],
    )


def _unmoved(before: LoadedTools, after: LoadedTools) -> LoadedTools:
    """The tools at the head of `after` whose order did not change."""
    left = iter([(tool.name, tool.loaded_turn) for tool in before])
    head = takewhile(lambda tool: (tool.name, tool.loaded_turn) in left, after)
    return tuple(head)


def _what_lists(session: AgentSession, policy: DomainPolicy) -> tuple[object, ...]:
    """The fields of a session that its tool list depends on."""
    return (
        session.model,
        session.context_window,
        session.visible,
        session.turn_visible,
        session.builtin_tools,
        is_past_context_used(session, policy),
    )
