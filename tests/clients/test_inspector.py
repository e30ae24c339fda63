"""The MCP Inspector on the command line lists and calls through the gateway, and a wrong key fails."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.agent_programs import NODE, PACKAGES, WITHIN_SECONDS
from tests.clients.gateway import AGENTS, Gateway

pytestmark = pytest.mark.clients

INSPECTOR = PACKAGES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
NO_WAY_IN = 3


def inspect(url: str, key: str, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    header = f"Authorization: Bearer {key}"
    command = (NODE, INSPECTOR, "--cli", url, "--transport", "http", "--header", header, *options)
    return subprocess.run(
        [str(part) for part in command],
        env={"HOME": str(home), "PATH": str(NODE.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_SECONDS,
    )


def answer(gateway: Gateway, home: Path, *options: str) -> Any:
    done = inspect(gateway.url, gateway.keys[AGENTS], home, *options)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def test_lists_our_tools_first(gateway: Gateway, tmp_path: Path) -> None:
    tools = answer(gateway, tmp_path, "--method", "tools/list")["tools"]
    names = [tool["name"] for tool in tools]
    assert names[:5] == ["search_tools", "describe_tools", "call_read_tool", "call_tool", "read_result"]


def test_calls_a_tool(gateway: Gateway, tmp_path: Path) -> None:
    arguments = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata"}
    given = ("name=time__convert_time", f"arguments={json.dumps(arguments)}")
    options = ("--method", "tools/call", "--tool-name", "call_tool")
    result = answer(gateway, tmp_path, *options, *(part for pair in given for part in ("--tool-arg", pair)))
    assert "-3.5h" in result["content"][0]["text"]


def test_wrong_key_is_turned_away(gateway: Gateway, tmp_path: Path) -> None:
    done = inspect(gateway.url, "wrong", tmp_path, "--method", "tools/list")
    assert done.returncode == NO_WAY_IN, f"{done.stdout}{done.stderr}"
    assert "auth_required" in done.stdout + done.stderr
