"""State of the deployment for the System page and the metrics: nodes, queues, lags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, Q
from django.utils import timezone

from catalog.models import CatalogVersion, Job, RefreshRun
from catalog.models.jobs import JobKind, JobState
from catalog.selectors.decisions import count_behind
from toolsearch_site.cluster.heartbeat import IS_LATE_AFTER
from toolsearch_site.cluster.leases import SCHEDULER_LEASE
from toolsearch_site.models import Lease, Node

RECENT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class NodeLine:
    node: Node
    silent_seconds: int

    @property
    def is_late(self) -> bool:
        return self.silent_seconds > IS_LATE_AFTER.total_seconds()

    @property
    def silent_for(self) -> str:
        minutes, seconds = divmod(self.silent_seconds, 60)
        return f"{minutes} min" if minutes else f"{seconds} s"


@dataclass(frozen=True, slots=True)
class Queue:
    """The jobs of one kind. `oldest_seconds` is how long the oldest due job has waited.

    `failed` are those of the last hour. A refresh whose server did not answer is among them, although its job
    has ended as it should.
    """

    kind: str
    label: str
    waiting: int = 0
    running: int = 0
    failed: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class System:
    nodes: Sequence[NodeLine]
    scheduler: str
    queues: Sequence[Queue]
    refreshes: int
    failed_refreshes: int
    catalog_version: int
    policies_behind: int

    @property
    def late_nodes(self) -> int:
        return sum(line.is_late for line in self.nodes)

    @property
    def decision_lag_seconds(self) -> float:
        """For how long requested decisions have been pending."""
        return next(queue.oldest_seconds for queue in self.queues if queue.kind == JobKind.DECIDE)


def read_system() -> System:
    now = timezone.now()
    runs = RefreshRun.objects.filter(finished_at__gte=now - RECENT).aggregate(
        made=Count("pk"), failed=Count("pk", filter=~Q(error_code=""))
    )
    lease = Lease.objects.filter(name=SCHEDULER_LEASE, held_until__gte=now).first()
    return System(
        nodes=[NodeLine(node, int((now - node.seen_at).total_seconds())) for node in Node.objects.all()],
        scheduler=lease.holder.partition(":")[0] if lease else "",
        queues=_read_queues(now, failed_refreshes=runs["failed"]),
        refreshes=runs["made"],
        failed_refreshes=runs["failed"],
        catalog_version=CatalogVersion.current(),
        policies_behind=count_behind(),
    )


def _read_queues(now: datetime, *, failed_refreshes: int) -> list[Queue]:
    """One query for all kinds; a kind without jobs is an empty queue."""
    failed = Q(state=JobState.FAILED, finished_at__gte=now - RECENT)
    rows = (
        Job.objects.filter(Q(state__in=[JobState.WAITING, JobState.RUNNING]) | failed)
        .order_by("kind")
        .values("kind")
        .annotate(
            waiting=Count("pk", filter=Q(state=JobState.WAITING)),
            running=Count("pk", filter=Q(state=JobState.RUNNING)),
            failed=Count("pk", filter=Q(state=JobState.FAILED)),
            due=Min("run_after", filter=~Q(state=JobState.FAILED)),
        )
    )
    found = {row["kind"]: row for row in rows}
    queues = [_describe_queue(JobKind(kind), found.get(kind), now) for kind in JobKind.values]
    return [
        replace(queue, failed=queue.failed + failed_refreshes)
        if queue.kind == JobKind.REFRESH_SERVER
        else queue
        for queue in queues
    ]


def _describe_queue(kind: JobKind, row: Mapping[str, Any] | None, now: datetime) -> Queue:
    if row is None:
        return Queue(kind.value, str(kind.label))
    waited = max(0.0, (now - row["due"]).total_seconds()) if row["due"] else 0.0
    counts = {name: row[name] for name in ("waiting", "running", "failed")}
    return Queue(kind.value, str(kind.label), **counts, oldest_seconds=waited)
