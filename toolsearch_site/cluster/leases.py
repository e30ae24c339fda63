"""Leases: rows that let only one program at a time do a task. The holder renews its row."""

import logging
import time
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from catalog.process_memory import remember
from toolsearch_site.models import Lease

SCHEDULER_LEASE = "scheduler"

logger = logging.getLogger(__name__)
# By lease and asker: the lease as another held it, and since when it is unchanged, by the monotonic clock.
_unchanged_since: dict[tuple[str, str], tuple[str, datetime, float]] = {}
remember("leases of others", _unchanged_since.clear)


def acquire(name: str, *, holder: str, length: timedelta) -> bool:
    """Acquire or renew a lease; all who ask use the same length. False while another program holds it.

    An expired lease goes to the first who asks. So does one that has not been renewed for its whole length,
    whatever its end says: the clock was set back, or the holder's clock is ahead.
    """
    now = timezone.now()
    free = Lease.objects.filter(Q(holder=holder) | Q(held_until__lt=now), name=name)
    if free.update(holder=holder, held_until=now + length):
        return True
    abandoned = _find_abandoned(name, holder, length)
    if abandoned is not None:
        same = Lease.objects.filter(name=name, holder=abandoned.holder, held_until=abandoned.held_until)
        logger.warning("nobody renews the lease %s, which ends only at %s: taken", name, abandoned.held_until)
        return bool(same.update(holder=holder, held_until=now + length))
    return _is_first(name, holder, now + length)


def release(name: str, *, holder: str) -> None:
    """Release our own lease at once, so that nobody waits for it to expire."""
    Lease.objects.filter(name=name, holder=holder).delete()


def _find_abandoned(name: str, holder: str, length: timedelta) -> Lease | None:
    lease = Lease.objects.filter(name=name).exclude(holder=holder).first()
    if lease is None:
        return None
    last = _unchanged_since.get((name, holder))
    if last is None or last[:2] != (lease.holder, lease.held_until):
        _unchanged_since[name, holder] = (lease.holder, lease.held_until, time.monotonic())
        return None
    return lease if time.monotonic() - last[2] > length.total_seconds() else None


def _is_first(name: str, holder: str, until: datetime) -> bool:
    lease, _ = Lease.objects.get_or_create(name=name, defaults={"holder": holder, "held_until": until})
    return lease.holder == holder
