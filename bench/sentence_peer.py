"""Our search with a sentence encoder: vectors of tools are kept, and those of queries remembered."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from bench.search_peers import Ours
from catalog.domain.limits import QUERY_CHARS
from catalog.search import index
from catalog.search.documents import ToolDocument
from catalog.search.engine import SearchEngine
from catalog.search.meaning import text_to_encode
from catalog.search.onnx_encoder import OnnxEncoder
from catalog.search.stored_vectors import StoredVectors, digest_text, pack_vectors

NAME = "sentences"
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Encoding:
    """What the encoder itself takes, beside which the search is measured."""

    tools_seconds: float
    query_p50_ms: float
    query_p95_ms: float


class KeptVectors:
    """Every tool and every query encoded once."""

    def __init__(self, folder: Path, documents: Sequence[ToolDocument], queries: Sequence[str]) -> None:
        self.encoder = OnnxEncoder(folder)
        self._vectors: dict[str, bytes] = {}
        self.encoder.open()
        started = perf_counter()
        for at in range(0, len(documents), _AT_ONCE):
            self.add(documents[at : at + _AT_ONCE])
        tools_seconds = perf_counter() - started
        times = [self._time_query(text[:QUERY_CHARS]) for text in queries]
        self.encoding = Encoding(
            tools_seconds, float(np.median(times)) * 1e3, float(np.percentile(times, 95)) * 1e3
        )

    def add(self, documents: Sequence[ToolDocument]) -> None:
        texts = [text_to_encode(document) for document in documents]
        packed = pack_vectors(self.encoder.encode(texts))
        self._vectors.update(zip(map(digest_text, texts), packed, strict=True))

    def read(self, digests: Sequence[str]) -> dict[str, bytes]:
        return {digest: self._vectors[digest] for digest in digests if digest in self._vectors}

    def _time_query(self, text: str) -> float:
        started = perf_counter()
        self.encoder.encode_query(text)
        return perf_counter() - started


class Sentences(Ours):
    """An update is found by its words; its vectors follow, as they do in the product."""

    name = NAME

    def __init__(self, kept: KeptVectors) -> None:
        super().__init__(StoredVectors(kept.encoder.name, kept.encoder.dimensions, kept.read))
        self._kept = kept

    def open(self, folder: Path) -> None:
        self._folder = folder
        self._engine = SearchEngine(folder, self._kept.encoder)

    def update(self, documents: Sequence[ToolDocument], changed: Sequence[ToolDocument]) -> None:
        super().update(documents, changed)
        self._kept.add(changed)
        assert isinstance(self._encoder, StoredVectors)
        index.fill_vectors(self._folder, self._encoder, vectors_number=1)
