"""Results of `tools/call` in MCP's wire form."""

import json
from collections.abc import Mapping
from typing import Any

from mcp import MCPError

from catalog.domain.sizes import count_message_bytes
from catalog.domain.upstream_calls import UpstreamError

ERROR_DATA_BYTES = 10_000
JsonObject = dict[str, Any]


def answer_text(
    text: str, structured: Mapping[str, Any] | None = None, *, is_error: bool = False
) -> JsonObject:
    """The protocol's newest revision wants `resultType`; older ones drop it."""
    result: JsonObject = {
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
        "resultType": "complete",
    }
    return result if structured is None else {**result, "structuredContent": dict(structured)}


def answer_json(text: str) -> JsonObject:
    """Text and structured content say the same."""
    return answer_text(text, json.loads(text))


def answer_error(message: str, **details: Any) -> JsonObject:
    """A tool error. Text and structured content say the same."""
    if not details:
        return answer_text(message, is_error=True)
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in details.items()]
    return answer_text("\n".join([message, *lines]), {"error": message, **details}, is_error=True)


def pass_error(error: UpstreamError) -> MCPError:
    """A server's error as an error of this answer; data of unlikely size are left out."""
    data = error.data if count_message_bytes(error.data) <= ERROR_DATA_BYTES else None
    return MCPError(code=error.code, message=error.message, data=data)
