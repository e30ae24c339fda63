"""Lists of globs over qualified names, bare names and `server/tool`; upper and lower case differ."""

import fnmatch
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import methodcaller

from catalog.domain.facts import ToolFacts

_WILDCARD = re.compile(r"[*?\[]")

Matches = Callable[[ToolFacts], bool]
TextTest = Callable[[str], object]


@lru_cache(maxsize=1_024)
def compile_globs(globs: tuple[str, ...]) -> Matches:
    """One test for a whole list. The common shapes are string methods, which cost far less than patterns."""
    if "*" in globs:
        return lambda _tool: True
    tests = tuple(_compile_tests(globs))

    def matches(tool: ToolFacts) -> bool:
        name, own = tool.name, tool.tool
        path = f"{tool.server}/{own}"
        for test in tests:  # noqa: SIM110 - with any() this takes half as long again
            if test(name) or test(own) or test(path):
                return True
        return False

    return matches


def _compile_tests(globs: tuple[str, ...]) -> Iterator[TextTest]:
    names, prefixes = [], []
    for glob in globs:
        start, inner, end = glob[:1] == "*", glob[1:-1], glob[-1:] == "*"
        if not _WILDCARD.search(glob):
            names.append(glob)
        elif end and not _WILDCARD.search(glob[:-1]):
            prefixes.append(glob[:-1])
        elif start and end and not _WILDCARD.search(inner):
            yield methodcaller("__contains__", inner)
        else:
            yield _compile_pattern(glob)
    if names:
        yield frozenset(names).__contains__
    if prefixes:
        yield methodcaller("startswith", tuple(prefixes))


def _compile_pattern(glob: str) -> TextTest:
    """What the glob says literally is looked for first: most names do not have it."""
    literal = max(re.split(r"[*?]", glob.partition("[")[0]), key=len)
    match = re.compile(fnmatch.translate(glob)).match
    return lambda text: literal in text and match(text)
