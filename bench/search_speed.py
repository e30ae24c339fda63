"""Measures search speed: ours beside Whoosh's own searcher, FastMCP's BM25, tantivy and bm25s, in one run.

Reads `catalog-10k` and the queries of `search-quality` below TOOLSEARCH_BENCH_DATA (default ../shared/data).
Run from the project's folder: python -m bench.search_speed [--queries 400] [--encoder FOLDER]. Exits 1 when a
bound is missed. With a sentence encoder's folder our search with it is measured too, queries' vectors given;
what the encoder takes for one is printed apart.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event
from time import perf_counter

import numpy as np

from bench.search_peers import PEERS, Ours, Peer, change
from bench.sentence_peer import NAME as SENTENCES
from bench.sentence_peer import Encoding, KeptVectors, Sentences
from catalog.domain.choices import Kind
from catalog.domain.names import ToolId, name_all
from catalog.search.documents import ToolDocument, make_document

COUNTS = (100, 1_000, 10_000)
CHANGED_TOOLS = 50
RESULTS = 5
ROUNDS = 8
MARK = "unicornmark"

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"))


@dataclass(frozen=True, slots=True)
class Speed:
    build_seconds: float
    update_seconds: float
    size_mb: float
    memory_mb: float
    p50_ms: float
    p95_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--encoder", type=Path, metavar="FOLDER", help="with model.onnx and tokenizer.json")
    asked = parser.parse_args()
    documents, queries = load_documents(), load_queries(asked.queries)
    kept = KeptVectors(asked.encoder, documents, queries) if asked.encoder else None
    print(f"{len(queries)} queries in {ROUNDS} rounds, {RESULTS} results each; ratios are of p50 to ours.")
    if kept:
        print_encoding(kept.encoding, len(documents))
    speeds = {count: measure_all(documents[:count], queries, kept) for count in COUNTS}
    visible_seconds = measure_visibility(documents, queries)
    print(f"\nAn update of {CHANGED_TOOLS} of {len(documents):,} tools shows after {visible_seconds:.2f} s,")
    print("while another thread keeps searching.")
    bounds = check_bounds(speeds, visible_seconds)
    if kept:
        bounds += check_bounds(speeds, speeds[max(COUNTS)][SENTENCES].update_seconds, SENTENCES)
    sys.exit(0 if all(is_kept for _, is_kept in bounds) else 1)


def print_encoding(encoding: Encoding, tools: int) -> None:
    print(f"The encoder itself, one thread: {tools:,} tools in {encoding.tools_seconds:,.0f} s; a query")
    print(
        f"{encoding.query_p50_ms:.1f} ms (p50), {encoding.query_p95_ms:.1f} ms (p95), once: it is remembered."
    )


def load_documents() -> list[ToolDocument]:
    with (DATA / "catalog-10k" / "tools.jsonl").open(encoding="utf-8") as lines:
        definitions = [json.loads(line) for line in islice(lines, max(COUNTS))]
    ids = [ToolId(Kind.MCP, each["server"], each["name"]) for each in definitions]
    names = name_all(ids, reserved={"search_tools"})
    return [
        make_document(each, id=number, qualified_name=names[tool], server=each["server"])
        for number, (each, tool) in enumerate(zip(definitions, ids, strict=True))
    ]


def load_queries(count: int) -> list[str]:
    """The same number from every quality set, evenly spread over it."""
    paths = sorted((DATA / "search-quality").glob("*/queries.jsonl"))
    chosen: list[str] = []
    for path in paths:
        texts = [json.loads(line)["query"] for line in path.read_text(encoding="utf-8").splitlines()]
        share = -(-count // len(paths))
        chosen += [texts[number * len(texts) // share] for number in range(share)]
    return chosen[:count]


def measure_all(
    documents: Sequence[ToolDocument], queries: Sequence[str], kept: KeptVectors | None = None
) -> dict[str, Speed]:
    """The engines take turns at the queries, so that a busy moment of the machine hits all of them."""
    with tempfile.TemporaryDirectory() as folder:
        peers: list[Peer] = [make() for make in PEERS.values()]
        peers += [Sentences(kept)] if kept else []
        builds = {
            peer.name: time_call(partial(peer.build, documents, Path(folder, peer.name))) for peer in peers
        }
        times: dict[str, list[float]] = {peer.name: [] for peer in peers}
        for turn in range(ROUNDS):
            for peer in peers:
                peer.search(queries[0], RESULTS)
                times[peer.name] += [
                    time_call(partial(peer.search, text, RESULTS)) for text in queries[turn::ROUNDS]
                ]
        changed = [change(document, MARK) for document in documents[:CHANGED_TOOLS]]
        updated = [*changed, *documents[CHANGED_TOOLS:]]
        speeds = {}
        for peer in peers:
            update_seconds = time_call(partial(peer.update, updated, changed))
            speeds[peer.name] = Speed(
                build_seconds=builds[peer.name],
                update_seconds=update_seconds,
                size_mb=count_megabytes(Path(folder, peer.name)),
                memory_mb=measure_memory(peer, documents, queries[:50], Path(folder, peer.name)),
                p50_ms=float(np.median(times[peer.name])) * 1e3,
                p95_ms=float(np.percentile(times[peer.name], 95)) * 1e3,
            )
    print_table(len(documents), speeds)
    return speeds


def time_call(call: Callable[[], object]) -> float:
    started = perf_counter()
    call()
    return perf_counter() - started


def count_megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def measure_memory(
    peer: Peer, documents: Sequence[ToolDocument], queries: Sequence[str], folder: Path
) -> float:
    """What a fresh process grows by when it opens the index, or builds it, and searches."""
    if peer.name not in PEERS:
        return float("nan")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(grow, (peer.name, [] if peer.is_on_disk else documents, queries, folder))


def grow(name: str, documents: Sequence[ToolDocument], queries: Sequence[str], folder: Path) -> float:
    peer = PEERS[name]()
    before = read_private_megabytes()
    if peer.is_on_disk:
        peer.open(folder)
    else:
        peer.build(documents, folder)
    for text in queries:
        peer.search(text, RESULTS)
    return read_private_megabytes() - before


def read_private_megabytes() -> float:
    """Memory that no other process shares: mapped files cost each process nothing of its own."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("RssAnon:")[1].split()[0]) / 1e3


def measure_visibility(documents: Sequence[ToolDocument], queries: Sequence[str]) -> float:
    ours, stop = Ours(), Event()

    def keep_searching() -> None:
        while not stop.is_set():
            for text in queries[:20]:
                ours.search(text, RESULTS)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        ours.build(documents, Path(folder, "index"))
        searching = pool.submit(keep_searching)
        started = perf_counter()
        ours.update(documents, [change(document, MARK) for document in documents[:CHANGED_TOOLS]])
        found = ours.search(MARK, 4 * CHANGED_TOOLS)
        seconds = perf_counter() - started
        stop.set()
        searching.result()
    assert set(found) >= set(range(CHANGED_TOOLS)), "a changed tool is not found"
    return seconds


def print_table(count: int, speeds: dict[str, Speed]) -> None:
    heads = ("build s", "50 new s", "disk MB", "memory MB", "p50 ms", "p95 ms", "ratio")
    print(f"\n{count:>6,} tools " + "".join(f"{head:>11}" for head in heads))
    for name, speed in speeds.items():
        ratio = speed.p50_ms / speeds["toolsearch"].p50_ms
        cells = (
            speed.build_seconds,
            speed.update_seconds,
            speed.size_mb,
            speed.memory_mb,
            speed.p50_ms,
            speed.p95_ms,
            ratio,
        )
        print(f"{name:<12} " + "".join(f"{cell:>11,.2f}" for cell in cells))


def check_bounds(
    speeds: dict[int, dict[str, Speed]], visible_seconds: float, name: str = "toolsearch"
) -> list[tuple[str, bool]]:
    largest, ours = speeds[max(COUNTS)], speeds[max(COUNTS)][name]
    growth = ours.p50_ms / speeds[1_000][name].p50_ms
    against = {name: speed.p50_ms / ours.p50_ms for name, speed in largest.items()}
    bounds = [
        (f"p50 {against['whoosh']:,.0f} times as fast as Whoosh, want 100", against["whoosh"] >= 100),
        (f"p50 {against['fastmcp']:,.0f} times as fast as FastMCP, want 300", against["fastmcp"] >= 300),
        (f"p50 {1 / against['tantivy']:.2f} times tantivy's, want at most 2", against["tantivy"] >= 0.5),
        (f"p95 {ours.p95_ms / ours.p50_ms:.2f} times p50, want at most 3", ours.p95_ms <= 3 * ours.p50_ms),
        (f"ten times the tools cost {growth:.1f} times the time, want less than 10", growth < 10),
        (f"an update shows after {visible_seconds:.2f} s, want less than 2", visible_seconds < 2),
    ]
    print(f"\nBounds of {name}:")
    for text, is_kept in bounds:
        print(f"  {'kept  ' if is_kept else 'MISSED'} {text}")
    return bounds


if __name__ == "__main__":
    main()
