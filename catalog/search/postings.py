"""Which term stands how often in which field of which document: one sorted array of whole numbers.

A posting is packed into 63 bits: term (20), document (20), field (4), count (16). Sorting the numbers
groups them by term, then document, so that every question about a term is a slice.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catalog.search import words
from catalog.search.documents import ToolDocument
from catalog.search.fields import field_texts

COUNT_BITS, FIELD_BITS, DOCUMENT_BITS = 16, 4, 20
FIELD_SHIFT = COUNT_BITS
DOCUMENT_SHIFT = FIELD_SHIFT + FIELD_BITS
TERM_SHIFT = DOCUMENT_SHIFT + DOCUMENT_BITS
MAX_DOCUMENTS = 1 << DOCUMENT_BITS
MAX_COUNT = (1 << COUNT_BITS) - 1

Packed = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Postings:
    """`packed` refers to documents by their place in a list the owner keeps, to terms by their place in
    `terms`.
    """

    terms: tuple[str, ...]
    packed: Packed


class PostingList:
    """Collects postings whose terms are strings."""

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._packed: list[int] = []

    def add(self, term: str, document: int, field: int, count: int) -> None:
        number = self._terms.setdefault(term, len(self._terms))
        self._packed.append(pack(number, document, field, min(count, MAX_COUNT)))

    def finish(self) -> Postings:
        return Postings(tuple(self._terms), np.sort(np.array(self._packed, dtype=np.int64)))


def pack(term: int, document: int, field: int, count: int) -> int:
    return term << TERM_SHIFT | document << DOCUMENT_SHIFT | field << FIELD_SHIFT | count


def term_numbers(packed: Packed) -> NDArray[np.int64]:
    return packed >> TERM_SHIFT


def document_numbers(packed: Packed) -> NDArray[np.int64]:
    return packed >> DOCUMENT_SHIFT & (MAX_DOCUMENTS - 1)


def field_numbers(packed: Packed) -> NDArray[np.int64]:
    return packed >> FIELD_SHIFT & ((1 << FIELD_BITS) - 1)


def counts(packed: Packed) -> NDArray[np.int64]:
    return packed & MAX_COUNT


def analyze_documents(documents: Iterable[ToolDocument]) -> Postings:
    """The postings of documents that are in no index."""
    found = PostingList()
    for number, document in enumerate(documents):
        for field, text in enumerate(field_texts(document)):
            for term, count in Counter(words.document_terms(text)).items():
                found.add(term, number, field, count)
    return found.finish()


def renumber(postings: Postings, places: NDArray[np.int64]) -> Postings:
    """Move each document to its new place; those whose place is negative go."""
    moved = places[document_numbers(postings.packed)]
    rest = postings.packed[moved >= 0]
    low_bits = (1 << DOCUMENT_SHIFT) - 1
    packed = term_numbers(rest) << TERM_SHIFT | moved[moved >= 0] << DOCUMENT_SHIFT | rest & low_bits
    return Postings(postings.terms, np.sort(packed))


def merge(parts: Sequence[Postings]) -> Postings:
    """Join postings that speak of the same list of documents; terms nobody has any more are dropped."""
    numbers: dict[str, int] = {}
    packed: list[Packed] = []
    for part in parts:
        new_numbers = np.array(
            [numbers.setdefault(term, len(numbers)) for term in part.terms], dtype=np.int64
        )
        rest = part.packed & ((1 << TERM_SHIFT) - 1)
        packed.append(new_numbers[term_numbers(part.packed)] << TERM_SHIFT | rest)
    return _drop_unused(tuple(numbers), np.concatenate(packed) if packed else np.empty(0, dtype=np.int64))


def _drop_unused(terms: tuple[str, ...], packed: Packed) -> Postings:
    numbers = term_numbers(packed)
    used = np.bincount(numbers, minlength=len(terms)) > 0
    new_numbers = np.cumsum(used) - 1
    packed = new_numbers[numbers] << TERM_SHIFT | packed & ((1 << TERM_SHIFT) - 1)
    kept = tuple(term for term, is_used in zip(terms, used.tolist(), strict=True) if is_used)
    return Postings(kept, np.sort(packed))
