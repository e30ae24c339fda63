"""Sentence encoders in ONNX form, run by `onnxruntime`: a folder with `model.onnx` and `tokenizer.json`.

How token vectors become one vector is read from the folder's own configuration, as sentence-transformers
writes it; without one it is their mean. Vectors are normalised whatever the configuration says, since their
dot products are compared.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from catalog.search import scripts
from catalog.search.meaning import QueryMeaning, Vectors
from catalog.search.scripts import Vocabulary

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
_CONFIGS = ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json")
_MOST_TOKENS = 256
_BATCH = 32
_REMEMBERED_QUERIES = 1 << 10
_SAMPLES, _SAMPLE_BYTES = 64, 1 << 16
_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}


class UnusableEncoder(Exception):
    """A folder that holds no encoder that can be run. The message says why."""


class OnnxEncoder:
    """An `Encoder`."""

    is_sentence_encoder = True
    coarse_dimensions = 64

    def __init__(self, folder: Path, *, query_prefix: str = "", text_prefix: str = "") -> None:
        """Raises `UnusableEncoder`."""
        self._session, self._tokenizer = _open_model(folder), _open_tokenizer(folder)
        self._pooling = _read_pooling(folder)
        self._vocabulary = Vocabulary(self._tokenizer)
        self._query_prefix, self._text_prefix = query_prefix, text_prefix
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._encode_query = lru_cache(maxsize=_REMEMBERED_QUERIES)(self._encode_new_query)
        self.name = f"onnx:{folder.name}:{_make_digest(folder, query_prefix, text_prefix)}"
        self.dimensions = int(self._run(["a"]).shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Texts of like length are run together, so that little is computed for padding."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        ordered = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        for at in range(0, len(ordered), _BATCH):
            rows = ordered[at : at + _BATCH]
            vectors[rows] = self._run([self._text_prefix + texts[row] for row in rows])
        return vectors

    def encode_query(self, text: str) -> QueryMeaning:
        return self._encode_query(text)

    def _encode_new_query(self, text: str) -> QueryMeaning:
        known = scripts.measure_known(text, self._vocabulary.knows)
        return QueryMeaning(self._run([self._query_prefix + text])[0], known)

    def _run(self, texts: Sequence[str]) -> Vectors:
        found = self._tokenizer.encode_batch(list(texts))
        mask = np.array([each.attention_mask for each in found], dtype=np.int64)
        given = {
            "input_ids": np.array([each.ids for each in found], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([each.type_ids for each in found], dtype=np.int64),
        }
        output = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        pooled = output if output.ndim == 2 else _pool(output, mask, self._pooling)
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        unit: Vectors = (pooled / np.maximum(lengths, 1e-9)).astype(np.float32)
        return unit


def _pool(tokens: Vectors, mask: Any, poolings: Sequence[str]) -> Vectors:
    """One vector for each text from those of its tokens; several ways are put side by side."""
    seen = mask[:, :, np.newaxis].astype(np.float32)
    last = mask.shape[1] - 1 - np.argmax(mask[:, ::-1], axis=1)
    ways = {
        "cls": lambda: tokens[:, 0],
        "mean": lambda: (tokens * seen).sum(axis=1) / np.maximum(seen.sum(axis=1), 1e-9),
        "max": lambda: np.where(seen > 0, tokens, -np.inf).max(axis=1),
        "lasttoken": lambda: tokens[np.arange(len(tokens)), last],
    }
    return np.concatenate([ways[pooling]() for pooling in poolings], axis=1)


def _read_pooling(folder: Path) -> tuple[str, ...]:
    modules = [
        str(each.get("type", "")).rpartition(".")[2] for each in _read_json(folder / "modules.json", [])
    ]
    unknown = [name for name in modules if name not in {"Transformer", "Pooling", "Normalize"}]
    if unknown:
        raise UnusableEncoder(f"{folder.name}: cannot run the module {unknown[0]} of modules.json")
    config: Mapping[str, Any] = _read_json(folder / "1_Pooling" / "config.json", {})
    named = config.get("pooling_mode")
    asked = (
        [named]
        if isinstance(named, str)
        else [key for key in config if config[key] is True and key.startswith("pooling_mode_")]
    )
    found = tuple(_POOLINGS.get(key, key) for key in asked) or ("mean",)
    unfit = [way for way in found if way not in _POOLINGS.values()]
    if unfit:
        raise UnusableEncoder(f"{folder.name}: cannot pool by {unfit[0]}")
    return found


def _open_model(folder: Path) -> Any:
    try:
        import onnxruntime  # noqa: PLC0415 - comes with the extra `encoder` only
    except ImportError as error:
        raise UnusableEncoder("onnxruntime is not installed: the extra `encoder` brings it") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(folder / MODEL), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its errors have no common class but this
        raise UnusableEncoder(f"{folder.name}/{MODEL} cannot be opened") from error


def _open_tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415 - comes with the optional packages only

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:
        raise UnusableEncoder(f"{folder.name}/{TOKENIZER} cannot be read") from error
    config: Mapping[str, Any] = _read_json(folder / "sentence_bert_config.json", {})
    tokens = config.get("max_seq_length")
    tokenizer.enable_truncation(min(tokens, _MOST_TOKENS) if isinstance(tokens, int) else _MOST_TOKENS)
    pad = (tokenizer.padding or {}).get("pad_id", 0)
    tokenizer.enable_padding(pad_id=pad)
    return tokenizer


def _read_json(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise UnusableEncoder(f"{path.name} cannot be read") from error


def _make_digest(folder: Path, *settings: str) -> str:
    """Tells weights apart: samples of the model's file, and the small files whole."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    size = (folder / MODEL).stat().st_size
    with (folder / MODEL).open("rb") as file:
        for sample in range(_SAMPLES):
            file.seek(sample * size // _SAMPLES)
            digest.update(file.read(_SAMPLE_BYTES))
    for name in (TOKENIZER, *_CONFIGS):
        path = folder / name
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()[:12]
