"""A JSON schema as a tree that people read. Schemas come from servers, so size and shape are not trusted."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

MAX_DEPTH = 8
MAX_CHILDREN = 200
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


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    type: str
    is_required: bool = False
    description: str = ""
    options: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    children: tuple["Node", ...] = field(default=())


def grow_tree(schema: object) -> tuple[Node, ...]:
    """The parameters of a schema, each with what it holds in turn."""
    return tuple(islice(_children(schema, depth=0), MAX_CHILDREN))


def _children(schema: object, *, depth: int) -> Iterator[Node]:
    if not isinstance(schema, Mapping) or depth >= MAX_DEPTH:
        return
    required = schema.get("required")
    names = set(map(str, required)) if isinstance(required, list) else set()
    properties = schema.get("properties")
    for name, child in properties.items() if isinstance(properties, Mapping) else ():
        yield _node(str(name), child, is_required=name in names, depth=depth)
    if isinstance(schema.get("items"), Mapping):
        yield from _children(schema["items"], depth=depth + 1)
    for keyword in ALTERNATIVES:
        branches = schema.get(keyword)
        for number, branch in enumerate(branches if isinstance(branches, list) else (), start=1):
            if isinstance(branch, Mapping) and "properties" in branch:
                yield _node(f"{keyword} {number}", branch, is_required=False, depth=depth)


def _node(name: str, schema: object, *, is_required: bool, depth: int) -> Node:
    if not isinstance(schema, Mapping):
        return Node(name=name, type="anything" if schema is True else "nothing", is_required=is_required)
    options = schema.get("enum")
    return Node(
        name=name,
        type=_type_words(schema),
        is_required=is_required,
        description=str(schema.get("description") or ""),
        options=tuple(str(option) for option in options[:MAX_CHILDREN]) if isinstance(options, list) else (),
        constraints=tuple(
            f"{words} {_json(schema[key])}" for key, words in CONSTRAINTS.items() if key in schema
        ),
        children=tuple(islice(_children(schema, depth=depth + 1), MAX_CHILDREN)),
    )


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _type_words(schema: Mapping[str, object]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(str(one) for one in kind)
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"array of {_type_words(schema['items'])}"  # type: ignore[arg-type]
    if isinstance(kind, str):
        return kind
    if "$ref" in schema:
        return f"see {schema['$ref']}"
    for keyword in ALTERNATIVES:
        branches = schema.get(keyword)
        if isinstance(branches, list):
            return " or ".join(_type_words(branch) for branch in branches[:4] if isinstance(branch, Mapping))
    return "one of" if "enum" in schema else "anything"
