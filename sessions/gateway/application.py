"""The gateway as an ASGI application: keys, hosts and sizes are checked before MCP is spoken."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import anyio
from django.db import DatabaseError, InterfaceError
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from catalog.access.callers import BEARER
from catalog.domain.errors import RETRY_AFTER_SECONDS, InvalidInput, ToolSearchError
from catalog.domain.keys import read_prefix
from catalog.domain.limits import GATEWAY_BODY_BYTES, GATEWAY_OPEN_STREAMS
from catalog.domain.rates import TooManyRequests
from catalog.domain.upstream_calls import PoolLimits
from catalog.upstream.leases import LeasePool
from catalog.upstream.stdio import watch_children_without_threads
from sessions.domain.gateway_names import CALL_READ_TOOL, CALL_TOOL
from sessions.gateway.callers import Caller, View, admit, read_view
from sessions.gateway.calling import Calls, CountCall
from sessions.gateway.clients import AHEAD, CALLER, present_caller
from sessions.gateway.handlers import ToolHandlers
from sessions.gateway.hosts import AllowedHosts
from sessions.gateway.housekeeping import Housekeeping, Refusals
from sessions.gateway.open_calls import OpenCalls
from sessions.gateway.relaying import Relay
from sessions.gateway.searching import search_ahead
from sessions.gateway.server import make_server
from sessions.gateway.streams import Listeners, OpenRequests
from sessions.gateway.threads import Threads

PATH, HEALTH_PATH = "/mcp", "/healthz"
QUICK_METHODS = frozenset(
    {"server/discover", "ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list"}
)
PROBLEM = b"application/problem+json"
logger = logging.getLogger(__name__)

Reply = Callable[[Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the wiring decides. `process` names this process among all gateways."""

    process: str
    version: str
    threads: int
    body_seconds: float
    hosts: tuple[str, ...]
    count_call: CountCall
    pool_limits: PoolLimits = field(default_factory=PoolLimits)


class _Asked(NamedTuple):
    """What a request brings for its key's check. `tool` is what its headers say that it calls, if any."""

    key: str
    view: View
    environ: dict[str, Any]
    tool: str
    body: bytes


class _Found(NamedTuple):
    """Who calls, and the answer where it was a search."""

    caller: Caller
    answer: dict[str, Any] | None


def _admit(asked: _Asked) -> _Found | None:
    """The key's check, and a search right after it: what agents wait for most, in one job."""
    caller = admit(asked.key, asked.view, asked.environ)
    if caller is None:
        return None
    is_search = asked.tool == caller.offer.search_name
    return _Found(caller, search_ahead(caller, asked.body) if is_search else None)


def _name_tool(headers: Headers) -> str:
    """Empty where no tool is called, or by an older revision. The SDK compares it with the message later."""
    is_modern = headers.get("mcp-protocol-version") in MODERN_PROTOCOL_VERSIONS
    is_call = is_modern and headers.get("mcp-method") == "tools/call"
    return headers.get("mcp-name", "") if is_call else ""


class Gateway:
    """One process's gateway. An instance serves one event loop, from its start to its end."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._hosts = AllowedHosts(options.hosts)
        self._threads = Threads(options.threads)
        self._requests = OpenRequests()
        self._listeners = Listeners(self._threads, most_of_a_key=GATEWAY_OPEN_STREAMS)
        self._refusals = Refusals()
        self._pool = LeasePool(options.pool_limits, environment=os.environ, on_refused=self._refusals.note)
        self._open_calls = OpenCalls()
        calls = Calls(
            self._pool,
            self._threads,
            self._open_calls,
            count_call=options.count_call,
            note_refused=self._refusals.note,
        )
        relay = Relay(self._pool, self._threads, self._open_calls, note_refused=self._refusals.note)
        tools = ToolHandlers(calls, self._threads)
        server = make_server(tools, relay, self._listeners, version=options.version)
        self._streaming = _make_manager(server, json_response=False)
        self._direct = _make_manager(server, json_response=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._find_refusal(scope)
        if refusal is not None:
            await refusal(send)
            return
        body = await _read_body(receive, self._options.body_seconds)
        if body is None:
            return
        if not isinstance(body, bytes):
            await body(send)
            return
        found = await self._find_caller(scope, body)
        if isinstance(found, _Found):
            await self._serve_caller(found, scope, _ReadBody(body, receive).receive, send)
        else:
            await found(send)

    async def _find_caller(self, scope: Scope, body: bytes) -> _Found | Reply:
        headers = Headers(scope=scope)
        try:
            view = read_view(scope["query_string"].decode("latin-1"))
            key, environ = _read_bearer(headers), _environ(scope, headers)
            asked = _Asked(key, view, environ, _name_tool(headers), body)
            found = await self._threads.run(_admit, asked)
        except Exception as error:  # each has its answer, and an unknown one must not end the server
            return _explain(error)
        return found or _unauthorized

    def _find_refusal(self, scope: Scope) -> Reply | None:
        """The answer to what is no message of a client to this gateway. Whether it lives, anybody may ask."""
        if scope["path"] == HEALTH_PATH:
            return _say_alive
        headers = Headers(scope=scope)
        if why := self._hosts.find_refusal(headers.get("host", ""), headers.get("origin")):
            return _problem(421 if why.is_host else 403, why.title, why.detail)
        if scope["path"] != PATH:
            return _problem(404, "Not found", f"MCP is spoken at {PATH}.")
        if scope["method"] != "POST":
            return _problem(
                405, "Method not allowed", "The gateway keeps no sessions: only POST.", allow=b"POST"
            )
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > GATEWAY_BODY_BYTES:
            return _TOO_LARGE
        # Before a body is read; whether the key is in force is asked afterwards.
        return None if read_prefix(_read_bearer(headers)) else _unauthorized

    async def _serve_caller(self, found: _Found, scope: Scope, receive: Receive, send: Send) -> None:
        """The request as the SDK answers it; ends with its key."""
        caller, answer = found.caller, _Answer(send)
        scope = {**scope, CALLER: caller, AHEAD: found.answer}
        async with self._requests.opened(caller.key_id) as opened:
            present_caller.set(caller)
            manager = self._direct if _is_quick(scope, caller) else self._streaming
            await manager.handle_request(scope, receive, answer.send)
        if opened.cancelled_caught:
            await answer.finish()

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._streaming.run(), self._direct.run(), self._running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        housekeeping = Housekeeping(
            process=self._options.process,
            pool=self._pool,
            threads=self._threads,
            requests=self._requests,
            listeners=self._listeners,
            refusals=self._refusals,
            open_calls=self._open_calls,
        )
        watch_children_without_threads()
        task = asyncio.create_task(housekeeping.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            self._listeners.close()
            await self._pool.aclose()
            await housekeeping.shut_down()
            self._threads.close()


def _make_manager(server: Server[Any], *, json_response: bool) -> StreamableHTTPSessionManager:
    """Hosts are checked here, before keys."""
    return StreamableHTTPSessionManager(
        server, json_response=json_response, stateless=True, max_request_body_size=GATEWAY_BODY_BYTES
    )


def _is_quick(scope: Scope, caller: Caller) -> bool:
    """Whether the answer comes at once, as JSON: nothing to stream, nothing to cancel. The newest revision
    says in headers what is asked; the SDK checks them against the message.
    """
    headers = Headers(scope=scope)
    if headers.get("mcp-protocol-version") not in MODERN_PROTOCOL_VERSIONS:
        return False  # an older one's are compared with nothing
    if headers.get("mcp-method") != "tools/call":
        return headers.get("mcp-method") in QUICK_METHODS
    name = _name_tool(headers)
    return name in caller.offer.own_names and name not in {CALL_TOOL, CALL_READ_TOOL}


class _Answer:
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
            await _unauthorized(self._send)
        elif not self._is_ended:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def _read_body(receive: Receive, seconds: float) -> bytes | Reply | None:
    """The whole body, or what is answered in its place; None where the client left."""
    body = bytearray()
    with anyio.move_on_after(seconds):
        while len(body) <= GATEWAY_BODY_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if not message.get("more_body", False):
                return bytes(body) if len(body) <= GATEWAY_BODY_BYTES else _TOO_LARGE
        return _TOO_LARGE
    return _problem(408, "Too slow", "The body did not come in time.")


class _ReadBody:
    """Gives a body that was read; afterwards `receive` waits for the client to leave, for ever."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._receive = receive
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _read_bearer(headers: Headers) -> str:
    given = headers.get("authorization", "")
    return given[len(BEARER) :].strip() if given[: len(BEARER)].lower() == BEARER else ""


def _environ(scope: Scope, headers: Headers) -> dict[str, Any]:
    """What is noted of a use, under the names that WSGI has for it. The newest revision names the method."""
    return {
        "HTTP_USER_AGENT": headers.get("user-agent", ""),
        "PATH_INFO": f"{scope['path']} {headers.get('mcp-method', '')}",
        "REQUEST_METHOD": scope["method"],
    }


def _explain(error: Exception) -> Reply:
    if isinstance(error, TooManyRequests):
        wait = str(error.retry_after_seconds).encode()
        return _problem(429, error.title, str(error), retry_after=wait)
    if isinstance(error, InvalidInput):
        return _problem(400, "Bad request", str(error))
    if isinstance(error, DatabaseError | InterfaceError):
        logger.warning("a request could not be answered: %s", error)
        wait = str(RETRY_AFTER_SECONDS).encode()
        return _problem(503, "Not available", "The database does not answer.", retry_after=wait)
    if isinstance(error, ToolSearchError):
        return _problem(error.status, error.title, str(error))
    logger.error("a request failed", exc_info=error)
    return _problem(500, "Internal error", "The request failed; the log tells why.")


async def _say_alive(send: Send) -> None:
    await _answer(send, 200, b"ok\n", content_type=b"text/plain")


async def _unauthorized(send: Send) -> None:
    """Clients print this: it says what to do."""
    detail = "Send a key that is in force: Authorization: Bearer <key>."
    await _problem(401, "Unauthorized", detail, www_authenticate=b"Bearer")(send)


def _problem(status: int, title: str, detail: str, **headers: bytes) -> Reply:
    body = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail}).encode()

    async def answer(send: Send) -> None:
        await _answer(send, status, body, content_type=PROBLEM, **headers)

    return answer


async def _answer(send: Send, status: int, body: bytes, **headers: bytes) -> None:
    named = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*named, length]})
    await send({"type": "http.response.body", "body": body})


_TOO_LARGE = _problem(413, "Too large", "A message has at most 1 MiB.")
