"""The longest common subsequence, and the limit of its work."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.differences import common_ends, find_common

sequences = st.lists(st.sampled_from("abc"), max_size=12).map("".join)


@given(sequences, sequences)
def test_the_stretches_are_in_both_and_in_order(old: str, new: str) -> None:
    stretches, _steps = find_common(old, new, most_steps=10_000)
    assert stretches is not None
    old_at = new_at = 0
    for stretch in stretches:
        assert old_at <= stretch.old
        assert new_at <= stretch.new
        assert old[stretch.old :][: stretch.size] == new[stretch.new :][: stretch.size]
        old_at, new_at = stretch.old + stretch.size, stretch.new + stretch.size
    assert max(old_at, 0) <= len(old)


@given(sequences, sequences)
def test_no_other_comparison_finds_more(old: str, new: str) -> None:
    stretches, _steps = find_common(old, new, most_steps=10_000)
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    assert sum(stretch.size for stretch in stretches or ()) >= sum(block.size for block in blocks)


@pytest.mark.parametrize(
    ("old", "new"), [("a!" * 1500, "a?" * 1500), ("ab" * 1500, "ba" * 700), ("a" * 3000, "b")]
)
def test_the_steps_have_an_end(old: str, new: str) -> None:
    assert find_common(old, new, most_steps=5_000).steps < 5_000 + len(old) + len(new)


def test_the_ends_are_found_whatever_lies_between() -> None:
    assert common_ends("aabxxcc", "aayyycc") == [(0, 0, 2), (5, 5, 2)]
    assert common_ends("aaa", "aa") == [(0, 0, 2)]
    assert common_ends("", "a") == []
