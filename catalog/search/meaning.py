"""The second signal: what a text means, whatever its words. One small interface; static word vectors are the first of it."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from catalog.search.documents import ToolDocument

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors of length one whose dot product says how close their meanings are."""

    @property
    def name(self) -> str:
        """Names the encoder and its version: vectors of another name are not comparable."""

    @property
    def dimensions(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> Vectors: ...


def encode_documents(encoder: Encoder | None, documents: Sequence[ToolDocument]) -> Vectors:
    """One row a document; rows without columns when there is no encoder."""
    if encoder is None or not documents:
        return np.empty((len(documents), encoder.dimensions if encoder else 0), dtype=np.float32)
    return encoder.encode([describe(document) for document in documents])


def describe(document: ToolDocument) -> str:
    """The text that stands for a tool: what it is called and what it says it does."""
    return f"{document.server} {document.title} {document.name} {document.description} {document.keywords}"
