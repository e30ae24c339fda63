"""`manage.py up` from outside: it starts, serves, heals and stops."""

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.instance import (
    NOT_RUNNING,
    Instance,
    children_of,
    command_of,
    processes_of,
    running_instance,
    wait_for,
)
from tests.harness.prepared import prepared

HESITANT_SERVER = Path(__file__).with_name("hesitant_server.py")
ADD_HESITANT_SERVER = """
from catalog.models import Server
from catalog.domain.connection import Connection
from catalog.services import connections, refresh
server = Server.objects.create(name="hesitant", transport="stdio", command={python!r})
address = Connection(transport="stdio", command={python!r}, args=({script!r}, {marker!r}))
connections.write_connection(server, address)
server.save()
refresh.request_refresh(server=server)
"""
# One process that looks again and again: a start costs more than all its looks.
SHOW_HESITANT_SERVER_WHEN_DONE = """
import time
from catalog.models import Job, RefreshRun, Server, Tool
jobs = Job.objects.filter(kind="refresh_server", subject=Server.objects.get(name="hesitant").pk)
deadline = time.monotonic() + 90
while not jobs.filter(state="done").exists() and time.monotonic() < deadline:
    time.sleep(0.2)
tools = Tool.objects.filter(server__name="hesitant")
print(*jobs.values_list("state", "attempts"), *tools.values_list("name"),
      RefreshRun.objects.filter(server__name="hesitant").count())
"""


class TestStart:
    @pytest.mark.slow
    def test_first_start_leaves_no_trace_and_the_second_finds_its_data(self, tmp_path: Path) -> None:
        with running_instance(tmp_path) as first:
            first.wait_until_healthy()
            # The demo's own decisions are a worker's, and may still be under way.
            wait_for(lambda: set(states(first.health())) == {"ok"}, within_seconds=60, about=first)
            wait_for(lambda: f"ready at {first.url}" in first.output, within_seconds=10, about=first)
            assert len(first.password) >= 12
            assert first.output.count(first.password) == 1
            assert re.search(r"\bfirst sign-in: user \S+, password \S+$", first.output, re.MULTILINE)
            assert first.manage("import_tools", "extra", str(_one_tool(tmp_path))).returncode == 0
            started = time.monotonic()
            assert first.stop(signal.SIGINT) == 0
            assert time.monotonic() - started < 10
            assert processes_of(tmp_path) == []
            assert "Traceback" not in first.output
            second = Instance(environment=first.environment)
            try:
                second.wait_until_healthy()
                assert _count_servers(second) == 13
            finally:
                second.stop()
        assert "password" not in second.output
        assert "demo" not in second.output

    @pytest.mark.slow
    def test_host_by_name_other_allowed_hosts_and_no_demo(self, tmp_path: Path) -> None:
        with running_instance(
            prepared(tmp_path), "--host", "localhost", "--no-demo", ALLOWED_HOSTS="example.com"
        ) as instance:
            wait_for(lambda: "ready at http://" in instance.output, within_seconds=40, about=instance)
            assert _count_servers(instance) == 0
        assert "Traceback" not in instance.output

    def test_taken_port_is_refused_in_one_line(self, tmp_path: Path) -> None:
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            with running_instance(tmp_path, "--port", str(port)) as instance:
                assert instance.process.wait(timeout=30) == 1
                instance.stop()
        assert (
            instance.output == f"CommandError: cannot listen on 127.0.0.1 port {port}: Address already in use"
        )

    def test_database_that_is_away_is_said_in_one_line(self, tmp_path: Path) -> None:
        variables = {
            "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
            "SECRET_KEY": "long and random " * 3,
        }
        with running_instance(tmp_path, **variables) as instance:
            assert instance.process.wait(timeout=60) == 1
            instance.stop()
        assert instance.output.startswith("CommandError: the database cannot be reached")
        assert "Traceback" not in instance.output


@pytest.fixture(scope="class")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with running_instance(prepared(tmp_path_factory.mktemp("data"))) as running:
        running.wait_until_healthy()
        yield running


@pytest.mark.slow
class TestKill:
    @pytest.mark.parametrize("part", ["web", "worker", "refresher", "scheduler"])
    def test_killed_part_comes_back(self, instance: Instance, part: str) -> None:
        before = kill(instance, part)
        wait_for(
            lambda: instance.pid_of(part) not in {NOT_RUNNING, before}, within_seconds=15, about=instance
        )
        wait_for(lambda: re.search(rf"{part} ended with signal SIGKILL", instance.output), within_seconds=5)
        instance.wait_until_healthy()

    def test_job_whose_worker_was_killed_is_done_afterwards(self, instance: Instance, tmp_path: Path) -> None:
        marker = tmp_path / "started"
        script = ADD_HESITANT_SERVER.format(
            python=sys.executable, script=str(HESITANT_SERVER), marker=str(marker)
        )
        assert instance.manage("shell", "-c", script).returncode == 0
        wait_for(marker.exists, within_seconds=30, about=instance)
        kill(instance, "refresher")
        assert _show_hesitant_when_done(instance) == "('done', 2) ('wave',) 1"

    def test_killed_supervisor_takes_its_parts_along(self, instance: Instance) -> None:
        """The last of the class: it ends the instance."""
        parts = {pid: command_of(pid) for pid in children_of(instance.process.pid)}
        follows = "DATABASE_URL" in instance.environment  # beside a database server, one part more
        assert len(parts) == 4 + follows
        instance.process.kill()
        data = Path(instance.environment["TOOLSEARCH_DATA"])
        wait_for(lambda: not processes_of(data), within_seconds=10)


def kill(instance: Instance, part: str) -> int:
    pid = instance.pid_of(part)
    assert pid != NOT_RUNNING  # a signal to -1 would reach everything
    os.kill(pid, signal.SIGKILL)
    return pid


def _count_servers(instance: Instance) -> int:
    count = "from catalog.models import Server; print(Server.objects.count())"
    return int(instance.manage("shell", "-c", count).stdout.split()[-1])


def _show_hesitant_when_done(instance: Instance) -> str:
    return instance.manage("shell", "-c", SHOW_HESITANT_SERVER_WHEN_DONE).stdout.strip().splitlines()[-1]


def _one_tool(folder: Path) -> Path:
    path = folder / "tools.json"
    path.write_text('[{"name": "only", "inputSchema": {"type": "object"}}]')
    return path


def states(health: dict[str, Any]) -> Iterator[str]:
    return (value for value in health.values() if isinstance(value, str))
