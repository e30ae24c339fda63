"""Hostile queries on 10,000 real tools: none may fail, find a hidden tool, or take long.

    python -m bench.search_fuzz [QUERIES]

Half of the catalog is hidden. Prints the slowest of each ranker and of patterns, in processor time, and exits
1 past 100 ms for a query and 1 s for a pattern. Each ranker's first query, which also reads what the ranker
needs of a generation, has a column of its own and the same bound.
"""

import random
import sys
import time
from collections.abc import Callable
from functools import partial

from bench.search_speed import load_documents
from catalog.domain.errors import InvalidInput
from catalog.domain.query import MAX_QUERY_CHARS, Query, parse_pattern, parse_query
from catalog.search.answers import answer
from catalog.search.compiling import compile_documents
from catalog.search.ranking import RANKERS
from catalog.search.request import SearchRequest, Visible
from catalog.search.wordvectors import find_encoder
from tests.catalog.search.hostile import make_text

Ask = Callable[[Query, str], None]

DEFAULT_QUERIES = 100_000
PATTERNS = 1_000
LONG_SHARE = 0.01
QUERY_SECONDS, PATTERN_SECONDS = 0.1, 1.0


def main(queries: int) -> int:
    encoder = find_encoder()
    documents = load_documents()
    compiled = compile_documents(documents, encoder)
    visible = Visible.of([document.id for document in documents if document.id % 2])
    shown = set(visible.ids.tolist())

    def ask(query: Query, ranker: str) -> None:
        outcome = answer(compiled, SearchRequest(query, ranker, 5, visible=visible), encoder)
        assert {hit.id for hit in outcome.hits} <= shown, "a hidden tool was found"

    source = random.Random(20_261_116)
    print(f"{'kind':<10}{'asked':>10}{'refused':>10}{'first ms':>12}{'slowest ms':>12}{'bound ms':>10}")
    missed = 0
    for ranker in RANKERS:
        typed = partial(_ask_query, ask, source, ranker)
        missed += report(ranker, queries // len(RANKERS), QUERY_SECONDS, typed)
    missed += report("pattern", PATTERNS, PATTERN_SECONDS, partial(_ask_pattern, ask, source))
    return 1 if missed else 0


def _ask_query(ask: Ask, source: random.Random, ranker: str) -> None:
    ask(parse_query(make_long(source) if source.random() < LONG_SHARE else make_text(source)), ranker)


def make_long(source: random.Random) -> str:
    """As many different words as a query can have, and all of them short enough to be inside many texts."""
    return " ".join("".join(source.choices("aeionrst", k=2)) for _ in range(MAX_QUERY_CHARS // 3))


def _ask_pattern(ask: Ask, source: random.Random) -> None:
    ask(parse_pattern(make_text(source)), "bm25f")


def report(kind: str, count: int, bound_seconds: float, ask_once: Callable[[], None]) -> bool:
    """One row of the table; True when the bound is missed."""
    first = time_once(ask_once)
    slowest, refused = 0.0, 0
    for _ in range(count):
        seconds = time_once(ask_once)
        refused += seconds is None
        slowest = max(slowest, seconds or 0)
    times = f"{(first or 0) * 1000:>12.1f}{slowest * 1000:>12.1f}{bound_seconds * 1000:>10.0f}"
    print(f"{kind:<10}{count:>10,}{refused:>10,}{times}", flush=True)
    return max(first or 0, slowest) > bound_seconds


def time_once(ask_once: Callable[[], None]) -> float | None:
    """None for a query that was refused."""
    started = time.process_time()
    try:
        ask_once()
    except InvalidInput:
        return None
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_QUERIES))
