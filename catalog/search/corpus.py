"""Tools ready for compiling: postings, texts, vectors, and their places in the store.

Everything is arrays, so that an update of a few tools copies the others without reading them.
"""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catalog.search import name_lookup, postings, substring_lookup
from catalog.search.documents import ToolDocument
from catalog.search.meaning import Encoder, encode_documents, text_to_encode
from catalog.search.name_lookup import Hashes
from catalog.search.postings import Postings
from catalog.search.stored_vectors import DIGEST_BYTES, Digests, StoredVectors, to_digests
from catalog.search.string_array import StringArray
from catalog.search.wordvectors import find_beside

OWN_TEXTS = ("qualified_name", "name", "server", "description")
COLUMNS = (*OWN_TEXTS, "parameter_names", *substring_lookup.FOLDED_TEXTS)

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Corpus:
    """All sequences have one entry per tool. `segments` names the store's segments, `segment` and `place`
    point into them. `split` is what substrings are found in. `text_digests` say which vectors are theirs,
    where those are kept elsewhere; zeros otherwise. `word_vectors` are those beside a sentence encoder's;
    without columns otherwise.
    """

    ids: Numbers
    segments: tuple[str, ...]
    segment: Numbers
    place: Numbers
    columns: dict[str, StringArray]
    name_hashes: Hashes
    vectors: NDArray[np.float32]
    word_vectors: NDArray[np.float32]
    text_digests: Digests
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
    """A corpus of documents in one segment of the store, or in none."""
    size = len(documents)
    texts = [_column_texts(document) for document in documents]
    return Corpus(
        ids=np.array([document.id for document in documents], dtype=np.int64),
        segments=(segment,),
        segment=np.zeros(size, dtype=np.int64),
        place=np.array(range(size) if places is None else places, dtype=np.int64),
        columns={column: StringArray.of(each[column] for each in texts) for column in COLUMNS},
        name_hashes=name_lookup.hash_names(
            [document.name for document in documents], [document.qualified_name for document in documents]
        ),
        vectors=encode_documents(encoder, documents),
        word_vectors=encode_documents(find_beside(encoder), documents),
        text_digests=_digest_texts(encoder, documents),
        postings=found,
        split=substring_lookup.split_documents(documents),
    )


def join_corpora(parts: Sequence[Corpus], gone: Iterable[int] = ()) -> Corpus:
    """One corpus of several, in order of qualified names, without the tools in `gone`, given by position."""
    first_segments = np.cumsum([0, *(len(part.segments) for part in parts)])
    first_tools = np.cumsum([0, *(len(part) for part in parts)])
    joined = Corpus(
        ids=np.concatenate([part.ids for part in parts]),
        segments=tuple(name for part in parts for name in part.segments),
        segment=np.concatenate([part.segment + at for part, at in zip(parts, first_segments, strict=False)]),
        place=np.concatenate([part.place for part in parts]),
        columns={column: StringArray.join([part.columns[column] for part in parts]) for column in COLUMNS},
        name_hashes=np.concatenate([part.name_hashes for part in parts]),
        vectors=np.concatenate([part.vectors for part in parts]),
        word_vectors=np.concatenate([part.word_vectors for part in parts]),
        text_digests=np.concatenate([part.text_digests for part in parts]),
        postings=_merge([part.postings for part in parts], first_tools.tolist()),
        split=_merge([part.split for part in parts], first_tools.tolist()),
    )
    return _take(joined, _order_by_name(joined, set(gone)))


def _order_by_name(corpus: Corpus, gone: set[int]) -> Numbers:
    keys = list(zip(corpus.columns["qualified_name"].to_bytes(), corpus.ids.tolist(), strict=True))
    kept = (row for row in range(len(corpus)) if row not in gone)
    return np.array(sorted(kept, key=keys.__getitem__), dtype=np.int64)


def _take(corpus: Corpus, rows: Numbers) -> Corpus:
    """These tools in this order, with their segments."""
    places = np.full(len(corpus), -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    used, segment = np.unique(corpus.segment[rows], return_inverse=True)
    return dataclasses.replace(
        corpus,
        ids=corpus.ids[rows],
        segments=tuple(corpus.segments[at] for at in used),
        segment=segment,
        place=corpus.place[rows],
        columns={column: strings.take(rows) for column, strings in corpus.columns.items()},
        name_hashes=corpus.name_hashes[rows],
        vectors=corpus.vectors[rows],
        word_vectors=corpus.word_vectors[rows],
        text_digests=corpus.text_digests[rows],
        postings=postings.renumber(corpus.postings, places),
        split=postings.renumber(corpus.split, places),
    )


def _digest_texts(encoder: Encoder | None, documents: Sequence[ToolDocument]) -> Digests:
    if not isinstance(encoder, StoredVectors):
        return np.zeros((len(documents), DIGEST_BYTES), dtype=np.uint8)
    return to_digests([text_to_encode(document) for document in documents])


def _merge(parts: Sequence[Postings], first_tools: Sequence[int]) -> Postings:
    return postings.merge(
        [postings.shift(part, first) for part, first in zip(parts, first_tools, strict=False)]
    )


def _column_texts(document: ToolDocument) -> dict[str, str]:
    own = {column: getattr(document, column) for column in OWN_TEXTS}
    parameters = json.dumps([name for name, _ in document.parameters])
    return {**own, "parameter_names": parameters, **substring_lookup.fold_texts(document)}
