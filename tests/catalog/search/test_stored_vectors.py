"""Vectors that are kept elsewhere, the short ones made of them, and when a search goes by them."""

from pathlib import Path

import numpy as np
import pytest

from catalog.domain.query import parse_query
from catalog.search import generations, index
from catalog.search.coarse import DIMENSIONS, find_basis
from catalog.search.compiling import compile_documents
from catalog.search.documents import ToolDocument
from catalog.search.engine import SearchEngine
from catalog.search.errors import IndexDamaged
from catalog.search.meaning import QueryMeaning, Vectors, text_to_encode
from catalog.search.request import SearchRequest
from catalog.search.stored_vectors import StoredVectors, digest_text, pack_vectors
from tests.catalog.search.samples import make_tool

WIDE = 200


class Kept:
    """Random vectors of some documents, as a database keeps them; also the encoder of queries."""

    name = "kept-1"
    dimensions = WIDE
    coarse_dimensions = 0
    is_sentence_encoder = True

    def __init__(self) -> None:
        self._random = np.random.default_rng(5)
        self._directions = self._random.standard_normal((30, WIDE))
        self.vectors: dict[str, bytes] = {}

    def add(self, documents: list[ToolDocument]) -> None:
        for document in documents:
            packed = pack_vectors(self._make()[np.newaxis])[0]
            self.vectors.setdefault(digest_text(text_to_encode(document)), packed)

    def _make(self) -> Vectors:
        made = self._random.standard_normal(30) @ self._directions
        unit: Vectors = (made / np.linalg.norm(made)).astype(np.float32)
        return unit

    def stored(self, dimensions: int = WIDE) -> StoredVectors:
        return StoredVectors(
            self.name,
            dimensions,
            lambda digests: {one: self.vectors[one] for one in digests if one in self.vectors},
        )

    def encode(self, texts: list[str]) -> Vectors:
        return self.stored().encode(texts)

    def encode_query(self, text: str) -> QueryMeaning | None:
        return QueryMeaning(self._make(), known=1.0)


def make_documents(count: int, first: int = 1) -> list[ToolDocument]:
    return [make_tool(number, "s", f"tool_{number}", "Does it.") for number in range(first, first + count)]


def test_vectors_lose_little_in_16_bits() -> None:
    kept, documents = Kept(), make_documents(50)
    kept.add(documents)
    found = kept.encode([text_to_encode(document) for document in documents])
    exact = np.stack([kept._make() for _ in range(50)])
    again = np.stack([np.frombuffer(one, dtype="<f2") for one in pack_vectors(exact)]).astype(np.float32)
    assert np.abs(exact @ exact.T - again @ again.T).max() < 0.001
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("stored", [b"", b"short", b"\0" * 4 * WIDE])
def test_what_does_not_fit_counts_as_missing(stored: bytes) -> None:
    vectors = StoredVectors("x", WIDE, lambda digests: dict.fromkeys(digests, stored))
    assert not vectors.encode(["a"]).any()


class TestBasis:
    def test_is_orthonormal_and_the_same_each_time(self) -> None:
        vectors = np.random.default_rng(1).standard_normal((500, WIDE)).astype(np.float32)
        basis = find_basis(vectors)
        assert basis.shape == (WIDE, DIMENSIONS)
        np.testing.assert_allclose(basis.T @ basis, np.eye(DIMENSIONS), atol=1e-4)
        np.testing.assert_array_equal(basis, find_basis(vectors))

    def test_keeps_what_few_directions_hold(self) -> None:
        kept, documents = Kept(), make_documents(400)
        kept.add(documents)
        compiled = compile_documents(documents, kept.stored())
        query = kept._make()
        short = compiled.coarse_vectors @ compiled.shorten_query(query)
        np.testing.assert_allclose(short, compiled.vectors @ query, atol=0.01)

    def test_of_nothing_and_of_few_dimensions(self) -> None:
        assert find_basis(np.zeros((3, WIDE), dtype=np.float32)).shape == (WIDE, 0)
        np.testing.assert_array_equal(find_basis(np.ones((3, 4), dtype=np.float32)), np.eye(4))

    def test_stays_until_the_catalog_has_doubled(self, index_folder: Path) -> None:
        kept, documents = Kept(), make_documents(64)
        kept.add(documents)
        index.build(index_folder, documents[:20], kept.stored())
        first = read(index_folder, "basis").copy()
        index.update(index_folder, documents[20:40], [], kept.stored())
        np.testing.assert_array_equal(read(index_folder, "basis"), first)
        index.update(index_folder, documents[40:], [], kept.stored())
        assert not np.array_equal(read(index_folder, "basis"), first)


def read(folder: Path, name: str) -> Vectors:
    _, compiled = generations.open_current(folder)
    found: Vectors = compiled.arrays[name]
    return found


class TestFilling:
    def test_takes_over_what_was_missing(self, index_folder: Path) -> None:
        kept, documents = Kept(), make_documents(40)
        index.build(index_folder, documents, kept.stored(0))
        assert index.read_index_state(index_folder).without_vector == 40
        kept.add(documents[:30])
        index.fill_vectors(index_folder, kept.stored(), vectors_number=3)
        state = index.read_index_state(index_folder)
        assert (state.without_vector, state.vectors_number) == (10, 3)
        expected = kept.encode([text_to_encode(document) for document in documents])
        found = dict(zip(read(index_folder, "ids").tolist(), read(index_folder, "vectors"), strict=True))
        for document, vector in zip(documents, expected, strict=True):
            np.testing.assert_array_equal(found[document.id], vector)

    def test_update_keeps_those_there_are_and_the_number(self, index_folder: Path) -> None:
        kept, documents = Kept(), make_documents(40)
        kept.add(documents)
        index.build(index_folder, documents, kept.stored(), vectors_number=7)
        index.update(index_folder, make_documents(1, first=99), [3], kept.stored(), version=5)
        state = index.read_index_state(index_folder)
        assert (state.version, state.documents, state.without_vector, state.vectors_number) == (5, 40, 1, 7)

    def test_index_of_another_encoder_is_left_alone(self, index_folder: Path) -> None:
        index.build(index_folder, make_documents(2), None)
        with pytest.raises(IndexDamaged, match="made with the encoder none"):
            index.fill_vectors(index_folder, Kept().stored(), vectors_number=1)

    @pytest.mark.parametrize(("with_vectors", "is_used"), [(0, False), (94, False), (95, True), (100, True)])
    def test_meaning_counts_once_nearly_all_have_a_vector(
        self, index_folder: Path, with_vectors: int, is_used: bool
    ) -> None:
        kept, documents = Kept(), make_documents(100)
        kept.add(documents[:with_vectors])
        index.build(index_folder, documents, kept.stored())
        engine = SearchEngine(index_folder, kept)  # type: ignore[arg-type]
        assert (engine.snapshot().encoder is not None) == is_used
        assert engine.search(SearchRequest(parse_query("tool_7"))).hits

    def test_empty_catalog_is_searched(self, index_folder: Path) -> None:
        kept = Kept()
        index.build(index_folder, [], kept.stored(0))
        assert not SearchEngine(index_folder, kept).search(SearchRequest(parse_query("a"))).hits  # type: ignore[arg-type]
