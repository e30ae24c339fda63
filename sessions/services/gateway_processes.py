"""What each gateway process is doing, as it writes every two seconds: connections, breakers, open streams."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from catalog.access.actors import Actor, require
from catalog.access.key_uses import keep_printable
from catalog.access.roles import Role
from catalog.domain.errors import NotFound
from catalog.domain.limits import UPSTREAM_REFUSED_NAMES
from catalog.models import ApiKey, Server
from sessions.models import BreakerState, GatewayProcess, OpenLease, UpstreamState
from sessions.models.gateway import MAX_NAME_CHARS, MAX_PROCESS_CHARS, MAX_REVISION_CHARS
from sessions.selectors.gateway_load import LOST_AFTER
from sessions.services.calls import bound_error

BATCH_ROWS = 500
_CHANGING_OF_LEASE = ("last_used_at", "open_calls", "protocol_version")
_CHANGING_OF_UPSTREAM = ("breaker", "failures", "open_until", "error", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """An `OpenLease` as its process knows it."""

    id: uuid.UUID
    server_id: int
    key_id: int | None  # none where keys share it
    opened_at: datetime
    last_used_at: datetime
    open_calls: int = 0
    protocol_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRow:
    """An `UpstreamState` as its process knows it."""

    server_id: int
    breaker: str = BreakerState.CLOSED
    failures: int = 0
    open_until: datetime | None = None
    error: str = ""
    refused: Mapping[str, int] = field(default_factory=dict)


def report(
    *,
    process: str,
    started_at: datetime,
    leases: Sequence[LeaseRow],
    upstreams: Sequence[UpstreamRow],
    open_streams: int,
    open_calls: int,
) -> list[uuid.UUID]:
    """Write what changed since the last report of this process. Returns the ids of leases that somebody asked
    to close.
    """
    row = GatewayProcess(
        process=process[:MAX_PROCESS_CHARS],
        started_at=started_at,
        seen_at=timezone.now(),
        open_streams=open_streams,
        open_calls=open_calls,
    )
    try:
        return _write(row, leases, upstreams)
    except IntegrityError:
        # A server or a key was deleted between the look and the commit: this time the look shows it.
        return _write(row, leases, upstreams)


def remove(process: str) -> None:
    """Of a process that ends."""
    GatewayProcess.objects.filter(pk=process[:MAX_PROCESS_CHARS]).delete()


def request_close(lease_id: uuid.UUID, actor: Actor) -> None:
    """The process that has the lease closes it with its next report."""
    require(actor, Role.EDITOR)
    if not OpenLease.objects.filter(pk=lease_id).update(close_requested=True):
        raise NotFound("There is no such connection.")


def forget_lost(now: datetime) -> int:
    """Delete what processes left behind that do not report any more."""
    lost = GatewayProcess.objects.filter(seen_at__lt=now - LOST_AFTER)
    gone = 0
    for process in lost.values_list("pk", flat=True):
        # Unless it reported meanwhile.
        gone += bool(lost.filter(pk=process).delete()[0])
    return gone


@transaction.atomic
def _write(
    row: GatewayProcess, leases: Sequence[LeaseRow], upstreams: Sequence[UpstreamRow]
) -> list[uuid.UUID]:
    GatewayProcess.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["process"],
        update_fields=["started_at", "seen_at", "open_streams", "open_calls"],
    )
    servers = _find_living_servers(
        {lease.server_id for lease in leases} | {one.server_id for one in upstreams}
    )
    closing = _write_leases(row.process, [lease for lease in leases if lease.server_id in servers])
    _write_upstreams(row.process, {one.server_id: one for one in upstreams if one.server_id in servers})
    return closing


def _find_living_servers(ids: set[int]) -> set[int]:
    return set(Server.objects.filter(pk__in=ids).values_list("pk", flat=True)) if ids else set()


def _write_leases(process: str, leases: Sequence[LeaseRow]) -> list[uuid.UUID]:
    stored = {lease.pk: lease for lease in OpenLease.objects.filter(process=process).order_by()}
    new = [_make_lease(process, lease) for lease in leases if lease.id not in stored]
    OpenLease.objects.bulk_create(_leave_out_lost_keys(new), batch_size=BATCH_ROWS)
    pairs = [(stored[lease.id], _make_lease(process, lease)) for lease in leases if lease.id in stored]
    changed = [now for before, now in pairs if _differ(before, now, _CHANGING_OF_LEASE)]
    OpenLease.objects.bulk_update(changed, _CHANGING_OF_LEASE, batch_size=BATCH_ROWS)
    gone = stored.keys() - {lease.id for lease in leases}
    if gone:
        OpenLease.objects.filter(pk__in=gone).delete()
    return [before.pk for before, _ in pairs if before.close_requested]


def _make_lease(process: str, lease: LeaseRow) -> OpenLease:
    return OpenLease(
        id=lease.id,
        process_id=process,
        server_id=lease.server_id,
        key_id=lease.key_id,
        opened_at=lease.opened_at,
        last_used_at=lease.last_used_at,
        open_calls=lease.open_calls,
        protocol_version=keep_printable(lease.protocol_version[:MAX_REVISION_CHARS]),
    )


def _leave_out_lost_keys(leases: Sequence[OpenLease]) -> list[OpenLease]:
    ids = {lease.key_id for lease in leases if lease.key_id is not None}
    living = set(ApiKey.objects.filter(pk__in=ids).values_list("pk", flat=True)) if ids else set()
    return [lease for lease in leases if lease.key_id is None or lease.key_id in living]


def _write_upstreams(process: str, upstreams: Mapping[int, UpstreamRow]) -> None:
    stored = {state.server_id: state for state in UpstreamState.objects.filter(process=process)}
    now = {server_id: _make_state(process, one) for server_id, one in upstreams.items()}
    UpstreamState.objects.bulk_create(
        [state for server_id, state in now.items() if server_id not in stored], batch_size=BATCH_ROWS
    )
    changed = []
    for server_id in now.keys() & stored.keys():
        now[server_id].pk = stored[server_id].pk
        if _differ(stored[server_id], now[server_id], _CHANGING_OF_UPSTREAM):
            changed.append(now[server_id])
    UpstreamState.objects.bulk_update(changed, _CHANGING_OF_UPSTREAM, batch_size=BATCH_ROWS)
    gone = [state.pk for server_id, state in stored.items() if server_id not in now]
    if gone:
        UpstreamState.objects.filter(pk__in=gone).delete()


def _make_state(process: str, one: UpstreamRow) -> UpstreamState:
    return UpstreamState(
        process_id=process,
        server_id=one.server_id,
        breaker=one.breaker,
        failures=one.failures,
        open_until=one.open_until,
        error=bound_error(one.error),
        refused=_bound_names(one.refused.items()),
    )


def _bound_names(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    named = [(keep_printable(name[:MAX_NAME_CHARS]), count) for name, count in counts]
    return dict(named[:UPSTREAM_REFUSED_NAMES])


def _differ(before: object, now: object, fields: Iterable[str]) -> bool:
    return any(getattr(before, name) != getattr(now, name) for name in fields)
