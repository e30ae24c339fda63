"""Who may do what only one program does at a time: a row that its holder keeps renewing."""

import logging
import time
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from toolsearch_site.models import Lease

SCHEDULER = "scheduler"

logger = logging.getLogger(__name__)
# By name and who asks: the lease as another held it, and since when, by the monotonic clock, it is unchanged.
_unchanged_since: dict[tuple[str, str], tuple[str, datetime, float]] = {}


def hold(name: str, *, holder: str, length: timedelta) -> bool:
    """Take or renew a lease of the length that all who ask use. False while another holds it.

    The first to ask after its end gets it. So does one who has seen nobody renew it for its whole length,
    whatever its end says: it was taken before a clock was set back, or on a machine whose clock is ahead.
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


def let_go(name: str, *, holder: str) -> None:
    """End one's own lease at once, so that nobody has to wait for its end."""
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
