"""Patterns of a search: read by Python's parser, measured, written out for the engine."""

import re

import pytest
import regex

from catalog.domain.errors import InvalidInput
from catalog.domain.patterns import read_pattern

TEXTS = (
    *(
        "",
        "Read",
        "read read",
        "mcp__github__create_issue",
        "Öl 12",
        "a{2}b",
        "[x] #1",
        "line\nnext",
        "aab",
        "hb]",
    ),
)
PATTERNS = [
    r"read",
    r"^read$",
    r"\bread\b",
    r"\Ba",
    r"\Ar.*d\Z",
    r"issue|read",
    r"[a-f_]+e",
    r"[^a-z]",
    r"[\w-]{2,4}",
    r"[]x]",
    r".",
    r"ö",
    r"[\d\s]{2}",
    r"[^a]",
    r"(.)a",
    r"(a)\1",
    r"(?P<x>a)(?P=x)",
    r"(a)?(?(1)a|b)",
    r"(?=a)a",
    r"(?!r).",
    r"(?<=_)c",
    r"(?<!_)c",
    r"(?:)",
    r"(?!)|b",
    r"ge|gi|g_",
    r"\N{COLON}|d",
    r"a{2}b",
    r"a\{2\}b",
    r"a{x}|a{2}",
    r"a{1,}?b",
    r"a*+b",
    r"(?>a+)b",
    r"(?-i:Read)",
    r"(?i:R)ead",
    r"(?s:e.n)",
    r"(?s)e.n",
    r"(?m)^next",
    r"(?x)r#remark",
    r"[[:alpha:]x]",
    r"(?:[[:alpha:])]b{0}[[:alpha:](?:]){1}",
]


@pytest.mark.parametrize("pattern", [*PATTERNS, "(?x) r e a d # a remark", "(?x:r e) a", "e.c|e_ c"])
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_what_is_written_finds_what_was_read(pattern: str) -> None:
    meant, written = re.compile(pattern, re.IGNORECASE), regex.compile(read_pattern(pattern))
    for text in TEXTS:
        expected, found = meant.search(text), written.search(text)
        assert (found and found.span()) == (expected and expected.span()), text


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1000000}",
        "(?:a{1000}){1000}",
        "(?:(?:(?:(?:(?:a{99}){99}){99}){99}){99})",
        "((((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9}){9})",
        "(?:" * 33 + "a" + "b)+" * 33,  # each lays its inside out twice
        "(" * 30 + "a" + "b)+?" * 30,
        "(?:[ab]{1,99}c){999,}",
        "(?=(?!(?>(a|bc){70}){70}))",
    ],
)
def test_a_pattern_that_the_engine_would_make_too_much_of_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="pattern: the pattern repeats too much"):
        read_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(?:abc){e<=9}", "a{1 000}", "{", "a{,b}"])
def test_braces_that_are_no_repeat_are_signs(pattern: str) -> None:
    found = regex.compile(read_pattern(pattern)).search(pattern.replace("(?:", "").replace(")", ""))
    assert found is not None


@pytest.mark.parametrize(
    "pattern", ["(?R)", "(?V1)a", r"\p{L}", "(?P>x)", "(?r)a", r"\X", "(?|a|b)", "a{2}{3}"]
)
def test_syntax_that_only_other_engines_know_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="not a regular expression"):
        read_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
        r"(?:\d{1,3}\.){3}\d{1,3}",
        "create.{0,200}issue.{0,200}repository",
        r"^(?:mcp__)?(\w+)__(get|list|search)_\w+$",
        "(?:(?:a+b)+c)+",
    ],
)
def test_patterns_that_people_write_are_taken(pattern: str) -> None:
    assert read_pattern(pattern)
