"""The tools that an agent brings along: unique names for them, and their facts for the rules."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.domain.choices import Kind
from catalog.domain.errors import InvalidInput
from catalog.domain.facts import ToolFacts, asks_always_load, count_chars
from catalog.domain.names import ToolId, candidate_names, name_all
from catalog.domain.sizes import compact_json
from sessions.offers.rendering.wire import ToolText, write_text

SERVER = "builtin"
SHOULD_DEFER = "shouldDefer"


@dataclass(frozen=True, slots=True)
class Builtin:
    text: ToolText
    facts: ToolFacts


def read_builtins(definitions: Sequence[Mapping[str, Any]], *, taken: Collection[str]) -> tuple[Builtin, ...]:
    """`taken` are names of the catalog or the search tool; a tool with such a name gets an ending."""
    ids = [ToolId(Kind.BUILTIN, SERVER, definition["name"]) for definition in definitions]
    clashing = {name for tool_id in ids for name in candidate_names(tool_id) if name in taken}
    names = name_all(ids, reserved=clashing)
    return tuple(
        _read_one(-number, definition, names[tool_id])
        for number, (definition, tool_id) in enumerate(zip(definitions, ids, strict=True), start=1)
    )


def check_names(definitions: Sequence[Mapping[str, Any]]) -> None:
    """Raises InvalidInput where two definitions have one name."""
    seen: set[str] = set()
    for index, definition in enumerate(definitions):
        if definition["name"] in seen:
            raise InvalidInput.at(f"builtin_tools[{index}].name", "is given twice")
        seen.add(definition["name"])


def digest_of(definitions: Sequence[Mapping[str, Any]]) -> str:
    return hashlib.sha256(compact_json(list(definitions)).encode("utf-8", "surrogatepass")).hexdigest()


def _read_one(number: int, definition: Mapping[str, Any], name: str) -> Builtin:
    chars = count_chars(definition["name"], definition.get("description"), definition.get("inputSchema"))
    sent = {key: value for key, value in definition.items() if key != SHOULD_DEFER}
    text = write_text(
        id=number,
        digest=str(number),
        name=name,
        server=SERVER,
        kind=Kind.BUILTIN,
        definition=sent,
        chars=chars or 0,
    )
    facts = ToolFacts(
        name=name,
        tool=text.tool,
        server=SERVER,
        kind=Kind.BUILTIN,
        chars=chars,
        always_load=asks_always_load(definition.get("_meta")),
        should_defer=definition.get(SHOULD_DEFER) is True,
    )
    return Builtin(text, facts)
