"""Finding tools through the words of their texts gives what looking through the texts gives."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.search import postings
from catalog.search.documents import ToolDocument
from catalog.search.string_array import StringArray
from catalog.search.substring_lookup import (
    FOLDED_TEXTS,
    SubstringLookup,
    fold_texts,
    split_documents,
    store_substrings,
)
from tests.catalog.search.samples import TOOLS, make_tool

LETTERS = st.text("abA \n\t\x1c.éİ🙂\ud800", max_size=8)
TEXTS = st.tuples(LETTERS, LETTERS, st.lists(LETTERS, max_size=2))


def make_substrings(tools: Sequence[ToolDocument]) -> SubstringLookup:
    arrays = store_substrings(split_documents(tools), len(tools))
    for field in FOLDED_TEXTS:
        arrays |= StringArray.of(fold_texts(tool)[field] for tool in tools).to_arrays(field)
    return SubstringLookup(arrays)


@given(st.lists(TEXTS, max_size=5), LETTERS)
def test_the_same_as_looking_through_every_text(texts: list[tuple[str, str, list[str]]], typed: str) -> None:
    wanted = typed.lower()
    tools = [
        make_tool(number, "s", name, description, parameters=tuple((each, "") for each in parameters))
        for number, (name, description, parameters) in enumerate(texts)
    ]
    found = make_substrings(tools).find(wanted)
    assert found.is_name.tolist() == [wanted == name.lower() for name, _, _ in texts]
    assert found.in_name.tolist() == [wanted in name.lower() for name, _, _ in texts]
    assert found.in_description.tolist() == [wanted in text.lower() for _, text, _ in texts]
    assert found.in_parameters.tolist() == [wanted in "\n".join(each).lower() for _, _, each in texts]


@pytest.mark.parametrize("wanted", ["issue", "eat", "te iss", "create issue", "issue\ncreate", "zz", "", "a"])
def test_parts_of_words_and_several_words(wanted: str) -> None:
    texts = ["create issue", "issues", "create an issue", ""]
    found = make_substrings([make_tool(number, "s", "x", text) for number, text in enumerate(texts)])
    assert found.find(wanted).in_description.tolist() == [wanted in text for text in texts]


def test_an_update_starts_from_what_was_stored() -> None:
    given, kept = split_documents(TOOLS), make_substrings(TOOLS).to_postings()
    assert kept.terms.to_list() == given.terms.to_list()
    assert kept.packed.tolist() == given.packed.tolist()
    assert set(postings.counts_in(kept.packed).tolist()) == {1}
