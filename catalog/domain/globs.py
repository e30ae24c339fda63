"""Lists of globs over qualified names, bare names and `server/tool`, case-sensitive.

Four shapes are tested by string methods, which are fast: `name`, `name*`, `*name` and `*name*`. Any other
glob is a regular expression, tried only where its longest literal part occurs in the text. `measure_globs`
gives the cost of a list, so that an expensive one can be refused.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from catalog.domain.limits import GLOB_LISTS_KEPT, GLOB_WORK_CONTAINED, GLOB_WORK_PATTERN

_WILDCARD = re.compile(r"[*?\[]")
_NOWHERE = "\0"  # in no name of a tool: between two names nothing can be found


class Named(Protocol):
    """The names that globs match: a tool's qualified name, its own name and its server's."""

    @property
    def name(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def server(self) -> str: ...


Matches = Callable[[Named], bool]


@dataclass(slots=True)
class _Sorted:
    """The literal parts of a list's globs by shape, and the globs of other shapes."""

    names: set[str] = field(default_factory=set)
    starts: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def measure_globs(globs: Sequence[str]) -> int:
    """The cost of trying the list on one tool, in units of `GLOB_WORK`."""
    by_shape = _sort(globs)
    return len(by_shape.parts) * GLOB_WORK_CONTAINED + len(by_shape.others) * GLOB_WORK_PATTERN


def find_idle(globs: Iterable[str], tools: Sequence[Named]) -> Iterator[str]:
    """The globs that no tool matches. One that matches nothing is tried on every tool."""
    return (glob for glob in globs if not any(map(_compile((glob,)), tools)))


@lru_cache(maxsize=GLOB_LISTS_KEPT)
def compile_globs(globs: tuple[str, ...]) -> Matches:
    """One predicate for a whole list."""
    return _compile(globs)


def _compile(globs: Sequence[str]) -> Matches:
    if "*" in globs:
        return lambda _tool: True
    by_shape = _sort(globs)
    at_ends = _test_ends(by_shape) if by_shape.names or by_shape.starts or by_shape.ends else None
    inside = _test_inside(by_shape) if by_shape.parts or by_shape.others else None
    if at_ends and inside:
        return lambda tool: at_ends(tool) or inside(tool)
    return at_ends or inside or (lambda _tool: False)


def _test_ends(by_shape: _Sorted) -> Matches:
    names, starts, ends = frozenset(by_shape.names), tuple(by_shape.starts), tuple(by_shape.ends)

    def matches(tool: Named) -> bool:
        name, own = tool.name, tool.tool
        path = f"{tool.server}/{own}"
        if name in names or own in names or path in names:
            return True
        if starts and (name.startswith(starts) or own.startswith(starts) or path.startswith(starts)):
            return True
        # A path ends in the tool's own name.
        return bool(ends) and (name.endswith(ends) or path.endswith(ends))

    return matches


def _test_inside(by_shape: _Sorted) -> Matches:
    parts = tuple(by_shape.parts)
    patterns = tuple((_longest_part(glob), _compile_pattern(glob)) for glob in by_shape.others)

    def matches(tool: Named) -> bool:
        name, own = tool.name, tool.tool
        path = f"{tool.server}/{own}"
        text = f"{name}{_NOWHERE}{path}"
        for part in parts:
            if part in text:
                return True
        for part, match in patterns:  # noqa: SIM110 - with any() this takes half as long again
            if part in text and (match(name) or match(own) or match(path)):
                return True
        return False

    return matches


def _sort(globs: Sequence[str]) -> _Sorted:
    by_shape = _Sorted()
    for glob in globs:
        inner = glob.strip("*")
        if _WILDCARD.search(inner) or _NOWHERE in glob:
            by_shape.others.append(glob)
        elif inner == glob:
            by_shape.names.add(glob)
        elif not glob.startswith("*"):
            by_shape.starts.append(inner)
        elif not glob.endswith("*"):
            by_shape.ends.append(inner)
        else:
            by_shape.parts.append(inner)
    return by_shape


def _longest_part(glob: str) -> str:
    """The longest literal part that a matching name must contain."""
    return max(re.split(r"[*?]", glob.partition("[")[0]), key=len)


def _compile_pattern(glob: str) -> Callable[[str], object]:
    return re.compile(fnmatch.translate(glob)).match
