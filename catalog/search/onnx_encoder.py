"""Sentence encoders in ONNX form, run by `onnxruntime`: a folder with `model.onnx` and `tokenizer.json`.

How texts become vectors is read from the folder (`encoder_folder.py`). Vectors are normalised whatever that
says, since their dot products are compared.
"""

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from catalog.domain.encoder_setting import MODEL, TOKENIZER
from catalog.search import encoder_folder, scripts
from catalog.search.encoder_folder import FolderSettings
from catalog.search.errors import UnusableEncoder
from catalog.search.meaning import QueryMeaning, Vectors, write_storable
from catalog.search.scripts import Vocabulary

_BATCH = 32
_REMEMBERED_QUERIES = 1 << 10
_A_ROW_EACH = 2
# Outputs by name, in the order in which they are preferred; else the first that has the right shape.
_SENTENCE_OUTPUTS = ("sentence_embedding", "sentence_embeddings", "text_embeds")
_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings", "hidden_states")

logger = logging.getLogger(__name__)

Pool = Callable[[Vectors, Any], Vectors]


class OnnxEncoder:
    """An `Encoder`. The model is opened when it is first run: its name is known before."""

    is_sentence_encoder = True
    coarse_dimensions = 0

    def __init__(
        self, folder: Path, *, query_prefix: str | None = None, text_prefix: str | None = None
    ) -> None:
        """A prefix that is None is the folder's own. Raises `UnusableEncoder`."""
        self._folder = folder
        self._settings = encoder_folder.read_settings(folder)
        self._query_prefix = self._settings.query_prefix if query_prefix is None else query_prefix
        self._text_prefix = self._settings.text_prefix if text_prefix is None else text_prefix
        digest = encoder_folder.make_digest(folder, self._query_prefix, self._text_prefix)
        self.name = f"onnx:{folder.name[:100]}:{digest}"
        self.problem = ""
        self._lock = Lock()
        self._model: _Model | None = None
        self._encode_query = lru_cache(maxsize=_REMEMBERED_QUERIES)(self._encode_new_query)

    @property
    def dimensions(self) -> int:
        return int(self.open().run(["a"]).shape[1])

    def open(self) -> "_Model":
        """Load the model, once. Raises `UnusableEncoder`, and the same again at the next call."""
        with self._lock:
            if self.problem:
                raise UnusableEncoder(self.problem)
            try:
                self._model = self._model or _Model(self._folder, self._settings)
            except UnusableEncoder as error:
                self.problem = str(error)
                raise
            return self._model

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Texts of like length are run together, so that little is computed for padding. Raises
        `UnusableEncoder`.
        """
        ordered = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        parts = [
            self.open().run([self._text_prefix + texts[row] for row in ordered[at : at + _BATCH]])
            for at in range(0, len(ordered), _BATCH)
        ]
        if not parts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        vectors = np.concatenate(parts)
        vectors[ordered] = vectors.copy()
        return vectors

    def encode_query(self, text: str) -> QueryMeaning | None:
        try:
            return self._encode_query(text)
        except UnusableEncoder as error:
            logger.info("a query is searched by its words alone: %s", error)
            return None

    def _encode_new_query(self, text: str) -> QueryMeaning:
        model = self.open()
        known = scripts.measure_known(text, model.knows)
        return QueryMeaning(model.run([self._query_prefix + text])[0], known)


class _Model:
    """A model and its tokenizer, opened. Thread-safe."""

    def __init__(self, folder: Path, settings: FolderSettings) -> None:
        self._name = folder.name
        self._session = _open_session(folder)
        self._tokenizer = _open_tokenizer(folder, settings.most_tokens)
        self._vocabulary = Vocabulary(self._tokenizer)
        self._poolings = settings.poolings
        self._inputs = {each.name for each in self._session.get_inputs()}
        if unknown := self._inputs - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}:
            raise UnusableEncoder(f"{self._name}/{MODEL} wants {min(unknown)}, which texts do not have")
        self._output, self._is_pooled = _choose_output(self._session, self._name)

    def run(self, texts: Sequence[str]) -> Vectors:
        """Raises `UnusableEncoder`."""
        try:
            vectors = self._run([write_storable(text) for text in texts])
        except Exception as error:  # those of tokenizer and model have no common class but this
            raise UnusableEncoder(f"{self._name}/{MODEL} cannot be run") from error
        if vectors.ndim != _A_ROW_EACH or vectors.shape[0] != len(texts) or not np.isfinite(vectors).all():
            raise UnusableEncoder(f"{self._name}/{MODEL} gave no vector for a text")
        unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return unit

    def knows(self, word: str) -> bool:
        """Raises `UnusableEncoder`."""
        try:
            return self._vocabulary.knows(word)
        except Exception as error:  # a tokenizer without a piece for unknown words has no other class
            raise UnusableEncoder(f"{self._name}/{TOKENIZER} cannot take a word to pieces") from error

    def _run(self, texts: Sequence[str]) -> Vectors:
        found = self._tokenizer.encode_batch(texts)
        mask = np.array([each.attention_mask for each in found], dtype=np.int64)
        given = {
            "input_ids": np.array([each.ids for each in found], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([each.type_ids for each in found], dtype=np.int64),
            "position_ids": np.maximum(np.cumsum(mask, axis=1) - 1, 0),
        }
        output = self._session.run([self._output], {name: given[name] for name in self._inputs})[0]
        pooled = output if self._is_pooled else pool(output, mask, self._poolings)
        return np.asarray(pooled, dtype=np.float32)


def pool(tokens: Vectors, mask: Any, poolings: Sequence[str]) -> Vectors:
    """One vector for each text from those of its tokens; several ways are put side by side."""
    seen = mask[:, :, np.newaxis].astype(np.float32)
    first = np.argmax(mask, axis=1)  # some tokenizers pad on the left
    last = mask.shape[1] - 1 - np.argmax(mask[:, ::-1], axis=1)
    rows = np.arange(len(tokens))
    count = np.maximum(seen.sum(axis=1), 1e-9)
    ways: dict[str, Callable[[], Vectors]] = {
        "cls": lambda: tokens[rows, first],
        "mean": lambda: (tokens * seen).sum(axis=1) / count,
        "mean_sqrt_len_tokens": lambda: (tokens * seen).sum(axis=1) / np.sqrt(count),
        "max": lambda: np.where(seen > 0, tokens, np.float32(-1e9)).max(axis=1),
        "lasttoken": lambda: tokens[rows, last],
    }
    return np.concatenate([ways[pooling]() for pooling in poolings], axis=1)


def _choose_output(session: Any, folder_name: str) -> tuple[str, bool]:
    """The output to read, and whether it has one vector for a text already."""
    shapes = {each.name: len(each.shape) for each in session.get_outputs()}
    preferred = [
        *((name, 2) for name in _SENTENCE_OUTPUTS),
        *((name, 3) for name in _TOKEN_OUTPUTS),
        *((name, 3) for name in shapes),
        *((name, 2) for name in shapes),
    ]
    for name, dimensions in preferred:
        if shapes.get(name) == dimensions:
            return name, dimensions == 2
    raise UnusableEncoder(f"{folder_name}/{MODEL} has no output of vectors")


def _open_session(folder: Path) -> Any:
    try:
        import onnxruntime  # noqa: PLC0415 - comes with the extra `encoder` only
    except ImportError as error:
        raise UnusableEncoder("onnxruntime is not installed: the extra `encoder` brings it") from error
    options = onnxruntime.SessionOptions()
    # One thread: a process answers several queries at once, and the machine has other work.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            str(folder / MODEL), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its errors have no common class but this
        raise UnusableEncoder(f"{folder.name}/{MODEL} cannot be opened") from error


def _open_tokenizer(folder: Path, most_tokens: int) -> Any:
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - comes with the optional packages only
    except ImportError as error:
        raise UnusableEncoder("tokenizers is not installed: the extra `encoder` brings it") from error
    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # its errors have no common class but this
        raise UnusableEncoder(f"{folder.name}/{TOKENIZER} cannot be read") from error
    padding = tokenizer.padding or {}
    tokenizer.enable_truncation(most_tokens)
    tokenizer.enable_padding(
        direction=padding.get("direction", "right"),
        pad_id=padding.get("pad_id", 0),
        pad_type_id=padding.get("pad_type_id", 0),
        pad_token=padding.get("pad_token", "[PAD]"),
    )
    return tokenizer
