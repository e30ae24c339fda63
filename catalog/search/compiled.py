"""Scoring made ready: BM25F impacts of every term in every tool, computed once and mapped by every process.

A search adds up slices of two arrays. The postings they were computed from stay beside them: an update starts from
those, `+word` reads them, and an explanation splits an impact into fields again.
"""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from catalog.search import postings
from catalog.search.arrays import Arrays
from catalog.search.corpus import COLUMNS, Corpus, join, make_corpus
from catalog.search.documents import ToolDocument
from catalog.search.errors import IndexDamaged
from catalog.search.fields import FIELDS, QUALIFIED_NAME
from catalog.search.meaning import Encoder
from catalog.search.postings import Packed, Postings
from catalog.search.request import Visible

FORMAT = 1
K1 = 0.9

Rows = NDArray[np.int32]
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]


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
    def folded_names(self) -> list[str]:
        return [name.lower() for name in self.names]

    @cached_property
    def folded_descriptions(self) -> list[str]:
        return [description.lower() for description in self.descriptions]

    @cached_property
    def folded_parameters(self) -> list[str]:
        """A tool's parameter names, a line each: a term without a line break is in one of them or in none."""
        return ["\n".join(names).lower() for names in self.parameter_names]

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

    def rarity(self, tools_with: int) -> float:
        """BM25's idf of a term that so many tools have."""
        return math.log1p((len(self) - tools_with + 0.5) / (tools_with + 0.5))

    def rows_named_with(self, term: str) -> Rows:
        """The tools whose qualified name, server included, holds a term."""
        number = self.term_numbers.get(term)
        if number is None:
            return np.empty(0, dtype=np.int32)
        packed = self._packed_between(number, 0, number + 1, 0)
        named = packed[postings.field_numbers(packed) == QUALIFIED_NAME]
        return postings.document_numbers(named).astype(np.int32)

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


def compile_documents(documents: Sequence[ToolDocument], encoder: Encoder | None) -> Compiled:
    """Compile without a store: for evaluation, for tests, and to answer while an index is being rebuilt."""
    return compile_corpus(join([make_corpus(documents, postings.analyze_documents(documents), encoder)]), encoder)


def compile_corpus(corpus: Corpus, encoder: Encoder | None) -> Compiled:
    norms = _length_norms(corpus)
    starts, rows, impacts = _compute_impacts(corpus.postings, norms)
    arrays: Arrays = {
        "ids": corpus.ids,
        "segment": corpus.segment,
        "place": corpus.place,
        "packed": corpus.postings.packed,
        "norms": norms,
        "starts": starts,
        "rows": rows,
        "impacts": impacts,
        "vectors": corpus.vectors,
        "terms": _dump(list(corpus.postings.terms)),
        **{column: _dump(values) for column, values in corpus.columns.items()},
    }
    encoder_name = encoder.name if encoder else ""
    return Compiled(arrays, {"format": FORMAT, "segments": list(corpus.segments), "encoder": encoder_name})


def _length_norms(corpus: Corpus) -> NDArray[np.float32]:
    """What one occurrence counts, by tool and field: the field's weight, diluted by the text's length."""
    packed = corpus.postings.packed
    cells = postings.document_numbers(packed) * len(FIELDS) + postings.field_numbers(packed)
    sums = np.bincount(cells, weights=postings.counts(packed), minlength=len(corpus) * len(FIELDS))
    lengths = sums.reshape(len(corpus), len(FIELDS))
    means = np.maximum(lengths.sum(axis=0) / max(len(corpus), 1), 1e-9)
    shares = np.array([field.length_share for field in FIELDS])
    weights = np.array([field.weight for field in FIELDS])
    norms: NDArray[np.float32] = (weights / (1 - shares + shares * lengths / means)).astype(np.float32)
    return norms


def _compute_impacts(found: Postings, norms: NDArray[np.float32]) -> tuple[NDArray[np.int64], Rows, Scores]:
    """BM25F: weigh the counts of all fields together, then let them saturate once."""
    ranked = found.packed[postings.field_numbers(found.packed) != QUALIFIED_NAME]
    rows, fields = postings.document_numbers(ranked), postings.field_numbers(ranked)
    weights = postings.counts(ranked) * norms[rows, fields]
    pairs = ranked >> postings.DOCUMENT_SHIFT  # term and tool together
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    if not len(firsts):
        return np.zeros(len(found.terms) + 1, dtype=np.int64), rows.astype(np.int32), weights.astype(np.float32)
    weight = np.add.reduceat(weights, firsts)
    terms = postings.term_numbers(ranked[firsts])
    tools_with = np.bincount(terms, minlength=len(found.terms))
    rarity = np.log1p((len(norms) - tools_with + 0.5) / (tools_with + 0.5))
    impacts = rarity[terms] * weight * (K1 + 1) / (K1 + weight)
    starts = np.concatenate([[0], np.cumsum(tools_with)]).astype(np.int64)
    return starts, rows[firsts].astype(np.int32), impacts.astype(np.float32)


def _dump(values: list[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(values, separators=(",", ":")).encode(), dtype=np.uint8)
