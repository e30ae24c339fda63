"""A list of globs matches what its globs match one by one, whichever way each is tested."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.facts import ToolFacts
from catalog.domain.globs import compile_globs
from catalog.domain.values import MAX_GLOB_WILDCARDS, BadValueError, read_globs

NAMES = st.text("ab/[_", min_size=1, max_size=5)
GLOBS = st.lists(st.text("ab/[]_!*?", min_size=1, max_size=6), max_size=4)


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
    assert read_globs(["a*" * MAX_GLOB_WILDCARDS]) == ("a*" * MAX_GLOB_WILDCARDS,)
    for glob in ("a*" * (MAX_GLOB_WILDCARDS + 1), "?" * 20, "[a]" * 20):
        with pytest.raises(BadValueError, match="wildcards"):
            read_globs(["fine", glob])
