"""Measures search quality: our rankers beside FastMCP's BM25, on every quality set.

Reads `search-quality` below TOOLSEARCH_BENCH_DATA (default ../shared/data).
Run from the project's folder: python -m bench.search_quality. Exits 1 when a bound is missed.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

from bench.search_peers import FastMcpSearch
from catalog.search import evaluation
from catalog.search.evaluation import Quality, QualitySet
from catalog.search.ranking import RANKERS
from catalog.search.wordvectors import find_encoder

SHOWN = ("R@1", "R@5", "R@8", "MRR", "nDCG@10")
DEPTH = 10  # how far FastMCP's ranking is read
LEAD_POINTS = 8

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"), "search-quality")


def main() -> None:
    results = {}
    print(f"{'set':<18}{'ranker':<14}" + "".join(f"{name:>9}" for name in SHOWN))
    for folder in sorted(path.parent for path in DATA.glob("*/tools.jsonl")):
        results[folder.name] = dict(measure_set(evaluation.load_set(folder)))
        for ranker, quality in results[folder.name].items():
            values = quality.to_mapping()
            print(
                f"{folder.name:<18}{ranker:<14}" + "".join(f"{values[name]:>9.3f}" for name in SHOWN),
                flush=True,
            )
    sys.exit(0 if check_bounds(results) else 1)


def measure_set(quality_set: QualitySet) -> Iterator[tuple[str, Quality]]:
    encoder = find_encoder()
    for ranker in RANKERS:
        yield ranker, evaluation.evaluate(quality_set, ranker, encoder)
    if encoder is not None:
        yield "bm25f, words", evaluation.evaluate(quality_set, "bm25f", None)
    peer = FastMcpSearch(max_results=DEPTH)
    with tempfile.TemporaryDirectory() as folder:
        peer.build(quality_set.documents, Path(folder))
        yield (
            "fastmcp",
            evaluation.measure_quality(quality_set.questions, lambda text: peer.search(text, DEPTH)),
        )


def check_bounds(results: dict[str, dict[str, Quality]]) -> bool:
    """Better at five than FastMCP everywhere, by some points on average, and nowhere worse at one."""
    at_one, at_five = evaluation.CUTS.index(1), evaluation.CUTS.index(5)
    leads = {
        name: (each["bm25f"].recall[at_one] - each["fastmcp"].recall[at_one],
               each["bm25f"].recall[at_five] - each["fastmcp"].recall[at_five])
        for name, each in results.items()
    }  # fmt: skip
    average = mean(lead for _, lead in leads.values()) * 100
    print(f"\nAhead of FastMCP at five by {average:.1f} points on average, want {LEAD_POINTS}.")
    behind = [name for name, (one, five) in leads.items() if one < 0 or five <= 0]
    print(f"Behind at one, or not ahead at five: {', '.join(behind) or 'nowhere'}.")
    return average >= LEAD_POINTS and not behind


if __name__ == "__main__":
    main()
