"""Tools ready to be compiled: their postings, their texts, their vectors, and where the store keeps each."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.search import postings, substrings
from catalog.search.documents import ToolDocument
from catalog.search.meaning import Encoder, encode_documents
from catalog.search.postings import Postings

TEXT_COLUMNS = ("qualified_name", "name", "server", "description")
COLUMNS = (*TEXT_COLUMNS, "parameter_names")


@dataclass(frozen=True, slots=True)
class Corpus:
    """All sequences have one entry a tool. `segments` names the store's parts, `segment` and `place` point
    into them. `split` is what substrings are found in.
    """

    ids: NDArray[np.int64]
    segments: tuple[str, ...]
    segment: NDArray[np.int64]
    place: NDArray[np.int64]
    columns: dict[str, list[Any]]
    vectors: NDArray[np.float32]
    postings: Postings
    split: Postings

    def __len__(self) -> int:
        return len(self.ids)


def make_corpus(
    documents: Sequence[ToolDocument],
    found: Postings,
    encoder: Encoder | None,
    *,
    segment: str = "",
    places: Sequence[int] | None = None,
) -> Corpus:
    """Documents of one part of the store, or of none."""
    size = len(documents)
    return Corpus(
        ids=np.array([document.id for document in documents], dtype=np.int64),
        segments=(segment,),
        segment=np.zeros(size, dtype=np.int64),
        place=np.array(range(size) if places is None else places, dtype=np.int64),
        columns={column: [_column_value(document, column) for document in documents] for column in COLUMNS},
        vectors=encode_documents(encoder, documents),
        postings=found,
        split=substrings.split_documents(documents),
    )


def join(parts: Sequence[Corpus]) -> Corpus:
    """One corpus of several, its tools in the order of their qualified names."""
    segments = tuple(name for part in parts for name in part.segments)
    first_segments = np.cumsum([0, *(len(part.segments) for part in parts)])
    first_tools = np.cumsum([0, *(len(part) for part in parts)])
    columns = {column: [value for part in parts for value in part.columns[column]] for column in COLUMNS}
    joined = Corpus(
        ids=np.concatenate([part.ids for part in parts]),
        segments=segments,
        segment=np.concatenate([part.segment + at for part, at in zip(parts, first_segments, strict=False)]),
        place=np.concatenate([part.place for part in parts]),
        columns=columns,
        vectors=np.concatenate([part.vectors for part in parts]),
        postings=_merge([part.postings for part in parts], first_tools),
        split=_merge([part.split for part in parts], first_tools),
    )
    order = sorted(range(len(joined)), key=lambda at: (columns["qualified_name"][at], int(joined.ids[at])))
    return take(joined, order)


def take(corpus: Corpus, rows: Sequence[int]) -> Corpus:
    """These tools in this order."""
    chosen = np.array(rows, dtype=np.int64)
    places = np.full(len(corpus), -1, dtype=np.int64)
    places[chosen] = np.arange(len(chosen))
    return dataclasses.replace(
        corpus,
        ids=corpus.ids[chosen],
        segment=corpus.segment[chosen],
        place=corpus.place[chosen],
        columns={column: [values[row] for row in rows] for column, values in corpus.columns.items()},
        vectors=corpus.vectors[chosen],
        postings=postings.renumber(corpus.postings, places),
        split=postings.renumber(corpus.split, places),
    )


def _merge(parts: Sequence[Postings], first_tools: NDArray[np.int64]) -> Postings:
    shifted = [
        postings.renumber(part, np.arange(first, end, dtype=np.int64))
        for part, (first, end) in zip(parts, pairwise(first_tools.tolist()), strict=True)
    ]
    return postings.merge(shifted)


def _column_value(document: ToolDocument, column: str) -> Any:
    if column == "parameter_names":
        return [name for name, _ in document.parameters]
    return getattr(document, column)
