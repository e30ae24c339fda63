"""Answers in pieces: joined or compressed, they are the same."""

import gzip
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.offers.rendering import pieces
from sessions.offers.rendering.columns import LARGEST_CHUNK_TOOLS, ToolColumn, cut
from sessions.offers.rendering.pieces import Piece, PieceCache, PieceWriter
from sessions.offers.rendering.wire import Shape, ToolText, write_text


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
    assert gzip.decompress(pieces.gzip(made)) == pieces.join_pieces(made)


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
    writer = PieceWriter()
    writer.add("[")
    writer.add_list(["", Piece("1"), "", "2", Piece("3")])
    writer.add("]")
    assert pieces.join_pieces(writer.finish()) == b"[1,2,3]"


class TestPieceCache:
    def write(self, cache: PieceCache, *names: str) -> list[Piece]:
        return [cache.find(name, lambda: "x" * 1000) for name in names]

    def test_longest_unused_goes_first(self) -> None:
        cache = PieceCache(2 * (1000 + pieces.PIECE_BYTES))
        a, b = self.write(cache, "a", "b")
        assert self.write(cache, "a") == [a]
        self.write(cache, "c")
        assert self.write(cache, "a") == [a]
        assert self.write(cache, "b") != [b]

    def test_compressed_form_is_counted(self) -> None:
        cache = PieceCache(10_000)
        (piece,) = self.write(cache, "a")
        before = cache.bytes
        assert cache.bytes == before
        pieces.gzip([piece])
        assert cache.bytes == before + len(piece.deflated)

    def test_piece_that_is_compressed_after_it_went_counts_for_nothing(self) -> None:
        cache = PieceCache(1000 + pieces.PIECE_BYTES)
        gone, _ = self.write(cache, "a", "b")
        before = cache.bytes
        pieces.gzip([gone])
        assert cache.bytes == before

    def test_piece_larger_than_the_cache_is_written_and_not_kept(self) -> None:
        cache = PieceCache(100)
        assert self.write(cache, "a")[0].content == b"x" * 1000
        assert cache.bytes == 0

    def test_nothing_is_kept_past_the_bytes(self) -> None:
        cache = PieceCache(20_000)
        for piece in self.write(cache, *map(str, range(100))):
            pieces.gzip([piece])
            assert 0 <= cache.bytes <= 20_000


class TestColumn:
    TEXTS = [make_text(1_000 + number) for number in range(1_500)]

    def make(
        self, texts: Iterable[ToolText], shape: Shape = "summary", most_bytes: int = 10**7
    ) -> ToolColumn:
        return ToolColumn(cut(texts), shape, PieceCache(most_bytes))

    def read(self, column: ToolColumn, others: dict[str, str] | None = None) -> list[dict[str, str]]:
        writer = PieceWriter()
        writer.add("[")
        writer.add_list(column.items(others))
        writer.add("]")
        listed: list[dict[str, str]] = json.loads(pieces.join_pieces(writer.finish()))
        return listed

    @pytest.mark.parametrize("most_bytes", [0, 10**7])
    def test_all_tools_in_order(self, most_bytes: int) -> None:
        listed = self.read(self.make(self.TEXTS, most_bytes=most_bytes))
        assert [tool["name"] for tool in listed] == [text.name for text in self.TEXTS]
        assert listed[3]["description"] == "Does 1003."

    def test_one_tool_differs_and_the_other_chunks_are_shared(self) -> None:
        column = self.make(self.TEXTS)
        before = list(column.items())
        name = self.TEXTS[700].name
        changed = list(column.items({name: ""}))
        assert len(before) > 3
        assert [one is other for one, other in zip(before, changed, strict=True)].count(False) == 1
        assert name not in [tool["name"] for tool in self.read(column, {name: ""})]

    def test_name_of_another_column_changes_nothing(self) -> None:
        column = self.make(self.TEXTS, "route")
        assert list(column.items({"unknown": "", "aaa": ""})) == list(column.items())

    def test_empty_column_is_an_empty_list(self) -> None:
        assert self.read(self.make([], "mcp")) == []

    @given(st.sets(st.integers(0, 1499), max_size=900))
    def test_any_tools_are_all_listed(self, numbers: set[int]) -> None:
        texts = [self.TEXTS[number] for number in sorted(numbers)]
        column = self.make(texts)
        assert [tool["name"] for tool in self.read(column)] == [text.name for text in texts]
        one = {text.name: "" for text in texts[:1]}
        assert len(self.read(column, one)) == len(texts) - len(one)

    def test_columns_that_differ_in_a_tool_share_all_but_its_chunk(self) -> None:
        cache = PieceCache(10**7)
        before = list(ToolColumn(cut(self.TEXTS), "summary", cache).items())
        less = [text for text in self.TEXTS if text is not self.TEXTS[700]]
        after = list(ToolColumn(cut(less), "summary", cache).items())
        assert len(set(map(id, before)) ^ set(map(id, after))) == 2

    def test_no_chunk_is_endless(self) -> None:
        texts = [text for text in self.TEXTS if not text.ends_chunk]
        assert max(len(chunk.tools) for chunk in cut(texts)) == LARGEST_CHUNK_TOOLS
