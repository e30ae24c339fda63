"""Brings a server's tools up to date, and keeps the record of each attempt."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from catalog import upstream
from catalog.domain.addresses import AddressRules
from catalog.domain.connection import (
    Connection,
    FailureCode,
    Limits,
    Listing,
    Rules,
    StdioRules,
    UpstreamFailure,
)
from catalog.domain.definitions import Definition
from catalog.models import Job, RefreshRun, Server
from catalog.models.jobs import JobKind
from catalog.models.servers import MAX_PROTOCOL_CHARS, MAX_TITLE_CHARS, MAX_VERSION_CHARS
from catalog.sealing import SealBroken
from catalog.services import connections, followers, jobs, tools
from catalog.services.writing import catalog_writing

FIRST_RETRY_AFTER_SECONDS = 30
LONGEST_RETRY_AFTER_SECONDS = 3600
MAX_DOUBLINGS = 20
JITTER = 0.1

ListTools = Callable[..., Listing]


def request_refresh(*, server: Server) -> Job:
    """Ask for a refresh. One that waits already serves; the caller wakes the workers on commit."""
    return jobs.request_job(kind=JobKind.REFRESH_SERVER, subject=server.pk)


def request_due_refreshes(*, now: datetime) -> int:
    """Ask for a refresh of every server whose time has come."""
    under_way = Job.objects.open().filter(kind=JobKind.REFRESH_SERVER).values("subject")
    due = Server.objects.due(now=now).exclude(pk__in=under_way)
    for server in due:
        jobs.ensure_job(kind=JobKind.REFRESH_SERVER, subject=server.pk)
    return len(due)


def run_refresh(job: Job, *, list_tools: ListTools | None = None) -> None:
    """Ask one server for its tools and store what it says. No transaction is open while it is asked."""
    server = Server.objects.refreshable().filter(pk=job.subject).first()
    if server is None:
        return
    started_at = timezone.now()
    try:
        ask = list_tools or upstream.list_tools
        listing = ask(_read_connection(server), limits=_limits(), rules=_rules())
        _store_listing(job, server, listing, started_at)
    except UpstreamFailure as failure:
        _store_failure(job, server, failure, started_at)
    except jobs.LostHold:
        raise
    except Exception as error:  # a mistake of ours: the admin must see it too, and the job tries again
        _store_failure(job, server, _explain(error), started_at)
        raise


def _explain(error: Exception) -> UpstreamFailure:
    """The error's own text may hold anything: it is for the worker's log alone."""
    words = f"The refresh failed ({type(error).__name__}): see the worker's log"
    return UpstreamFailure(FailureCode.UNEXPECTED, words)


def _read_connection(server: Server) -> Connection:
    try:
        return connections.read_connection(server)
    except SealBroken as broken:
        raise UpstreamFailure(FailureCode.SECRETS_UNREADABLE, str(broken)) from None


def _limits() -> Limits:
    return Limits(
        connect_timeout_seconds=settings.CONNECT_TIMEOUT_SECONDS,
        list_timeout_seconds=settings.LIST_TIMEOUT_SECONDS,
    )


def _rules() -> Rules:
    return Rules(
        stdio=StdioRules(enabled=settings.STDIO_ENABLED, allowed_commands=settings.STDIO_COMMANDS),
        addresses=AddressRules(allow_private=settings.PRIVATE_ADDRESSES_ALLOWED),
    )


@catalog_writing()
def _store_listing(job: Job, server: Server, listing: Listing, started_at: datetime) -> None:
    jobs.confirm_held(job)
    now = timezone.now()
    definitions = [Definition.from_wire(wire) for wire in listing.definitions]
    stored = tools.store_definitions(server=server, definitions=definitions, now=now)
    Server.objects.filter(pk=server.pk).update(
        title=(listing.server_title or listing.server_name)[:MAX_TITLE_CHARS],
        version=listing.server_version[:MAX_VERSION_CHARS],
        protocol_version=listing.protocol_version[:MAX_PROTOCOL_CHARS],
        instructions=listing.instructions,
        stderr_tail=listing.stderr_tail,
        last_refreshed_at=now,
        next_refresh_at=now + _jittered(server.refresh_interval_seconds),
        stale_since=None,
        failures=0,
        last_error_code="",
        last_error="",
    )
    RefreshRun.objects.create(
        server=server,
        job=job,
        started_at=started_at,
        finished_at=now,
        added=len(stored.added),
        changed=len(stored.changed),
        gone=len(stored.gone),
        unchanged=stored.unchanged_count,
        rejected=[{"name": rejected.name, "why": rejected.why} for rejected in listing.rejected],
        stderr_tail=listing.stderr_tail,
    )
    if stored.touched:
        followers.request_all()


@transaction.atomic
def _store_failure(job: Job, server: Server, failure: UpstreamFailure, started_at: datetime) -> None:
    """Keep the last good catalog, and say what is wrong and since when."""
    jobs.confirm_held(job)
    now = timezone.now()
    Server.objects.filter(pk=server.pk).update(
        failures=server.failures + 1,
        stale_since=server.stale_since or now,
        last_error_code=failure.code,
        last_error=failure.message,
        stderr_tail=failure.stderr_tail,
        next_refresh_at=now + _jittered(_retry_after_seconds(server.failures)),
    )
    RefreshRun.objects.create(
        server=server,
        job=job,
        started_at=started_at,
        finished_at=now,
        error_code=failure.code,
        error=failure.message,
        stderr_tail=failure.stderr_tail,
    )


def _retry_after_seconds(failures_before: int) -> float:
    doublings = min(failures_before, MAX_DOUBLINGS)
    return min(FIRST_RETRY_AFTER_SECONDS * 2.0**doublings, LONGEST_RETRY_AFTER_SECONDS)


def _jittered(seconds: float) -> timedelta:
    """Spread servers of one interval over time."""
    return timedelta(seconds=seconds * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311  no secret
