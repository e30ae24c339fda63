"""Vectors that were computed before and are kept elsewhere, found by a digest of the text."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from catalog.search.meaning import QueryMeaning, Vectors

DIGEST_BYTES = 16
# Half the room of 32 bits: a similarity then differs by less than 0.001, and ranks hardly ever do.
_STORED = np.dtype("<f2")

Digests = NDArray[np.uint8]
ReadVectors = Callable[[Sequence[str]], Mapping[str, bytes]]


def digest_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


def pack_vectors(vectors: Vectors) -> list[bytes]:
    return [row.tobytes() for row in vectors.astype(_STORED)]


class StoredVectors:
    """An `Encoder` to compile with: a tool without a vector yet has zeros."""

    is_sentence_encoder = True
    coarse_dimensions = 0

    def __init__(self, name: str, dimensions: int, read: ReadVectors, *, edition: int = 0) -> None:
        """`read` gives what there is of some digests. `dimensions` is 0 where there is nothing yet. Vectors
        of different editions are not comparable, although the name is the same.
        """
        self.name, self.dimensions, self.edition = name, dimensions, edition
        self._read = read

    def encode(self, texts: Sequence[str]) -> Vectors:
        return self.find([digest_text(text) for text in texts])

    def encode_query(self, text: str) -> QueryMeaning | None:
        return None

    def find(self, digests: Sequence[str]) -> Vectors:
        """Rows of other dimensions than the encoder's are left out, as if they were not there."""
        vectors = np.zeros((len(digests), self.dimensions), dtype=np.float32)
        if not self.dimensions or not digests:
            return vectors
        found = self._read(digests)
        for row, digest in enumerate(digests):
            stored = found.get(digest, b"")
            if len(stored) == self.dimensions * _STORED.itemsize:
                vectors[row] = np.frombuffer(stored, dtype=_STORED)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
        return unit


def to_digests(texts: Sequence[str]) -> Digests:
    """One row of bytes for each text."""
    joined = b"".join(bytes.fromhex(digest_text(text)) for text in texts)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(texts), DIGEST_BYTES)


def to_hex(digests: Digests) -> list[str]:
    return [row.tobytes().hex() for row in digests]
