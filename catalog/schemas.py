"""REST schemas of the catalog."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema
from pydantic import StringConstraints, model_validator

from catalog.domain.choices import Kind, Loading, Outcome, Transport
from catalog.domain.limits import COUNT, DESCRIPTION_CHARS, MODEL_PRICE_DOLLARS, SERVER_TIMEOUT_SECONDS
from catalog.domain.problems import Problems
from catalog.models.jobs import JobState
from catalog.models.model_support import Provider
from catalog.models.servers import Status
from catalog.models.tools import State
from catalog.request_bodies import BodyIn, Choice, Text, example
from catalog.services.import_plans import ImportAction

Price = Annotated[
    float,
    Field(
        ge=0,
        le=MODEL_PRICE_DOLLARS,
        allow_inf_nan=False,
        description="US dollars per million tokens, to six decimals; null where it is not known.",
    ),
]
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
    "address": "github",
    "kind": "mcp",
    "transport": "http",
    "enabled": True,
    "demo": False,
    "description": "Issues, pull requests and code.",
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


class HealthOut(Schema):
    """Each part is `ok` or says in words what is wrong with it."""

    status: str = Field(examples=["ok"])
    database: str = Field(examples=["ok"])
    index: str = Field(examples=["ok"])
    worker: str = Field(examples=["ok"])
    decisions: str = Field(examples=["ok"])
    disk: str = Field(examples=["ok"])


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


class ToolIn(BodyIn):
    """Fields that are left out stay."""

    model_config = example({"loading": "always", "keywords": ["bug report"], "tags": ["triage"]})

    read_only = frozenset(ToolOut.model_fields) - {"loading", "keywords", "tags"}

    loading: Choice[Loading] | None = None
    keywords: list[Text] | None = None
    hidden: bool | None = None
    tags: list[Text] | None = Field(None, description="All of them: one left out is taken off.")


class SettingsOut(Schema):
    """How a server is reached and how often; secrets are left out and stand as `${NAME}`."""

    refreshIntervalSeconds: int  # noqa: N815
    command: str | None = None
    args: list[str] | None = None
    secretArgs: list[int] | None = None  # noqa: N815
    env: dict[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    timeoutSeconds: int | None = None  # noqa: N815


class ServerOut(Schema):
    model_config = example(SERVER_EXAMPLE)

    name: str
    address: str = Field(description="What stands for it in addresses, not encoded: the name, or `~12`.")
    kind: Kind
    transport: Transport
    enabled: bool
    demo: bool = Field(description="Whether it came with the demo catalog.")
    description: str
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


class AddressIn(BodyIn):
    """How a server is reached: a `command` or a `url`, as a config file has it; and how often."""

    command: Text | None = None
    args: list[Text] | None = None
    secretArgs: list[Annotated[int, Field(ge=0, le=COUNT)]] | None = Field(  # noqa: N815
        None, description="Positions, from 0, of arguments that are secret though they do not look it."
    )
    env: dict[Text, Text] | None = None
    cwd: Text | None = Field(None, description="The folder that a command runs in.")
    url: Text | None = None
    headers: dict[Text, Text] | None = None
    timeoutSeconds: Annotated[int, Field(ge=1, le=SERVER_TIMEOUT_SECONDS)] | None = Field(  # noqa: N815
        None, description="How long it may take to connect, and to list its tools."
    )
    refreshIntervalSeconds: Annotated[int, Field(ge=10, le=COUNT)] | None = None  # noqa: N815


class ServerFieldsIn(AddressIn):
    """An address as a config file has it: a `command` or a `url`, or `tools` given as a snapshot.

    `settings` holds the same fields of the address as an answer shows them.
    """

    read_only = frozenset({"address", "demo", "status", "tokens", "last_refreshed_at", "last_error"})

    description: Annotated[Text, StringConstraints(max_length=DESCRIPTION_CHARS)] | None = Field(
        None, description="One line for prompts."
    )
    kind: Choice[Kind] | None = Field(None, description="Part of its tools' names. `mcp` where not given.")
    transport: Choice[Transport] | None = None
    deferLoading: bool | None = None  # noqa: N815
    enabled: bool | None = None
    tools: list[dict[str, Any]] | None = Field(None, description="Definitions, for a snapshot.")
    settings: AddressIn | None = None

    @model_validator(mode="before")
    @classmethod
    def _drop_count(cls, given: Any) -> Any:
        """In an answer `tools` is how many there are."""
        if not isinstance(given, dict) or type(given.get("tools")) is not int:
            return given
        return {name: value for name, value in given.items() if name != "tools"}

    def given(self) -> dict[str, Any]:
        """The fields that were sent, those in `settings` included. Raises InvalidInput for one that has two
        values.
        """
        sent = {name: getattr(self, name) for name in self.model_fields_set - {"settings"}}
        shown = self.settings.model_dump(exclude_none=True) if self.settings else {}
        problems = Problems()
        for name, value in shown.items():
            if sent.get(name, value) not in (value, None):
                problems.add(f"settings.{name}", "is given twice, with two values")
        problems.raise_if_any()
        return {**sent, **shown}


class ServerIn(ServerFieldsIn):
    model_config = example({"name": "github", "url": "https://mcp.example.com/", "deferLoading": True})

    name: Name


class ServerPatchIn(ServerFieldsIn):
    model_config = example({"deferLoading": True, "enabled": True})

    name: Name | None = Field(None, description="As it is: a server keeps its name.")


class TestOut(Schema):
    """What a connection test found. `error` says why it failed, as a refresh would."""

    model_config = example(
        {"ok": True, "tools": 2, "took_ms": 840, "error": "", "names": ["create_issue", "list_issues"]}
    )

    ok: bool
    tools: int = Field(description="How many the server lists.")
    took_ms: int
    error: str
    names: list[str] = Field(description="The first of its tools.")


class RunOut(Schema):
    """One attempt. `error_code` is empty for one that succeeded; `rejected_more` were kept out too."""

    started_at: datetime
    finished_at: datetime
    added: int
    changed: int
    gone: int
    unchanged: int
    rejected: list[dict[str, Any]]
    rejected_more: int
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


class RollBackIn(BodyIn):
    model_config = example({"version": 1})

    version: Annotated[int, Field(ge=1, le=COUNT)]


class PlannedServerOut(Schema):
    model_config = example(
        {
            "name": "github",
            "action": "add",
            "reason": "is new",
            "transport": "http",
            "target": "https://mcp.example.com/",
            "enabled": True,
            "project": None,
            "ignored": ["timeout"],
            "missing": ["GITHUB_TOKEN"],
        }
    )

    name: str
    action: ImportAction
    reason: str
    transport: str | None
    target: str = Field(description="The command line or address as it will be used, secrets masked.")
    enabled: bool
    project: str | None = Field(description="The project of the file that it stands in.")
    ignored: list[str] = Field(description="Keys that nothing here reads.")
    missing: list[str] = Field(description="Variables that are not set, and values that a client asks for.")


class ImportOut(Schema):
    model_config = example(
        {
            "dialect": "pizzapi",
            "format": "mcpServers",
            "servers": [
                {
                    "name": "github",
                    "action": "add",
                    "reason": "is new",
                    "transport": "http",
                    "target": "https://mcp.example.com/",
                    "enabled": True,
                    "project": None,
                    "ignored": ["timeout"],
                    "missing": [],
                }
            ],
            "settings": {"mode": "auto"},
            "added": ["github"],
            "changed": [],
            "replaced": [],
            "unchanged": [],
            "policy": "default",
            "policy_changes": {"mode": "auto"},
            "ignored": {"github": ["timeout"]},
            "ignored_keys": ["theme"],
            "disabled": [],
        }
    )

    dialect: str | None
    format: str = Field(
        description="`mcpServers`, `vscode`, `zed`, `opencode`, `codex`, `goose`, `bare` or `line`; the"
        " dialect where the file has settings alone."
    )
    servers: list[PlannedServerOut] = Field(description="Each server of the file and what becomes of it.")
    settings: dict[str, Any] = Field(description="The search settings of the file, as fields of the policy.")
    added: list[str]
    changed: list[str]
    replaced: list[str] = Field(description="Of `changed`, those that get another command or address.")
    unchanged: list[str]
    policy: str
    policy_changes: dict[str, Any]
    ignored: dict[str, list[str]] = Field(description="Keys of servers that nothing here reads.")
    ignored_keys: list[str] = Field(description="The first keys beside the servers that nothing here reads.")
    disabled: list[str] = Field(description="Servers of the file that are not used after it.")


class ConfigOut(Schema):
    """A config file: its servers, and the search settings under the dialect's own mark."""

    model_config = example({"mcpServers": {"github": {"type": "http", "url": "https://mcp.example.com/"}}})

    mcpServers: dict[str, dict[str, Any]]  # noqa: N815  the files' names
    toolSearch: dict[str, Any] | None = None  # noqa: N815
    env: dict[str, str] | None = None
    capabilities: dict[str, Any] | list[str] | None = None


class ModelIn(BodyIn):
    model_config = example(
        {"name_pattern": "claude-opus-4-5*", "provider": "anthropic", "hosted_search": True}
    )

    read_only = frozenset({"id", "prices_are_examples"})

    name_pattern: Name
    provider: Choice[Provider]
    hosted_search: bool = False
    context_window: Annotated[int, Field(ge=1, le=COUNT)] | None = None
    input_price: Price | None = None
    cached_input_price: Price | None = None


UNSETTABLE = frozenset({"context_window", "input_price", "cached_input_price"})


class ModelPatchIn(BodyIn):
    model_config = example({"context_window": 200000})

    read_only = frozenset({"id", "prices_are_examples"})

    name_pattern: Name | None = None
    provider: Choice[Provider] | None = None
    hosted_search: bool | None = None
    context_window: Annotated[int, Field(ge=1, le=COUNT)] | None = None
    input_price: Price | None = None
    cached_input_price: Price | None = None

    def changes(self) -> dict[str, Any]:
        """Of the fields, only the window and the prices can be unset."""
        given = self.model_dump(include=self.model_fields_set)
        return {field: value for field, value in given.items() if value is not None or field in UNSETTABLE}


class ModelOut(Schema):
    model_config = example(
        {
            "id": 1,
            "name_pattern": "claude-opus-4-5*",
            "provider": "anthropic",
            "hosted_search": True,
            "context_window": 200000,
            "input_price": 5.0,
            "cached_input_price": 0.5,
            "prices_are_examples": False,
        }
    )

    id: int
    name_pattern: str
    provider: Provider
    hosted_search: bool
    context_window: int | None
    input_price: Price | None
    cached_input_price: Price | None
    prices_are_examples: bool = Field(description="The demo's prices, which nobody has set.")


class ModelListOut(Schema):
    model_config = example({"items": [], "next": None})

    items: list[ModelOut]
    next: str | None
