"""Static word vectors as an encoder: the weights in the `wordllama` wheel, read from its files.

The package's own loader may download; this does not. A text's vector is the sum of its words' vectors: the
weights were trained for that, so frequent words have short vectors and count little.
"""

import json
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from catalog.domain.limits import REMEMBERED_WORDS
from catalog.search import scripts, words
from catalog.search.meaning import Encoder, QueryMeaning, Vectors, shorten

_PACKAGE = "wordllama"
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_TENSOR = "embedding.weight"
_SCRIPTS = frozenset({"LATIN"})
_REMEMBERED_VECTORS = 1 << 12  # a kilobyte each


class WordVectors:
    """An `Encoder`. The weights are memory-mapped, so processes share them."""

    name = "wordllama-l2-supercat-256"
    coarse_dimensions = 64  # the weights were trained to be cut there
    is_sentence_encoder = False

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415 - comes with the optional package only

        self._weights = _map_tensor(folder / _WEIGHTS, _TENSOR)
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._pieces_of = lru_cache(maxsize=REMEMBERED_WORDS)(self._find_pieces)
        self._vector_of = lru_cache(maxsize=_REMEMBERED_VECTORS)(self._add_pieces)

    @property
    def dimensions(self) -> int:
        return int(self._weights.shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._add_pieces(*(word.typed.lower() for word in words.split_words(text)))
        return shorten(vectors, self.dimensions)

    def encode_query(self, text: str) -> QueryMeaning:
        """The words of queries come again, so they are remembered; those of tools would drive them out."""
        total = self._add_words(*(word.typed.lower() for word in words.split_words(text)))
        known = scripts.measure_known(text, self._is_known)
        return QueryMeaning(shorten(total[np.newaxis], self.dimensions)[0], known)

    def _is_known(self, word: str) -> bool:
        """It was taught hardly anything but English."""
        if not scripts.is_written_in(word, _SCRIPTS):
            return False
        pieces = self._pieces_of(word.lower()) if words.is_remembered(word) else self._find_pieces(word)
        return scripts.is_whole(word, len(pieces))

    def _add_words(self, *found: str) -> NDArray[np.float32]:
        total = np.zeros(self.dimensions, dtype=np.float32)
        for word in found:
            total += self._vector_of(word) if words.is_remembered(word) else self._add_pieces(word)
        return total

    def _add_pieces(self, *found: str) -> NDArray[np.float32]:
        pieces = list(
            chain.from_iterable(
                self._pieces_of(word) if words.is_remembered(word) else self._find_pieces(word)
                for word in found
            )
        )
        total: NDArray[np.float32] = self._weights[pieces].sum(axis=0, dtype=np.float32)
        return total

    def _find_pieces(self, word: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(word, add_special_tokens=False).ids)


@cache
def find_encoder() -> Encoder | None:
    """The installed encoder, opened once; None where the optional package is missing."""
    found = find_spec(_PACKAGE)
    if found is None or found.origin is None or find_spec("tokenizers") is None:
        return None
    folder = Path(found.origin).parent
    if not (folder / _WEIGHTS).exists() or not (folder / _TOKENIZER).exists():
        return None
    return WordVectors(folder)


def find_beside(encoder: Encoder | None) -> Encoder | None:
    """The word vectors that count beside a sentence encoder, where they are installed."""
    return find_encoder() if encoder is not None and encoder.is_sentence_encoder else None


def _map_tensor(path: Path, name: str) -> NDArray[np.float16]:
    """A tensor of a safetensors file: eight bytes of header length, a JSON header, then the data."""
    with path.open("rb") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        tensor = json.loads(file.read(header_bytes))[name]
    if tensor["dtype"] != "F16":
        raise ValueError(f"{path.name}: want 16-bit floats, not {tensor['dtype']}")
    offset = 8 + header_bytes + tensor["data_offsets"][0]
    return np.asarray(
        np.memmap(path, dtype=np.float16, mode="r", offset=offset, shape=tuple(tensor["shape"]))
    )
