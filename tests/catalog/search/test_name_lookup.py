"""Looking tools up by name: exact case first, any case otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.search.name_lookup import NameLookup, hash_names, store_names
from catalog.search.string_array import StringArray

NAMES = st.text("aAbİ\ud800", max_size=2)


def make_namesakes(pairs: list[tuple[str, str]]) -> NameLookup:
    names, qualified = [name for name, _ in pairs], [name for _, name in pairs]
    return NameLookup(
        store_names(hash_names(names, qualified)), StringArray.of(names), StringArray.of(qualified)
    )


@given(st.lists(st.tuples(NAMES, NAMES), max_size=8), NAMES)
def test_the_same_as_looking_at_every_name(pairs: list[tuple[str, str]], wanted: str) -> None:
    exact = [row for row, names in enumerate(pairs) if wanted in names]
    folded = [row for row, names in enumerate(pairs) if wanted.lower() in [name.lower() for name in names]]
    assert list(make_namesakes(pairs).find(wanted)) == (exact or folded)


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [("Read", (0,)), ("read", (1, 2)), ("READ", (0, 1, 2)), ("files_read", (1,)), ("rea", ())],
)
def test_the_case_that_was_typed_wins(wanted: str, rows: tuple[int, ...]) -> None:
    namesakes = make_namesakes([("Read", "Read"), ("read", "files_read"), ("read", "disk_read")])
    assert namesakes.find(wanted) == rows
