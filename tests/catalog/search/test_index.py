"""The index on disk: built, changed, compiled from Whoosh, and found out when it is damaged."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from catalog.search import generations, index
from catalog.search.arrays import open_arrays
from catalog.search.compiled import Compiled
from catalog.search.errors import IndexDamaged
from catalog.search.ranking import RANKERS
from tests.catalog.search.samples import TOOLS, compile_tools, make_tool, names, search


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    index.build(tmp_path / "index", TOOLS, None)
    return tmp_path / "index"


def opened(folder: Path) -> Compiled:
    return generations.open_current(folder)[1]


def assert_same(left: Compiled, right: Compiled) -> None:
    assert left.ids.tolist() == right.ids.tolist()
    assert left.qualified_names == right.qualified_names
    assert left.parameter_names == right.parameter_names
    assert left.term_numbers.keys() == right.term_numbers.keys()
    for term in left.term_numbers:
        found, wanted = left.postings_of(term), right.postings_of(term)
        assert (found is None) == (wanted is None)
        if found and wanted:
            assert found[0].tolist() == wanted[0].tolist()
            assert np.allclose(found[1], wanted[1])
    for text in ("issue", "re", "e", "a re", *left.names):
        folded = text.lower()
        assert left.rows_named(text) == right.rows_named(text)
        assert list_places(left, folded) == list_places(right, folded)


def list_places(compiled: Compiled, text: str) -> list[list[bool]]:
    found = compiled.contains(text)
    return [
        mask.tolist() for mask in (found.is_name, found.in_name, found.in_description, found.in_parameters)
    ]


def test_what_whoosh_holds_compiles_to_what_was_put_in(folder: Path) -> None:
    assert_same(opened(folder), compile_tools())


def test_a_build_replaces_everything(folder: Path) -> None:
    index.build(folder, TOOLS[:2], None)
    assert_same(opened(folder), compile_tools(TOOLS[:2]))


def test_an_update_equals_a_build(folder: Path) -> None:
    changed = dataclasses.replace(TOOLS[0], description="Wholly other words")
    added = make_tool(50, "new", "tool", "brand new")
    index.update(folder, [changed, added], [TOOLS[3].id], None)
    assert_same(opened(folder), compile_tools([changed, *TOOLS[1:3], *TOOLS[4:], added]))


def test_many_updates_equal_a_build(folder: Path) -> None:
    """Often enough for segments to be folded together."""
    tools = {tool.id: tool for tool in TOOLS}
    for step in range(14):
        tool = dataclasses.replace(TOOLS[step % 5], description=f"version {step} of this text")
        gone = 100 + step - 1
        extra = make_tool(100 + step, "extra", f"tool{step}")
        index.update(folder, [tool, extra], [gone], None)
        tools.pop(gone, None)
        tools |= {tool.id: tool, extra.id: extra}
    assert_same(opened(folder), compile_tools(list(tools.values())))


def test_segments_stay_few_and_are_copied_seldom(folder: Path) -> None:
    """Of the segments that an update finds, those that are gone after it were copied."""
    copied = []
    for step in range(40):
        before = set(opened(folder).notes["segments"])
        index.update(folder, [make_tool(100 + step, "extra", f"tool{step}")], [], None)
        copied.append(len(before - set(opened(folder).notes["segments"])))
    assert len(opened(folder).notes["segments"]) <= 10
    assert sum(copied) <= 40
    assert max(copied) <= 5


def test_an_update_may_change_nothing(folder: Path) -> None:
    index.update(folder, [], [12345], None)
    assert_same(opened(folder), compile_tools())


def test_an_update_may_empty_the_index(folder: Path) -> None:
    index.update(folder, [], [tool.id for tool in TOOLS], None)
    assert len(opened(folder)) == 0
    index.update(folder, TOOLS, [], None)
    assert_same(opened(folder), compile_tools())


def test_a_tool_that_went_is_found_no_more(folder: Path) -> None:
    index.update(folder, [], [1], None)
    assert names(search("create issue github", opened(folder)))[0] != "mcp__github__create_issue"
    assert search("select:mcp__github__create_issue", opened(folder)).hits == ()


def test_an_empty_index_is_an_index(tmp_path: Path) -> None:
    index.build(tmp_path / "index", [], None)
    assert len(opened(tmp_path / "index")) == 0
    index.update(tmp_path / "index", TOOLS, [], None)
    assert_same(opened(tmp_path / "index"), compile_tools())


def test_hostile_texts_are_stored(tmp_path: Path) -> None:
    tools = [
        make_tool(
            1, "s\x00", "t\ud800", "lone \udfff half \x00 \u2028 \U0001f600", parameters=(("\n", "\ud800"),)
        ),
        make_tool(2, "", "", ""),
        make_tool(3, "s", "x" * 10_000, "word " * 5_000),
    ]
    index.build(tmp_path / "index", tools, None)
    assert_same(opened(tmp_path / "index"), compile_tools(tools))


def test_the_state_tells_version_and_size(folder: Path) -> None:
    index.update(folder, [], [1], None, version=7)
    assert index.read_index_state(folder) == index.IndexState(version=7, documents=len(TOOLS) - 1)


def test_a_generation_of_another_format_is_refused_and_a_build_mends_it(folder: Path) -> None:
    current = generations.read_current(folder)
    compiled = opened(folder)
    compiled.notes["format"] -= 1
    generations.publish(folder, current, compiled)
    for use in (index.read_index_state, generations.open_current):
        with pytest.raises(IndexDamaged, match="format"):
            use(folder)
    with pytest.raises(IndexDamaged, match="format"):
        index.update(folder, TOOLS[:1], [], None)
    index.build(folder, TOOLS, None)
    assert_same(opened(folder), compile_tools())


@pytest.mark.parametrize("ranker", RANKERS)
def test_a_first_search_reads_no_text_as_a_whole(folder: Path, ranker: str) -> None:
    """What a search needs was prepared when the generation was compiled, so the first costs what any does."""
    compiled = opened(folder)
    assert search("create an issue", compiled, ranker=ranker).hits
    assert search("select:Read", compiled).hits
    columns = {"qualified_names", "names", "servers", "descriptions", "parameter_names"}
    assert not columns & vars(compiled).keys()


def test_a_missing_index_cannot_be_updated(tmp_path: Path) -> None:
    with pytest.raises(IndexDamaged):
        index.update(tmp_path / "index", TOOLS, [], None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Whoosh leaves the file open
@pytest.mark.parametrize("content", [b"", b"junk" * 100])
def test_a_damaged_store_is_noticed_and_a_build_mends_it(folder: Path, content: bytes) -> None:
    store = generations.store_folder(folder, generations.read_current(folder).store)
    for path in store.iterdir():
        path.write_bytes(content)
    with pytest.raises(IndexDamaged):
        index.update(folder, TOOLS[:1], [], None)
    assert_same(opened(folder), compile_tools())
    index.build(folder, TOOLS, None)
    index.update(folder, TOOLS[:1], [], None)
    assert_same(opened(folder), compile_tools())


def test_a_store_that_went_is_noticed(folder: Path) -> None:
    store = generations.store_folder(folder, generations.read_current(folder).store)
    for path in store.iterdir():
        path.unlink()
    with pytest.raises(IndexDamaged):
        index.update(folder, TOOLS[:1], [], None)


def test_a_store_ahead_of_its_generation_is_caught_up_with(folder: Path) -> None:
    """As after a crash between Whoosh's commit and the switch."""
    before = generations.read_current(folder)
    index.update(folder, [make_tool(60, "s", "first")], [1], None)
    after = generations.read_current(folder)
    generations.publish(folder, before, compile_like(folder, before))
    index.update(folder, [make_tool(61, "s", "second")], [], None)
    assert after.store == before.store
    assert_same(
        opened(folder), compile_tools([*TOOLS[1:], make_tool(60, "s", "first"), make_tool(61, "s", "second")])
    )


def compile_like(folder: Path, generation: generations.Generation) -> Compiled:
    """The generation as it was, read again from its file."""
    file = open_arrays(generations.generation_file(folder, generation.number))
    return Compiled(file.arrays, file.notes)


class TestSpeller:
    def test_words_nearby_are_suggested(self, folder: Path) -> None:
        speller = index.Speller(folder, generations.read_current(folder))
        assert "issue" in speller.suggest("isue", 3)
        assert speller.suggest("xyzzyx", 3) == []

    def test_the_nearest_come_first_and_of_these_the_most_frequent(self, tmp_path: Path) -> None:
        texts = ("planes", "plates plane", "plane", "places", "plan", "players", "explane", "p" * 90)
        tools = [make_tool(number, "s", "t", text) for number, text in enumerate(texts)]
        index.build(tmp_path / "index", tools[:4], None)
        index.update(tmp_path / "index", tools[4:], [], None)
        speller = index.Speller(tmp_path / "index", generations.read_current(tmp_path / "index"))
        assert speller.suggest("plaen", 9) == ["plane", "plan", "places", "planes", "plates"]
        assert speller.suggest("plane", 2) == ["plan", "planes"]
        assert speller.suggest("p" * 64, 3) == []

    def test_a_store_that_went_is_named(self, folder: Path) -> None:
        speller = index.Speller(folder, generations.Generation(99, 99))
        with pytest.raises(IndexDamaged):
            speller.suggest("isue", 3)
