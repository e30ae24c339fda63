"""The gateway as an ASGI application: keys, hosts and sizes are checked before MCP is spoken."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from catalog.domain.keys import read_prefix
from catalog.domain.limits import GATEWAY_BODY_BYTES, GATEWAY_OPEN_STREAMS
from catalog.domain.upstream_calls import PoolLimits
from catalog.upstream.leases import LeasePool
from catalog.upstream.stdio import watch_children_without_threads
from sessions.domain.gateway_names import CALL_READ_TOOL, CALL_TOOL
from sessions.gateway.callers import Caller, View, admit, read_view
from sessions.gateway.calling import Calls, CountCall
from sessions.gateway.clients import CALLER, present_caller
from sessions.gateway.handlers import ToolHandlers
from sessions.gateway.hosts import AllowedHosts
from sessions.gateway.housekeeping import Housekeeping, Refusals
from sessions.gateway.http import (
    TOO_LARGE,
    Answer,
    ReplayedBody,
    Reply,
    explain,
    problem,
    read_bearer,
    read_body,
    read_environ,
    say_alive,
    send_json,
    unauthorized,
)
from sessions.gateway.open_calls import OpenCalls
from sessions.gateway.quick_search import answer_search
from sessions.gateway.relaying import Relay
from sessions.gateway.server import make_server
from sessions.gateway.signed_in import SignedInRequests
from sessions.gateway.streams import Listeners, OpenRequests
from sessions.gateway.threads import Threads

PATH, HEALTH_PATH = "/mcp", "/healthz"
QUICK_METHODS = frozenset(
    {"server/discover", "ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list"}
)


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


class _Admitted(NamedTuple):
    """Who calls, and the body of the answer where it came with the key's check."""

    caller: Caller
    answer: bytes | None


def _name_called_tool(headers: Headers) -> str:
    """The tool that is called by the headers of the newest revision; else empty. They are compared with the
    message later.
    """
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
        self._signed_in = SignedInRequests(self._pool)
        self._open_calls = OpenCalls()
        calls = Calls(
            self._signed_in,
            self._threads,
            self._open_calls,
            count_call=options.count_call,
            note_refused=self._refusals.note,
        )
        relay = Relay(self._signed_in, self._threads, self._open_calls, note_refused=self._refusals.note)
        tools = ToolHandlers(calls, self._threads)
        server = make_server(tools, relay, self._listeners, version=options.version)
        self._server_info = server.server_info_stamp
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
        body = await read_body(receive, self._options.body_seconds)
        if body is None:
            return
        if not isinstance(body, bytes):
            await body(send)
            return
        request = Request(scope)
        admitted = await self._check_key(request, body)
        if not isinstance(admitted, _Admitted):
            await admitted(send)
        elif admitted.answer is not None:
            await send_json(send, admitted.answer)
        else:
            await self._serve_caller(admitted.caller, request, ReplayedBody(body, receive).receive, send)

    async def _check_key(self, request: Request, body: bytes) -> _Admitted | Reply:
        try:
            view = read_view(request.scope["query_string"].decode("latin-1"))
            admitted = await self._threads.run(self._admit, request, view, body)
        except Exception as error:  # each has its answer, and an unknown one must not end the server
            return explain(error)
        return admitted or unauthorized

    def _admit(self, request: Request, view: View, body: bytes) -> _Admitted | None:
        """On a thread: the key's check, and a search right after it."""
        caller = admit(read_bearer(request.headers), view, read_environ(request))
        if caller is None:
            return None
        if _name_called_tool(request.headers) != caller.offer.search_name:
            return _Admitted(caller, None)
        return _Admitted(caller, answer_search(caller, request, body, self._server_info))

    def _find_refusal(self, scope: Scope) -> Reply | None:
        """The answer to what is no message of a client to this gateway. Whether it lives, anybody may ask."""
        if scope["path"] == HEALTH_PATH:
            return say_alive
        headers = Headers(scope=scope)
        if why := self._hosts.find_refusal(headers.get("host", ""), headers.get("origin")):
            return problem(421 if why.is_host else 403, why.title, why.detail)
        if scope["path"] != PATH:
            return problem(404, "Not found", f"MCP is spoken at {PATH}.")
        if scope["method"] != "POST":
            return problem(
                405, "Method not allowed", "The gateway keeps no sessions: only POST.", allow=b"POST"
            )
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > GATEWAY_BODY_BYTES:
            return TOO_LARGE
        # Before a body is read; whether the key is in force is asked afterwards.
        return None if read_prefix(read_bearer(headers)) else unauthorized

    async def _serve_caller(self, caller: Caller, request: Request, receive: Receive, send: Send) -> None:
        """The request as the SDK answers it; ends with its key."""
        answer, scope = Answer(send), {**request.scope, CALLER: caller}
        async with self._requests.opened(caller.key_id) as opened:
            present_caller.set(caller)
            manager = self._direct if _is_quick(request.headers, caller) else self._streaming
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
            self._signed_in.close()


def _make_manager(server: Server[Any], *, json_response: bool) -> StreamableHTTPSessionManager:
    """Hosts are checked here, before keys."""
    return StreamableHTTPSessionManager(
        server, json_response=json_response, stateless=True, max_request_body_size=GATEWAY_BODY_BYTES
    )


def _is_quick(headers: Headers, caller: Caller) -> bool:
    """Whether the answer comes at once, as JSON: nothing to stream, nothing to cancel. The newest revision
    says in headers what is asked; the SDK checks them against the message.
    """
    if headers.get("mcp-protocol-version") not in MODERN_PROTOCOL_VERSIONS:
        return False  # an older one's are compared with nothing
    if headers.get("mcp-method") != "tools/call":
        return headers.get("mcp-method") in QUICK_METHODS
    name = _name_called_tool(headers)
    return name in caller.offer.own_names and name not in {CALL_TOOL, CALL_READ_TOOL}
