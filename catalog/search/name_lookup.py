"""Looks tools up by name, ignoring case, in a memory-mapped hash table."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from catalog.search.arrays import Arrays
from catalog.search.string_array import StringArray, encode

_SLOTS_PER_NAME = 4

Hashes = NDArray[np.int64]


def hash_names(names: Sequence[str], qualified_names: Sequence[str]) -> Hashes:
    """One row per tool."""
    pairs = zip(names, qualified_names, strict=True)
    hashes = [[_hash(name.lower()), _hash(qualified.lower())] for name, qualified in pairs]
    return np.array(hashes, dtype=np.int64).reshape(len(names), 2)


def store_names(hashes: Hashes) -> Arrays:
    """The arrays that `Namesakes` reads. A slot holds the rows, in order, whose name has its hash."""
    size = len(hashes)
    slots = 1 << (2 * size * _SLOTS_PER_NAME).bit_length()
    rows = np.repeat(np.arange(size), 2)
    pairs = np.unique(hashes.reshape(-1) % slots * max(size, 1) + rows)
    found, rows = np.divmod(pairs, max(size, 1))
    starts = np.searchsorted(found, np.arange(slots + 1))
    return {
        "name_hashes": hashes,
        "name_starts": starts.astype(np.int32),
        "name_rows": rows.astype(np.int32),
    }


class NameLookup:
    def __init__(self, arrays: Arrays, names: StringArray, qualified_names: StringArray) -> None:
        self._starts = arrays["name_starts"].data  # gives single numbers sooner than an array does
        self._slots = len(self._starts) - 1
        self._rows: NDArray[np.int32] = arrays["name_rows"]
        self._columns = (names, qualified_names)
        self._longest = max(int(column.lengths().max(initial=0)) for column in self._columns)

    def find(self, name: str) -> tuple[int, ...]:
        """The tools with a bare or qualified name, in row order; in other case where none is written so."""
        if len(name) > self._longest:  # as most queries are
            return ()
        folded = name.lower()
        slot = _hash(folded) % self._slots
        start, end = self._starts[slot], self._starts[slot + 1]
        if start == end:
            return ()
        rows = self._rows[start:end].tolist()
        named = {row: [column[row] for column in self._columns] for row in rows}
        exact = tuple(row for row, written in named.items() if name in written)
        return exact or tuple(row for row, written in named.items() if folded in map(str.lower, written))


def _hash(text: str) -> int:
    return zlib.crc32(encode(text))
