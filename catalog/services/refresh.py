"""Refreshes a server's tools, and records each attempt."""

import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from catalog import upstream
from catalog.domain.addresses import AddressRules
from catalog.domain.connection import (
    Connection,
    FailureCode,
    Limits,
    Rejected,
    Rules,
    ServerListing,
    StdioRules,
    UpstreamFailure,
)
from catalog.domain.definitions import Definition
from catalog.domain.limits import REJECTED_OF_A_RUN, REJECTED_OF_A_RUN_BYTES
from catalog.domain.references import ReferenceRules
from catalog.models import Job, RefreshRun, Server
from catalog.models.jobs import JobKind, JobState
from catalog.models.servers import MAX_PROTOCOL_CHARS, MAX_TITLE_CHARS, MAX_VERSION_CHARS
from catalog.sealing import SealBroken
from catalog.services import (
    access_tokens,
    connections,
    decisions,
    demo,
    derived_state,
    jobs,
    retention,
    server_features,
    tools,
)
from catalog.services.catalog_lock import lock_catalog

FIRST_RETRY_AFTER_SECONDS = 30
LONGEST_RETRY_AFTER_SECONDS = 3600
MAX_DOUBLINGS = 20
JITTER = 0.1

# Of a worker node's threads for refreshes, which are more. The rest is for servers that answered last time.
MOST_TIMED_OUT_AT_ONCE = 4
MOST_UNREACHED_AT_ONCE = 6  # with those that timed out

_TIMED_OUT = Q(failures__gt=0, last_error_code__in=[FailureCode.CONNECT_TIMEOUT, FailureCode.LIST_TIMEOUT])
_NEVER_REACHED = Q(last_refreshed_at=None)

ListTools = Callable[..., ServerListing]


def request_refresh(*, server: Server) -> Job:
    """Request a refresh, unless one is waiting. The caller wakes the workers on commit."""
    return jobs.request_job(kind=JobKind.REFRESH_SERVER, subject=server.pk)


def request_due_refreshes(*, now: datetime) -> int:
    """Request a refresh of every server that is due."""
    under_way = Job.objects.open().filter(kind=JobKind.REFRESH_SERVER).values("subject")
    due = list(Server.objects.due(now=now).exclude(pk__in=under_way).values_list("pk", flat=True))
    jobs.ensure_jobs(kind=JobKind.REFRESH_SERVER, subjects=due)
    return len(due)


def find_held_back(*, now: datetime) -> list[int]:
    """Ids of waiting refreshes that workers should not start yet, so that silent servers leave threads free.

    A server that did not answer last time may hang again and hold a thread until its timeout. Such servers
    get some of the threads at most; together with those that were never reached, a few more.
    """
    refreshes = Job.objects.open().filter(kind=JobKind.REFRESH_SERVER).order_by("run_after", "pk")
    rows = list(refreshes.values_list("pk", "subject", "state", "woken_at"))
    doubtful = Server.objects.filter(pk__in=[row[1] for row in rows]).filter(_TIMED_OUT | _NEVER_REACHED)
    timed_out = dict(doubtful.annotate(is_silent=_TIMED_OUT).values_list("pk", "is_silent")) if rows else {}
    room = {True: MOST_TIMED_OUT_AT_ONCE, False: MOST_UNREACHED_AT_ONCE}
    held_back: list[int] = []
    is_under_way = {
        pk: state == JobState.RUNNING or (woken_at is not None and woken_at >= now - jobs.REWAKE_AFTER)
        for pk, _, state, woken_at in rows
    }
    for pk, subject, *_ in sorted(rows, key=lambda row: not is_under_way[row[0]]):
        if subject not in timed_out:
            continue
        wanted = [False, True] if timed_out[subject] else [False]
        if not is_under_way[pk] and any(room[one] <= 0 for one in wanted):
            held_back.append(pk)
            continue
        for one in wanted:
            room[one] -= 1
    return held_back


def run_refresh(job: Job, *, list_tools: ListTools | None = None) -> None:
    """Ask one server for its tools and store them.

    No transaction is open while it is asked, nor while its definitions are checked.
    """
    server = Server.objects.refreshable().filter(pk=job.subject).first()
    if server is None:
        return
    started_at = timezone.now()
    try:
        ask = list_tools or upstream.list_tools
        connection = _read_connection(server)
        listing = access_tokens.ask_signed_in(
            server,
            lambda token: ask(connection, limits=limits_of(connection), rules=read_rules(), token=token),
        )
        definitions = [Definition.from_wire(wire) for wire in listing.definitions]
        prepared = tools.prepare_listing(server=server, definitions=definitions, masked=listing.masked)
        stored = _store_listing(job, server, listing, prepared, started_at)
    except UpstreamFailure as failure:
        _store_failure(job, server, failure, started_at)
        return
    except jobs.LostHold:
        raise
    except Exception as error:  # a mistake of ours: the admin must see it too, and the job tries again
        _store_failure(job, server, _explain(error), started_at)
        raise
    if stored and stored.touched:
        retention.prune_server(server_id=server.pk, now=timezone.now())


def _explain(error: Exception) -> UpstreamFailure:
    """The error's own text may hold anything, so it goes to the worker's log alone."""
    words = f"The refresh failed ({type(error).__name__}): see the worker's log"
    return UpstreamFailure(FailureCode.UNEXPECTED, words)


def _read_connection(server: Server) -> Connection:
    try:
        return connections.read_connection(server)
    except SealBroken as broken:
        raise UpstreamFailure(FailureCode.SECRETS_UNREADABLE, str(broken)) from None


def limits_of(connection: Connection) -> Limits:
    """The settings' limits, or the server's own."""
    return Limits(
        connect_timeout_seconds=connection.timeout_seconds or settings.CONNECT_TIMEOUT_SECONDS,
        list_timeout_seconds=connection.timeout_seconds or settings.LIST_TIMEOUT_SECONDS,
    )


def read_rules() -> Rules:
    return Rules(
        stdio=StdioRules(enabled=settings.STDIO_ENABLED, allowed_commands=settings.STDIO_COMMANDS),
        addresses=AddressRules(allow_private=settings.PRIVATE_ADDRESSES_ALLOWED),
        references=ReferenceRules(allowed=settings.REFERENCES, own_values=settings.OWN_SECRETS),
    )


@lock_catalog()
def _store_listing(
    job: Job, server: Server, listing: ServerListing, prepared: tools.PreparedListing, started_at: datetime
) -> tools.Stored | None:
    """None where the server was deleted meanwhile."""
    jobs.confirm_held(job)
    row = Server.objects.filter(pk=server.pk).first()
    if row is None:
        return None
    now = timezone.now()
    stored = tools.store_listing(server=server, listing=prepared, now=now)
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
    if row.last_error_code == FailureCode.SIGN_IN_NEEDED:
        access_tokens.forget_need(server)
    rejected = _cut_rejected(listing.rejected)
    RefreshRun.objects.create(
        server=server,
        job=job,
        started_at=started_at,
        finished_at=now,
        added=len(stored.added),
        changed=len(stored.changed),
        gone=len(stored.gone),
        unchanged=stored.unchanged_count,
        rejected=rejected,
        rejected_more=len(listing.rejected) - len(rejected),
        stderr_tail=listing.stderr_tail,
    )
    is_new = listing.features is not None and server_features.store_features(
        server=server, listed=listing.features
    )
    if stored.touched:
        derived_state.request_all()
    elif is_new:
        decisions.request_new_lists()
    if not row.demo:
        demo.give_way(added=len(stored.added))
    return stored


def _cut_rejected(rejected: Sequence[Rejected]) -> list[dict[str, str]]:
    """As many rejected definitions as a record keeps."""
    kept: list[dict[str, str]] = []
    left_bytes = REJECTED_OF_A_RUN_BYTES
    for one in rejected[:REJECTED_OF_A_RUN]:
        left_bytes -= len(one.name.encode()) + len(one.why.encode())
        if left_bytes < 0:
            break
        kept.append({"name": one.name, "why": one.why})
    return kept


@lock_catalog()
def _store_failure(job: Job, server: Server, failure: UpstreamFailure, started_at: datetime) -> None:
    """Keep the last good catalog, and store the failure and its start, unless the server was deleted."""
    jobs.confirm_held(job)
    row = Server.objects.filter(pk=server.pk).first()
    if row is None:
        return
    now = timezone.now()
    Server.objects.filter(pk=row.pk).update(
        # Meanwhile somebody may have been told that the sign-in has ended: the same failure.
        failures=max(row.failures, server.failures + 1),
        stale_since=row.stale_since or now,
        last_error_code=failure.code,
        last_error=failure.message,
        stderr_tail=failure.stderr_tail,
        next_refresh_at=_next_attempt(failure, row.failures, now),
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


def _next_attempt(failure: UpstreamFailure, failures_before: int, now: datetime) -> datetime | None:
    """None where it takes somebody to sign in again: then it would fail likewise."""
    if failure.code is FailureCode.RECONNECT_NEEDED:
        return None
    return now + _jittered(_retry_after_seconds(failures_before))


def _retry_after_seconds(failures_before: int) -> float:
    doublings = min(failures_before, MAX_DOUBLINGS)
    return min(FIRST_RETRY_AFTER_SECONDS * 2.0**doublings, LONGEST_RETRY_AFTER_SECONDS)


def _jittered(seconds: float) -> timedelta:
    """Adds jitter, to spread servers of one interval over time."""
    return timedelta(seconds=seconds * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311  no secret
