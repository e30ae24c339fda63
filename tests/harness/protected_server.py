"""An MCP server inside the test that wants a token of an authorization server: `upstream_fixture` behind it.

with run_protected_server() as place:
    place.url                    # the MCP server; its tool `count` wants the scope of that name
    place.signer                 # the authorization server, of `sign_in_server`
    place.tokens                 # those that came, in order; "" for none
with lend(place): ...            # the same server, as if it were new
"""

import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from tests.harness.sign_in_server import SignInServer, run_sign_in_server
from tests.harness.upstream_fixture import make_server

SCOPE, SCOPED_TOOL, SCOPE_OF_TOOL = "read", "count", "count"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
FindScopes = Callable[[str], frozenset[str] | None]


class ProtectedServer:
    """`metadata` is put in place of what it says of itself; None takes a field out. `answers` has the status
    and headers of a path that answers otherwise.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.port = int(listener.getsockname()[1])
        self.origin = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.origin}/mcp"
        self.metadata_url = f"{self.origin}{RESOURCE_METADATA}/mcp"
        self.mcp = make_server()
        self._app: App = self.mcp.streamable_http_app()
        self._listener = listener
        self.reset()

    def reset(self) -> None:
        """As a new one that nobody signs in to."""
        self.scopes: tuple[str, ...] = (SCOPE,)
        self.issuer = ""
        self.find_scopes: FindScopes = lambda token: None
        self.describes_itself = True
        self.metadata: Mapping[str, Any] = {}
        self.challenge: str | None = None
        self.answers: dict[str, tuple[int, Mapping[str, str]]] = {}
        self.tokens: list[str] = []
        self.paths: list[str] = []
        self.mcp.instructions = None

    @property
    def signer(self) -> SignInServer:
        signer: SignInServer = self._signer
        return signer

    @signer.setter
    def signer(self, signer: SignInServer) -> None:
        self._signer = signer
        self.issuer, self.find_scopes = signer.issuer, signer.find_scopes

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def connection(self, **headers: str) -> Connection:
        return Connection(Transport.HTTP, url=self.url, headers=headers)

    def describe(self) -> dict[str, Any]:
        described = {
            "resource": self.url,
            "authorization_servers": [self.issuer],
            "scopes_supported": list(self.scopes),
        }
        return {name: value for name, value in {**described, **self.metadata}.items() if value is not None}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        self.paths.append(path)
        if path in self.answers:
            await _answer(send, *self.answers[path])
        elif path == "/mcp":
            await self._serve(scope, receive, send)
        elif path == f"{RESOURCE_METADATA}/mcp" and self.describes_itself:
            await _answer(send, 200, {"content-type": "application/json"}, json.dumps(self.describe()))
        else:
            await _answer(send, 404)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        token = headers.get("authorization", "").removeprefix("Bearer ")
        self.tokens.append(token)
        granted = self.find_scopes(token) if token else None
        if granted is None:
            error = ', error="invalid_token"' if token else ""
            await _answer(send, 401, {"www-authenticate": self._challenge(error, self.scopes)})
            return
        body = await _read_body(receive)
        if _called_tool(body) == SCOPED_TOOL and SCOPE_OF_TOOL not in granted:
            error = ', error="insufficient_scope"'
            await _answer(send, 403, {"www-authenticate": self._challenge(error, (SCOPE_OF_TOOL,))})
            return
        await self._app(scope, _receive_again(body, receive), send)

    def _challenge(self, error: str, scopes: tuple[str, ...]) -> str:
        if self.challenge is not None:
            return self.challenge
        named = f'resource_metadata="{self.metadata_url}"' if self.describes_itself else 'realm="mcp"'
        return f'Bearer {named}, scope="{" ".join(scopes)}"{error}'

    @contextmanager
    def running(self) -> Iterator["ProtectedServer"]:
        config = uvicorn.Config(self, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [self._listener]}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.should_exit = True
            thread.join()


def listen() -> socket.socket:
    # Named TCP, or asyncio leaves Nagle's algorithm on and each answer takes 40 ms more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


@contextmanager
def lend(server: ProtectedServer) -> Iterator[ProtectedServer]:
    """A running one, as if it were new, with an authorization server of its own: sooner than another one."""
    server.reset()
    with run_sign_in_server(server.url) as signer:
        server.signer = signer
        yield server


@contextmanager
def run_protected_server() -> Iterator[ProtectedServer]:
    """With an authorization server. The address guard must allow private addresses."""
    with listen() as listener, ProtectedServer(listener).running() as server, lend(server):
        yield server


def _called_tool(body: bytes) -> str | None:
    try:
        message = json.loads(body)
    except ValueError:
        return None
    is_call = isinstance(message, dict) and message.get("method") == "tools/call"
    return message["params"].get("name") if is_call else None


async def _read_body(receive: Receive) -> bytes:
    chunks, is_more = [], True
    while is_more:
        message = await receive()
        chunks.append(message.get("body", b""))
        is_more = message.get("more_body", False)
    return b"".join(chunks)


def _receive_again(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


async def _answer(send: Send, status: int, headers: Mapping[str, str] | None = None, body: str = "") -> None:
    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    content = body.encode()
    length = (b"content-length", str(len(content)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*raw, length]})
    await send({"type": "http.response.body", "body": content})
