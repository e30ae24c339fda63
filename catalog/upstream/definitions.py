"""Validates tool definitions one by one, so that a bad one is rejected alone."""

import json
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types import Tool

from catalog.domain.connection import JsonObject, Limits, Rejected
from catalog.upstream.masking import holds_secret, mask_within
from catalog.upstream.schema_check import schema_problem
from catalog.upstream.wire_checks import (
    Unfit,
    check_extent,
    check_name,
    check_shape,
    check_text,
    inside,
    name_of,
    take_known_fields,
)

WIRE_FIELDS = (
    *("name", "title", "description", "inputSchema", "outputSchema"),
    *("annotations", "icons", "execution", "_meta"),
)


class Judged(NamedTuple):
    """Valid definitions, rejected ones, and the names of valid ones in which a secret was masked."""

    definitions: tuple[JsonObject, ...]
    rejected: tuple[Rejected, ...]
    masked: frozenset[str]


def judge_definitions(
    given: Iterable[object], limits: Limits | None = None
) -> tuple[tuple[JsonObject, ...], tuple[Rejected, ...]]:
    """Split definitions into valid and rejected ones, in the order given.

    Of several definitions with one name the first is kept. Fields that MCP does not know, and null fields,
    are dropped.
    """
    definitions, rejected, _ = mask_and_judge(given, limits or Limits(), secrets=())
    return definitions, rejected


def mask_and_judge(given: Iterable[object], limits: Limits, *, secrets: Sequence[str]) -> Judged:
    """The same with secrets masked. A secret in a name that calls depend on rejects the definition."""
    kept: dict[str, JsonObject] = {}
    rejected: list[Rejected] = []
    masked: set[str] = set()
    for position, candidate in enumerate(take_known_fields(one, WIRE_FIELDS) for one in given):
        shown = mask_within(candidate, secrets=secrets) if secrets else candidate
        try:
            definition = _judge(shown, limits)
            if shown is not candidate:
                _check_names(candidate, secrets)
            _check_is_first(definition["name"], kept)
        except Unfit as unfit:
            rejected.append(Rejected(name_of(shown, position), str(unfit), position))
            continue
        kept[definition["name"]] = definition
        if shown is not candidate:
            masked.add(definition["name"])
    return Judged(tuple(kept.values()), tuple(rejected), frozenset(masked))


def _check_names(candidate: object, secrets: Sequence[str]) -> None:
    """A masked name of a tool or parameter would make calls that the server refuses."""
    if holds_secret(_names_in(candidate), secrets=secrets):
        raise Unfit("its name or the name of a parameter holds a secret of its server")


def _names_in(candidate: object) -> Iterator[str]:
    """The tool's name, every key, and the entries of `required` lists."""
    if isinstance(candidate, dict):
        yield str(candidate.get("name"))
    level: list[object] = [candidate]
    while level:
        for each in level:
            if isinstance(each, dict):
                yield from each
                required = each.get("required")
                yield from map(str, required if isinstance(required, list) else ())
        level = [inner for each in level for inner in inside(each) if isinstance(inner, dict | list)]


def _judge(candidate: object, limits: Limits) -> JsonObject:
    if not isinstance(candidate, dict):
        raise Unfit("it is not an object")
    check_extent(candidate)
    check_text(candidate, limits)
    check_name(candidate.get("name"))
    _check_shape(candidate)
    _check_schemas(candidate)
    return candidate


def _check_is_first(name: str, kept: Container[str]) -> None:
    if name in kept:
        raise Unfit("another tool of this server has the same name; the first is kept")


def _check_shape(definition: JsonObject) -> None:
    if "inputSchema" not in definition:
        raise Unfit("it has no inputSchema")
    check_shape(Tool, definition)


def _check_schemas(definition: JsonObject) -> None:
    root_type = definition["inputSchema"].get("type")
    if root_type != "object":
        raise Unfit(f'inputSchema: its type must be "object", not {json.dumps(root_type)[:60]}')
    for field in ("inputSchema", "outputSchema"):
        if problem := schema_problem(definition.get(field, {})):
            raise Unfit(f"{field}: {problem}")
    if problem := find_invalid_x_mcp_header(definition["inputSchema"]):
        raise Unfit(f"inputSchema: x-mcp-header is not valid: {problem}")
