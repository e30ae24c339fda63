"""Reads tool definitions given as a file: a JSON array, an MCP `tools/list` result, or JSON lines."""

import json
from collections.abc import Iterator
from typing import Any

from catalog.domain.errors import FieldProblem, InvalidInput


def parse_snapshot(text: str, *, server: str | None) -> dict[str, list[dict[str, Any]]]:
    """Definitions by server, in the order given.

    With `server` None every definition must name its own in a `server` field, as JSON lines may.
    Raises InvalidInput with the place of each mistake.
    """
    by_server: dict[str, list[dict[str, Any]]] = {}
    problems: list[FieldProblem] = []
    for place, definition in _definitions(text):
        if not isinstance(definition, dict):
            problems.append(FieldProblem(place, "must be an object"))
            continue
        own_server = definition.pop("server", None)
        name = server or own_server
        if not isinstance(name, str) or not name.strip():
            problems.append(FieldProblem(place, "names no server; give one in a `server` field"))
            continue
        by_server.setdefault(name, []).append(definition)
    if problems:
        raise InvalidInput(problems)
    return by_server


def _definitions(text: str) -> Iterator[tuple[str, Any]]:
    whole = _read_whole(text)
    if isinstance(whole, dict) and "tools" not in whole and "result" in whole:
        whole = whole["result"]
    if isinstance(whole, dict) and isinstance(whole.get("tools"), list):
        whole = whole["tools"]
    if isinstance(whole, list):
        yield from ((f"tools[{place}]", item) for place, item in enumerate(whole))
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield f"line {number}", _read_line(line, number)


def _read_whole(text: str) -> Any:
    """The document if it is one JSON value; None if it may be JSON lines."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _read_line(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise InvalidInput.at(f"line {number}", f"is not JSON: {error}") from None
    except RecursionError:
        raise InvalidInput.at(f"line {number}", "is nested too deeply") from None
