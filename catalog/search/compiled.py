"""Scoring made ready: BM25F impacts of every term in every tool, computed once and mapped by every process.

A search adds up slices of two arrays. The postings they were computed from stay beside them: an update
starts from those, `+word` reads them, and an explanation splits an impact into fields again.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from catalog.search import postings
from catalog.search.arrays import Arrays
from catalog.search.corpus import COLUMNS, Corpus
from catalog.search.errors import IndexDamaged
from catalog.search.fields import FIELDS, QUALIFIED_NAME
from catalog.search.postings import Packed, Postings
from catalog.search.request import Visible
from catalog.search.substrings import Texts

FORMAT = 1
K1 = 0.9  # how soon a repeated word stops counting

_REMEMBERED_TERMS = 256

Rows = NDArray[np.int64]  # wider than needed: numpy adds by such numbers twice as fast
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TermPlaces:
    """The tools whose own name is a text, and those that contain it in name, description or a parameter."""

    is_name: Mask
    in_name: Mask
    in_description: Mask
    in_parameters: Mask


@dataclass(frozen=True)
class Compiled:
    """A catalog to search in. Row numbers are places in the order of qualified names."""

    arrays: Arrays
    notes: dict[str, Any]

    def __post_init__(self) -> None:
        if self.notes.get("format") != FORMAT:
            raise IndexDamaged(f"the index has format {self.notes.get('format')}, not {FORMAT}")

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        return self.arrays["ids"]

    @cached_property
    def rows_by_id(self) -> dict[int, int]:
        return {tool: row for row, tool in enumerate(self.ids.tolist())}

    @cached_property
    def term_numbers(self) -> dict[str, int]:
        return {term: number for number, term in enumerate(self._column("terms"))}

    @cached_property
    def _starts(self) -> list[int]:
        starts: list[int] = self.arrays["starts"].tolist()
        return starts

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        return self.arrays["vectors"]

    @cached_property
    def coarse_vectors(self) -> NDArray[np.float32]:
        return self.arrays["coarse_vectors"]

    @cached_property
    def qualified_names(self) -> list[str]:
        return self._column("qualified_name")

    @cached_property
    def names(self) -> list[str]:
        return self._column("name")

    @cached_property
    def servers(self) -> list[str]:
        return self._column("server")

    @cached_property
    def descriptions(self) -> list[str]:
        return self._column("description")

    @cached_property
    def parameter_names(self) -> list[list[str]]:
        return self._column("parameter_names")

    @cached_property
    def _folded_names(self) -> Texts:
        return Texts([name.lower() for name in self.names])

    @cached_property
    def _folded_descriptions(self) -> Texts:
        return Texts([description.lower() for description in self.descriptions])

    @cached_property
    def _folded_parameters(self) -> Texts:
        """A tool's parameter names, a line each: a term without a line break is in one of them or in none."""
        return Texts(["\n".join(names).lower() for names in self.parameter_names])

    @cached_property
    def contains(self) -> Callable[[str], TermPlaces]:
        """Where a text in lower case stands inside names and texts; remembered, as common words recur."""
        return lru_cache(maxsize=_REMEMBERED_TERMS)(self._find_inside)

    def _find_inside(self, term: str) -> TermPlaces:
        return TermPlaces(
            is_name=self._folded_names.equal_to(term),
            in_name=self._folded_names.containing(term),
            in_description=self._folded_descriptions.containing(term),
            in_parameters=self._folded_parameters.containing(term),
        )

    @cached_property
    def rows_by_name(self) -> dict[str, tuple[int, ...]]:
        """The tools of a bare or qualified name, in row order."""
        found: dict[str, list[int]] = defaultdict(list)
        for row, names in enumerate(zip(self.names, self.qualified_names, strict=True)):
            for name in dict.fromkeys(names):
                found[name].append(row)
        return {name: tuple(rows) for name, rows in found.items()}

    @cached_property
    def rows_by_folded_name(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for name, rows in self.rows_by_name.items():
            found[name.lower()] = (*found.get(name.lower(), ()), *rows)
        return found

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
    def _masks(self) -> WeakKeyDictionary[Visible, Mask]:
        return WeakKeyDictionary()

    def mask_of(self, visible: Visible) -> Mask:
        """Which rows are among the visible tools; computed once for as long as `visible` lives."""
        mask = self._masks.get(visible)
        if mask is None:
            mask = np.isin(self.ids, visible.ids)
            self._masks[visible] = mask
        return mask

    def postings_of(self, term: str) -> tuple[Rows, Scores] | None:
        """The tools that hold a term, in row order, and what it gives each; None when no tool does."""
        number = self.term_numbers.get(term)
        if number is None:
            return None
        span = slice(self._starts[number], self._starts[number + 1])
        if span.start == span.stop:
            return None
        return self.arrays["rows"][span], self.arrays["impacts"][span]

    def tools_with(self, term: str) -> int:
        number = self.term_numbers.get(term)
        return 0 if number is None else self._starts[number + 1] - self._starts[number]

    def rarity(self, tools_with: int) -> float:
        """BM25's idf of a term that so many tools have."""
        return math.log1p((len(self) - tools_with + 0.5) / (tools_with + 0.5))

    def rows_named_with(self, term: str) -> Rows:
        """The tools whose qualified name, server included, holds a term."""
        number = self.term_numbers.get(term)
        if number is None:
            return np.empty(0, dtype=np.int64)
        packed = self._packed_between(number, 0, number + 1, 0)
        named = packed[postings.field_numbers(packed) == QUALIFIED_NAME]
        return postings.document_numbers(named)

    def field_shares(self, term: str, row: int) -> dict[str, float]:
        """How an impact divides among the fields, in parts of one."""
        number = self.term_numbers[term]
        packed = self._packed_between(number, row, number, row + 1)
        fields = postings.field_numbers(packed)
        weights = postings.counts(packed) * self.arrays["norms"][row, fields]
        total = float(weights.sum())
        pairs = zip(fields.tolist(), weights.tolist(), strict=True)
        return {FIELDS[field].name: weight / total for field, weight in pairs if weight > 0}

    def to_corpus(self) -> Corpus:
        """What an update starts from."""
        return Corpus(
            ids=self.ids,
            segments=tuple(self.notes["segments"]),
            segment=self.arrays["segment"],
            place=self.arrays["place"],
            columns={column: self._column(column) for column in COLUMNS},
            vectors=self.vectors,
            postings=Postings(tuple(self._column("terms")), self.arrays["packed"]),
        )

    def _packed_between(self, term: int, row: int, end_term: int, end_row: int) -> Packed:
        packed: Packed = self.arrays["packed"]
        bounds = [postings.pack(term, row, 0, 0), postings.pack(end_term, end_row, 0, 0)]
        first, last = np.searchsorted(packed, bounds)
        return packed[first:last]

    def _column(self, name: str) -> list[Any]:
        values: list[Any] = json.loads(self.arrays[name].tobytes())
        return values
