"""Highlighting the words by which a text was found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.search import highlights, words


def marked(text: str, *typed: str) -> str:
    pieces = highlights.cut_at(text, highlights.find_words(text, typed))
    return "".join(f"[{piece.text}]" if piece.is_highlighted else piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("text", "typed", "expected"),
    [
        ("Opens issues.", "issue", "Opens [issues]."),
        ("create_issue", "create", "[create]_issue"),
        ("createIssue", "issue", "create[Issue]"),
        ("On GitHub now", "github", "On [GitHub] now"),
        ("comment", "me", "comment"),
        ("Café menu", "cafe", "[Café] menu"),
        ("ﬁle name", "file", "[ﬁle] name"),
        ("base64 text", "64", "base[64] text"),
        ("", "issue", ""),
    ],
)
def test_words_are_marked_in_every_form(text: str, typed: str, expected: str) -> None:
    assert marked(text, typed) == expected


def test_inside_marks_the_longest_wherever_it_stands() -> None:
    text = "A pull request for Pulling"
    pieces = highlights.cut_at(text, highlights.find_inside(text, ["pull", "pull request", ""]))
    assert [piece.text for piece in pieces if piece.is_highlighted] == ["pull request", "Pull"]
    assert highlights.find_inside(text, []) == []


@given(st.text(), st.lists(st.text(max_size=10), max_size=4))
def test_pieces_are_the_text_whatever_was_typed(text: str, typed: list[str]) -> None:
    for find in (highlights.find_words, highlights.find_inside):
        assert "".join(piece.text for piece in highlights.cut_at(text, find(text, typed))) == text


@given(st.text().map(words._compose))
def test_every_indexed_word_has_its_place(text: str) -> None:
    located = {term for place in words.locate(text) for term in place.terms}
    assert located >= {term for run in words.split_words(text) for part in run.parts for term in part.terms}
