"""Looks terms up: which tools contain one, its impact on each, and its inverse document frequency."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from catalog.search.arrays import Arrays
from catalog.search.string_array import StringArray

RowNumbers = NDArray[np.int64]  # wider than needed: numpy adds by such numbers twice as fast
Scores = NDArray[np.float32]


class TermPostings(NamedTuple):
    """The tools in row order, the term's impact on each, and its inverse document frequency."""

    rows: RowNumbers
    impacts: Scores
    idf: float


class TermLookup:
    def __init__(self, arrays: Arrays, tools: int) -> None:
        terms = StringArray.stored(arrays, "terms").to_list()
        self.numbers = dict(zip(terms, range(len(terms)), strict=True))
        self._starts: list[int] = arrays["starts"].tolist()
        self._rows: RowNumbers = arrays["rows"]
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
        return TermPostings(
            self._rows[start:end],
            self._impacts[start:end],
            inverse_document_frequency(self._tools, end - start),
        )


def inverse_document_frequency(tools: int, tools_with: int) -> float:
    """BM25's inverse document frequency of a term that `tools_with` of the tools have."""
    return math.log1p((tools - tools_with + 0.5) / (tools_with + 0.5))
