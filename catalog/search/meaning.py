"""Search by meaning: an interface for encoders that turn texts into vectors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from catalog.search import words
from catalog.search.documents import ToolDocument

_DESCRIPTION_CHARS = 400  # what a tool does is said first; the rest is detail that blurs the vector

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class QueryMeaning:
    """A query's unit vector. `known` is the share of the query that the encoder knows, from 0 to 1."""

    vector: NDArray[np.float32]
    known: float


class Encoder(Protocol):
    """Turns texts into unit vectors whose dot product is their similarity."""

    @property
    def name(self) -> str:
        """Encoder and version: vectors of another name are not comparable."""

    @property
    def dimensions(self) -> int: ...

    @property
    def coarse_dimensions(self) -> int:
        """How many of the first dimensions suffice to pick candidates; 0 where they must not be cut."""

    @property
    def is_sentence_encoder(self) -> bool:
        """Whether a likeness of meaning alone may match; with word vectors it may not."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row per text of a tool; zeros for a text without a known word. Thread-safe."""

    def encode_query(self, text: str) -> QueryMeaning | None:
        """None where the encoder cannot answer at the moment; the query is then searched by its words.
        Thread-safe.
        """


def shorten(vectors: Vectors, dimensions: int) -> Vectors:
    """The first dimensions only, normalised again."""
    short = vectors[:, :dimensions]
    if len(short) == 1:  # a query
        query: Vectors = short / max(math.sqrt(short[0] @ short[0]), 1e-9)
        return query
    lengths = np.sqrt(np.einsum("ij,ij->i", short, short))
    scaled: Vectors = short / np.maximum(lengths, np.float32(1e-9))[:, np.newaxis]
    return scaled


def encode_documents(encoder: Encoder | None, documents: Sequence[ToolDocument]) -> Vectors:
    """One row per document; rows without columns when there is no encoder."""
    if encoder is None or not documents:
        return np.empty((len(documents), encoder.dimensions if encoder else 0), dtype=np.float32)
    return encoder.encode([text_to_encode(document) for document in documents])


def text_to_encode(document: ToolDocument) -> str:
    """The text that is encoded for a tool. Its name counts twice, because it best says what the
    tool is for.
    """
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


def write_storable(text: str) -> str:
    """Half characters, which a query may have and UTF-8 has not, become question marks."""
    return text.encode(errors="replace").decode()


def _space_out(name: str) -> str:
    return " ".join(part.typed for word in words.split_words(name) for part in word.parts)
