"""The APIs that agents speak to models: what a request offers and has learned, and the answer to it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as the model sees it; some clients put them in a namespace."""

    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A request: its tools, and the results of the calls so far."""

    tools: tuple[Offered, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    number: int
    tool: Offered
    arguments: JsonObject


Reply = Call | str
Event = tuple[str, JsonObject]


def _plain(content: object) -> str:
    """The text of a result, whatever parts it is in."""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


class Messages:
    """Anthropic's Messages API."""

    @staticmethod
    def read(asked: JsonObject) -> Turn:
        blocks = [
            block
            for message in asked["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        results = tuple(_plain(block.get("content")) for block in blocks if block["type"] == "tool_result")
        return Turn(tuple(Offered(tool["name"]) for tool in asked.get("tools", ())), results)

    @staticmethod
    def events(asked: JsonObject, reply: Reply) -> Iterator[Event]:
        message = {**Messages.whole(asked, reply), "content": [], "stop_reason": None}
        yield "message_start", {"type": "message_start", "message": message}
        if isinstance(reply, Call):
            block: JsonObject = {**_tool_use(reply), "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": reply}
        yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        stop = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}}
        yield "message_stop", {"type": "message_stop"}

    @staticmethod
    def whole(asked: JsonObject, reply: Reply) -> JsonObject:
        content = _tool_use(reply) if isinstance(reply, Call) else {"type": "text", "text": reply}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": [content],
            "stop_reason": _stop_reason(reply),
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }


def _tool_use(call: Call) -> JsonObject:
    return {
        "type": "tool_use",
        "id": f"toolu_{call.number}",
        "name": call.tool.name,
        "input": call.arguments,
    }


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if isinstance(reply, Call) else "end_turn"


class Responses:
    """OpenAI's Responses API."""

    @staticmethod
    def read(asked: JsonObject) -> Turn:
        items = asked["input"] if isinstance(asked["input"], list) else []
        results = tuple(
            _plain(item["output"]) for item in items if item.get("type") == "function_call_output"
        )
        tools = tuple(
            Offered(inner["name"], tool["name"] if "tools" in tool else "")
            for tool in asked.get("tools", ())
            for inner in tool.get("tools", [tool])
            if "name" in inner
        )
        return Turn(tools, results)

    @staticmethod
    def events(asked: JsonObject, reply: Reply) -> Iterator[Event]:
        done = Responses.whole(asked, reply)
        begun = {**done, "output": [], "status": "in_progress"}
        yield "response.created", {"type": "response.created", "response": begun}
        item = done["output"][0]
        for kind in ("response.output_item.added", "response.output_item.done"):
            yield kind, {"type": kind, "output_index": 0, "item": item}
        yield "response.completed", {"type": "response.completed", "response": done}

    @staticmethod
    def whole(asked: JsonObject, reply: Reply) -> JsonObject:
        usage = {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 110,
        }
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "model": asked["model"],
            "output": [_output_item(reply)],
            "status": "completed",
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
        }


def _output_item(reply: Reply) -> JsonObject:
    if isinstance(reply, str):
        content = [{"type": "output_text", "text": reply, "annotations": []}]
        return {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    return {
        "type": "function_call",
        "id": f"fc_{reply.number}",
        "call_id": f"call_{reply.number}",
        "name": reply.tool.name,
        **({"namespace": reply.tool.namespace} if reply.tool.namespace else {}),
        "arguments": json.dumps(reply.arguments),
        "status": "completed",
    }


class Chat:
    """OpenAI's chat completions, which many others speak."""

    @staticmethod
    def read(asked: JsonObject) -> Turn:
        results = tuple(
            _plain(message["content"]) for message in asked["messages"] if message["role"] == "tool"
        )
        return Turn(tuple(Offered(tool["function"]["name"]) for tool in asked.get("tools", ())), results)

    @staticmethod
    def events(asked: JsonObject, reply: Reply) -> Iterator[Event]:
        begun = {**Chat.whole(asked, reply), "object": "chat.completion.chunk"}
        usage = begun.pop("usage")
        delta = begun.pop("choices")[0]["message"]
        for call in delta.get("tool_calls", ()):
            call["index"] = 0
        yield "", {**begun, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        end = {"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}
        yield "", {**begun, "choices": [end], "usage": usage}

    @staticmethod
    def whole(asked: JsonObject, reply: Reply) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
        if isinstance(reply, Call):
            function = {"name": reply.tool.name, "arguments": json.dumps(reply.arguments)}
            message["tool_calls"] = [{"id": f"call_{reply.number}", "type": "function", "function": function}]
        return {
            "id": "chat_1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": _finish_reason(reply), "message": message}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if isinstance(reply, Call) else "stop"


class Gemini:
    """Google's generateContent."""

    @staticmethod
    def read(asked: JsonObject) -> Turn:
        parts = [part for content in asked["contents"] for part in content.get("parts", ())]
        results = tuple(
            _plain(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part
        )
        tools = tuple(
            Offered(function["name"])
            for tool in asked.get("tools", ())
            for function in tool.get("functionDeclarations", ())
        )
        return Turn(tools, results)

    @staticmethod
    def events(asked: JsonObject, reply: Reply) -> Iterator[Event]:
        yield "", Gemini.whole(asked, reply)

    @staticmethod
    def whole(_: JsonObject, reply: Reply) -> JsonObject:
        part: JsonObject = {"text": reply}
        if isinstance(reply, Call):
            part = {"functionCall": {"name": reply.tool.name, "args": reply.arguments}}
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
        return {"candidates": [candidate], "usageMetadata": usage}


Dialect = type[Messages] | type[Responses] | type[Chat] | type[Gemini]
DIALECTS: Mapping[str, Dialect] = {
    "/messages": Messages,
    "/responses": Responses,
    "/chat/completions": Chat,
    ":generateContent": Gemini,
    ":streamGenerateContent": Gemini,
}
