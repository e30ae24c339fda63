"""The programs of a node follow from its roles and from what is shared."""

import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from catalog.services import refresh
from toolsearch_site.cluster import preflight, programs, supervisor
from toolsearch_site.cluster.programs import Listening, NodeRole, programs_of
from toolsearch_site.cluster.supervisor import Program
from toolsearch_site.edge import gateway_server, granian_server
from toolsearch_site.management.commands import run_node, up

HERE = Listening("127.0.0.1", port=8000, gateway_port=8001)


def labels(*roles: NodeRole) -> list[str]:
    return [program.label for program in programs_of(roles, listening=HERE)]


@override_settings(NODES_KEEP_OWN_INDEX=False, EMBEDDED=True)
def test_one_machine_has_every_part_and_no_follower() -> None:
    assert labels(*NodeRole) == ["web", "gateway", "worker", "refresher", "scheduler"]


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (NodeRole.WEB, ["web", "follower"]),
        (NodeRole.GATEWAY, ["gateway", "follower"]),
        (NodeRole.WORKER, ["worker", "refresher", "follower"]),
        (NodeRole.SCHEDULER, ["scheduler"]),
    ],
)
def test_node_of_several_keeps_its_own_index_where_something_searches(
    role: NodeRole, expected: list[str]
) -> None:
    assert labels(role) == expected


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
@pytest.mark.parametrize("role", [NodeRole.WEB, NodeRole.GATEWAY])
def test_index_is_followed_at_once_where_agents_search(role: NodeRole) -> None:
    [_, follower] = programs_of([role], listening=HERE)
    assert "--every" not in follower.argv


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False, NODE="worker-1")
def test_time_limits_hold_where_celery_can_end_a_task() -> None:
    """Threads cannot be ended; refreshes, which have limits of their own, may run in them."""
    [worker, refresher, follower] = programs_of([NodeRole.WORKER], listening=HERE)
    assert "prefork" in worker.argv
    assert "celery@worker-1" in worker.argv
    assert "threads" in refresher.argv
    assert "--every" in follower.argv


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
def test_each_thread_that_asks_the_database_has_a_connection() -> None:
    found = {program.label: program.connections for program in programs_of(tuple(NodeRole), listening=HERE)}
    assert found == {"web": 7, "gateway": 6, "worker": 2, "refresher": 10, "scheduler": 2, "follower": 2}


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
def test_two_nodes_of_each_kind_fit_into_what_postgresql_allows_by_itself() -> None:
    """Its default is a hundred, three of them for its superuser. A web server has two processes that ask, a
    worker three, and a node's supervisor asks now and then.
    """
    processes = {"web": 2, "worker": 3}
    needed = sum(
        program.connections * processes.get(program.label, 1)
        for role in NodeRole
        for program in programs_of([role], listening=HERE)
    )
    assert 2 * (needed + len(NodeRole)) < 97


def test_threads_are_left_for_servers_that_answer() -> None:
    assert refresh.MOST_TIMED_OUT_AT_ONCE <= programs.REFRESH_THREADS / 2
    assert refresh.MOST_UNREACHED_AT_ONCE < programs.REFRESH_THREADS


class TestGatewayPort:
    """The web server's and one, unless it was given, and told to the programs that are started."""

    @pytest.fixture(autouse=True)
    def every_port_is_free(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOOLSEARCH_GATEWAY_PORT", "1")
        monkeypatch.setattr(preflight, "find_address", lambda host, _port: host)

    @pytest.mark.parametrize(("given", "expected"), [(None, 8124), (9000, 9000)])
    def test_is_beside_the_web_server_s(self, given: int | None, expected: int) -> None:
        found = preflight.find_listening(
            [NodeRole.WEB, NodeRole.GATEWAY], host="127.0.0.1", port=8123, gateway_port=given
        )
        assert found == Listening("127.0.0.1", 8123, expected)
        assert os.environ["TOOLSEARCH_GATEWAY_PORT"] == str(expected)

    def test_is_not_the_web_server_s_own(self) -> None:
        roles = [NodeRole.WEB, NodeRole.GATEWAY]
        with pytest.raises(CommandError, match=r"8123 is the web server's; TOOLSEARCH_GATEWAY_PORT "):
            preflight.find_listening(roles, host="127.0.0.1", port=8123, gateway_port=8123)

    def test_is_nobody_s_where_no_gateway_runs(self) -> None:
        found = preflight.find_listening([NodeRole.WEB], host="::1", port=65535, gateway_port=None)
        assert (found.host, found.port) == ("::1", 65535)
        assert os.environ["TOOLSEARCH_GATEWAY_PORT"] == "1"


def test_port_past_the_last_is_refused_in_words() -> None:
    with pytest.raises(CommandError, match=r"^MCP gateway: .* port 65536: ports are numbers.*GATEWAY_PORT"):
        preflight.find_listening([NodeRole.GATEWAY], host="127.0.0.1", port=65535, gateway_port=None)


class TestServers:
    """One program with one set of limits, whichever command starts it."""

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
        """The servers of the commands that were run, none of which was started."""
        found: list[Program] = []

        class Supervisor:
            stopping = None

            def __init__(self, programs: Sequence[Program], **_: object) -> None:
                found.extend(program for program in programs if program.label in {"web", "gateway"})

            def run(self) -> None:
                """Nothing."""

        def skip(*_: object, **__: object) -> None:
            """Nothing."""

        monkeypatch.setenv("TOOLSEARCH_TLS", "off")
        monkeypatch.setenv("TOOLSEARCH_GATEWAY_PORT", "1")
        monkeypatch.setattr(preflight, "find_address", lambda host, _port: host)
        signals = SimpleNamespace(SIGINT=signal.SIGINT, SIGTERM=signal.SIGTERM, signal=skip)
        command: ModuleType
        for command in (up, run_node):
            monkeypatch.setattr(command, "Supervisor", Supervisor)
            monkeypatch.setattr(command, "signal", signals)
            monkeypatch.setattr(command, "connections", SimpleNamespace(close_all=skip))
            monkeypatch.setattr(command, "heartbeat", SimpleNamespace(run=skip))
            monkeypatch.setattr(command, "disable_pool", skip)
            monkeypatch.setattr(command.Command, "_prepare", skip)
        monkeypatch.setattr(up.Command, "_announce", skip)
        monkeypatch.setattr(up, "accounts", SimpleNamespace(create_first_admin=skip))
        monkeypatch.setattr(run_node, "require_database", skip)
        monkeypatch.setattr(run_node, "require_migrated", skip)
        return found

    @pytest.fixture
    def served(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        """What granian was told, each time that it was started."""
        found: list[dict[str, Any]] = []

        class Server:
            def __init__(self, application: str, **options: Any) -> None:
                found.append({"application": application, **options})

            def serve(self) -> None:
                """Nothing."""

        monkeypatch.setattr(granian_server, "Server", Server)
        for server in (granian_server, gateway_server):
            monkeypatch.setattr(server, "raise_file_limit", lambda _files: None)
        return found

    @pytest.fixture
    def told(
        self, started: list[Program], served: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> dict[str, dict[str, Any]]:
        """What granian was told for each server, the same for one machine and for a node."""
        call_command("up", port=8123)
        with override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False):
            call_command("run_node", "web", port=8123)
            call_command("run_node", "gateway", port=8123)
        web, gateway, *of_nodes = started
        assert [web, gateway] == of_nodes
        for program, server in ((web, granian_server), (gateway, gateway_server)):
            *runner, name = program.argv[: len(programs.WEB_SERVER)]
            assert (tuple(runner), name) == (programs.UNDUMPABLE, server.__name__)
            monkeypatch.setattr(sys, "argv", [name, *program.argv[len(programs.WEB_SERVER) :]])
            server.main()
        return {one["application"]: one for one in served}

    def test_web_server_has_a_thread_for_each_connection(self, told: dict[str, dict[str, Any]]) -> None:
        web = told[granian_server.APPLICATION]
        connections = granian_server.count_connections()
        assert (web["port"], web["workers"], web["interface"]) == (8123, 2, "wsgi")
        assert web["backpressure"] == connections
        assert web["blocking_threads"] == granian_server.count_threads(connections) > connections

    def test_gateway_keeps_streams_in_one_process_and_none_keeps_it_from_stopping(
        self, told: dict[str, dict[str, Any]]
    ) -> None:
        gateway = told[gateway_server.APPLICATION]
        assert (gateway["port"], gateway["workers"], gateway["interface"]) == (8124, 1, "asgi")
        assert granian_server.CONNECTIONS < gateway["backpressure"] <= gateway_server.STREAMS
        assert gateway["workers_kill_timeout"] < supervisor.STOP_WITHIN_SECONDS

    def test_both_limit_headers_and_replace_a_process_that_died(
        self, told: dict[str, dict[str, Any]]
    ) -> None:
        for one in told.values():
            assert one["http1_settings"].header_read_timeout == 30_000
            assert one["http1_settings"].max_buffer_size == 64 * 1024
            assert (one["http"], one["websockets"], one["respawn_failed_workers"]) == ("1", False, True)

    def test_gateway_may_be_left_out(self, started: list[Program]) -> None:
        call_command("up", port=8123, no_gateway=True)
        assert [program.label for program in started] == ["web"]

    def test_number_of_processes_is_for_the_servers_of_a_node(self, started: list[Program]) -> None:
        with override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False):
            call_command("run_node", "gateway", gateway_port=9000, processes=3)
        assert started[0].argv[-4:] == ("--port", "9000", "--processes", "3")


def test_streams_are_fewer_where_few_files_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granian_server.resource, "getrlimit", lambda _: (1024, 1024))
    files = gateway_server.FILES_A_STREAM
    assert granian_server.count_connections(gateway_server.STREAMS, files_each=files) == 1024 // files
