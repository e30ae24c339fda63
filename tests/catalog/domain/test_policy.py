from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.choices import Mode, Quarantine, Ranker, ThresholdUnit
from catalog.domain.errors import InvalidInput
from catalog.domain.policy import DEFAULT_MEANING_FLOOR, Policy


def places_of(mapping: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        Policy.from_mapping(mapping)
    return [problem.place for problem in caught.value.errors]


def test_unset_window_is_200_000_tokens() -> None:
    assert (Policy().window, Policy(context_window=8_000).window) == (200_000, 8_000)


def test_defaults_are_the_contracts() -> None:
    assert Policy().to_mapping() == {
        "slug": "default",
        "mode": "always",
        "threshold_unit": "chars",
        "threshold": None,
        "context_window": None,
        "never_defer": [],
        "always_defer": [],
        "visible": None,
        "defer_builtins": False,
        "max_results": 5,
        "keep_loaded_tools": True,
        "keep_on_compaction": True,
        "max_loaded_tools": None,
        "unload_after_idle_turns": None,
        "ranker": "bm25f",
        "score_cutoff": 0,
        "meaning_floor": DEFAULT_MEANING_FLOOR,
        "search_tool_name": "search_tools",
        "prompt_style": "categories",
        "prompt_budget_tokens": 400,
        "quarantine": "off",
        "max_sessions": 100_000,
        "session_ttl": 30 * 24 * 3600,
        "exposure": "search",
        "call_timeout_seconds": 120,
        "max_result_tokens": 20_000,
        "record_calls": "names",
    }


@pytest.mark.parametrize(
    ("unit", "limit"),
    [("chars", 10_000), ("tokens", 2_500), ("tools", 15), ("context_percent", 10), ("context_used", 10)],
)
def test_an_unset_threshold_is_the_units_default(unit: str, limit: int) -> None:
    assert Policy.from_mapping({"thresholdUnit": unit}).limit == limit
    assert Policy.from_mapping({"thresholdUnit": unit, "threshold": None}).limit == limit


def test_both_spellings_are_read() -> None:
    camel = {
        "maxResults": 9,
        "meaningFloor": 0.5,
        "neverDefer": ["a*"],
        "keepOnCompaction": False,
        "quarantine": "changed",
    }
    snake = {
        "max_results": 9,
        "meaning_floor": 0.5,
        "never_defer": ["a*"],
        "keep_on_compaction": False,
        "quarantine": "changed",
    }
    read = Policy.from_mapping(camel)
    assert read == Policy.from_mapping(snake)
    assert (read.max_results, read.never_defer, read.quarantine) == (9, ("a*",), Quarantine.CHANGED)


def test_every_mistake_is_reported_at_its_place() -> None:
    mistakes = {
        "mode": "sometimes",
        "maxResults": 51,
        "never_defer": ["fine", 5],
        "always_defer": "read*",
        "colour": "red",
        "threshold": float("nan"),
        "defer_builtins": "yes",
        "search_tool_name": "search tools",
        "score_cutoff": 1.5,
        "meaningFloor": -0.1,
        "context_window": 10**5000,
        "session_ttl": "soon",
    }
    assert places_of(mistakes) == [
        "policy.mode",
        "policy.maxResults",
        "policy.never_defer[1]",
        "policy.always_defer",
        "policy.colour",
        "policy.threshold",
        "policy.defer_builtins",
        "policy.search_tool_name",
        "policy.score_cutoff",
        "policy.meaningFloor",
        "policy.context_window",
        "policy.session_ttl",
    ]


def test_a_field_given_in_both_spellings_is_a_mistake() -> None:
    assert places_of({"max_results": 5, "maxResults": 5}) == ["policy.maxResults"]


@pytest.mark.parametrize("unit", ["context_percent", "context_used"])
def test_a_percentage_ends_at_100(unit: str) -> None:
    assert places_of({"threshold_unit": unit, "threshold": 101}) == ["policy.threshold"]
    assert Policy.from_mapping({"threshold_unit": unit, "threshold": 100}).limit == 100


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("visible", ["a"] * 1_001, "policy.visible"),
        ("visible", ["a" * 257], "policy.visible[0]"),
        ("visible", [""], "policy.visible[0]"),
        ("session_ttl", "0 days", "policy.session_ttl"),
        ("session_ttl", 0, "policy.session_ttl"),
        ("slug", "no spaces", "policy.slug"),
    ],
)
def test_a_value_out_of_bounds_is_a_mistake(field: str, value: object, place: str) -> None:
    assert places_of({field: value}) == [place]


@pytest.mark.parametrize("value", [True, "5", 0, 51, 1.5, [], {}])
def test_a_count_must_be_a_whole_number_in_range(value: object) -> None:
    assert places_of({"max_results": value}) == ["policy.max_results"]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (3600, timedelta(hours=1)),
        (timedelta(days=2), timedelta(days=2)),
        ("30 days", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
    ],
)
def test_a_lifetime_is_seconds_or_a_duration(value: object, wanted: timedelta) -> None:
    assert Policy.from_mapping({"session_ttl": value}).session_ttl == wanted


def test_a_new_unit_takes_its_own_default() -> None:
    chars = Policy(threshold=5_000)
    assert chars.change({"threshold_unit": "tools"}).limit == 15
    assert chars.change({"threshold_unit": "tools", "threshold": 20}).limit == 20
    assert chars.change({"threshold_unit": "chars"}).limit == 5_000


def test_a_change_keeps_the_other_fields() -> None:
    policy = Policy(slug="mine", ranker=Ranker.KEYWORD)
    assert policy.change({"mode": "off"}) == replace(policy, mode=Mode.OFF)


STORABLE = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
policies = st.builds(
    Policy,
    mode=st.sampled_from(Mode),
    threshold_unit=st.sampled_from(ThresholdUnit),
    threshold=st.none() | st.integers(0, 100) | st.floats(0, 100),
    visible=st.none() | st.lists(st.text(STORABLE, min_size=1, max_size=5), max_size=20).map(tuple),
    max_loaded_tools=st.none() | st.integers(1, 99),
    session_ttl=st.integers(1, 10**9).map(lambda seconds: timedelta(seconds=seconds)),
)


@given(policies)
def test_a_policy_survives_being_written_and_read(policy: Policy) -> None:
    assert Policy.from_mapping(policy.to_mapping()) == policy
