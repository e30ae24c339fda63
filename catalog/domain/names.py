"""Qualified names, by which models call tools."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from catalog.domain.choices import Kind

MAX_NAME_CHARS = 64
# The second and third are for endings that clash themselves: eight digits can be made to clash on purpose.
_ENDING_DIGITS = (8, 16, 32)
_FOREIGN_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, order=True)
class ToolId:
    """A tool as its server names it: the three parts that make it one of a kind."""

    kind: Kind
    server: str
    tool: str


def qualify(tool_id: ToolId) -> str:
    """The name of a tool that clashes with no other."""
    plain = _plain_name(tool_id)
    return plain if len(plain) <= MAX_NAME_CHARS else end_name(tool_id)


def end_name(tool_id: ToolId, digits: int = _ENDING_DIGITS[0]) -> str:
    """The name of a tool that clashes or whose name is too long: cut, then `_` and hex digits."""
    return cut_name(_plain_name(tool_id), tool_id, digits, most_chars=MAX_NAME_CHARS)


def cut_name(name: str, tool_id: ToolId, digits: int = _ENDING_DIGITS[0], *, most_chars: int) -> str:
    """The name, cut, with the ending that tells its tool from all others."""
    text = "\0".join((tool_id.kind, tool_id.server, tool_id.tool))
    ending = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{name[: most_chars - digits - 1]}_{ending}"


def name_all(tool_ids: Iterable[ToolId], *, reserved: Collection[str]) -> dict[ToolId, str]:
    """Name a whole set at once, independent of its order.

    Every tool of a clash gets the ending. `reserved` are names already taken: those given before, which stay
    with their tools, and the search tools'.
    """
    return settle_clashes({tool_id: qualify(tool_id) for tool_id in tool_ids}, end_name, reserved=reserved)


def settle_clashes(
    names: dict[ToolId, str], end: Callable[[ToolId, int], str], *, reserved: Collection[str]
) -> dict[ToolId, str]:
    """Give every tool of a clash the name that `end` makes with an ending of so many digits."""
    for digits in _ENDING_DIGITS:
        while clashing := _clashing_without_ending(names, end, reserved, digits):
            names.update({tool_id: end(tool_id, digits) for tool_id in clashing})
    return names


def candidate_names(tool_id: ToolId) -> set[str]:
    """Every name that `name_all` could give to a tool, to be looked up before naming it."""
    return {qualify(tool_id), *(end_name(tool_id, digits) for digits in _ENDING_DIGITS)}


def _clashing_without_ending(
    names: Mapping[ToolId, str],
    end: Callable[[ToolId, int], str],
    reserved: Collection[str],
    digits: int,
) -> list[ToolId]:
    """The tools of a clash that do not have an ending of this many digits yet."""
    holders: dict[str, list[ToolId]] = {}
    for tool_id, name in names.items():
        holders.setdefault(name, []).append(tool_id)
    return [
        tool_id
        for name, group in holders.items()
        if len(group) > 1 or name in reserved
        for tool_id in group
        if name != end(tool_id, digits)
    ]


def _plain_name(tool_id: ToolId) -> str:
    prefix = "" if tool_id.kind == Kind.BUILTIN else f"{tool_id.kind}__{tool_id.server}__"
    return _FOREIGN_CHARACTER.sub("_", prefix + tool_id.tool)
