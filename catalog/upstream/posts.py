"""Posts the requests of a lease, so that what goes wrong with one costs only that one.

The SDK ends the whole connection where a post raises an error. So none is raised: the exchange has it, and
the SDK gets an empty answer, by which it gives up that request alone.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.upstream.exchange import Exchange
from catalog.upstream.http_failures import explain_broken_call, explain_refusal

SESSION_HEADER = "mcp-session-id"
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)

ASIDE_SECONDS = 10.0  # the SDK sends nothing else meanwhile

Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
Wrap = Callable[[httpx2.Response, str, Exchange], httpx2.Response]


async def carry(request: httpx2.Request, exchange: Exchange, *, send: Send, wrap: Wrap) -> httpx2.Response:
    """The answer to a post; an empty one where there was none, or where the SDK would stumble over it."""
    try:
        answer = await send(request)
    except httpx2.TransportError as error:
        exchange.was_sent = exchange.was_sent or not isinstance(error, NOT_SENT)
        exchange.fail(explain_broken_call(error, request.url.host))
        return httpx2.Response(202)
    except UpstreamFailure as failure:
        exchange.was_sent = exchange.was_sent or failure.code is FailureCode.NOT_MCP
        exchange.fail(failure)
        return httpx2.Response(202)
    exchange.was_sent, exchange.answer = True, answer
    wrapped = wrap(answer, request.url.host, exchange)
    if answer.status_code < 400:
        return wrapped
    return await _read_refusal(request, wrapped, exchange)


async def carry_aside(request: httpx2.Request, *, send: Send) -> httpx2.Response:
    """The same for a notification or an answer of ours, to which nobody waits for an answer."""
    request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": ASIDE_SECONDS}
    try:
        answer = await send(request)
    except (httpx2.TransportError, UpstreamFailure):
        return httpx2.Response(202)
    await answer.aclose()
    if answer.has_redirect_location:
        return httpx2.Response(answer.status_code, headers={"location": answer.headers["location"]})
    return httpx2.Response(202)


async def _read_refusal(
    request: httpx2.Request, answer: httpx2.Response, exchange: Exchange
) -> httpx2.Response:
    """An answer with an error status. Says in the exchange whether the session is lost."""
    body = await _read_json(answer)
    await answer.aclose()
    exchange.is_error_answer = isinstance(body, dict) and isinstance(body.get("error"), dict)
    names_request = exchange.is_error_answer and body.get("id") is not None
    if SESSION_HEADER in request.headers:
        exchange.is_session_lost = answer.status_code == 404 or (
            answer.status_code == 400 and not names_request
        )
    if exchange.can_abort:
        exchange.fail(explain_refusal(answer))
        return httpx2.Response(202)
    return httpx2.Response(answer.status_code, json=body)


async def _read_json(answer: httpx2.Response) -> Any:
    try:
        return json.loads(await answer.aread())
    except (httpx2.StreamError, ValueError, RecursionError):
        return None
