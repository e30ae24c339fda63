"""The life of a job row: asked for, woken, claimed, held, and ended.

A message on the broker only wakes a worker. Losing one costs a few seconds until the sweep sends another;
receiving one twice costs a claim that fails. A job may run twice, so what it does must bear that.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, When
from django.db.models.functions import Least
from django.utils import timezone

from catalog.domain.errors import Unavailable
from catalog.models.jobs import Job, JobKind, JobQuerySet, JobState
from catalog.services.batches import batches

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=15)
RENEW_EVERY_SECONDS = 5.0
# Past this an attempt counts as stuck: its hold is let run out, and the job goes to another worker.
LONGEST_ATTEMPT = timedelta(seconds=600)
REWAKE_AFTER = timedelta(seconds=10)
FIRST_RETRY_AFTER = timedelta(seconds=5)
# For so long a message counts as on its way; the sweep repeats those that are lost.
WAKE_UP_TRAVELS = timedelta(seconds=1)
WAKE_AT_ONCE = 500
PRUNE_AT_ONCE = 500
ADD_AT_ONCE = 500
# Each failure means that another request was added, committed and claimed in between.
REQUEST_ATTEMPTS = 10

JobHandler = Callable[[Job], None]


class LostHold(Exception):
    """Another worker took the job over; nothing of this attempt may be kept."""


class TookTooLong(Exception):
    """The attempt was ended at its time limit; the next one may be quicker."""


def request_job(*, kind: JobKind, subject: int = 0) -> Job:
    """Ask for a job to run now. One that waits already serves, at its place among the others, so a burst of
    requests is one job.

    The waiting row is written to in any case: a worker that would claim it has to wait for our transaction,
    and so sees what the job is asked for. A wake-up that is on its way to a worker serves as well: one for
    every request would keep workers busy with messages about a job that is done.
    """
    for _ in range(REQUEST_ATTEMPTS):
        with transaction.atomic(savepoint=False):
            now = timezone.now()
            waiting = Job.objects.filter(kind=kind, subject=subject, state=JobState.WAITING)
            is_on_its_way = Q(run_after__lte=now, woken_at__gt=now - WAKE_UP_TRAVELS, woken_at__lte=now)
            woken_at = Case(When(is_on_its_way, then=F("woken_at")), default=None)
            if waiting.update(run_after=Least(F("run_after"), now), woken_at=woken_at):
                return waiting.get()
            if job := _add_job(kind, subject):
                return job
    raise Unavailable("jobs of this kind are requested and claimed faster than one can be added; try again")


def ensure_job(*, kind: JobKind, subject: int = 0) -> None:
    """Have a job wait, but leave one that waits for its next attempt in peace: what sweeps ask for."""
    if not Job.objects.filter(kind=kind, subject=subject, state=JobState.WAITING).exists():
        _add_job(kind, subject)


def ensure_jobs(*, kind: JobKind, subjects: Sequence[int]) -> None:
    """The same for many subjects at once."""
    now = timezone.now()
    for batch in batches(subjects, ADD_AT_ONCE):
        wanted = [Job(kind=kind, subject=subject, run_after=now) for subject in batch]
        Job.objects.bulk_create(wanted, ignore_conflicts=True)


def _add_job(kind: JobKind, subject: int) -> Job | None:
    """None where another transaction has added one meanwhile."""
    try:
        with transaction.atomic():
            return Job.objects.create(kind=kind, subject=subject, run_after=timezone.now())
    except IntegrityError:
        return None


def take_wakeable(*, now: datetime, held_back: Collection[int] = ()) -> list[tuple[int, str]]:
    """Ids and kinds of the jobs a worker should hear about, marked so that none is sent again at once.

    `held_back` are ids of jobs that have to wait for others of their kind.

    A job that could not be claimed yet, because one of its kind and subject is running, is heard of when
    that one has ended. A job that another transaction is writing to is left to the wake-up that follows it.
    """
    long_ago, after_a_clock_was_set_back = (
        Q(woken_at__lt=now - REWAKE_AFTER),
        Q(woken_at__gt=now + REWAKE_AFTER),
    )
    quiet = Q(woken_at=None) | long_ago | after_a_clock_was_set_back
    ahead = Job.objects.filter(
        kind=OuterRef("kind"), subject=OuterRef("subject"), state=JobState.RUNNING, held_until__gte=now
    )
    wakeable = Job.objects.claimable(now=now).filter(quiet, ~Exists(ahead)).order_by("run_after")
    if held_back:
        wakeable = wakeable.exclude(pk__in=held_back)
    if not wakeable.exists():
        return []
    with transaction.atomic():
        found = list(wakeable.free().values_list("pk", "kind")[:WAKE_AT_ONCE])
        Job.objects.filter(pk__in=[pk for pk, _ in found]).update(woken_at=now)
    return found


def forget_wake_ups(job_ids: Iterable[int]) -> None:
    """No worker heard of these: let the next sweep send them at once."""
    _update_free(Job.objects.filter(pk__in=list(job_ids)), woken_at=None)


def _update_free(rows: JobQuerySet, **values: object) -> int:
    """Update the rows that no other transaction has locked. Returns how many."""
    with transaction.atomic():
        free = list(rows.free().values_list("pk", flat=True))
        return Job.objects.filter(pk__in=free).update(**values)


def claim_job(*, job_id: int, holder: str) -> Job | None:
    """Take a job that is due, or say None: it is held, done, or another of its subject is running."""
    now = timezone.now()
    try:
        with transaction.atomic():
            claimed = (
                Job.objects.claimable(now=now)
                .filter(pk=job_id)
                .update(
                    state=JobState.RUNNING,
                    held_by=holder,
                    held_until=now + LEASE,
                    attempts=F("attempts") + 1,
                    started_at=now,
                )
            )
    except IntegrityError:
        forget_wake_ups([job_id])
        return None
    return Job.objects.get(pk=job_id) if claimed else None


@contextmanager
def keep_held(job: Job) -> Iterator[None]:
    """Renew the hold from a thread of its own until the block ends, or has taken longer than it may."""
    done = threading.Event()
    stuck_at = time.monotonic() + LONGEST_ATTEMPT.total_seconds()

    def renew() -> None:
        while not done.wait(RENEW_EVERY_SECONDS) and time.monotonic() < stuck_at:
            try:
                if not _renew(job):
                    return
            finally:
                connection.close()  # or it would keep one from the jobs

    renewer = threading.Thread(target=renew, name=f"hold-job-{job.pk}", daemon=True)
    renewer.start()
    try:
        yield
    finally:
        done.set()
        renewer.join()


def _renew(job: Job) -> bool:
    """False when the hold is lost. A database that is away for a moment is asked again at the next turn."""
    try:
        return bool(_held(job).update(held_until=timezone.now() + LEASE))
    except DatabaseError as error:
        logger.warning("the hold on job %s could not be renewed: %s", job.pk, error)
        return True


def confirm_held(job: Job) -> None:
    """Call inside the transaction that stores the job's result. Raises LostHold to roll it back."""
    if not _held(job).update(held_until=timezone.now() + LEASE):
        raise LostHold(f"job {job.pk} was taken over by another worker")


def store_result(job: Job, result: Mapping[str, object]) -> None:
    """Keep what somebody waits for. Raises LostHold where another worker has taken the job over."""
    if not _held(job).update(result=dict(result)):
        raise LostHold(f"job {job.pk} was taken over by another worker")


def withdraw_job(*, job_id: int, error: str) -> bool:
    """Fail a job that no worker has begun. False where one has."""
    waiting = Job.objects.filter(pk=job_id, state=JobState.WAITING)
    return bool(waiting.update(state=JobState.FAILED, finished_at=timezone.now(), error=error, sealed=""))


def run_job(*, job_id: int, holder: str, handlers: Mapping[JobKind, JobHandler]) -> bool:
    """Claim one job and carry it out. False when there was nothing to do."""
    job = claim_job(job_id=job_id, holder=holder)
    if job is None:
        return False
    try:
        with keep_held(job):
            handlers[JobKind(job.kind)](job)
    except LostHold as lost:
        logger.warning("%s", lost)
    except Exception as error:  # whatever it was, the row must say so
        logger.exception("job %s (%s %s) failed", job.pk, job.kind, job.subject)
        _end_attempt(job, error=f"{type(error).__name__}: {error}")
    else:
        _end(job, state=JobState.DONE)
    return True


def give_up_exhausted(*, now: datetime) -> int:
    """Fail the jobs that took their worker down on every permitted attempt."""
    return _update_free(
        Job.objects.exhausted(now=now),
        state=JobState.FAILED,
        held_by="",
        held_until=None,
        finished_at=now,
        sealed="",
        error="given up: the worker was lost on every attempt",
    )


def prune_jobs(*, before: datetime) -> int:
    """Forget the jobs that ended before a moment, in batches. How many there were."""
    ended = Job.objects.filter(state__in=[JobState.DONE, JobState.FAILED], finished_at__lt=before)
    ids = list(ended.order_by().values_list("pk", flat=True))
    for batch in batches(ids, PRUNE_AT_ONCE):
        Job.objects.filter(pk__in=batch).delete()
    return len(ids)


def _held(job: Job) -> JobQuerySet:
    """This attempt's own hold: the attempt's number keeps a late worker from touching its successor."""
    return Job.objects.filter(pk=job.pk, state=JobState.RUNNING, held_by=job.held_by, attempts=job.attempts)


def _end(job: Job, *, state: JobState, error: str = "") -> None:
    ended = {"state": state, "held_by": "", "held_until": None, "finished_at": timezone.now(), "sealed": ""}
    _held(job).update(**ended, error=error)


def _end_attempt(job: Job, *, error: str) -> None:
    """Let a failed job wait for its next attempt, unless that was its last."""
    if job.attempts >= job.max_attempts:
        _end(job, state=JobState.FAILED, error=error)
        return
    retry_at = timezone.now() + FIRST_RETRY_AFTER * 2 ** (job.attempts - 1)
    try:
        with transaction.atomic():
            _held(job).update(
                state=JobState.WAITING,
                held_by="",
                held_until=None,
                woken_at=None,
                run_after=retry_at,
                error=error,
            )
    except IntegrityError:  # a newer request for the same subject waits already and does the work
        _end(job, state=JobState.FAILED, error=error)
