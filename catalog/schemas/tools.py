"""Request and response bodies of tools."""

from typing import Annotated, Any

from ninja import Field, Schema

from catalog.domain.choices import Kind, Loading, Outcome
from catalog.models.tools import State
from catalog.request_bodies import BodyIn, Choice, Text, example

TOOL_EXAMPLE: dict[str, Any] = {
    "name": "mcp__github__create_issue",
    "tool": "create_issue",
    "server": "github",
    "kind": "mcp",
    "title": "Create issue",
    "description": "Open a new issue in a repository.",
    "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
    "outputSchema": None,
    "annotations": {"readOnlyHint": False},
    "read_only": None,
    "is_read_only": False,
    "meta": {},
    "size": {"chars": 640, "tokens": 160},
    "loading": "inherit",
    "keywords": ["bug report"],
    "tags": [],
    "state": "active",
    "decisions": {"default": {"decision": "defer", "reason": "mode_always"}},
}


class SizeOut(Schema):
    chars: int
    tokens: int


class DecisionOut(Schema):
    decision: Outcome
    reason: str


class ToolOut(Schema):
    model_config = example(TOOL_EXAMPLE)

    name: str = Field(description="The qualified name, which the model sees.")
    tool: str = Field(description="Its own name, as its server gives it.")
    server: str
    kind: Kind
    title: str
    description: str
    inputSchema: dict[str, Any]  # noqa: N815  MCP's names
    outputSchema: dict[str, Any] | None  # noqa: N815
    annotations: dict[str, Any]
    read_only: bool | None = Field(description="An admin's mark; null where the definition says it.")
    is_read_only: bool = Field(
        description="What is in force: the mark, else the definition's `readOnlyHint`."
    )
    meta: dict[str, Any]
    size: SizeOut
    loading: Loading
    keywords: list[str]
    tags: list[str]
    state: State
    decisions: dict[str, DecisionOut] = Field(description="By policy; an agent sees its own.")


class ToolPageOut(Schema):
    model_config = example({"items": [TOOL_EXAMPLE], "next": None})

    items: list[ToolOut]
    next: str | None


class ToolQuery(Schema):
    """`q` is a query as agents search with; `state` is for admins."""

    server: Text = ""
    loading: Loading | None = None
    q: Text = ""
    state: State | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    cursor: Text | None = None


class ToolIn(BodyIn):
    """Fields that are left out stay."""

    model_config = example(
        {"loading": "always", "keywords": ["bug report"], "tags": ["triage"], "read_only": True}
    )

    answer_only = frozenset(ToolOut.model_fields) - {"loading", "keywords", "tags", "read_only"}

    loading: Choice[Loading] | None = None
    keywords: list[Text] | None = None
    hidden: bool | None = None
    tags: list[Text] | None = Field(None, description="All of them: one left out is taken off.")
    read_only: bool | None = Field(None, description="Null: what the definition says.")
