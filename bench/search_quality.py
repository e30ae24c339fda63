"""Measures search quality: our rankers, with every encoder, beside FastMCP's BM25, on every quality set.

Reads `search-quality` below TOOLSEARCH_BENCH_DATA (default ../shared/data), and the project's own sets in
other languages, on words alone. Run from the project's folder: python -m bench.search_quality
[--encoder FOLDER], the folder of a sentence encoder. Exits 1 when a bound is missed.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean

from bench.search_peers import FastMcpSearch
from catalog.search import evaluation
from catalog.search.evaluation import Quality, QualitySet
from catalog.search.meaning import Encoder
from catalog.search.onnx_encoder import OnnxEncoder
from catalog.search.ranking import RANKERS
from catalog.search.wordvectors import find_encoder

SHOWN = ("R@1", "R@5", "R@8", "MRR", "nDCG@10")
DEPTH = 10  # how far FastMCP's ranking is read
LEAD_POINTS = 8
# With the word vectors, before meaning was weighed by what its encoder knows of a query: recall at one and
# at five.
FORMERLY = {
    "azure_mcp": (0.8270, 0.9798),
    "bfcl_synthetic": (0.6810, 0.9089),
    "livemcpbench": (0.1788, 0.4132),
    "metatool_single": (0.4720, 0.6990),
    "stabletoolbench": (0.3333, 0.7277),
    "toollinkos": (0.7667, 0.9649),
}
ROUNDED = 0.00005  # what those are exact to
MOST_LOST = 0.005  # by the word vectors, of what words alone find
SENTENCES_GAIN = 0.04
LEAST_IN_LANGUAGES = 0.8

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"), "search-quality")
LANGUAGES = Path("tests/catalog/search/languages")

Results = Mapping[str, Mapping[str, Quality]]
Bound = tuple[str, bool]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, metavar="FOLDER", help="with model.onnx and tokenizer.json")
    folder = parser.parse_args().encoder
    encoders = {"none": None, "words": find_encoder()} | (
        {"sentences": OnnxEncoder(folder)} if folder else {}
    )
    results: dict[str, dict[str, Quality]] = {}
    print(f"{'set':<18}{'ranker':<18}" + "".join(f"{name:>9}" for name in SHOWN))
    for path in sorted(DATA.glob("*/tools.jsonl")):
        quality_set = evaluation.load_set(path.parent)
        results[quality_set.name] = {}
        for ranker, quality in measure_set(quality_set, encoders):
            results[quality_set.name][ranker] = quality
            print_row(quality_set.name, ranker, quality)
    bounds = [*lead_bounds(results), *words_bounds(results)]
    if folder:
        bounds += sentences_bounds(results)
    bounds += measure_languages()
    print("\nBounds:")
    for text, is_kept in bounds:
        print(f"  {'kept  ' if is_kept else 'MISSED'} {text}")
    sys.exit(0 if all(is_kept for _, is_kept in bounds) else 1)


def print_row(name: str, ranker: str, quality: Quality) -> None:
    values = quality.to_mapping()
    print(f"{name:<18}{ranker:<18}" + "".join(f"{values[each]:>9.3f}" for each in SHOWN), flush=True)


def measure_set(
    quality_set: QualitySet, encoders: Mapping[str, Encoder | None]
) -> Iterator[tuple[str, Quality]]:
    for name, encoder in encoders.items():
        yield f"bm25f, {name}", evaluation.evaluate(quality_set, "bm25f", encoder)
    for ranker in RANKERS:
        if ranker != "bm25f":
            yield ranker, evaluation.evaluate(quality_set, ranker, None)
    peer = FastMcpSearch(max_results=DEPTH)
    with tempfile.TemporaryDirectory() as folder:
        peer.build(quality_set.documents, Path(folder))
        yield (
            "fastmcp",
            evaluation.measure_quality(quality_set.questions, lambda text: peer.search(text, DEPTH)),
        )


def measure_languages() -> Iterator[Bound]:
    for path in sorted(LANGUAGES.glob("*/tools.jsonl")):
        quality_set = evaluation.load_set(path.parent)
        quality = evaluation.evaluate(quality_set, "bm25f", None)
        print_row(quality_set.name, "bm25f, none", quality)
        found = quality.recall_at(5)
        yield (
            f"{quality_set.name}: {found:.2f} at five by words alone, want {LEAST_IN_LANGUAGES}",
            found >= LEAST_IN_LANGUAGES,
        )


def lead_bounds(results: Results) -> Iterator[Bound]:
    """Better at five than FastMCP everywhere, by some points on average, and nowhere worse at one."""
    leads = {name: subtract(each["bm25f, words"], each["fastmcp"]) for name, each in results.items()}
    average = mean(five for _, five in leads.values()) * 100
    yield (
        f"ahead of FastMCP at five by {average:.1f} points on average, want {LEAD_POINTS}",
        average >= LEAD_POINTS,
    )
    behind = [name for name, (one, five) in leads.items() if one < 0 or five <= 0]
    yield f"behind FastMCP at one, or not ahead at five: {', '.join(behind) or 'nowhere'}", not behind


def words_bounds(results: Results) -> Iterator[Bound]:
    """No set loses against what was, and hardly any against words alone."""
    lost = {
        name: max(before - now for before, now in zip(FORMERLY[name], at_one_and_five(each), strict=True))
        for name, each in ((name, each["bm25f, words"]) for name, each in results.items() if name in FORMERLY)
    }
    losing = [name for name, most in lost.items() if most > ROUNDED]
    yield f"with words, worse than formerly at one or five: {', '.join(losing) or 'nowhere'}", not losing
    harmed = [
        name
        for name, each in results.items()
        if min(subtract(each["bm25f, words"], each["bm25f, none"])) < -MOST_LOST
    ]
    yield f"with words, half a point below none at one or five: {', '.join(harmed) or 'nowhere'}", not harmed


def sentences_bounds(results: Results) -> Iterator[Bound]:
    """On average over the sets, against the word vectors as they were."""
    found = [at_one_and_five(results[name]["bm25f, sentences"]) for name in results if name in FORMERLY]
    formerly = [FORMERLY[name] for name in results if name in FORMERLY]
    one, five = (mean(each[at] for each in found) - mean(each[at] for each in formerly) for at in (0, 1))
    yield (
        f"with sentences {one * 100:+.1f} points at one, want {SENTENCES_GAIN * 100:.0f}",
        one >= SENTENCES_GAIN,
    )
    yield f"with sentences {five * 100:+.1f} points at five, want none lost", five >= 0


def at_one_and_five(quality: Quality) -> tuple[float, float]:
    return quality.recall_at(1), quality.recall_at(5)


def subtract(left: Quality, right: Quality) -> tuple[float, float]:
    return left.recall_at(1) - right.recall_at(1), left.recall_at(5) - right.recall_at(5)


if __name__ == "__main__":
    main()
