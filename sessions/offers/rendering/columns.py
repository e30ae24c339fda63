"""Renders many tools in one shape as shared pieces, so that lists that differ in few tools share the rest."""

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sessions.offers.rendering.pieces import Piece, PieceCache
from sessions.offers.rendering.wire import Shape, ToolText

# A chunk ends after a tool whose name says so, one in this many: see `ToolText.ends_chunk`.
LARGEST_CHUNK_TOOLS = 400

Item = Piece | str


class Chunk(NamedTuple):
    """Consecutive tools of a list. `key` identifies exactly these tools."""

    tools: tuple[ToolText, ...]
    key: bytes


def cut(tools: Iterable[ToolText]) -> tuple[Chunk, ...]:
    """Cut tools in name order into chunks.

    Where a chunk ends depends on the tool there, not on its position (content-defined chunking): lists that
    differ in few tools have the other chunks in common.
    """
    chunks, group = [], []
    for tool in tools:
        group.append(tool)
        if tool.ends_chunk or len(group) == LARGEST_CHUNK_TOOLS:
            chunks.append(_close(group))
            group = []
    if group:
        chunks.append(_close(group))
    return tuple(chunks)


def _close(group: Sequence[ToolText]) -> Chunk:
    serials = array("Q", [tool.serial for tool in group])
    return Chunk(tuple(group), hashlib.blake2b(serials.tobytes(), digest_size=16).digest())


class ToolColumn:
    """Chunks in one shape. The rendered text is in a cache that all columns share."""

    def __init__(self, chunks: Sequence[Chunk], shape: Shape, cache: PieceCache) -> None:
        self._chunks = chunks
        self._shape: Shape = shape
        self._cache = cache

    def items(self, others: Mapping[str, str] | None = None) -> Iterator[Item]:
        """All tools, to be joined with commas; `others` replace some, and "" leaves one out."""
        changed = self._places_of(others) if others else set()
        for number, chunk in enumerate(self._chunks):
            if number in changed:
                yield self._write(chunk, others or {})
            else:
                yield self._find(chunk)

    def _places_of(self, names: Iterable[str]) -> set[int]:
        """The chunks that hold these tools; names that are not in the list are ignored."""
        firsts = [chunk.tools[0].name for chunk in self._chunks]
        found = {name: bisect_right(firsts, name) - 1 for name in names}
        return {
            place
            for name, place in found.items()
            if place >= 0 and any(tool.name == name for tool in self._chunks[place].tools)
        }

    def _find(self, chunk: Chunk) -> Piece:
        return self._cache.find((self._shape, chunk.key), lambda: self._write(chunk, {}))

    def _write(self, chunk: Chunk, others: Mapping[str, str]) -> str:
        texts = (
            others[tool.name] if tool.name in others else tool.write(self._shape) for tool in chunk.tools
        )
        return ",".join(text for text in texts if text)
