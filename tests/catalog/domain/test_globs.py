"""A list of globs matches what its globs match one by one, whichever way each is tested."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.facts import ToolFacts
from catalog.domain.globs import compile_globs, find_idle
from catalog.domain.limits import GLOB_LIST_GLOBS, GLOB_WILDCARDS
from catalog.domain.values import BadValueError, read_globs

NAMES = st.text("ab/[_", min_size=1, max_size=5)
GLOBS = st.lists(st.text("ab/[]_!*?\0", min_size=1, max_size=6), max_size=4)


def matches_plainly(globs: tuple[str, ...], tool: ToolFacts) -> bool:
    texts = (tool.name, tool.tool, f"{tool.server}/{tool.tool}")
    return any(fnmatchcase(text, glob) for glob in globs for text in texts)


@given(GLOBS, NAMES, NAMES, NAMES)
def test_any_list_matches_as_its_globs_do(globs: list[str], name: str, tool: str, server: str) -> None:
    facts = ToolFacts(name=name, tool=tool, server=server)
    assert compile_globs(tuple(globs))(facts) == matches_plainly(tuple(globs), facts)


@pytest.mark.parametrize(
    ("glob", "is_meant"),
    [
        ("*", True),
        ("**", True),
        ("create_issue", True),
        ("Create_issue", False),
        ("create_*", True),
        ("*issue*", True),
        ("*issue", True),
        ("mcp__*__create_?ssue", True),
        ("mcp__*__delete_?ssue", False),
        ("github/*", True),
        ("[c]reate_issue", True),
        ("git", False),
    ],
)
def test_each_shape_of_glob(glob: str, is_meant: bool) -> None:
    tool = ToolFacts(name="mcp__github__create_issue", tool="create_issue", server="github")
    assert compile_globs((glob,))(tool) is is_meant


def test_a_glob_has_few_wildcards() -> None:
    """A thousand with a hundred each took seconds to prepare."""
    assert read_globs(["a*" * GLOB_WILDCARDS]) == ("a*" * GLOB_WILDCARDS,)
    for glob in ("a*" * (GLOB_WILDCARDS + 1), "?" * 20, "[a]" * 20):
        with pytest.raises(BadValueError, match="wildcards"):
            read_globs(["fine", glob])


def test_lists_that_people_write_are_taken_at_any_length() -> None:
    for shape in ("tool_{}", "server{}/*", "*_{}", "mcp__server{}__get_*"):
        globs = [shape.format(number) for number in range(GLOB_LIST_GLOBS)]
        assert len(read_globs(globs)) == GLOB_LIST_GLOBS
    assert read_globs(["mcp__*__get_*", "*/list_?", "*[rR]ead*"] * 20)
    assert read_globs(["*read*"] * 300)


@pytest.mark.parametrize("glob", ["*e*_*s*Q", "?*a", "[ab]*c", "*a?"])
def test_a_list_that_takes_too_much_work_is_refused(glob: str) -> None:
    with pytest.raises(BadValueError, match="at most 60 patterns with wildcards inside"):
        read_globs([glob] * 61)
    with pytest.raises(BadValueError, match="300 of the shape"):
        read_globs([glob, *["*a*"] * 296])


def test_a_glob_is_text_that_every_database_takes() -> None:
    for glob in ("a\0b", "a\ud800"):
        with pytest.raises(BadValueError, match="without NUL"):
            read_globs([glob])


@given(GLOBS, NAMES, NAMES, NAMES)
def test_unmatched_are_those_that_match_no_tool(globs: list[str], name: str, tool: str, server: str) -> None:
    tools = [ToolFacts(name=name, tool=tool, server=server), ToolFacts(name="b_a", tool="b", server="a")]
    expected = [glob for glob in globs if not any(matches_plainly((glob,), each) for each in tools)]
    assert list(find_idle(globs, tools)) == expected
