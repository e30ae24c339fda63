"""Request and response bodies of config imports and exports."""

from typing import Any

from ninja import Field, Schema

from catalog.request_bodies import example
from catalog.services.import_plans import ImportAction


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
