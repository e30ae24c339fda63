"""Celery tasks. A task takes ids, may run twice, and holds no logic."""

import logging
import os
import socket
import threading

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from catalog.models import Heartbeat, Job
from catalog.models.jobs import JobKind
from catalog.selectors.health import WORKER_PART
from catalog.services import (
    change_signatures,
    connection_tests,
    decisions,
    derived_state,
    encoding,
    jobs,
    marks,
    refresh,
    reindex,
    retention,
    saved_runs,
)

logger = logging.getLogger(__name__)

# A wake-up that no worker has read by then is repeated by the sweep.
WAKE_UP_EXPIRES_SECONDS = 60

# Then a job gets a soft timeout, which its row records; a process that ignores it is killed 30 s later.
LONGEST_JOB_SECONDS = 570

# Refreshes and connection tests wait for servers, and encoding takes long. They have workers of their own, or
# a few would hold up every edit.
QUEUES = {
    kind.value: settings.REFRESH_QUEUE
    for kind in (JobKind.REFRESH_SERVER, JobKind.TEST_SERVER, JobKind.ENCODE_TOOLS)
}

HANDLERS: dict[JobKind, jobs.JobHandler] = {
    JobKind.REFRESH_SERVER: refresh.run_refresh,
    JobKind.UPDATE_INDEX: reindex.run_update,
    JobKind.DECIDE: decisions.run_decisions,
    JobKind.RUN_SAVED_QUERIES: saved_runs.run_stale,
    JobKind.TEST_SERVER: connection_tests.run_test,
    JobKind.ENCODE_TOOLS: encoding.run_encoding,
}


def wake_workers() -> None:
    """Send wake-ups for due jobs. While the broker is away the rows wait for the next sweep."""
    now = timezone.now()
    waiting = dict(jobs.take_wakeable(now=now, held_back=refresh.find_held_back(now=now)))
    try:
        for job_id, kind in list(waiting.items()):
            run_job.apply_async((job_id,), queue=QUEUES.get(kind), expires=WAKE_UP_EXPIRES_SECONDS)
            del waiting[job_id]
    except (OperationalError, OSError) as error:
        logger.warning("the broker cannot be reached, the sweep will wake the workers: %s", error)
        jobs.forget_wake_ups(waiting)


def wake_workers_on_commit() -> None:
    """Wake after the commit. A wake-up that fails is repeated by the sweep."""
    transaction.on_commit(wake_workers, robust=True)


@shared_task(name="catalog.run_job", ignore_result=True, soft_time_limit=LONGEST_JOB_SECONDS, time_limit=600)
def run_job(job_id: int) -> None:
    handlers = {kind: _ending_in_time(handler) for kind, handler in HANDLERS.items()}
    if jobs.run_job(job_id=job_id, holder=name_holder(), handlers=handlers):
        wake_workers()


def _ending_in_time(handler: jobs.JobHandler) -> jobs.JobHandler:
    """A hard time limit, in workers with processes; threads have none, and their jobs have limits of their
    own.
    """

    def run(job: Job) -> None:
        try:
            handler(job)
        except SoftTimeLimitExceeded:
            raise jobs.TookTooLong("it was told to end because it took too long") from None

    return run


@shared_task(name="catalog.sweep_jobs", ignore_result=True, time_limit=60)
def sweep_jobs() -> None:
    now = timezone.now()
    Heartbeat.objects.update_or_create(part=WORKER_PART, defaults={"at": now})
    jobs.give_up_exhausted(now=now)
    derived_state.request_if_behind()
    marks.look_over_unmarked()
    wake_workers()


@shared_task(name="catalog.queue_due_refreshes", ignore_result=True, time_limit=60)
def queue_due_refreshes() -> None:
    if refresh.request_due_refreshes(now=timezone.now()):
        wake_workers()


@shared_task(name="catalog.seal_changes", ignore_result=True, time_limit=60)
def seal_changes() -> None:
    change_signatures.sign_new()


@shared_task(name="catalog.prune_history", ignore_result=True, time_limit=600)
def prune_history() -> None:
    retention.prune(now=timezone.now())


def name_holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"
