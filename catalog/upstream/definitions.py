"""Validates tool definitions one by one, so that a bad one is rejected alone."""

import json
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types import Tool
from pydantic import ValidationError

from catalog.domain.connection import JsonObject, Limits, Rejected
from catalog.domain.limits import SCHEMA_LEVELS, SCHEMA_NODES, SCHEMA_PAIRS
from catalog.upstream.masking import holds_secret, mask_within
from catalog.upstream.schema_check import schema_problem

WIRE_FIELDS = (
    *("name", "title", "description", "inputSchema", "outputSchema"),
    *("annotations", "icons", "execution", "_meta"),
)
LONGEST_NAME = 128


class _Unfit(Exception):
    """Why a definition is rejected, in words for an admin."""


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
    for position, candidate in enumerate(map(_take_known_fields, given)):
        shown = mask_within(candidate, secrets=secrets) if secrets else candidate
        try:
            definition = _judge(shown, limits)
            if shown is not candidate:
                _check_names(candidate, secrets)
            _check_is_first(definition["name"], kept)
        except _Unfit as unfit:
            rejected.append(Rejected(_name_of(shown, position), str(unfit), position))
            continue
        kept[definition["name"]] = definition
        if shown is not candidate:
            masked.add(definition["name"])
    return Judged(tuple(kept.values()), tuple(rejected), frozenset(masked))


def _check_names(candidate: object, secrets: Sequence[str]) -> None:
    """A masked name of a tool or parameter would make calls that the server refuses."""
    if holds_secret(_names_in(candidate), secrets=secrets):
        raise _Unfit("its name or the name of a parameter holds a secret of its server")


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
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, dict | list)]


def _judge(candidate: object, limits: Limits) -> JsonObject:
    if not isinstance(candidate, dict):
        raise _Unfit("it is not an object")
    _check_extent(candidate)
    _check_text(candidate, limits)
    _check_name(candidate.get("name"))
    _check_shape(candidate)
    _check_schemas(candidate)
    return candidate


def _take_known_fields(candidate: object) -> object:
    if not isinstance(candidate, dict):
        return candidate
    return {field: candidate[field] for field in WIRE_FIELDS if candidate.get(field) is not None}


def _check_is_first(name: str, kept: Container[str]) -> None:
    if name in kept:
        raise _Unfit("another tool of this server has the same name; the first is kept")


def _check_extent(definition: JsonObject) -> None:
    """Checks depth, size and the cost of validating lists, before anything else walks through it.

    `uniqueItems` compares every pair of items, unless they are all texts or numbers.
    """
    level: list[object] = [definition]
    nodes = pairs = 0
    for _ in range(SCHEMA_LEVELS):
        nodes += len(level)
        pairs += sum(len(each) ** 2 // 2 for each in level if isinstance(each, list) and _is_mixed(each))
        if nodes > SCHEMA_NODES:
            raise _Unfit(f"it holds more than {SCHEMA_NODES:,} objects and lists")
        if pairs > SCHEMA_PAIRS:
            raise _Unfit("it holds a list of too many objects, or of texts and numbers together")
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, dict | list)]
        if not level:
            return
    raise _Unfit(f"it is nested too deeply: more than {SCHEMA_LEVELS} levels")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_mixed(items: list[object]) -> bool:
    kinds = set(map(type, items))
    return not (kinds <= {str} or kinds <= {int, float})


def _check_text(definition: JsonObject, limits: Limits) -> None:
    """A definition must be encodable as UTF-8 JSON, without NUL, which PostgreSQL cannot store."""
    try:
        text = json.dumps(definition, ensure_ascii=False, allow_nan=False)
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        raise _Unfit("it holds text that is not valid Unicode") from None
    except ValueError:
        raise _Unfit("it holds a number that JSON does not know") from None
    except RecursionError:
        raise _Unfit("it is nested too deeply") from None
    if size_bytes > limits.max_definition_bytes:
        raise _Unfit(f"it has {size_bytes} bytes, more than the {limits.max_definition_bytes} allowed")
    if "\\u0000" in text and _holds_nul(definition):
        raise _Unfit("it holds a NUL character")


def _holds_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(part) for key, part in value.items())
    return isinstance(value, list) and any(_holds_nul(part) for part in value)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise _Unfit("it has no name")
    if len(name) > LONGEST_NAME:
        raise _Unfit(f"its name is longer than {LONGEST_NAME} characters")


def _check_shape(definition: JsonObject) -> None:
    if "inputSchema" not in definition:
        raise _Unfit("it has no inputSchema")
    try:
        Tool.model_validate(definition, by_name=False)
    except ValidationError as problems:
        first = problems.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise _Unfit(f"{place}: {first['msg']}") from None


def _check_schemas(definition: JsonObject) -> None:
    root_type = definition["inputSchema"].get("type")
    if root_type != "object":
        raise _Unfit(f'inputSchema: its type must be "object", not {json.dumps(root_type)[:60]}')
    for field in ("inputSchema", "outputSchema"):
        if problem := schema_problem(definition.get(field, {})):
            raise _Unfit(f"{field}: {problem}")
    if problem := find_invalid_x_mcp_header(definition["inputSchema"]):
        raise _Unfit(f"inputSchema: x-mcp-header is not valid: {problem}")


def _name_of(candidate: object, position: int) -> str:
    name = candidate.get("name") if isinstance(candidate, dict) else None
    if isinstance(name, str) and name.strip():
        return name[:LONGEST_NAME].encode(errors="replace").decode().replace("\0", "�")
    return f"#{position + 1}"
