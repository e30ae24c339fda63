"""Approval and quarantine: what is held back, and that without quarantine nothing is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.approvals import approval_after, held_by, newly_held
from catalog.domain.choices import Approval, Quarantine
from catalog.domain.decide import decide, locked_tools, visible_tools
from catalog.domain.document import parse_document
from catalog.domain.facts import SessionFacts, ToolFacts
from catalog.domain.policy import Policy
from tests.catalog.domain.making import make_tool
from tests.catalog.domain.test_properties import policies, sessions, tool_lists

OFF, CHANGED, BOTH = Quarantine.OFF, Quarantine.CHANGED, Quarantine.NEW_AND_CHANGED
approvals = st.lists(st.sampled_from(Approval), min_size=12, max_size=12)


@pytest.mark.parametrize(
    ("digest", "baseline", "is_approved", "expected"),
    [
        ("a", "a", False, Approval.NEW),
        ("a", "a", True, Approval.APPROVED),
        ("b", "a", False, Approval.CHANGED),
        ("b", "a", True, Approval.CHANGED),
    ],
)
def test_standing(digest: str, baseline: str, is_approved: bool, expected: Approval) -> None:
    assert approval_after(digest=digest, baseline=baseline, is_approved=is_approved) is expected


@pytest.mark.parametrize(
    ("wanted", "in_force", "expected"),
    [
        (OFF, [OFF], set()),
        (CHANGED, [OFF], {Approval.CHANGED}),
        (BOTH, [OFF], {Approval.NEW, Approval.CHANGED}),
        (BOTH, [OFF, CHANGED], {Approval.NEW}),
        (CHANGED, [BOTH], set()),
        (BOTH, [BOTH, OFF], set()),
    ],
)
def test_what_begins_to_be_held_back(
    wanted: Quarantine, in_force: list[Quarantine], expected: set[Approval]
) -> None:
    assert newly_held(wanted, in_force) == expected


@pytest.mark.parametrize(
    ("quarantine", "shown"),
    [(OFF, ["approved", "changed", "new"]), (CHANGED, ["approved", "new"]), (BOTH, ["approved"])],
)
def test_policy_shows_what_it_does_not_hold_back(quarantine: Quarantine, shown: list[str]) -> None:
    tools = [make_tool(str(approval), approval=approval) for approval in Approval]
    policy = Policy(quarantine=quarantine)
    assert sorted(tool.tool for tool in visible_tools(tools, policy)) == shown
    assert sorted(each.name.rpartition("__")[2] for each in decide(tools, policy).decisions) == shown


def test_locked_tool_counts_in_no_threshold() -> None:
    tools = [make_tool("a", chars=900), make_tool("b", chars=900, approval=Approval.CHANGED)]
    assert decide(tools, Policy(quarantine=CHANGED)).measure.value == 900
    assert decide(tools, Policy()).measure.value == 1800


def test_only_what_would_be_shown_is_locked() -> None:
    tools = [make_tool(name, approval=Approval.NEW) for name in ("a", "b", "c")]
    policy = Policy(quarantine=BOTH, visible=("a", "b"))
    assert [tool.tool for tool in locked_tools(tools, policy)] == ["a", "b"]
    narrowed = SessionFacts(visible=(("b",),))
    assert [tool.tool for tool in locked_tools(tools, policy, narrowed)] == ["b"]


def test_document_may_say_how_a_tool_stands() -> None:
    tools = [{"name": "a", "approval": "changed"}, {"name": "b"}]
    document = parse_document({"policy": {"quarantine": "changed"}, "servers": {"s": {"tools": tools}}})
    assert [each.name for each in decide(document.tools, document.policy).decisions] == ["mcp__s__b"]


@given(tool_lists, policies, sessions, approvals)
def test_off_changes_nothing(
    tools: list[ToolFacts], policy: Policy, session: SessionFacts, standing: list[Approval]
) -> None:
    stood = [replace(tool, approval=approval) for tool, approval in zip(tools, standing, strict=False)]
    assert decide(stood, replace(policy, quarantine=OFF), session) == decide(tools, policy, session)


@given(tool_lists, policies, sessions, approvals, st.sampled_from(Quarantine))
def test_every_tool_is_shown_or_locked(
    tools: list[ToolFacts],
    policy: Policy,
    session: SessionFacts,
    standing: list[Approval],
    quarantine: Quarantine,
) -> None:
    stood = [replace(tool, approval=approval) for tool, approval in zip(tools, standing, strict=False)]
    wanted = replace(policy, quarantine=quarantine)
    shown, locked = visible_tools(stood, wanted, session), locked_tools(stood, wanted, session)
    assert {*map(id, shown), *map(id, locked)} == {*map(id, visible_tools(stood, policy, session))}
    assert all(tool.approval in held_by(quarantine) for tool in locked)
    assert not any(tool.approval in held_by(quarantine) for tool in shown)
