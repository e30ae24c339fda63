"""Answers in pieces: joined or compressed, they are the same."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.domain import pieces
from sessions.domain.columns import CHUNK_TOOLS, Column
from sessions.domain.pieces import Piece, Writer
from sessions.domain.wire import ToolText, write_text


def make_text(number: int) -> ToolText:
    definition = {
        "name": f"tool{number}",
        "description": f"Does {number}. More.",
        "inputSchema": {"type": "object"},
    }
    return write_text(
        id=number,
        digest="",
        name=f"mcp__s__tool{number}",
        server="s",
        kind="mcp",
        definition=definition,
        chars=9,
    )


@given(st.lists(st.text(max_size=300), max_size=8))
def test_compressed_pieces_are_one_gzip_stream(texts: list[str]) -> None:
    made = [Piece(text) for text in texts]
    assert gzip.decompress(pieces.gzip(made)) == pieces.join(made)


def test_pieces_that_many_answers_share_are_summed_up_and_compressed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = [Piece("one" * 500), Piece("two" * 500)]
    first = pieces.gzip(shared)
    monkeypatch.setattr(pieces, "zlib", None)
    assert pieces.gzip(shared) == first


def test_lone_surrogate_does_not_break_an_answer() -> None:
    assert Piece("a\ud800b").content == b"a?b"


def test_list_has_commas_between_what_is_not_empty() -> None:
    writer = Writer()
    writer.add("[")
    writer.add_list(["", Piece("1"), "", "2", Piece("3")])
    writer.add("]")
    assert pieces.join(writer.finish()) == b"[1,2,3]"


class TestColumn:
    TEXTS = [make_text(number) for number in range(2 * CHUNK_TOOLS + 5)]

    def read(self, column: Column, others: dict[str, str] | None = None) -> list[dict[str, str]]:
        writer = Writer()
        writer.add("[")
        writer.add_list(column.items(others))
        writer.add("]")
        listed: list[dict[str, str]] = json.loads(pieces.join(writer.finish()))
        return listed

    def test_all_tools_in_order(self) -> None:
        listed = self.read(Column(self.TEXTS, "summary"))
        assert [tool["name"] for tool in listed] == [text.name for text in self.TEXTS]
        assert listed[3]["description"] == "Does 3."

    def test_one_tool_differs_and_the_other_chunks_are_shared(self) -> None:
        column = Column(self.TEXTS, "summary")
        before = list(column.items())
        name = self.TEXTS[CHUNK_TOOLS].name
        changed = list(column.items({name: ""}))
        assert changed[0] is before[0]
        assert changed[2] is before[2]
        assert name not in [tool["name"] for tool in self.read(column, {name: ""})]

    def test_name_of_another_column_changes_nothing(self) -> None:
        column = Column(self.TEXTS, "route")
        assert list(column.items({"unknown": ""})) == list(column.items())

    def test_empty_column_is_an_empty_list(self) -> None:
        assert self.read(Column([], "mcp")) == []

    @given(st.sets(st.integers(0, 1500), max_size=900), st.sets(st.integers(0, 1500), max_size=900))
    def test_changed_column_reads_like_a_new_one(self, before: set[int], after: set[int]) -> None:
        texts = {number: make_text(10_000 + number) for number in before | after}
        column = Column([texts[number] for number in sorted(before)], "summary")
        self.read(column)
        changed = column.change(
            [texts[number] for number in before - after], [texts[number] for number in sorted(after - before)]
        )
        assert self.read(changed) == self.read(Column([texts[number] for number in sorted(after)], "summary"))
        one = {texts[number].name: "" for number in sorted(after)[:1]}
        assert len(self.read(changed, one)) == len(after) - len(one)

    def test_changed_column_shares_the_chunks_in_which_nothing_changed(self) -> None:
        texts = [make_text(10_000 + number) for number in range(3 * CHUNK_TOOLS)]
        column = Column(texts, "summary")
        before = list(column.items())
        after = list(column.change([texts[CHUNK_TOOLS]], []).items())
        assert (after[0], after[2]) == (before[0], before[2])
        assert after[1] is not before[1]
