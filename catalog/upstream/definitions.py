"""Judges tool definitions one by one, so that a bad one is kept out alone."""

import json
from collections.abc import Container, Iterable

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types import Tool
from pydantic import ValidationError

from catalog.domain.connection import JsonObject, Limits, Rejected
from catalog.upstream.schema_check import schema_problem

WIRE_FIELDS = (
    *("name", "title", "description", "inputSchema", "outputSchema"),
    *("annotations", "icons", "execution", "_meta"),
)
LONGEST_NAME = 128


class _Unfit(Exception):
    """Why one definition is kept out, in words for an admin."""


def judge_definitions(
    given: Iterable[object], limits: Limits | None = None
) -> tuple[tuple[JsonObject, ...], tuple[Rejected, ...]]:
    """Split what a server or a file gave into valid definitions and rejected ones, in the order given.

    Of several definitions with one name the first is kept. Fields that MCP does not know, and fields that are
    null, are left out.
    """
    limits = limits or Limits()
    kept: dict[str, JsonObject] = {}
    rejected: list[Rejected] = []
    for place, candidate in enumerate(given, start=1):
        try:
            definition = _judge(candidate, limits)
            _check_is_first(definition["name"], kept)
        except _Unfit as unfit:
            rejected.append(Rejected(_name_of(candidate, place), str(unfit)))
        else:
            kept[definition["name"]] = definition
    return tuple(kept.values()), tuple(rejected)


def _judge(candidate: object, limits: Limits) -> JsonObject:
    if not isinstance(candidate, dict):
        raise _Unfit("it is not an object")
    definition = {field: candidate[field] for field in WIRE_FIELDS if candidate.get(field) is not None}
    _check_text(definition, limits)
    _check_name(definition.get("name"))
    _check_shape(definition)
    _check_schemas(definition)
    return definition


def _check_is_first(name: str, kept: Container[str]) -> None:
    if name in kept:
        raise _Unfit("another tool of this server has the same name; the first is kept")


def _check_text(definition: JsonObject, limits: Limits) -> None:
    """A definition must survive as UTF-8 JSON, without NUL, which PostgreSQL cannot store."""
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


def _name_of(candidate: object, place: int) -> str:
    name = candidate.get("name") if isinstance(candidate, dict) else None
    if isinstance(name, str) and name.strip():
        return name[:LONGEST_NAME].encode(errors="replace").decode().replace("\0", "�")
    return f"#{place}"
