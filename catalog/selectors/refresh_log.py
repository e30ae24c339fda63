"""The log of a server's last refresh, from its job and the records of its attempts."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from catalog.models import Job, RefreshRun, Server
from catalog.models.jobs import JobState

REJECTED_LINES = 20


@dataclass(frozen=True, slots=True)
class LogLine:
    """`tone` is `good`, `bad` or empty."""

    at: datetime
    words: str
    tone: str = ""


def read_log(server: Server, job: Job | None) -> list[LogLine]:
    """The oldest line first. Where the job was deleted, the attempt's record is used."""
    if job is None:
        return [line for run in server.runs.all()[:1] for line in _tell_run(run)]
    attempts = list(job.runs.order_by("finished_at", "pk"))
    lines = [LogLine(job.created_at, "Asked for.")]
    lines += [line for run in attempts for line in _tell_run(run)]
    return [*lines, *_tell_state(job)]


def _tell_state(job: Job) -> Iterator[LogLine]:
    if job.state == JobState.RUNNING and job.started_at is not None:
        yield LogLine(
            job.started_at, f"A worker is asking the server: attempt {job.attempts} of {job.max_attempts}."
        )
    elif job.state == JobState.WAITING and job.attempts:
        yield LogLine(job.run_after, f"Due again: attempt {job.attempts + 1} of {job.max_attempts}.")
    elif job.state == JobState.WAITING:
        yield LogLine(job.run_after, "Waiting for a worker.")
    elif job.state == JobState.FAILED and job.finished_at is not None:
        yield LogLine(job.finished_at, f"Given up after {job.attempts} attempts.", "bad")


def _tell_run(run: RefreshRun) -> Iterator[LogLine]:
    yield LogLine(run.started_at, "The server was asked for its tools.")
    for rejected in run.rejected[:REJECTED_LINES]:
        yield LogLine(run.finished_at, f"Rejected {rejected['name']}: {rejected['why']}", "bad")
    if left := run.rejected_count - len(run.rejected[:REJECTED_LINES]):
        yield LogLine(run.finished_at, f"Rejected {left:,} more.", "bad")
    took = f"{(run.finished_at - run.started_at).total_seconds():.1f} s"
    if not run.is_ok:
        yield LogLine(run.finished_at, f"{run.error} (after {took})", "bad")
        return
    counts = (
        ("added", run.added),
        ("changed", run.changed),
        ("gone", run.gone),
        ("unchanged", run.unchanged),
    )
    told = ", ".join(f"{count:,} {word}" for word, count in counts if count) or "no tools"
    yield LogLine(run.finished_at, f"Answered after {took}: {told}.", "good")
