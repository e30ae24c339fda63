"""Closes connections whose client is too slow to send its request or to read the response.

The web server has no limit for either. The kernel counts the bytes received and acknowledged per connection;
a thread of each process reads those counters once a second.
"""

import contextlib
import fcntl
import logging
import os
import socket
import stat
import struct
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

LOOK_EVERY_SECONDS = 1.0
# A request is worked on as soon as it is complete: at most so long before or after its last bytes are seen.
WORK_BEGINS_WITHIN_SECONDS = 2 * LOOK_EVERY_SECONDS
SLOWEST_READER_BYTES_A_SECOND = 4 * 1024
GRACE_SECONDS = 3.0  # for the response that says that the request took too long
# Where connections or budgets run out, patience is this much shorter.
PATIENCE_DIVISOR_UNDER_LOAD = 6
OPEN_FILES = Path("/proc/self/fd")
# Of `struct tcp_info`: where the two counters are, of 64 bits each.
ACKED_AND_RECEIVED, INFO_BYTES = struct.Struct("=120xQQ"), 136
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: what is not sent is thrown away

logger = logging.getLogger(__name__)


class Clients(Protocol):
    """The part of the request handlers that the watch uses."""

    @property
    def work_began_at(self) -> Sequence[float]:
        """When each request that is complete and not answered yet became complete."""

    @property
    def is_exhausted(self) -> bool: ...


class SocketCounters(NamedTuple):
    """Socket counters: bytes received, bytes acknowledged by the client, and bytes written but not
    acknowledged.
    """

    received: int
    acked: int
    pending: int


@dataclass(slots=True)
class WatchedConnection:
    """State of one connection. `answered_at`: last write to it; `asking_since`: first bytes received after
    that; `heard_at`: last bytes received; `measured_at` and `acked_then`: start of the current measurement of
    reading; `read_shut_at`: when its receiving side was shut down.
    """

    reading: SocketCounters
    answered_at: float
    asking_since: float | None = None
    heard_at: float = 0.0
    measured_at: float | None = None
    acked_then: int = 0
    read_shut_at: float | None = None

    def look(self, reading: SocketCounters, now: float) -> None:
        before, self.reading = self.reading, reading
        if reading.acked + reading.pending != before.acked + before.pending:
            self.answered_at, self.asking_since = now, None
        elif reading.received != before.received and self.asking_since is None:
            self.asking_since = now
        if reading.received != before.received:
            self.heard_at = now
        if not reading.pending:
            self.measured_at = None
        elif self.measured_at is None:
            self.measured_at, self.acked_then = now, reading.acked

    def is_slow_reader(self, now: float, patience: float) -> bool:
        """Whether too little of the answer was read since the measurement began; begins the next one."""
        if self.measured_at is None or now - self.measured_at < patience:
            return False
        rate = (self.reading.acked - self.acked_then) / (now - self.measured_at)
        self.measured_at, self.acked_then = now, self.reading.acked
        return rate < SLOWEST_READER_BYTES_A_SECOND

    def is_slow_sender(self, now: float, patience: float, work_began_at: Sequence[float]) -> bool:
        """Whether a request that began that long ago is still incomplete. Bytes arriving now mean that it is;
        else it is complete if work began when its last bytes came, or when the previous response was written.
        An idle connection, which the web server closes by itself, gets twice the time.
        """
        if self.reading.pending:
            return False
        since = self.answered_at + patience if self.asking_since is None else self.asking_since
        if now - since < patience:
            return False
        if self.asking_since is not None and self.heard_at == now:
            return True
        complete_at = max(self.heard_at, self.answered_at)
        return all(abs(began - complete_at) > WORK_BEGINS_WITHIN_SECONDS for began in work_began_at)


class Watch:
    """Watches the connections accepted by this process: those of a port it listens on."""

    def __init__(self, *, patience_seconds: float, many: int, clients: Clients) -> None:
        self._patience, self._many, self._clients = patience_seconds, many, clients
        self._watched: dict[int, WatchedConnection] = {}
        self._failure = ""

    def look(self, now: float) -> None:
        """One round. Connections are kept by socket inode, which is never reused."""
        found: dict[int, WatchedConnection] = {}
        is_under_load = self._clients.is_exhausted or len(self._watched) >= self._many
        patience = self._patience / PATIENCE_DIVISOR_UNDER_LOAD if is_under_load else self._patience
        work_began_at = self._clients.work_began_at
        for number, connection in _accepted_connections():
            watched = self._watched.get(number)
            try:
                reading = _read(connection)
                if watched is None:
                    watched = WatchedConnection(reading._replace(received=0), answered_at=now)
                found[number] = watched
                watched.look(reading, now)
                self._judge(connection, watched, now, patience, work_began_at)
            except OSError:  # it has just ended
                found.pop(number, None)
        self._watched = found

    def look_and_log_failure(self, now: float) -> None:
        """One round. A failure is logged, unless it repeats the one of the round before."""
        try:
            self.look(now)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            if failure != self._failure:
                logger.warning("connections cannot be looked at: %s", failure, exc_info=True)
            self._failure = failure
        else:
            self._failure = ""

    def _judge(
        self,
        connection: socket.socket,
        watched: WatchedConnection,
        now: float,
        patience: float,
        work_began_at: Sequence[float],
    ) -> None:
        if watched.is_slow_reader(now, patience):
            _end(connection)
        elif watched.read_shut_at is not None:
            if now - watched.read_shut_at >= GRACE_SECONDS:
                _end(connection)
        elif watched.is_slow_sender(now, patience, work_began_at):
            # Shut the receiving side: the handler that waits for the rest of the request can answer.
            watched.read_shut_at = now
            connection.shutdown(socket.SHUT_RD)


def start(*, patience_seconds: float, many: int, clients: Clients) -> None:
    """Watch from a thread for as long as this process runs. Linux only: elsewhere the counters do
    not exist.
    """
    if not OPEN_FILES.exists():
        logger.warning("connections of slow clients are not closed: this system has no socket counters")
        return
    watch = Watch(patience_seconds=patience_seconds, many=many, clients=clients)
    threading.Thread(target=_keep_looking, args=(watch,), name="connection watch", daemon=True).start()


def _keep_looking(watch: Watch) -> None:
    while True:
        time.sleep(LOOK_EVERY_SECONDS)
        watch.look_and_log_failure(time.monotonic())


def _end(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    connection.shutdown(socket.SHUT_RDWR)


def _read(connection: socket.socket) -> SocketCounters:
    counters = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    acked, received = ACKED_AND_RECEIVED.unpack(counters)
    pending = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0\0\0\0"))[0]
    return SocketCounters(received=received, acked=acked, pending=pending)


def _accepted_connections() -> Iterator[tuple[int, socket.socket]]:
    """Connections with their inodes. Each is a duplicate: the original descriptor may be reused at any
    moment.
    """
    ports = {_port_of(found) for _, found in _sockets() if _is_listening(found)} - {None}
    for number, found in _sockets():
        if _port_of(found) in ports and not _is_listening(found):
            yield number, found


def _is_listening(found: socket.socket) -> bool:
    return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _port_of(found: socket.socket) -> int | None:
    is_tcp = found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM
    return int(found.getsockname()[1]) if is_tcp else None


def _sockets() -> Iterator[tuple[int, socket.socket]]:
    for name in os.listdir(OPEN_FILES):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.stat(int(name)).st_mode) and (found := _copy(int(name))):
                with found:
                    yield os.fstat(found.fileno()).st_ino, found


def _copy(descriptor: int) -> socket.socket | None:
    """A duplicate of the descriptor, or None if it is not a socket any more. A duplicate of a file must not
    be closed: closing any descriptor of a file releases SQLite's locks on it.
    """
    copied = os.dup(descriptor)
    return socket.socket(fileno=copied) if stat.S_ISSOCK(os.fstat(copied).st_mode) else None
