"""A compiled catalog: BM25F impacts of every term in every tool, computed once and mapped by every process.

A search adds up slices of two arrays. The postings they were computed from are stored beside them: an update
starts from those, `+word` reads them, and an explanation splits an impact into fields again.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from catalog.search import postings
from catalog.search.arrays import Arrays, Mask
from catalog.search.coarse import CUT_SLACK, PROJECTED_SLACK
from catalog.search.corpus import COLUMNS, Corpus
from catalog.search.errors import IndexDamaged
from catalog.search.fields import FIELDS, QUALIFIED_NAME
from catalog.search.meaning import shorten
from catalog.search.name_lookup import NameLookup
from catalog.search.postings import Packed, Postings
from catalog.search.request import Visible
from catalog.search.stored_vectors import Digests
from catalog.search.string_array import StringArray
from catalog.search.substring_lookup import SubstringLookup, TermPlaces
from catalog.search.term_lookup import RowNumbers, TermLookup, TermPostings, inverse_document_frequency

COMPILED_FORMAT = 5
K1 = 0.9  # how soon a repeated word stops counting

_REMEMBERED_TERMS = 256
_REMEMBERED_POSTINGS = 4096


@dataclass(frozen=True)
class Compiled:
    """A catalog to search in. Row numbers are positions in the order of qualified names."""

    arrays: Arrays
    notes: dict[str, Any]

    def __post_init__(self) -> None:
        if self.notes.get("format") != COMPILED_FORMAT:
            raise IndexDamaged(f"the index has format {self.notes.get('format')}, not {COMPILED_FORMAT}")

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        return self.arrays["ids"]

    @cached_property
    def _terms(self) -> TermLookup:
        return TermLookup(self.arrays, len(self))

    @cached_property
    def term_numbers(self) -> dict[str, int]:
        return self._terms.numbers

    @cached_property
    def postings_of(self) -> Callable[[str], TermPostings | None]:
        """The tools that contain a term, cached; None when none does."""
        return lru_cache(maxsize=_REMEMBERED_POSTINGS)(self._terms.find)

    @cached_property
    def unknown_idf(self) -> float:
        """The inverse document frequency of a word that no tool has."""
        return inverse_document_frequency(len(self), 0)

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        return self.arrays["vectors"]

    @cached_property
    def word_vectors(self) -> NDArray[np.float32]:
        """Those beside a sentence encoder's; without columns where there are none."""
        return self.arrays["word_vectors"]

    @cached_property
    def coarse_vectors(self) -> NDArray[np.float32]:
        return self.arrays["coarse_vectors"]

    @cached_property
    def coarse_word_vectors(self) -> NDArray[np.float32]:
        return self.arrays["coarse_word_vectors"]

    def shorten_query(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """A query's vector as `coarse_vectors` are."""
        basis = self.arrays["basis"]
        if basis.shape[1]:
            projected: NDArray[np.float32] = vector @ basis
            return projected
        short: NDArray[np.float32] = shorten(vector[np.newaxis], self.coarse_vectors.shape[1])[0]
        return short

    @property
    def coarse_slack(self) -> float:
        """By how much a similarity to `coarse_vectors` may be wrong."""
        return PROJECTED_SLACK if self.arrays["basis"].shape[1] else CUT_SLACK

    @cached_property
    def text_digests(self) -> Digests:
        return self.arrays["text_digests"]

    @cached_property
    def qualified_name_of(self) -> Callable[[int], str]:
        return self._strings("qualified_name").__getitem__

    @cached_property
    def qualified_names(self) -> list[str]:
        return self._strings("qualified_name").to_list()

    @cached_property
    def names(self) -> list[str]:
        return self._strings("name").to_list()

    @cached_property
    def servers(self) -> list[str]:
        return self._strings("server").to_list()

    @cached_property
    def descriptions(self) -> list[str]:
        return self._strings("description").to_list()

    @cached_property
    def parameter_names(self) -> list[list[str]]:
        names: list[list[str]] = json.loads(f"[{','.join(self._strings('parameter_names').to_list())}]")
        return names

    @cached_property
    def _substrings(self) -> SubstringLookup:
        return SubstringLookup(self.arrays)

    @cached_property
    def contains(self) -> Callable[[str], TermPlaces]:
        """Where a lower-case text occurs inside names and texts; cached, because common words recur."""
        return lru_cache(maxsize=_REMEMBERED_TERMS)(self._substrings.find)

    @cached_property
    def rows_named(self) -> Callable[[str], tuple[int, ...]]:
        """The tools with a bare or qualified name, in row order; in other case where none is written so."""
        return NameLookup(self.arrays, self._strings("name"), self._strings("qualified_name")).find

    @cached_property
    def _rows_by_server(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for row, server in enumerate(self.servers):
            found[server].append(row)
        return dict(found)

    def mask_of_server(self, server: str) -> Mask:
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[self._rows_by_server.get(server, [])] = True
        return mask

    @cached_property
    def _masks(self) -> WeakKeyDictionary[Visible, Mask | None]:
        return WeakKeyDictionary()

    def mask_of(self, visible: Visible) -> Mask | None:
        """Which rows are visible, None where all are; cached for as long as `visible` lives."""
        try:
            return self._masks[visible]
        except KeyError:
            mask = np.isin(self.ids, visible.ids)
            self._masks[visible] = found = None if mask.all() else mask
            return found

    def rows_named_with(self, term: str) -> RowNumbers:
        """The tools whose qualified name, server included, contains a term."""
        number = self.term_numbers.get(term)
        if number is None:
            return np.empty(0, dtype=np.int64)
        packed = self._packed_between(number, 0, number + 1, 0)
        named = packed[postings.field_numbers(packed) == QUALIFIED_NAME]
        return postings.document_numbers(named)

    def field_shares(self, term: str, row: int) -> dict[str, float]:
        """How an impact divides among the fields, as fractions."""
        number = self.term_numbers[term]
        packed = self._packed_between(number, row, number, row + 1)
        fields = postings.field_numbers(packed)
        weights = postings.counts_in(packed) * self.arrays["norms"][row, fields]
        total = float(weights.sum())
        pairs = zip(fields.tolist(), weights.tolist(), strict=True)
        return {FIELDS[field].name: weight / total for field, weight in pairs if weight > 0}

    def to_corpus(self) -> Corpus:
        """The corpus that an update starts from."""
        return Corpus(
            ids=self.ids,
            segments=tuple(self.notes["segments"]),
            segment=self.arrays["segment"],
            place=self.arrays["place"],
            columns={column: self._strings(column) for column in COLUMNS},
            name_hashes=self.arrays["name_hashes"],
            vectors=self.vectors,
            word_vectors=self.word_vectors,
            text_digests=self.text_digests,
            postings=Postings(self._strings("terms"), self.arrays["packed"]),
            split=self._substrings.to_postings(),
        )

    def _packed_between(self, term: int, row: int, end_term: int, end_row: int) -> Packed:
        packed: Packed = self.arrays["packed"]
        bounds = [postings.pack(term, row, 0, 0), postings.pack(end_term, end_row, 0, 0)]
        first, last = np.searchsorted(packed, bounds)
        return packed[first:last]

    def _strings(self, name: str) -> StringArray:
        return StringArray.stored(self.arrays, name)
