"""Which connections are too slow, by the bytes that the kernel counts."""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from toolsearch_site.edge.connection_watch import GRACE_SECONDS, SLOWEST_READER_BYTES_A_SECOND, Watch

PATIENCE = 30.0
TRY_LOCK = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"

START_WITH_FEW_FILES = """
import resource
from toolsearch_site.edge import connection_watch

resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
connection_watch.start = lambda *, many, **_: print(many)
from toolsearch_site.edge import web_process
"""


@dataclass
class Clients:
    work_began_at: tuple[float, ...] = ()
    is_exhausted: bool = False


@dataclass
class Scene:
    """A client, the server's end of its connection, and the watch over it."""

    client: socket.socket
    server: socket.socket
    clients: Clients
    watch: Watch
    now: float = 1000.0

    def look_for(self, seconds: int, *, each_second: bytes = b"") -> None:
        for _ in range(seconds):
            if each_second:
                self.client.sendall(each_second)
                self.server.recv(65536)
            self.watch.look(self.now)
            self.now += 1.0

    def is_read_on(self) -> bool:
        """Whether the server still waits for more of the request."""
        try:
            return self.server.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True


@pytest.fixture
def scene() -> Iterator[Scene]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with closing(socket.socket()) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(listener.getsockname())
            server, _ = listener.accept()
            with server:
                clients = Clients()
                yield Scene(
                    client, server, clients, Watch(patience_seconds=PATIENCE, many=100, clients=clients)
                )


class TestRequest:
    def test_that_stops_coming_is_given_up(self, scene: Scene) -> None:
        scene.client.sendall(b"POST")
        scene.server.recv(100)
        scene.look_for(29)
        assert scene.is_read_on()
        scene.look_for(3)
        assert not scene.is_read_on()
        scene.server.sendall(b"too slow")  # which can still be told
        assert scene.client.recv(100) == b"too slow"

    def test_that_comes_byte_by_byte_is_given_up_whatever_else_is_worked_on(self, scene: Scene) -> None:
        scene.clients.work_began_at = tuple(range(900, 1100))
        scene.look_for(29, each_second=b"x")
        assert scene.is_read_on()
        scene.look_for(2, each_second=b"x")
        assert not scene.is_read_on()

    @pytest.mark.parametrize("upload_seconds", [1, 3, 8, 25, 29])
    def test_that_is_being_worked_on_is_waited_for(self, scene: Scene, upload_seconds: int) -> None:
        """However long its upload took: it was in time."""
        scene.look_for(upload_seconds, each_second=b"x")
        scene.clients.work_began_at = (500.0, scene.now - 1.5)
        scene.look_for(100)
        assert scene.is_read_on()
        scene.clients.is_exhausted = True
        scene.look_for(100)
        assert scene.is_read_on()

    def test_that_is_incomplete_is_given_up_whatever_else_is_worked_on(self, scene: Scene) -> None:
        scene.look_for(3, each_second=b"x")
        scene.clients.work_began_at = (990.0, 1006.0, 1020.0)
        scene.look_for(29)
        assert not scene.is_read_on()

    def test_that_came_with_the_answer_before_is_waited_for(self, scene: Scene) -> None:
        scene.look_for(1, each_second=b"GET")
        scene.server.sendall(b"answer")
        scene.client.recv(100)
        scene.look_for(1, each_second=b"GET")
        scene.clients.work_began_at = (scene.now - 1.5,)
        scene.look_for(100)
        assert scene.is_read_on()

    def test_after_request_is_never_too_slow(self, scene: Scene) -> None:
        for _ in range(10):
            scene.look_for(10, each_second=b"GET")
            scene.server.sendall(b"answer")
            scene.client.recv(100)
        assert scene.is_read_on()

    def test_that_is_given_up_ends_the_connection_soon(self, scene: Scene) -> None:
        scene.look_for(31, each_second=b"x")
        scene.look_for(int(GRACE_SECONDS) + 1)
        with pytest.raises(OSError, match="Broken pipe"):
            scene.server.sendall(b"answer")

    def test_has_less_time_where_something_runs_out(self, scene: Scene) -> None:
        scene.clients.is_exhausted = True
        scene.look_for(7, each_second=b"x")
        assert not scene.is_read_on()


class TestAnswer:
    @pytest.fixture(autouse=True)
    def answer(self, scene: Scene) -> None:
        """More than the kernel takes."""
        scene.server.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                scene.server.send(bytes(65536))

    def is_open(self, scene: Scene) -> bool:
        try:
            scene.server.send(b"x")
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def test_that_nobody_reads_is_given_up(self, scene: Scene) -> None:
        scene.look_for(29)
        assert self.is_open(scene)
        scene.look_for(2)
        assert not self.is_open(scene)

    def test_that_is_read_slowly_is_waited_for(self, scene: Scene) -> None:
        for _ in range(100):
            left = 4 * SLOWEST_READER_BYTES_A_SECOND
            while left:
                left -= len(scene.client.recv(left))
            with suppress(BlockingIOError):
                scene.server.send(bytes(8 * SLOWEST_READER_BYTES_A_SECOND))
            scene.look_for(1)
        assert self.is_open(scene)


def test_load_is_told_by_the_connections_that_a_process_may_have(tmp_path: Path) -> None:
    """Half of the files that it may open, where that is less than usual."""
    tried = subprocess.run(
        [sys.executable, "-c", START_WITH_FEW_FILES],
        env={**os.environ, "TOOLSEARCH_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert tried.stdout == "75\n"


def test_failure_is_logged_once_and_the_watch_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[Exception | None] = [KeyError("a"), KeyError("a"), None, KeyError("a"), ValueError("b")]

    class Failing(Watch):
        def look(self, now: float) -> None:
            if (failure := failures.pop(0)) is not None:
                raise failure

    watch = Failing(patience_seconds=PATIENCE, many=100, clients=Clients())
    while failures:
        watch.look_and_log_failure(1000.0)
    told = [record.getMessage().rpartition("at: ")[2] for record in caplog.records]
    assert told == ["KeyError: 'a'", "KeyError: 'a'", "ValueError: b"]


def test_look_leaves_the_locks_of_files_alone(scene: Scene, tmp_path: Path) -> None:
    """A process that closes any copy of a file gives up its locks on it, and SQLite's data with them."""
    path = tmp_path / "locked"
    path.touch()
    with path.open("r+") as held:
        fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        before = len(os.listdir("/proc/self/fd"))
        scene.look_for(3)
        assert len(os.listdir("/proc/self/fd")) == before
        tried = subprocess.run(
            [sys.executable, "-c", TRY_LOCK, str(path)], capture_output=True, text=True, check=False
        )
    assert "BlockingIOError" in tried.stderr
