"""Results of `tools/call` in MCP's wire form."""

import json
from collections.abc import Mapping
from typing import Any

from catalog.domain.sizes import compact_json

JsonObject = dict[str, Any]


def answer_text(text: str, structured: Mapping[str, Any] | None = None, *, is_error: bool = False) -> JsonObject:
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
    """A tool error. With `details` the model reads text and structured content alike."""
    if not details:
        return answer_text(message, is_error=True)
    return answer_text(message, {"error": message, **details}, is_error=True)


def count_bytes(value: object) -> int:
    """The size of a value as JSON; 0 for what is none."""
    try:
        return len(compact_json(value).encode("utf-8", "replace"))
    except (TypeError, ValueError, RecursionError):
        return 0
