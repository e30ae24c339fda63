"""The agent clients that tests/clients/install.sh installs, and how each is set up and asked."""

import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / "var" / "test-clients"
PACKAGES = INSTALLED / "npm" / "node_modules"
CHIP = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x64"
NODE = PACKAGES / f"node-linux-{CHIP}" / "bin" / "node"
PYTHON = INSTALLED / "venv" / "bin" / "python"
KEY_VARIABLE = "TOOLSEARCH_KEY"
PROMPT = "What time is it in Kolkata when it is noon in Tokyo?"
WITHIN_SECONDS = 90
CODEX_APPROVAL = """
[mcp_servers.toolsearch.tools.call_tool]
approval_mode = "approve"
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a client runs, and what it connects to."""

    home: Path
    gateway: str
    key: str
    model: str

    def environment(self, **variables: str) -> dict[str, str]:
        own = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config"), KEY_VARIABLE: self.key}
        reachable = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
        path = {"PATH": f"{NODE.parent}:{os.environ['PATH']}"}
        return {**own, **reachable, **path, **variables}


def run(setting: Setting, *command: str | Path, **variables: str) -> str:
    """What the command prints, with what it complains of."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=setting.home,
        env=setting.environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=WITHIN_SECONDS,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}"
    return done.stdout


def ask_claude_code(setting: Setting) -> str:
    claude = PACKAGES / "@anthropic-ai" / f"claude-code-linux-{CHIP}" / "claude"
    variables = {
        "ANTHROPIC_BASE_URL": setting.model,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    header = f"Authorization: Bearer {setting.key}"
    add = ("mcp", "add", "--transport", "http", "toolsearch", setting.gateway, "--header", header)
    run(setting, claude, *add, **variables)
    return run(setting, claude, "-p", PROMPT, "--allowedTools", "mcp__toolsearch", **variables)


def ask_codex(setting: Setting, *, approved: bool = True) -> str:
    """Codex asks before every tool that may write, and with nobody there to answer it refuses."""
    codex = next((PACKAGES / "codex" / "vendor").glob("*/bin/codex"))
    folder = setting.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        f"""
model = "scripted"
model_provider = "scripted"
approval_policy = "never"

[model_providers.scripted]
name = "scripted"
base_url = "{setting.model}/v1"
wire_api = "responses"

[mcp_servers.toolsearch]
url = "{setting.gateway}"
bearer_token_env_var = "{KEY_VARIABLE}"
{CODEX_APPROVAL if approved else ""}"""
    )
    return run(setting, codex, "exec", "--skip-git-repo-check", PROMPT)


def ask_gemini_cli(setting: Setting) -> str:
    gemini = (NODE, PACKAGES / "@google" / "gemini-cli" / "bundle" / "gemini.js")
    variables = {
        "GOOGLE_GEMINI_BASE_URL": setting.model,
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    folder = setting.home / ".gemini"
    folder.mkdir()
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (folder / "settings.json").write_text(json.dumps(chosen))
    header = f"Authorization: Bearer {setting.key}"
    add = ("mcp", "add", "--scope", "user", "--transport", "http", "--header", header)
    run(setting, *gemini, *add, "toolsearch", setting.gateway, **variables)
    return run(setting, *gemini, "-y", "-m", "gemini-2.5-flash", "-p", PROMPT, **variables)


def ask_opencode(setting: Setting) -> str:
    opencode = PACKAGES / f"opencode-linux-{CHIP}" / "bin" / "opencode"
    headers = {"Authorization": f"Bearer {setting.key}"}
    server = {"type": "remote", "url": setting.gateway, "headers": headers, "oauth": False, "enabled": True}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{setting.model}/v1", "apiKey": "none"},
        "models": {"scripted": {"name": "scripted", "tool_call": True}},
    }
    config = {
        "mcp": {"toolsearch": server},
        "provider": {"scripted": provider},
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "autoupdate": False,
        "share": "disabled",
    }
    (setting.home / "opencode.json").write_text(json.dumps(config))
    return run(setting, opencode, "run", PROMPT, OPENCODE_DISABLE_MODELS_FETCH="1")


def ask_script(name: str) -> Callable[[Setting], str]:
    """An agent of a Python library, by its script."""

    def ask(setting: Setting) -> str:
        script = Path(__file__).parent / "scripts" / name
        variables = {"OPENAI_BASE_URL": f"{setting.model}/v1", "OPENAI_API_KEY": "none"}
        return run(setting, PYTHON, script, setting.gateway, PROMPT, **variables)

    return ask


AGENTS: Mapping[str, Callable[[Setting], str]] = {
    "Claude Code": ask_claude_code,
    "Codex": ask_codex,
    "Gemini CLI": ask_gemini_cli,
    "opencode": ask_opencode,
    "pydantic-ai": ask_script("pydantic_ai_agent.py"),
    "openai-agents": ask_script("openai_agents_agent.py"),
}


def require_installed() -> None:
    """Skip where the clients are not there; where CI is to provide them, that fails."""
    if not (INSTALLED / "installed").exists():
        pytest.skip("the agent clients are not installed: run tests/clients/install.sh")
