"""The only way out for HTTP: checks the address it connects to and limits what comes back."""

import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache, partial

import anyio.to_thread
import httpx2

from catalog.domain.addresses import AddressRules, why_address_refused
from catalog.domain.connection import FailureCode, Limits, UpstreamFailure
from catalog.upstream.exchange import Exchange, current_exchange, post_one_way, post_request
from catalog.upstream.http_failures import asks_for_sign_in, explain_broken_call, explain_network_error
from catalog.upstream.nesting import cut_nesting
from catalog.upstream.throttle import REQUEST_BYTES, Throttle

Resolver = Callable[[str, int], Sequence[str]]
ADDRESS_KEPT_SECONDS = 60.0
# Many servers close a connection that nobody used for 5 seconds: a request that meets this gets no answer.
_CONNECTIONS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=4.0)


class BodyCutOff(httpx2.StreamError):
    """An answer ends too early. Where a lease waits for it, the SDK gives up that request alone.

    What happened is in the exchange.
    """


def resolve_host(host: str, port: int) -> Sequence[str]:
    """IP addresses of a name, in the order to try them. Raises OSError where there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def shared_tls_context() -> ssl.SSLContext:
    """One for the whole process: building one takes 1 MB and up to 170 ms of processor time."""
    return _tls_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _tls_context(file: str | None, folder: str | None) -> ssl.SSLContext:
    """It trusts the authorities that these variables name; they are read from the environment."""
    return httpx2.create_ssl_context(trust_env=True)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Resolves each host, refuses it unless every address is allowed, and connects to that address.

    An address is kept for a minute. Every request passes here, redirects included. A failure is raised and
    also kept in `failure`, since the SDK logs and drops some errors; that of a lease's request is kept in its
    exchange and not raised, since the SDK would give up the whole connection.
    """

    def __init__(
        self, *, rules: AddressRules, limits: Limits, resolver: Resolver, telling_methods: frozenset[str]
    ) -> None:
        """`telling_methods` are those whose responses show the server's state; see `last_answer`."""
        # The environment is trusted for the files of certificate authorities only; proxies are the client's.
        self._inner = httpx2.AsyncHTTPTransport(
            verify=shared_tls_context(), trust_env=False, limits=_CONNECTIONS
        )
        self._rules = rules
        self._limits = limits
        self._resolver = resolver
        self._addresses: dict[str, tuple[float, Sequence[str]]] = {}
        self._received_bytes = 0
        self._throttle = Throttle(limits.max_bytes_per_second)
        self._telling_methods = telling_methods
        self.is_open = False  # a lease that has been opened
        self.failure: UpstreamFailure | None = None
        self.last_answer: httpx2.Response | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.is_open and request.method == "POST":
            exchange = current_exchange.get()
            if exchange and exchange.takes_post():
                return await post_request(request, exchange, send=self._send, wrap=self._wrap)
            return await post_one_way(request, send=self._send)
        await self._throttle.take(REQUEST_BYTES)  # a server can make the SDK ask again and again
        try:
            response = await self._send(request)
        except httpx2.TransportError as error:
            raise self.note(explain_network_error(error, request.url.host)) from error
        except UpstreamFailure as failure:
            self.note(failure)
            raise
        if request.method in self._telling_methods:
            self._note_answer(response)
        return self._wrap(response, request.url.host)

    def _note_answer(self, response: httpx2.Response) -> None:
        """Keep the latest, but for one that asks for a sign-in: after it the SDK tries the older greeting,
        which a server of the newest revision alone refuses for another reason.
        """
        is_refusal = 400 <= response.status_code < 500
        if not (is_refusal and self.last_answer and asks_for_sign_in(self.last_answer)):
            self.last_answer = response

    def _wrap(
        self, response: httpx2.Response, host: str, exchange: Exchange | None = None
    ) -> httpx2.Response:
        return httpx2.Response(
            status_code=response.status_code,
            headers=response.headers,
            stream=_CountedStream(response, host, self, exchange),
            extensions=response.extensions,
        )

    def note(self, failure: UpstreamFailure) -> UpstreamFailure:
        """Keep the first failure, because later ones follow from it."""
        self.failure = self.failure or failure
        return failure

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def count(self, chunk: bytes, message_bytes: int, *, by_line: bool) -> None:
        """Count what came in, and wait where it comes in too fast. Raises UpstreamFailure past a limit."""
        self._received_bytes += len(chunk)
        if self._received_bytes > self._limits.max_total_bytes:
            raise _too_large(self._limits.max_total_bytes)
        if message_bytes > self._limits.max_message_bytes:
            raise _too_large(self._limits.max_message_bytes)
        await (self._throttle.take_lines(chunk) if by_line else self._throttle.take(len(chunk)))

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.raw_host.decode("ascii")
        addresses = await self.allowed_addresses(host, request.url.port or 0)
        for address in addresses[:-1]:
            try:
                return await self._send_to(address, request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._send_to(addresses[-1], request)

    async def _send_to(self, address: str, request: httpx2.Request) -> httpx2.Response:
        """The request to a given IP address; the name stays in the Host header and in the TLS handshake."""
        response = await self._inner.handle_async_request(
            httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
            )
        )
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            # What a compressed answer grows to cannot be counted as it comes in.
            raise UpstreamFailure(
                FailureCode.NOT_MCP, "The server compresses its answers although asked not to"
            )
        return response

    async def allowed_addresses(self, host: str, port: int) -> Sequence[str]:
        """Where a host is. Raises UpstreamFailure for one that is unknown, or that the rules forbid."""
        now = time.monotonic()
        kept_at, addresses = self._addresses.get(host, (now, ()))
        if not addresses or now - kept_at > ADDRESS_KEPT_SECONDS:
            addresses = await self._look_up(host, port)
            self._addresses[host] = now, addresses
        return addresses

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        try:
            found = await anyio.to_thread.run_sync(
                partial(self._resolver, host, port), abandon_on_cancel=True
            )
        except (OSError, UnicodeError):
            found = ()
        if not found:
            raise UpstreamFailure(
                FailureCode.UNKNOWN_HOST, f"The host {host} is not known: check the address"
            )
        for address in found:
            if reason := why_address_refused(address, self._rules):
                raise UpstreamFailure(
                    FailureCode.BLOCKED_ADDRESS,
                    # Without the address: everybody who may read the catalog sees this.
                    f"The host {host} is at {reason}: the settings do not allow that",
                )
        return found


def _too_large(limit: float) -> UpstreamFailure:
    return UpstreamFailure(
        FailureCode.TOO_LARGE, f"The server sent more than {limit / 1_000_000:.1f} MB: it was cut off"
    )


class _CountedStream(httpx2.AsyncByteStream):
    """The body of an answer: limited, and cut where it is nested too deeply."""

    def __init__(
        self,
        response: httpx2.Response,
        host: str,
        guard: GuardedTransport,
        exchange: Exchange | None = None,
    ) -> None:
        self._response = response
        self._host = host
        self._guard = guard
        self._exchange = exchange
        self._message_bytes = 0
        self._by_line = not response.headers.get("content-type", "").startswith("application/json")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        try:
            async for message in _messages(self._count(self._response.stream), by_line=self._by_line):
                yield cut_nesting(message)
        except httpx2.TransportError as error:
            explain = explain_broken_call if self._exchange else explain_network_error
            raise self._fail(explain(error, self._host)) from error
        except UpstreamFailure as failure:
            raise self._fail(failure) from failure

    async def _count(self, stream: httpx2.AsyncByteStream) -> AsyncIterator[bytes]:
        async for chunk in stream:
            end = chunk.rfind(b"\n") + 1 if self._by_line else 0
            self._message_bytes = len(chunk) - end if end else self._message_bytes + len(chunk)
            await self._guard.count(chunk, self._message_bytes, by_line=self._by_line)
            yield chunk

    def _fail(self, failure: UpstreamFailure) -> Exception:
        if self._exchange is None:
            return self._guard.note(failure)
        self._exchange.fail(failure)
        return BodyCutOff(failure.message)

    async def aclose(self) -> None:
        await self._response.aclose()


async def _messages(chunks: AsyncIterator[bytes], *, by_line: bool) -> AsyncIterator[bytes]:
    """The whole body, or its complete lines: an event has its message on one line."""
    waiting: list[bytes] = []
    async for chunk in chunks:
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1 if by_line else 0
        if end:
            for line in b"".join([*waiting, chunk[:end]]).splitlines(keepends=True):
                yield line
            waiting = []
        waiting.append(chunk[end:])
    yield b"".join(waiting)
