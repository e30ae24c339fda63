"""Which tools stay loaded: load order, idle turns, least recently used."""

from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.policy import Policy
from sessions.domain.loaded import Loaded, LoadedTools, end_turn, load, unload, use


def names(loaded: LoadedTools) -> list[str]:
    return [tool.name for tool in loaded]


def test_new_tools_go_to_the_end_and_known_ones_stay_in_place() -> None:
    first = load((), ["b", "a"], turn=0, most=None)
    assert names(load(first, ["c", "b", "c"], turn=1, most=None)) == ["b", "a", "c"]


def test_finding_a_tool_again_counts_as_using_it() -> None:
    first = load((), ["a", "b"], turn=0, most=None)
    again = load(first, ["a"], turn=3, most=None)
    assert [tool.used_turn for tool in again] == [3, 0]
    assert again[0].loaded_turn == 0


def test_past_the_limit_the_least_recently_used_go() -> None:
    loaded = load((), ["a"], turn=0, most=2)
    loaded = load(loaded, ["b"], turn=0, most=2)
    loaded = use(loaded, ["a"], turn=0)
    assert names(load(loaded, ["c"], turn=0, most=2)) == ["a", "c"]


def test_search_that_finds_more_than_the_limit_keeps_the_best() -> None:
    assert names(load((), ["a", "b", "c"], turn=0, most=2)) == ["a", "b"]


def test_tool_goes_after_so_many_turns_without_use() -> None:
    policy = Policy(unload_after_idle_turns=1)
    loaded = load((), ["a"], turn=0, most=None)
    assert names(end_turn(loaded, policy, turn=0)) == ["a"]
    assert names(end_turn(loaded, policy, turn=1)) == []


def test_nothing_stays_where_the_policy_keeps_nothing() -> None:
    assert end_turn(load((), ["a"], turn=0, most=None), Policy(keep_loaded_tools=False), turn=0) == ()


def test_limit_that_was_lowered_holds_at_the_end_of_the_turn() -> None:
    loaded = load((), ["a", "b", "c"], turn=0, most=None)
    assert names(end_turn(use(loaded, ["a"], turn=0), Policy(max_loaded_tools=1), turn=0)) == ["a"]


def test_unload_takes_what_is_named() -> None:
    assert names(unload(load((), ["a", "b"], turn=0, most=None), {"a", "z"})) == ["b"]


searches = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=5), max_size=20)


@given(searches, st.none() | st.integers(1, 4))
def test_order_is_kept_nothing_is_doubled_and_the_limit_holds(
    found: list[list[str]], most: int | None
) -> None:
    loaded: LoadedTools = ()
    for turn, wanted in enumerate(found):
        before = loaded
        loaded = load(loaded, wanted, turn=turn, most=most)
        assert len(set(names(loaded))) == len(loaded) <= (most or len(loaded))
        kept = [name for name in names(before) if name in names(loaded)]
        assert names(loaded)[: len(kept)] == kept
        assert set(wanted if most is None else wanted[:most]) <= set(names(loaded))


def test_a_use_is_later_than_all_before_it() -> None:
    loaded = use(load((), ["a", "b"], turn=0, most=None), ["b"], turn=0)
    assert loaded == (Loaded("a", 0, 0, 1), Loaded("b", 0, 0, 2))
