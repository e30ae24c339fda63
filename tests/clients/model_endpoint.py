"""A model that follows a script: it searches, calls the tool it was told of, and says what the call gave.

It speaks four APIs, and remembers which tools each request offered and which results came back.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.clients.model_dialects import DIALECTS, Call, Dialect, JsonObject, Offered, Reply, Turn

NOT_FOUND = "The search did not name the tool."
IDLE = "Nothing to do."


@dataclass(frozen=True, slots=True)
class Script:
    """What to search for, the tool that must be found, how it is called and with what."""

    query: str
    wanted: str
    caller: str
    arguments: JsonObject


@dataclass
class ScriptedModel:
    script: Script
    url: str = ""
    turns: list[Turn] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def offered(self) -> set[str]:
        """Names of all tools that were offered."""
        return {tool.name for turn in self.turns for tool in turn.tools}

    def reply(self, turn: Turn) -> Reply:
        """The next step of a conversation; requests without our tools are the client's own business."""
        self.turns.append(turn)
        search = _ending_in("search_tools", turn)
        if search is None:
            return IDLE
        if not turn.results:
            return Call(1, search, {"query": self.script.query})
        if len(turn.results) > 1:
            return f"The call gave: {turn.results[-1]}"
        caller = _ending_in(self.script.caller, turn)
        if caller is None or self.script.wanted not in turn.results[0]:
            return NOT_FOUND
        return Call(2, caller, {"name": self.script.wanted, "arguments": self.script.arguments})

    def heard(self) -> str:
        """What happened, for the message of a test that fails."""
        lines = [f"offered {sorted(tool.name for tool in turn.tools)}" for turn in self.turns[-1:]]
        lines += [f"result: {result[:500]}" for turn in self.turns[-1:] for result in turn.results]
        return "\n".join([f"{len(self.turns)} requests", *lines, f"not understood: {self.unknown}"])


def _ending_in(name: str, turn: Turn) -> Offered | None:
    """The tool of this name: clients put names of their own before it."""
    return next((tool for tool in turn.tools if tool.name.endswith(name)), None)


class Handler(BaseHTTPRequestHandler):
    model: ScriptedModel

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        path = urlsplit(self.path).path
        dialect = next((known for end, known in DIALECTS.items() if path.endswith(end)), None)
        if dialect is None:
            self.model.unknown.append(self.path)
            self._send("application/json", b'{"input_tokens": 100, "totalTokens": 100}')
        elif asked.get("stream") or "stream" in path:
            self._send("text/event-stream", b"".join(_stream(dialect, asked, self.model)))
        else:
            answer = dialect.whole(asked, self.model.reply(dialect.read(asked)))
            self._send("application/json", json.dumps(answer).encode())

    def do_GET(self) -> None:
        self.model.unknown.append(self.path)
        self._send("application/json", b'{"object": "list", "data": [], "models": []}')

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: what matters is asserted."""


def _stream(dialect: Dialect, asked: dict[str, Any], model: ScriptedModel) -> Iterator[bytes]:
    for name, event in dialect.events(asked, model.reply(dialect.read(asked))):
        yield f"event: {name}\n".encode() if name else b""
        yield f"data: {json.dumps(event)}\n\n".encode()
    if dialect.__name__ == "Chat":
        yield b"data: [DONE]\n\n"


@contextmanager
def running_model(script: Script) -> Iterator[ScriptedModel]:
    model = ScriptedModel(script)
    handler = type("ModelHandler", (Handler,), {"model": model})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        model.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
