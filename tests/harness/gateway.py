"""The gateway in this process, on a thread of its own, and clients of both eras that speak with it.

with run_gateway() as gateway:
    gateway.ask(key, "tools/list").result          # one message, as JSON
    with gateway.connect(key, mode="legacy") as agent:
        agent.do("list_tools")                     # the SDK's client
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    Implementation,
)

from catalog.domain.upstream_calls import LeaseState
from sessions.gateway.application import Gateway, Options
from tests.harness.asgi_transport import AsgiTransport

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = (MODERN, LEGACY)
MODES = ("auto", "legacy")
ADDRESS = "http://localhost:8001/mcp"
WAIT_SECONDS = 10.0
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


@dataclass(frozen=True)
class Answer:
    """What came back for one message. `messages` are all of the stream, the answer last."""

    status: int
    headers: httpx2.Headers
    text: str
    messages: list[dict[str, Any]]

    @property
    def result(self) -> dict[str, Any]:
        assert self.messages, (self.status, self.text)
        assert "result" in self.messages[-1], self.messages[-1]
        result: dict[str, Any] = self.messages[-1]["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        assert self.messages, (self.status, self.text)
        assert "error" in self.messages[-1], self.messages[-1]
        error: dict[str, Any] = self.messages[-1]["error"]
        return error

    @property
    def said(self) -> str:
        """The texts of a tool's result."""
        return "\n".join(block["text"] for block in self.result["content"] if block["type"] == "text")

    @property
    def is_tool_error(self) -> bool:
        return self.result.get("isError") is True

    @property
    def problem(self) -> dict[str, Any]:
        """What a refusal before MCP says."""
        problem: dict[str, Any] = json.loads(self.text)
        return problem


@dataclass
class Agent:
    """A client of the SDK that is connected."""

    portal: BlockingPortal
    client: Client

    def do(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call the client's method of this name."""
        return self.portal.call(partial(getattr(self.client, method), *arguments, **options))


@dataclass
class Heard:
    """What a listener was told by now, and whether its stream has ended."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    is_over: bool = False

    @property
    def methods(self) -> list[str]:
        return [message.get("method", "") for message in self.messages]


@dataclass
class RunningGateway:
    portal: BlockingPortal
    transport: AsgiTransport
    gateway: Gateway

    @contextmanager
    def beside(self, **options: Any) -> "Iterator[RunningGateway]":
        """Another gateway in the same event loop."""
        with _started(self.portal, options) as running:
            yield running

    def leases(self) -> list[LeaseState]:
        """The connections to servers."""
        return self.gateway._pool.snapshot()

    def send(self, method: str = "POST", *, key: str = "", url: str = ADDRESS, **options: Any) -> Answer:
        """One request as it is; `more_headers` are sent beside others of their names."""
        headers = {**_headers(key), **options.pop("headers", {})}
        sent = [*headers.items(), *options.pop("more_headers", ())]
        return self.portal.call(partial(self._send, method, url, headers=sent, **options))

    def ask(self, key: str, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Answer:
        """One message: `era`, `meta`, `query`, `agent` (User-Agent), `capabilities` and `headers`."""
        return self.send(key=key, **_write(method, params or {}, **options))

    def call(self, key: str, tool: str, arguments: Any = None, **options: Any) -> Answer:
        """A call of a tool by its name."""
        params = {"name": tool, "arguments": arguments or {}}
        return self.ask(key, "tools/call", {**params, **options.pop("params", {})}, **options)

    @contextmanager
    def begin(self, key: str, method: str, params: Mapping[str, Any], **options: Any) -> "Iterator[Pending]":
        """The same as `ask`, while it is under way; leaving drops the connection."""
        written = _write(method, params, **options)
        headers = {**_headers(key), **written.pop("headers")}
        task = self.portal.start_task_soon(partial(self._send, "POST", headers=headers, **written))
        try:
            yield Pending(task)
        finally:
            task.cancel()

    @contextmanager
    def listen(self, key: str, params: Mapping[str, Any]) -> "Iterator[Heard]":
        """A stream of announcements, from when it is acknowledged; leaving drops the connection."""
        heard = Heard()
        written = _write("subscriptions/listen", params)
        task = self.portal.start_task_soon(partial(self._listen, heard, key, written))
        try:
            wait_until(lambda: heard.messages or task.done())
            assert not task.done(), task.result()
            yield heard
        finally:
            task.cancel()

    async def _listen(self, heard: "Heard", key: str, written: dict[str, Any]) -> None:
        headers = {**_headers(key), **written.pop("headers")}
        async with (
            httpx2.AsyncClient(transport=self.transport, timeout=None) as http,
            http.stream("POST", headers=headers, **written) as answer,
        ):
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    heard.messages.append(json.loads(line.removeprefix("data:")))
        heard.is_over = True

    @contextmanager
    def connect(
        self,
        key: str,
        *,
        mode: Any = "auto",
        query: str = "",
        transport: httpx2.AsyncBaseTransport | None = None,
        **options: Any,
    ) -> Iterator[Agent]:
        """A client of the SDK; `options` are its own."""
        http = httpx2.AsyncClient(
            transport=transport or self.transport,
            headers={"Authorization": f"Bearer {key}"},
            timeout=WAIT_SECONDS,
        )
        options.setdefault("client_info", Implementation(name="tester", version="1"))
        made = Client(streamable_http_client(ADDRESS + query, http_client=http), mode=mode, **options)
        with self.portal.wrap_async_context_manager(made) as client:
            yield Agent(self.portal, client)

    async def _send(self, method: str, url: str, **options: Any) -> Answer:
        async with httpx2.AsyncClient(transport=self.transport, timeout=None) as http:
            async with asyncio.timeout(60):
                answer = await http.request(method, url, **options)
        return Answer(answer.status_code, answer.headers, answer.text, _read_messages(answer))


@dataclass
class Pending:
    """A message whose answer has not come yet."""

    _task: Any

    @property
    def is_done(self) -> bool:
        return bool(self._task.done())

    def wait(self, seconds: float = WAIT_SECONDS) -> Answer:
        answer: Answer = self._task.result(seconds)
        return answer


def wait_until(is_so: Callable[[], object], seconds: float = WAIT_SECONDS) -> None:
    """Wait for a condition. Fails when it does not come about in time."""
    ends_at = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends_at, "it did not come about in time"
        time.sleep(0.01)


@contextmanager
def run_gateway(**options: Any) -> Iterator[RunningGateway]:
    """From its start to its end. Nothing that it began may be left then."""
    before = set(threading.enumerate())
    with _child_watcher_kept(), start_blocking_portal() as portal:
        tasks = portal.call(_all_tasks)
        with _started(portal, options) as running:
            yield running
        portal.call(_require_no_tasks, tasks)
    wait_until(lambda: set(threading.enumerate()) <= before)


@contextmanager
def _started(portal: BlockingPortal, options: dict[str, Any]) -> Iterator[RunningGateway]:
    gateway = portal.call(_make, options)
    with portal.wrap_async_context_manager(_Lifespan(gateway)):
        yield RunningGateway(portal, AsgiTransport(gateway), gateway)


@contextmanager
def _child_watcher_kept() -> Iterator[None]:
    """A gateway sets the process's own for its event loop, which ends with it here."""
    if sys.version_info >= (3, 12):
        yield
        return
    kept = asyncio.get_child_watcher()
    try:
        yield
    finally:
        asyncio.set_child_watcher(kept)


async def _make(options: dict[str, Any]) -> Gateway:
    given = {
        "process": "here:1",
        "version": "1",
        "threads": 4,
        "body_seconds": 5.0,
        "hosts": ("localhost", "127.0.0.1"),
        "count_call": _count_nothing,
    }
    return Gateway(Options(**{**given, **options}))


def _count_nothing(outcome: str, via: str, added_seconds: float) -> None:
    pass


async def _all_tasks() -> set[asyncio.Task[Any]]:
    """But this one, and the one that sse-starlette keeps for each thread."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return {task for task in others if "_shutdown_watcher" not in repr(task.get_coro())}


async def _require_no_tasks(before: set[asyncio.Task[Any]]) -> None:
    """But for the portal's own, every task has ended, or does soon."""
    ends_at = time.monotonic() + WAIT_SECONDS
    while left := await _all_tasks() - before:
        assert time.monotonic() < ends_at, left
        await asyncio.sleep(0.01)


class _Lifespan:
    """Starts and stops an application as a server does."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app
        self._told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def __aenter__(self) -> None:
        self._task = asyncio.ensure_future(
            self._app({"type": "lifespan", "state": {}}, self._told.get, self._heard.put)
        )
        await self._turn("startup")

    async def __aexit__(self, *_: object) -> None:
        await self._turn("shutdown")
        await self._task

    async def _turn(self, name: str) -> None:
        await self._told.put({"type": f"lifespan.{name}"})
        answer = await asyncio.wait_for(self._heard.get(), WAIT_SECONDS)
        assert answer["type"] == f"lifespan.{name}.complete", answer


def _headers(key: str) -> dict[str, str]:
    accept = {"Accept": "application/json, text/event-stream"}
    return {**accept, "Authorization": f"Bearer {key}"} if key else accept


def _write(
    method: str,
    params: Mapping[str, Any],
    *,
    era: str = MODERN,
    meta: Mapping[str, Any] | None = None,
    query: str = "",
    agent: str = "raw/1",
    capabilities: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The request for a message, as a client of that era sends it."""
    given = dict(params)
    sent = {"MCP-Protocol-Version": era, "User-Agent": agent, "Content-Type": "application/json"}
    own_meta = dict(meta or {})
    if era == MODERN:
        sent["Mcp-Method"] = method
        if method in _NAMED:
            sent["Mcp-Name"] = str(given.get(_NAMED[method], ""))
        own_meta |= {
            PROTOCOL_VERSION_META_KEY: era,
            CLIENT_CAPABILITIES_META_KEY: dict(capabilities or {}),
            CLIENT_INFO_META_KEY: {"name": "raw", "version": "1"},
        }
    if own_meta:
        given["_meta"] = own_meta
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    return {"url": ADDRESS + query, "headers": {**sent, **(headers or {})}, "json": body}


def _read_messages(answer: httpx2.Response) -> list[dict[str, Any]]:
    kind = answer.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        lines = [line.removeprefix("data:").strip() for line in answer.text.splitlines()]
        return [json.loads(line) for line in lines if line.startswith("{")]
    if kind.startswith("application/json") and answer.text:
        read = json.loads(answer.text)
        return [read] if isinstance(read, dict) else read
    return []
