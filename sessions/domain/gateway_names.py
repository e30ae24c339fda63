"""The names by which MCP clients call tools through the gateway."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from catalog.domain.names import ToolId, cut_name, settle_clashes

# Clients put their own prefix in front and have 64 characters for all of it.
MAX_CHARS = 47
_PREFIX = "mcp__"
_CALLABLE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

DESCRIBE_TOOLS = "describe_tools"
CALL_READ_TOOL = "call_read_tool"
CALL_TOOL = "call_tool"
READ_RESULT = "read_result"
FIXED_NAMES = (DESCRIBE_TOOLS, CALL_READ_TOOL, CALL_TOOL, READ_RESULT)
DEFAULT_SEARCH_TOOL = "search_tools"


class NameStyle(StrEnum):
    """Whether tools go by names with their server, or by their own where no two clash."""

    QUALIFIED = "qualified"
    OWN = "own"


def name_search_tool(chosen: str) -> str:
    """The policy's name for the search tool, unless another of the gateway's own tools has it."""
    return DEFAULT_SEARCH_TOOL if chosen in FIXED_NAMES else chosen


def name_tools(qualified: Mapping[ToolId, str], style: NameStyle, *, search_tool: str) -> dict[ToolId, str]:
    """Name all tools that a key may call, from their qualified names. Depends on the set alone.

    No tool is named by another's qualified name, since calls take those too.
    """
    reserved = {*FIXED_NAMES, search_tool}
    own = _own_names(qualified, reserved.union(qualified.values())) if style is NameStyle.OWN else {}
    reserved.update(name for name in qualified.values() if name.startswith(_PREFIX))
    names = {
        tool_id: _shorten(name.removeprefix(_PREFIX), tool_id)
        for tool_id, name in qualified.items()
        if tool_id not in own
    }

    def end(tool_id: ToolId, digits: int) -> str:
        plain = qualified[tool_id].removeprefix(_PREFIX)
        return cut_name(plain, tool_id, digits, most_chars=MAX_CHARS)

    return own | settle_clashes(names, end, reserved=reserved | set(own.values()))


def _shorten(name: str, tool_id: ToolId) -> str:
    return name if len(name) <= MAX_CHARS else cut_name(name, tool_id, most_chars=MAX_CHARS)


def _own_names(tool_ids: Iterable[ToolId], reserved: Collection[str]) -> dict[ToolId, str]:
    tool_ids = list(tool_ids)
    counts = Counter(tool_id.tool for tool_id in tool_ids)
    return {
        tool_id: tool_id.tool
        for tool_id in tool_ids
        if counts[tool_id.tool] == 1 and tool_id.tool not in reserved and _CALLABLE.fullmatch(tool_id.tool)
    }
