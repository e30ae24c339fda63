"""Forgets what has served its time, so that tables grow with the catalog and not with the days."""

from datetime import datetime, timedelta

from django.db.models import Exists, F, Max, OuterRef

from catalog.models import RefreshRun, ToolRevision
from catalog.services import jobs

KEEP_JOBS = timedelta(days=7)
KEEP_RUNS = timedelta(days=90)
KEEP_REVISIONS = 50


def prune(*, now: datetime) -> None:
    """The last run of a server is kept, however old: it is what its page shows. So is the form of a tool
    that a change is measured from: an admin has to see the difference.
    """
    jobs.prune_jobs(before=now - KEEP_JOBS)
    latest = RefreshRun.objects.order_by().values("server").annotate(last=Max("pk")).values("last")
    RefreshRun.objects.filter(finished_at__lt=now - KEEP_RUNS).exclude(pk__in=latest).delete()
    newer = ToolRevision.objects.filter(
        tool=OuterRef("tool"), number__gte=OuterRef("number") + KEEP_REVISIONS
    )
    old = ToolRevision.objects.filter(Exists(newer))
    old.exclude(digest=F("tool__baseline_digest")).delete()
