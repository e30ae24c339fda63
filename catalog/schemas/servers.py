"""Request and response bodies of servers and connection tests."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import StringConstraints, model_validator

from catalog.domain.choices import AuthKind, AuthState, Kind, Transport
from catalog.domain.limits import COUNT, DESCRIPTION_CHARS, SERVER_TIMEOUT_SECONDS
from catalog.domain.problems import Problems
from catalog.models.servers import Status
from catalog.request_bodies import BodyIn, Choice, Text, example

Name = Annotated[Text, StringConstraints(min_length=1, max_length=100)]


SERVER_EXAMPLE: dict[str, Any] = {
    "name": "github",
    "address": "github",
    "kind": "mcp",
    "transport": "http",
    "enabled": True,
    "demo": False,
    "description": "Issues, pull requests and code.",
    "deferLoading": None,
    "keepsNoState": False,
    "status": "ok",
    "tools": 40,
    "tokens": 9800,
    "last_refreshed_at": "2026-01-05T09:00:00Z",
    "last_error": "",
    "auth": {
        "kind": "headers",
        "state": "none",
        "issuer": "",
        "client_id": "",
        "scopes": [],
        "connected_by": "",
        "expires_at": None,
        "renews": False,
        "error": "",
    },
    "settings": {
        "refreshIntervalSeconds": 3600,
        "url": "https://mcp.example.com/",
        "headers": {"Authorization": "Bearer ${GITHUB_AUTHORIZATION}"},
    },
}


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


class AuthOut(Schema):
    """How this service proves to the server who it is. No token and no secret is ever shown."""

    kind: AuthKind
    state: AuthState
    issuer: str = Field(description="Who signs people in.")
    client_id: str = Field(description="Of a client of one's own; empty where the console made itself known.")
    scopes: list[str] = Field(description="Those that were granted, before that those that are asked for.")
    connected_by: str
    expires_at: datetime | None = Field(description="When the present token ends; null where it does not.")
    renews: bool = Field(description="Whether a new token needs nobody to sign in.")
    error: str


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
    keepsNoState: bool = Field(  # noqa: N815
        description="Whether keys may share one connection of the MCP gateway to it."
    )
    status: Status
    tools: int
    tokens: int
    last_refreshed_at: datetime | None
    last_error: str
    auth: AuthOut | None = Field(description="For admin keys only.")
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


class AuthIn(BodyIn):
    """A client of one's own, by which people or this service itself sign in to the server.

    What an answer says of the sign-in can be sent back, and changes nothing.
    """

    answer_only = frozenset({"state", "connected_by", "expires_at", "renews", "error"})

    kind: Choice[AuthKind] | None = Field(None, description="`none` forgets the client and the sign-in.")
    issuer: Text | None = Field(None, description="The authorization server that the client is for.")
    client_id: Text | None = None
    client_secret: Text | None = Field(None, description="Write-only; it may be a private key as PEM.")
    scopes: list[Text] | None = Field(None, description="Empty: those that the server asks for.")


class ServerFieldsIn(AddressIn):
    """An address as a config file has it: a `command` or a `url`, or `tools` given as a snapshot.

    `settings` holds the same fields of the address as an answer shows them.
    """

    answer_only = frozenset({"address", "demo", "status", "tokens", "last_refreshed_at", "last_error"})

    description: Annotated[Text, StringConstraints(max_length=DESCRIPTION_CHARS)] | None = Field(
        None, description="One line for prompts."
    )
    kind: Choice[Kind] | None = Field(None, description="Part of its tools' names. `mcp` where not given.")
    transport: Choice[Transport] | None = None
    deferLoading: bool | None = None  # noqa: N815
    keepsNoState: bool | None = Field(  # noqa: N815
        None, description="Whether keys may share one connection of the MCP gateway to it."
    )
    enabled: bool | None = None
    tools: list[dict[str, Any]] | None = Field(None, description="Definitions, for a snapshot.")
    auth: AuthIn | None = None
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
