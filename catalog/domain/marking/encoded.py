"""Finds long encoded texts, which people cannot read and a model may."""

import re
from collections.abc import Iterator

LEAST_CHARS = 120
LEAST_DIFFERENT = 10
LEAST_GROUP_CHARS = 4
_RUN = re.compile(r"[A-Za-z0-9+/=_-]+")
_BLANKS = re.compile(r"\s{1,3}")
_LETTER, _DIGIT = re.compile(r"[A-Za-z]"), re.compile(r"[0-9]")
_SMALL, _CAPITAL = re.compile(r"[a-z]"), re.compile(r"[A-Z]")


def find_encoded(text: str) -> Iterator[tuple[int, str]]:
    """The start and text of each: runs of letters and digits without blanks, and such runs cut into groups of
    equal length. Lines drawn with one character do not count.
    """
    start, groups, last_end = 0, list[str](), -1
    for run in _RUN.finditer(text):
        found = run[0]
        if len(found) >= LEAST_CHARS and _is_encoded(found):
            yield run.start(), found
        if groups and len(found) <= len(groups[-1]) and _BLANKS.fullmatch(text, last_end, run.start()):
            groups.append(found)
            is_over = len(found) < len(groups[0])
        else:
            is_over = True
        if is_over:
            yield from _join_groups(start, groups)
            start, groups = run.start(), [found] if len(found) >= LEAST_GROUP_CHARS else []
        last_end = run.end()
    yield from _join_groups(start, groups)


def _join_groups(start: int, groups: list[str]) -> Iterator[tuple[int, str]]:
    """Ordinary words rarely have equal lengths and contain no digits."""
    if len(groups) > 1 and sum(map(len, groups)) >= LEAST_CHARS:
        found = "".join(groups)
        if _is_encoded(found) and _SMALL.search(found) and _CAPITAL.search(found):
            yield start, " ".join(groups)


def _is_encoded(found: str) -> bool:
    is_varied = len(set(found)) >= LEAST_DIFFERENT
    return is_varied and bool(_LETTER.search(found) and _DIGIT.search(found))
