"""Connection tests: a worker asks a server with given settings, and nothing but the job's row is stored.

The settings are sealed in the row until the job ends. One test at a time for each caller.
"""

import logging
import time
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from catalog import upstream
from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, UpstreamFailure, field_that_mends
from catalog.domain.dialects import ServerEntry
from catalog.domain.errors import Conflict
from catalog.domain.limits import TEST_SECONDS, TEST_TOOLS_NAMED
from catalog.models import Job, Server
from catalog.models.jobs import JobKind, JobState
from catalog.sealing import SealBroken, Sealer
from catalog.services import access_tokens, connections, jobs, refresh, servers

logger = logging.getLogger(__name__)

# Left of the time for a test when the server is cut off: for ending what it started, and for the answer.
END_SECONDS = 4
PAUSE_SECONDS = 0.2
NO_WORKER = f"No worker was free to run the test within {TEST_SECONDS} seconds: try again"
NOT_CARRIED_OUT = "The test could not be carried out: see the worker's log"


@dataclass(frozen=True, slots=True)
class TestResult:
    """What a test found. `names` are the first tools; `field` is the setting that mends the error."""

    __test__ = False  # for pytest: not a class of tests

    ok: bool
    tools: int = 0
    names: tuple[str, ...] = ()
    took_ms: int = 0
    error: str = ""
    field: str = ""
    stderr_tail: str = ""


def request_test(*, entry: ServerEntry, actor: actors.Actor, caller: int) -> Job:
    """Ask for a test of settings that `config.merge_server` has checked. The caller wakes the workers.

    `caller` is a number of whoever asks. Raises Conflict while a test of theirs is under way.
    """
    actors.require(actor, Role.ADMIN if entry.transport is Transport.STDIO else Role.EDITOR)
    under_way = Conflict("A test of yours is under way: wait until it has ended.")
    if Job.objects.open().filter(kind=JobKind.TEST_SERVER, subject=caller).exists():
        raise under_way
    try:
        with transaction.atomic():
            now = timezone.now()
            job = Job.objects.create(kind=JobKind.TEST_SERVER, subject=caller, run_after=now, max_attempts=1)
            asked = {"server": entry.name, **asdict(servers.connection_of(entry))}
            job.sealed = _sealer().seal(asked, context=_context(job))
            job.save(update_fields=["sealed"])
    except IntegrityError:
        raise under_way from None
    return job


def run_test(job: Job, *, list_tools: refresh.ListTools | None = None) -> None:
    """Ask the server under the rules of a refresh, in the time that is left, and keep the result."""
    started = time.monotonic()
    result = _ask(job, list_tools or upstream.list_tools)
    took_ms = round((time.monotonic() - started) * 1000)
    jobs.store_result(job, asdict(replace(result, took_ms=took_ms)))


def _ask(job: Job, list_tools: refresh.ListTools) -> TestResult:
    left_seconds = _left_seconds(job) - END_SECONDS
    if left_seconds <= 0:
        return TestResult(ok=False, error=NO_WORKER)
    try:
        name, connection = _read_asked(job)
    except SealBroken as broken:
        return TestResult(ok=False, error=str(broken))
    limits = replace(refresh.limits_of(connection), total_timeout_seconds=left_seconds, max_features=0)
    try:
        token = _find_token(name, connection)
        listing = list_tools(connection, limits=limits, rules=refresh.read_rules(), token=token)
    except UpstreamFailure as failure:
        field = field_that_mends(failure.code, failure.message, connection)
        return TestResult(ok=False, error=failure.message, field=field, stderr_tail=failure.stderr_tail)
    except Exception:  # a mistake of ours: its text may hold anything, so it goes to the log alone
        logger.exception("test %s failed", job.pk)
        return TestResult(ok=False, error=NOT_CARRIED_OUT)
    names = tuple(str(definition["name"]) for definition in listing.definitions)
    return TestResult(ok=True, tools=len(names), names=names[:TEST_TOOLS_NAMED])


def find_test(*, job_id: int, caller: int) -> Job | None:
    """None for a test of somebody else."""
    return Job.objects.filter(pk=job_id, kind=JobKind.TEST_SERVER, subject=caller).first()


def read_result(job: Job) -> TestResult | None:
    """None while the test is under way. One that no worker has begun in time is withdrawn."""
    if job.result is not None:
        return TestResult(**{**job.result, "names": tuple(job.result["names"])})
    if job.state in (JobState.DONE, JobState.FAILED):
        return TestResult(ok=False, error=NOT_CARRIED_OUT)
    if _left_seconds(job) > 0:
        return None
    error = NO_WORKER
    if not jobs.withdraw_job(job_id=job.pk, error=error):
        error = f"The test did not end within {TEST_SECONDS} seconds"
    return TestResult(ok=False, error=error)


def wait_for_result(job: Job) -> TestResult:
    """Blocks until the test has ended, for as long as a test may take. Holds no transaction meanwhile."""
    while (result := read_result(job)) is None:
        pause()
        job.refresh_from_db()
    return result


def pause() -> None:
    time.sleep(PAUSE_SECONDS)


def _left_seconds(job: Job) -> float:
    return (job.created_at + timedelta(seconds=TEST_SECONDS) - timezone.now()).total_seconds()


def _find_token(name: str, connection: Connection) -> str:
    """That of the stored server, if the test asks the same address; empty where there is none."""
    server = Server.objects.filter(name=name).first()
    try:
        is_same = server is not None and connections.read_connection(server).url == connection.url
    except SealBroken:
        is_same = False
    if server is None or not is_same:
        return ""
    return access_tokens.fresh_access_token(server)


def _read_asked(job: Job) -> tuple[str, Connection]:
    """The server's name, and the settings to test."""
    opened = _sealer().unseal(job.sealed, context=_context(job))
    name = opened.pop("server", "")
    lists = {name: tuple(opened[name]) for name in ("args", "secret_args")}
    return name, Connection(**{**opened, **lists, "transport": Transport(opened["transport"])})


def _sealer() -> Sealer:
    return Sealer(settings.ENCRYPTION_KEYS)


def _context(job: Job) -> str:
    return f"job:{job.pk}"
