"""The real servers that tests/servers/install.sh puts in var/test-servers, and how to start each."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / "var" / "test-servers"
_NPM = INSTALLED / "npm" / "node_modules" / "@modelcontextprotocol"
_VENV = INSTALLED / "venv" / "bin"


@dataclass(frozen=True, slots=True)
class RealServer:
    name: str
    command: str
    args: tuple[str, ...]


def node_server(name: str, *args: str) -> RealServer:
    script = _NPM / name / "dist" / "index.js"
    return RealServer(name, shutil.which("node") or "node", (str(script), *args))


def python_server(name: str, *args: str) -> RealServer:
    return RealServer(name, str(_VENV / name), args)


EVERYTHING = node_server("server-everything")
STDIO_SERVERS = (
    EVERYTHING,
    node_server("server-filesystem", str(ROOT / "tests")),
    node_server("server-memory"),
    python_server("mcp-server-time"),
    python_server("mcp-server-git"),
    python_server("mcp-server-fetch"),
)


def require_installed() -> None:
    """Skip where the servers are not there; where CI is to provide them, fail."""
    if (INSTALLED / "installed").exists():
        return
    message = "the real MCP servers are not installed: run tests/servers/install.sh"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
