"""Strings in arrays: what goes in comes out, and is found where it stands."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.search.arrays import open_arrays, write_arrays
from catalog.search.strings import Strings

LETTERS = st.text("ab \n\x00é使🙂\ud83d\ude42", max_size=6)


@given(st.lists(LETTERS, max_size=6), LETTERS)
def test_the_same_as_looking_through_every_string(values: list[str], wanted: str) -> None:
    strings = Strings.of(values)
    assert len(strings) == len(values)
    assert strings.to_list() == [strings[number] for number in range(len(values))] == values
    assert sorted(set(strings.holding(wanted).tolist())) == [
        number for number, value in enumerate(values) if wanted in value
    ]


def test_nothing_is_found_across_two() -> None:
    assert Strings.of(["create", "issue"]).holding("eis").tolist() == []


@pytest.mark.parametrize("values", [[], [""], ["", "é", ""]])
def test_what_is_longer_than_all_of_them_is_in_none(values: list[str]) -> None:
    assert Strings.of(values).holding("a longer text").tolist() == []


def test_stored_ones_come_back(tmp_path: Path) -> None:
    write_arrays(tmp_path / "file", Strings.of(["one", "", "使用"]).to_arrays("words"), {})
    assert Strings.stored(open_arrays(tmp_path / "file").arrays, "words").to_list() == ["one", "", "使用"]
