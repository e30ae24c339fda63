"""Thousands of hostile queries: an answer or a refusal, and never a hidden tool."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from catalog.domain.errors import InvalidInput
from catalog.domain.query import Query, parse_pattern, parse_query
from catalog.search.answers import answer
from catalog.search.compiling import compile_documents
from catalog.search.request import SearchOutcome, SearchRequest, Visible
from catalog.search.wordvectors import find_encoder
from tests.catalog.search.hostile import make_text
from tests.catalog.search.samples import TOOLS, make_tool

RANKERS = ("bm25f", "keyword", "overlap")


@pytest.fixture(scope="module")
def ask() -> Callable[[Query, str, int], SearchOutcome]:
    encoder = find_encoder()
    long_texts = [
        make_tool(100 + number, "hidden" if number % 2 else "shown", f"t{number}", "a" * 40 + "!")
        for number in range(40)
    ]
    tools = [*TOOLS, *long_texts]
    compiled = compile_documents(tools, encoder)
    visible = Visible.of([tool.id for tool in tools if tool.server != "hidden"])
    shown = set(visible.ids.tolist())

    def search(query: Query, ranker: str, max_results: int) -> SearchOutcome:
        outcome = answer(
            compiled, SearchRequest(query, ranker, max_results, visible=visible, explained=True), encoder
        )
        assert {hit.id for hit in outcome.hits} <= shown
        assert query.form == "select" or len(outcome.hits) <= max_results
        return outcome

    return search


def test_queries_are_answered_or_refused(ask: Callable[[Query, str, int], SearchOutcome]) -> None:
    random_source = random.Random(20_261_116)
    for _ in range(3000):
        try:
            query = parse_query(make_text(random_source))
        except InvalidInput:
            continue
        ask(query, random_source.choice(RANKERS), random_source.choice((1, 5, 50)))


def test_patterns_are_answered_or_refused(ask: Callable[[Query, str, int], SearchOutcome]) -> None:
    random_source = random.Random(5)
    for _ in range(400):
        with suppress(InvalidInput):
            ask(parse_pattern(make_text(random_source)), "bm25f", 5)
