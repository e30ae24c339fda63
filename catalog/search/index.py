"""The index on disk: Whoosh stores documents and words, and each generation is compiled from it.

The only module that imports Whoosh. It opens a new reader every time, because `refresh()` brings deleted
documents back.
"""

import dataclasses
import json
import pickle
import struct
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from whoosh import fields as whoosh_fields
from whoosh import index as whoosh_index
from whoosh.reading import IndexReader, SegmentReader, TermNotFound
from whoosh.support.levenshtein import distance
from whoosh.writing import SegmentWriter

from catalog.search import generations, words
from catalog.search.compiled import Compiled
from catalog.search.compiling import add_vectors, compile_corpus, edition_of
from catalog.search.corpus import Corpus, join_corpora, make_corpus
from catalog.search.documents import ToolDocument
from catalog.search.errors import IndexDamaged
from catalog.search.fields import FIELD_NAMES, field_texts, spoken_texts
from catalog.search.generations import Generation
from catalog.search.meaning import Encoder
from catalog.search.postings import PostingList
from catalog.search.stored_vectors import StoredVectors, to_hex
from catalog.search.wordvectors import find_beside

_SPELLING = "spelling"
_MAX_EDITS = 2
# Segments of so many tools or more, but fewer than so many, are joined once there are so many of them. The
# last takes seconds, once in some eight hundred edits.
_FOLDED = ((1, 4, 4), (4, 16, 4), (16, 64, 4), (64, 256, 12))
_WRITER_MEMORY_MB = 256
_DAMAGE = (
    whoosh_index.IndexError,
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    AssertionError,
    struct.error,
    pickle.UnpicklingError,
)


@dataclasses.dataclass(frozen=True, slots=True)
class IndexState:
    """The catalog's version that the live generation was made from, its number of tools, and how many of them
    have no vector of the encoder yet. `vectors_number` tells of which moment the vectors are.
    """

    version: int
    documents: int
    encoder: str = ""
    without_vector: int = 0
    vectors_number: int = 0
    edition: int = 0

    def is_of(self, encoder: Encoder | None) -> bool:
        """Whether its vectors are of this encoder, and of the same edition."""
        name = encoder.name if encoder else ""
        return (self.encoder, self.edition) == (name, edition_of(encoder))


def build(
    folder: Path,
    documents: Iterable[ToolDocument],
    encoder: Encoder | None,
    *,
    version: int = 0,
    vectors_number: int = 0,
) -> int:
    """Build everything again beside the live index, then switch. Returns the generation's number.

    `version` is the catalog's, `vectors_number` that of the vectors; both are stored with the generation.
    """
    with generations.writing(folder):
        number = generations.next_number(folder)
        store = generations.store_folder(folder, number)
        store.mkdir(mode=0o700)
        writer = whoosh_index.create_in(str(store), _make_schema()).writer(limitmb=_WRITER_MEMORY_MB)
        for document in documents:
            writer.add_document(**_store_document(document))
        writer.commit(merge=False)
        compiled = _compile_store(store, None, encoder)
        return _publish(folder, Generation(number, number), compiled, version, vectors_number)


def update(
    folder: Path,
    changed: Sequence[ToolDocument],
    removed: Iterable[int],
    encoder: Encoder | None,
    *,
    version: int = 0,
) -> int:
    """Add changed tools and delete removed ones, in time proportional to the change. Returns the generation's
    number.

    Raises `IndexDamaged` when there is no valid index: build it instead.
    """
    with generations.writing(folder):
        current, compiled = generations.open_current(folder)
        store = generations.store_folder(folder, current.store)
        _write_changes(store, changed, removed)
        number = generations.next_number(folder)
        updated = _compile_store(store, compiled, encoder)
        kept = (
            compiled.notes["vectors_number"] if updated.notes["encoder"] == compiled.notes["encoder"] else 0
        )
        return _publish(folder, Generation(number, current.store), updated, version, kept)


def fill_vectors(folder: Path, stored: StoredVectors, *, vectors_number: int) -> int:
    """Take over the vectors of tools that have none, without reading the store. Returns the generation's
    number. Raises `IndexDamaged` when there is no index made with this encoder.
    """
    with generations.writing(folder):
        current, compiled = generations.open_current(folder)
        if not state_of(compiled).is_of(stored):
            raise IndexDamaged(f"the index was made with the encoder {compiled.notes['encoder'] or 'none'}")
        vectors = compiled.vectors
        if vectors.shape[1] != stored.dimensions:
            vectors = np.zeros((len(compiled), stored.dimensions), dtype=np.float32)
        empty = np.flatnonzero(~vectors.any(axis=1))
        filled = vectors.copy()
        filled[empty] = stored.find(to_hex(compiled.text_digests[empty]))
        number = generations.next_number(folder)
        updated = add_vectors(compiled, filled, stored, compiled)
        version = compiled.notes["version"]
        return _publish(folder, Generation(number, current.store), updated, version, vectors_number)


def read_index_state(folder: Path) -> IndexState:
    """Raises `IndexDamaged` when there is no valid generation."""
    _, compiled = generations.open_current(folder)
    return state_of(compiled)


def state_of(compiled: Compiled) -> IndexState:
    notes = compiled.notes
    return IndexState(
        version=notes["version"],
        documents=len(compiled),
        encoder=notes["encoder"],
        without_vector=notes["without_vector"],
        vectors_number=notes["vectors_number"],
        edition=notes["edition"],
    )


class Speller:
    """Whoosh's spelling suggestions over one generation's store, opened on first use."""

    def __init__(self, folder: Path, generation: Generation) -> None:
        self._store = generations.store_folder(folder, generation.store)
        self._lock = Lock()
        self._reader: IndexReader | None = None
        self._words: dict[str, list[str]] = {}

    def suggest(self, word: str, limit: int) -> list[str]:
        """Words of the catalog with the same first letter and at most two edits away, nearest first, then
        most frequent. Raises `IndexDamaged`.
        """
        folded = words.fold_text(word)
        with self._lock:
            try:
                self._reader = self._reader or _open_store(self._store).reader()
                near = self._find_near(self._reader, folded)
                ranked = [(edits, -self._reader.frequency(_SPELLING, other), other) for other, edits in near]
            except _DAMAGE as error:
                raise IndexDamaged(f"{self._store.name} cannot be read: {error}") from error
        return [other for _, _, other in nsmallest(limit, ranked)]

    def _find_near(self, reader: IndexReader, word: str) -> Iterator[tuple[str, int]]:
        """Skips words whose lengths differ too much, because counting edits is slow."""
        letters = set(word)
        for other in self._words_from(reader, word[:1]):
            if abs(len(other) - len(word)) > _MAX_EDITS or len(letters ^ set(other)) > 2 * _MAX_EDITS:
                continue
            edits = distance(other, word, limit=_MAX_EDITS)
            if 0 < edits <= _MAX_EDITS:
                yield other, edits

    def _words_from(self, reader: IndexReader, letter: str) -> list[str]:
        if letter not in self._words:
            self._words[letter] = [term.decode() for term in reader.expand_prefix(_SPELLING, letter)]
        return self._words[letter]


def _publish(
    folder: Path, generation: Generation, compiled: Compiled, version: int, vectors_number: int
) -> int:
    compiled.notes.update(version=version, vectors_number=vectors_number)
    generations.publish(folder, generation, compiled)
    generations.sweep(folder, generation)
    return generation.number


def _make_schema() -> Any:
    bags = {name: whoosh_fields.KEYWORD(scorable=True) for name in (*FIELD_NAMES, _SPELLING)}
    return whoosh_fields.Schema(id=whoosh_fields.ID(unique=True), document=whoosh_fields.STORED, **bags)


def _store_document(document: ToolDocument) -> dict[str, str]:
    """The fields of a Whoosh document, already split into our words: Whoosh splits at spaces only."""
    texts = field_texts(document)
    bags = {name: " ".join(words.document_terms(text)) for name, text in zip(FIELD_NAMES, texts, strict=True)}
    spoken = {word for text in spoken_texts(document) for word in words.plain_words(text)}
    stored = json.dumps(dataclasses.asdict(document))
    return {"id": str(document.id), "document": stored, _SPELLING: " ".join(sorted(spoken)), **bags}


def _load_document(stored: str) -> ToolDocument:
    fields = json.loads(stored)
    for name in ("parameters", "nested"):
        fields[name] = tuple((parameter, text) for parameter, text in fields[name])
    return ToolDocument(**fields)


def _open_store(store: Path) -> Any:
    try:
        return whoosh_index.open_dir(str(store))
    except _DAMAGE as error:
        raise IndexDamaged(f"{store.name} cannot be opened: {error}") from error


def _write_changes(store: Path, changed: Sequence[ToolDocument], removed: Iterable[int]) -> None:
    try:
        writer = _open_store(store).writer(limitmb=_WRITER_MEMORY_MB)
        for tool in {*removed, *(document.id for document in changed)}:
            writer.delete_by_term("id", str(tool))
        for document in changed:
            writer.add_document(**_store_document(document))
        writer.commit(mergetype=_fold_small_segments)
    except _DAMAGE as error:
        raise IndexDamaged(f"{store.name} cannot be changed: {error}") from error


def _fold_small_segments(writer: SegmentWriter, segments: list[Any]) -> list[Any]:
    """Merge segments of similar size, so that a tool is copied only a few times however many edits follow.
    Whoosh's own policy would at some point merge the large segment too, which takes seconds.
    """
    filled = [segment for segment in segments if segment.doc_count()]
    for least, below, enough in _FOLDED:
        alike = [segment for segment in filled if least <= segment.doc_count() < below]
        if len(alike) < enough:
            continue
        for segment in alike:
            reader = SegmentReader(writer.storage, writer.schema, segment)
            writer.add_reader(reader)
            reader.close()
        return [segment for segment in filled if segment not in alike]
    return filled


def _compile_store(store: Path, base: Compiled | None, encoder: Encoder | None) -> Compiled:
    """Compile the store's content; segments already in `base` are reused."""
    usable = base if base and _has_vectors_of(base, encoder) else None
    try:
        reader = _open_store(store).reader()
        try:
            return compile_corpus(_read_store(reader, usable, encoder), encoder, usable)
        finally:
            reader.close()
    except _DAMAGE as error:
        raise IndexDamaged(f"{store.name} cannot be read: {error}") from error


def _has_vectors_of(base: Compiled, encoder: Encoder | None) -> bool:
    """An encoder that cannot be asked says 0 dimensions until its first vectors are there."""
    beside = find_beside(encoder)
    dimensions = (encoder.dimensions if encoder else 0, beside.dimensions if beside else 0)
    found = (base.vectors.shape[1], base.word_vectors.shape[1])
    return state_of(base).is_of(encoder) and found == dimensions


def _read_store(reader: IndexReader, base: Compiled | None, encoder: Encoder | None) -> Corpus:
    leaves = {leaf.segment().segment_id(): leaf for leaf, _ in reader.leaf_readers() if leaf.segment()}
    known = set(base.notes["segments"]) if base else set()
    parts = [_read_leaf(leaf, name, encoder) for name, leaf in leaves.items() if name not in known]
    if base:
        kept = base.to_corpus()
        return join_corpora([kept, *parts], _find_gone(kept, leaves))
    return join_corpora(parts or [make_corpus([], PostingList().finish(), encoder)])


def _find_gone(corpus: Corpus, leaves: dict[str, Any]) -> list[int]:
    """Tools whose segment is no longer in the store, or that were deleted from it."""
    gone: list[int] = []
    for at, name in enumerate(corpus.segments):
        rows, leaf = np.flatnonzero(corpus.segment == at), leaves.get(name)
        if leaf is not None:
            rows = rows[np.isin(corpus.place[rows], list(leaf.segment().deleted_docs()))]
        gone += rows.tolist()
    return gone


def _read_leaf(leaf: IndexReader, name: str, encoder: Encoder | None) -> Corpus:
    places = list(leaf.all_doc_ids())
    documents = [_load_document(leaf.stored_fields(place)["document"]) for place in places]
    rows = {place: row for row, place in enumerate(places)}
    found = PostingList()
    for field, field_name in enumerate(FIELD_NAMES):
        for term in leaf.lexicon(field_name):
            _read_postings(leaf, field, term, rows, found)
    return make_corpus(documents, found.finish(), encoder, segment=name, places=places)


def _read_postings(
    leaf: IndexReader, field: int, term: bytes, rows: dict[int, int], found: PostingList
) -> None:
    try:
        matcher = leaf.postings(FIELD_NAMES[field], term)
    except TermNotFound:
        return
    text = term.decode()
    while matcher.is_active():
        row = rows.get(matcher.id())
        if row is not None:
            found.add(text, row, field, int(matcher.weight()))
        matcher.next()
