"""One request of a lease over HTTP and its answer: posted so that what goes wrong costs this request alone.

The SDK ends the whole connection where a post raises an error, and tells too little of what happened. So none
is raised: the exchange has it, and the SDK gets an empty answer, by which it gives up that request alone.
"""

import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx2

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.upstream.http_failures import explain_broken_call, explain_refusal

SESSION_HEADER = "mcp-session-id"
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
ONE_WAY_SECONDS = 10.0  # the SDK sends nothing else meanwhile


@dataclass(slots=True)
class Exchange:
    """What the transport saw of one request.

    `abort` ends the wait for an answer; it is set where the SDK would wait for ever after a failure.
    """

    can_abort: bool = False
    has_own_token: bool = False  # the server's settings have one as a header
    token: str = field(default="", repr=False)  # of the sign-in with which this request is sent
    abort: Callable[[], None] | None = None
    failure: UpstreamFailure | None = None
    answer: httpx2.Response | None = None
    was_sent: bool = False
    is_posted: bool = False
    is_session_lost: bool = False
    is_error_answer: bool = False  # an error status came with a JSON-RPC error

    def fail(self, failure: UpstreamFailure) -> None:
        """Keep the first failure, because later ones follow from it."""
        self.failure = self.failure or failure
        if self.abort:
            self.abort()

    def takes_post(self) -> bool:
        """Whether a post is this request's: the first one, or one after a redirect.

        Others in the same task answer the server's own requests, or take the request back.
        """
        was_posted, self.is_posted = self.is_posted, True
        return not was_posted or (self.answer is not None and self.answer.has_redirect_location)

    @property
    def may_have_run(self) -> bool:
        return self.was_sent and not self.is_session_lost


# Set while a lease sends a request. The SDK carries it over to the task that posts the request.
current_exchange: ContextVar[Exchange | None] = ContextVar("current_exchange", default=None)

Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
Wrap = Callable[[httpx2.Response, str, Exchange], httpx2.Response]


async def post_request(
    request: httpx2.Request, exchange: Exchange, *, send: Send, wrap: Wrap
) -> httpx2.Response:
    """Post a request. The SDK gets an empty answer in place of none, or of one that would stop it."""
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


async def post_one_way(request: httpx2.Request, *, send: Send) -> httpx2.Response:
    """Post a notification, or an answer of ours: nobody waits for an answer to it."""
    request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": ONE_WAY_SECONDS}
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
        exchange.fail(explain_refusal(answer, has_own_token=exchange.has_own_token))
        return httpx2.Response(202)
    return httpx2.Response(answer.status_code, json=body)


async def _read_json(answer: httpx2.Response) -> Any:
    try:
        return json.loads(await answer.aread())
    except (httpx2.StreamError, ValueError, RecursionError):
        return None
