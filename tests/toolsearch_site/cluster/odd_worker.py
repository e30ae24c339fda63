"""The product's own Celery app, with a job that takes too long, and tasks that tests see from outside."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from celery import signals

from toolsearch_site.celery import app

SLOW_SUBJECT = 4711  # the product itself asks for jobs of that kind, about no subject


@signals.worker_process_init.connect
def have_a_slow_job(**_: Any) -> None:
    """When Django is ready: the product's modules cannot be read sooner."""
    from catalog import tasks
    from catalog.models.jobs import JobKind

    real = tasks.HANDLERS[JobKind.RUN_SAVED_QUERIES]

    def run(job: Any) -> None:
        if job.subject == SLOW_SUBJECT:
            time.sleep(300)
        real(job)

    tasks.HANDLERS[JobKind.RUN_SAVED_QUERIES] = run


@app.task(name="odd.die_once")
def die_once(diary: str) -> None:
    """Ends its own process the first time, as a lack of memory would."""
    if _write(Path(diary)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="odd.wait_for")
def wait_for(diary: str, gate: str) -> None:
    _write(Path(diary))
    while not Path(gate).exists():
        time.sleep(0.05)


def _write(diary: Path) -> int:
    """How many lines it has then."""
    with diary.open("a") as lines:
        lines.write(f"{os.getpid()}\n")
    return len(diary.read_text().splitlines())
