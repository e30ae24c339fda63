from dataclasses import replace
from typing import Any, cast

import pytest

from catalog.domain.choices import Kind, Loading, Mode, Outcome, Quarantine, Reason, ThresholdUnit
from catalog.domain.decide import decide, decide_one, explain_decision, prepare_rules, shows_whole
from catalog.domain.facts import SessionFacts
from catalog.domain.policy import Policy
from catalog.domain.rules import RULES
from catalog.domain.thresholds import Measure
from tests.catalog.domain.making import deferred_in, make_tool, reasons_of

OVER = Policy(mode=Mode.AUTO, threshold=0)
UNDER = Policy(mode=Mode.AUTO, threshold=10**6)

# The facts that make each rule apply, weakest first, each with the contract's answer.
LADDER: list[tuple[Reason, Outcome, dict[str, Any], dict[str, Any]]] = [
    (Reason.SERVER_LOAD, Outcome.LOAD, {"server_defers": False}, {}),
    (Reason.META_ALWAYS_LOAD, Outcome.LOAD, {"always_load": True}, {}),
    (Reason.SERVER_DEFER, Outcome.DEFER, {"server_defers": True}, {}),
    (Reason.TOOL_DEFER, Outcome.DEFER, {"loading": Loading.DEFER}, {}),
    (Reason.TOOL_ALWAYS, Outcome.LOAD, {"loading": Loading.ALWAYS}, {}),
    (Reason.ALWAYS_DEFER, Outcome.DEFER, {}, {"always_defer": ("create_*",)}),
    (Reason.NEVER_DEFER, Outcome.LOAD, {}, {"never_defer": ("create_*",)}),
    (Reason.SEARCH_OFF, Outcome.LOAD, {}, {"mode": Mode.OFF}),
    (Reason.SEARCH_TOOL, Outcome.LOAD, {}, {"search_tool_name": "mcp__github__create_issue"}),
]


@pytest.mark.parametrize("steps", range(1, len(LADDER) + 1))
def test_each_rule_outranks_all_rules_below_it(steps: int) -> None:
    facts: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for _, _, more_facts, more_settings in LADDER[:steps]:
        facts |= more_facts
        settings |= more_settings
    reason, outcome, *_ = LADDER[steps - 1]
    (decision,) = decide([make_tool(**facts)], Policy(**settings)).decisions
    assert (decision.reason, decision.outcome) == (reason, outcome)


def test_the_rules_stand_in_the_contracts_order() -> None:
    assert [rule.reason for rule in RULES] == [reason for reason in Reason if reason != Reason.DISCOVERED]


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Policy(), "mode_always"),
        (OVER, "over_threshold"),
        (UNDER, "under_threshold"),
        (Policy(mode=Mode.OFF), "search_off"),
    ],
)
def test_a_tool_without_settings_follows_the_mode(policy: Policy, reason: str) -> None:
    assert reasons_of(decide([make_tool(chars=100)], policy)) == {"mcp__github__create_issue": reason}


@pytest.mark.parametrize(
    ("facts", "settings", "reason"),
    [
        ({}, {}, "builtin"),
        ({"should_defer": True}, {}, "mode_always"),
        ({}, {"defer_builtins": True}, "mode_always"),
        ({"server_defers": True}, {}, "server_defer"),
    ],
)
def test_builtin_tools_stay_unless_somebody_says_otherwise(
    facts: dict[str, Any], settings: dict[str, Any], reason: str
) -> None:
    tool = make_tool("bash", kind=Kind.BUILTIN, **facts)
    assert reasons_of(decide([tool], Policy(**settings))) == {"bash": reason}


@pytest.mark.parametrize(
    ("glob", "matches"),
    [
        ("create_issue", True),
        ("mcp__github__create_issue", True),
        ("github/create_issue", True),
        ("github/*", True),
        ("mcp__github__*", True),
        ("create_?ssue", True),
        ("*[eE]_issue", True),
        ("CREATE_ISSUE", False),
        ("create", False),
        ("github", False),
        ("gitlab/*", False),
        ("[", False),
        ("create_issue\n", False),
    ],
)
def test_globs_match_whole_names_of_three_forms(glob: str, matches: bool) -> None:
    reason = reasons_of(decide([make_tool()], Policy(never_defer=("other", glob))))
    assert (reason["mcp__github__create_issue"] == "never_defer") is matches


def test_what_is_not_visible_is_in_no_list_and_no_sum() -> None:
    tools = [make_tool("a", chars=400), make_tool("b", chars=400)]
    policy = replace(OVER, threshold=500, visible=("*a",))
    decided = decide(tools, policy)
    assert (reasons_of(decided), decided.measure.value) == ({"mcp__github__a": "under_threshold"}, 400)


def test_visible_unset_is_everything_and_an_empty_list_nothing() -> None:
    assert len(decide([make_tool()], Policy(visible=None)).decisions) == 1
    assert decide([make_tool()], Policy(visible=())).decisions == ()


def test_a_session_only_narrows_what_is_visible() -> None:
    tools = [make_tool("a"), make_tool("b"), make_tool("c")]
    session = SessionFacts(visible=(("[bc]",), ("[cd]",)))
    assert set(reasons_of(decide(tools, Policy(visible=("[abc]",)), session))) == {"mcp__github__c"}


def test_decisions_come_in_qualified_name_order() -> None:
    tools = [make_tool("b"), make_tool("A"), make_tool("a"), make_tool("z", server="alpha")]
    names = [decision.name for decision in decide(tools, Policy()).decisions]
    assert names == ["mcp__alpha__z", "mcp__github__A", "mcp__github__a", "mcp__github__b"]


def test_discovered_tools_load_and_the_search_stays_active() -> None:
    session = SessionFacts(loaded=("mcp__github__create_issue",))
    decided = decide([make_tool()], Policy(), session)
    assert decided.active
    assert reasons_of(decided) == {"mcp__github__create_issue": "discovered"}


def test_a_loaded_tool_keeps_its_own_reason() -> None:
    session = SessionFacts(loaded=("mcp__github__create_issue",))
    decided = decide([make_tool(always_load=True)], Policy(), session)
    assert reasons_of(decided) == {"mcp__github__create_issue": "meta_always_load"}


def test_a_bare_name_means_a_bare_qualified_name_first() -> None:
    own = make_tool("read", kind=Kind.BUILTIN, should_defer=True)
    remote = make_tool("read", server="files")
    assert deferred_in(decide([own, remote], Policy(), SessionFacts(loaded=("read",)))) == {
        "mcp__files__read"
    }
    assert deferred_in(decide([remote], Policy(), SessionFacts(loaded=("read",)))) == set()


def test_a_size_that_is_not_known_loads_everything_the_threshold_would_decide() -> None:
    tools = [make_tool("known", chars=10**6), make_tool("unknown", chars=None)]
    decided = decide([*tools, make_tool("pinned", server_defers=True)], OVER)
    assert decided.measure == Measure(ThresholdUnit.CHARS, None, 0, None)
    assert reasons_of(decided) == {
        "mcp__github__known": "uncertain",
        "mcp__github__unknown": "uncertain",
        "mcp__github__pinned": "server_defer",
    }


def test_a_size_that_is_not_known_matters_only_to_units_that_need_it() -> None:
    policy = Policy(mode=Mode.AUTO, threshold_unit=ThresholdUnit.TOOLS, threshold=1)
    assert reasons_of(decide([make_tool(chars=None)], policy)) == {
        "mcp__github__create_issue": "over_threshold"
    }


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), "many"])
def test_a_threshold_that_cannot_be_compared_loads(threshold: Any) -> None:
    policy = Policy(mode=Mode.AUTO, threshold=threshold)
    assert reasons_of(decide([make_tool(chars=9)], policy)) == {"mcp__github__create_issue": "uncertain"}


def test_a_window_of_nothing_loads() -> None:
    policy = Policy(mode=Mode.AUTO, threshold_unit=ThresholdUnit.CONTEXT_PERCENT)
    decided = decide([make_tool(chars=9)], policy, SessionFacts(context_window=0))
    assert reasons_of(decided) == {"mcp__github__create_issue": "uncertain"}


def test_any_failure_while_deciding_loads_that_tool_only() -> None:
    broken = make_tool("b", name="mcp__github__b")
    object.__setattr__(broken, "tool", None)
    decided = decide([make_tool("a"), broken], Policy(never_defer=("[z]",)))
    assert reasons_of(decided) == {"mcp__github__a": "mode_always", "mcp__github__b": "uncertain"}


def test_a_mode_that_no_rule_knows_loads() -> None:
    policy = Policy(mode=cast("Mode", "sometimes"))
    assert reasons_of(decide([make_tool()], policy)) == {"mcp__github__create_issue": "uncertain"}


def test_explaining_lists_every_rule_that_applies_in_order() -> None:
    tool = make_tool(server_defers=True, always_load=True)
    situation = prepare_rules(
        Policy(never_defer=("create_*",)), Measure(ThresholdUnit.CHARS, 0, 0, over=False)
    )
    reasons = [rule.reason for rule in explain_decision(tool, situation)]
    assert reasons == [Reason.NEVER_DEFER, Reason.SERVER_DEFER, Reason.META_ALWAYS_LOAD, Reason.MODE_ALWAYS]
    assert decide_one(tool, situation).reason == reasons[0]


def test_explaining_a_failure_ends_in_uncertain() -> None:
    broken = make_tool()
    object.__setattr__(broken, "tool", None)
    situation = prepare_rules(Policy(never_defer=("[z]",)), Measure(ThresholdUnit.CHARS, 0, 0, over=False))
    assert [rule.reason for rule in explain_decision(broken, situation)] == [Reason.UNCERTAIN]


def test_the_answer_has_the_contracts_shape() -> None:
    assert decide([make_tool(chars=100)], Policy()).to_mapping() == {
        "active": True,
        "over": False,
        "measure": {"unit": "chars", "value": 100, "limit": 10_000},
        "decisions": [
            {
                "name": "mcp__github__create_issue",
                "server": "github",
                "decision": "defer",
                "reason": "mode_always",
            }
        ],
    }


@pytest.mark.parametrize(
    ("policy", "tools", "expected"),
    [
        (Policy(), 2, True),
        (Policy(), 0, True),
        (Policy(visible=("github/*",)), 2, True),
        (Policy(visible=("github/*",)), 0, False),
        (Policy(visible=("tool_0",)), 2, False),
        (Policy(visible=()), 2, False),
        (Policy(quarantine=Quarantine.CHANGED), 2, False),
    ],
)
def test_a_server_is_shown_whole_by_a_policy_that_keeps_nothing_of_it_back(
    policy: Policy, tools: int, expected: bool
) -> None:
    listed = [make_tool(name=f"mcp__github__tool_{number}", tool=f"tool_{number}") for number in range(tools)]
    assert shows_whole(listed, policy) is expected
