"""The gateway as a program of `manage.py up`: it is announced, restarted, and stops with open streams."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.harness.instance import (
    NOT_RUNNING,
    ROOT,
    Instance,
    children_of,
    command_of,
    processes_of,
    running_gateway,
    running_instance,
    wait_for,
)
from tests.harness.prepared import prepared
from tests.harness.workers import find_free_port
from toolsearch_site.cluster import supervisor

OPEN_STREAMS = 50
HALF_A_REQUEST = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{"


def announcement(instance: Instance) -> str:
    return f"up       | MCP gateway at {instance.gateway_url}/mcp"


class TestStart:
    @pytest.mark.slow
    def test_is_announced_once_it_answers_and_stops_with_connections_open(self, tmp_path: Path) -> None:
        with (
            running_gateway(prepared(tmp_path), "--no-demo") as instance,
            ExitStack() as opened,
        ):
            wait_for(lambda: announcement(instance) in instance.lines, within_seconds=90, about=instance)
            assert f"up       | toolsearch is ready at {instance.url}" in instance.lines
            assert instance.is_gateway_alive()
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", instance.gateway_port)))
            connection.sendall(HALF_A_REQUEST)
            started = time.monotonic()
            assert instance.stop() == 0
            assert time.monotonic() - started < 10
            assert processes_of(tmp_path) == []
        assert "Traceback" not in instance.output

    @pytest.mark.slow
    def test_left_out_needs_no_port(self, tmp_path: Path, taken_port: int) -> None:
        options = ("--no-demo", "--gateway-port", str(taken_port))
        with running_instance(prepared(tmp_path), *options) as instance:
            wait_for(lambda: "ready at" in instance.output, within_seconds=90, about=instance)
            assert instance.pid_of("gateway") == NOT_RUNNING
            instance.stop()
        assert "MCP gateway" not in instance.output

    def test_taken_port_is_refused_in_one_line(self, tmp_path: Path, taken_port: int) -> None:
        with running_gateway(tmp_path, "--gateway-port", str(taken_port)) as instance:
            assert instance.process.wait(timeout=30) == 1
            instance.stop()
        assert instance.output == (
            f"CommandError: MCP gateway: cannot listen on 127.0.0.1 port {taken_port}:"
            " Address already in use; TOOLSEARCH_GATEWAY_PORT sets its port"
        )


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.fixture(scope="class")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = prepared(tmp_path_factory.mktemp("data"))
    with running_gateway(folder, "--no-demo") as running:
        wait_for(lambda: announcement(running) in running.lines, within_seconds=90, about=running)
        yield running


@pytest.mark.slow
class TestKill:
    def test_killed_worker_is_replaced_by_its_server(self, instance: Instance) -> None:
        server = instance.pid_of("gateway")
        worker = kill(only_child(server))
        wait_for(lambda: children_of(server) not in ([], [worker]), within_seconds=30, about=instance)
        wait_for(instance.is_gateway_alive, within_seconds=30, about=instance)
        assert instance.pid_of("gateway") == server

    def test_killed_server_takes_its_worker_along_and_is_started_again(self, instance: Instance) -> None:
        server = instance.pid_of("gateway")
        worker = only_child(server)
        kill(server)
        wait_for(
            lambda: instance.pid_of("gateway") not in {NOT_RUNNING, server}, within_seconds=15, about=instance
        )
        assert command_of(worker) == ""
        wait_for(instance.is_gateway_alive, within_seconds=30, about=instance)
        wait_for(lambda: re.search(r"gateway ended with signal SIGKILL", instance.output), within_seconds=5)

    def test_killed_server_and_supervisor_leave_no_process(self, instance: Instance) -> None:
        """The last of the class: it ends the instance."""
        server = instance.pid_of("gateway")
        os.kill(instance.process.pid, signal.SIGSTOP)  # or it would see the server's end and clear up
        kill(server)
        instance.process.kill()
        data = Path(instance.environment["TOOLSEARCH_DATA"])
        wait_for(lambda: not processes_of(data), within_seconds=15)


def only_child(pid: int) -> int:
    assert pid != NOT_RUNNING
    [child] = children_of(pid)
    return child


def kill(pid: int) -> int:
    assert pid != NOT_RUNNING  # a signal to -1 would reach everything
    os.kill(pid, signal.SIGKILL)
    return pid


class TestOpenStreams:
    """Granian itself waits for a stream to end, however long that takes."""

    RUN = (
        "from toolsearch_site.edge import gateway_server as server;"
        "server.APPLICATION = 'tests.up.streaming_gateway:application'; server.main()"
    )

    @pytest.fixture
    def process(self) -> Iterator["subprocess.Popen[bytes]"]:
        port = find_free_port()
        options = ("--host", "127.0.0.1", "--port", str(port), "--processes", "2")
        process = subprocess.Popen(
            [sys.executable, "-c", self.RUN, *options], cwd=ROOT, start_new_session=True
        )
        try:
            with ExitStack() as opened:
                wait_for(lambda: is_listening(port), within_seconds=60)
                for _ in range(OPEN_STREAMS):
                    stream = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
                    stream.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                    assert stream.recv(1)
                yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def test_do_not_keep_it_from_stopping_before_the_supervisor_kills(
        self, process: "subprocess.Popen[bytes]"
    ) -> None:
        workers = children_of(process.pid)
        assert len(workers) == 2
        process.terminate()
        assert process.wait(timeout=supervisor.STOP_WITHIN_SECONDS) == 0
        assert [command_of(worker) for worker in workers] == ["", ""]


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
