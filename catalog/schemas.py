"""What the catalog's REST calls take and give."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema
from pydantic import ConfigDict, StringConstraints

from catalog.domain.choices import Kind, Loading, Outcome, Transport
from catalog.models.jobs import JobState
from catalog.models.model_support import Provider
from catalog.models.servers import Status
from catalog.models.tools import State

LARGEST = 2**31 - 1

# A database keeps no NUL character.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Name = Annotated[Text, StringConstraints(min_length=1, max_length=100)]

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
    "meta": {},
    "size": {"chars": 640, "tokens": 160},
    "loading": "inherit",
    "keywords": ["bug report"],
    "tags": [],
    "state": "active",
    "decisions": {"default": {"decision": "defer", "reason": "mode_always"}},
}
SERVER_EXAMPLE: dict[str, Any] = {
    "name": "github",
    "kind": "mcp",
    "transport": "http",
    "enabled": True,
    "deferLoading": None,
    "status": "ok",
    "tools": 40,
    "tokens": 9800,
    "last_refreshed_at": "2026-01-05T09:00:00Z",
    "last_error": "",
    "settings": {
        "refreshIntervalSeconds": 3600,
        "url": "https://mcp.example.com/",
        "headers": {"Authorization": "Bearer ${GITHUB_AUTHORIZATION}"},
    },
}


def example(value: object) -> ConfigDict:
    return ConfigDict(json_schema_extra={"example": value})  # type: ignore[dict-item]


class HealthOut(Schema):
    """Each part is `ok` or says in words what is wrong with it."""

    status: str = Field(examples=["ok"])
    database: str = Field(examples=["ok"])
    index: str = Field(examples=["ok"])
    worker: str = Field(examples=["ok"])
    decisions: str = Field(examples=["ok"])


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


class ToolIn(Schema):
    """Fields that are left out stay."""

    model_config = example({"loading": "always", "keywords": ["bug report"], "tags": ["triage"]})

    loading: Loading | None = None
    keywords: list[Text] | None = None
    hidden: bool | None = None
    tags: list[Text] | None = Field(None, description="All of them: one left out is taken off.")


class SettingsOut(Schema):
    """How a server is reached and how often; secrets are left out and stand as `${NAME}`."""

    refreshIntervalSeconds: int  # noqa: N815
    command: str | None = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    url: str | None = None
    headers: dict[str, str] | None = None


class ServerOut(Schema):
    model_config = example(SERVER_EXAMPLE)

    name: str
    kind: Kind
    transport: Transport
    enabled: bool
    deferLoading: bool | None  # noqa: N815
    status: Status
    tools: int
    tokens: int
    last_refreshed_at: datetime | None
    last_error: str
    settings: SettingsOut | None = Field(description="For admin keys only.")


class ServerListOut(Schema):
    model_config = example({"items": [SERVER_EXAMPLE], "next": None})

    items: list[ServerOut]
    next: str | None


class ServerFieldsIn(Schema):
    """An address as a config file has it: a `command` or a `url`, or `tools` given as a snapshot."""

    transport: Transport | None = None
    command: Text | None = None
    args: list[Text] | None = None
    env: dict[Text, Text] | None = None
    url: Text | None = None
    headers: dict[Text, Text] | None = None
    deferLoading: bool | None = None  # noqa: N815
    enabled: bool | None = None
    refreshIntervalSeconds: Annotated[int, Field(ge=10, le=LARGEST)] | None = None  # noqa: N815
    tools: list[dict[str, Any]] | None = Field(None, description="Definitions, for a snapshot.")


class ServerIn(ServerFieldsIn):
    model_config = example({"name": "github", "url": "https://mcp.example.com/", "deferLoading": True})

    name: Name


class ServerPatchIn(ServerFieldsIn):
    model_config = example({"deferLoading": True, "enabled": True})


class RunOut(Schema):
    """One attempt. `error_code` is empty for one that succeeded."""

    started_at: datetime
    finished_at: datetime
    added: int
    changed: int
    gone: int
    unchanged: int
    rejected: list[dict[str, Any]]
    error_code: str
    error: str


class RefreshOut(Schema):
    """`state` of the last refresh that was asked for, and what the last one that ended did."""

    model_config = example(
        {"server": "github", "state": "waiting", "attempts": 0, "error": "", "last_run": None}
    )

    server: str
    state: JobState | Literal["never"]
    attempts: int
    error: str
    last_run: RunOut | None


class PolicyOut(Schema):
    """Every field of the contract's section 5.1; `version` grows with every save."""

    model_config = example(
        {"slug": "default", "version": 1, "fields": {"mode": "always", "threshold_unit": "chars"}}
    )

    slug: str
    version: int
    fields: dict[str, Any]


class PolicyListOut(Schema):
    model_config = example({"items": [], "next": None})

    items: list[PolicyOut]
    next: str | None


class VersionOut(Schema):
    number: int
    actor: str
    saved_at: datetime
    fields: dict[str, Any]


class VersionListOut(Schema):
    model_config = example({"items": [], "next": None})

    items: list[VersionOut]
    next: str | None


class RollBackIn(Schema):
    model_config = example({"version": 1})

    version: Annotated[int, Field(ge=1, le=LARGEST)]


class PreviewIn(Schema):
    """Nothing of it is saved: fields of the policy, servers' `deferLoading`, tools' `loading`."""

    model_config = example({"policy": {"mode": "auto", "threshold": 5000}})

    policy: dict[str, Any] = Field(default_factory=dict)
    servers: dict[Text, bool | None] = Field(default_factory=dict)
    tools: dict[Text, Loading] = Field(default_factory=dict)


class FlipOut(Schema):
    name: str
    server: str
    tokens: int
    before: DecisionOut | None
    after: DecisionOut | None


class MeasureOut(Schema):
    unit: str
    value: float | None
    limit: float
    over: bool | None


class PreviewOut(Schema):
    """What would change its outcome, and the tokens sent in full before and after."""

    model_config = example(
        {
            "active": True,
            "tokens_before": 900,
            "tokens_after": 12000,
            "flips": [],
            "servers": [],
            "measure": {"unit": "chars", "value": 48000, "limit": 50000, "over": False},
            "readings": [],
        }
    )

    active: bool
    tokens_before: int
    tokens_after: int
    flips: list[FlipOut]
    servers: list[dict[str, Any]]
    measure: MeasureOut
    readings: list[MeasureOut]


class ImportOut(Schema):
    model_config = example(
        {
            "dialect": "pizzapi",
            "added": ["github"],
            "changed": [],
            "unchanged": [],
            "policy": "default",
            "policy_changes": {"mode": "auto"},
        }
    )

    dialect: str | None
    added: list[str]
    changed: list[str]
    unchanged: list[str]
    policy: str
    policy_changes: dict[str, Any]


class ConfigOut(Schema):
    """A config file: its servers, and the search settings under the dialect's own mark."""

    model_config = example({"mcpServers": {"github": {"type": "http", "url": "https://mcp.example.com/"}}})

    mcpServers: dict[str, dict[str, Any]]  # noqa: N815  the files' names
    toolSearch: dict[str, Any] | None = None  # noqa: N815
    env: dict[str, str] | None = None
    capabilities: dict[str, Any] | list[str] | None = None


class ModelIn(Schema):
    model_config = example(
        {"name_pattern": "claude-opus-4-5*", "provider": "anthropic", "hosted_search": True}
    )

    name_pattern: Name
    provider: Provider
    hosted_search: bool = False
    context_window: Annotated[int, Field(ge=1, le=LARGEST)] | None = None


class ModelOut(ModelIn):
    model_config = example(
        {
            "id": 1,
            "name_pattern": "claude-opus-4-5*",
            "provider": "anthropic",
            "hosted_search": True,
            "context_window": 200000,
        }
    )

    id: int


class ModelListOut(Schema):
    model_config = example({"items": [], "next": None})

    items: list[ModelOut]
    next: str | None
