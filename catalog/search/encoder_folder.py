"""What a sentence encoder's folder says of itself, as sentence-transformers writes it.

Pooling is mean where the folder says nothing; prefixes are the prompts `query` and `document`; the longest
text is the model's own, but no longer than tools need.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.domain.encoder_setting import MODEL, find_missing
from catalog.search.errors import UnusableEncoder

MOST_TOKENS = 256
_MODULES, _POOLING, _LENGTH = "modules.json", "config.json", "sentence_bert_config.json"
_PROMPTS = "config_sentence_transformers.json"
_CAN_RUN = frozenset({"Transformer", "Pooling", "Normalize"})
_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
_QUERY_PROMPTS, _TEXT_PROMPTS = ("query",), ("document", "passage")
_SAMPLES, _SAMPLE_BYTES = 64, 1 << 16


@dataclass(frozen=True, slots=True)
class FolderSettings:
    poolings: tuple[str, ...]
    most_tokens: int
    query_prefix: str
    text_prefix: str


def read_settings(folder: Path) -> FolderSettings:
    """Raises `UnusableEncoder` for what cannot be read or run."""
    if missing := find_missing(folder):
        raise UnusableEncoder(f"{folder.name} has no {missing}")
    prompts = _read_object(folder / _PROMPTS).get("prompts")
    return FolderSettings(
        poolings=_read_poolings(folder),
        most_tokens=_read_most_tokens(folder),
        query_prefix=_find_prompt(prompts, _QUERY_PROMPTS),
        text_prefix=_find_prompt(prompts, _TEXT_PROMPTS),
    )


def make_digest(folder: Path, *prefixes: str) -> str:
    """Tells encoders apart: samples of the model's files, and the small files whole. Raises `UnusableEncoder`
    for what cannot be read. Links that lead nowhere are left out.
    """
    digest = hashlib.sha256(json.dumps(prefixes).encode())
    try:
        for path in _list_files(folder, f"{MODEL}*"):
            _add_samples(digest, path)
        for path in _list_files(folder, "*.json", f"*/{_POOLING}"):
            digest.update(path.read_bytes())
    except OSError as error:
        raise UnusableEncoder(f"{folder.name} cannot be read: {error.strerror}") from error
    return digest.hexdigest()[:12]


def _list_files(folder: Path, *patterns: str) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})


def _add_samples(digest: "hashlib._Hash", path: Path) -> None:
    size = path.stat().st_size
    digest.update(str(size).encode())
    with path.open("rb") as file:
        for sample in range(_SAMPLES):
            file.seek(sample * size // _SAMPLES)
            digest.update(file.read(_SAMPLE_BYTES))


def _read_poolings(folder: Path) -> tuple[str, ...]:
    modules = _read_modules(folder)
    for kind, _ in modules:
        if kind not in _CAN_RUN:
            raise UnusableEncoder(f"{folder.name}: cannot run the module {kind} of {_MODULES}")
    place = next((path for kind, path in modules if kind == "Pooling"), "1_Pooling")
    config = _read_object(folder / place / _POOLING)
    named = config.get("pooling_mode")
    if isinstance(named, str):
        asked = [named]
    elif isinstance(named, list):
        asked = [str(one) for one in named]
    else:
        asked = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    found = tuple(_POOLINGS.get(key, key) for key in asked)
    for way in found:
        if way not in _POOLINGS.values():
            raise UnusableEncoder(f"{folder.name}: cannot pool by {way[:60]}")
    return found or ("mean",)


def _read_modules(folder: Path) -> list[tuple[str, str]]:
    """The kinds of the modules and their folders, in order."""
    listed = _read_json(folder / _MODULES, [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise UnusableEncoder(f"{folder.name}/{_MODULES} cannot be read")
    return [(str(each.get("type", "")).rpartition(".")[2], str(each.get("path", ""))) for each in listed]


def _read_most_tokens(folder: Path) -> int:
    said = [
        _read_object(folder / _LENGTH).get("max_seq_length"),
        _read_object(folder / "config.json").get("max_position_embeddings"),
    ]
    return min([MOST_TOKENS, *(tokens for tokens in said if isinstance(tokens, int) and tokens > 2)])


def _find_prompt(prompts: Any, names: tuple[str, ...]) -> str:
    if not isinstance(prompts, dict):
        return ""
    return next((prompts[name] for name in names if isinstance(prompts.get(name), str)), "")


def _read_object(path: Path) -> Mapping[str, Any]:
    found = _read_json(path, {})
    if not isinstance(found, dict):
        raise UnusableEncoder(f"{path.parent.name}/{path.name} cannot be read")
    return found


def _read_json(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError, RecursionError) as error:
        raise UnusableEncoder(f"{path.parent.name}/{path.name} cannot be read") from error
