"""Limits on what a slow client can hold: no worker, no database connection, and a bounded number of bytes."""

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections

from catalog.access.callers import CONFIG_PATH
from catalog.domain.limits import BODY_BYTES, CONFIG_BODY_BYTES
from toolsearch_site import wsgi
from toolsearch_site.edge.slow_clients import (
    ANSWERS_BYTES,
    BODIES_BYTES,
    BODY_CHUNK_BYTES,
    SMALL_ANSWER_BYTES,
    SMALL_BODY_BYTES,
    ChunkedAnswer,
    SlowClients,
)
from toolsearch_site.monitoring import metrics

Environ = dict[str, Any]
LARGE = SMALL_ANSWER_BYTES + 1
# No answer in this time is a failure, not slowness.
PATIENCE_SECONDS = 30


@pytest.fixture(autouse=True)
def keep_own_connection() -> Iterator[None]:
    """Of this thread, which the other tests use."""
    own = connections[DEFAULT_DB_ALIAS]
    yield
    connections[DEFAULT_DB_ALIAS] = own


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    """What work waits for; no longer than the test."""
    event = threading.Event()
    yield event
    event.set()


class Body:
    """A stream that counts what was asked of it, and has so many bytes."""

    def __init__(self, count: int) -> None:
        self.left, self.asked, self.largest = count, 0, 0

    def read(self, size: int) -> bytes:
        self.asked += size
        self.largest = max(self.largest, size)
        given, self.left = min(size, self.left), max(0, self.left - size)
        return b"x" * given


class Silent:
    """A stream of which nothing comes until it ends."""

    def __init__(self) -> None:
        self.asked, self.ended = threading.Semaphore(0), threading.Event()

    def read(self, _: int) -> bytes:
        self.asked.release()
        self.ended.wait(PATIENCE_SECONDS)
        return b""


class Server:
    """What the web server is to the application: it hands over a request and takes the answer."""

    def __init__(
        self, answer: Any = lambda environ: b"ok", *, working_at_once: int = 1, waiting_at_once: int = 100
    ) -> None:
        self.status = ""
        self.headers: dict[str, str] = {}
        self.clients = SlowClients(
            self._site, working_at_once=working_at_once, waiting_at_once=waiting_at_once
        )
        self._answer = answer

    def _site(self, environ: Environ, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [self._answer(environ)]

    def ask(self, method: str = "GET", path: str = "/", body: Body | None = None, length: str = "") -> Any:
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "wsgi.input": body or Body(0)}
        if length:
            environ["CONTENT_LENGTH"] = length
        return self.clients(environ, self._start)

    def _start(self, status: str, headers: list[tuple[str, str]]) -> None:
        self.status, self.headers = status, dict(headers)


def counted(method: str, status: int) -> float:
    """Refusals that the metrics know of."""
    return metrics.REQUESTS.labels("refused", method, status)._value.get()  # type: ignore[no-any-return]


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.001)


def read_body(environ: Environ) -> bytes:
    return bytes(environ["wsgi.input"].read())


class TestBody:
    def test_is_there_before_the_work_begins(self) -> None:
        assert Server(read_body).ask("POST", body=Body(20), length="20") == [b"x" * 20]

    def test_that_ends_early_is_told_so(self) -> None:
        server = Server(read_body)
        before = counted("POST", 408)
        [told] = server.ask("POST", body=Body(19), length="20")
        assert counted("POST", 408) == before + 1
        assert server.status.startswith("408 ")
        assert server.headers["Connection"] == "close"
        assert b"30 seconds" in told

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_that_nobody_asked_for_is_not_read(self, method: str) -> None:
        body = Body(0)
        assert Server(read_body).ask(method, body=body, length="20") == [b""]
        assert body.asked == 0

    def test_that_is_too_large_is_not_read(self) -> None:
        length = str(BODY_BYTES + 1)
        body = Body(BODY_BYTES + 1)
        server = Server(lambda environ: environ["CONTENT_LENGTH"].encode())
        assert server.ask("POST", body=body, length=length) == [length.encode()]
        assert body.asked == 0

    def test_larger_ones_share_a_budget(self) -> None:
        server = Server(read_body)
        assert server.clients.bodies.take(BODIES_BYTES)
        size = SMALL_BODY_BYTES + 1
        before = counted("POST", 503)
        server.ask("POST", body=Body(size), length=str(size))
        assert (server.status[:3], server.headers["Retry-After"]) == ("503", "2")
        assert server.clients.is_exhausted
        server.ask("POST", body=Body(10), length="10")
        assert server.status.startswith("200")
        server.clients.bodies.give_back(BODIES_BYTES)
        assert counted("POST", 503) == before + 1
        for _ in range(2 * BODIES_BYTES // size):  # each gives back what it took
            server.ask("POST", body=Body(size), length=str(size))
            assert server.status.startswith("200")

    def test_that_does_not_come_takes_nothing_from_others(self) -> None:
        """Ten that together announce more than the whole budget, and send nothing."""
        server, silent = Server(lambda environ: b"%d" % len(read_body(environ))), Silent()
        threads = [
            threading.Thread(
                target=server.ask, args=("POST", CONFIG_PATH, silent, str(CONFIG_BODY_BYTES)), daemon=True
            )
            for _ in range(10)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert silent.asked.acquire(timeout=PATIENCE_SECONDS)
        assert server.ask("POST", body=Body(BODY_BYTES), length=str(BODY_BYTES)) == [b"%d" % BODY_BYTES]
        assert not server.clients.is_exhausted
        silent.ended.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert server.clients.bodies.take(BODIES_BYTES)  # all was given back

    def test_counts_until_its_request_is_answered(self, go_on: threading.Event) -> None:
        """Also while it waits for a place to work."""
        size = CONFIG_BODY_BYTES
        most = BODIES_BYTES // size
        statuses = list[str]()
        clients = SlowClients(
            lambda _, start: (go_on.wait(PATIENCE_SECONDS), start("200 OK", []), [b""])[-1],
            working_at_once=1,
            waiting_at_once=100,
        )

        def ask(body: Body) -> None:
            environ = {
                "REQUEST_METHOD": "POST",
                "PATH_INFO": CONFIG_PATH,
                "CONTENT_LENGTH": str(size),
                "wsgi.input": body,
            }
            clients(environ, lambda status, _: statuses.append(status))

        threads = [threading.Thread(target=ask, args=(Body(size),)) for _ in range(most)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(clients.work_began_at) == most)
        ask(Body(size))
        assert statuses == ["503 Unavailable"]
        go_on.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        ask(Body(size))
        assert statuses == ["503 Unavailable", *["200 OK"] * (most + 1)]

    def test_is_read_chunk_by_chunk(self) -> None:
        body = Body(BODY_BYTES)
        Server(read_body).ask("POST", body=body, length=str(BODY_BYTES))
        assert body.largest == BODY_CHUNK_BYTES


class TestAnswer:
    def test_small_one_is_given_at_once(self) -> None:
        assert Server(lambda _: b"x" * SMALL_ANSWER_BYTES).ask() == [b"x" * SMALL_ANSWER_BYTES]

    @pytest.mark.parametrize("size", [LARGE, 300_000, 5_000_001])
    def test_large_one_is_given_in_chunks(self, size: int) -> None:
        server = Server(lambda _: bytes(size))
        answer = server.ask()
        assert isinstance(answer, ChunkedAnswer)
        assert b"".join(answer) == bytes(size)
        assert server.headers["Content-Length"] == str(size)

    def test_large_ones_share_a_budget_until_they_are_read(self) -> None:
        server = Server(lambda _: bytes(10_000_000))
        given: list[ChunkedAnswer] = []
        while isinstance(answer := server.ask(), ChunkedAnswer):
            given.append(answer)
        assert len(given) == ANSWERS_BYTES // 10_000_000
        assert server.status.startswith("503")
        assert server.clients.is_exhausted
        for one in given[:2]:
            one.close()
            one.close()  # twice does no harm
        assert [isinstance(server.ask(), ChunkedAnswer) for _ in range(3)] == [True, True, False]

    def test_of_a_change_that_was_made_is_given(self) -> None:
        server = Server(lambda _: bytes(LARGE))
        assert server.clients.answers.take(ANSWERS_BYTES)
        answer = server.ask("POST")
        assert (server.status, len(b"".join(answer))) == ("200 OK", LARGE)
        assert server.clients.is_exhausted
        answer.close()
        server.clients.answers.give_back(ANSWERS_BYTES)
        assert server.clients.answers.take(ANSWERS_BYTES)  # all was given back

    def test_change_is_not_made_while_more_is_being_read_than_the_budget(self) -> None:
        made = []
        server = Server(lambda environ: made.append(environ["REQUEST_METHOD"]) or bytes(LARGE))  # type: ignore[func-returns-value]
        assert server.clients.answers.take(ANSWERS_BYTES)
        first = server.ask("POST")
        server.ask("POST")
        assert (server.status, server.headers["Retry-After"]) == ("503 Unavailable", "2")
        assert made == ["POST"]
        first.close()
        server.ask("POST")
        assert (server.status, made) == ("200 OK", ["POST", "POST"])

    def test_poll_is_answered_while_nothing_is_left_for_large_ones(self) -> None:
        server = Server()
        server.clients.answers.overdraw(ANSWERS_BYTES + 1)
        assert server.ask() == [b"ok"]

    def test_refusal_is_a_problem_for_programs(self) -> None:
        server = Server(lambda _: bytes(ANSWERS_BYTES + 1))
        [told] = server.ask(path="/api/v1/tools")
        assert server.headers["Content-Type"] == "application/problem+json"
        assert b'"status": 503' in told


class TestWork:
    def test_so_many_at_once_each_with_a_connection_of_its_own(self) -> None:
        seen: set[int] = set()
        most, now, lock, full = 0, 0, threading.Lock(), threading.Event()

        def work(_: Environ) -> bytes:
            nonlocal most, now
            with lock:
                now += 1
                most = max(most, now)
                seen.add(id(connections[DEFAULT_DB_ALIAS]))
            full.wait(0.05)
            with lock:
                now -= 1
            return b""

        server = Server(work, working_at_once=3)
        threads = [threading.Thread(target=server.ask, kwargs={"path": "/api/v1/tools"}) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == len(seen) == 3

    def test_that_fails_leaves_its_place(self) -> None:
        def fail(_: Environ) -> bytes:
            raise RuntimeError("broken")

        server = Server(fail)
        for _ in range(3):
            with pytest.raises(RuntimeError):
                server.ask()
        assert server.clients.work_began_at == ()

    def test_past_so_many_that_wait_is_refused(self, go_on: threading.Event) -> None:
        """Threads of clients that left wait too, and each is one less for the others and for `/healthz`."""
        server = Server(lambda _: bytes(go_on.wait(PATIENCE_SECONDS)), waiting_at_once=3)
        threads = [threading.Thread(target=server.ask) for _ in range(1 + 3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(server.clients.work_began_at) == len(threads))
        before = counted("GET", 503)
        server.ask()
        assert (server.status, server.headers["Retry-After"]) == ("503 Unavailable", "2")
        assert counted("GET", 503) == before + 1
        go_on.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        server.ask()
        assert server.status == "200 OK"

    def test_thread_that_is_done_has_no_hold_on_the_connection(self) -> None:
        """Whatever it does next, such as Django's closing of old connections at a `/healthz`."""
        used = []
        server = Server(lambda _: used.append(connections[DEFAULT_DB_ALIAS]) or b"")  # type: ignore[func-returns-value]
        server.ask()
        assert connections.all(initialized_only=True) == []
        server.ask()
        assert used[0] is used[1]

    def test_sign_of_life_closes_no_connection_of_another_thread(self) -> None:
        """Asked of the site, by a thread that worked before, while another works."""
        closed: list[str] = []

        def work(environ: Environ, start: Any) -> Any:
            if environ["PATH_INFO"] == "/healthz":
                return wsgi.application(environ, start)
            connection = connections[DEFAULT_DB_ALIAS]
            connection.close_if_unusable_or_obsolete = lambda: closed.append("closed")  # type: ignore[method-assign]
            start("200 OK", [])
            return [b""]

        clients = SlowClients(work, working_at_once=1, waiting_at_once=1)
        environ = {
            "REQUEST_METHOD": "GET",
            "SERVER_NAME": "x",
            "SERVER_PORT": "80",
            "wsgi.input": io.BytesIO(),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
        }
        clients({**environ, "PATH_INFO": "/a"}, lambda *_: None)
        assert clients({**environ, "PATH_INFO": "/healthz"}, lambda *_: None) == [b"ok\n"]
        assert closed == []

    def test_repeated_poll_is_answered_while_every_place_is_taken(self, go_on: threading.Event) -> None:
        def work(environ: Environ, start: Any) -> list[bytes]:
            if environ["PATH_INFO"] == "/api/long":
                go_on.wait(PATIENCE_SECONDS)
            start("200 OK", [])
            return [environ["PATH_INFO"].encode()]

        clients = SlowClients(
            work,
            working_at_once=1,
            waiting_at_once=9,
            is_repeated_poll=lambda one: one["PATH_INFO"] == "/api/poll",
        )

        def ask(path: str) -> Any:
            return clients({"REQUEST_METHOD": "GET", "PATH_INFO": path}, lambda *_: None)

        with ThreadPoolExecutor(2) as threads:
            long = threads.submit(ask, "/api/long")
            wait_until(lambda: len(clients.work_began_at) == 1)
            other = threads.submit(ask, "/api/other")
            wait_until(lambda: len(clients.work_began_at) == 2)
            assert [ask("/api/poll") for _ in range(3)] == [[b"/api/poll"]] * 3
            assert not other.done()
            go_on.set()
            assert (long.result(), other.result()) == ([b"/api/long"], [b"/api/other"])

    def test_agents_find_a_place_however_many_pages_are_being_made(self, go_on: threading.Event) -> None:
        def work(environ: Environ, start: Any) -> list[bytes]:
            if environ["PATH_INFO"] == "/tools/":
                go_on.wait(PATIENCE_SECONDS)
            start("200 OK", [])
            return [b"done"]

        clients = SlowClients(work, working_at_once=2, waiting_at_once=9)

        def ask(path: str) -> Any:
            return clients({"REQUEST_METHOD": "GET", "PATH_INFO": path}, lambda *_: None)

        with ThreadPoolExecutor(5) as threads:
            pages = [threads.submit(ask, "/tools/") for _ in range(5)]
            wait_until(lambda: len(clients.work_began_at) == 5)
            assert ask("/api/v1/tools") == [b"done"]
            assert not any(page.done() for page in pages)
            go_on.set()
            assert [page.result() for page in pages] == [[b"done"]] * 5

    def test_sign_of_life_needs_no_place(self) -> None:
        server = Server(working_at_once=0)
        assert server.ask(path="/healthz") == [b"ok"]
