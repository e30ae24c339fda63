"""Every rule that the five seed documents state about loading, one row each, and their worked examples."""

from typing import Any

import pytest

from catalog.domain import dialects
from catalog.domain.choices import Mode, Ranker, ThresholdUnit
from catalog.domain.decide import decide
from catalog.domain.policy import Policy
from catalog.domain.thresholds import ThresholdTotals, measure_threshold
from tests.catalog.domain.making import (
    decide_document,
    deferred_in,
    make_definition,
    make_document,
    make_tool,
    reasons_of,
)
from tests.catalog.domain.seed_rules import (
    AGENT_SDK,
    BUILTIN_AGENT,
    CLAUDE_CODE,
    EVERRUNS,
    GITHUB,
    PIZZAPI,
    ROWS,
    Row,
    agent_tools,
    github,
)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_rule_of_the_seeds_decides(row: Row) -> None:
    assert reasons_of(decide_document(row.document))[row.name] == row.reason


CLAUDE_ROWS = [
    (AGENT_SDK, "true", {"mode": Mode.ALWAYS}),
    (AGENT_SDK, "auto", {"mode": Mode.AUTO, "threshold_unit": ThresholdUnit.CONTEXT_PERCENT, "limit": 10}),
    (AGENT_SDK, "auto:5", {"mode": Mode.AUTO, "threshold_unit": ThresholdUnit.CONTEXT_PERCENT, "limit": 5}),
    (AGENT_SDK, "false", {"mode": Mode.OFF}),
    (CLAUDE_CODE, "auto:50", {"mode": Mode.AUTO, "limit": 50}),
    (CLAUDE_CODE, "auto:1", {"mode": Mode.AUTO, "limit": 1}),
    (CLAUDE_CODE, "auto:99", {"mode": Mode.AUTO, "limit": 99}),
]
CONFIG_ROWS = [
    *((seed, {"env": {"ENABLE_TOOL_SEARCH": value}}, wanted) for seed, value, wanted in CLAUDE_ROWS),
    (PIZZAPI, {"toolSearch": {}}, {"mode": Mode.OFF, "max_results": 5, "keep_loaded_tools": True}),
    (
        PIZZAPI,
        {"toolSearch": {"enabled": True}},
        {"mode": Mode.AUTO, "threshold_unit": ThresholdUnit.CHARS, "limit": 10_000},
    ),
    (
        PIZZAPI,
        {"toolSearch": {"enabled": True, "tokenThreshold": 8000, "maxResults": 8, "keepLoadedTools": False}},
        {"limit": 8000, "max_results": 8, "keep_loaded_tools": False},
    ),
    (
        EVERRUNS,
        {"capabilities": ["tool_search"]},
        {"mode": Mode.AUTO, "threshold_unit": ThresholdUnit.TOOLS, "limit": 15, "defer_builtins": True},
    ),
    (
        EVERRUNS,
        {"capabilities": ["tool_search"]},
        {"ranker": Ranker.OVERLAP, "max_results": 8, "score_cutoff": 0.5},
    ),
    (
        EVERRUNS,
        {"capabilities": {"tool_search": {"threshold": 20, "never_defer": ["read_file", "bash"]}}},
        {"limit": 20, "never_defer": ("read_file", "bash")},
    ),
]


@pytest.mark.parametrize(("seed", "config", "wanted"), CONFIG_ROWS)
def test_a_setting_of_the_seeds_is_understood(
    seed: str, config: dict[str, Any], wanted: dict[str, Any]
) -> None:
    changes = dialects.parse_config(config).policy_changes
    assert changes is not None, seed
    policy = Policy().change(changes)
    assert {name: getattr(policy, name) for name in wanted} == wanted


def test_unset_is_always_on() -> None:
    """Seed 004: without the variable tool search is on."""
    assert dialects.parse_config({"mcpServers": {"a": {"command": "x"}}}).policy_changes is None
    assert Policy().mode == Mode.ALWAYS


def test_the_search_tool_is_never_deferred() -> None:
    """Seeds 001 and 003: it is how an agent reaches everything else."""
    search_tool = make_tool("search_tools", name="search_tools", server_defers=True)
    policy = Policy(always_defer=("*",))
    assert reasons_of(decide([search_tool], policy)) == {"search_tools": "search_tool"}


def test_nothing_is_active_when_every_server_always_loads() -> None:
    """Seed 003: no benefit where all servers are marked alwaysLoad. Seed 000: then the search is inactive."""
    decided = decide_document(make_document(github(), servers={"github": {"alwaysLoad": True}}))
    assert not decided.active


def test_reset_decides_again_and_drops_what_was_loaded() -> None:
    """Seed 000: a reset evaluates all tools anew."""
    loaded = make_document(github(), session={"loaded": [GITHUB]})
    assert deferred_in(decide_document(loaded)) == set()
    assert deferred_in(decide_document({**loaded, "session": {}})) == {GITHUB}


def test_ten_thousand_characters_are_two_thousand_five_hundred_tokens() -> None:
    """Seed 000: about four characters to a token."""
    policy = Policy(mode=Mode.AUTO, threshold_unit=ThresholdUnit.TOKENS)
    assert measure_threshold(policy, ThresholdTotals(tools=1, chars=10_000)).value == 2_500
    assert policy.limit == 2_500


@pytest.mark.parametrize(("chars", "over"), [(40_000, False), (40_001, True)])
def test_auto_5_activates_past_five_percent_of_the_window(chars: int, over: bool) -> None:
    """Seed 004's example: 5% of 200,000 tokens is 10,000 tokens, summed over all servers."""
    config = dialects.parse_config({"env": {"ENABLE_TOOL_SEARCH": "auto:5"}})
    tools = {
        "a": [make_definition("one", chars=chars // 2)],
        "b": [make_definition("two", chars=chars - chars // 2)],
    }
    decided = decide_document(make_document(tools, policy=config.policy_changes))
    assert (decided.over, decided.active) == (over, over)


def test_a_lower_percentage_activates_sooner() -> None:
    """Seed 004 of `auto:N`."""
    tools = github(100_000)
    policies = [{"mode": "auto", "threshold_unit": "context_percent", "threshold": n} for n in (5, 20)]
    low, high = (decide_document(make_document(tools, policy=policy)) for policy in policies)
    assert (low.active, high.active) == (True, False)


def test_nineteen_tools_leave_only_the_search_tool_with_its_schema() -> None:
    """Seed 001's benchmark: eighteen tools beside the search tool, all deferred."""
    config = dialects.parse_config({"capabilities": ["tool_search"]})
    document = make_document(agent_tools(18), policy=config.policy_changes, servers=BUILTIN_AGENT)
    assert len(deferred_in(decide_document(document))) == 18


FIVE_SERVERS = {
    "toolSearch": {"enabled": True, "tokenThreshold": 8000, "maxResults": 8, "keepLoadedTools": True},
    "mcpServers": {
        "filesystem": {"command": "mcp-fs-server", "deferLoading": False},
        "github": {"command": "gh-mcp-server"},
        "jira": {"command": "jira-mcp-server", "deferLoading": True},
        "slack": {"command": "slack-mcp-server", "deferLoading": True},
        "linear": {"command": "linear-mcp-server"},
    },
}


@pytest.mark.parametrize(
    ("chars_each", "deferred"),
    [(1_600, {"jira", "slack"}), (1_601, {"github", "jira", "linear", "slack"})],
)
def test_five_servers_as_configured(chars_each: int, deferred: set[str]) -> None:
    """Seed 000's last example: five servers of one tool each, at 8,000 characters and past them."""
    config = dialects.parse_config(FIVE_SERVERS)
    document = make_document(
        {server.name: [make_definition("tool", chars=chars_each)] for server in config.servers},
        policy=config.policy_changes,
        servers={server.name: {"deferLoading": server.defer_loading} for server in config.servers},
    )
    decided = decide_document(document)
    assert {decision.server for decision in decided.decisions if decision.is_deferred} == deferred
