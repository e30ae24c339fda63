"""The engine: whichever generation is in force answers, in every thread."""

import dataclasses
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from catalog.domain.query import parse_query
from catalog.search import generations, index
from catalog.search.engine import SearchEngine
from catalog.search.errors import IndexDamaged
from catalog.search.request import SearchRequest, Suggestion, Visible
from tests.catalog.search.samples import TOOLS, make_tool, names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    index.build(tmp_path / "index", TOOLS, None)
    return tmp_path / "index"


def ask(text: str, visible: Visible | None = None) -> SearchRequest:
    return SearchRequest(parse_query(text), visible=visible)


def test_an_answer_tells_its_generation_and_time(folder: Path) -> None:
    outcome = SearchEngine(folder, None).search(ask("create issue"))
    assert names(outcome)[0] == "mcp__jira__create_issue"
    assert outcome.generation == generations.read_current(folder).number
    assert outcome.took_ms > 0


def test_a_change_shows_in_the_next_search(folder: Path) -> None:
    engine = SearchEngine(folder, None)
    assert engine.search(ask("unicorn")).hits == ()
    index.update(folder, [make_tool(70, "zoo", "feed", "Feed the unicorn.")], [1], None)
    assert names(engine.search(ask("unicorn"))) == ["mcp__zoo__feed"]
    assert engine.search(ask("select:mcp__github__create_issue")).hits == ()


def test_the_generation_is_opened_once(folder: Path) -> None:
    engine = SearchEngine(folder, None)
    assert engine.snapshot() is engine.snapshot()


def test_a_replaced_generation_is_let_go_at_once(folder: Path) -> None:
    """Without the collector of circles, which in a large process comes late."""
    engine = SearchEngine(folder, None)
    engine.search(ask("issues"))
    replaced = weakref.ref(engine.snapshot().compiled)
    index.update(folder, [make_tool(99, "github", "fresh")], [], None)
    gc.disable()
    try:
        engine.search(ask("fresh"))
        assert replaced() is None
    finally:
        gc.enable()


def test_an_opened_generation_outlives_its_files(folder: Path) -> None:
    engine = SearchEngine(folder, None)
    snapshot = engine.snapshot()
    for _ in range(3):
        index.build(folder, TOOLS[:1], None)
    assert len(snapshot.compiled.descriptions) == len(TOOLS)
    assert len(engine.snapshot().compiled) == 1


def test_a_missing_index_is_named_and_noticed_when_it_comes(tmp_path: Path) -> None:
    engine = SearchEngine(tmp_path / "index", None)
    with pytest.raises(IndexDamaged):
        engine.search(ask("issue"))
    index.build(tmp_path / "index", TOOLS, None)
    assert engine.search(ask("issue")).hits


def test_a_damaged_generation_is_named(folder: Path) -> None:
    generations.generation_file(folder, generations.read_current(folder).number).write_bytes(b"junk")
    with pytest.raises(IndexDamaged):
        SearchEngine(folder, None).search(ask("issue"))


def test_threads_share_an_engine_while_the_index_changes(folder: Path) -> None:
    engine = SearchEngine(folder, None)

    def look(_: int) -> bool:
        outcome = engine.search(ask("create issue"))
        return bool(outcome.hits) and len({hit.id for hit in outcome.hits}) == len(outcome.hits)

    with ThreadPoolExecutor(4) as pool:
        looks = pool.map(look, range(400))
        for step in range(8):
            index.update(folder, [dataclasses.replace(TOOLS[0], description=f"issue {step}")], [], None)
        assert all(looks)


class TestDidYouMean:
    def test_near_misses_are_offered(self, folder: Path) -> None:
        outcome = SearchEngine(folder, None).search(ask("craete isue"))
        offered = {each.term: each.words for each in outcome.did_you_mean}
        assert "create" in offered["craete"]
        assert "issue" in offered["isue"]

    def test_words_that_matched_need_no_help(self, folder: Path) -> None:
        assert SearchEngine(folder, None).search(ask("create issue")).did_you_mean == ()

    def test_a_word_among_few_is_helped_one_in_a_sentence_is_not(self, folder: Path) -> None:
        engine = SearchEngine(folder, None)
        few = engine.search(ask("create isue"))
        assert (few.outcome, few.did_you_mean[0].term) == ("matched", "isue")
        sentence = engine.search(ask("create a new issue in the github repositry please"))
        assert (sentence.unmatched_terms, sentence.did_you_mean) == (("repositry",), ())

    def test_words_of_hidden_tools_are_not_given_away(self, folder: Path) -> None:
        engine = SearchEngine(folder, None)
        assert engine.search(ask("forcast")).did_you_mean == (Suggestion("forcast", ("forecast",)),)
        assert engine.search(ask("forcast", Visible.of([1, 2, 3]))).did_you_mean == ()

    def test_a_lost_store_costs_only_the_suggestion(self, folder: Path) -> None:
        store = generations.store_folder(folder, generations.read_current(folder).store)
        for path in store.iterdir():
            path.unlink()
        outcome = SearchEngine(folder, None).search(ask("craete"))
        assert (outcome.outcome, outcome.did_you_mean) == ("no_match", ())
