"""A sentence encoder behind an OpenAI-compatible `/embeddings` call. Who makes the call is given."""

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

import numpy as np

from catalog.domain.embeddings import EndpointFailure, EndpointRefusal
from catalog.search import words
from catalog.search.endpoint_rest import EndpointRest
from catalog.search.errors import UnusableEncoder
from catalog.search.meaning import QueryMeaning, Vectors, write_storable

QUERY_SECONDS = 0.3
TEXTS_SECONDS = 60.0
TEXTS_AT_ONCE = 32
_REMEMBERED_QUERIES = 1 << 10  # some kilobytes each
# Models refuse what is longer than they read; about so much is 500 word pieces.
_MOST_CHARS = 2000
# What is asked for again where a text is refused: of scripts without spaces each character may be a piece.
_FEW_CHARS = 250

logger = logging.getLogger(__name__)

Embed = Callable[[Sequence[str], float], list[list[float]]]


class EndpointEncoder:
    """An `Encoder`. After a query that failed, none is asked for a while, and words search alone."""

    is_sentence_encoder = True
    coarse_dimensions = 0

    def __init__(
        self,
        address: str,
        model: str,
        embed: Embed,
        rest: EndpointRest | None = None,
        *,
        query_prefix: str = "",
        text_prefix: str = "",
    ) -> None:
        self.host = urlsplit(address).hostname or ""
        self.rest = rest or EndpointRest()
        self._embed = embed
        self._query_prefix, self._text_prefix = query_prefix, text_prefix
        digest = hashlib.sha256(json.dumps([address, model, query_prefix, text_prefix]).encode())
        self.name = f"{model[:80]} at {self.host[:80]}:{digest.hexdigest()[:12]}"
        self._encode_query = lru_cache(maxsize=_REMEMBERED_QUERIES)(self._encode_new_query)

    @property
    def problem(self) -> str:
        """What is wrong while it rests; empty otherwise."""
        return self.rest.read().problem if self.rest.is_resting() else ""

    @property
    def dimensions(self) -> int:
        """Raises `UnusableEncoder` while the endpoint does not answer."""
        return int(self.encode(["a"]).shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Zeros for a text that is refused where another is not, so that one tool does not keep the others
        from their vectors. Raises `UnusableEncoder`, also where a batch has other dimensions than the one
        before it.
        """
        parts = [
            self._encode_batch([self._text_prefix + text for text in texts[at : at + TEXTS_AT_ONCE]])
            for at in range(0, len(texts), TEXTS_AT_ONCE)
        ]
        if len({part.shape[1] for part in parts}) > 1:
            raise UnusableEncoder(f"{self.host}: its vectors changed their dimensions")
        return np.concatenate(parts) if parts else np.empty((0, self.dimensions), dtype=np.float32)

    def _encode_batch(self, texts: Sequence[str]) -> Vectors:
        try:
            return self._ask(texts, TEXTS_SECONDS)
        except _Refused as refusal:
            rows = [self._encode_alone(text) for text in texts]
            taken = [row for row in rows if row is not None]
            if not taken:
                raise
            logger.warning("%s of %s texts have no vector: %s", len(rows) - len(taken), len(rows), refusal)
            if len({row.shape for row in taken}) > 1:
                raise UnusableEncoder(f"{self.host}: its vectors changed their dimensions") from refusal
            return np.array([np.zeros_like(taken[0]) if row is None else row for row in rows])

    def _encode_alone(self, text: str) -> Vectors | None:
        """None where it is refused, however short."""
        for chars in (_MOST_CHARS, _FEW_CHARS):
            try:
                vector: Vectors = self._ask([text[:chars]], TEXTS_SECONDS)[0]
            except _Refused:
                continue
            return vector
        return None

    def encode_query(self, text: str, dimensions: int | None = None) -> QueryMeaning | None:
        """A vector with other dimensions than these, where they are given, counts as a failure. It is
        not asked of signs alone.
        """
        if not words.split_words(text):
            return None
        try:
            return self._encode_query(text, dimensions)
        except _Resting:
            return None
        except UnusableEncoder as error:
            self.rest.begin(str(error))
            logger.warning("queries are searched by their words alone for a while: %s", error)
            return None

    def _encode_new_query(self, text: str, dimensions: int | None) -> QueryMeaning:
        """Remembered where it returns."""
        if self.rest.is_resting():
            raise _Resting
        vector = self._ask([self._query_prefix + text], QUERY_SECONDS)[0]
        if dimensions is not None and len(vector) != dimensions:
            raise UnusableEncoder(
                f"{self.host}: its vectors have {len(vector)} dimensions, those of the tools {dimensions}"
            )
        return QueryMeaning(vector, known=1.0)

    def _ask(self, texts: Sequence[str], within_seconds: float) -> Vectors:
        try:
            found = self._embed([write_storable(text[:_MOST_CHARS]) for text in texts], within_seconds)
        except EndpointRefusal as failure:
            raise _Refused(f"{self.host}: {failure}") from failure
        except EndpointFailure as failure:
            raise UnusableEncoder(f"{self.host}: {failure}") from failure
        # What does not fit into 32 bits becomes infinite, and is refused as such.
        with np.errstate(over="ignore"):
            vectors = np.array(found, dtype=np.float64).astype(np.float32)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.min(initial=1) > 0):
            raise UnusableEncoder(f"{self.host}: a vector has no length or is not finite")
        unit: Vectors = vectors / lengths
        return unit


class FittingEncoder:
    """An endpoint's encoder whose queries have the dimensions of an index, or no answer."""

    is_sentence_encoder = True
    coarse_dimensions = 0

    def __init__(self, encoder: EndpointEncoder, dimensions: int) -> None:
        self._encoder = encoder
        self.name, self.dimensions = encoder.name, dimensions

    def encode(self, texts: Sequence[str]) -> Vectors:
        return self._encoder.encode(texts)

    def encode_query(self, text: str) -> QueryMeaning | None:
        return self._encoder.encode_query(text, self.dimensions)


class _Refused(UnusableEncoder):
    """The endpoint does not take these texts."""


class _Resting(Exception):
    """The endpoint is not asked at the moment."""
