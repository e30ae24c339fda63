"""Postings as packed numbers: what goes in comes out, in whatever steps it was put together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from catalog.search import postings
from catalog.search.fields import FIELD_NAMES
from catalog.search.postings import Postings, analyze_documents, merge, renumber, shift
from tests.catalog.search.samples import TOOLS

Row = tuple[str, int, int, int]

WORDS = st.lists(st.text("abzé\uffff🙂\ud800", max_size=3), max_size=5)


def rows(found: Postings) -> list[Row]:
    columns = (
        [found.terms[number] for number in postings.term_numbers(found.packed)],
        postings.document_numbers(found.packed).tolist(),
        postings.field_numbers(found.packed).tolist(),
        postings.counts_in(found.packed).tolist(),
    )
    return sorted(zip(*columns, strict=True))


def test_counts_are_by_term_tool_and_field() -> None:
    found = rows(analyze_documents(TOOLS[3:4]))
    assert ("messag", 0, FIELD_NAMES.index("name"), 1) in found
    assert ("a", 0, FIELD_NAMES.index("description"), 2) in found


def test_parts_merge_to_the_whole() -> None:
    first, second = analyze_documents(TOOLS[:4]), analyze_documents(TOOLS[4:])
    assert rows(merge([first, shift(second, 4)])) == rows(analyze_documents(TOOLS))


def test_removed_tools_take_their_terms_along() -> None:
    places = np.arange(len(TOOLS))
    places[5] = -1
    left = renumber(analyze_documents(TOOLS), places)
    assert "forecast" not in left.terms.to_list()
    assert rows(left) == [row for row in rows(analyze_documents(TOOLS)) if row[1] != 5]


def test_no_postings_merge_to_none() -> None:
    assert rows(merge([])) == rows(merge([analyze_documents([])])) == []


def test_a_count_that_is_too_large_is_cut() -> None:
    found = postings.PostingList()
    found.add("x", 0, 0, 100_000)
    assert rows(found.finish()) == [("x", 0, 0, postings.MAX_COUNT)]


@given(st.lists(WORDS, max_size=6), st.lists(WORDS, max_size=6))
def test_whatever_terms_meet(first: list[list[str]], second: list[list[str]]) -> None:
    """The same as if all had been put together at once, and in the order of the terms."""
    parts = [put_together(first, at=0), put_together(second, at=len(first))]
    whole, merged = put_together([*first, *second], at=0), merge(parts)
    assert merged.terms.to_list() == whole.terms.to_list()
    assert merged.packed.tolist() == whole.packed.tolist()


def put_together(documents: list[list[str]], at: int) -> Postings:
    found = postings.PostingList()
    for number, words in enumerate(documents):
        for word in dict.fromkeys(words):
            found.add(word, at + number, 0, words.count(word))
    return found.finish()
