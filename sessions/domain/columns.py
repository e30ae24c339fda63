"""Many tools in one shape, as shared pieces: an answer that differs in a few tools writes only those anew."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from sessions.domain.pieces import Piece
from sessions.domain.wire import Shape, ToolText

CHUNK_TOOLS = 200

Item = Piece | str


class Column:
    def __init__(self, tools: Sequence[ToolText], shape: Shape) -> None:
        self._tools = tools
        self._shape: Shape = shape
        self._chunks: dict[int, Piece] = {}

    def items(self, others: Mapping[str, str] | None = None) -> Iterator[Item]:
        """All tools, to be joined with commas; `others` stand in place of some, and "" leaves one out."""
        changed = {self._places[name] // CHUNK_TOOLS for name in others or () if name in self._places}
        for number in range(-(-len(self._tools) // CHUNK_TOOLS)):
            if number in changed:
                yield self._write(number, others or {})
            else:
                yield self._chunk(number)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {tool.name: place for place, tool in enumerate(self._tools)}

    def _chunk(self, number: int) -> Piece:
        piece = self._chunks.get(number)
        if piece is None:
            piece = self._chunks[number] = Piece(self._write(number, {}))
        return piece

    def _write(self, number: int, others: Mapping[str, str]) -> str:
        tools = self._tools[number * CHUNK_TOOLS : (number + 1) * CHUNK_TOOLS]
        texts = (others[tool.name] if tool.name in others else tool.write(self._shape) for tool in tools)
        return ",".join(text for text in texts if text)
