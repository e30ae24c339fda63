"""The only way out for HTTP: checks the address it connects to and limits what comes back."""

import socket
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

import anyio.to_thread
import httpx2

from catalog.domain.addresses import AddressRules, why_address_refused
from catalog.domain.connection import FailureCode, Limits, UpstreamFailure
from catalog.upstream.http_failures import explain_network_error
from catalog.upstream.nesting import cut_nesting

Resolver = Callable[[str, int], Sequence[str]]


def resolve_host(host: str, port: int) -> Sequence[str]:
    """IP addresses of a name, in the order to try them. Raises OSError where there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Resolves each host once, refuses it unless every address is allowed, and connects to that address.

    Every request passes here, redirects included. A failure is raised and also kept in `failure`, since the
    SDK logs and drops some errors.
    """

    def __init__(
        self, *, rules: AddressRules, limits: Limits, resolver: Resolver, telling_methods: frozenset[str]
    ) -> None:
        """`telling_methods` are those whose responses show the server's state; see `last_answer`."""
        # The environment is trusted for the files of certificate authorities only; proxies are the client's.
        self._inner = httpx2.AsyncHTTPTransport(trust_env=True)
        self._rules = rules
        self._limits = limits
        self._resolver = resolver
        self._addresses: dict[str, Sequence[str]] = {}
        self._received_bytes = 0
        self._telling_methods = telling_methods
        self.failure: UpstreamFailure | None = None
        self.last_answer: httpx2.Response | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._send(request)
        except httpx2.TransportError as error:
            raise self.note(explain_network_error(error, request.url.host)) from error
        except UpstreamFailure as failure:
            self.note(failure)
            raise
        if request.method in self._telling_methods:
            self.last_answer = response
        return httpx2.Response(
            status_code=response.status_code,
            headers=response.headers,
            stream=_CountedStream(response, request.url.host, self),
            extensions=response.extensions,
        )

    def note(self, failure: UpstreamFailure) -> UpstreamFailure:
        """Keep the first failure, because later ones follow from it."""
        self.failure = self.failure or failure
        return failure

    async def aclose(self) -> None:
        await self._inner.aclose()

    def count(self, chunk: bytes) -> None:
        self._received_bytes += len(chunk)
        if self._received_bytes > self._limits.max_total_bytes:
            limit_mb = self._limits.max_total_bytes / 1_000_000
            raise self.note(
                UpstreamFailure(
                    FailureCode.TOO_LARGE, f"The server sent more than {limit_mb:.1f} MB: it was cut off"
                )
            )

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.raw_host.decode("ascii")
        addresses = await self._allowed_addresses(host, request.url.port or 0)
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

    async def _allowed_addresses(self, host: str, port: int) -> Sequence[str]:
        if host not in self._addresses:
            self._addresses[host] = await self._look_up(host, port)
        return self._addresses[host]

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


class _CountedStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, host: str, guard: GuardedTransport) -> None:
        self._response = response
        self._host = host
        self._guard = guard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        try:
            is_json = self._response.headers.get("content-type", "").startswith("application/json")
            async for message in _messages(self._count(self._response.stream), by_line=not is_json):
                yield cut_nesting(message)
        except httpx2.TransportError as error:
            raise self._guard.note(explain_network_error(error, self._host)) from error

    async def _count(self, stream: httpx2.AsyncByteStream) -> AsyncIterator[bytes]:
        async for chunk in stream:
            self._guard.count(chunk)
            yield chunk

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
