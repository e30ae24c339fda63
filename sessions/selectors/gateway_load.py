"""How much the gateway's processes have open, all together."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from sessions.models import GatewayProcess, OpenLease

LOST_AFTER = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class GatewayLoad:
    processes: int
    leases: int
    streams: int
    calls: int


def read_gateway_load(now: datetime) -> GatewayLoad:
    """Of processes that report: one that was lost a moment ago does not count."""
    is_seen = Q(seen_at__gte=now - LOST_AFTER)
    sums = GatewayProcess.objects.filter(is_seen).aggregate(
        processes=Count("pk"), streams=Coalesce(Sum("open_streams"), 0), calls=Coalesce(Sum("open_calls"), 0)
    )
    leases = OpenLease.objects.filter(process__seen_at__gte=now - LOST_AFTER).count()
    return GatewayLoad(sums["processes"], leases, sums["streams"], sums["calls"])
