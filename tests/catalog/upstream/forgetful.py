"""A web server inside the test with MCP sessions of the old era, which forgets or refuses as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection


class ForgetfulServer(ThreadingHTTPServer):
    """`executed` are the names of the tools that were called, `sessions` those that are known.

    `refusal` is what every post of a call gets in place of an answer: a status and a body.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        self.executed: list[str] = []
        self.sessions: set[str] = set()
        self.opened = 0
        self.lost_status, self.lost_body = 404, b""
        self.refusal: tuple[int, bytes] | None = None
        self.hangs_up = False
        self.asks_first = False  # and takes no answer
        self.was_told = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def connection(self) -> Connection:
        return Connection(Transport.HTTP, url=f"http://127.0.0.1:{self.server_address[1]}/mcp")

    def handle_error(self, *_: object) -> None:
        """A client that goes away is what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ForgetfulServer

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, state = message.get("method"), self.server
        session = self.headers.get("mcp-session-id")
        if method == "initialize":
            self._greet(message)
        elif session is not None and session not in state.sessions:
            self._send(state.lost_status, state.lost_body)
        elif method is None:
            state.was_told.set()
            self._send(404, b"")
        elif method != "tools/call":
            error = {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32601, "message": "no"}}
            self._send(
                200 if "id" in message else 202, json.dumps(error).encode() if "id" in message else b""
            )
        elif state.refusal:
            self._send(*state.refusal)
        else:
            self._execute(message)

    def _greet(self, message: dict[str, Any]) -> None:
        state = self.server
        state.opened += 1
        state.sessions.add(f"s{state.opened}")
        about = {"name": "forgetful", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self._send(200, body, **{"mcp-session-id": f"s{state.opened}"})

    def _execute(self, message: dict[str, Any]) -> None:
        self.server.executed.append(message["params"]["name"])
        if self.server.hangs_up and not self.server.asks_first:
            self.close_connection = True
            return
        result = {"content": [{"type": "text", "text": "done"}]}
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        if self.server.asks_first:
            self._ask_before(answer)
        else:
            self._send(200, answer)

    def _ask_before(self, answer: bytes) -> None:
        question = json.dumps({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}).encode()
        self.close_connection = True
        self.server.was_told.clear()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: message\ndata: " + question + b"\n\n")
        self.server.was_told.wait(10)
        if not self.server.hangs_up:
            self.wfile.write(b"event: message\ndata: " + answer + b"\n\n")

    def do_GET(self) -> None:
        self._send(405, b"")

    def do_DELETE(self) -> None:
        self._send(405, b"")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def run_forgetful() -> Iterator[ForgetfulServer]:
    server = ForgetfulServer()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()
