"""`manage.py refresh [SERVER…] [--wait]`: asks the workers for a refresh."""

import sys
import time
from argparse import ArgumentParser
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils import timezone

from catalog import tasks
from catalog.management.progress import ProgressBoard
from catalog.models import Job, RefreshRun, Server
from catalog.models.jobs import JobKind, JobState
from catalog.services import derived_state, jobs, refresh

POLL_SECONDS = 0.2
WORKERS_ANSWER_WITHIN_SECONDS = 2.0
AT_ONCE = 8


class Command(BaseCommand):
    help = "Refresh the named servers, or all that can be refreshed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("servers", nargs="*", metavar="SERVER")
        parser.add_argument("--wait", action="store_true", help="show progress; exit 1 if one failed")

    def handle(self, *, servers: list[str], wait: bool, **options: Any) -> None:
        requested = {refresh.request_refresh(server=server).pk: server.name for server in _find(servers)}
        tasks.wake_workers()
        if not wait:
            self.stdout.write(f"asked for {len(requested)} refreshes")
            return
        bool(settings.ENCRYPTION_KEYS)  # read here: a thread that misses one could not end the command
        self._watch(requested)
        derived_state.bring_up_to_date()
        failed = self._report(requested)
        if failed:
            sys.exit(1)

    def _watch(self, requested: dict[int, str]) -> None:
        """Runs jobs itself that no worker takes soon, so that the command works without a worker."""
        patience = time.monotonic() + WORKERS_ANSWER_WITHIN_SECONDS
        board = ProgressBoard(sys.stderr, list(requested.values()))
        running: dict[int, Future[None]] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while True:
                states = _read_states(requested)
                board.show({name: states[pk] for pk, name in requested.items()})
                if not {JobState.WAITING, JobState.RUNNING} & set(states.values()):
                    return
                if time.monotonic() > patience:
                    for pk in _left_over():
                        if pk not in running or running[pk].done():
                            running[pk] = pool.submit(_run_here, pk)
                time.sleep(POLL_SECONDS)

    def _report(self, requested: dict[int, str]) -> int:
        latest = {run.job_id: run for run in RefreshRun.objects.filter(job__in=requested).order_by("pk")}
        failed = 0
        for job_id, name in sorted(requested.items(), key=lambda item: item[1]):
            run = latest.get(job_id)
            is_ok = run is not None and run.is_ok
            failed += not is_ok
            self.stdout.write(f"{name}: {_describe(run)}")
        return failed


def _find(names: list[str]) -> list[Server]:
    refreshable = Server.objects.refreshable()
    if not names:
        return list(refreshable)
    found = {server.name: server for server in refreshable.filter(name__in=names)}
    missing = [name for name in names if name not in found]
    if missing:
        raise CommandError(f"no server that can be refreshed has the name {', '.join(missing)}")
    return list(found.values())


def _read_states(requested: dict[int, str]) -> dict[int, str]:
    """The states by server; a job that found its server unreachable counts as failed."""
    states = dict(Job.objects.filter(pk__in=requested).values_list("pk", "state"))
    failed = RefreshRun.objects.filter(job__in=requested).exclude(error_code="").values_list("job", flat=True)
    ended = {pk: JobState.FAILED for pk in failed if pk and states[pk] == JobState.DONE}
    return states | ended


def _left_over() -> list[int]:
    """Refreshes that no worker takes or whose worker is gone; they would block new ones."""
    now = timezone.now()
    jobs.give_up_exhausted(now=now)
    left = Job.objects.claimable(now=now).filter(kind=JobKind.REFRESH_SERVER)
    return list(left.values_list("pk", flat=True))


def _run_here(job_id: int) -> None:
    try:
        jobs.run_job(job_id=job_id, holder=tasks.name_holder(), handlers=tasks.HANDLERS)
    finally:
        connection.close()


def _describe(run: RefreshRun | None) -> str:
    if run is None:
        return "failed: the refresh ended without a result"
    if not run.is_ok:
        return f"failed: {run.error}"
    counts = f"{run.added} added, {run.changed} changed, {run.gone} gone, {run.unchanged} unchanged"
    return f"{counts}, {run.rejected_count} rejected" if run.rejected_count else counts
