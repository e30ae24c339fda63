"""Many strings in two arrays: opened without reading them, and searched all at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from catalog.search.arrays import Arrays

Numbers = NDArray[np.int64]

_ENCODING = ("utf-8", "surrogatepass")  # half characters too: texts come as servers send them


def encode(text: str) -> bytes:
    return text.encode(*_ENCODING)


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """`text` is all strings one after the other, encoded; string n stands from `bounds[n]` to
    `bounds[n + 1]`.
    """

    text: NDArray[np.uint8]
    bounds: Numbers

    @classmethod
    def of(cls, values: Iterable[str]) -> "Strings":
        encoded = [value.encode(*_ENCODING) for value in values]
        bounds = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), bounds)

    @classmethod
    def stored(cls, arrays: Arrays, name: str) -> "Strings":
        return cls(arrays[f"{name}.text"], arrays[f"{name}.bounds"])

    def to_arrays(self, name: str) -> Arrays:
        return {f"{name}.text": self.text, f"{name}.bounds": self.bounds}

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> str:
        return self.text[self.bounds[number] : self.bounds[number + 1]].tobytes().decode(*_ENCODING)

    def to_list(self) -> list[str]:
        """All of them at once, which is far quicker than one after the other."""
        text = self.text.tobytes()
        return [text[start:end].decode(*_ENCODING) for start, end in pairwise(self.bounds.tolist())]

    def lengths(self) -> Numbers:
        """In bytes."""
        return np.diff(self.bounds)

    def holding(self, part: str) -> Numbers:
        """The numbers of the strings that contain a text, in order; one that contains it twice may come
        twice.
        """
        wanted = encode(part)
        if not wanted:
            return np.arange(len(self))
        starts = self._find(wanted)
        numbers = np.searchsorted(self.bounds, starts, side="right") - 1
        return numbers[starts + len(wanted) <= self.bounds[numbers + 1]]

    def _find(self, wanted: bytes) -> Numbers:
        """Where the bytes stand, across the ends of strings too: UTF-8 is found at characters only."""
        last = len(self.text) - len(wanted)
        if last < 0:
            return np.empty(0, dtype=np.int64)
        fits = self.text[: last + 1] == wanted[0]
        if len(wanted) > 1:
            fits &= self.text[1 : last + 2] == wanted[1]
        starts = np.flatnonzero(fits)
        for at, byte in enumerate(wanted[2:], start=2):
            if not len(starts):
                break
            starts = starts[self.text[starts + at] == byte]
        return starts
