"""The gateway's own tools, as MCP clients see them."""

from collections.abc import Collection, Mapping
from typing import Any

from catalog.domain.limits import GATEWAY_DESCRIBED_NAMES, GATEWAY_SEARCH_TOKENS
from catalog.domain.policy import Policy
from catalog.domain.prompt import DeferredServer, write_server_lines
from sessions.domain.gateway_names import (
    CALL_READ_TOOL,
    CALL_TOOL,
    DESCRIBE_TOOLS,
    READ_RESULT,
    name_search_tool,
)
from sessions.offers.rendering import search_tool

ALWAYS_LOAD = "anthropic/alwaysLoad"

JsonObject = dict[str, Any]
_NAME = {"type": "string", "description": "The tool's name, as a search or a list gives it."}
_CALL_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": _NAME,
        "arguments": {"type": "object", "description": "The tool's arguments, as its input schema asks."},
        "arguments_json": {
            "type": "string",
            "description": "In place of `arguments`: the same as JSON text.",
        },
    },
    "required": ["name"],
}
_READS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


def define_own_tools(policy: Policy, servers: Collection[DeferredServer]) -> list[JsonObject]:
    """All five. `servers` are those whose tools a search finds."""
    return [
        _search_tool(policy, servers),
        _define(
            DESCRIBE_TOOLS,
            "Describe tools",
            f"Give the full definitions, input schemas included, of up to {GATEWAY_DESCRIBED_NAMES} tools by"
            " name.",
            {
                "type": "object",
                "properties": {
                    "names": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                        "maxItems": GATEWAY_DESCRIBED_NAMES,
                    }
                },
                "required": ["names"],
            },
            _READS,
        ),
        _define(
            CALL_READ_TOOL,
            "Call a read-only tool",
            "Call a tool that only reads, by name. Use it where it works: it changes nothing.",
            _CALL_SCHEMA,
            {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": True},
        ),
        _define(
            CALL_TOOL,
            "Call a tool",
            "Call any tool by name. Find it by a search first, and give arguments that fit its input schema.",
            _CALL_SCHEMA,
            {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
        ),
        define_read_result(),
    ]


def define_read_result() -> JsonObject:
    return _define(
        READ_RESULT,
        "Read on in a result",
        "Read on in a result that was cut. The result's last line names the handle and the offset.",
        {
            "type": "object",
            "properties": {
                "handle": {"type": "string"},
                "offset": {"type": "integer", "minimum": 0, "description": "In characters; 0 if left out."},
            },
            "required": ["handle"],
        },
        _READS,
    )


def _search_tool(policy: Policy, servers: Collection[DeferredServer]) -> JsonObject:
    name = name_search_tool(policy.search_tool_name)
    lines = write_server_lines(tuple(servers), budget_tokens=policy.prompt_budget_tokens)
    behind = f" The tools come from these servers:\n{lines}" if lines else ""
    description = (
        "Find tools that are not listed. Give words for what a tool should do: the best matches come with"
        f" their input schemas (up to {GATEWAY_SEARCH_TOKENS} tokens of them), and can be called with"
        f" {CALL_READ_TOOL} or {CALL_TOOL}. `select:name,other_name` gives tools by name; `+word` demands"
        f" that word in the tool's name; an empty query lists what there is.{behind}"
    )
    return _define(name, "Find tools", description, search_tool.schema_for(policy), _READS)


def _define(
    name: str, title: str, description: str, schema: Mapping[str, Any], annotations: Mapping[str, bool]
) -> JsonObject:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": dict(schema),
        "annotations": {"title": title, **annotations},
        "_meta": {ALWAYS_LOAD: True},
    }
