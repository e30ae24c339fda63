"""Can this instance serve? Read on every health check, so each answer is one cheap look."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from catalog.models import Heartbeat
from catalog.search import generations
from catalog.search.errors import IndexDamaged
from catalog.selectors.decisions import count_behind

WORKER_PART = "worker"
WORKER_IS_LATE_AFTER = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Health:
    """Each part is `ok` or says in words what is wrong with it."""

    database: str
    index: str
    worker: str
    decisions: str

    @property
    def can_serve(self) -> bool:
        """Polls and searches need no worker: a late one makes the catalog stale, not the answers wrong."""
        return self.database == "ok"

    @property
    def status(self) -> str:
        """Decisions are behind for a moment after every edit, and that is no fault: late is a late worker."""
        if not self.can_serve:
            return "unavailable"
        return "ok" if self.index == self.worker == "ok" else "degraded"


def read_health() -> Health:
    try:
        heartbeat = Heartbeat.objects.filter(part=WORKER_PART).first()
        behind = count_behind()
    except DatabaseError:
        return Health(database="cannot be reached", index="unknown", worker="unknown", decisions="unknown")
    return Health(
        database="ok",
        index=_judge_index(),
        worker=_judge_worker(heartbeat),
        decisions=f"{behind} {'policy' if behind == 1 else 'policies'} behind" if behind else "ok",
    )


def _judge_worker(heartbeat: Heartbeat | None) -> str:
    if heartbeat is None:
        return "never seen"
    age = timezone.now() - heartbeat.at
    return "ok" if age < WORKER_IS_LATE_AFTER else f"last seen {int(age.total_seconds())} s ago"


def _judge_index() -> str:
    """One small file names the generation in force."""
    try:
        generations.read_current(settings.INDEX_FOLDER)
    except IndexDamaged:
        return "missing"
    return "ok"
