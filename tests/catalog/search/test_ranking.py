"""The three rankers: what wins, and why."""

import pytest

from catalog.domain.errors import InvalidInput
from catalog.domain.query import parse_query
from catalog.search.answers import answer
from catalog.search.request import Hit, SearchOutcome, SearchRequest, Visible
from tests.catalog.search.samples import compile_tools, make_tool, names, search


def points(hit: Hit) -> dict[tuple[str, str], float]:
    return {(part.term, part.field): part.score for part in hit.parts}


def hit_named(outcome: SearchOutcome, name: str) -> Hit:
    return next(hit for hit in outcome.hits if hit.qualified_name == name)


class TestBm25f:
    def test_more_and_rarer_words_win(self) -> None:
        assert names(search("open an issue on github"))[0] == "mcp__github__create_issue"

    def test_a_server_name_pulls_its_tools_up(self) -> None:
        assert names(search("create issue jira"))[0] == "mcp__jira__create_issue"

    def test_every_field_counts(self) -> None:
        for word, name in {
            "forecast": "mcp__weather__getForecast",
            "workspace": "mcp__slack__list_channels",
            "body": "mcp__github__add_comment",
            "closed": "mcp__github__list_issues",
            "sunshine": "mcp__weather__getForecast",
            "ticket": "mcp__jira__create_issue",
            "bug": "mcp__jira__create_issue",
        }.items():
            assert names(search(word)) == [name]

    def test_words_are_whole_words(self) -> None:
        assert names(search("men")) == []
        assert names(search("comment")) == ["mcp__github__add_comment"]

    def test_spelling_of_the_compound_does_not_matter(self) -> None:
        assert set(names(search("createIssue"))) >= {"mcp__github__create_issue", "mcp__jira__create_issue"}
        assert (
            names(search("get_forecast"))[0] == names(search("getForecast"))[0] == "mcp__weather__getForecast"
        )

    def test_chinese_is_searched(self) -> None:
        assert names(search("搜索")) == ["mcp__bing-cn__bing_search"]

    def test_chinese_characters_count_beside_a_known_pair(self) -> None:
        assert names(search("必应使用指定")) == ["mcp__bing-cn__bing_search"]
        tools = [make_tool(1, "s", "a", "画图和裁剪"), make_tool(2, "s", "b", "画图和旋转照片")]
        assert names(search("画图照相", compile_tools(tools)))[0] == "mcp__s__b"

    def test_chinese_characters_alone_are_no_word(self) -> None:
        outcome = search("搜鱼")
        assert (outcome.outcome, outcome.unmatched_terms) == ("no_match", ("搜鱼",))
        assert names(search("搜")) == ["mcp__bing-cn__bing_search"]

    def test_pair_that_only_a_hidden_tool_has_is_no_word(self) -> None:
        tools = [make_tool(1, "s", "a", "画图"), make_tool(2, "s", "b", "地图")]
        outcome = search("画图", compile_tools(tools), visible=Visible.of([2]))
        assert (outcome.outcome, outcome.unmatched_terms) == ("no_match", ("画图",))

    def test_stop_words_alone_are_searched_as_they_stand(self) -> None:
        assert search("of the").outcome == "matched"
        assert "mcp__slack__list_channels" in names(search("of the"))

    def test_an_explanation_adds_up_to_the_score(self) -> None:
        outcome = search("create an issue in github", explained=True)
        for hit in outcome.hits:
            assert sum(part.score for part in hit.parts) == pytest.approx(hit.score, rel=1e-4)
        best = points(hit_named(outcome, "mcp__github__create_issue"))
        assert best["create", "name"] > 0
        assert best["github", "server"] > 0
        assert ("an", "description") not in best

    def test_longer_texts_are_diluted(self) -> None:
        tools = [
            make_tool(1, "s", "a", "zebra"),
            make_tool(2, "s", "b", "zebra " + "and many other words " * 20),
            make_tool(3, "s", "c", "lion"),
        ]
        assert names(search("zebra", compile_tools(tools))) == ["mcp__s__a", "mcp__s__b"]


class TestKeyword:
    def test_points_are_the_origin_s(self) -> None:
        outcome = search("issue state", ranker="keyword", explained=True)
        assert points(hit_named(outcome, "mcp__github__list_issues")) == {
            ("issue", "name"): 5,
            ("issue", "description"): 3,
            ("state", "parameter_names"): 1,
        }

    def test_a_name_that_is_the_keyword_and_the_whole_query(self) -> None:
        (first, *_) = search("read", ranker="keyword").hits
        # equals 10, in the description 3, the whole query in the name 8 and in the description 4
        assert first.qualified_name == "Read"
        found = search("read a file", ranker="keyword", explained=True).hits[0]
        assert points(found)["read", "name"] == 10
        assert points(found)["read a file", "description"] == 4

    def test_parts_of_words_count(self) -> None:
        assert "mcp__github__list_issues" in names(search("iss", ranker="keyword"))

    def test_repeated_keywords_count_again(self) -> None:
        once, twice = (
            search(text, ranker="keyword").hits[0].score for text in ("comment x", "comment comment x")
        )
        assert twice > once


class TestOverlap:
    def test_points_are_the_origin_s(self) -> None:
        outcome = search("issue repository", ranker="overlap", explained=True)
        assert points(hit_named(outcome, "mcp__github__create_issue")) == {
            ("issue", "name"): 3,
            ("repository", "description"): 1,
        }

    def test_less_than_half_of_the_best_is_cut(self) -> None:
        kept = search("create issue repository", ranker="overlap", max_results=50)
        assert {hit.score for hit in kept.hits} == {7.0, 6.0, 4.0}

    @pytest.mark.parametrize("text", ["getforecast", "`getForecast`", "(getForecast)", "**getForecast**."])
    def test_the_name_itself_wins_by_a_hundred_once(self, text: str) -> None:
        (first,) = search(text, ranker="overlap", explained=True).hits
        assert points(first) == {(text, "exact name"): 100, ("getforecast", "name"): 3}
        assert first.score == 103

    def test_a_qualified_name_gets_the_hundred_too(self) -> None:
        (first,) = search("mcp__weather__getForecast", ranker="overlap").hits
        assert first.score == 100

    def test_a_name_of_many_words_is_first_all_the_same(self) -> None:
        named = " ".join(["ab"] * 40)
        tools = [make_tool(1, "s", named), make_tool(2, "s", "abab", "ab")]
        assert names(search(named, compile_tools(tools), ranker="overlap"))[0] == f"mcp__s__{named}"


@pytest.mark.parametrize("ranker", ["bm25f", "keyword", "overlap"])
class TestEveryWordCounts:
    def test_known_word_behind_many_unknown_ones_is_found(self, ranker: str) -> None:
        text = " ".join(f"zq{number}" for number in range(90)) + " forecast"
        assert len(text) <= 500
        assert names(search(text, ranker=ranker)) == ["mcp__weather__getForecast"]

    def test_stop_words_beside_unknown_ones_find_nothing(self, ranker: str) -> None:
        outcome = search("frobnicate the a of", ranker=ranker)
        assert (outcome.outcome, outcome.unmatched_terms) == ("no_match", ("frobnicate",))
        assert names(search("of the", ranker=ranker))


@pytest.mark.parametrize("ranker", ["keyword", "overlap"])
def test_what_stands_inside_a_word_is_not_unmatched_there(ranker: str) -> None:
    assert search("iss Frobnicate", ranker=ranker).unmatched_terms == ("Frobnicate",)
    assert search("iss Frobnicate").unmatched_terms == ("iss", "Frobnicate")


def test_an_unknown_ranker_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ranker"):
        answer(compile_tools(), SearchRequest(parse_query("x"), ranker="best"), None)
