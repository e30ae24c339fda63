"""Short ways to make what the domain tests need."""

from collections.abc import Mapping
from typing import Any

from catalog.domain.choices import Kind
from catalog.domain.decide import Decided, decide
from catalog.domain.document import parse_document
from catalog.domain.facts import ToolFacts
from catalog.domain.names import ToolId, qualify


def make_tool(tool: str = "create_issue", *, server: str = "github", **facts: Any) -> ToolFacts:
    name = facts.pop("name", None) or qualify(ToolId(facts.get("kind", Kind.MCP), server, tool))
    return ToolFacts(name=name, tool=tool, server=server, **facts)


def make_definition(name: str, *, chars: int | None = None, **fields: Any) -> dict[str, Any]:
    """A definition of exactly so many characters; its schema is missing and so counts two."""
    if chars is not None:
        fields["description"] = "x" * (chars - len(name) - len("{}"))
    return {"name": name, **fields}


def make_document(
    tools: Mapping[str, list[dict[str, Any]]],
    *,
    policy: Mapping[str, Any] | None = None,
    servers: Mapping[str, Mapping[str, Any]] | None = None,
    session: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A document of `manage.py decide`: tools by server, and what else is said of those servers."""
    settings = servers or {}
    return {
        "policy": dict(policy or {}),
        "servers": {name: {**settings.get(name, {}), "tools": listed} for name, listed in tools.items()},
        "session": dict(session or {}),
    }


def decide_document(document: object) -> Decided:
    read = parse_document(document)
    return decide(read.tools, read.policy, read.session)


def reasons_of(decided: Decided) -> dict[str, str]:
    return {decision.name: str(decision.reason) for decision in decided.decisions}


def deferred_in(decided: Decided) -> set[str]:
    return {decision.name for decision in decided.decisions if decision.is_deferred}
