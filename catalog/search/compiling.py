"""Computes BM25F impacts from postings, once per generation."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from catalog.search import name_lookup, postings, substring_lookup
from catalog.search.arrays import Arrays
from catalog.search.coarse import COARSE_WORDS, find_basis
from catalog.search.compiled import COMPILED_FORMAT, K1, Compiled
from catalog.search.corpus import Corpus, join_corpora, make_corpus
from catalog.search.documents import ToolDocument
from catalog.search.fields import FIELDS, QUALIFIED_NAME
from catalog.search.meaning import Encoder, Vectors, shorten
from catalog.search.postings import Postings
from catalog.search.stored_vectors import StoredVectors
from catalog.search.term_lookup import RowNumbers, Scores


def compile_documents(documents: Sequence[ToolDocument], encoder: Encoder | None) -> Compiled:
    """Compile without a store: for evaluation, for tests, and while the index is rebuilt."""
    return compile_corpus(
        join_corpora([make_corpus(documents, postings.analyze_documents(documents), encoder)]), encoder
    )


def compile_corpus(corpus: Corpus, encoder: Encoder | None, former: Compiled | None = None) -> Compiled:
    """`former` is what the corpus was made from, if anything: a basis of its vectors is kept for a while."""
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
        "text_digests": corpus.text_digests,
        "word_vectors": corpus.word_vectors,
        "coarse_word_vectors": shorten(corpus.word_vectors, COARSE_WORDS),
        **corpus.postings.terms.to_arrays("terms"),
        **name_lookup.store_names(corpus.name_hashes),
        **substring_lookup.store_substrings(corpus.split, len(corpus)),
    }
    for column, strings in corpus.columns.items():
        arrays |= strings.to_arrays(column)
    notes = {"format": COMPILED_FORMAT, "segments": list(corpus.segments)}
    return add_vectors(Compiled(arrays, notes), corpus.vectors, encoder, former)


def add_vectors(
    compiled: Compiled, vectors: Vectors, encoder: Encoder | None, former: Compiled | None
) -> Compiled:
    """The same tools with these vectors, and those by which candidates are picked."""
    arrays: Arrays = {**compiled.arrays, "vectors": vectors}
    notes = {**compiled.notes, "encoder": encoder.name if encoder else ""}
    basis, notes["basis_rows"] = _choose_basis(vectors, encoder, former)
    arrays["basis"] = basis
    if encoder is not None and encoder.coarse_dimensions:
        arrays["coarse_vectors"] = shorten(vectors, encoder.coarse_dimensions)
    else:
        arrays["coarse_vectors"] = vectors @ basis
    has_none = np.count_nonzero(~vectors.any(axis=1)) if isinstance(encoder, StoredVectors) else 0
    notes["without_vector"] = int(has_none)
    notes["edition"] = edition_of(encoder)
    return Compiled(arrays, notes)


def edition_of(encoder: Encoder | None) -> int:
    return encoder.edition if isinstance(encoder, StoredVectors) else 0


def _choose_basis(vectors: Vectors, encoder: Encoder | None, former: Compiled | None) -> tuple[Vectors, int]:
    """The former basis until there are twice as many vectors as it was made from; and how many those were."""
    if encoder is None or encoder.coarse_dimensions:
        return np.empty((vectors.shape[1], 0), dtype=np.float32), 0
    rows = int(np.count_nonzero(vectors.any(axis=1)))
    if former is not None and former.notes["encoder"] == encoder.name:
        basis, made_from = former.arrays["basis"], former.notes["basis_rows"]
        if basis.shape[0] == vectors.shape[1] and made_from > 0 and rows <= 2 * made_from:
            return basis, made_from
    return find_basis(vectors), rows


def _length_norms(corpus: Corpus) -> NDArray[np.float32]:
    """The weight of one occurrence, by tool and field: the field's weight, normalised by the
    text's length.
    """
    packed = corpus.postings.packed
    cells = postings.document_numbers(packed) * len(FIELDS) + postings.field_numbers(packed)
    sums = np.bincount(cells, weights=postings.counts_in(packed), minlength=len(corpus) * len(FIELDS))
    lengths = sums.reshape(len(corpus), len(FIELDS))
    means = np.maximum(lengths.sum(axis=0) / max(len(corpus), 1), 1e-9)
    shares = np.array([field.length_share for field in FIELDS])
    weights = np.array([field.weight for field in FIELDS])
    norms: NDArray[np.float32] = (weights / (1 - shares + shares * lengths / means)).astype(np.float32)
    return norms


def _compute_impacts(
    found: Postings, norms: NDArray[np.float32]
) -> tuple[NDArray[np.int64], RowNumbers, Scores]:
    """BM25F: weigh the counts of all fields together, then saturate once."""
    ranked = found.packed[postings.field_numbers(found.packed) != QUALIFIED_NAME]
    rows, fields = postings.document_numbers(ranked), postings.field_numbers(ranked)
    weights = postings.counts_in(ranked) * norms[rows, fields]
    pairs = ranked >> postings.DOCUMENT_SHIFT  # term and tool together
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    if not len(firsts):
        return np.zeros(len(found.terms) + 1, dtype=np.int64), rows, weights.astype(np.float32)
    weight = np.add.reduceat(weights, firsts)
    terms = postings.term_numbers(ranked[firsts])
    tools_with = np.bincount(terms, minlength=len(found.terms))
    idf = np.log1p((len(norms) - tools_with + 0.5) / (tools_with + 0.5))
    impacts = idf[terms] * weight * (K1 + 1) / (K1 + weight)
    starts = np.concatenate([[0], np.cumsum(tools_with)]).astype(np.int64)
    return starts, rows[firsts], impacts.astype(np.float32)
