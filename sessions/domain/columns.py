"""Many tools in one shape, as shared pieces: an answer that differs in a few tools writes only those anew."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from sessions.domain.pieces import Piece
from sessions.domain.wire import Shape, ToolText

CHUNK_TOOLS = 200
# A chunk that changes have made longer than this is cut anew, with all others.
LARGEST_CHUNK_TOOLS = 2 * CHUNK_TOOLS

Item = Piece | str


class Column:
    def __init__(self, tools: Sequence[ToolText], shape: Shape) -> None:
        self.shape: Shape = shape
        starts = range(0, len(tools), CHUNK_TOOLS)
        self._groups = [tuple(tools[start : start + CHUNK_TOOLS]) for start in starts]
        self._chunks: dict[int, Piece] = {}

    def items(self, others: Mapping[str, str] | None = None) -> Iterator[Item]:
        """All tools, to be joined with commas; `others` stand in place of some, and "" leaves one out."""
        changed = {self._places[name] for name in others or () if name in self._places}
        for number, group in enumerate(self._groups):
            if number in changed:
                yield self._write(number, others or {})
            elif group:
                yield self._chunk(number)

    def change(self, gone: Sequence[ToolText], added: Sequence[ToolText]) -> "Column":
        """The column without some tools and with others, its tools being in the order of their names.

        Chunks in which nothing changed are shared with this one.
        """
        groups, places = list(self._groups) or [()], self._places.copy()
        touched: set[int] = set()
        for tool in gone:
            number = places.pop(tool.name)
            groups[number] = tuple(one for one in groups[number] if one.name != tool.name)
            touched.add(number)
        for tool in added:
            number = places[tool.name] = self._place_for(tool.name)
            groups[number] = _insert(groups[number], tool)
            touched.add(number)
        if any(len(groups[number]) > LARGEST_CHUNK_TOOLS for number in touched):
            return Column([tool for group in groups for tool in group], self.shape)
        return self._share(groups, places, touched)

    def _place_for(self, name: str) -> int:
        numbers, firsts = self._firsts
        return numbers[max(bisect_right(firsts, name) - 1, 0)] if numbers else 0

    @cached_property
    def _firsts(self) -> tuple[list[int], list[str]]:
        """The chunks that hold tools, and the name with which each begins."""
        filled = [(number, group[0].name) for number, group in enumerate(self._groups) if group]
        return [number for number, _ in filled], [name for _, name in filled]

    def _share(
        self, groups: list[tuple[ToolText, ...]], places: dict[str, int], touched: set[int]
    ) -> "Column":
        column = Column((), self.shape)
        column._groups, column._places = groups, places
        column._chunks = self._chunks.copy()  # in one step: other threads may be adding to it
        for number in touched:
            column._chunks.pop(number, None)
        return column

    @cached_property
    def _places(self) -> dict[str, int]:
        return {tool.name: number for number, group in enumerate(self._groups) for tool in group}

    def _chunk(self, number: int) -> Piece:
        piece = self._chunks.get(number)
        if piece is None:
            piece = self._chunks[number] = Piece(self._write(number, {}))
        return piece

    def _write(self, number: int, others: Mapping[str, str]) -> str:
        texts = (
            others[tool.name] if tool.name in others else tool.write(self.shape)
            for tool in self._groups[number]
        )
        return ",".join(text for text in texts if text)


def _insert(group: tuple[ToolText, ...], tool: ToolText) -> tuple[ToolText, ...]:
    place = bisect_right(group, tool.name, key=lambda one: one.name)
    return (*group[:place], tool, *group[place:])
