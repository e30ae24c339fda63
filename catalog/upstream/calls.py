"""Sends one request over an open session, and gives the result as it came over the wire."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
from mcp.client.session import ClientSession
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    Request,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from catalog.domain.connection import JsonObject, UpstreamFailure
from catalog.upstream.exchange import Exchange, current_exchange
from catalog.upstream.message_filter import MessageFilter
from catalog.upstream.progress import Hide, OnProgress, ProgressRelay

CALL_TOOL = "tools/call"
# The SDK's own, which a caller may not set, and what asks for messages that nobody here reads.
RESERVED_META = frozenset(
    {
        *(PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY),
        *(LOG_LEVEL_META_KEY, "progressToken"),
    }
)
# Any object: the wire form with all its fields. The SDK has checked it against the revision before.
_WIRE_RESULT: TypeAdapter[Any] = TypeAdapter(dict[str, Any])


class CallBroken(Exception):
    """A call got no answer. `is_lease_lost`: the connection was lost, and so every call over it."""

    def __init__(self, failure: UpstreamFailure, *, may_have_run: bool, is_lease_lost: bool) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.may_have_run = may_have_run
        self.is_lease_lost = is_lease_lost


class RequestAborted(Exception):
    """The wait for an answer was ended here: none can come. Why is in the exchange."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request to a server. `params` are in wire form; `input_schema` is that of the tool that is called."""

    method: str
    params: JsonObject
    on_progress: OnProgress | None = None
    input_schema: Mapping[str, Any] | None = None


async def send_request(
    session: ClientSession,
    request: UpstreamRequest,
    exchange: Exchange,
    *,
    messages: MessageFilter,
    progress_per_second: float,
    hide: Hide,
) -> JsonObject:
    """The result, as `hide` leaves it. Raises what the SDK raises, or RequestAborted. Cancelling it cancels
    the server's work.
    """
    messages.begin_call()
    if request.method == CALL_TOOL and request.input_schema is not None:
        _seed_headers(session, str(request.params.get("name")), request.input_schema)
    reset = current_exchange.set(exchange)
    try:
        async with _relay(messages, request.on_progress, progress_per_second, hide) as token:
            params = with_meta(request.params, token)
            result = await _send(session, Request[Any, Any](method=request.method, params=params), exchange)
    finally:
        current_exchange.reset(reset)
    return cast("JsonObject", hide(result))


async def _send(session: ClientSession, request: Request[Any, Any], exchange: Exchange) -> JsonObject:
    with anyio.CancelScope() as scope:
        if exchange.can_abort:
            exchange.abort = scope.cancel
        return cast("JsonObject", await session.send_request(request, _WIRE_RESULT))
    raise RequestAborted


def with_meta(params: JsonObject, token: int | None) -> JsonObject:
    """The parameters with the caller's `_meta`, less what is the SDK's, and with our own progress token."""
    given = params.get("_meta")
    meta = {key: value for key, value in given.items() if key not in RESERVED_META} if given else {}
    if token is not None:
        meta["progressToken"] = token
    rest = {key: value for key, value in params.items() if key != "_meta"}
    return {**rest, "_meta": meta} if meta else rest


def _seed_headers(session: ClientSession, tool: str, input_schema: Mapping[str, Any]) -> None:
    """Let the SDK send the headers that a modern server asks for; it would list the tools for that."""
    is_modern = session.protocol_version in MODERN_PROTOCOL_VERSIONS
    if is_modern and find_invalid_x_mcp_header(input_schema) is None:
        session._x_mcp_header_maps[tool] = x_mcp_header_map(input_schema)  # noqa: SLF001 - no public way


@asynccontextmanager
async def _relay(
    messages: MessageFilter, on_progress: OnProgress | None, per_second: float, hide: Hide
) -> AsyncIterator[int | None]:
    """Gives the token by which progress is asked for; None where nobody wants any."""
    if on_progress is None:
        yield None
        return
    relay = ProgressRelay(on_progress, per_second=per_second, hide=hide)
    token = messages.add_relay(relay)
    task = asyncio.create_task(relay.run())
    try:
        yield token
    finally:
        messages.remove_relay(token)
        task.cancel()
    await relay.flush()
