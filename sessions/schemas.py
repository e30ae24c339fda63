"""REST schemas of the agents' calls."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from ninja import Field, Schema
from pydantic import ConfigDict, ModelWrapValidatorHandler, PrivateAttr, model_validator

from catalog.domain.limits import COUNT, RESULTS, ROW_ID
from catalog.request_bodies import BodyIn, ShortText, Text
from catalog.search.request import MatchedBy
from sessions.builtin_schema import BuiltinIn
from sessions.models import CallOutcome, Via
from sessions.schema_types import Count, ExternalId, Glob

STATE_EXAMPLE: dict[str, Any] = {
    "id": "6f1d4c1e-7b1a-4a53-9a66-0c8b8f6f3f10",
    "external_id": "chat-42",
    "policy": "default",
    "model": "claude-opus-4-5",
    "active": True,
    "turn": 3,
    "context_window": 200000,
    "context_used": 18200,
    "version": 5,
    "counts": {"total": 262, "loaded": 3, "deferred": 259, "discovered": 2, "locked": 0},
    "tokens": {"full": 61200, "sent": 980, "saved": 60220},
    "loaded": [{"name": "mcp__github__create_issue", "server": "github", "reason": "discovered", "turn": 2}],
    "deferred_by_server": {"github": 39, "slack": 24},
    "created_at": "2026-01-05T09:00:00Z",
    "last_seen_at": "2026-01-05T09:12:31Z",
    "expires_at": "2026-02-04T09:12:31Z",
}


SNAPSHOT_EXAMPLE: dict[str, Any] = {
    "id": 7,
    "cause": "compaction",
    "turn": 3,
    "loaded": ["mcp__github__create_issue"],
    "search_tool": "search_tools",
    "active": True,
    "context_used": 18200,
    "created_at": "2026-01-05T09:12:31Z",
}


CALL_EXAMPLE: dict[str, Any] = {
    "id": 4711,
    "at": "2026-01-05T09:12:31Z",
    "key": "coding-agent",
    "client": "claude-code",
    "revision": "2026-07-28",
    "policy": "default",
    "server": "github",
    "tool": "mcp__github__create_issue",
    "via": "call_tool",
    "outcome": "ok",
    "duration_ms": 240,
    "upstream_ms": 236,
    "request_bytes": 312,
    "result_bytes": 1840,
    "is_cut": False,
    "error": "",
}


class SessionFieldsIn(BodyIn):
    """`visible` narrows what the policy shows: globs over qualified or bare names and `server/tool`."""

    _is_state: bool = PrivateAttr(default=False)

    answer_only = frozenset(
        {
            "id",
            "active",
            "turn",
            "context_used",
            "version",
            "counts",
            "tokens",
            "loaded",
            "deferred_by_server",
            "created_at",
            "last_seen_at",
            "expires_at",
        }
    )

    model: ShortText | None = None
    context_window: Annotated[int, Field(ge=1, le=COUNT)] | None = None
    visible: list[Glob] | None = Field(None, max_length=1000)
    builtin_tools: list[BuiltinIn] | None = Field(None, max_length=1000)

    @model_validator(mode="wrap")
    @classmethod
    def _see_state(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """A body with fields that only a state has is a state sent back."""
        read = handler(given)
        is_state = isinstance(given, dict) and not SessionFieldsIn.answer_only.isdisjoint(given)
        read._is_state = is_state  # noqa: SLF001  its own
        return read

    def given(self) -> dict[str, Any]:
        """The fields that were sent, builtin tools as plain definitions.

        A state's window is `shown_window`: it may be its model's or its policy's.
        """
        sent = [name for name in SessionFieldsIn.model_fields if name in self.model_fields_set]
        values = {name: getattr(self, name) for name in sent}
        if values.get("builtin_tools"):
            values["builtin_tools"] = [tool.to_definition() for tool in values["builtin_tools"]]
        if self._is_state and values.get("context_window") is not None:
            values["shown_window"] = values.pop("context_window")
        return values


class SessionIn(SessionFieldsIn):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "external_id": "chat-42",
                "model": "claude-opus-4-5",
                "visible": ["github/*", "slack/*"],
            }
        }
    )

    policy: ShortText | None = None
    external_id: ExternalId | None = None


class SessionPatchIn(SessionFieldsIn):
    model_config = ConfigDict(json_schema_extra={"example": {"model": "gpt-5.4", "context_window": 400000}})

    answer_only = SessionFieldsIn.answer_only | {"external_id", "policy"}


class CountsOut(Schema):
    total: int
    loaded: int = Field(description="Every tool sent in full.")
    deferred: int
    discovered: int = Field(description="Those of the loaded that a search loaded.")
    locked: int = Field(
        description="Tools that quarantine keeps out of the list until an admin approves them."
    )


class TokensOut(Schema):
    full: int = Field(description="What eager loading would put before the model.")
    sent: int
    saved: int


class LoadedOut(Schema):
    name: str
    server: str
    reason: str = Field(description="The rule's id, or `discovered`.")
    turn: int


class StateOut(Schema):
    model_config = ConfigDict(json_schema_extra={"example": STATE_EXAMPLE})

    id: UUID
    external_id: str | None
    policy: str
    model: str | None
    active: bool
    turn: int
    context_window: int
    context_used: int
    version: int
    counts: CountsOut
    tokens: TokensOut
    loaded: list[LoadedOut]
    deferred_by_server: dict[str, int]
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


class RestoredOut(StateOut):
    model_config = ConfigDict(
        json_schema_extra={"example": {**STATE_EXAMPLE, "lost": ["mcp__crm__old_tool"]}}
    )

    lost: list[str] = Field(description="Tools of the snapshot that no longer exist.")


class StateListOut(Schema):
    model_config = ConfigDict(json_schema_extra={"example": {"items": [STATE_EXAMPLE], "next": None}})

    items: list[StateOut]
    next: str | None


class SearchIn(BodyIn):
    """Exactly one of `query` and `pattern`. A model may have written it: unknown fields are ignored."""

    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"example": {"query": "create a github issue", "max_results": 3}}
    )

    query: Text | None = None
    pattern: Text | None = None
    max_results: Annotated[int, Field(ge=1, le=RESULTS)] | None = None
    load: bool = True
    call_id: Text | None = None


class MatchOut(Schema):
    name: str
    server: str
    tool: str
    title: str
    description: str
    parameters: list[str]
    inputSchema: dict[str, Any]  # noqa: N815
    score: float
    already_loaded: bool
    by: MatchedBy = Field(description="Whether the query's words or its meaning found the tool, or both did.")


class SummaryOut(Schema):
    name: str
    description: str


class ReferenceOut(Schema):
    type: Literal["tool_reference"]
    tool_name: str


class SearchOut(Schema):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "outcome": "matched",
                "query": "create a github issue",
                "form": "keywords",
                "matches": [
                    {
                        "name": "mcp__github__create_issue",
                        "server": "github",
                        "tool": "create_issue",
                        "title": "Create issue",
                        "description": "Open a new issue in a repository.",
                        "parameters": ["owner", "repo", "title"],
                        "inputSchema": {"type": "object"},
                        "score": 11.2,
                        "already_loaded": False,
                        "by": "both",
                    }
                ],
                "loaded": ["mcp__github__create_issue"],
                "missing": [],
                "unmatched_terms": [],
                "fallback": [],
                "truncated": False,
                "tool_references": [{"type": "tool_reference", "tool_name": "mcp__github__create_issue"}],
                "anthropic": [{"type": "tool_reference", "tool_name": "mcp__github__create_issue"}],
                "openai": {
                    "type": "tool_search_output",
                    "execution": "client",
                    "call_id": None,
                    "status": "completed",
                    "tools": [],
                },
                "message": "Found 1 tool: mcp__github__create_issue. Loaded now: mcp__github__create_issue.",
                "took_ms": 1.2,
            }
        }
    )

    outcome: Literal["matched", "no_match", "listing", "inactive"]
    query: str
    form: Literal["keywords", "required", "select", "pattern", "listing"]
    matches: list[MatchOut]
    loaded: list[str]
    missing: list[str]
    unmatched_terms: list[str]
    fallback: list[SummaryOut]
    truncated: bool
    tool_references: list[ReferenceOut]
    anthropic: list[dict[str, Any]]
    openai: dict[str, Any]
    message: str
    took_ms: float


class TurnIn(BodyIn):
    """`context_used` in tokens; `visible` narrows the next turn only."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"context_used": 18200, "called": ["mcp__github__create_issue"]}}
    )

    context_used: Count | None = None
    called: list[Text] = Field(default_factory=list, max_length=10000)
    visible: list[Glob] | None = Field(None, max_length=1000)


class UnloadIn(BodyIn):
    model_config = ConfigDict(json_schema_extra={"example": {"names": ["mcp__github__create_issue"]}})

    names: list[Text] = Field(max_length=10000)


class RestoreIn(BodyIn):
    model_config = ConfigDict(json_schema_extra={"example": {"snapshot": 7}})

    snapshot: Annotated[int, Field(ge=1, le=ROW_ID)]


class SnapshotOut(Schema):
    model_config = ConfigDict(json_schema_extra={"example": SNAPSHOT_EXAMPLE})

    id: int
    cause: str
    turn: int
    loaded: list[str]
    search_tool: str
    active: bool
    context_used: int
    created_at: datetime


class SnapshotListOut(Schema):
    model_config = ConfigDict(json_schema_extra={"example": {"items": [SNAPSHOT_EXAMPLE], "next": None}})

    items: list[SnapshotOut]
    next: str | None


class ToolListOut(Schema):
    """`tools` and `search_tool` have the shape that the format's API takes as it is."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "session": "6f1d4c1e-7b1a-4a53-9a66-0c8b8f6f3f10",
                "policy": "default",
                "version": 5,
                "active": True,
                "format": "mcp",
                "tools": [{"name": "mcp__github__create_issue", "inputSchema": {"type": "object"}}],
                "deferred": [{"name": "mcp__slack__send_message", "description": "Post to a channel."}],
                "search_tool": {"name": "search_tools", "inputSchema": {"type": "object"}},
                "prompt": "259 tools are deferred. To use one, first call search_tools…",
                "routes": {"mcp__github__create_issue": ["github", "create_issue"]},
                "counts": STATE_EXAMPLE["counts"],
                "tokens": STATE_EXAMPLE["tokens"],
                "warnings": [],
            }
        }
    )

    session: UUID | None
    policy: str
    version: int
    active: bool
    format: Literal["mcp", "anthropic", "openai", "stub"]
    tools: list[dict[str, Any]]
    deferred: list[SummaryOut]
    search_tool: dict[str, Any] | None
    prompt: str
    routes: dict[str, list[str]]
    counts: CountsOut
    tokens: TokensOut
    warnings: list[str] = Field(
        description="A limit of the model's API that is passed, and deferring that costs more than it saves."
    )


class CallQuery(Schema):
    key: ShortText | None = None
    server: ShortText | None = None
    tool: ShortText | None = None
    outcome: CallOutcome | None = None
    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = None


class CallOut(Schema):
    """`upstream_ms` is null where the server was not asked; `error` is the server's or our own word."""

    model_config = ConfigDict(json_schema_extra={"example": CALL_EXAMPLE})

    id: int
    at: datetime
    key: str
    client: str
    revision: str
    policy: str
    server: str
    tool: str
    via: Via
    outcome: CallOutcome
    duration_ms: int
    upstream_ms: int | None
    request_bytes: int
    result_bytes: int
    is_cut: bool
    error: str


class CallListOut(Schema):
    model_config = ConfigDict(json_schema_extra={"example": {"items": [CALL_EXAMPLE], "next": None}})

    items: list[CallOut]
    next: str | None
