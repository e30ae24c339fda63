"""Sessions end: when their time is over, or when there are too many and they have been idle longest."""

import uuid
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.db.models import Model, QuerySet, Sum

from catalog.domain.sizes import compact_json
from sessions.models import ActivityHour, AgentSession, SearchEvent, SessionEvent
from sessions.models import AgentSessionQuerySet as Sessions

BATCH_ROWS = 500

M = TypeVar("M", bound=Model)


def make_room(session: AgentSession) -> int:
    """End the longest idle sessions past the limits of a new one's key, of its policy and of all."""
    everyone = AgentSession.objects.all()
    limits: list[tuple[Sessions, int | None]] = [
        (everyone.filter(key=session.key_id), session.key.max_sessions),
        (everyone.filter(policy=session.policy_id), session.policy.max_sessions),
        (everyone, settings.MAX_SESSIONS),
    ]
    return sum(_end_idle(sessions, most, spared=session) for sessions, most in limits if most is not None)


def measure_own(session: AgentSession) -> int:
    """About the bytes that a session stores besides what every session does; 0 where it brings nothing."""
    own = (session.builtin_tools or None, session.visible, session.turn_visible)
    return sum(len(compact_json(value).encode("utf-8", "replace")) for value in own if value is not None)


def make_room_for_bytes(session: AgentSession) -> int:
    """End the longest idle of a key's sessions that bring something along, past the bytes a key may store.

    Only those are read, from their index; a session that brings nothing costs nothing here.
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
    """End the sessions whose time is over, a batch at a time so that no write lasts long."""
    expired, gone = AgentSession.objects.expired(now=now), 0
    while ids := list(expired.values_list("pk", flat=True)[:BATCH_ROWS]):
        gone += expired.filter(pk__in=ids).end()
    return gone


def prune_searches(*, now: datetime) -> int:
    """Forget searches older than they are kept."""
    return _delete_in_batches(SearchEvent.objects.filter(at__lt=_kept_since(now)))


def prune_events(*, now: datetime) -> int:
    """Forget, with the searches, what happened to sessions and what was counted of them."""
    ActivityHour.objects.filter(hour__lt=_kept_since(now)).delete()
    return _delete_in_batches(SessionEvent.objects.filter(at__lt=_kept_since(now)))


def _kept_since(now: datetime) -> datetime:
    return now - timedelta(days=settings.KEEP_SEARCHES_DAYS)


def _end_idle(sessions: Sessions, most: int, *, spared: AgentSession) -> int:
    excess = sessions.count() - most
    if excess <= 0:
        return 0
    others = sessions.exclude(pk=spared.pk)
    idle = others.order_by("last_seen_at", "pk").values_list("pk", flat=True)[:excess]
    return AgentSession.objects.filter(pk__in=list(idle)).end()


def _delete_in_batches(rows: QuerySet[M]) -> int:
    gone = 0
    while ids := list(rows.values_list("pk", flat=True)[:BATCH_ROWS]):
        rows.filter(pk__in=ids).delete()
        gone += len(ids)
    return gone
