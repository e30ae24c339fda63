"""Hostile queries on 10,000 real tools: none may fail, find a hidden tool, or take long.

    python -m bench.search_fuzz [QUERIES]

Half of the catalog is hidden. Searches a stored index as a web process does, suggestions of spelling
included. Prints the slowest of each ranker, of misspelt words and of patterns, in processor time, and exits 1
past 100 ms for a query and 1 s for a pattern. Each kind's first query opens the generation and reads what it
needs of it; it has a column of its own and the same bound.
"""

import gc
import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.search_speed import load_documents
from catalog.domain.errors import InvalidInput
from catalog.domain.limits import QUERY_CHARS
from catalog.domain.query import Query, parse_pattern, parse_query
from catalog.search import index, words
from catalog.search.documents import ToolDocument
from catalog.search.engine import SearchEngine
from catalog.search.ranking import RANKERS
from catalog.search.request import SearchRequest, Visible
from catalog.search.wordvectors import find_encoder
from tests.catalog.search.hostile import make_text

MakeQuery = Callable[[], Query]

DEFAULT_QUERIES = 100_000
MISSPELT = PATTERNS = 1_000
LONG_SHARE = 0.01
QUERY_SECONDS, PATTERN_SECONDS = 0.1, 1.0


def main(queries: int) -> int:
    encoder = find_encoder()
    documents = load_documents()
    visible = Visible.of([document.id for document in documents if document.id % 2])
    shown = set(visible.ids.tolist())

    def ask(engine: SearchEngine, query: Query, ranker: str) -> None:
        outcome = engine.search(SearchRequest(query, ranker, 5, visible=visible))
        assert {hit.id for hit in outcome.hits} <= shown, "a hidden tool was found"

    source = random.Random(20_261_116)
    typed, misspelt = partial(make_query, source), partial(make_misspelt, source, list_words(documents))
    print(f"{'kind':<10}{'asked':>10}{'refused':>10}{'first ms':>12}{'slowest ms':>12}{'bound ms':>10}")
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        index.build(Path(folder, "index"), documents, encoder)
        # As a web process does: what was there before the first query is no garbage, and not looked through.
        gc.freeze()

        def report_on(kind: str, ranker: str, count: int, bound_seconds: float, make: MakeQuery) -> bool:
            engine = SearchEngine(Path(folder, "index"), encoder)
            return report(kind, count, bound_seconds, lambda: ask(engine, make(), ranker))

        for ranker in RANKERS:
            missed += report_on(ranker, ranker, queries // len(RANKERS), QUERY_SECONDS, typed)
        missed += report_on("misspelt", "bm25f", MISSPELT, QUERY_SECONDS, misspelt)
        missed += report_on("pattern", "bm25f", PATTERNS, PATTERN_SECONDS, partial(make_pattern, source))
    return 1 if missed else 0


def make_query(source: random.Random) -> Query:
    return parse_query(make_long(source) if source.random() < LONG_SHARE else make_text(source))


def make_long(source: random.Random) -> str:
    """As many different words as a query can have, and all of them short enough to be inside many texts."""
    return " ".join("".join(source.choices("aeionrst", k=2)) for _ in range(QUERY_CHARS // 3))


def list_words(documents: list[ToolDocument]) -> list[str]:
    return sorted({word for document in documents for word in words.plain_words(document.description)})


def make_misspelt(source: random.Random, known: list[str]) -> Query:
    """Three words, each with a letter too many and one too few."""
    return parse_query(" ".join(misspell(source, source.choice(known)) for _ in range(3)))


def misspell(source: random.Random, word: str) -> str:
    more, less = source.randrange(1, len(word)), source.randrange(1, len(word))
    longer = word[:more] + source.choice("jqxz") + word[more:]
    return longer[:less] + longer[less + 1 :]


def make_pattern(source: random.Random) -> Query:
    return parse_pattern(make_text(source))


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
