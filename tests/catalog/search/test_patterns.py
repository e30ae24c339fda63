"""Regular expressions: what they are tried on, and that they come to an end."""

import time
from dataclasses import replace

import pytest
import regex

from catalog.domain.errors import InvalidInput
from catalog.domain.query import parse_pattern
from catalog.search import request as request_module
from catalog.search.answers import answer
from catalog.search.request import MatchOutcome, SearchRequest
from tests.catalog.search.samples import compile_tools, make_tool, match, names
from tests.harness.clocks import set_clock


def test_each_text_is_tried_by_itself() -> None:
    assert names(match("^mcp__jira")) == ["mcp__jira__create_issue"]
    assert names(match("^getforecast$")) == ["mcp__weather__getForecast"]
    assert names(match(r"from disk\.$")) == ["Read"]
    assert names(match("^body$")) == ["mcp__github__add_comment"]
    assert names(match("create_issue.*Open a new")) == []


def test_names_come_before_descriptions() -> None:
    tools = [make_tool(1, "a", "other", "all about cats"), make_tool(2, "b", "cats")]
    assert names(match("cats", compile_tools(tools))) == ["mcp__b__cats", "mcp__a__other"]


def test_lookaround_and_back_references_work() -> None:
    assert names(match(r"^mcp__github__(?!list).*issue")) == ["mcp__github__create_issue"]
    assert names(match(r"(.)\1ues")) == ["mcp__github__list_issues"]


def test_results_are_limited() -> None:
    assert len(match(".", max_results=3).hits) == 3


def test_no_fit_is_no_match() -> None:
    assert match("zzz").outcome == MatchOutcome.NO_MATCH


@pytest.mark.parametrize("pattern", ["(", "[a", "*x", "a{2,1}", "(?P<x", "\\", r"\p{Nope}", "(?1)", "a**"])
def test_an_invalid_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="pattern: not a regular expression"):
        match(pattern)


def test_a_pattern_that_would_take_gigabytes_is_refused_before_it_is_compiled() -> None:
    with pytest.raises(InvalidInput, match="repeats too much"):
        match("(?:(?:a{99}){99}){999}")


def test_no_pattern_is_kept_after_its_search() -> None:
    """Compiled patterns can be large, and the package would keep hundreds."""
    match("^mcp__jira")
    assert not regex._main._cache  # type: ignore[attr-defined]
    assert not regex._main._locale_sensitive  # type: ignore[attr-defined]


def test_a_pattern_that_would_hang_is_refused_in_time() -> None:
    compiled = compile_tools([make_tool(1, "s", "t", "a" * 5000 + "b")])
    started = time.process_time()
    with pytest.raises(InvalidInput, match="takes too long"):
        match("(a|a|aa)+$", compiled)
    assert time.process_time() - started < 1


def test_ordinary_patterns_have_time_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the processor is not work; but there is an end to waiting, too."""
    clock = iter((0.0, 0.5, 0.0, 0.9))
    set_clock(monkeypatch, request_module, monotonic=lambda: next(clock))
    assert names(match("t", compile_tools([make_tool(1, "s", "t")]))) == ["mcp__s__t"]
    with pytest.raises(InvalidInput, match="takes too long"):
        match("t", compile_tools([make_tool(1, "s", "t")]))


SLOW = "(a|a|aa)+$"


def slow_parameters(count: int) -> list[tuple[str, str]]:
    """Their names each take the pattern some hundredths of a second."""
    return [(f"{'a' * 12}{number:03}b", "") for number in range(count)]


def test_time_of_one_tool_with_many_parameters_has_an_end() -> None:
    compiled = compile_tools([make_tool(1, "s", "t", parameters=tuple(slow_parameters(300)))])
    started = time.process_time()
    with pytest.raises(InvalidInput, match="takes too long"):
        match(SLOW, compiled)
    assert time.process_time() - started < 1


def test_two_indexes_of_one_search_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    worked, waited = iter((0.0, 0.2, 0.4)), iter((0.0, 0.5, 0.6))
    set_clock(monkeypatch, request_module, thread_time=worked.__next__, monotonic=waited.__next__)
    compiled = compile_tools([make_tool(1, "s", "t")])
    request = SearchRequest(parse_pattern("t"))
    assert names(answer(compiled, request, None)) == ["mcp__s__t"]
    with pytest.raises(InvalidInput, match="takes too long"):
        answer(compiled, replace(request, visible=None), None)
