"""A tool as a search document: the texts of one definition, without the database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from catalog.domain.limits import (
    DOCUMENT_ENUM_VALUES,
    DOCUMENT_LEVELS,
    DOCUMENT_NAME_CHARS,
    DOCUMENT_PARAMETERS,
    DOCUMENT_TEXT_CHARS,
)

SEARCH_HINT = "anthropic/searchHint"

_BRANCHES = ("anyOf", "oneOf", "allOf")

Parameter = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ToolDocument:
    """`parameters` are the tool's own, `nested` those inside them; both as pairs of name and description."""

    id: int
    qualified_name: str
    name: str
    server: str
    kind: str = "mcp"
    title: str = ""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    nested: tuple[Parameter, ...] = ()
    keywords: str = ""
    hint: str = ""


def make_document(
    definition: Mapping[str, Any],
    *,
    id: int,
    qualified_name: str,
    server: str,
    kind: str = "mcp",
    keywords: Sequence[str] = (),
) -> ToolDocument:
    """Read a tool's definition as MCP gives it. What has the wrong type counts as missing."""
    schema = _as_mapping(definition.get("inputSchema"))
    nested = islice(_walk_inside(schema, DOCUMENT_LEVELS), DOCUMENT_PARAMETERS)
    meta = _as_mapping(definition.get("_meta"))
    return ToolDocument(
        id=id,
        qualified_name=qualified_name,
        name=_as_text(definition.get("name")),
        server=server,
        kind=kind,
        title=_as_text(definition.get("title") or _as_mapping(definition.get("annotations")).get("title")),
        description=_as_text(definition.get("description")),
        parameters=tuple(islice(_own_parameters(schema), DOCUMENT_PARAMETERS)),
        nested=tuple(nested),
        keywords=" ".join(keywords),
        hint=_as_text(meta.get(SEARCH_HINT)),
    )


def _own_parameters(schema: Mapping[str, Any]) -> Iterator[Parameter]:
    for name, part in _as_mapping(schema.get("properties")).items():
        yield str(name)[:DOCUMENT_NAME_CHARS], _describe(_as_mapping(part))


def _walk_inside(schema: Mapping[str, Any], depth: int) -> Iterator[Parameter]:
    """The nested parameters; `depth` bounds a deeply nested schema."""
    if depth == 0 or not schema:
        return
    for part in _as_mapping(schema.get("properties")).values():
        yield from _walk_below(_as_mapping(part), depth - 1)
    for branch in _branches(schema):
        yield from _walk_below(branch, depth - 1)


def _walk_below(part: Mapping[str, Any], depth: int) -> Iterator[Parameter]:
    yield from _own_parameters(part)
    yield from _walk_inside(part, depth)


def _branches(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in ("items", "additionalProperties"):
        yield _as_mapping(schema.get(key))
    for key in _BRANCHES:
        branches = schema.get(key)
        if isinstance(branches, list):
            yield from map(_as_mapping, branches)


def _describe(part: Mapping[str, Any]) -> str:
    """A parameter's title, description and possible values, which name a tool's modes."""
    values = part.get("enum")
    options = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    texts = (_as_text(part.get("title")), _as_text(part.get("description")), *options[:DOCUMENT_ENUM_VALUES])
    return " ".join(text for text in texts if text)[:DOCUMENT_TEXT_CHARS]


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_text(value: object) -> str:
    return value[:DOCUMENT_TEXT_CHARS] if isinstance(value, str) else ""
