"""What the console says to copy connects each client, as it is copied."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions.domain.gateway_clients import CLIENTS, ClientGroup, KnownClient, Way
from tests.clients.agent_programs import CHIP, NODE, PACKAGES, PYTHON, Setting, run
from tests.clients.gateway import AGENTS, Gateway
from tests.clients.model_endpoint import Script, running_model

pytestmark = pytest.mark.clients

PROGRAMS: dict[str, Callable[[], tuple[Path, ...]]] = {
    "claude": lambda: (PACKAGES / "@anthropic-ai" / f"claude-code-linux-{CHIP}" / "claude",),
    "codex": lambda: (next((PACKAGES / "codex" / "vendor").glob("*/bin/codex")),),
    "gemini": lambda: (NODE, PACKAGES / "@google" / "gemini-cli" / "bundle" / "gemini.js"),
    "opencode": lambda: (PACKAGES / f"opencode-linux-{CHIP}" / "bin" / "opencode",),
}
CONNECTED = r"toolsearch.*[Cc]onnected"
# Codex lists what is configured without connecting, and Claude Code waits until a project's file is approved.
LISTED = "codex mcp list", r"toolsearch .*http://127.*enabled.*Bearer"
OTHER_CHECKS = {
    ("codex", ""): LISTED,
    ("codex", "~/.codex/config.toml"): LISTED,
    ("claude-code", ".mcp.json"): ("claude mcp list", r"toolsearch: http://127.*Pending approval"),
}
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
QUERY = "convert a time between time zones"
NOON = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata"}

PROGRAM_WAYS = [
    (client, way)
    for client in CLIENTS
    if client.tried and client.group is ClientGroup.CLIENT
    for way in client.ways
]
FRAMEWORKS = [client for client in CLIENTS if client.tried and client.group is ClientGroup.FRAMEWORK]


def set_up(way: Way, setting: Setting) -> str:
    """Follow the way; the lines that the shell has run before, which a client's start needs too."""
    filled = way.fill(address=setting.gateway, key=setting.key, query=QUERY)
    if not way.file:
        run(setting, "bash", "-ec", f"{filled.before}\n{filled.text}", **QUIET)
    else:
        path = setting.home / filled.file.removeprefix("~/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(filled.text)
    return filled.before


@pytest.fixture
def setting(gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """With the programs under the names that people type."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, find in PROGRAMS.items():
        command = " ".join(f"'{part}'" for part in find())
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    home = tmp_path / "home"
    home.mkdir()
    return Setting(home, gateway.url, gateway.keys[AGENTS], model="")


@pytest.mark.parametrize(("client", "way"), PROGRAM_WAYS, ids=[f"{c.slug} {w.file}" for c, w in PROGRAM_WAYS])
def test_client_is_connected(client: KnownClient, way: Way, setting: Setting) -> None:
    before = set_up(way, setting)
    check, wanted = OTHER_CHECKS.get((client.slug, way.file), (client.check, CONNECTED))
    told = COLOURS.sub("", run(setting, "bash", "-ec", f"{before}\n{check}", **QUIET))
    assert re.search(wanted, told), told


@pytest.mark.parametrize("client", FRAMEWORKS, ids=[client.slug for client in FRAMEWORKS])
def test_framework_s_lines_run(client: KnownClient, setting: Setting) -> None:
    [way] = client.ways
    script = setting.home / "agent.py"
    script.write_text(way.fill(address=setting.gateway, key=setting.key, query=QUERY).text)
    with running_model(Script(QUERY, "time__convert_time", "call_tool", NOON)) as model:
        told = run(setting, PYTHON, script, OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_API_KEY="none")
    assert "time__convert_time" in told or "-3.5h" in told, told
