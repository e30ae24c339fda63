"""Looks terms up: which tools hold one, what it gives each, and how telling it is."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from catalog.search.arrays import Arrays
from catalog.search.strings import Strings

Rows = NDArray[np.int64]  # wider than needed: numpy adds by such numbers twice as fast
Scores = NDArray[np.float32]


class TermPostings(NamedTuple):
    """The tools in row order, what the term gives each, and BM25's idf of it."""

    rows: Rows
    impacts: Scores
    rarity: float


class Terms:
    def __init__(self, arrays: Arrays, tools: int) -> None:
        terms = Strings.stored(arrays, "terms").to_list()
        self.numbers = dict(zip(terms, range(len(terms)), strict=True))
        self._starts: list[int] = arrays["starts"].tolist()
        self._rows: Rows = arrays["rows"]
        self._impacts: Scores = arrays["impacts"]
        self._tools = tools

    def find(self, term: str) -> TermPostings | None:
        """None when no tool is ranked by the term."""
        number = self.numbers.get(term)
        if number is None:
            return None
        start, end = self._starts[number], self._starts[number + 1]
        if start == end:
            return None
        return TermPostings(self._rows[start:end], self._impacts[start:end], rarity(self._tools, end - start))


def rarity(tools: int, tools_with: int) -> float:
    """BM25's idf of a term that so many of the tools have."""
    return math.log1p((tools - tools_with + 0.5) / (tools_with + 0.5))
