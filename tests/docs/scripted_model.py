"""A model that follows a script: it searches, calls the tool it found, and says that it is done.

It speaks the Messages API, the Responses API and chat completions, and refuses what the real ones refuse.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WANTED = "mcp__github__create_issue"
ARGUMENTS = {"owner": "acme", "repo": "site", "title": "Login bug"}
QUERY = {"query": "create a github issue", "max_results": 3}
DONE = "The issue is open."


def answer_messages(asked: dict[str, Any]) -> dict[str, Any]:
    names = {tool["name"]: tool for tool in asked["tools"]}
    assert not all(tool.get("defer_loading") for tool in asked["tools"]), "every tool is deferred"
    results = [
        block
        for message in asked["messages"]
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
    ]
    referred = [
        part["tool_name"]
        for block in results
        if isinstance(block["content"], list)
        for part in block["content"]
        if part["type"] == "tool_reference"
    ]
    assert set(referred) <= set(names), "a reference is not among the tools"
    is_hosted = any(tool.get("type", "").startswith("tool_search_tool_") for tool in asked["tools"])
    if any(isinstance(block["content"], str) for block in results):
        content: list[dict[str, Any]] = [{"type": "text", "text": DONE}]
    elif is_hosted or WANTED in referred:
        assert WANTED in names
        content = [{"type": "tool_use", "id": "toolu_2", "name": WANTED, "input": ARGUMENTS}]
    else:
        content = [{"type": "tool_use", "id": "toolu_1", "name": "search_tools", "input": QUERY}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": content,
        "stop_reason": "tool_use" if content[0]["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def answer_responses(asked: dict[str, Any]) -> dict[str, Any]:
    search = next(tool for tool in asked["tools"] if tool["type"] == "tool_search")
    given = {item["type"]: item for item in asked["input"] if "type" in item}
    offered = [tool for space in asked["tools"] for tool in space.get("tools", [space])]
    found = [tool["name"] for tool in given.get("tool_search_output", {}).get("tools", [])]
    if "function_call_output" in given:
        item: dict[str, Any] = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": DONE, "annotations": []}],
        }
    elif search.get("execution") == "client" and WANTED not in found:
        item = {
            "type": "tool_search_call",
            "id": "tsc_1",
            "call_id": "call_1",
            "execution": "client",
            "arguments": QUERY,
            "status": "completed",
        }
    else:
        assert WANTED in {*found, *(tool.get("name") for tool in offered)}
        item = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_2",
            "name": WANTED,
            "arguments": json.dumps(ARGUMENTS),
            "status": "completed",
        }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": asked["model"],
        "output": [item],
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def answer_chat(asked: dict[str, Any]) -> dict[str, Any]:
    names = [tool["function"]["name"] for tool in asked["tools"]]
    results = [message for message in asked["messages"] if message["role"] == "tool"]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if len(results) == 2:
        message["content"] = DONE
    else:
        name, arguments = (WANTED, ARGUMENTS) if results else ("search_tools", QUERY)
        assert name in names
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call_{len(results)}", "type": "function", "function": function}]
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "created": 0,
        "model": asked["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }


ANSWERS = {
    "/v1/messages": answer_messages,
    "/v1/responses": answer_responses,
    "/v1/chat/completions": answer_chat,
}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            status, answer = 200, ANSWERS[self.path.partition("?")[0]](asked)
        except (AssertionError, KeyError, TypeError) as error:
            status, answer = 400, {"error": {"message": f"{type(error).__name__}: {error}"}}
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: what matters is asserted."""


@contextmanager
def running_model() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
