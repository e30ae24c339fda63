"""The rules that the five seed documents state, as rows: a document and the reason it must lead to."""

from dataclasses import dataclass
from typing import Any

from tests.catalog.domain.making import make_definition, make_document

PIZZAPI = "000_69e1623f0528d965.txt"
EVERRUNS = "001_705bcffb23268291.txt"
TOOLSEARCH = "002_2db4547d444ccfa4.txt"
CLAUDE_CODE = "003_903029b97bf3c319.txt"
AGENT_SDK = "004_f86c49123ec6bd37.txt"

AUTO_CHARS = {"mode": "auto", "thresholdUnit": "chars", "threshold": 10_000}
AUTO_TOOLS = {"mode": "auto", "thresholdUnit": "tools", "deferBuiltins": True}
AUTO_USED = {"mode": "auto", "thresholdUnit": "context_used"}
GITHUB = "mcp__github__create_issue"


def github(chars: int = 100, **fields: Any) -> dict[str, list[dict[str, Any]]]:
    return {"github": [make_definition("create_issue", chars=chars, **fields)]}


def agent_tools(count: int) -> dict[str, list[dict[str, Any]]]:
    return {"agent": [make_definition(f"tool_{number:02}") for number in range(count)]}


BUILTIN_AGENT = {"agent": {"kind": "builtin"}}


@dataclass(frozen=True)
class Row:
    seed: str
    rule: str
    document: dict[str, Any]
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.seed[:3]} {self.rule}"


ROWS = [
    Row(
        PIZZAPI,
        "more characters than the threshold defer all MCP tools",
        make_document(github(10_001), policy=AUTO_CHARS),
        GITHUB,
        "over_threshold",
    ),
    Row(
        PIZZAPI,
        "as many characters as the threshold do not exceed it",
        make_document(github(10_000), policy=AUTO_CHARS),
        GITHUB,
        "under_threshold",
    ),
    Row(
        PIZZAPI,
        "the size is that of name, description and JSON schema together",
        make_document(
            {"github": [{"name": "ab", "description": "cde", "inputSchema": {"é": 1}}]},
            policy={"mode": "auto", "threshold": 11},
        ),
        "mcp__github__ab",
        "over_threshold",
    ),
    Row(
        PIZZAPI,
        "built-in tools are never deferred",
        make_document(
            {**github(10_001), "agent": [make_definition("bash")]}, policy=AUTO_CHARS, servers=BUILTIN_AGENT
        ),
        "bash",
        "builtin",
    ),
    Row(
        PIZZAPI,
        "discovered tools stay loaded",
        make_document(github(10_001), policy=AUTO_CHARS, session={"loaded": [GITHUB]}),
        GITHUB,
        "discovered",
    ),
    Row(
        PIZZAPI,
        "a server with deferLoading true is deferred below the threshold",
        make_document(github(), policy=AUTO_CHARS, servers={"github": {"deferLoading": True}}),
        GITHUB,
        "server_defer",
    ),
    Row(
        PIZZAPI,
        "a server with deferLoading false is loaded over the threshold",
        make_document(github(10_001), policy=AUTO_CHARS, servers={"github": {"deferLoading": False}}),
        GITHUB,
        "server_load",
    ),
    Row(
        PIZZAPI,
        "a server without deferLoading follows the threshold",
        make_document(github(), policy=AUTO_CHARS, servers={"github": {"deferLoading": None}}),
        GITHUB,
        "under_threshold",
    ),
    Row(
        EVERRUNS,
        "as many tools as the threshold of 15 are deferred",
        make_document(agent_tools(15), policy=AUTO_TOOLS, servers=BUILTIN_AGENT),
        "tool_00",
        "over_threshold",
    ),
    Row(
        EVERRUNS,
        "fewer tools than the threshold go out in full",
        make_document(agent_tools(14), policy=AUTO_TOOLS, servers=BUILTIN_AGENT),
        "tool_00",
        "under_threshold",
    ),
    Row(
        EVERRUNS,
        "a tool whose owner says never keeps its schema",
        make_document(
            {"agent": [*agent_tools(15)["agent"], make_definition("write_todos", loading="always")]},
            policy=AUTO_TOOLS,
            servers=BUILTIN_AGENT,
        ),
        "write_todos",
        "tool_always",
    ),
    Row(
        EVERRUNS,
        "a tool whose owner says always is deferred below the threshold too",
        make_document({"agent": [make_definition("rare", loading="defer")]}, policy=AUTO_TOOLS),
        "mcp__agent__rare",
        "tool_defer",
    ),
    Row(
        EVERRUNS,
        "an allowlisted name is loaded whoever owns the tool",
        make_document(
            agent_tools(15), policy={**AUTO_TOOLS, "never_defer": ["tool_07"]}, servers=BUILTIN_AGENT
        ),
        "tool_07",
        "never_defer",
    ),
    Row(
        EVERRUNS,
        "MCP tools count and are deferred beside the agent's own",
        make_document(
            {**agent_tools(14), **github()}, policy=AUTO_TOOLS, servers={"agent": {"kind": "builtin"}}
        ),
        GITHUB,
        "over_threshold",
    ),
    Row(
        TOOLSEARCH,
        "everything is loaded before 10% of the context is used",
        make_document(github(), policy=AUTO_USED, session={"context_used": 19_999}),
        GITHUB,
        "under_threshold",
    ),
    Row(
        TOOLSEARCH,
        "from 10% of the context on tools are lazy",
        make_document(github(), policy=AUTO_USED, session={"context_used": 20_000}),
        GITHUB,
        "over_threshold",
    ),
    Row(
        TOOLSEARCH,
        "the percentage is of the session's own window",
        make_document(
            github(), policy=AUTO_USED, session={"context_used": 20_000, "context_window": 1_000_000}
        ),
        GITHUB,
        "under_threshold",
    ),
    Row(
        TOOLSEARCH,
        "tools of plugins are deferred like those of MCP servers",
        make_document(
            github(),
            policy=AUTO_USED,
            servers={"github": {"kind": "plugin"}},
            session={"context_used": 99_999},
        ),
        "plugin__github__create_issue",
        "over_threshold",
    ),
    Row(
        CLAUDE_CODE,
        "a definition that asks for alwaysLoad is loaded",
        make_document(github(_meta={"anthropic/alwaysLoad": True})),
        GITHUB,
        "meta_always_load",
    ),
    Row(
        CLAUDE_CODE,
        "MCP tools are deferred by default",
        make_document(github()),
        GITHUB,
        "mode_always",
    ),
    Row(
        CLAUDE_CODE,
        "core built-in tools are never deferred",
        make_document({"agent": [make_definition("Agent")]}, servers=BUILTIN_AGENT),
        "Agent",
        "builtin",
    ),
    Row(
        CLAUDE_CODE,
        "built-in tools flagged shouldDefer are deferred",
        make_document({"agent": [make_definition("Rare", shouldDefer=True)]}, servers=BUILTIN_AGENT),
        "Rare",
        "mode_always",
    ),
    Row(
        CLAUDE_CODE,
        "whatever is uncertain is loaded",
        make_document(
            {"github": [{"name": "create_issue", "inputSchema": {"x": float("nan")}}]}, policy=AUTO_CHARS
        ),
        GITHUB,
        "uncertain",
    ),
    Row(
        CLAUDE_CODE,
        "standard mode never defers",
        make_document(github(), policy={"mode": "off"}, servers={"github": {"deferLoading": True}}),
        GITHUB,
        "search_off",
    ),
]
