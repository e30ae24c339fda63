"""A JSON schema as a tree for people. Schemas come from servers, so size and shape are bounded."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from catalog.domain.limits import SCHEMA_TREE_LEVELS, SCHEMA_TREE_NODES

CONSTRAINTS = {
    "default": "default",
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "minLength": "min length",
    "maxLength": "max length",
    "minItems": "min items",
    "maxItems": "max items",
    "pattern": "pattern",
    "format": "format",
    "const": "always",
}
ALTERNATIVES = ("anyOf", "oneOf", "allOf")

# Runs out when the tree has as many nodes as a page can show.
Room = Iterator[int]


@dataclass(frozen=True, slots=True)
class SchemaNode:
    name: str
    type: str
    is_required: bool = False
    description: str = ""
    options: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    children: tuple["SchemaNode", ...] = ()


def grow_tree(schema: object) -> tuple[SchemaNode, ...]:
    """The parameters of a schema with their children; what is past the bounds is left out."""
    return tuple(_children(schema, depth=0, room=iter(range(SCHEMA_TREE_NODES))))


def _children(schema: object, *, depth: int, room: Room) -> Iterator[SchemaNode]:
    if not isinstance(schema, Mapping) or depth >= SCHEMA_TREE_LEVELS:
        return
    names = {str(name) for name in _list(schema.get("required"))}
    properties = schema.get("properties")
    for name, child in properties.items() if isinstance(properties, Mapping) else ():
        if next(room, None) is None:
            return
        yield _node(str(name), child, is_required=name in names, depth=depth, room=room)
    yield from _children(schema.get("items"), depth=depth + 1, room=room)
    for keyword in ALTERNATIVES:
        yield from _choices(keyword, schema.get(keyword), depth=depth, room=room)


def _choices(keyword: str, branches: object, *, depth: int, room: Room) -> Iterator[SchemaNode]:
    """Branches with objects; the others are described by the type's text."""
    for number, branch in enumerate(_list(branches), start=1):
        if isinstance(branch, Mapping) and "properties" in branch and next(room, None) is not None:
            yield _node(f"{keyword} {number}", branch, is_required=False, depth=depth, room=room)


def _node(name: str, schema: object, *, is_required: bool, depth: int, room: Room) -> SchemaNode:
    if not isinstance(schema, Mapping):
        return SchemaNode(
            name=name, type="nothing" if schema is False else "anything", is_required=is_required
        )
    limits = (f"{words} {_json(schema[key])}" for key, words in CONSTRAINTS.items() if key in schema)
    return SchemaNode(
        name=name,
        type=_type_words(schema, depth=0),
        is_required=is_required,
        description=str(schema.get("description") or ""),
        options=tuple(_json(option) for option in _list(schema.get("enum"))[:SCHEMA_TREE_NODES]),
        constraints=tuple(limits),
        children=tuple(_children(schema, depth=depth + 1, room=room)),
    )


def _type_words(schema: object, *, depth: int) -> str:
    if not isinstance(schema, Mapping) or depth >= SCHEMA_TREE_LEVELS:
        return "anything"
    kind = schema.get("type")
    if kind == "array" and "items" in schema:
        return f"array of {_type_words(schema['items'], depth=depth + 1)}"
    if kind:
        return " or ".join(str(one) for one in _list(kind) or [kind])
    if "$ref" in schema:
        return f"see {schema['$ref']}"
    for keyword in ALTERNATIVES:
        if branches := _list(schema.get(keyword)):
            return " or ".join(_type_words(branch, depth=depth + 1) for branch in branches[:4])
    return "one of" if "enum" in schema else "anything"


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
