"""Ends expired sessions, and the longest idle ones past the limits."""

import uuid
from datetime import datetime, timedelta
from enum import IntEnum
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import connection
from django.db.models import Count, F, Model, QuerySet, Sum

from catalog.domain.limits import LOADED_TOOL_BYTES, UNCOUNTED_BYTES
from catalog.domain.sizes import compact_json
from catalog.models import ApiKey, Policy
from catalog.process_memory import remember
from sessions.models import ActivityHour, AgentSession, Call, SearchEvent, SessionEvent
from sessions.models import AgentSessionQuerySet as Sessions

BATCH_ROWS = 500
# A limit below this holds at every moment, and no more rows than these are counted for it. A larger one may
# be passed by what a process creates between two counts, and holds again within a minute.
EXACT_BELOW = 1_000
# A process counts again after it created a hundredth of the limit, or a batch where that is less.
COUNTED_SHARE = 100

M = TypeVar("M", bound=Model)


class _Whose(IntEnum):
    """Whose sessions a limit is about, in the order in which their locks are taken."""

    KEY = 1
    POLICY = 2
    ALL = 3


class _Limit(NamedTuple):
    whose: _Whose
    id: int
    most: int

    @property
    def is_exact(self) -> bool:
        return self.most < EXACT_BELOW

    @property
    def sessions(self) -> Sessions:
        match self.whose:
            case _Whose.KEY:
                return AgentSession.objects.filter(key=self.id)
            case _Whose.POLICY:
                return AgentSession.objects.filter(policy=self.id)
            case _:
                return AgentSession.objects.all()


class _Countdown:
    """How many more sessions this process creates under a large limit before it counts them again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left: dict[tuple[int, int], int] = {}

    def is_over(self, limit: _Limit) -> bool:
        """For each so many calls once."""
        most = min(limit.most // COUNTED_SHARE, BATCH_ROWS)
        with self._lock:
            left = min(self._left.get(limit[:2], most), most) - 1
            self._left[limit[:2]] = left or most
            return left == 0

    def forget(self) -> None:
        with self._lock:
            self._left.clear()


_countdown = _Countdown()


remember("sessions created since they were counted", _countdown.forget)


def make_room(session: AgentSession) -> int:
    """End the longest idle sessions past the limits of a new one's key, of its policy and of all.

    Under a large limit one creation in many counts for all. Call inside the transaction that creates it.
    """
    limits = [
        _Limit(_Whose.POLICY, session.policy_id, session.policy.max_sessions),
        _Limit(_Whose.ALL, 0, settings.MAX_SESSIONS),
    ]
    if session.key.max_sessions is not None:
        limits.insert(0, _Limit(_Whose.KEY, session.key_id, session.key.max_sessions))
    due = [limit for limit in limits if limit.is_exact or _countdown.is_over(limit)]
    _take_turns([limit for limit in due if limit.is_exact])
    return sum(_keep_limit(limit, spared=session) for limit in due)


def keep_limits() -> int:
    """End what is past any limit: what large limits let pass, and what one that was lowered leaves over."""
    keys = _past_limit(ApiKey.objects.filter(max_sessions__isnull=False))
    limits = [_Limit(_Whose.KEY, *row) for row in keys]
    limits += [_Limit(_Whose.POLICY, *row) for row in _past_limit(Policy.objects.all())]
    limits.append(_Limit(_Whose.ALL, 0, settings.MAX_SESSIONS))
    gone = 0
    for limit in limits:
        excess = limit.sessions.count() - limit.most
        while excess > 0 and (ended := _end_idle(limit.sessions, min(excess, BATCH_ROWS))):
            excess -= ended
            gone += ended
    return gone


def _past_limit(owners: QuerySet[Any]) -> list[tuple[int, int]]:
    """Ids and limits of the keys or policies that have more sessions than they may."""
    counted = owners.order_by().annotate(kept=Count("agent_sessions"))
    return list(counted.filter(kept__gt=F("max_sessions")).values_list("pk", "max_sessions"))


def measure_own(session: AgentSession, *, loaded: int = 0) -> int:
    """About the bytes that a session stores besides what every session does; 0 where it brings nothing.

    `loaded` is the number of its loaded tools.
    """
    own = (session.builtin_tools or None, session.visible, session.turn_visible)
    brought = sum(len(compact_json(value).encode("utf-8", "replace")) for value in own if value is not None)
    return brought + measure_gathered(session, loaded=loaded)


def measure_gathered(session: AgentSession, *, loaded: int) -> int:
    """Of that, what searches and snapshots have added."""
    return max(0, loaded * LOADED_TOOL_BYTES + session.snapshot_bytes - UNCOUNTED_BYTES)


def make_room_for_bytes(session: AgentSession) -> int:
    """End the longest idle of a key's sessions that store much, past the bytes a key may store.

    Only those are read, from their index; a session that stores little costs nothing here. Call it with no
    session held: two such calls may end each other's.
    """
    if not session.own_bytes:
        return 0
    with_bytes = AgentSession.objects.filter(key=session.key_id, own_bytes__gt=0)
    excess = (with_bytes.aggregate(sum=Sum("own_bytes"))["sum"] or 0) - settings.MAX_KEY_BYTES
    ids: list[uuid.UUID] = []
    idle = with_bytes.exclude(pk=session.pk).order_by("last_seen_at", "pk").values_list("pk", "own_bytes")
    for pk, own_bytes in idle.iterator() if excess > 0 else ():
        if excess <= 0:
            break
        ids.append(pk)
        excess -= own_bytes
    return AgentSession.objects.filter(pk__in=ids).end() if ids else 0


def expire(*, now: datetime) -> int:
    """Delete expired sessions in batches, so that no write lasts long."""
    expired, gone = AgentSession.objects.expired(now=now), 0
    while ids := list(expired.values_list("pk", flat=True)[:BATCH_ROWS]):
        gone += expired.filter(pk__in=ids).end()
    return gone


def prune_searches(*, now: datetime) -> int:
    """Delete searches that are older than they are kept."""
    return _delete_in_batches(SearchEvent.objects.filter(at__lt=_kept_since(now)))


def prune_events(*, now: datetime) -> int:
    """Delete events and hourly counts that are older than they are kept."""
    ActivityHour.objects.filter(hour__lt=_kept_since(now)).delete()
    return _delete_in_batches(SessionEvent.objects.filter(at__lt=_kept_since(now)))


def prune_calls(*, now: datetime) -> int:
    """Delete calls that are older than searches are kept."""
    return _delete_in_batches(Call.objects.filter(at__lt=_kept_since(now)).order_by("at", "pk"))


def _kept_since(now: datetime) -> datetime:
    return now - timedelta(days=settings.KEEP_SEARCHES_DAYS)


def _take_turns(limits: list[_Limit]) -> None:
    """Whoever creates a session under one of these waits for who just does, or both would count without the
    other's. All locks are taken before any session is ended. SQLite's transactions take turns by themselves.
    """
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for limit in limits:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [int(limit.whose), limit.id % 2**31])


def _keep_limit(limit: _Limit, *, spared: AgentSession) -> int:
    if not limit.is_exact:
        excess = limit.sessions.count() - limit.most
        return _end_idle(
            limit.sessions.exclude(pk=spared.pk), min(excess, BATCH_ROWS)
        )  # the task ends the rest
    gone = 0
    while True:
        excess = limit.sessions.order_by()[: limit.most + BATCH_ROWS].count() - limit.most
        gone += _end_idle(limit.sessions.exclude(pk=spared.pk), excess)
        if excess < BATCH_ROWS:
            return gone


def _end_idle(sessions: Sessions, count: int) -> int:
    if count <= 0:
        return 0
    idle = sessions.order_by("last_seen_at", "pk").values_list("pk", flat=True)[:count]
    return AgentSession.objects.filter(pk__in=list(idle)).end()


def _delete_in_batches(rows: QuerySet[M]) -> int:
    gone = 0
    while ids := list(rows.values_list("pk", flat=True)[:BATCH_ROWS]):
        rows.filter(pk__in=ids).delete()
        gone += len(ids)
    return gone
