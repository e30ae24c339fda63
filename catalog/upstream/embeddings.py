"""HTTP to an OpenAI-compatible `/embeddings` endpoint, which the operator's own setting names.

So it may be at a private or loopback address, unlike a server that somebody adds. Redirects are not followed,
proxies of the environment are not used, and an answer is limited in bytes and in time.
"""

import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from threading import Lock

import httpx2

from catalog.domain.embeddings import EndpointFailure, EndpointRefusal, read_answer, write_request
from catalog.upstream.guard import shared_tls_context

USER_AGENT = "toolsearch"
# An answer of that many bytes for each text: 16,384 numbers with all their digits and spaces are shorter. To
# parse what is longer takes more than the time of a query, and holds up the threads beside it.
MOST_BYTES_A_TEXT, BYTES_AROUND = 1_000_000, 1_000_000
_REFUSALS = (400, 413, 422)
# Threads that ask for queries: one that hangs in a look-up of the host's name leaves the others free.
_ASKING = 8
# A request that is not over so long after its time is fed byte by byte: its thread would never come back.
GRACE_SECONDS = 5.0
# A kept connection saves the greeting, which alone may take the time that a query has.
_CONNECTIONS = httpx2.Limits(max_connections=16, max_keepalive_connections=8, keepalive_expiry=50.0)


class EmbeddingsClient:
    """One endpoint. Thread-safe; makes its connections and threads at the first request."""

    def __init__(self, address: str, model: str, key: str) -> None:
        self._address, self._model = address, model
        self._headers = {
            "User-Agent": USER_AGENT,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._lock = Lock()
        self._client: httpx2.Client | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._overdue: dict[Future[list[list[float]]], float] = {}

    def embed(self, texts: Sequence[str], within_seconds: float) -> list[list[float]]:
        """Raises `EndpointFailure`, at the latest about when the time is over: the look-up of the host's name
        counts as well.
        """
        asked = self._start(texts, within_seconds)
        try:
            return asked.result(timeout=within_seconds)
        except TookTooLong:
            if not asked.cancel():
                with self._lock:
                    self._overdue[asked] = time.monotonic()
            raise EndpointFailure(f"it did not answer within {within_seconds:g} s") from None

    def _start(self, texts: Sequence[str], within_seconds: float) -> "Future[list[list[float]]]":
        with self._lock:
            self._end_stuck()
            if self._client is None:
                self._client = httpx2.Client(
                    verify=shared_tls_context(), trust_env=False, follow_redirects=False, limits=_CONNECTIONS
                )
                weakref.finalize(self, self._client.close)
            self._pool = self._pool or ThreadPoolExecutor(_ASKING, thread_name_prefix="embeddings")
        ends_at = time.monotonic() + within_seconds
        return self._pool.submit(self._ask, self._client, texts, ends_at)

    def _end_stuck(self) -> None:
        """Where a request is stuck, close all connections, which ends it at its next byte, and begin anew."""
        self._overdue = {asked: since for asked, since in self._overdue.items() if not asked.done()}
        if all(time.monotonic() - since < GRACE_SECONDS for since in self._overdue.values()):
            return
        client, pool = self._client, self._pool
        self._client, self._pool, self._overdue = None, None, {}
        if client is not None:
            client.close()
        if pool is not None:
            pool.shutdown(wait=False)

    def _ask(self, client: httpx2.Client, texts: Sequence[str], ends_at: float) -> list[list[float]]:
        seconds = ends_at - time.monotonic()
        if seconds <= 0:
            raise EndpointFailure("it has too many requests before this one")
        try:
            request = client.build_request(
                "POST",
                self._address,
                json=write_request(texts, self._model),
                headers=self._headers,
                timeout=httpx2.Timeout(seconds),
            )
            response = client.send(request, stream=True)
            try:
                _refuse_other_than_success(response)
                body = b"".join(_read_within(response, ends_at, len(texts)))
            finally:
                response.close()
        except httpx2.TimeoutException:
            raise EndpointFailure("it did not answer in time") from None
        # A host's name that cannot be one is found out by the look-up alone.
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError) as error:
            raise EndpointFailure(f"it cannot be reached ({type(error).__name__})") from None
        return read_answer(body, len(texts))


def _refuse_other_than_success(response: httpx2.Response) -> None:
    if response.status_code != 200:
        failure = EndpointRefusal if response.status_code in _REFUSALS else EndpointFailure
        raise failure(f"it answers with HTTP status {response.status_code}")
    if response.headers.get("content-encoding", "identity") != "identity":
        # What a compressed answer grows to cannot be counted as it comes in.
        raise EndpointFailure("it compresses its answers although asked not to")


def _read_within(response: httpx2.Response, ends_at: float, texts: int) -> Iterator[bytes]:
    received, most = 0, BYTES_AROUND + texts * MOST_BYTES_A_TEXT
    for chunk in response.iter_raw():
        received += len(chunk)
        if received > most:
            raise EndpointFailure(f"it sent more than {most // 1_000_000} MB")
        if time.monotonic() > ends_at:
            raise EndpointFailure("it did not answer in time")
        yield chunk
