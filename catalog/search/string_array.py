"""Many strings in two arrays: opened without reading them, and searched all at once."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
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
class StringArray:
    """`text` is all strings concatenated and encoded; string n is from `bounds[n]` to `bounds[n + 1]`."""

    text: NDArray[np.uint8]
    bounds: Numbers

    @classmethod
    def of(cls, values: Iterable[str]) -> "StringArray":
        encoded = [value.encode(*_ENCODING) for value in values]
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), _add_up([*map(len, encoded)]))

    @classmethod
    def join(cls, parts: Sequence["StringArray"]) -> "StringArray":
        """The strings of all parts, one part after the other."""
        lengths = np.concatenate([part.lengths() for part in parts])
        return cls(np.concatenate([part.text for part in parts]), _add_up(lengths))

    @classmethod
    def stored(cls, arrays: Arrays, name: str) -> "StringArray":
        return cls(arrays[f"{name}.text"], arrays[f"{name}.bounds"])

    def to_arrays(self, name: str) -> Arrays:
        return {f"{name}.text": self.text, f"{name}.bounds": self.bounds}

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> str:
        return self.text[self.bounds[number] : self.bounds[number + 1]].tobytes().decode(*_ENCODING)

    def to_list(self) -> list[str]:
        """All strings at once, far faster than one by one."""
        encoded = self.to_bytes()
        try:
            return list(map(bytes.decode, encoded))
        except UnicodeDecodeError:  # half characters, which are rare; looking for them takes thrice as long
            return [each.decode(*_ENCODING) for each in encoded]

    def take(self, numbers: Numbers) -> "StringArray":
        """These strings in this order. Neighbours that stay neighbours are copied together."""
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        groups = np.split(numbers, breaks) if len(numbers) else []
        starts = self.bounds[[group[0] for group in groups]].tolist()
        ends = self.bounds[[group[-1] + 1 for group in groups]].tolist()
        text = b"".join(self.text[start:end].data for start, end in zip(starts, ends, strict=True))
        return StringArray(np.frombuffer(text, dtype=np.uint8), _add_up(self.lengths()[numbers]))

    def places_of(self, others: "StringArray") -> Numbers:
        """For sorted strings: where each of the others is, or would be inserted."""
        text, bounds = self.text.tobytes(), self.bounds.tolist()
        return np.array(
            [
                bisect_left(range(len(self)), other, key=lambda at: text[bounds[at] : bounds[at + 1]])
                for other in others.to_bytes()
            ],
            dtype=np.int64,
        )

    def to_bytes(self) -> list[bytes]:
        """All strings encoded, which sort as the texts do."""
        text = self.text.tobytes()
        return [text[start:end] for start, end in pairwise(self.bounds.tolist())]

    def lengths(self) -> Numbers:
        """In bytes."""
        return np.diff(self.bounds)

    def holding(self, part: str) -> Numbers:
        """The numbers of the strings that contain a text, in order; may repeat a number."""
        wanted = encode(part)
        if not wanted:
            return np.arange(len(self))
        starts = self._find(wanted)
        numbers = np.searchsorted(self.bounds, starts, side="right") - 1
        return numbers[starts + len(wanted) <= self.bounds[numbers + 1]]

    def _find(self, wanted: bytes) -> Numbers:
        """Byte offsets of the text, also across the ends of strings; UTF-8 matches at characters only."""
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


def _add_up(lengths: Sequence[int] | Numbers) -> Numbers:
    """Bounds from lengths."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
