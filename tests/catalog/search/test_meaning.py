"""Words rule where they match, and meaning where they do not."""

import dataclasses
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from catalog.domain.query import parse_query
from catalog.search import corpus, generations, index, wordvectors
from catalog.search.answers import answer
from catalog.search.compiled import Compiled
from catalog.search.compiling import compile_documents
from catalog.search.engine import SearchEngine
from catalog.search.meaning import Encoder, QueryMeaning, Vectors, text_to_encode
from catalog.search.ranking import Task, bm25f
from catalog.search.request import MatchedBy, SearchOutcome, SearchRequest, Visible
from tests.catalog.search.samples import MadeUpEncoder, make_tool, names

TOOLS = (
    make_tool(1, "store", "delete_record", "Delete a record."),
    make_tool(2, "store", "add_record", "Add a record."),
    make_tool(3, "music", "play", "Play some loud music now."),
)


class Topics(MadeUpEncoder):
    """Knows two ideas: doing away with things, and adding them."""

    name = "topics-1"
    dimensions = 3
    coarse_dimensions = 3
    _ideas = ({"delete", "erase", "scrub"}, {"add", "insert"}, {"music"})

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = [
            [len(idea & set(text.lower().replace(".", "").split())) for idea in self._ideas] for text in texts
        ]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), 3)
        scaled: Vectors = vectors / np.maximum(
            np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9)
        )
        return scaled


def search(text: str, encoder: Encoder | None = None, **options: object) -> SearchOutcome:
    used = encoder or Topics()
    request = SearchRequest(parse_query(text), **options)  # type: ignore[arg-type]
    return answer(compile_documents(TOOLS, used), request, used)


def test_meaning_decides_where_words_hardly_match() -> None:
    assert names(search("erase loud unheard things"))[0] == "mcp__store__delete_record"


def test_words_decide_where_they_match() -> None:
    assert names(search("insert play music"))[0] == "mcp__music__play"


def test_a_query_without_a_known_word_stays_unmatched() -> None:
    outcome = search("erase scrub")
    assert (outcome.outcome, outcome.unmatched_terms) == ("no_match", ("erase", "scrub"))


class Nearness(MadeUpEncoder):
    """Everything is as near to a query as the number in its text says."""

    name = "nearness-1"
    dimensions = 2
    coarse_dimensions = 2

    def encode(self, texts: Sequence[str]) -> Vectors:
        found = [re.search(r"\b(0\.\d+)", text) for text in texts]
        cosines = np.array([float(one[1]) if one else 1 for one in found], dtype=np.float32)
        vectors: Vectors = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)
        return vectors


class NearSentences(Nearness):
    is_sentence_encoder = True


class TestMeaningAlone:
    """Tools that have none of the words."""

    def find(self, text: str, *nearness: str) -> list[str]:
        near = [
            make_tool(number, "s", f"other{number}", one) for number, one in enumerate(nearness, start=10)
        ]
        having = make_tool(1, "s", "create_issue", "Create an issue. 0.5")
        compiled = compile_documents([having, *near], Nearness())
        return names(answer(compiled, SearchRequest(parse_query(text)), Nearness()))

    def test_faint_meaning_beside_a_real_hit_is_no_hit(self) -> None:
        assert self.find("create issue", "0.13", "0.3") == ["mcp__s__create_issue"]

    def test_strong_meaning_is(self) -> None:
        assert self.find("create issue", "0.95") == ["mcp__s__create_issue", "mcp__s__other10"]

    def test_faint_meaning_is_no_hit_where_the_best_is_faint_too(self) -> None:
        found = self.find("unheard of words beside issue", "0.13", "0.2")
        assert found == ["mcp__s__create_issue", "mcp__s__other11"]


class Sentences(Topics):
    name = "sentences-1"
    is_sentence_encoder = True


class Stranger(Sentences):
    """Knows less of every query than it takes."""

    known = 0.2


class Silent(Sentences):
    def encode_query(self, text: str) -> QueryMeaning | None:
        return None


class TestNoKnownWord:
    """Queries of which no tool has a word."""

    def test_a_sentence_encoder_finds_what_is_similar(self) -> None:
        outcome = search("erase", Sentences(), explained=True)
        assert (outcome.outcome, outcome.unmatched_terms) == ("matched", ("erase",))
        (hit,) = outcome.hits
        assert (hit.qualified_name, hit.by) == ("mcp__store__delete_record", MatchedBy.MEANING)
        assert [(part.field, part.score) for part in hit.parts] == [("meaning", hit.score)]

    def test_tools_below_the_floor_are_no_hits(self) -> None:
        near = [make_tool(number, "s", f"other{number}", text) for number, text in enumerate(("0.6", "0.4"))]
        compiled = compile_documents(near, NearSentences())

        def find(floor: float) -> list[str]:
            request = SearchRequest(parse_query("unheard"), meaning_floor=floor)
            return names(answer(compiled, request, NearSentences()))

        assert find(0.3) == ["mcp__s__other0", "mcp__s__other1"]
        assert find(0.5) == ["mcp__s__other0"]
        assert find(0.7) == []

    def test_what_the_encoder_does_not_know_is_no_match(self) -> None:
        assert search("erase", Stranger()).outcome == "no_match"

    def test_neither_is_a_query_that_it_does_not_answer(self) -> None:
        assert search("erase", Silent()).outcome == "no_match"

    def test_hidden_tools_are_not_found(self) -> None:
        assert search("erase", Sentences(), visible=Visible.of([2, 3])).outcome == "no_match"
        assert search("erase", Sentences(), visible=Visible.of([])).outcome == "no_match"

    def test_required_words_come_first(self) -> None:
        assert names(search("+store erase", Sentences()))[0] == "mcp__store__delete_record"
        assert search("+nowhere erase", Sentences()).outcome == "no_match"


class TestWhatFoundATool:
    def by(self, text: str, encoder: Encoder | None = None) -> dict[str, str]:
        return {hit.qualified_name.split("__")[-1]: hit.by for hit in search(text, encoder).hits}

    def test_words_meaning_or_both(self) -> None:
        assert self.by("erase a loud record") == {
            "delete_record": "both",
            "add_record": "words",
            "play": "words",
        }
        assert self.by("erase loud unheard things")["delete_record"] == "meaning"

    def test_a_name_is_words(self) -> None:
        assert self.by("delete_record")["delete_record"] == "words"
        assert self.by("select:delete_record") == {"delete_record": "words"}

    def test_required_words_are_words_of_the_name(self) -> None:
        assert self.by("+record erase unheard", Sentences()) == {
            "delete_record": "both",
            "add_record": "words",
        }


def test_meaning_weighs_what_the_encoder_knows_of_the_query() -> None:
    half = Topics()
    half.known = 0.5
    whole_score, half_score = (
        part.score
        for encoder in (Topics(), half)
        for part in search("erase some record", encoder, explained=True).hits[0].parts
        if part.field == "meaning"
    )
    assert half_score == pytest.approx(whole_score / 2)


def test_an_encoder_that_knows_nothing_of_the_query_changes_nothing() -> None:
    nothing = Topics()
    nothing.known = 0.0
    outcome = search("erase some record", nothing, explained=True)
    assert {hit.by for hit in outcome.hits} == {"words"}
    assert "meaning" not in {part.field for hit in outcome.hits for part in hit.parts}


def test_an_encoder_without_an_answer_leaves_the_words() -> None:
    assert {hit.by for hit in search("erase some record", Silent()).hits} == {"words"}


def test_quoted_text_does_not_count_as_meaning() -> None:
    hits = search('erase loud "insert insert insert" things', Topics()).hits
    assert hits[0].qualified_name == "mcp__store__delete_record"


def test_meaning_shows_no_hidden_tool() -> None:
    outcome = search("erase loud unheard things", visible=Visible.of([2, 3]), max_results=50)
    assert "mcp__store__delete_record" not in names(outcome)


def test_meaning_is_part_of_the_explanation() -> None:
    hit = search("erase some record", explained=True).hits[0]
    parts = {part.field: part.score for part in hit.parts}
    assert parts["meaning"] > 0
    assert sum(part.score for part in hit.parts) == pytest.approx(hit.score, rel=1e-3)


class Contrary(MadeUpEncoder):
    """Finds everything rather near to a query, but what speaks of zebras the very opposite."""

    name = "contrary-1"
    dimensions = 2
    coarse_dimensions = 2

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = [
            (1, 0) if text in {"zebra", "feed zebra"} else (-1, 0) if "zebra" in text else (0.6, 0.8)
            for text in texts
        ]
        return np.array(rows, dtype=np.float32)


@pytest.fixture(scope="module")
def zebras_among_thousands() -> Compiled:
    others = [make_tool(number, "s", f"tool{number}", "something else") for number in range(3000)]
    zebras = [make_tool(5000 + number, "zoo", f"z{number}", "feed the zebra") for number in range(3)]
    return compile_documents([*others, *zebras], Contrary())


def test_the_only_word_of_a_query_is_what_answers_have(zebras_among_thousands: Compiled) -> None:
    outcome = answer(zebras_among_thousands, SearchRequest(parse_query("zebra")), Contrary())
    assert {hit.id for hit in outcome.hits} == {5000, 5001, 5002}


def test_tools_with_the_words_are_judged_however_far_their_meaning(zebras_among_thousands: Compiled) -> None:
    """Short vectors pick whom to judge; they must not drop those whom the words picked."""
    ranking = bm25f.rank(Task(zebras_among_thousands, "feed zebra", 5, None, Contrary()))
    rows = np.isin(zebras_among_thousands.ids, (5000, 5001, 5002))
    assert rows.sum() == 3
    assert ranking.scores[rows].all()


def test_the_name_stands_out_in_what_is_encoded() -> None:
    text = text_to_encode(make_tool(1, "gitHub", "createIssue", "d" * 1000, keywords="k"))
    assert text.count("create Issue") == 2
    assert text.startswith("git Hub")
    assert len(text) < 500


class TestOnDisk:
    def test_vectors_are_kept_and_updated(self, tmp_path: Path) -> None:
        folder = tmp_path / "index"
        index.build(folder, TOOLS[:2], Topics())
        index.update(folder, TOOLS[2:], [], Topics())
        compiled = generations.open_current(folder)[1]
        assert np.allclose(compiled.vectors, compile_documents(TOOLS, Topics()).vectors)

    def test_vectors_of_another_encoder_are_not_used(self, tmp_path: Path) -> None:
        folder = tmp_path / "index"
        index.build(folder, TOOLS, None)
        assert SearchEngine(folder, Topics()).snapshot().encoder is None
        outcome = SearchEngine(folder, Topics()).search(SearchRequest(parse_query("erase record")))
        assert outcome.hits

    def test_an_update_with_another_encoder_encodes_all_anew(self, tmp_path: Path) -> None:
        folder = tmp_path / "index"
        index.build(folder, TOOLS[:2], None)
        index.update(folder, TOOLS[2:], [], Topics())
        assert SearchEngine(folder, Topics()).snapshot().compiled.vectors.shape == (3, 3)
        index.update(folder, [], [3], None)
        assert SearchEngine(folder, None).snapshot().compiled.vectors.shape == (2, 0)


class Alike(MadeUpEncoder):
    """A sentence encoder that tells no text from another."""

    name = "alike-1"
    dimensions = 2
    coarse_dimensions = 0
    is_sentence_encoder = True

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.array([(0.6, 0.8)] * len(texts), dtype=np.float32).reshape(len(texts), 2)


class TestWordsBesideSentences:
    """A share of the similarity is of word vectors, where they are installed."""

    TOOLS = (
        make_tool(1, "s", "mend", "Repair a bicycle."),
        make_tool(2, "s", "bake", "Bake bread and cakes in the oven."),
        make_tool(3, "s", "other", "Thing. Вещь."),
    )

    @pytest.fixture(autouse=True)
    def _need_word_vectors(self) -> None:
        if wordvectors.find_encoder() is None:
            pytest.skip("the optional package is not installed")

    def rank(self, text: str, compiled: Compiled | None = None) -> dict[int, float]:
        compiled = compiled or compile_documents(self.TOOLS, Alike())
        ranking = bm25f.rank(Task(compiled, text, 5, None, Alike()))
        return dict(zip(compiled.ids.tolist(), ranking.scores.tolist(), strict=True))

    def test_they_tell_apart_what_sentences_do_not(self) -> None:
        scores = self.rank("dough and pastry thing")
        assert scores[2] > scores[1] > 0

    def test_they_have_no_part_where_they_know_nothing_of_the_query(self) -> None:
        scores = self.rank("хлеб из печи вещь")
        assert scores[2] == pytest.approx(scores[1])

    def test_sentences_count_alone_where_tools_have_no_word_vectors(self) -> None:
        compiled = compile_documents(self.TOOLS, Alike())
        none = {"word_vectors": compiled.word_vectors[:, :0]}
        bare = dataclasses.replace(compiled, arrays={**compiled.arrays, **none})
        scores = self.rank("dough and pastry thing", bare)
        assert scores[2] == pytest.approx(scores[1])

    def test_other_encoders_have_none_beside_them(self) -> None:
        assert compile_documents(self.TOOLS, Topics()).word_vectors.shape == (3, 0)
        assert compile_documents(self.TOOLS, None).word_vectors.shape == (3, 0)

    def test_an_update_keeps_them(self, tmp_path: Path) -> None:
        folder = tmp_path / "index"
        index.build(folder, self.TOOLS[:2], Alike())
        index.update(folder, self.TOOLS[2:], [], Alike())
        compiled = generations.open_current(folder)[1]
        expected = compile_documents(self.TOOLS, Alike())
        np.testing.assert_allclose(compiled.word_vectors, expected.word_vectors, atol=1e-6)

    def test_an_update_after_their_package_came_encodes_all(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "index"
        with monkeypatch.context() as absent:
            for module in (corpus, index):
                absent.setattr(module, "find_beside", lambda _: None)
            index.build(folder, self.TOOLS[:2], Alike())
        index.update(folder, self.TOOLS[2:], [], Alike())
        assert generations.open_current(folder)[1].word_vectors.any(axis=1).all()


class Chance(MadeUpEncoder):
    """Similarities of every size, the same in every run."""

    name = "chance-1"
    dimensions = coarse_dimensions = 4

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = [np.random.default_rng(crc32(text.encode())).normal(size=4) for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), 4)
        scaled: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return scaled


def find_best(compiled: Compiled, request: SearchRequest) -> list[tuple[str, float]]:
    """A product of other rows is summed up in another order: the last digits may differ."""
    hits = answer(compiled, request, Chance()).hits
    return [(hit.qualified_name, round(hit.score, 5)) for hit in hits]


def test_tools_that_words_alone_rule_out_are_none_of_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged or not, the best are the same as when every tool is judged."""
    chosen = random.Random(7)
    vocabulary = [f"word{number}x" for number in range(30)]
    tools = [
        make_tool(number, "s", f"t{number}", " ".join(chosen.choices(vocabulary, k=chosen.randint(1, 5))))
        for number in range(1, 900)
    ]
    compiled = compile_documents(tools, Chance())
    queries = [" ".join(chosen.sample(vocabulary, k=chosen.randint(2, 4))) for _ in range(60)]
    requests = [SearchRequest(parse_query(query), max_results=5) for query in queries]
    ruled_out: list[int] = []
    pick = bm25f._pick_candidates

    def count(*given: Any) -> Any:
        rows = pick(*given)
        ruled_out.append(len(tools) - len(rows))
        return rows

    monkeypatch.setattr(bm25f, "_pick_candidates", count)
    quick = [find_best(compiled, request) for request in requests]
    monkeypatch.setattr(bm25f, "_pick_candidates", lambda *_: np.arange(len(tools)))
    assert quick == [find_best(compiled, request) for request in requests]
    assert sum(left > 600 for left in ruled_out) > 20
