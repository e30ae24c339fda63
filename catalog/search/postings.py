"""Postings: how often each term occurs in each field of each document, in one sorted integer array.

A posting is packed into 63 bits: term (20), document (20), field (4), count (16). Sorting groups them by
term, then document, so that every question about a term is a slice.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from catalog.search import words
from catalog.search.documents import ToolDocument
from catalog.search.fields import field_texts
from catalog.search.string_array import StringArray

COUNT_BITS, FIELD_BITS, DOCUMENT_BITS = 16, 4, 20
FIELD_SHIFT = COUNT_BITS
DOCUMENT_SHIFT = FIELD_SHIFT + FIELD_BITS
TERM_SHIFT = DOCUMENT_SHIFT + DOCUMENT_BITS
MAX_DOCUMENTS = 1 << DOCUMENT_BITS
MAX_COUNT = (1 << COUNT_BITS) - 1

Packed = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Postings:
    """`packed` refers to documents by position in a list that the owner keeps, and to terms by position in
    `terms`, which are sorted.
    """

    terms: StringArray
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
        terms = StringArray.of(self._terms)
        encoded = terms.to_bytes()
        order = np.array(sorted(range(len(encoded)), key=encoded.__getitem__), dtype=np.int64)
        packed = np.array(self._packed, dtype=np.int64)
        return Postings(terms.take(order), np.sort(_rename(packed, np.argsort(order))))


def pack(term: int, document: int, field: int, count: int) -> int:
    return term << TERM_SHIFT | document << DOCUMENT_SHIFT | field << FIELD_SHIFT | count


def term_numbers(packed: Packed) -> NDArray[np.int64]:
    return packed >> TERM_SHIFT


def document_numbers(packed: Packed) -> NDArray[np.int64]:
    return packed >> DOCUMENT_SHIFT & (MAX_DOCUMENTS - 1)


def field_numbers(packed: Packed) -> NDArray[np.int64]:
    return packed >> FIELD_SHIFT & ((1 << FIELD_BITS) - 1)


def counts_in(packed: Packed) -> NDArray[np.int64]:
    return packed & MAX_COUNT


def analyze_documents(documents: Iterable[ToolDocument]) -> Postings:
    """The postings of documents that are in no index."""
    found = PostingList()
    for number, document in enumerate(documents):
        for field, text in enumerate(field_texts(document)):
            for term, count in Counter(words.document_terms(text)).items():
                found.add(term, number, field, count)
    return found.finish()


def shift(postings: Postings, first: int) -> Postings:
    """Shift document numbers by a number of documents placed before these."""
    return Postings(postings.terms, postings.packed + (first << DOCUMENT_SHIFT))


def renumber(postings: Postings, places: NDArray[np.int64]) -> Postings:
    """Move each document to its new position; a negative one deletes it, and terms without documents are
    dropped.
    """
    moved = places[document_numbers(postings.packed)]
    rest = postings.packed[moved >= 0]
    low_bits = (1 << DOCUMENT_SHIFT) - 1
    packed = term_numbers(rest) << TERM_SHIFT | moved[moved >= 0] << DOCUMENT_SHIFT | rest & low_bits
    return _drop_unused(Postings(postings.terms, _sort(packed)))


def merge(parts: Sequence[Postings]) -> Postings:
    """Merge postings over the same list of documents."""
    return reduce(_merge_two, parts, PostingList().finish())


def _merge_two(left: Postings, right: Postings) -> Postings:
    """Cheap where one side is small, because the other's terms are not read."""
    if not len(left.terms) or not len(right.terms):
        return right if len(right.terms) else left
    places = left.terms.places_of(right.terms)
    is_new = np.array(
        [
            place == len(left.terms) or left.terms[place] != right.terms[number]
            for number, place in enumerate(places.tolist())
        ]
    )
    right_numbers = places + np.cumsum(is_new) - is_new
    left_numbers = np.arange(len(left.terms))
    left_numbers += np.searchsorted(places[is_new], left_numbers, side="right")
    order = np.empty(len(left.terms) + np.count_nonzero(is_new), dtype=np.int64)
    order[left_numbers] = np.arange(len(left.terms))
    order[right_numbers[is_new]] = len(left.terms) + np.flatnonzero(is_new)
    packed = [_rename(left.packed, left_numbers), _rename(right.packed, right_numbers)]
    return Postings(StringArray.join([left.terms, right.terms]).take(order), _sort(np.concatenate(packed)))


def _drop_unused(postings: Postings) -> Postings:
    used = np.bincount(term_numbers(postings.packed), minlength=len(postings.terms)) > 0
    if used.all():
        return postings
    return Postings(postings.terms.take(np.flatnonzero(used)), _rename(postings.packed, np.cumsum(used) - 1))


def _rename(packed: Packed, numbers: NDArray[np.int64]) -> Packed:
    """Renumber the terms."""
    return numbers[term_numbers(packed)] << TERM_SHIFT | packed & ((1 << TERM_SHIFT) - 1)


def _sort(packed: Packed) -> Packed:
    """A single pass where the array is nearly sorted already, as after an update."""
    return np.sort(packed, kind="stable")
