from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.choices import Kind, ThresholdUnit
from catalog.domain.facts import SessionFacts, ToolFacts
from catalog.domain.policy import Policy
from catalog.domain.thresholds import ThresholdTotals, measure_threshold, measure_thresholds, sum_tools
from tests.catalog.domain.making import make_tool


def test_sums_leave_out_builtin_sizes_but_count_them_as_tools() -> None:
    tools = [
        make_tool("a", chars=10),
        make_tool("b", chars=20, kind=Kind.PLUGIN),
        make_tool("c", chars=40, kind=Kind.BUILTIN),
    ]
    assert sum_tools(tools) == ThresholdTotals(tools=3, chars=30)


@pytest.mark.parametrize(
    ("unit", "threshold", "totals", "session", "over"),
    [
        ("chars", 100, {"chars": 100}, {}, False),
        ("chars", 100, {"chars": 101}, {}, True),
        ("tokens", 25, {"chars": 100}, {}, False),
        ("tokens", 25, {"chars": 101}, {}, True),
        ("tools", 3, {"tools": 2}, {}, False),
        ("tools", 3, {"tools": 3}, {}, True),
        ("context_percent", 10, {"chars": 400}, {"context_window": 1_000}, False),
        ("context_percent", 10, {"chars": 401}, {"context_window": 1_000}, True),
        ("context_percent", 2.5, {"chars": 101}, {"context_window": 1_000}, True),
        ("context_used", 10, {}, {"context_used": 99, "context_window": 1_000}, False),
        ("context_used", 10, {}, {"context_used": 100, "context_window": 1_000}, True),
        ("context_used", 10, {}, {}, False),
        ("context_used", 10, {}, {"context_used": 0, "is_past_context_used": True}, True),
        ("context_used", 10, {}, {"is_past_context_used": True}, True),
    ],
)
def test_each_unit_is_over_where_the_contract_says(
    unit: str, threshold: float, totals: dict[str, int], session: dict[str, Any], over: bool
) -> None:
    policy = Policy(threshold_unit=ThresholdUnit(unit), threshold=threshold)
    assert measure_threshold(policy, ThresholdTotals(**totals), SessionFacts(**session)).over is over


def test_a_reading_is_in_the_unit_of_its_limit() -> None:
    policy = Policy(threshold_unit=ThresholdUnit.CONTEXT_PERCENT, context_window=1_000)
    reading = measure_threshold(policy, ThresholdTotals(chars=200))
    assert reading.to_mapping() == {"unit": "context_percent", "value": 5, "limit": 10}


def test_readings_show_every_unit_against_its_limit() -> None:
    policy = Policy(threshold_unit=ThresholdUnit.TOOLS, threshold=2)
    shown = measure_thresholds(
        policy, ThresholdTotals(tools=2, chars=80_004), SessionFacts(context_used=5_000)
    )
    assert [(each.unit, each.value, each.limit, each.over) for each in shown] == [
        ("chars", 80_004, 10_000, True),
        ("tokens", 20_001, 2_500, True),
        ("tools", 2, 2, True),
        ("context_percent", 10.0005, 10, True),
        ("context_used", 2.5, 10, False),
    ]


def test_an_unmeasured_tool_makes_sizes_unknown() -> None:
    totals = ThresholdTotals(tools=1, chars=8).with_tool(make_tool(chars=None))
    assert measure_threshold(Policy(), totals).over is None


tools = st.lists(
    st.builds(make_tool, st.just("a"), chars=st.none() | st.integers(0, 9_999), kind=st.sampled_from(Kind)),
    max_size=20,
)


@given(tools, tools)
def test_totals_kept_step_by_step_equal_a_fresh_sum(stay: list[ToolFacts], added: list[ToolFacts]) -> None:
    totals = sum_tools(stay)
    for tool in added:
        totals = totals.with_tool(tool)
    assert totals == sum_tools([*added, *stay])
