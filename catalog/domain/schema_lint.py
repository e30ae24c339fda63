"""Finds parts of an input schema that model APIs refuse. Schemas come from servers, so the work
is bounded.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from catalog.domain.limits import SCHEMA_ADVICE_NODES

ROOT_CHOICES = ("anyOf", "oneOf", "allOf", "not", "enum")
_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LOCAL = "#"

Schema = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Rejection:
    finding: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Place:
    """A nested schema and the path to it."""

    path: str
    schema: Schema


def find_rejections(schema: Schema) -> Iterator[Rejection]:
    """One of each kind, with the first place where it was found."""
    yield from _check_root(schema)
    places = list(_walk(schema))
    checks = (_odd_names, _lists_of_nothing, _lost_references)
    for check in checks:
        found = next((rejection for place in places for rejection in check(place, schema)), None)
        if found:
            yield found


def parameters_without_description(schema: Schema) -> list[str]:
    """Names of top-level parameters, in order."""
    return [
        str(name)
        for name, parameter in _mapping(schema.get("properties")).items()
        if not _mapping(parameter).get("description")
    ]


def _check_root(schema: Schema) -> Iterator[Rejection]:
    choices = [word for word in ROOT_CHOICES if word in schema]
    if choices:
        yield Rejection(
            f"The schema has {choices[0]} at its root, which model APIs refuse.",
            "Ask its author to list all parameters under properties and to say in words which go together. "
            "Until then, hide the tool: one refused definition can fail the whole request.",
        )
    kind = schema.get("type", "object")
    if kind != "object":
        yield Rejection(
            f"The schema is of type {str(kind)[:40]}, and model APIs take objects only.",
            "Ask its author for an object with named properties. Until then, hide the tool.",
        )


def _odd_names(place: _Place, root: Schema) -> Iterator[Rejection]:
    for name in _mapping(place.schema.get("properties")):
        if not _PROPERTY_NAME.fullmatch(str(name)):
            yield Rejection(
                f"The parameter {_join(place.path, str(name)[:80])} has a name that Anthropic's API refuses: "
                "letters, digits, _, . and - are allowed, 64 at most.",
                "Ask its author to rename it. Until then, hide the tool from agents that use that API.",
            )


def _lists_of_nothing(place: _Place, root: Schema) -> Iterator[Rejection]:
    is_list = place.schema.get("type") == "array"
    if is_list and "items" not in place.schema and "prefixItems" not in place.schema:
        yield Rejection(
            f"The list {place.path or 'at the root'} does not say what it holds, which OpenAI's API refuses.",
            "Ask its author to add items, be it {}. Until then, hide the tool from agents that use that API.",
        )


def _lost_references(place: _Place, root: Schema) -> Iterator[Rejection]:
    reference = place.schema.get("$ref")
    if isinstance(reference, str) and not _resolves(reference, root):
        yield Rejection(
            f"The schema refers to {reference[:80]}, which is not in it: model APIs cannot follow it.",
            "Ask its author to put what is meant under $defs. Until then, hide the tool.",
        )


def _resolves(reference: str, root: Schema) -> bool:
    if not reference.startswith(_LOCAL):
        return False
    pointer = reference.removeprefix(_LOCAL)
    if pointer and not pointer.startswith("/"):
        return True  # an anchor, which only a validator can look up
    found: object = root
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, Mapping) and key in found:
            found = found[key]
        else:
            return False
    return True


def _walk(schema: Schema) -> Iterator[_Place]:
    """The schema and every nested schema, up to a limit."""
    waiting = deque([_Place("", schema)])
    for _ in range(SCHEMA_ADVICE_NODES):
        if not waiting:
            return
        place = waiting.popleft()
        yield place
        waiting.extend(_inside(place))


def _inside(place: _Place) -> Iterator[_Place]:
    for keyword in ("properties", "$defs", "definitions"):
        for name, child in _mapping(place.schema.get(keyword)).items():
            if isinstance(child, Mapping):
                yield _Place(_join(place.path, str(name)), child)
    items = place.schema.get("items")
    if isinstance(items, Mapping):
        yield _Place(f"{place.path}[]", items)
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = place.schema.get(keyword)
        for child in branches if isinstance(branches, list) else ():
            if isinstance(child, Mapping):
                yield _Place(place.path, child)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
