"""A stdio MCP server that misbehaves. Standard library only.

`misbehaving_server.py listing FILE` lists the tools that the file holds at that moment;
`misbehaving_server.py flood` answers the request for its tools with requests of its own, without end.
"""

import json
import sys
from pathlib import Path
from typing import Any

PROTOCOL = "2025-11-25"
FLOOD_MESSAGES = 2_000_000


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def serve(kind: str, file: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        method, identity = request.get("method"), request.get("id")
        if identity is None or method is None:
            continue
        if method == "initialize":
            greeting = {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}}
            say({"id": identity, "result": {**greeting, "serverInfo": {"name": kind, "version": "1"}}})
        elif method == "tools/list" and kind == "flood":
            flood()
        elif method == "tools/list":
            say({"id": identity, "result": {"tools": json.loads(Path(file).read_text())}})
        else:
            say({"id": identity, "error": {"code": -32601, "message": "Method not found"}})


def flood() -> None:
    text = {"type": "text", "text": "x" * 500}
    asked = {"messages": [{"role": "user", "content": text}], "maxTokens": 1}
    for number in range(FLOOD_MESSAGES):
        say({"id": f"flood-{number}", "method": "sampling/createMessage", "params": asked})


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
