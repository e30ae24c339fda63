"""HTTP to authorization servers, and to what describes them: guarded, limited, and with words of its own."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from math import inf
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from catalog.domain import limits
from catalog.domain.addresses import AddressRules, why_address_refused
from catalog.domain.connection import FailureCode, Limits, UpstreamFailure
from catalog.domain.oauth import host_of
from catalog.upstream.guard import GuardedTransport, Resolver, resolve_host

REQUEST_SECONDS = 5.0
USER_AGENT = "toolsearch"
TOO_MANY_REQUESTS = 429
RETRY_AFTER_DIGITS = 9
# What tells of the address that was given; everything else tells of the server behind it.
_OF_THE_ADDRESS = frozenset({FailureCode.BLOCKED_ADDRESS, FailureCode.INVALID_ADDRESS})
_OF_THE_ANSWER = frozenset({FailureCode.TOO_LARGE, FailureCode.NOT_MCP})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Network:
    """How authorization servers are reached. `give_up_at` is by the monotonic clock, for all of what is said
    over it; each conversation has a limit of its own besides.
    """

    rules: AddressRules
    resolver: Resolver = resolve_host
    give_up_at: float = inf

    def within(self, seconds: float) -> Self:
        """The same with a deadline from now on, for several conversations together."""
        return replace(self, give_up_at=time.monotonic() + seconds)


class OAuthHttp:
    """One conversation with an authorization server. The caller enforces the deadline of the whole.

    Nothing here follows a redirect, and a server at a public address has to be at https.
    """

    def __init__(self, rules: AddressRules, resolver: Resolver = resolve_host) -> None:
        self._rules = rules
        self._guard = GuardedTransport(
            rules=rules,
            limits=Limits(max_total_bytes=limits.OAUTH_BYTES, max_message_bytes=limits.OAUTH_BYTES),
            resolver=resolver,
            telling_methods=frozenset(),
        )
        self._client = httpx2.AsyncClient(
            transport=self._guard, timeout=httpx2.Timeout(REQUEST_SECONDS), trust_env=False
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """The answer with its body read, whatever its status. Raises UpstreamFailure where there is none."""
        host = host_of(str(request.url))
        await self.require_private_or_https(str(request.url))
        # Requests that the SDK builds have none of the client's own headers.
        request.headers.setdefault("User-Agent", USER_AGENT)
        request.headers["Accept"] = "application/json"
        request.headers["Accept-Encoding"] = "identity"
        try:
            response = await self._client.send(request)
            await response.aread()
        except UpstreamFailure as failure:
            raise _reword(failure, host) from None
        except httpx2.HTTPError:
            raise is_down(host, "it does not answer") from None
        return response

    async def require_private_or_https(self, address: str) -> None:
        """Raises UpstreamFailure for a plain http address, unless it is on this machine or a private network
        that the settings allow.
        """
        url = httpx2.URL(address)
        if url.scheme == "https":
            return
        host = url.raw_host.decode("ascii")
        try:
            found = await self._guard.allowed_addresses(host, url.port or 0)
        except UpstreamFailure as failure:
            raise _reword(failure, host_of(address)) from None
        if any(why_address_refused(one, AddressRules()) is None for one in found):
            raise is_unusable(
                f"The sign-in server at {host_of(address)} is not at https: nothing is sent to it"
            )


def run_within(
    converse: Callable[[OAuthHttp], Coroutine[Any, Any, T]], network: Network, host: str, seconds: float
) -> T:
    """What a conversation gives, which may take so long. Raises UpstreamFailure."""
    left = network.give_up_at - time.monotonic()

    async def within_time() -> T:
        async with asyncio.timeout(min(seconds, left)), OAuthHttp(network.rules, network.resolver) as http:
            return await converse(http)

    if left <= 0:
        raise is_down(host, "it did not answer in time")
    try:
        return asyncio.run(within_time())
    except TimeoutError:
        limit = f"within {seconds:g} s" if seconds <= left else "in time"
        raise is_down(host, f"it did not answer {limit}") from None


def read_object(response: httpx2.Response) -> dict[str, Any] | None:
    """The JSON object in an answer; None where there is none."""
    try:
        found = json.loads(response.content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def refuse_failing(response: httpx2.Response, host: str) -> None:
    """Raises UpstreamFailure where the server itself fails: that says nothing of what it has."""
    status = response.status_code
    if status >= 500 or status == TOO_MANY_REQUESTS:
        wanted = response.headers.get("retry-after", "")
        is_number = wanted.isascii() and wanted.isdigit() and len(wanted) <= RETRY_AFTER_DIGITS
        raise is_down(
            host,
            f"it answers with HTTP status {status}",
            retry_after_seconds=int(wanted) if is_number else 0,
        )


def is_down(host: str, why: str, *, retry_after_seconds: float = 0) -> UpstreamFailure:
    return UpstreamFailure(
        FailureCode.SIGN_IN_SERVER_DOWN,
        f"The sign-in server at {host} cannot be used now: {why}",
        retry_after_seconds=retry_after_seconds,
    )


def is_unusable(message: str) -> UpstreamFailure:
    return UpstreamFailure(FailureCode.SIGN_IN_UNUSABLE, message)


def _reword(failure: UpstreamFailure, host: str) -> UpstreamFailure:
    if failure.code in _OF_THE_ADDRESS:
        return UpstreamFailure(failure.code, f"Signing in leads to {host}. {failure.message}")
    if failure.code in _OF_THE_ANSWER:
        return is_unusable(f"The sign-in server at {host} gave an answer that is too large or cannot be read")
    return is_down(host, failure.message[:1].lower() + failure.message[1:])
