"""Turns any error of a listing or a call into one failure with a message for admins."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import httpx2
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from pydantic import ValidationError

from catalog.domain.connection import SIGN_IN_CODES, FailureCode, UpstreamFailure
from catalog.upstream.exchange import Exchange
from catalog.upstream.http_failures import explain_refusal

# More than is shown in the end: a secret must not be cut in two before it is masked.
LONGEST_QUOTE = 2000

# With these the SDK itself ends a request over HTTP; its texts are all there is to know them by.
_NO_ANSWER = (
    (CONNECTION_CLOSED, "SSE stream ended", FailureCode.DISCONNECTED),
    (CONNECTION_CLOSED, "SSE stream failed", FailureCode.TOO_LARGE),
    (CONNECTION_CLOSED, "Connection closed", FailureCode.DISCONNECTED),
    (PARSE_ERROR, "Failed to parse", FailureCode.NOT_MCP),
    (INVALID_REQUEST, "Unexpected content type", FailureCode.NOT_MCP),
    (INVALID_REQUEST, "server answered a request with 202", FailureCode.NOT_MCP),
)
_WORDS_FOR_NO_ANSWER = {
    FailureCode.DISCONNECTED: "The server broke off before it answered: it may have done what it was asked",
    FailureCode.TOO_LARGE: "The server sent an event that is too large, or broken: it was cut off",
    FailureCode.NOT_MCP: "The server's answer to the call is no MCP message",
}


class Link(Protocol):
    """A connection to a server that knows its own failures."""

    @property
    def stderr_tail(self) -> str: ...

    @property
    def noise(self) -> str:
        """The first output of the server that was no message."""

    def connect(self) -> AbstractAsyncContextManager[tuple[Any, Any]]: ...

    def failure(self) -> UpstreamFailure | None:
        """The cause, where this side saw it; more precise than the session's error."""

    def ended(self) -> UpstreamFailure:
        """Whether the server ended by itself."""


def explain_failure(error: BaseException, link: Link, *, is_listing: bool) -> UpstreamFailure:
    """The failure behind an error, which may be an exception group."""
    if known := link.failure():
        return known
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, UpstreamFailure):
            return leaf
    for leaf in leaves:
        if isinstance(leaf, MCPError):
            return _explain_answer(leaf, link, is_listing=is_listing)
    return _explain_other(leaves[0])


def explain_call(error: Exception, exchange: Exchange) -> UpstreamFailure | None:
    """Why a call over a connection that still stands got no answer; None where `error` is the answer."""
    if exchange.failure:
        return exchange.failure
    if not isinstance(error, MCPError):
        return _explain_other(error)
    answer = exchange.answer
    if answer is not None and answer.status_code >= 300:
        refusal = explain_refusal(answer, has_own_token=exchange.has_own_token)
        return None if exchange.is_error_answer and refusal.code not in SIGN_IN_CODES else refusal
    for code, words, meaning in _NO_ANSWER:
        if error.code == code and error.message.startswith(words):
            return UpstreamFailure(meaning, _WORDS_FOR_NO_ANSWER[meaning])
    return None


def explain_timeout(link: Link, *, is_listing: bool, seconds: float) -> UpstreamFailure:
    if known := link.failure():
        return known
    seconds = round(seconds, 1)
    if link.noise:
        return UpstreamFailure(
            FailureCode.NOT_MCP,
            f"The server did not answer within {seconds:g} s, and wrote what is no MCP message: {link.noise}",
        )
    if is_listing:
        return UpstreamFailure(
            FailureCode.LIST_TIMEOUT, f"The server connected, but did not list its tools within {seconds:g} s"
        )
    return UpstreamFailure(
        FailureCode.CONNECT_TIMEOUT, f"The server did not answer MCP's greeting within {seconds:g} s"
    )


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error


def _explain_answer(error: MCPError, link: Link, *, is_listing: bool) -> UpstreamFailure:
    if error.code == CONNECTION_CLOSED:
        return link.ended()
    if error.code == UNSUPPORTED_PROTOCOL_VERSION:
        return _wrong_protocol(error.message)
    if is_listing:
        return UpstreamFailure(
            FailureCode.LIST_REFUSED, f"The server answered tools/list with an error: {_quote(error.message)}"
        )
    return UpstreamFailure(
        FailureCode.NOT_MCP,
        f"Something answers, but not as an MCP server does: {_quote(error.message)}",
    )


def _explain_other(error: BaseException) -> UpstreamFailure:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        return UpstreamFailure(
            FailureCode.NOT_MCP, f"The server's answer is not what MCP asks for: {place}: {first['msg']}"
        )
    if isinstance(error, httpx2.SSEError):
        return _explain_events(error)
    # The SDK raises this bare; its text is all there is to know it by.
    if isinstance(error, RuntimeError) and "protocol version" in str(error):
        return _wrong_protocol(str(error))
    return UpstreamFailure(
        FailureCode.UNEXPECTED, f"The connection failed: {type(error).__name__}: {_quote(str(error))}"
    )


def _explain_events(error: httpx2.SSEError) -> UpstreamFailure:
    """The SDK's SSE client has a fixed limit for one event."""
    if "limit" in str(error):
        return UpstreamFailure(
            FailureCode.TOO_LARGE,
            "The server sent an event of more than 1 MB, too large for SSE: use streamable HTTP, or pages",
        )
    return UpstreamFailure(FailureCode.NOT_MCP, "What answers there is no stream of events")


def _wrong_protocol(said: str) -> UpstreamFailure:
    return UpstreamFailure(
        FailureCode.WRONG_PROTOCOL,
        f"The server speaks a version of MCP that is not known here, so update it: {_quote(said)}",
    )


def _quote(text: str) -> str:
    return text[:LONGEST_QUOTE]
