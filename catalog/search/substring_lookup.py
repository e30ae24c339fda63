"""Finds the tools that contain a text inside their name, description or parameter names.

A text without blanks is inside another exactly when it is inside one of its words, and the catalog has few
distinct words: these are searched first, the texts themselves only for a text with blanks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catalog.search import postings
from catalog.search.arrays import Arrays, Mask
from catalog.search.documents import ToolDocument
from catalog.search.postings import PostingList, Postings
from catalog.search.string_array import StringArray, encode

FOLDED_TEXTS = ("folded_name", "folded_description", "folded_parameter_names")
_NAME, _DESCRIPTION, _PARAMETERS = range(len(FOLDED_TEXTS))


@dataclass(frozen=True, slots=True)
class TermPlaces:
    """The tools whose own name is a text, and those that contain it in name, description or a parameter."""

    is_name: Mask
    in_name: Mask
    in_description: Mask
    in_parameters: Mask


def fold_texts(document: ToolDocument) -> dict[str, str]:
    """Parameter names are joined by line breaks, so that a match cannot span two of them."""
    parameters = "\n".join(name for name, _ in document.parameters)
    texts = (document.name, document.description, parameters)
    return {field: text.lower() for field, text in zip(FOLDED_TEXTS, texts, strict=True)}


def split_documents(documents: Iterable[ToolDocument]) -> Postings:
    """Which word, split at blanks, is in which of a tool's texts."""
    found = PostingList()
    for number, document in enumerate(documents):
        for field, text in enumerate(fold_texts(document).values()):
            for word in set(text.split()):
                found.add(word, number, field, 1)
    return found.finish()


def store_substrings(split: Postings, size: int) -> Arrays:
    """The arrays that `Substrings` reads, beside the folded texts."""
    uses = postings.field_numbers(split.packed) * size + postings.document_numbers(split.packed)
    counts = np.bincount(postings.term_numbers(split.packed), minlength=len(split.terms))
    arrays = split.terms.to_arrays("inside_words")
    arrays["inside_starts"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    arrays["inside_uses"] = uses.astype(np.int32)
    return arrays


class SubstringLookup:
    """A use is encoded as field number times number of tools, plus the tool's row."""

    def __init__(self, arrays: Arrays) -> None:
        self._words = StringArray.stored(arrays, "inside_words")
        self._texts = [StringArray.stored(arrays, field) for field in FOLDED_TEXTS]
        self._starts: NDArray[np.int64] = arrays["inside_starts"]
        self._uses: NDArray[np.int32] = arrays["inside_uses"]
        self._size = len(self._texts[_NAME])

    def find(self, text: str) -> TermPlaces:
        """`text` is in lower case."""
        has_blanks = text.split() != [text]
        fits = self._look_through_texts(text) if has_blanks else self._look_through_words(text)
        in_name = fits[_NAME]
        is_name = in_name & (self._texts[_NAME].lengths() == len(encode(text)))
        return TermPlaces(is_name, in_name, fits[_DESCRIPTION], fits[_PARAMETERS])

    def to_postings(self) -> Postings:
        """The input of `store`."""
        words = np.repeat(np.arange(len(self._words)), np.diff(self._starts))
        fields, rows = np.divmod(self._uses.astype(np.int64), max(self._size, 1))
        packed = words << postings.TERM_SHIFT | rows << postings.DOCUMENT_SHIFT
        return Postings(self._words, packed | fields << postings.FIELD_SHIFT | 1)

    def _look_through_texts(self, text: str) -> NDArray[np.bool_]:
        fits = np.zeros((len(FOLDED_TEXTS), self._size), dtype=np.bool_)
        for field, strings in enumerate(self._texts):
            fits[field, strings.holding(text)] = True
        return fits

    def _look_through_words(self, part: str) -> NDArray[np.bool_]:
        fits = np.zeros(len(FOLDED_TEXTS) * self._size, dtype=np.bool_)
        words = self._words.holding(part)
        starts, counts = self._starts[words], self._starts[words + 1] - self._starts[words]
        ends = np.cumsum(counts)
        places = np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts)
        fits[self._uses[places]] = True
        return fits.reshape(len(FOLDED_TEXTS), self._size)
