"""Parses tool definitions from a file: a JSON array, an MCP `tools/list` result, or JSON lines."""

from collections.abc import Iterator
from typing import Any

from catalog.domain.errors import FieldProblem, InvalidInput
from catalog.domain.json_text import read_json

Definitions = dict[str, list[dict[str, Any]]]


def parse_snapshot(content: bytes, *, server: str | None) -> Definitions:
    """Definitions by server, in the order given.

    With `server` None every definition must name its own in a `server` field, as JSON lines may.
    Raises InvalidInput with the place of each mistake.
    """
    by_server: Definitions = {} if server is None else {server: []}
    problems: list[FieldProblem] = []
    for place, definition in _definitions(content):
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


def _definitions(content: bytes) -> Iterator[tuple[str, object]]:
    lines = [(number, line) for number, line in enumerate(content.splitlines(), start=1) if line.strip()]
    if len(lines) > 1 and _is_json(lines[0][1]):
        for number, line in lines:
            yield f"line {number}", _read_line(line, number)
        return
    for place, item in enumerate(_unwrap(read_json(content))):
        yield f"tools[{place}]", item


def _unwrap(document: object) -> list[object]:
    """The array itself, or the one inside a `tools/list` result or JSON-RPC response."""
    if isinstance(document, dict) and isinstance(document.get("result"), dict):
        document = document["result"]
    if isinstance(document, dict):
        document = document.get("tools", [document])
    if not isinstance(document, list):
        raise InvalidInput.at("", "must be an array of tools, a tools/list result, or JSON lines")
    return document


def _is_json(line: bytes) -> bool:
    try:
        read_json(line)
    except InvalidInput:
        return False
    return True


def _read_line(line: bytes, number: int) -> object:
    try:
        return read_json(line)
    except InvalidInput as error:
        raise InvalidInput.at(f"line {number}", error.errors[0].message) from None
