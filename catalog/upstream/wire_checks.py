"""Checks of what a server lists, whatever it is: depth, size, text and shape."""

import json
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ValidationError

from catalog.domain.connection import JsonObject, Limits
from catalog.domain.limits import SCHEMA_LEVELS, SCHEMA_NODES, SCHEMA_PAIRS

LONGEST_NAME = 128


class Unfit(Exception):
    """Why a definition is rejected, in words for an admin."""


def take_known_fields(candidate: object, fields: Sequence[str]) -> object:
    """Without null fields, and those that MCP does not know."""
    if not isinstance(candidate, dict):
        return candidate
    return {field: candidate[field] for field in fields if candidate.get(field) is not None}


def check_extent(definition: JsonObject) -> None:
    """Checks depth, size and the cost of validating lists, before anything else walks through it.

    `uniqueItems` compares every pair of items, unless they are all texts or numbers.
    """
    level: list[object] = [definition]
    nodes = pairs = 0
    for _ in range(SCHEMA_LEVELS):
        nodes += len(level)
        pairs += sum(len(each) ** 2 // 2 for each in level if isinstance(each, list) and _is_mixed(each))
        if nodes > SCHEMA_NODES:
            raise Unfit(f"it holds more than {SCHEMA_NODES:,} objects and lists")
        if pairs > SCHEMA_PAIRS:
            raise Unfit("it holds a list of too many objects, or of texts and numbers together")
        level = [inner for each in level for inner in inside(each) if isinstance(inner, dict | list)]
        if not level:
            return
    raise Unfit(f"it is nested too deeply: more than {SCHEMA_LEVELS} levels")


def inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_mixed(items: list[object]) -> bool:
    kinds = set(map(type, items))
    return not (kinds <= {str} or kinds <= {int, float})


def check_text(definition: JsonObject, limits: Limits) -> None:
    """A definition must be encodable as UTF-8 JSON, without NUL, which PostgreSQL cannot store."""
    try:
        text = json.dumps(definition, ensure_ascii=False, allow_nan=False)
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        raise Unfit("it holds text that is not valid Unicode") from None
    except ValueError:
        raise Unfit("it holds a number that JSON does not know") from None
    except RecursionError:
        raise Unfit("it is nested too deeply") from None
    if size_bytes > limits.max_definition_bytes:
        raise Unfit(f"it has {size_bytes} bytes, more than the {limits.max_definition_bytes} allowed")
    if "\\u0000" in text and _holds_nul(definition):
        raise Unfit("it holds a NUL character")


def _holds_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(part) for key, part in value.items())
    return isinstance(value, list) and any(_holds_nul(part) for part in value)


def check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise Unfit("it has no name")
    if len(name) > LONGEST_NAME:
        raise Unfit(f"its name is longer than {LONGEST_NAME} characters")


def check_shape(model: type[BaseModel], definition: JsonObject) -> None:
    """Whether the SDK takes it for a definition of this kind."""
    try:
        model.model_validate(definition, by_name=False)
    except ValidationError as problems:
        first = problems.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise Unfit(f"{place}: {first['msg']}") from None


def name_of(candidate: object, position: int) -> str:
    name = candidate.get("name") if isinstance(candidate, dict) else None
    if isinstance(name, str) and name.strip():
        return name[:LONGEST_NAME].encode(errors="replace").decode().replace("\0", "�")
    return f"#{position + 1}"
