"""What a gateway process reports is what the tables hold, with no statement for what did not change."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.access.actors import Actor
from catalog.access.roles import Role
from catalog.domain.errors import NotAllowed, NotFound
from catalog.models import ApiKey, Server
from sessions.models import GatewayProcess, OpenLease, UpstreamState
from sessions.services import gateway_processes
from sessions.services.gateway_processes import LeaseRow, UpstreamRow
from tests.harness.rows import make_key, make_server

pytestmark = pytest.mark.django_db

NOW = timezone.now()
EDITOR = Actor(label="eve", role=Role.EDITOR)
VIEWER = Actor(label="vic", role=Role.VIEWER)


def report(
    *leases: LeaseRow,
    upstreams: Sequence[UpstreamRow] = (),
    process: str = "node:1",
    open_streams: int = 0,
    open_calls: int = 0,
) -> list[uuid.UUID]:
    return gateway_processes.report(
        process=process,
        started_at=NOW,
        leases=leases,
        upstreams=upstreams,
        open_streams=open_streams,
        open_calls=open_calls,
    )


def make_lease(server: Server, key: ApiKey | None = None, **values: object) -> LeaseRow:
    given = {"id": uuid.uuid4(), "opened_at": NOW, "last_used_at": NOW, **values}
    return LeaseRow(server_id=server.pk, key_id=key.pk if key else None, **given)  # type: ignore[arg-type]


def change(lease: LeaseRow, **values: object) -> LeaseRow:
    return replace(lease, **values)  # type: ignore[arg-type]


class TestProcess:
    def test_row_says_what_is_open(self) -> None:
        report(open_streams=2, open_calls=1)
        first = GatewayProcess.objects.get()
        assert (first.process, first.started_at, first.open_streams, first.open_calls) == (
            "node:1",
            NOW,
            2,
            1,
        )
        report(open_streams=5)
        second = GatewayProcess.objects.get()
        assert (second.open_streams, second.open_calls) == (5, 0)
        assert second.seen_at >= first.seen_at

    def test_end_takes_all_of_it_along(self) -> None:
        server = make_server()
        report(make_lease(server), upstreams=[UpstreamRow(server_id=server.pk)])
        report(make_lease(server), process="node:2")
        gateway_processes.remove("node:1")
        assert GatewayProcess.objects.get().process == "node:2"
        assert OpenLease.objects.count() == 1
        assert not UpstreamState.objects.exists()

    def test_lost_ones_are_forgotten(self) -> None:
        server = make_server()
        for process in ("node:1", "node:2"):
            report(make_lease(server), process=process)
        now = timezone.now()
        GatewayProcess.objects.filter(pk="node:1").update(seen_at=now - timedelta(seconds=31))
        assert gateway_processes.forget_lost(now) == 1
        assert OpenLease.objects.get().process_id == "node:2"
        assert gateway_processes.forget_lost(now) == 0

    def test_lost_one_that_reports_again_is_back(self) -> None:
        lease = make_lease(make_server())
        report(lease)
        gateway_processes.forget_lost(timezone.now() + timedelta(minutes=1))
        report(lease)
        assert OpenLease.objects.get().pk == lease.id


class TestLeases:
    def test_rows_follow_the_process(self) -> None:
        server, key = make_server(), make_key()
        lease, shared = make_lease(server, key, protocol_version="2026-07-28"), make_lease(server)
        report(lease, shared)
        row = OpenLease.objects.get(pk=lease.id)
        assert (row.server, row.key, row.protocol_version) == (server, key, "2026-07-28")
        assert OpenLease.objects.get(pk=shared.id).key is None
        later = NOW + timedelta(seconds=3)
        report(change(lease, open_calls=2, last_used_at=later))
        row = OpenLease.objects.get()
        assert (row.pk, row.open_calls, row.last_used_at) == (lease.id, 2, later)
        report()
        assert not OpenLease.objects.exists()

    def test_of_another_process_stay(self) -> None:
        server = make_server()
        report(make_lease(server), process="node:1")
        report(make_lease(server), process="node:2")
        report(process="node:2")
        assert OpenLease.objects.get().process_id == "node:1"

    def test_of_servers_and_keys_that_are_gone_are_left_out(self) -> None:
        server, key = make_server(), make_key()
        leases = [make_lease(server, key), make_lease(server), make_lease(make_server(), key)]
        report(*leases)
        key.delete()
        report(*leases)
        assert OpenLease.objects.get().pk == leases[1].id
        server_id = server.pk
        server.delete()
        assert report(*leases, upstreams=[UpstreamRow(server_id=server_id)]) == []
        assert not OpenLease.objects.exists()
        assert not UpstreamState.objects.exists()

    def test_nothing_is_written_of_what_did_not_change(self) -> None:
        servers = [make_server() for _ in range(20)]
        leases = [make_lease(server, make_key()) for server in servers]
        upstreams = [UpstreamRow(server_id=server.pk, refused={"sampling": 1}) for server in servers]
        report(*leases, upstreams=upstreams)
        with CaptureQueriesContext(connection) as queries:
            report(*leases, upstreams=upstreams)
        statements = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
        assert len(statements) == 4
        assert [sql.split()[0] for sql in statements].count("SELECT") == 3


class TestClosing:
    def test_request_reaches_the_process_that_has_it(self) -> None:
        server = make_server()
        mine, other = make_lease(server), make_lease(server)
        report(mine)
        report(other, process="node:2")
        gateway_processes.request_close(mine.id, EDITOR)
        assert report(other, process="node:2") == []
        assert report(change(mine, open_calls=1)) == [mine.id]
        assert report(mine) == [mine.id]  # until it is closed
        assert report() == []

    def test_of_what_is_not_open_is_not_found(self) -> None:
        with pytest.raises(NotFound):
            gateway_processes.request_close(uuid.uuid4(), EDITOR)

    def test_needs_an_editor(self) -> None:
        lease = make_lease(make_server())
        report(lease)
        with pytest.raises(NotAllowed):
            gateway_processes.request_close(lease.id, VIEWER)
        assert report(lease) == []


class TestUpstreams:
    def test_rows_follow_the_process(self) -> None:
        server, other = make_server(), make_server()
        report(upstreams=[UpstreamRow(server_id=server.pk), UpstreamRow(server_id=other.pk)])
        until = NOW + timedelta(seconds=30)
        opened = UpstreamRow(
            server_id=server.pk,
            breaker="open",
            failures=5,
            open_until=until,
            error="refused\0\n" * 500,
            refused={f"method-{number}" * 50: number for number in range(200)},
        )
        report(upstreams=[opened])
        row = UpstreamState.objects.get()
        assert (row.server, row.breaker, row.failures, row.open_until) == (server, "open", 5, until)
        assert len(row.error) <= 500
        assert row.error.isprintable()
        assert len(row.refused) <= 50
        report()
        assert not UpstreamState.objects.exists()
