"""Connects to a server over streamable HTTP or SSE."""

from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from catalog.domain.addresses import AddressRules
from catalog.domain.choices import Transport
from catalog.domain.connection import (
    Connection,
    FailureCode,
    Limits,
    UpstreamFailure,
    why_header_refused,
)
from catalog.upstream.exchange import current_exchange
from catalog.upstream.guard import GuardedTransport, Resolver
from catalog.upstream.http_failures import explain_status

# For one of a host's addresses: the next is tried after that.
ADDRESS_TIMEOUT_SECONDS = 5.0


@dataclass(slots=True, repr=False)
class Bearer:
    """The token by which this service signs in to a server; empty where it does not. A renewed one takes its
    place while the connection is open. Requests of a lease have their own, in their exchange.
    """

    token: str = ""


def has_own_token(connection: Connection, token: str) -> bool:
    """Whether what is sent without a sign-in's token is one from the server's settings."""
    return not token and "authorization" in {name.lower() for name in connection.headers}


class _BearerAuth(httpx2.Auth):
    """Sends the token to the origin of the server's own address alone."""

    def __init__(self, bearer: Bearer, url: str) -> None:
        self.bearer = bearer
        self._origin = _origin_of(httpx2.URL(url))

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        exchange = current_exchange.get()
        token = exchange.token if exchange else self.bearer.token
        if token and _origin_of(request.url) == self._origin:
            request.headers["Authorization"] = f"Bearer {token}"
        yield request


def _origin_of(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}[url.scheme]


class HttpLink:
    """One conversation over HTTP. The caller enforces the deadlines."""

    stderr_tail = ""
    noise = ""

    def __init__(
        self,
        connection: Connection,
        *,
        rules: AddressRules,
        limits: Limits,
        resolver: Resolver,
        bearer: Bearer,
    ) -> None:
        _check_url(connection.url)
        _check_headers(connection)
        self._connection = connection
        self._auth = _BearerAuth(bearer, connection.url)
        self._limits = limits
        is_sse = connection.transport is Transport.SSE
        # Over streamable HTTP a server may well refuse the GET and DELETE that the SDK tries.
        self._guard = GuardedTransport(
            rules=rules,
            limits=limits,
            resolver=resolver,
            telling_methods=frozenset({"GET", "POST"} if is_sse else {"POST"}),
        )

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[Any, Any]]:
        if self._connection.transport is Transport.SSE:
            async with sse_client(self._connection.url, httpx_client_factory=self._make_client) as streams:
                yield streams
            return
        async with (
            self._make_client() as client,
            streamable_http_client(
                self._connection.url, http_client=client, max_sse_event_size=self._limits.max_message_bytes
            ) as streams,
        ):
            yield streams

    def opened(self) -> None:
        """The greeting is over, and so is what went wrong in it: a server may lack the newest revision."""
        self._guard.is_open = True
        self._guard.failure = self._guard.last_answer = None

    def failure(self) -> UpstreamFailure | None:
        if self._guard.failure:
            return self._guard.failure
        if self._guard.last_answer is None:
            return None
        return explain_status(
            self._guard.last_answer, has_own_token=has_own_token(self._connection, self._auth.bearer.token)
        )

    def ended(self) -> UpstreamFailure:
        return UpstreamFailure(
            FailureCode.DISCONNECTED, "The server closed the connection before it answered"
        )

    def _make_client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """A client that reads nothing from the environment. The parameters are those of the SDK's factory."""
        return httpx2.AsyncClient(
            transport=self._guard,
            auth=self._auth,
            headers={**self._connection.headers, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(None, connect=ADDRESS_TIMEOUT_SECONDS),
            trust_env=False,
        )


def _check_url(url: str) -> None:
    try:
        parts = httpx2.URL(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.host)
    except (httpx2.InvalidURL, UnicodeError):
        is_usable = False
    if not is_usable:
        raise UpstreamFailure(
            FailureCode.INVALID_ADDRESS,
            "The address must be a whole URL that begins with http:// or https://",
        )


def _check_headers(connection: Connection) -> None:
    for name, value in connection.headers.items():
        if why := why_header_refused(name):
            shown = ascii(name[:100])[1:-1]
            raise UpstreamFailure(FailureCode.INVALID_ADDRESS, f"The header {shown} {why}")
        if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable()):
            shown = name if name.isascii() and name.isprintable() else "One"
            raise UpstreamFailure(
                FailureCode.INVALID_ADDRESS, f"{shown}: a header may hold printable ASCII characters only"
            )
