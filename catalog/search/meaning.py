"""The second signal: what a text means, whatever its words. One small interface, so that other encoders can
follow.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from catalog.search import words
from catalog.search.documents import ToolDocument

_DESCRIPTION_CHARS = 400  # what a tool does is said first; the rest is detail that blurs the vector

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors of length one whose dot product says how close their meanings are."""

    @property
    def name(self) -> str:
        """Names the encoder and its version: vectors of another name are not comparable."""

    @property
    def dimensions(self) -> int: ...

    @property
    def coarse_dimensions(self) -> int:
        """How many of the first dimensions are enough to pick candidates: all, unless trained for less."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row a text; a text without a known word is all zeros. Safe to call from several threads."""


def shorten(vectors: Vectors, dimensions: int) -> Vectors:
    """The first dimensions only, of length one again."""
    short = vectors[:, :dimensions]
    lengths = np.sqrt(np.einsum("ij,ij->i", short, short))
    scaled: Vectors = short / np.maximum(lengths, np.float32(1e-9))[:, np.newaxis]
    return scaled


def encode_documents(encoder: Encoder | None, documents: Sequence[ToolDocument]) -> Vectors:
    """One row a document; rows without columns when there is no encoder."""
    if encoder is None or not documents:
        return np.empty((len(documents), encoder.dimensions if encoder else 0), dtype=np.float32)
    return encoder.encode([describe(document) for document in documents])


def describe(document: ToolDocument) -> str:
    """The text that stands for a tool. Its name counts twice: it says in two words what the tool is for."""
    name = _space_out(document.name)
    parameters = " ".join(_space_out(parameter) for parameter, _ in document.parameters)
    texts = (
        _space_out(document.server),
        document.title,
        name,
        name,
        document.description[:_DESCRIPTION_CHARS],
    )
    return " ".join((*texts, parameters, document.keywords, document.hint))


def _space_out(name: str) -> str:
    return " ".join(part.typed for run in words.runs(name) for part in run.parts)
