"""One tool's definition as text, in every format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal
from zlib import crc32

from catalog.domain.prompt import first_sentence
from catalog.domain.sizes import compact_json

Shape = Literal[
    "mcp", "stub", "summary", "anthropic", "anthropic_deferred", "openai", "openai_deferred", "route"
]

_EMPTY: tuple[object, ...] = (None, {}, "")
# Short, and asked for again whenever a tool beside it is discovered.
_KEPT = frozenset({"summary", "route"})
# Lists are written and compressed in chunks of about so many tools.
CHUNK_TOOLS = 100
STUB_SCHEMA = compact_json({"type": "object", "additionalProperties": True})


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class ToolText:
    """A definition as it is sent. `name` is the qualified name; `schema` and `more` are JSON already.

    `id` is the tool's row, or negative for a session's own tool. `more` are the fields that only MCP knows,
    as `,"key":value` pairs. `ends_chunk` depends on the name alone; `serial` is unique in this process.
    """

    id: int
    digest: str
    name: str
    tool: str
    server: str
    kind: str
    title: str
    description: str
    schema: str
    more: str
    parameters: tuple[str, ...]
    chars: int
    ends_chunk: bool
    serial: int = field(default_factory=count().__next__, repr=False)
    _kept: dict[str, str] = field(default_factory=dict, repr=False)

    def write(self, shape: Shape) -> str:
        """Reuses the serialised schema, by far the longest part."""
        if shape not in _KEPT:
            return _WRITERS[shape](self)
        if shape not in self._kept:
            self._kept[shape] = _WRITERS[shape](self)
        return self._kept[shape]

    @property
    def stub_chars(self) -> int:
        return len(self.tool) + len(self.description) + len(STUB_SCHEMA)


def write_text(
    *,
    id: int,
    digest: str,
    name: str,
    server: str,
    kind: str,
    definition: Mapping[str, Any],
    chars: int,
) -> ToolText:
    """Make the text of a definition in MCP's form."""
    schema = definition.get("inputSchema") or {}
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    named = ("name", "description", "inputSchema")
    more = {key: value for key, value in definition.items() if key not in named and value not in _EMPTY}
    return ToolText(
        id=id,
        digest=digest,
        name=name,
        tool=definition["name"],
        server=server,
        kind=kind,
        title=definition.get("title") or "",
        description=definition.get("description") or "",
        schema=compact_json(schema),
        more="".join(f",{compact_json(key)}:{compact_json(value)}" for key, value in more.items()),
        parameters=tuple(properties) if isinstance(properties, Mapping) else (),
        chars=chars,
        ends_chunk=crc32(name.encode("utf-8", "surrogatepass")) % CHUNK_TOOLS == 0,
    )


def _named(tool: ToolText) -> str:
    return f'"name":{compact_json(tool.name)},"description":{compact_json(tool.description)}'


def _mcp(tool: ToolText) -> str:
    return f'{{{_named(tool)},"inputSchema":{tool.schema}{tool.more}}}'


def _stub(tool: ToolText) -> str:
    return f'{{{_named(tool)},"inputSchema":{STUB_SCHEMA}}}'


def _summary(tool: ToolText) -> str:
    described = compact_json(first_sentence(tool.description))
    return f'{{"name":{compact_json(tool.name)},"description":{described}}}'


def _anthropic(tool: ToolText) -> str:
    return f'{{{_named(tool)},"input_schema":{_object_schema(tool)}}}'


def _anthropic_deferred(tool: ToolText) -> str:
    return f'{{{_named(tool)},"input_schema":{_object_schema(tool)},"defer_loading":true}}'


def _openai(tool: ToolText) -> str:
    return f'{{"type":"function",{_named(tool)},"parameters":{_object_schema(tool)},"strict":false}}'


def _openai_deferred(tool: ToolText) -> str:
    written = _openai(tool)
    return f'{written[:-1]},"defer_loading":true}}'


def _route(tool: ToolText) -> str:
    return f"{compact_json(tool.name)}:{compact_json([tool.server, tool.tool])}"


def _object_schema(tool: ToolText) -> str:
    """Both APIs require `type: object`, which MCP servers may leave out of an empty schema."""
    return '{"type":"object"}' if tool.schema == "{}" else tool.schema


_WRITERS: Mapping[str, Callable[[ToolText], str]] = {
    "mcp": _mcp,
    "stub": _stub,
    "summary": _summary,
    "anthropic": _anthropic,
    "anthropic_deferred": _anthropic_deferred,
    "openai": _openai,
    "openai_deferred": _openai_deferred,
    "route": _route,
}
