"""An MCP server over HTTP, inside the test, that asks for a token."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "Bearer right-and-proper-token"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("open_door", "close_door")]
METHOD_NOT_FOUND = -32601


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers.get("authorization") != TOKEN:
            self._send(401)
        elif "id" not in message:
            self._send(202)
        else:
            self._send(200, {"jsonrpc": "2.0", "id": message["id"], **_answer(message)})

    def do_GET(self) -> None:
        self._send(405)

    def do_DELETE(self) -> None:
        self._send(405)

    def _send(self, status: int, body: dict[str, Any] | None = None) -> None:
        content = json.dumps(body).encode() if body else b""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        about = {"name": "locked", "version": "1"}
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
    if message["method"] == "tools/list":
        return {"result": {"tools": TOOLS}}
    return {"error": {"code": METHOD_NOT_FOUND, "message": "unknown"}}


@contextmanager
def running_locked_server() -> Iterator[str]:
    """The address of the server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
