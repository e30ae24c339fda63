from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.choices import Kind, Loading, Mode, ThresholdUnit
from catalog.domain.curve import CurveStep, draw_curve, step_at
from catalog.domain.decide import decide
from catalog.domain.facts import SessionFacts, ToolFacts
from catalog.domain.policy import Policy
from tests.catalog.domain.making import deferred_in, make_tool

TOOLS = [make_tool("a", chars=400), make_tool("b", chars=400), make_tool("c", chars=80, server_defers=False)]


def test_the_curve_steps_where_the_reading_is() -> None:
    assert draw_curve(TOOLS, Policy()) == (
        CurveStep(0, is_inclusive=True, loaded=1, deferred=2, tokens=20),
        CurveStep(880, is_inclusive=True, loaded=3, deferred=0, tokens=220),
    )


def test_a_unit_that_is_over_when_met_steps_just_past_it() -> None:
    curve = draw_curve(TOOLS, Policy(threshold_unit=ThresholdUnit.TOOLS))
    assert [(step.threshold, step.is_inclusive) for step in curve] == [(0, True), (3, False)]
    assert (step_at(curve, 3).deferred, step_at(curve, 4).deferred) == (2, 0)


@pytest.mark.parametrize(
    ("session", "deferred"),
    [(SessionFacts(), 0), (SessionFacts(is_past_context_used=True), 2)],
)
def test_one_step_where_no_threshold_makes_a_difference(session: SessionFacts, deferred: int) -> None:
    (step,) = draw_curve(TOOLS, Policy(threshold_unit=ThresholdUnit.CONTEXT_USED), session)
    assert step.deferred == deferred


def test_one_step_where_sizes_are_unknown() -> None:
    (step,) = draw_curve([*TOOLS, make_tool("d", chars=None)], Policy())
    assert step.deferred == 0


many_tools = st.lists(
    st.builds(
        make_tool,
        st.sampled_from("abcdefgh"),
        chars=st.integers(0, 500),
        kind=st.sampled_from(Kind),
        loading=st.sampled_from(Loading),
    ),
    unique_by=lambda tool: tool.name,
)


@given(many_tools, st.sampled_from(ThresholdUnit), st.integers(0, 3_000))
def test_the_curve_agrees_with_deciding(tools: list[ToolFacts], unit: ThresholdUnit, threshold: int) -> None:
    policy = Policy(mode=Mode.AUTO, threshold_unit=unit, threshold=threshold, context_window=100)
    session = SessionFacts(context_used=50)
    decided = decide(tools, policy, session)
    curve = draw_curve(tools, replace(policy, threshold=None), session)
    assert step_at(curve, threshold).deferred == len(deferred_in(decided))
