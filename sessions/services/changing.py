"""One change of one session at a time: its row is held from the first read to the last write."""

import uuid
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from itertools import takewhile

from django.db import transaction
from django.utils import timezone

from catalog.domain.errors import NotFound
from catalog.domain.policy import Policy as DomainPolicy
from catalog.selectors.facts import read_policy
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession, LoadedTool
from sessions.reading.offers import is_past_context_used
from sessions.reading.states import read_loaded
from sessions.services import eviction, records
from sessions.services.events import Cause, happen

Edit = Callable[[AgentSession, DomainPolicy, LoadedTools], LoadedTools]


@transaction.atomic
def change_session(*, session_id: uuid.UUID, cause: Cause, edit: Edit) -> AgentSession:
    """Let `edit` change the row and say what is loaded then. `version` grows when the list may differ.

    Only what the agent does itself keeps the session alive.
    """
    session = hold(session_id)
    policy = read_policy(session.policy)
    before, listed_before = read_loaded(session), _what_lists(session, policy)
    after = edit(session, policy, before)
    session.context_was_over = session.context_was_over or is_past_context_used(session, policy)
    store_loaded(session, before, after)
    if [tool.name for tool in before] != [tool.name for tool in after] or (
        _what_lists(session, policy) != listed_before
    ):
        session.version += 1
        session.own_bytes = eviction.measure_own(session)
    if not cause.by:
        touch(session, now=timezone.now())
    session.save()
    records.note_event(happen(cause, session, before, after))
    return session


def hold(session_id: uuid.UUID) -> AgentSession:
    """The row, locked until the transaction ends. SQLite's transactions take their turns by themselves."""
    sessions = AgentSession.objects.select_for_update(of=("self",)).select_related("policy")
    session = sessions.live(now=timezone.now()).filter(pk=session_id).first()
    if session is None:
        raise NotFound("There is no such session.")
    return session


def touch(session: AgentSession, *, now: datetime) -> None:
    session.last_seen_at, session.expires_at = now, now + session.policy.session_ttl


def store_loaded(session: AgentSession, before: LoadedTools, after: LoadedTools) -> None:
    """Write the difference: new tools go to the end, unless the order itself was changed."""
    rows = LoadedTool.objects.filter(session=session)
    stay = _unmoved(before, after)
    if len(stay) < len(before):
        rows.exclude(name__in=[tool.name for tool in stay]).delete()
    known = {tool.name: tool for tool in before}
    uses: dict[tuple[int, int], list[str]] = defaultdict(list)
    for tool in stay:
        if tool != known[tool.name]:
            uses[tool.used_turn, tool.used_order].append(tool.name)
    for (turn, order), names in uses.items():
        rows.filter(name__in=names).update(used_turn=turn, used_order=order)
    _append(session, after[len(stay) :])


def _unmoved(before: LoadedTools, after: LoadedTools) -> LoadedTools:
    """The tools at the head of `after` that follow each other as they did before."""
    left = iter([(tool.name, tool.loaded_turn) for tool in before])
    head = takewhile(lambda tool: (tool.name, tool.loaded_turn) in left, after)
    return tuple(head)


def _append(session: AgentSession, added: LoadedTools) -> None:
    if not added:
        return
    last = LoadedTool.objects.filter(session=session).order_by("-position").values_list("position", flat=True)
    first = (last.first() or 0) + 1
    LoadedTool.objects.bulk_create(
        LoadedTool(
            session=session,
            name=tool.name,
            position=position,
            loaded_turn=tool.loaded_turn,
            used_turn=tool.used_turn,
            used_order=tool.used_order,
        )
        for position, tool in enumerate(added, start=first)
    )


def _what_lists(session: AgentSession, policy: DomainPolicy) -> tuple[object, ...]:
    """What of a session's own row its tool list depends on."""
    return (
        session.model,
        session.context_window,
        session.visible,
        session.turn_visible,
        session.builtin_tools,
        is_past_context_used(session, policy),
    )
