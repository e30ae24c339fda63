"""Who may do what only one program does at a time: a row that its holder keeps renewing."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from toolsearch_site.models import Lease

SCHEDULER = "scheduler"


def hold(name: str, *, holder: str, length: timedelta) -> bool:
    """Take or renew a lease. False while another holds it; the first to ask after its end gets it."""
    now = timezone.now()
    mine_or_over = Q(holder=holder) | Q(held_until__lt=now)
    if Lease.objects.filter(mine_or_over, name=name).update(holder=holder, held_until=now + length):
        return True
    return _is_first(name, holder, now + length)


def let_go(name: str, *, holder: str) -> None:
    """End one's own lease at once, so that nobody has to wait for its end."""
    Lease.objects.filter(name=name, holder=holder).delete()


def _is_first(name: str, holder: str, until: datetime) -> bool:
    lease, _ = Lease.objects.get_or_create(name=name, defaults={"holder": holder, "held_until": until})
    return lease.holder == holder
