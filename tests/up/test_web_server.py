"""The web server among slow clients: each costs a connection, and its time is limited."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.harness.instance import NOT_RUNNING, ROOT, Instance, processes_of, running_instance, wait_for
from tests.harness.prepared import prepared
from tests.harness.rest import RestClient
from tests.harness.workers import find_free_port
from toolsearch_site.edge import granian_server

TIMEOUT_SECONDS = 5
SLOW_CLIENTS = 200
POLLS = 30
UPLOAD_BYTES = 1024 * 1024
Sockets = list[socket.socket]


@pytest.fixture(scope="module")
def instance(shared_instance: Instance) -> Instance:
    assert int(shared_instance.environment["TOOLSEARCH_CLIENT_TIMEOUT"]) == TIMEOUT_SECONDS
    return shared_instance


@pytest.fixture(scope="module")
def agent(instance: Instance) -> RestClient:
    return RestClient(instance.port, instance.manage("create_key", "agent").stdout.strip())


@pytest.fixture
def connect(instance: Instance) -> Iterator[Callable[..., socket.socket]]:
    """Makes connections that end with the test."""
    with ExitStack() as opened:

        def begin(sent: bytes, *, receives_bytes: int = 0) -> socket.socket:
            made = opened.enter_context(closing(socket.socket()))
            if receives_bytes:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives_bytes)
            made.settimeout(30)
            made.connect(("127.0.0.1", instance.port))
            made.sendall(sent)
            return made

        yield begin


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", "")).encode()


def read_to_end(connection: socket.socket) -> bytes:
    """All that comes, also where the other side ends it roughly."""
    received = bytearray()
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return bytes(received)


def bodies(instance: Instance, agent: RestClient) -> list[bytes]:
    """Beginnings of requests whose bodies will not come: without an account, and with a key."""
    with urllib.request.urlopen(f"{instance.url}/sign-in/") as page:
        cookie = re.search(r"csrftoken=\w+", page.headers["Set-Cookie"])
    assert cookie
    length, form = "Content-Length: 1000", "Content-Type: application/x-www-form-urlencoded"
    key, as_json = f"Authorization: Bearer {agent.key}", "Content-Type: application/json"
    return [
        head("POST", "/sign-in/", length, form, f"Cookie: {cookie[0]}"),
        head("POST", "/static/nothing.css", length, form),
        head("POST", "/nowhere/", length, form),
        head("POST", "/api/v1/sessions", length, as_json, key),
        head("PUT", "/api/v1/sessions", length, as_json),
    ]


def poll_while(agent: RestClient, instance: Instance, between: Callable[[], None]) -> None:
    """What everybody else does all day. Each call would fail where no thread is left for it."""
    session = agent.post("/sessions", {}, status=201)["id"]
    tag = agent.call("GET", f"/sessions/{session}/tools").headers["ETag"]
    for _ in range(POLLS):
        assert agent.call("GET", f"/sessions/{session}/tools", If_None_Match=tag).status == 304
        with urllib.request.urlopen(f"{instance.url}/healthz", timeout=20) as alive:
            assert alive.status == 200
        agent.post(f"/sessions/{session}/turns", {})
        between()


class TestBody:
    def test_that_comes_in_chunks_is_told_to_give_its_length(
        self, instance: Instance, agent: RestClient, connect: Callable[..., socket.socket]
    ) -> None:
        lines = ("Transfer-Encoding: chunked", "Content-Type: application/json", "Connection: close")
        begun = head("POST", "/api/v1/sessions", *lines, f"Authorization: Bearer {agent.key}")
        answer = read_to_end(connect(begun + b"2\r\n{}\r\n0\r\n\r\n"))
        first, _, rest = answer.partition(b"\r\n")
        assert b" 411 " in first + b" "
        assert b"application/problem+json" in rest.lower()
        assert json.loads(rest.partition(b"\r\n\r\n")[2])["status"] == 411
        agent.post("/sessions", {}, status=201)

    def test_that_never_comes_holds_up_nobody_and_is_given_up(
        self, instance: Instance, agent: RestClient, connect: Callable[..., socket.socket]
    ) -> None:
        begun = bodies(instance, agent)
        slow = [connect(begun[number % len(begun)] + b"a") for number in range(SLOW_CLIENTS)]
        poll_while(agent, instance, lambda: None)
        for connection in slow:
            assert read_to_end(connection).startswith(b"HTTP/1.1 408 ")

    @pytest.mark.slow
    def test_that_comes_byte_by_byte_is_given_up_too(
        self, instance: Instance, agent: RestClient, connect: Callable[..., socket.socket]
    ) -> None:
        slow = [connect(begun + b"a") for begun in bodies(instance, agent)]
        for connection in slow:
            connection.settimeout(0.2)
        answers: dict[int, bytes] = {}

        def send_and_look() -> bool:
            for number, connection in enumerate(slow):
                if number not in answers:
                    try:
                        connection.sendall(b"a")
                        answers[number] = connection.recv(65536)
                    except TimeoutError:
                        pass
                    except OSError:
                        answers[number] = b""
            return len(answers) == len(slow)

        wait_for(send_and_look, within_seconds=60, about=instance)
        for answer in answers.values():
            assert not answer or b" 408 " in answer

    def test_of_an_api_call_is_given_up_with_a_problem(
        self, agent: RestClient, connect: Callable[..., socket.socket]
    ) -> None:
        lines = (f"Authorization: Bearer {agent.key}", "Content-Length: 100")
        answer = read_to_end(connect(head("POST", "/api/v1/sessions", *lines)))
        above, _, content = answer.partition(b"\r\n\r\n")
        assert b"application/problem+json" in above
        assert b"connection: close" in above.lower()
        assert b"x-request-id: " in above.lower()
        assert json.loads(content)["status"] == 408

    def test_that_comes_slowly_and_in_time_is_read(
        self, agent: RestClient, connect: Callable[..., socket.socket]
    ) -> None:
        body = b"{}".ljust(UPLOAD_BYTES)
        lines = (f"Authorization: Bearer {agent.key}", f"Content-Length: {len(body)}", "Connection: close")
        connection = connect(head("POST", "/api/v1/sessions", *lines))
        for number in range(20):
            connection.sendall(body[number * len(body) // 20 : (number + 1) * len(body) // 20])
            time.sleep(TIMEOUT_SECONDS / 2 / 20)
        assert read_to_end(connection).startswith(b"HTTP/1.1 201 ")

    @pytest.mark.parametrize("path", ["/healthz", "/sign-in/", "/static/nothing.css", "/nowhere/"])
    def test_that_nobody_reads_is_not_waited_for(
        self, connect: Callable[..., socket.socket], path: str
    ) -> None:
        connection = connect(head("GET", path, "Content-Length: 1000"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 ")


class TestAnswer:
    @pytest.fixture
    def largest(self, instance: Instance) -> tuple[str, int]:
        """The address and the size of the largest file that anybody may ask for."""
        root = Path(instance.environment["TOOLSEARCH_DATA"], "static")
        found = max((one for one in root.rglob("*") if one.is_file()), key=lambda one: one.stat().st_size)
        return f"/static/{found.relative_to(root)}", found.stat().st_size

    @pytest.mark.slow
    def test_that_nobody_reads_is_thrown_away(
        self,
        instance: Instance,
        agent: RestClient,
        connect: Callable[..., socket.socket],
        largest: tuple[str, int],
    ) -> None:
        path, size = largest
        asked = [connect(head("GET", path), receives_bytes=4096) for _ in range(SLOW_CLIENTS)]
        began = time.monotonic()
        poll_while(agent, instance, lambda: None)
        time.sleep(max(0.0, began + 2 * TIMEOUT_SECONDS + 4 - time.monotonic()))
        assert all(len(read_to_end(connection)) < size for connection in asked)

    @pytest.mark.slow
    def test_that_is_read_slowly_arrives_whole(
        self, connect: Callable[..., socket.socket], largest: tuple[str, int]
    ) -> None:
        path, size = largest
        connection = connect(head("GET", path, "Connection: close"), receives_bytes=4096)
        received, pause = bytearray(), 3 * TIMEOUT_SECONDS / (size / 8192)
        while piece := connection.recv(8192):
            received += piece
            time.sleep(pause)
        assert len(received.partition(b"\r\n\r\n")[2]) == size


class TestClientsThatLeave:
    """While the work that they asked for goes on, or waits."""

    RUN = (
        "from toolsearch_site.edge import granian_server as server;"
        "server.APPLICATION = 'tests.up.stuck_site:application'; server.main()"
    )

    @pytest.fixture
    def port(self, tmp_path: Path) -> Iterator[int]:
        port = find_free_port()
        options = ("--host", "127.0.0.1", "--port", str(port), "--processes", "1")
        process = subprocess.Popen(
            [sys.executable, "-c", self.RUN, *options],
            cwd=ROOT,
            env={**os.environ, "TOOLSEARCH_DATA": str(tmp_path)},
            start_new_session=True,
        )
        try:
            wait_for(lambda: self.ask(port, "/healthz").startswith(b"HTTP/1.1 200 "), within_seconds=60)
            yield port
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def ask(self, port: int, path: str) -> bytes:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(head("GET", path, "Connection: close"))
                return read_to_end(connection)
        except ConnectionRefusedError:
            return b""

    def test_hold_threads_for_nobody_else(self, port: int) -> None:
        slow_bodies = granian_server.CONNECTIONS - 100
        with ExitStack() as opened:
            for _ in range(slow_bodies):
                slow = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
                slow.sendall(head("POST", "/", "Content-Length: 10"))
            for _ in range(2 * granian_server.WAITING_REQUESTS):
                with socket.create_connection(("127.0.0.1", port)) as leaving:
                    leaving.sendall(head("GET", "/"))
                    time.sleep(0.002)  # or it is gone before it is read
            wait_for(lambda: self.ask(port, "/").startswith(b"HTTP/1.1 503 "), within_seconds=60)
            assert b"retry-after: 2" in self.ask(port, "/").lower()
            assert self.ask(port, "/healthz").endswith(b"ok\n")


@pytest.mark.slow
def test_killed_web_server_and_supervisor_leave_no_process(tmp_path: Path) -> None:
    with running_instance(prepared(tmp_path), "--no-demo") as instance:
        instance.wait_until_healthy()
        server = instance.pid_of("web")
        assert server != NOT_RUNNING  # a signal to -1 would reach everything
        os.kill(instance.process.pid, signal.SIGSTOP)  # or it would see the server's end and clear up
        os.kill(server, signal.SIGKILL)
        instance.process.kill()
        wait_for(lambda: not processes_of(tmp_path), within_seconds=15)
