"""Sessions end: when their time is over, or when there are too many and they have been idle longest."""

from datetime import datetime, timedelta

from django.conf import settings

from sessions.models import AgentSession, SearchEvent
from sessions.models import AgentSessionQuerySet as Sessions

BATCH_ROWS = 500


def make_room(session: AgentSession) -> int:
    """End the longest idle sessions past the limits of a new one's key, of its policy and of all."""
    everyone = AgentSession.objects.all()
    limits: list[tuple[Sessions, int | None]] = [
        (everyone.filter(key=session.key_id), session.key.max_sessions),
        (everyone.filter(policy=session.policy_id), session.policy.max_sessions),
        (everyone, settings.MAX_SESSIONS),
    ]
    return sum(_end_idle(sessions, most, spared=session) for sessions, most in limits if most is not None)


def expire(*, now: datetime) -> int:
    """End the sessions whose time is over, a batch at a time so that no write lasts long."""
    return _delete_in_batches(AgentSession.objects.expired(now=now))


def prune_searches(*, now: datetime) -> int:
    """Forget searches older than they are kept."""
    before = now - timedelta(days=settings.KEEP_SEARCHES_DAYS)
    gone = 0
    while ids := list(SearchEvent.objects.filter(at__lt=before).values_list("pk", flat=True)[:BATCH_ROWS]):
        gone += SearchEvent.objects.filter(pk__in=ids).delete()[0]
    return gone


def _end_idle(sessions: Sessions, most: int, *, spared: AgentSession) -> int:
    excess = sessions.count() - most
    if excess <= 0:
        return 0
    others = sessions.exclude(pk=spared.pk)
    idle = others.order_by("last_seen_at", "pk").values_list("pk", flat=True)[:excess]
    ids = list(idle)
    AgentSession.objects.filter(pk__in=ids).delete()
    return len(ids)


def _delete_in_batches(sessions: Sessions) -> int:
    gone = 0
    while ids := list(sessions.values_list("pk", flat=True)[:BATCH_ROWS]):
        AgentSession.objects.filter(pk__in=ids).delete()
        gone += len(ids)
    return gone
