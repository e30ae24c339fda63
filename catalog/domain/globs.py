"""Lists of globs over qualified names, bare names and `server/tool`; upper and lower case differ."""

import fnmatch
import re
from collections.abc import Callable
from functools import lru_cache

from catalog.domain.facts import ToolFacts

_WILDCARD = re.compile(r"[*?\[]")

Matches = Callable[[ToolFacts], bool]


@lru_cache(maxsize=1_024)
def compile_globs(globs: tuple[str, ...]) -> Matches:
    """One test for a whole list: names are looked up, and all patterns are one regular expression."""
    if "*" in globs:
        return lambda _tool: True
    names = frozenset(glob for glob in globs if not _WILDCARD.search(glob))
    patterns = [glob for glob in globs if glob not in names]
    if names and patterns:
        by_name, by_pattern = _match_names(names), _match_patterns(patterns)
        return lambda tool: by_name(tool) or by_pattern(tool)
    if patterns:
        return _match_patterns(patterns)
    return _match_names(names) if names else lambda _tool: False


def _match_names(names: frozenset[str]) -> Matches:
    return lambda tool: tool.name in names or tool.tool in names or f"{tool.server}/{tool.tool}" in names


def _match_patterns(patterns: list[str]) -> Matches:
    match = re.compile("|".join(map(fnmatch.translate, patterns))).match

    def matches(tool: ToolFacts) -> bool:
        own = tool.tool
        return bool(match(tool.name) or match(own) or match(f"{tool.server}/{own}"))

    return matches
