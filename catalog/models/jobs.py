"""Jobs are rows: a broker message only wakes a worker, the row holds the state and the lease."""

from datetime import datetime

from django.db import models
from django.db.models import F, Q

from catalog.models.constraints import one_of


class JobKind(models.TextChoices):
    REFRESH_SERVER = "refresh_server", "Refresh a server"
    UPDATE_INDEX = "update_index", "Update the search index"
    DECIDE = "decide", "Decide which tools load"
    RUN_SAVED_QUERIES = "run_saved_queries", "Run the saved queries"
    TEST_SERVER = "test_server", "Test a connection"
    ENCODE_TOOLS = "encode_tools", "Encode tools for search by meaning"


class JobState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class JobQuerySet(models.QuerySet["Job"]):
    def claimable(self, *, now: datetime) -> "JobQuerySet":
        """Jobs that are due, and jobs whose holder has stopped renewing its lease."""
        waiting = Q(state=JobState.WAITING, run_after__lte=now)
        abandoned = Q(state=JobState.RUNNING, held_until__lt=now)
        return self.filter(waiting | abandoned, attempts__lt=F("max_attempts"))

    def exhausted(self, *, now: datetime) -> "JobQuerySet":
        """Jobs whose last permitted attempt was abandoned."""
        return self.filter(state=JobState.RUNNING, held_until__lt=now, attempts__gte=F("max_attempts"))

    def free(self) -> "JobQuerySet":
        """Lock the rows that nobody else has locked, and skip the others.

        A transaction that requests several jobs locks their rows in no fixed order. Whoever locks several
        must not wait for it while holding some: that would be a deadlock.
        """
        return self.select_for_update(skip_locked=True)

    def open(self) -> "JobQuerySet":
        return self.filter(state__in=[JobState.WAITING, JobState.RUNNING])


class Job(models.Model):
    kind = models.CharField(max_length=20, choices=JobKind)
    subject = models.BigIntegerField(
        default=0, help_text="Id of the row the job is about; 0 for the whole catalog."
    )
    state = models.CharField(max_length=8, choices=JobState, default=JobState.WAITING)
    run_after = models.DateTimeField()
    woken_at = models.DateTimeField(null=True, help_text="When a worker was last sent a message about it.")
    held_by = models.CharField(max_length=100, blank=True)
    held_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField(default=5)
    error = models.TextField(blank=True)
    sealed = models.TextField(
        blank=True, default="", db_default="", help_text="Encrypted: what the job needs, until it ends."
    )
    result = models.JSONField(null=True, blank=True, help_text="Of a job that somebody waits for.")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["state", "run_after"],
                name="job_open",
                condition=Q(state__in=["waiting", "running"]),
            ),
            models.Index(fields=["kind", "subject", "-id"], name="job_of_subject"),
            models.Index(fields=["finished_at"], name="job_age"),
        ]
        constraints = [
            one_of("kind", JobKind, table="job"),
            one_of("state", JobState, table="job"),
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=Q(state="waiting"), name="job_waits_once_per_subject"
            ),
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=Q(state="running"), name="job_runs_once_per_subject"
            ),
            models.CheckConstraint(
                condition=Q(state="running", held_until__isnull=False) & ~Q(held_by="")
                | ~Q(state="running") & Q(held_until=None, held_by=""),
                name="job_is_held_while_it_runs",
            ),
            models.CheckConstraint(
                condition=Q(attempts__lte=F("max_attempts")), name="job_attempts_are_capped"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}: {self.state}"


class Heartbeat(models.Model):
    """The last heartbeat of a component. A task writes it, so it proves scheduler, broker and
    worker at once.
    """

    part = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.part} at {self.at:%H:%M:%S}"
