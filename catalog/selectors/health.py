"""Health of this instance. Read on every health check, so each part is cheap."""

import errno
import os
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from catalog.models import Heartbeat
from catalog.process_memory import remember
from catalog.search import generations
from catalog.search.errors import IndexDamaged
from catalog.selectors.decisions import count_behind
from catalog.selectors.encoder import EncoderStatus, read_encoder_status
from catalog.selectors.search import is_by_meaning

WORKER_PART = "worker"
WORKER_IS_LATE_AFTER = timedelta(seconds=20)
# What a few edits take. Looked for by asking the disk for it, at most this often in a process.
NEEDED_DISK_BYTES = 1024 * 1024
LOOK_AT_DISK_EVERY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Health:
    """Each part is `ok` or says in words what is wrong with it. `encoder` is None without a database."""

    database: str
    index: str
    worker: str
    decisions: str
    disk: str
    encoder: EncoderStatus | None = None
    is_by_meaning: bool = False

    @property
    def can_serve(self) -> bool:
        """Polls and searches need no worker: a late one makes the catalog stale, not the answers wrong. On a
        full disk polls are answered and writes refused one by one.
        """
        return self.database == "ok"

    @property
    def status(self) -> str:
        """Decisions are behind for a moment after every edit, and vectors after a new tool, which is normal;
        only a late worker is a fault. Where the encoder fails, words search alone.
        """
        if not self.can_serve:
            return "unavailable"
        is_well = self.index == self.worker == self.disk == "ok" and not (
            self.encoder and self.encoder.problem
        )
        return "ok" if is_well else "degraded"


def read_health() -> Health:
    try:
        heartbeat = Heartbeat.objects.filter(part=WORKER_PART).first()
        behind = count_behind()
        encoder = read_encoder_status()
    except DatabaseError:
        return Health(
            database="cannot be reached",
            index="unknown",
            worker="unknown",
            decisions="unknown",
            disk=_disk.judge(settings.DATA_FOLDER),
        )
    return Health(
        database="ok",
        index=_judge_index(),
        worker=_judge_worker(heartbeat),
        decisions=f"{behind} {'policy' if behind == 1 else 'policies'} behind" if behind else "ok",
        disk=_disk.judge(settings.DATA_FOLDER),
        encoder=encoder,
        is_by_meaning=is_by_meaning(),
    )


class _Disk:
    """The last result of the disk check."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._found, self._looked_at, self._folder = "ok", -LOOK_AT_DISK_EVERY_SECONDS, Path()

    def judge(self, folder: Path) -> str:
        now = time.monotonic()
        if folder != self._folder or now - self._looked_at >= LOOK_AT_DISK_EVERY_SECONDS:
            self._found, self._looked_at, self._folder = look_at_disk(folder), now, folder
        return self._found


_disk = _Disk()
remember("the last look at the disk", _disk.forget)


def look_at_disk(folder: Path) -> str:
    """Whether the folder's disk accepts a small temporary file."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            os.posix_fallocate(probe.fileno(), 0, NEEDED_DISK_BYTES)
    except OSError as error:
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        return "full" if is_full else f"cannot be written: {error.strerror}"
    return "ok"


def _judge_worker(heartbeat: Heartbeat | None) -> str:
    if heartbeat is None:
        return "never seen"
    age = timezone.now() - heartbeat.at
    if age < -WORKER_IS_LATE_AFTER:
        return f"last seen {-int(age.total_seconds())} s in the future: a clock was set back"
    return "ok" if age < WORKER_IS_LATE_AFTER else f"last seen {int(age.total_seconds())} s ago"


def _judge_index() -> str:
    """Reads one small file that names the current generation."""
    try:
        generations.read_current(settings.INDEX_FOLDER)
    except IndexDamaged:
        return "missing"
    return "ok"
