"""HTTP around MCP: what is read of a request, and the answers that are no messages."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from django.db import DatabaseError, InterfaceError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Send

from catalog.access.callers import BEARER
from catalog.domain.errors import RETRY_AFTER_SECONDS, InvalidInput, ToolSearchError
from catalog.domain.limits import GATEWAY_BODY_BYTES
from catalog.domain.rates import TooManyRequests

PROBLEM = b"application/problem+json"
Reply = Callable[[Send], Awaitable[None]]
logger = logging.getLogger(__name__)


async def read_body(receive: Receive, seconds: float) -> bytes | Reply | None:
    """The whole body, or what is answered in its place; None where the client left."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while len(body) <= GATEWAY_BODY_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    return bytes(body) if len(body) <= GATEWAY_BODY_BYTES else TOO_LARGE
            return TOO_LARGE
    except TimeoutError:
        return problem(408, "Too slow", "The body did not come in time.")


class ReplayedBody:
    """Gives a body that was read once more; afterwards `receive` waits until the client leaves."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._receive = receive
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class Answer:
    """Knows how far an answer has come, to end it where its request was cut short."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_begun = self._is_ended = False

    async def send(self, message: Message) -> None:
        self._is_begun = True
        self._is_ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def finish(self) -> None:
        if not self._is_begun:
            await unauthorized(self._send)
        elif not self._is_ended:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def read_bearer(headers: Headers) -> str:
    given = headers.get("authorization", "")
    return given[len(BEARER) :].strip() if given[: len(BEARER)].lower() == BEARER else ""


def read_environ(request: Request) -> dict[str, Any]:
    """What is noted of a use, under the names that WSGI has for it. The newest revision names the method."""
    return {
        "HTTP_USER_AGENT": request.headers.get("user-agent", ""),
        "PATH_INFO": f"{request.scope['path']} {request.headers.get('mcp-method', '')}",
        "REQUEST_METHOD": request.method,
    }


def explain(error: Exception) -> Reply:
    """The answer to a request that could not be served. Of unexpected errors no text is sent."""
    if isinstance(error, TooManyRequests):
        wait = str(error.retry_after_seconds).encode()
        return problem(429, error.title, str(error), retry_after=wait)
    if isinstance(error, InvalidInput):
        return problem(400, "Bad request", str(error))
    if isinstance(error, DatabaseError | InterfaceError):
        logger.warning("a request could not be answered: %s", error)
        wait = str(RETRY_AFTER_SECONDS).encode()
        return problem(503, "Not available", "The database does not answer.", retry_after=wait)
    if isinstance(error, ToolSearchError):
        return problem(error.status, error.title, str(error))
    logger.error("a request failed", exc_info=error)
    return problem(500, "Internal error", "The request failed; the log tells why.")


async def say_alive(send: Send) -> None:
    await send_answer(send, 200, b"ok\n", content_type=b"text/plain")


async def unauthorized(send: Send) -> None:
    """Clients print this: it says what to do."""
    detail = "Send a key that is in force: Authorization: Bearer <key>."
    await problem(401, "Unauthorized", detail, www_authenticate=b"Bearer")(send)


def problem(status: int, title: str, detail: str, **headers: bytes) -> Reply:
    body = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail}).encode()

    async def answer(send: Send) -> None:
        await send_answer(send, status, body, content_type=PROBLEM, **headers)

    return answer


async def send_json(send: Send, body: bytes) -> None:
    await send_answer(send, 200, body, content_type=b"application/json")


async def send_answer(send: Send, status: int, body: bytes, **headers: bytes) -> None:
    named = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*named, length]})
    await send({"type": "http.response.body", "body": body})


TOO_LARGE = problem(413, "Too large", "A message has at most 1 MiB.")
