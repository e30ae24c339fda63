"""Answers of a search, form by form, and that they never reveal hidden tools."""

import pytest

from catalog.search.request import MatchOutcome, Visible
from tests.catalog.search.samples import TOOLS, compile_tools, make_tool, match, names, search

RANKERS = ("bm25f", "keyword", "overlap")
WITHOUT_GITHUB = Visible.of([tool.id for tool in TOOLS if tool.server != "github"])


class TestExactNames:
    @pytest.mark.parametrize("ranker", RANKERS)
    @pytest.mark.parametrize(
        "quoted", ["{}", "`{}`", '"{}"', "'{}'", "({})", "{}.", "**{}**", "[{}]", "<{}>", "- {}:", "（{}）"]
    )
    def test_every_name_finds_its_tool_first(self, ranker: str, quoted: str) -> None:
        for tool in TOOLS:
            bare = search(quoted.format(tool.name), ranker=ranker).hits[0]
            assert next(each.name for each in TOOLS if each.id == bare.id) == tool.name
            qualified = search(quoted.format(tool.qualified_name), ranker=ranker).hits[0]
            assert qualified.qualified_name == tool.qualified_name

    def test_a_name_wins_over_any_wealth_of_words(self) -> None:
        tools = [
            make_tool(1, "s", "get", ""),
            make_tool(2, "get", "get_get", "get " * 50, title="get", keywords="get"),
        ]
        assert names(search("get", compile_tools(tools)))[0] == "mcp__s__get"

    def test_a_name_of_stop_words_or_signs_is_found(self) -> None:
        tools = [make_tool(1, "s", "do"), make_tool(2, "s", "???"), make_tool(3, "s", "other", "what I do")]
        compiled = compile_tools(tools)
        assert names(search("do", compiled))[0] == "mcp__s__do"
        assert names(search("???", compiled)) == ["mcp__s__???"]

    def test_letter_case_matters_only_when_both_exist(self) -> None:
        compiled = compile_tools([make_tool(1, "a", "Run"), make_tool(2, "b", "run")])
        assert names(search("Run", compiled))[0] == "mcp__a__Run"
        assert names(search("run", compiled))[0] == "mcp__b__run"
        assert search("RUN", compiled).hits[0].score > 1

    def test_punctuation_of_the_name_itself_stays(self) -> None:
        tools = [make_tool(1, "s", "_run_"), make_tool(2, "s", "run", "run run")]
        compiled = compile_tools(tools)
        for ranker in RANKERS:
            assert names(search("`_run_`", compiled, ranker=ranker))[0] == "mcp__s___run_"
            assert names(search("(run)", compiled, ranker=ranker))[0] == "mcp__s__run"

    def test_the_reason_is_explained(self) -> None:
        assert search("create_issue", explained=True).hits[0].parts[0].field == "exact name"


class TestSelect:
    def test_gives_exactly_the_named_tools(self) -> None:
        outcome = search("select:Read,mcp__slack__send_message", max_results=1)
        assert (outcome.form, outcome.outcome) == ("select", MatchOutcome.MATCHED)
        assert names(outcome) == ["Read", "mcp__slack__send_message"]

    def test_punctuation_around_a_name_comes_off(self) -> None:
        assert names(search("select:(Read),**getForecast**")) == ["Read", "mcp__weather__getForecast"]

    def test_a_bare_name_means_every_tool_of_that_name(self) -> None:
        assert names(search("select:create_issue")) == [
            "mcp__github__create_issue",
            "mcp__jira__create_issue",
        ]

    def test_unknown_and_hidden_names_are_missing_alike(self) -> None:
        outcome = search("select:nope,list_issues,Read", visible=WITHOUT_GITHUB)
        assert outcome.missing == ("nope", "list_issues")
        assert names(outcome) == ["Read"]

    def test_nothing_found_is_no_match(self) -> None:
        assert search("select:nope").outcome == MatchOutcome.NO_MATCH


class TestRequired:
    def test_every_required_word_is_a_word_of_the_qualified_name(self) -> None:
        assert names(search("+slack send")) == ["mcp__slack__send_message", "mcp__slack__list_channels"]
        assert names(search("+slack +list")) == ["mcp__slack__list_channels"]

    def test_parts_of_words_do_not_do(self) -> None:
        assert search("+sla send").outcome == MatchOutcome.NO_MATCH

    def test_words_of_the_description_do_not_do(self) -> None:
        assert search("+repository issue").outcome == MatchOutcome.NO_MATCH

    def test_case_and_spelling_of_compounds_do_not_matter(self) -> None:
        assert (
            names(search("+GetForecast")) == names(search("+get_forecast")) == ["mcp__weather__getForecast"]
        )
        assert len(search("+GitHub issue").hits) == 3

    def test_the_rest_orders_and_lists_all(self) -> None:
        outcome = search("+github comment", max_results=50)
        assert names(outcome)[0] == "mcp__github__add_comment"
        assert len(outcome.hits) == 3

    @pytest.mark.parametrize("ranker", RANKERS)
    def test_holds_for_every_ranker(self, ranker: str) -> None:
        assert names(search("+jira create", ranker=ranker)) == ["mcp__jira__create_issue"]

    def test_lacking_words_are_reported(self) -> None:
        assert search("+teams send frob").unmatched_terms == ("teams", "frob")

    def test_words_that_other_tools_have_are_not_unmatched(self) -> None:
        assert search("+slack forecast").unmatched_terms == ()


class TestVisibility:
    @pytest.mark.parametrize("ranker", RANKERS)
    @pytest.mark.parametrize(
        "text", ["create an issue", "+github issue", "create_issue", "select:add_comment"]
    )
    def test_hidden_tools_never_show(self, ranker: str, text: str) -> None:
        shown = names(search(text, ranker=ranker, visible=WITHOUT_GITHUB, max_results=50))
        assert not [name for name in shown if "github" in name]

    def test_patterns_see_visible_tools_only(self) -> None:
        assert names(match("issue", visible=WITHOUT_GITHUB)) == ["mcp__jira__create_issue"]

    def test_words_only_hidden_tools_have_are_unmatched(self) -> None:
        outcome = search("comment", visible=WITHOUT_GITHUB)
        assert (outcome.outcome, outcome.unmatched_terms) == (MatchOutcome.NO_MATCH, ("comment",))

    def test_nothing_visible_is_nothing_found(self) -> None:
        assert search("issue", visible=Visible.of([])).outcome == MatchOutcome.NO_MATCH

    def test_a_server_is_a_mask_too(self) -> None:
        assert names(search("issue", server="jira")) == ["mcp__jira__create_issue"]
        assert search("issue", server="jira", visible=Visible.of([1])).hits == ()
        assert search("issue", server="nowhere").hits == ()


class TestOutcome:
    def test_an_empty_query_is_a_listing(self) -> None:
        assert search(" ").outcome == MatchOutcome.LISTING

    def test_words_nobody_has_are_returned_as_typed(self) -> None:
        outcome = search("Frobnicate the ISSUES quickly")
        assert outcome.outcome == MatchOutcome.MATCHED
        assert outcome.unmatched_terms == ("Frobnicate", "quickly")

    def test_half_known_compounds_report_the_unknown_half(self) -> None:
        assert search("frobnicateIssue").unmatched_terms == ("frobnicate",)
        assert search("frobnicateQuickly").unmatched_terms == ("frobnicateQuickly",)

    def test_no_known_word_is_no_match(self) -> None:
        outcome = search("please frobnicate the unheard")
        assert (outcome.outcome, outcome.hits) == (MatchOutcome.NO_MATCH, ())
        assert outcome.unmatched_terms == ("frobnicate", "unheard")

    def test_results_are_limited_and_ordered(self) -> None:
        outcome = search("issue list create message", max_results=3)
        scores = [hit.score for hit in outcome.hits]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)

    def test_equal_scores_are_in_the_order_of_names(self) -> None:
        tools = [make_tool(number, "s", f"t{9 - number}", "same") for number in range(8)]
        assert names(search("same", compile_tools(tools))) == [f"mcp__s__t{number}" for number in range(2, 7)]

    def test_a_cutoff_drops_the_weak(self) -> None:
        every = search("create issue", max_results=50).hits
        kept = search("create issue", max_results=50, score_cutoff=0.9).hits
        assert 0 < len(kept) < len(every)
        assert min(hit.score for hit in kept) >= 0.9 * every[0].score

    def test_an_empty_catalog_answers(self) -> None:
        for text in ("x", "+x", "select:x", ""):
            assert search(text, compile_tools([])).hits == ()
