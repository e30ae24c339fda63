"""Definitions compared word by word."""

import pytest

from catalog.domain.limits import DIFFERENCE_CHARS, DIFFERENCE_WORDS
from catalog.views import word_diff
from catalog.views.word_diff import DiffSpan, Effort, compare_definitions, compare_words, spell_out


def compare(before: str, after: str) -> list[DiffSpan]:
    return compare_words(before, after, Effort())


def test_only_the_words_that_differ_are_marked() -> None:
    assert compare("Read a file.", "Read one file.") == [
        DiffSpan("same", "Read "),
        DiffSpan("gone", "a"),
        DiffSpan("new", "one"),
        DiffSpan("same", " file."),
    ]


def test_nothing_is_lost_between_the_pieces() -> None:
    before, after = "a  b\n(c) d_e", "a b [c] d_e!"
    pieces = compare(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == after


def test_long_stretch_that_stayed_is_cut_around_the_change() -> None:
    same = " ".join(f"w{number}" for number in range(200))
    first, *_ = compare(f"{same} old", f"{same} new")
    assert " … " in first.text
    assert len(first.text) < len(same) / 2


def test_text_too_long_to_compare_is_marked_as_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_diff, "DIFFERENCE_WORDS", 3)
    assert compare("a b c d e", "a x c y e") == [
        *(
            DiffSpan("same", "a "),
            DiffSpan("gone", "b c d"),
            DiffSpan("new", "x c y"),
            DiffSpan("same", " e"),
        ),
    ]
    assert compare("", "a b c d") == [DiffSpan("new", "a b c d")]


def test_texts_that_would_take_long_to_compare_are_marked_as_one_piece() -> None:
    """Words that repeat cost a comparison the most; the effort of a page is shared by all its texts."""
    effort = Effort()
    before, after = "a!" * 1490, "a?" * 1490
    assert compare_words(before, after, effort) == [
        *(DiffSpan("same", "a"), DiffSpan("gone", before[1:]), DiffSpan("new", after[1:])),
    ]
    assert -DIFFERENCE_WORDS < effort.steps <= 0
    assert compare_words("a b c", "x b y", effort) == [DiffSpan("gone", "a b c"), DiffSpan("new", "x b y")]
    assert effort.steps > -DIFFERENCE_WORDS


def test_a_piece_longer_than_one_reads_is_cut() -> None:
    gone, new = compare("a" * (DIFFERENCE_CHARS + 7), "b")
    assert gone.text.endswith("a … (7 more characters)")
    assert new.text == "b"
    assert spell_out({"description": "a" * (DIFFERENCE_CHARS + 7)}, kind="new")[0].pieces == [
        DiffSpan("new", gone.text)
    ]


def test_fields_alike_are_left_out_and_schemas_are_compared_as_text() -> None:
    before = {"name": "read", "inputSchema": {"properties": {"path": {}}}}
    after = {"name": "read", "inputSchema": {"properties": {"file": {}}}, "title": "Read"}
    schema, title = compare_definitions(before, after, Effort())
    assert (schema.field, title.field) == ("inputSchema", "title")
    assert [piece.text for piece in schema.pieces if piece.kind != "same"] == ["path", "file"]
    assert title.pieces == [DiffSpan("new", "Read")]
