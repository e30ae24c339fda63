"""Real agents search, find and call a tool through the gateway, each against a scripted model."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.agent_programs import AGENTS, PYTHON, Setting, ask_codex, run
from tests.clients.gateway import AGENTS as AGENTS_POLICY
from tests.clients.gateway import Gateway
from tests.clients.model_endpoint import Script, ScriptedModel, running_model

pytestmark = pytest.mark.clients

WANTED = "time__convert_time"
# Neither place has summer time.
NOON_IN_TOKYO = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata"}
ANSWER = "-3.5h"
OUR_TOOLS = {"search_tools", "describe_tools", "call_read_tool", "call_tool", "read_result"}
QUERY = "convert a time between time zones"


@pytest.fixture(params=["call_tool"])
def model(request: pytest.FixtureRequest) -> Iterator[ScriptedModel]:
    with running_model(Script(QUERY, WANTED, request.param, NOON_IN_TOKYO)) as running:
        yield running


def setting_of(gateway: Gateway, home: Path, model: ScriptedModel | None = None) -> Setting:
    return Setting(home, gateway.url, gateway.keys[AGENTS_POLICY], model.url if model else "")


@pytest.mark.parametrize("name", AGENTS)
def test_agent_searches_and_calls(name: str, gateway: Gateway, model: ScriptedModel, tmp_path: Path) -> None:
    printed = AGENTS[name](setting_of(gateway, tmp_path, model))
    assert ANSWER in printed, f"{name} printed:\n{printed}\n{model.heard()}"
    offered = {ours for ours in OUR_TOOLS if any(tool.endswith(ours) for tool in model.offered)}
    assert offered == OUR_TOOLS, model.heard()
    assert WANTED in model.turns[-1].results[0]


@pytest.mark.parametrize("model", ["call_read_tool"], indirect=True)
def test_codex_needs_no_approval_to_read(gateway: Gateway, model: ScriptedModel, tmp_path: Path) -> None:
    printed = ask_codex(setting_of(gateway, tmp_path, model), approved=False)
    assert ANSWER in printed, f"{printed}\n{model.heard()}"


def test_codex_refuses_what_may_write_until_approved(
    gateway: Gateway, model: ScriptedModel, tmp_path: Path
) -> None:
    printed = ask_codex(setting_of(gateway, tmp_path, model), approved=False)
    assert "requires approval" in printed, f"{printed}\n{model.heard()}"
    assert ANSWER not in printed


def test_fastmcp_lists_searches_and_calls(gateway: Gateway, tmp_path: Path) -> None:
    script = Path(__file__).parent / "scripts" / "fastmcp_client.py"
    arguments = (QUERY, WANTED, "call_read_tool", json.dumps(NOON_IN_TOKYO))
    told = json.loads(run(setting_of(gateway, tmp_path), PYTHON, script, gateway.url, *arguments))
    assert set(told["listed"]) >= OUR_TOOLS
    assert WANTED in told["found"][0]
    assert ANSWER in told["given"][0]
