"""Refreshing real processes through a running instance: bad servers do not disturb the good ones."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters

from tests.catalog.upstream.conftest import SERVERS, list_with_sdk
from tests.catalog.upstream.test_real_servers import run_everything
from tests.catalog.upstream.web import run_web
from tests.harness.instance import Instance, processes_of
from tests.harness.locked_server import TOKEN, running_locked_server
from tests.harness.rest import RestClient
from tests.servers.installed import STDIO_SERVERS, require_installed

CANARY = "canary-77c1d0"
SHOW_TOOLS = """
import json
from catalog.models import Tool
tools = Tool.objects.filter(gone_at=None).select_related("server").order_by("pk")
latest = lambda tool: tool.revisions.order_by("-number")[0].definition
print(json.dumps([[tool.server.name, latest(tool)] for tool in tools]))
"""
SET_TWO = """
from catalog.models import Tool
Tool.objects.filter(server__name="changing", name="two").update(loading="always")
"""
SHOW_CHANGING = """
from catalog.models import Tool
tools = Tool.objects.filter(server__name="changing").order_by("name")
print([(tool.name, tool.loading, tool.revisions.count(), tool.gone_at is None) for tool in tools])
"""
BAD = {
    "exits": ("exits_at_once", "ended with exit code 3"),
    "no_connect": ("hangs_on_connect", "did not answer MCP's greeting within 15 s"),
    "no_list": ("hangs_on_list", "did not list its tools within 15 s"),
    "endless": ("never_ends_its_pages", "did not end after 100 pages"),
    "huge": ("describes_at_length", "sent more than"),
    "no_json": ("spoils_its_json", "not valid JSON"),
    "other_protocol": ("speaks_another_protocol", "1999-12-31"),
}
REJECTING = ("repeats_names", "has_a_bad_schema", "floods_stderr")


def odd(behaviour: str, *arguments: str) -> dict[str, Any]:
    args = ["-I", "-S", str(SERVERS / "odd_server.py"), behaviour, *arguments]
    return {"command": sys.executable, "args": args, "env": {"API_TOKEN": CANARY}}


@pytest.fixture(scope="module")
def instance(shared_instance: Instance) -> Instance:
    return shared_instance


def load(instance: Instance, folder: Path, servers: dict[str, Any]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    imported = instance.manage("import_config", str(path))
    assert imported.returncode == 0, imported.stderr


def tools_by_server(instance: Instance) -> dict[str, list[dict[str, Any]]]:
    shown = instance.manage("shell", "-c", SHOW_TOOLS).stdout.strip().splitlines()[-1]
    found: dict[str, list[dict[str, Any]]] = {}
    for server, definition in json.loads(shown):
        found.setdefault(server, []).append(definition)
    return found


@pytest.mark.slow
class TestBadServers:
    def test_each_fails_with_its_own_words_and_the_good_ones_are_refreshed(
        self, instance: Instance, tmp_path: Path
    ) -> None:
        with run_web() as web:
            servers = {name: odd(behaviour) for name, (behaviour, _) in BAD.items()}
            servers |= {behaviour: odd(behaviour) for behaviour in REJECTING}
            servers |= {
                "good": odd("is_fine"),
                "not_found": {"command": "no-such-command"},
                "needs_token": {"url": f"http://127.0.0.1:{web.port}/401"},
            }
            load(instance, tmp_path, servers)
            refreshed = instance.manage("refresh", "--wait")
        assert refreshed.returncode == 1
        told = dict(line.split(": ", 1) for line in refreshed.stdout.splitlines())
        for name, (_, words) in BAD.items():
            assert words in told[name]
        assert "no-such-command was not found" in told["not_found"]
        assert "needs a sign-in: connect it, or paste a token" in told["needs_token"]
        assert "1 rejected" in told["repeats_names"]
        assert "1 rejected" in told["has_a_bad_schema"]
        assert told["good"].startswith(("1 added", "0 added, 0 changed, 0 gone, 1 unchanged"))
        assert told["floods_stderr"].startswith(("1 added", "0 added, 0 changed, 0 gone, 1 unchanged"))
        assert not [
            line
            for line in processes_of(Path(instance.environment["TOOLSEARCH_DATA"]))
            if "odd_server" in line
        ]

    def test_secret_is_nowhere(self, instance: Instance) -> None:
        data = Path(instance.environment["TOOLSEARCH_DATA"])
        found = [path for path in data.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
        assert found == []
        assert CANARY not in instance.output
        export = instance.manage("export_config")
        assert "good" in export.stdout
        assert CANARY not in export.stdout + export.stderr


@pytest.mark.slow
def test_connection_is_tested_by_rest_and_nothing_is_added(instance: Instance) -> None:
    key = instance.manage("create_key", "tester", "--admin").stdout.strip()
    client = RestClient(instance.port, key)
    with running_locked_server() as address:
        right = client.post("/servers/locked/test", {"url": address, "headers": {"Authorization": TOKEN}})
        wrong = client.post("/servers/locked/test", {"url": address})
    assert (right["ok"], right["tools"], right["error"]) == (True, 2, "")
    assert (wrong["ok"], wrong["tools"]) == (False, 0)
    assert "needs a sign-in" in wrong["error"]
    assert client.call("GET", "/servers/locked").status == 404


class TestChangingServer:
    @pytest.mark.slow
    def test_tool_changes_goes_and_comes_back_with_its_settings(
        self, instance: Instance, tmp_path: Path
    ) -> None:
        listing = tmp_path / "tools.json"
        server = odd("lists_what_a_file_says", str(listing))
        one = {"name": "one", "description": "First form.", "inputSchema": {"type": "object"}}
        two = {"name": "two", "inputSchema": {"type": "object"}}
        told = []
        for number, tools in enumerate(([one, two], [{**one, "description": "Second form."}], [one, two])):
            listing.write_text(json.dumps(tools))
            if number == 0:
                load(instance, tmp_path, {"changing": server})
            refreshed = instance.manage("refresh", "changing", "--wait")
            told.append(refreshed.stdout.strip())
            if number == 0:
                assert instance.manage("shell", "-c", SET_TWO).returncode == 0
        assert told[1:] == [
            "changing: 0 added, 1 changed, 1 gone, 0 unchanged",
            "changing: 1 added, 1 changed, 0 gone, 0 unchanged",
        ]
        shown = instance.manage("shell", "-c", SHOW_CHANGING).stdout.strip().splitlines()[-1]
        assert shown == "[('one', 'inherit', 3, True), ('two', 'always', 1, True)]"


@pytest.mark.slow
@pytest.mark.servers
class TestRealServers:
    def test_catalog_equals_what_the_sdk_lists(self, instance: Instance, tmp_path: Path) -> None:
        require_installed()
        with run_everything("streamableHttp") as http_port, run_everything("sse") as sse_port:
            http, sse = f"http://127.0.0.1:{http_port}/mcp", f"http://127.0.0.1:{sse_port}/sse"
            servers: dict[str, Any] = {
                server.name: {"command": server.command, "args": list(server.args)}
                for server in STDIO_SERVERS
            }
            servers |= {"over http": {"url": http}, "over sse": {"type": "sse", "url": sse}}
            load(instance, tmp_path, servers)
            refreshed = instance.manage("refresh", "--wait", *servers)
            assert refreshed.returncode == 0, refreshed.stdout
            expected = {
                server.name: list_with_sdk(
                    StdioServerParameters(command=server.command, args=list(server.args))
                )
                for server in STDIO_SERVERS
            }
            expected |= {"over http": list_with_sdk(http), "over sse": list_with_sdk(sse_client(sse))}
        stored = tools_by_server(instance)
        for name, definitions in expected.items():
            assert sorted(stored[name], key=lambda tool: tool["name"]) == sorted(
                definitions, key=lambda tool: tool["name"]
            )
