"""Config files as the documentation of their clients shapes them, with what an import makes of each.

The shapes are the clients'; names, addresses and secrets are made up.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

KEY = "sk-live-0123456789abcdefXYZ"


@dataclass(frozen=True)
class Case:
    """`taken` are the servers that are stored, with the fields that are not at their defaults; `refused` a
    piece of the reason, and `missing` and `ignored` the names, by server. With `error` nothing is stored.
    """

    what: str
    text: str
    format: str = "mcpServers"
    taken: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    projects: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


def run(command: str, *args: str, **more: Any) -> dict[str, Any]:
    return {"command": command, "args": args, **more}


def reach(url: str, **more: Any) -> dict[str, Any]:
    return {"url": url, "transport": "http", **more}


HTTPS = "https://mcp.example.com/mcp"
CASES = (
    Case(
        "Claude Desktop",
        json.dumps({"mcpServers": {"files": {"command": "npx", "args": ["-y", "server-files", "/home/me"]}}}),
        taken={"files": run("npx", "-y", "server-files", "/home/me")},
    ),
    Case(
        "Claude Code, with a variable, a default and a transport",
        """{"mcpServers": {"api": {"type": "http", "url": "${API_BASE:-https://mcp.example.com}/mcp",
            "headers": {"Authorization": "Bearer ${SURELY_UNSET_KEY}"}}}}""",
        taken={
            "api": reach(
                "${API_BASE:-https://mcp.example.com}/mcp",
                headers={"Authorization": "Bearer ${SURELY_UNSET_KEY}"},
            )
        },
        missing={"api": ("SURELY_UNSET_KEY",)},
    ),
    Case(
        "Claude Code's own file, with servers of projects",
        json.dumps(
            {
                "numStartups": 5,
                "mcpServers": {"global": {"url": HTTPS}},
                "projects": {
                    "/home/me/shop": {
                        "mcpServers": {"db": {"command": "db-mcp"}, "off": {"command": "off-mcp"}},
                        "disabledMcpServers": ["off"],
                    },
                    "/home/me/blog": {"mcpServers": {"db": {"command": "db-mcp", "args": ["--blog"]}}},
                    "/home/me/copy": {"mcpServers": {"db": {"command": "db-mcp"}}},
                    "/home/me/none": {"mcpServers": {}},
                },
            }
        ),
        taken={
            "global": reach(HTTPS),
            "db": run("db-mcp"),
            "db-blog": run("db-mcp", "--blog"),
            "off": run("off-mcp", enabled=False),
        },
        projects={"db": "/home/me/shop", "db-blog": "/home/me/blog", "off": "/home/me/shop"},
    ),
    Case(
        "Cursor, with a variable of the environment",
        json.dumps({"mcpServers": {"gh": {"url": HTTPS, "headers": {"X-Key": "${env:SURELY_UNSET_KEY}"}}}}),
        taken={"gh": reach(HTTPS, headers={"X-Key": "${SURELY_UNSET_KEY}"})},
        missing={"gh": ("SURELY_UNSET_KEY",)},
    ),
    Case(
        "Cline, one of them disabled",
        json.dumps(
            {
                "mcpServers": {
                    "on": {"command": "node", "args": ["/srv/a.js"], "alwaysAllow": ["x"], "disabled": False},
                    "off": {"command": "node", "args": ["/srv/b.js"], "disabled": True, "timeout": 60},
                }
            }
        ),
        taken={"on": run("node", "/srv/a.js"), "off": run("node", "/srv/b.js", enabled=False)},
        ignored={"on": ("alwaysAllow",), "off": ("timeout",)},
    ),
    Case(
        "Cline, with its own word for the transport",
        json.dumps({"mcpServers": {"events": {"url": "https://e.example/sse", "transportType": "sse"}}}),
        taken={"events": reach("https://e.example/sse", transport="sse")},
    ),
    Case(
        "Windsurf",
        json.dumps({"mcpServers": {"remote": {"serverUrl": HTTPS, "headers": {"API_KEY": KEY}}}}),
        taken={"remote": reach(HTTPS, headers={"API_KEY": KEY})},
    ),
    Case(
        "Gemini CLI",
        json.dumps(
            {
                "mcpServers": {
                    "http": {"httpUrl": HTTPS, "url": "https://old.example/sse", "trust": True},
                    "local": {
                        "command": "python",
                        "args": ["-m", "srv"],
                        "env": {"KEY": "$SURELY_UNSET_KEY"},
                    },
                },
                "theme": "Default",
            }
        ),
        taken={
            "http": reach(HTTPS),
            "local": run("python", "-m", "srv", env={"KEY": "${SURELY_UNSET_KEY}"}),
        },
        ignored={"http": ("trust", "url")},
        missing={"local": ("SURELY_UNSET_KEY",)},
    ),
    Case(
        "Roo, streamable",
        json.dumps({"mcpServers": {"r": {"type": "streamable-http", "url": HTTPS, "alwaysAllow": []}}}),
        taken={"r": reach(HTTPS)},
        ignored={"r": ("alwaysAllow",)},
    ),
    Case(
        "mcpproxy, a list with names",
        json.dumps(
            {
                "listen": ":8080",
                "mcpServers": [
                    {"name": "one", "url": HTTPS, "protocol": "http", "enabled": True, "quarantined": False},
                    {
                        "name": "two",
                        "command": "uvx",
                        "args": ["two-mcp"],
                        "protocol": "stdio",
                        "enabled": False,
                    },
                    {"name": "three", "url": HTTPS, "protocol": "auto"},
                    {"command": "nameless"},
                ],
            }
        ),
        taken={
            "one": reach(HTTPS),
            "two": run("uvx", "two-mcp", enabled=False),
            "three": reach(HTTPS),
        },
        refused={"mcpServers[3]": "needs a name"},
        ignored={"one": ("quarantined",)},
    ),
    Case(
        "VS Code with comments, trailing commas and inputs",
        """{
          // asked for once
          "inputs": [{"type": "promptString", "id": "gh-token", "description": "A token", "password": true},],
          "servers": {
            "github": {
              "type": "http", "url": "https://api.example.com/mcp/", // the hosted one
              "headers": {"Authorization": "Bearer ${input:gh-token}"},
            },
            /* runs here */
            "files": {"type": "stdio", "command": "npx", "args": ["-y", "x", "${workspaceFolder}"],
              "envFile": ".env"},
          },
        }""",
        format="vscode",
        taken={
            "github": reach(
                "https://api.example.com/mcp/", headers={"Authorization": "Bearer ${input:gh-token}"}
            ),
            "files": run("npx", "-y", "x", "${workspaceFolder}"),
        },
        missing={"github": ("input:gh-token",), "files": ("workspaceFolder",)},
        ignored={"files": ("envFile",)},
    ),
    Case(
        "VS Code's settings",
        json.dumps({"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "a-mcp"}}}}),
        format="vscode",
        taken={"a": run("a-mcp")},
    ),
    Case(
        "VS Code, a variable that is a number and one that is null",
        json.dumps({"servers": {"a": {"command": "a-mcp", "env": {"PORT": 8080, "HOME": None, "X": "y"}}}}),
        format="vscode",
        taken={"a": run("a-mcp", env={"PORT": "8080", "X": "y"})},
    ),
    Case(
        "VS Code, one bad among good",
        json.dumps(
            {
                "servers": {
                    "good": {"url": HTTPS},
                    "bad": {"type": "websocket", "url": HTTPS},
                    "worse": {"command": 5},
                    "worst": "npx",
                }
            }
        ),
        format="vscode",
        taken={"good": reach(HTTPS)},
        refused={
            "bad": "type: must be stdio, http or sse",
            "worse": "command: must be text",
            "worst": "object",
        },
    ),
    Case(
        "Zed, as it is now",
        """{"theme": "One Dark", "context_servers": {
            "local": {"source": "custom", "command": "srv", "args": ["--x"], "env": {"A": "b"}},
            "remote": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer k-1"},}
            }}""",
        format="zed",
        taken={
            "local": run("srv", "--x", env={"A": "b"}),
            "remote": reach(HTTPS, headers={"Authorization": "Bearer k-1"}),
        },
    ),
    Case(
        "Zed, as it was, and an extension",
        json.dumps(
            {
                "context_servers": {
                    "old": {"command": {"path": "srv", "args": ["-v"], "env": {"A": "b"}}, "settings": {}},
                    "ext": {"source": "extension", "settings": {"key": "x"}},
                }
            }
        ),
        format="zed",
        taken={"old": run("srv", "-v", env={"A": "b"})},
        refused={"ext": "extension of Zed"},
        ignored={"old": ("settings",), "ext": ("settings",)},
    ),
    Case(
        "opencode",
        """{
          "$schema": "https://opencode.ai/config.json",
          "mcp": {
            "local": {"type": "local", "command": ["bun", "x", "my-mcp"],
              "environment": {"K": "{env:SURELY_UNSET_KEY}"}},
            "off": {"type": "local", "command": ["npx", "-y", "off"], "enabled": false},
            // reached
            "remote": {"type": "remote", "url": "https://mcp.example.com/mcp",
              "headers": {"X": "{file:~/.key}"}, "oauth": {}},
          },
        }""",
        format="opencode",
        taken={
            "local": run("bun", "x", "my-mcp", env={"K": "${SURELY_UNSET_KEY}"}),
            "off": run("npx", "-y", "off", enabled=False),
            "remote": reach(HTTPS, headers={"X": "${file:~/.key}"}),
        },
        missing={"local": ("SURELY_UNSET_KEY",), "remote": ("file:~/.key",)},
        ignored={"remote": ("oauth",)},
    ),
    Case(
        "opencode, a level deeper",
        json.dumps({"mcp": {"servers": {"a": {"type": "local", "command": ["a-mcp", "-x"]}}}}),
        format="opencode",
        taken={"a": run("a-mcp", "-x")},
    ),
    Case(
        "opencode, a server that is named servers",
        json.dumps({"mcp": {"servers": {"type": "remote", "url": HTTPS}}}),
        format="opencode",
        taken={"servers": reach(HTTPS)},
    ),
    Case(
        "Codex, TOML",
        """
        model = "gpt-5"
        [mcp_servers.context]
        command = "npx"
        args = ["-y", "context-mcp"]
        startup_timeout_sec = 20
        [mcp_servers.context.env]
        LOG = "1"
        [mcp_servers.figma]
        url = "https://mcp.example.com/mcp"
        bearer_token_env_var = "SURELY_UNSET_KEY"
        http_headers = { "X-Region" = "eu" }
        env_http_headers = { "X-Team" = "SURELY_UNSET_TEAM" }
        [mcp_servers.off]
        command = "off-mcp"
        enabled = false
        """,
        format="codex",
        taken={
            "context": run("npx", "-y", "context-mcp", env={"LOG": "1"}),
            "figma": reach(
                HTTPS,
                headers={
                    "X-Region": "eu",
                    "Authorization": "Bearer ${SURELY_UNSET_KEY}",
                    "X-Team": "${SURELY_UNSET_TEAM}",
                },
            ),
            "off": run("off-mcp", enabled=False),
        },
        missing={"figma": ("SURELY_UNSET_TEAM", "SURELY_UNSET_KEY")},
        ignored={"context": ("startup_timeout_sec",)},
    ),
    Case(
        "Codex, a wrong type among good ones",
        '[mcp_servers.a]\ncommand = "a-mcp"\n[mcp_servers.b]\ncommand = ["b", 5]\n[mcp_servers.c]\nurl = 5\n',
        format="codex",
        taken={"a": run("a-mcp")},
        refused={"b": "args[0]: must be text", "c": "url: must be text"},
    ),
    Case(
        "Codex, dotted keys and dates",
        'since = 2026-01-05\nmcp_servers.a.command = "a-mcp"\nmcp_servers.a.tool_timeout_sec = 5\n',
        format="codex",
        taken={"a": run("a-mcp")},
        ignored={"a": ("tool_timeout_sec",)},
    ),
    Case(
        "goose, YAML",
        """
GOOSE_PROVIDER: anthropic
extensions:
  developer:
    type: builtin
    name: developer
    enabled: true
  files:
    type: stdio
    name: files
    cmd: npx
    args: [-y, server-files]
    enabled: true
    envs: {PORT: 8080}
    env_keys: [SURELY_UNSET_KEY]
    timeout: 300
  remote:
    type: streamable_http
    uri: https://mcp.example.com/mcp
    enabled: false
""",
        format="goose",
        taken={
            "files": run(
                "npx", "-y", "server-files", env={"PORT": "8080", "SURELY_UNSET_KEY": "${SURELY_UNSET_KEY}"}
            ),
            "remote": reach(HTTPS, enabled=False),
        },
        missing={"files": ("SURELY_UNSET_KEY",)},
        ignored={"files": ("timeout",)},
    ),
    Case(
        "goose, nothing but its own",
        "extensions:\n  memory: {type: builtin, enabled: true}\n  todo: {type: platform}\n",
        error="parts of the client itself are no servers: extensions.memory, extensions.todo",
    ),
    Case(
        "goose, code that it runs itself",
        "extensions:\n  py: {type: inline_python, code: print()}\n  ok: {type: stdio, cmd: ok-mcp}\n",
        format="goose",
        taken={"ok": run("ok-mcp")},
        refused={"py": "goose runs itself"},
        ignored={"py": ("code",)},
    ),
    Case(
        "mcpServers in YAML",
        "# ours\nmcpServers:\n  a:\n    command: a-mcp\n    args:\n      - --flag\n    disabled: yes\n",
        taken={"a": run("a-mcp", "--flag", enabled=False)},
    ),
    Case(
        "bare servers",
        json.dumps({"a": {"command": "a-mcp"}, "b": {"url": HTTPS}, "c": {"about": "x"}, "note": "mine"}),
        format="bare",
        taken={"a": run("a-mcp"), "b": reach(HTTPS)},
        refused={"c": "needs a command or a url"},
        ignored={"c": ("about",)},
    ),
    Case(
        "one bare server",
        json.dumps({"command": "npx", "args": ["-y", "@scope/weather-mcp@latest"], "env": {"K": KEY}}),
        format="bare",
        taken={"weather": run("npx", "-y", "@scope/weather-mcp@latest", env={"K": KEY})},
    ),
    Case(
        "one bare server with its name",
        json.dumps({"name": "mine", "url": HTTPS}),
        format="bare",
        taken={"mine": reach(HTTPS)},
    ),
    Case(
        "a piece of a file, as documentation shows it",
        '"github": {\n  "command": "gh-mcp",\n},',
        format="bare",
        taken={"github": run("gh-mcp")},
    ),
    Case(
        "claude mcp add, an address",
        f'claude mcp add --transport http notes {HTTPS} --header "Authorization: Bearer {KEY}" -s user',
        format="line",
        taken={"notes": reach(HTTPS, headers={"Authorization": f"Bearer {KEY}"})},
    ),
    Case(
        "claude mcp add, a command with variables",
        "$ claude mcp add airtable --env AIRTABLE_KEY=abc DEBUG=1 \\\n  -- npx -y airtable-mcp-server --all",
        format="line",
        taken={
            "airtable": run(
                "npx", "-y", "airtable-mcp-server", "--all", env={"AIRTABLE_KEY": "abc", "DEBUG": "1"}
            )
        },
    ),
    Case(
        "claude mcp add-json",
        """claude mcp add-json weather '{"type":"sse","url":"https://w.example/sse"}'""",
        format="line",
        taken={"weather": reach("https://w.example/sse", transport="sse")},
    ),
    Case(
        "codex mcp add",
        f"codex mcp add docs --env K=$SURELY_UNSET_KEY -- docs-mcp\ncodex mcp add web --url {HTTPS}"
        " --bearer-token-env-var SURELY_UNSET_KEY",
        format="line",
        taken={
            "docs": run("docs-mcp", env={"K": "${SURELY_UNSET_KEY}"}),
            "web": reach(HTTPS, headers={"Authorization": "Bearer ${SURELY_UNSET_KEY}"}),
        },
        missing={"docs": ("SURELY_UNSET_KEY",), "web": ("SURELY_UNSET_KEY",)},
    ),
    Case(
        "gemini mcp add",
        f"gemini mcp add -t sse -H 'X-Key: {KEY}' --trust events https://e.example/sse",
        format="line",
        taken={"events": reach("https://e.example/sse", transport="sse", headers={"X-Key": KEY})},
    ),
    Case(
        "npx and uvx",
        "API_KEY=abc npx -y @modelcontextprotocol/server-everything stdio\n"
        "uvx --from git-tools mcp-server-git",
        format="line",
        taken={
            "everything": run(
                "npx", "-y", "@modelcontextprotocol/server-everything", "stdio", env={"API_KEY": "abc"}
            ),
            "git-tools": run("uvx", "--from", "git-tools", "mcp-server-git"),
        },
    ),
    Case(
        "docker run",
        "docker run -i --rm -e SURELY_UNSET_KEY -e MODE=ro ghcr.io/example/github-mcp-server:1.2",
        format="line",
        taken={
            "github": run(
                *("docker", "run", "-i", "--rm", "-e", "SURELY_UNSET_KEY", "-e", "MODE=ro"),
                "ghcr.io/example/github-mcp-server:1.2",
                env={"SURELY_UNSET_KEY": "${SURELY_UNSET_KEY}"},
            )
        },
        missing={"github": ("SURELY_UNSET_KEY",)},
    ),
    Case(
        "an address alone, with a parameter",
        "https://mcp.linear.example/mcp?team=a&key=secret-value",
        format="line",
        taken={"linear": reach("https://mcp.linear.example/mcp?team=a&key=secret-value")},
    ),
    Case("an address in quotes", f'"{HTTPS}"', format="line", taken={"example": reach(HTTPS)}),
    Case(
        "lines that a shell would have to read, beside one that is plain",
        "npx -y good-mcp\nnpx -y bad-mcp | tee log\nnpx $(curl evil.example)\n"
        "claude mcp list\nrm -rf /\nnpx 'open",
        format="line",
        taken={"good": run("npx", "-y", "good-mcp")},
        refused={
            "line 2": "more than one command",
            "line 3": "command inside the command",
            "line 4": "does not add a server",
            "line 5": "no line that adds",
            "line 6": "quote",
        },
    ),
    Case(
        "wrong types everywhere, one good",
        json.dumps(
            {
                "mcpServers": {
                    "ok": {"url": HTTPS},
                    "args": {"command": "x", "args": "--flag"},
                    "env": {"command": "x", "env": ["A=b"]},
                    "header": {"url": HTTPS, "headers": {"Host": "x"}},
                    "both": {"command": "x", "url": HTTPS},
                    "nothing": {},
                    "null": None,
                    "ftp": {"url": "ftp://x.example"},
                    "switch": {"url": HTTPS, "disabled": "yes"},
                    "a/../b": {"url": HTTPS},
                }
            }
        ),
        taken={"ok": reach(HTTPS)},
        refused={
            "args": "args: must be a list",
            "env": "env: must be an object",
            "header": "headers.Host: is set by HTTP",
            "both": "both a command and a url",
            "nothing": "needs a command or a url",
            "null": "must be an object, not null",
            "ftp": "url: must be an http",
            "switch": "disabled: must be true or false",
            "a/../b": "must not be named",
        },
    ),
    Case(
        "servers beside search settings",
        json.dumps({"toolSearch": {"enabled": True}, "mcpServers": {"a": {"command": "a-mcp"}}}),
        taken={"a": run("a-mcp")},
    ),
    Case("all refused", '{"servers": {"a": {}, "b": 5}}', error="servers.a: needs a command or a url"),
    Case(
        "a wrong setting",
        '{"toolSearch": {"maxResult": 3}, "a": {"url": "https://a.example"}}',
        error="maxResult",
    ),
    Case("an empty object", "{}", error="seen: none"),
    Case("another program's file", '{"name": "x", "scripts": {"a": "b"}}', error="seen: name, scripts"),
    Case(
        "another program's file with addresses in it",
        json.dumps(
            {
                "name": "shop",
                "version": "1.0.0",
                "scripts": {"start": "node ."},
                "repository": {"type": "git", "url": "https://git.example/shop"},
                "bugs": {"url": "https://git.example/shop/issues"},
            }
        ),
        error="seen: name, version, scripts, repository, bugs",
    ),
    Case(
        "Claude Code's settings, which have a command that is no server",
        json.dumps({"env": {"A": "b"}, "statusLine": {"type": "command", "command": "~/status.sh"}}),
        error="seen: env, statusLine",
    ),
    Case("an empty list of servers", '{"mcpServers": {}}', error="seen: mcpServers"),
    Case(
        "a section of another type", '{"mcpServers": "npx"}', error="mcpServers: must be an object, not text"
    ),
    Case("nothing", " \n", error="is empty"),
    Case("a sentence", "please add my servers", error="a config is JSON"),
    Case("broken JSON", '{"mcpServers": {"a": {"url": "https://a.example"}', error="line 1 column"),
    Case("broken TOML", "[mcp_servers.a]\ncommand = npx\n", error="invalid TOML"),
    Case("YAML that refers to itself", "a: &x [1]\nb: *x\n", error="aliases"),
    Case("YAML with a tag", "a: !!python/object:os.system {}\n", error="tags"),
    Case("too deep", "[" * 100 + "]" * 100, error="deeper than 64"),
    Case("YAML that is too deep", "{a: " * 100 + "1" + "}" * 100, error="invalid JSON"),
)

# Documents that are nearly those of a client.
KEYS = st.sampled_from(
    [
        *(
            "mcpServers",
            "servers",
            "mcp",
            "mcp_servers",
            "context_servers",
            "extensions",
            "projects",
            "inputs",
        ),
        *("command", "args", "env", "url", "headers", "type", "disabled", "enabled", "cmd", "uri", "httpUrl"),
        *("name", "toolSearch", "capabilities", "environment", "envs", "source", "path", "a", "b"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["npx", HTTPS, "${X}", "${input:x}", "stdio", "local", "builtin", "", "a b", "\u202e"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
