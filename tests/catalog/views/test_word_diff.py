"""Definitions compared word by word."""

import pytest

from catalog.views import word_diff
from catalog.views.word_diff import Piece, compare_definitions, compare_words


def test_only_the_words_that_differ_are_marked() -> None:
    assert compare_words("Read a file.", "Read one file.") == [
        Piece("same", "Read "),
        Piece("gone", "a"),
        Piece("new", "one"),
        Piece("same", " file."),
    ]


def test_nothing_is_lost_between_the_pieces() -> None:
    before, after = "a  b\n(c) d_e", "a b [c] d_e!"
    pieces = compare_words(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == after


def test_long_stretch_that_stayed_is_cut_around_the_change() -> None:
    same = " ".join(f"w{number}" for number in range(200))
    first, *_ = compare_words(f"{same} old", f"{same} new")
    assert " … " in first.text
    assert len(first.text) < len(same) / 2


def test_text_too_long_to_compare_is_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_diff, "MAX_WORDS", 3)
    assert compare_words("a b c", "a b d") == [Piece("gone", "a b c"), Piece("new", "a b d")]
    assert compare_words("", "a b c d") == [Piece("new", "a b c d")]


def test_fields_alike_are_left_out_and_schemas_are_compared_as_text() -> None:
    before = {"name": "read", "inputSchema": {"properties": {"path": {}}}}
    after = {"name": "read", "inputSchema": {"properties": {"file": {}}}, "title": "Read"}
    schema, title = compare_definitions(before, after)
    assert (schema.field, title.field) == ("inputSchema", "title")
    assert [piece.text for piece in schema.pieces if piece.kind != "same"] == ["path", "file"]
    assert title.pieces == [Piece("new", "Read")]
