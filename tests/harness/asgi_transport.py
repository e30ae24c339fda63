"""Reaches an ASGI application of this process by HTTP, and reads an answer while it is being written.

httpx2's own transport gives an answer when it is whole, which the stream of a listening client never is.
"""

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import httpx2

Message = MutableMapping[str, Any]


class AsgiTransport(httpx2.AsyncBaseTransport):
    """`requests` are the application's tasks for requests that have not ended."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.requests: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = _Exchange(request)
        task = asyncio.create_task(exchange.run(self._app))
        self.requests.add(task)
        task.add_done_callback(self.requests.discard)
        try:
            await exchange.begun.wait()
        except asyncio.CancelledError:
            exchange.gone.set()
            raise
        if exchange.error is not None:
            raise exchange.error
        return httpx2.Response(exchange.status, headers=exchange.headers, stream=exchange)


class _Exchange(httpx2.AsyncByteStream):
    def __init__(self, request: httpx2.Request) -> None:
        self._request = request
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        self._body = request.stream.__aiter__()
        self._is_sent = False
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.begun = asyncio.Event()
        self.gone = asyncio.Event()
        self.error: Exception | None = None

    async def run(self, app: Any) -> None:
        try:
            await app(self._scope(), self._receive, self._send)
        except Exception as error:
            self.error = error
        finally:
            self._parts.put_nowait(None)
            self.begun.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (part := await self._parts.get()) is not None:
            yield part
        if self.error is not None:
            raise self.error

    async def aclose(self) -> None:
        self.gone.set()

    def _scope(self) -> Message:
        url = self._request.url
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self._request.method,
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.split(b"?")[0],
            "query_string": url.query,
            "server": (url.host, url.port),
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }

    async def _receive(self) -> Message:
        if not self._is_sent:
            try:
                return {"type": "http.request", "body": await anext(self._body), "more_body": True}
            except StopAsyncIteration:
                self._is_sent = True
                return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", []))
            self.begun.set()
            return
        if body := message.get("body", b""):
            self._parts.put_nowait(body)
        if not message.get("more_body", False):
            self._parts.put_nowait(None)
