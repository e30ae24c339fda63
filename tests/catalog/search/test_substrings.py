"""Finding texts through their words gives what looking through the texts gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.search.substrings import Texts

LETTERS = st.text("ab \n\t\x1c.é🙂", max_size=8)


@given(st.lists(LETTERS, max_size=6), LETTERS)
def test_the_same_as_looking_through_every_text(texts: list[str], wanted: str) -> None:
    column = Texts(texts)
    assert column.containing(wanted).tolist() == [wanted in text for text in texts]
    assert column.equal_to(wanted).tolist() == [wanted == text for text in texts]


@pytest.mark.parametrize("wanted", ["issue", "eat", "te iss", "create issue", "issue\ncreate", "zz", ""])
def test_parts_of_words_and_several_words(wanted: str) -> None:
    texts = ["create issue", "issues", "create an issue", ""]
    assert Texts(texts).containing(wanted).tolist() == [wanted in text for text in texts]
