"""The programs of a node follow from its roles and from what is shared."""

import signal
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings

from catalog.services import refresh
from toolsearch_site.cluster import programs
from toolsearch_site.cluster.programs import NodeRole, programs_of
from toolsearch_site.cluster.supervisor import Program
from toolsearch_site.edge import granian_server
from toolsearch_site.management.commands import run_node, up


def labels(*roles: NodeRole) -> list[str]:
    return [program.label for program in programs_of(roles, host="127.0.0.1", port=8000)]


@override_settings(NODES_KEEP_OWN_INDEX=False, EMBEDDED=True)
def test_one_machine_has_every_part_and_no_follower() -> None:
    assert labels(*NodeRole) == ["web", "worker", "refresher", "scheduler"]


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (NodeRole.WEB, ["web", "follower"]),
        (NodeRole.WORKER, ["worker", "refresher", "follower"]),
        (NodeRole.SCHEDULER, ["scheduler"]),
    ],
)
def test_node_of_several_keeps_its_own_index_where_something_searches(
    role: NodeRole, expected: list[str]
) -> None:
    assert labels(role) == expected


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False, NODE="worker-1")
def test_time_limits_hold_where_celery_can_end_a_task() -> None:
    """Threads cannot be ended; refreshes, which have limits of their own, may run in them."""
    [worker, refresher, follower] = programs_of([NodeRole.WORKER], host="127.0.0.1", port=8000)
    assert "prefork" in worker.argv
    assert "celery@worker-1" in worker.argv
    assert "threads" in refresher.argv
    assert "--every" in follower.argv


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
def test_each_thread_that_asks_the_database_has_a_connection() -> None:
    found = {
        program.label: program.connections
        for program in programs_of(tuple(NodeRole), host="127.0.0.1", port=8000)
    }
    assert found == {"web": 7, "worker": 2, "refresher": 10, "scheduler": 2, "follower": 2}


@override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False)
def test_two_nodes_of_each_kind_fit_into_what_postgresql_allows_by_itself() -> None:
    """Its default is a hundred, three of them for its superuser. A web server has two processes that ask, a
    worker three, and a node's supervisor asks now and then.
    """
    processes = {"web": 2, "worker": 3}
    needed = sum(
        program.connections * processes.get(program.label, 1)
        for role in NodeRole
        for program in programs_of([role], host="127.0.0.1", port=8000)
    )
    assert 2 * (needed + len(NodeRole)) < 97


def test_threads_are_left_for_servers_that_answer() -> None:
    assert refresh.MOST_TIMED_OUT_AT_ONCE <= programs.REFRESH_THREADS / 2
    assert refresh.MOST_UNREACHED_AT_ONCE < programs.REFRESH_THREADS


class TestWebServer:
    """One program with one set of limits, whichever command starts it."""

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
        """The web parts of the commands that were run, none of which was started."""
        found: list[Program] = []

        class Supervisor:
            stopping = None

            def __init__(self, programs: Sequence[Program], **_: object) -> None:
                found.extend(program for program in programs if program.label == "web")

            def run(self) -> None:
                """Nothing."""

        def skip(*_: object, **__: object) -> None:
            """Nothing."""

        monkeypatch.setenv("TOOLSEARCH_TLS", "off")
        signals = SimpleNamespace(SIGINT=signal.SIGINT, SIGTERM=signal.SIGTERM, signal=skip)
        command: ModuleType
        for command in (up, run_node):
            monkeypatch.setattr(command, "Supervisor", Supervisor)
            monkeypatch.setattr(command, "signal", signals)
            monkeypatch.setattr(command, "connections", SimpleNamespace(close_all=skip))
            monkeypatch.setattr(command, "heartbeat", SimpleNamespace(run=skip))
            monkeypatch.setattr(command, "find_address", lambda host, _port: host)
            monkeypatch.setattr(command, "disable_pool", skip)
            monkeypatch.setattr(command.Command, "_prepare", skip)
        monkeypatch.setattr(up.Command, "_announce", skip)
        monkeypatch.setattr(up, "accounts", SimpleNamespace(create_first_admin=skip))
        monkeypatch.setattr(run_node, "require_database", skip)
        monkeypatch.setattr(run_node, "require_migrated", skip)
        return found

    @pytest.fixture
    def served(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        """What the web server was told, each time that it was started."""
        found: list[dict[str, Any]] = []

        class Server:
            def __init__(self, application: str, **options: Any) -> None:
                found.append({"application": application, **options})

            def serve(self) -> None:
                """Nothing."""

        monkeypatch.setattr(granian_server, "Server", Server)
        monkeypatch.setattr(granian_server, "_raise_file_limit", lambda: None)
        return found

    def test_is_the_same_for_one_machine_and_for_a_node(
        self, started: list[Program], served: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        call_command("up", port=8123)
        with override_settings(NODES_KEEP_OWN_INDEX=True, EMBEDDED=False):
            call_command("run_node", "web", port=8123)
        assert len(started) == 2
        assert started[0] == started[1]
        for program in started:
            *runner, name = program.argv[: len(programs.WEB_SERVER)]
            assert (tuple(runner), name) == (programs.UNDUMPABLE, granian_server.__name__)
            monkeypatch.setattr(sys, "argv", [name, *program.argv[len(programs.WEB_SERVER) :]])
            granian_server.main()
        told, again = ({**one, "http1_settings": vars_of(one["http1_settings"])} for one in served)
        assert told == again
        connections = granian_server.count_connections()
        assert told["application"] == granian_server.APPLICATION
        assert told["backpressure"] == connections
        assert told["blocking_threads"] == granian_server.count_threads(connections) > connections
        assert told["http1_settings"]["header_read_timeout"] == 30_000
        assert told["http1_settings"]["max_buffer_size"] == 64 * 1024


def vars_of(settings: object) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ("header_read_timeout", "max_buffer_size")}
