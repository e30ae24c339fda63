"""Strings in arrays: stored, read back and searched."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.search.arrays import open_arrays, write_arrays
from catalog.search.string_array import StringArray

LETTERS = st.text("ab \n\x00é使🙂\ud83d\ude42", max_size=6)


@given(st.lists(LETTERS, max_size=6), LETTERS)
def test_the_same_as_looking_through_every_string(values: list[str], wanted: str) -> None:
    strings = StringArray.of(values)
    assert len(strings) == len(values)
    assert strings.to_list() == [strings[number] for number in range(len(values))] == values
    assert sorted(set(strings.holding(wanted).tolist())) == [
        number for number, value in enumerate(values) if wanted in value
    ]


def test_nothing_is_found_across_two() -> None:
    assert StringArray.of(["create", "issue"]).holding("eis").tolist() == []


@pytest.mark.parametrize("values", [[], [""], ["", "é", ""]])
def test_what_is_longer_than_all_of_them_is_in_none(values: list[str]) -> None:
    assert StringArray.of(values).holding("a longer text").tolist() == []


def test_stored_ones_come_back(tmp_path: Path) -> None:
    write_arrays(tmp_path / "file", StringArray.of(["one", "", "使用"]).to_arrays("words"), {})
    assert StringArray.stored(open_arrays(tmp_path / "file").arrays, "words").to_list() == ["one", "", "使用"]


@given(st.lists(LETTERS, min_size=1, max_size=6), st.data())
def test_some_of_them_in_any_order(values: list[str], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=8))
    taken = StringArray.of(values).take(np.array(numbers, dtype=np.int64))
    assert taken.to_list() == [values[number] for number in numbers]
    assert StringArray.join([taken, StringArray.of(values)]).to_list() == [*taken.to_list(), *values]


@given(st.lists(LETTERS, max_size=6), st.lists(LETTERS, max_size=3))
def test_where_others_stand_or_would(values: list[str], others: list[str]) -> None:
    ordered = StringArray.of(sorted(values))
    for other, place in zip(others, ordered.places_of(StringArray.of(others)).tolist(), strict=True):
        assert sorted(values)[:place] == [value for value in sorted(values) if value < other]
