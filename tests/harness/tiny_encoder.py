"""Sentence encoders of a few kilobytes, made with the `onnx` package: words of one topic mean the same."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

TOPICS: Mapping[str, Sequence[str]] = {
    "time": ("calendar", "meeting", "schedule", "appointment", "event", "call"),
    "money": ("invoice", "payment", "charge", "bill", "refund"),
    "mail": ("email", "inbox", "letter", "send", "message"),
    "weather": ("weather", "rain", "forecast", "umbrella", "storm"),
    "files": ("file", "folder", "document", "upload", "directory"),
}
PAD, UNKNOWN, FIRST, LAST = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def make_encoder(
    folder: Path,
    *,
    dimensions: int = 16,
    output: str = "last_hidden_state",
    has_types: bool = True,
    has_markers: bool = True,
    seed: int = 7,
    **configs: object,
) -> Path:
    """Write `model.onnx` and `tokenizer.json`, and a configuration for each keyword: `modules`, `pooling`,
    `prompts`, `length`. With the output `sentence_embedding` the model pools by itself.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = [PAD, UNKNOWN, FIRST, LAST, *(word for topic in TOPICS.values() for word in topic)]
    _write_tokenizer(folder, words, has_markers=has_markers)
    model = _make_model(_vectors_of(words, dimensions, seed), output=output, has_types=has_types)
    onnx.save(model, str(folder / "model.onnx"))
    places = {
        "modules": "modules.json",
        "pooling": "1_Pooling/config.json",
        "prompts": "config_sentence_transformers.json",
        "length": "sentence_bert_config.json",
    }
    for name, config in configs.items():
        (folder / places[name]).parent.mkdir(exist_ok=True)
        (folder / places[name]).write_text(json.dumps(config))
    return folder


def _vectors_of(words: Sequence[str], dimensions: int, seed: int) -> Floats:
    """Nothing for markers, little for unknown words."""
    random = np.random.default_rng(seed)
    topics = {word: topic for topic, known in TOPICS.items() for word in known}
    directions = {topic: random.standard_normal(dimensions) for topic in TOPICS}
    rows = [
        directions[topics[word]] + 0.1 * random.standard_normal(dimensions)
        if word in topics
        else (0.01 if word == UNKNOWN else 0.001) * random.standard_normal(dimensions)
        for word in words
    ]
    return np.array(rows, dtype=np.float32)


def _write_tokenizer(folder: Path, words: Sequence[str], *, has_markers: bool) -> None:
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if has_markers:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{FIRST} $A {LAST}",
            special_tokens=[(FIRST, vocabulary[FIRST]), (LAST, vocabulary[LAST])],
        )
    tokenizer.save(str(folder / "tokenizer.json"))


def _make_model(vectors: Floats, *, output: str, has_types: bool) -> onnx.ModelProto:
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if has_types else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
    tokens = "tokens" if output == "sentence_embedding" else output
    nodes = [helper.make_node("Gather", ["vectors", "input_ids"], [tokens])]
    shape: list[str | int] = ["batch", "length", vectors.shape[1]]
    if output == "sentence_embedding":
        nodes.append(helper.make_node("ReduceMean", [tokens, "axis"], [output], keepdims=0))
        shape = ["batch", vectors.shape[1]]
    graph = helper.make_graph(
        nodes,
        "tiny",
        inputs,
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(vectors, "vectors"), numpy_helper.from_array(np.array([1]), "axis")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
