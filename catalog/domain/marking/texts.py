"""All texts of a definition as one, so that each look is one pass; every place leads back to its field."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional

from catalog.domain.limits import MARKING_CHARS, MARKING_PATH_LEVELS
from catalog.domain.problems import join_place

# Longer than any gap that a pattern allows, so that no find reaches from one field into the next.
GAP = "\n\n\n\n"


class _Step(NamedTuple):
    """A place in what was given. It is written out only where something is found, which is rare."""

    parent: Optional["_Step"]
    key: object
    depth: int

    def down(self, key: object) -> "_Step":
        """Places deeper than a limit are reported at the limit."""
        return self if self.depth == MARKING_PATH_LEVELS else _Step(self, key, self.depth + 1)

    def path(self) -> str:
        return join_place(self.parent.path() if self.parent else "", self.key)


class Texts:
    """Names of properties are texts too: a model reads them. Past `MARKING_CHARS` nothing is looked at."""

    def __init__(self, wire: Mapping[str, Any]) -> None:
        self._steps: list[_Step] = []
        self._starts: list[int] = []
        parts: list[str] = []
        room = MARKING_CHARS
        for step, text in _walk(wire):
            self._steps.append(step)
            self._starts.append(MARKING_CHARS - room)
            parts.append(text[:room])
            room -= len(text) + len(GAP)
            if room <= 0:
                break
        self.whole = GAP.join(parts)
        self.is_cut = room <= 0
        self._lengths = [len(part) for part in parts]

    def index_at(self, place: int) -> int:
        """The number of the text that a place of the whole is in."""
        return bisect_right(self._starts, place) - 1

    def end_of(self, index: int) -> int:
        return self._starts[index] + self._lengths[index]

    def locate(self, place: int) -> tuple[str, int]:
        """The field that a place of the whole is in, and the place within it."""
        index = self.index_at(place)
        return self._steps[index].path(), place - self._starts[index]

    def longest(self) -> tuple[str, int]:
        """The field that holds the most characters, and how many."""
        longest = max(self._lengths)
        return self._steps[self._lengths.index(longest)].path(), longest


def _walk(wire: Mapping[str, Any]) -> Iterator[tuple[_Step, str]]:
    """Without recursion: a schema may be nested deeper than the interpreter's stack."""
    first = [key for key in ("name", "title", "description") if key in wire]
    keys = [*first, *(key for key in wire if key not in first)]
    left: list[tuple[_Step, Any]] = [(_Step(None, key, 0), wire[key]) for key in reversed(keys)]
    while left:
        step, value = left.pop()
        if isinstance(value, str):
            yield step, value
        elif isinstance(value, Mapping):
            inner = [(step.down(key), key) for key in value]
            yield from ((below, str(key)) for below, key in inner)
            left.extend((below, value[key]) for below, key in reversed(inner))
        elif isinstance(value, list | tuple):
            left.extend((step.down(index), value[index]) for index in reversed(range(len(value))))
