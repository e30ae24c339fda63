"""Keeps slow clients from delaying others: a request takes no worker while its body arrives or its response
is read.
"""

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from catalog.access.callers import largest_body_bytes
from catalog.domain.errors import RETRY_AFTER_SECONDS, Unavailable
from toolsearch_site.edge import liveness, request_ids
from toolsearch_site.edge.not_modified import Application, Environ, Headers, StartResponse
from toolsearch_site.edge.problem_json import PROBLEM_TYPE, write_problem
from toolsearch_site.edge.unavailable import API_PREFIX
from toolsearch_site.monitoring import metrics

# A body this small is not counted. Of larger ones, each chunk that has arrived counts until its request is
# answered.
SMALL_BODY_BYTES = 16 * 1024
BODY_CHUNK_BYTES = 64 * 1024
BODIES_BYTES = 64 * 1024 * 1024
# The web server keeps what it is given until the client has read it: a larger answer it gets in chunks, and
# all larger answers of a process that are being read share a budget.
SMALL_ANSWER_BYTES = 128 * 1024
ANSWERS_BYTES = 160 * 1024 * 1024
ANSWER_CHUNK_BYTES, LAST_ANSWER_CHUNK_BYTES = 256 * 1024, 64 * 1024
EXHAUSTED_FOR_SECONDS = 10.0
Places = SimpleQueue[BaseDatabaseWrapper]
READ_ONLY_METHODS = frozenset({"GET", "HEAD"})
TOO_MANY_BODIES = "Too many large requests are on their way; try again soon."
TOO_MANY_ANSWERS = "Too many large answers are being read; try again soon."
TOO_MANY_WAITING = "Too many requests are waiting; try again soon."


class Refused(Exception):
    """A request that is refused, with the status and reason of the response."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Budget:
    """A number of bytes in use at once. `is_exhausted` for a while after a request did not fit."""

    def __init__(self, most_bytes: int) -> None:
        self._left, self._lock = most_bytes, threading.Lock()
        self._refused_at = -EXHAUSTED_FOR_SECONDS

    def take(self, count: int) -> bool:
        with self._lock:
            if count > self._left:
                self._refused_at = time.monotonic()
                return False
            self._left -= count
            return True

    def overdraw(self, count: int) -> None:
        """Take bytes even if they are not available."""
        with self._lock:
            self._left -= count
            if self._left < 0:
                self._refused_at = time.monotonic()

    def give_back(self, count: int) -> None:
        with self._lock:
            self._left += count

    @property
    def is_overdrawn(self) -> bool:
        return self._left < 0

    @property
    def is_exhausted(self) -> bool:
        return time.monotonic() - self._refused_at < EXHAUSTED_FOR_SECONDS


class ChunkedAnswer:
    """A large response in chunks. The last ones are small, because the web server still buffers some when it
    has taken them all.
    """

    def __init__(self, content: bytes, budget: Budget) -> None:
        self._content, self._budget = content, budget
        self._taken, self._is_closed = 0, False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        left = len(self._content) - self._taken
        if not left:
            raise StopIteration
        size = ANSWER_CHUNK_BYTES if left > 2 * ANSWER_CHUNK_BYTES else LAST_ANSWER_CHUNK_BYTES
        chunk = self._content[self._taken : self._taken + size]
        self._taken += len(chunk)
        return chunk

    def close(self) -> None:
        """Called by the web server when the response was sent or the connection ended."""
        if not self._is_closed:
            self._is_closed = True
            self._budget.give_back(len(self._content))


def _make_places(count: int) -> Places:
    places: Places = SimpleQueue()
    for _ in range(count):
        connection = connections.create_connection(DEFAULT_DB_ALIAS)
        connection.inc_thread_sharing()
        places.put(connection)
    return places


class SlowClients:
    """Wraps the site's WSGI application, which must return lists. One per process."""

    def __init__(
        self,
        application: Application,
        *,
        working_at_once: int,
        waiting_at_once: int,
        polling_at_once: int = 1,
        is_repeated_poll: Callable[[Environ], bool] = lambda _environ: False,
    ) -> None:
        """`polling_at_once` more places are reserved for repeated polls, which take a moment."""
        self._application = application
        self._is_repeated_poll = is_repeated_poll
        self.bodies, self.answers = Budget(BODIES_BYTES), Budget(ANSWERS_BYTES)
        # Of the many threads any may work next. Each place to work has its connection, which goes from thread
        # to thread: one for every thread would be far too many.
        # Pages take long and agents wait for no reader: half of the places are theirs alone.
        self._pages = threading.BoundedSemaphore(max(1, working_at_once // 2))
        self._places, self._place_for_polls = _make_places(working_at_once), _make_places(polling_at_once)
        # When each thread that works or waits for a place began. A client may leave while its thread waits,
        # so the number of connections is no bound for these.
        self._began: dict[int, float] = {}
        self._most = working_at_once + waiting_at_once

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == liveness.PATH:  # however busy all others are
            return self._application(environ, start_response)
        try:
            if environ.get("CONTENT_LENGTH", "0") == "0":
                return self._answer(environ, start_response)
            return self._answer_with_body(environ, start_response)
        except Refused as refused:
            return _refuse(environ, start_response, refused)

    @property
    def work_began_at(self) -> tuple[float, ...]:
        """When each request that is complete and not answered yet became complete."""
        return tuple(self._began.values())

    @property
    def is_exhausted(self) -> bool:
        return self.bodies.is_exhausted or self.answers.is_exhausted

    def _answer(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        started: list[tuple[str, Headers]] = []
        content = self._work(environ, lambda status, headers, *_: started.append((status, headers)))
        status, headers = started[-1]
        size = sum(map(len, content))
        if size <= SMALL_ANSWER_BYTES or environ["REQUEST_METHOD"] == "HEAD":
            start_response(status, headers)
            return content
        if environ["REQUEST_METHOD"] not in READ_ONLY_METHODS:  # the change is made, and its answer is given
            self.answers.overdraw(size)
        elif not self.answers.take(size):
            raise Refused(503, TOO_MANY_ANSWERS)
        if not any(name.lower() == "content-length" for name, _ in headers):
            headers.append(("Content-Length", str(size)))
        start_response(status, headers)
        return ChunkedAnswer(b"".join(content), self.answers)

    def _work(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        if len(self._began) >= self._most:
            raise Refused(503, TOO_MANY_WAITING)
        thread = threading.get_ident()
        self._began[thread] = time.monotonic()
        try:
            if environ["PATH_INFO"].startswith(API_PREFIX):
                return self._work_at_a_place(environ, start_response)
            with self._pages:
                return self._work_at_a_place(environ, start_response)
        finally:
            del self._began[thread]

    def _work_at_a_place(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        places, connection = self._take_place(environ)
        try:
            if self.answers.is_overdrawn and environ["REQUEST_METHOD"] not in READ_ONLY_METHODS:
                raise Refused(503, TOO_MANY_ANSWERS)
            connections[DEFAULT_DB_ALIAS] = connection
            try:
                return self._application(environ, start_response)  # type: ignore[return-value]
            finally:
                del connections[DEFAULT_DB_ALIAS]  # the next to use it is another thread
        finally:
            places.put(connection)

    def _take_place(self, environ: Environ) -> tuple[Places, BaseDatabaseWrapper]:
        """A place and the queue to return it to. Waits until one is free."""
        try:
            return self._places, self._places.get_nowait()
        except Empty:
            places = self._place_for_polls if self._is_repeated_poll(environ) else self._places
            return places, places.get()

    def _answer_with_body(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Replaces the input stream with the whole body. A body that nobody will read is left unread, and the
        web server closes the connection after the response.
        """
        stream, length = environ["wsgi.input"], _read_length(environ)
        body = environ["wsgi.input"] = io.BytesIO()
        if environ["REQUEST_METHOD"] in READ_ONLY_METHODS:
            environ["CONTENT_LENGTH"] = "0"
            return self._answer(environ, start_response)
        if length > largest_body_bytes(environ["PATH_INFO"]):  # answered by its length alone
            return self._answer(environ, start_response)
        taken = 0
        try:
            while (left := length - body.tell()) > 0:
                chunk = stream.read(min(left, BODY_CHUNK_BYTES))
                if not chunk:  # the client is gone, or its time is up
                    seconds = settings.CLIENT_TIMEOUT_SECONDS
                    raise Refused(408, f"The request was not there in {seconds} seconds.")
                if length > SMALL_BODY_BYTES:
                    if not self.bodies.take(len(chunk)):
                        raise Refused(503, TOO_MANY_BODIES)
                    taken += len(chunk)
                body.write(chunk)
            body.seek(0)
            return self._answer(environ, start_response)
        finally:
            body.close()
            if taken:
                self.bodies.give_back(taken)


def _read_length(environ: Environ) -> int:
    length = environ["CONTENT_LENGTH"]
    return int(length) if length.isdigit() else 0


def _refuse(environ: Environ, start_response: StartResponse, refused: Refused) -> list[bytes]:
    """Closes the connection, because the rest of this request would be parsed as the next one."""
    title = Unavailable.title if refused.status == Unavailable.status else "Request Timeout"
    headers = [
        ("Connection", "close"),
        ("Cache-Control", "no-store"),
        (request_ids.HEADER, request_ids.choose_id(environ)),
    ]
    if refused.status == Unavailable.status:
        headers.append(("Retry-After", str(RETRY_AFTER_SECONDS)))
    if environ["PATH_INFO"].startswith(API_PREFIX):
        headers.append(("Content-Type", PROBLEM_TYPE))
        text = write_problem(refused.status, refused.reason, title=title)
    else:
        headers.append(("Content-Type", "text/plain; charset=utf-8"))
        text = f"{refused.reason}\n"
    metrics.count_refusal(environ["REQUEST_METHOD"], refused.status)
    start_response(f"{refused.status} {title}", headers)
    return [text.encode()]
