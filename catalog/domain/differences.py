"""Longest common subsequence by E. W. Myers, "An O(ND) Difference Algorithm", 1986.

The work grows with the length times the number of differences, so it is counted and limited.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Optional


class Stretch(NamedTuple):
    """`size` equal items, at `old` of the one sequence and at `new` of the other."""

    old: int
    new: int
    size: int


class _Path(NamedTuple):
    """The last stretch of a path through both sequences, linked to the ones before it."""

    before: Optional["_Path"]
    stretch: Stretch


class Compared(NamedTuple):
    """`stretches` is None where the step limit was reached; `steps` are those taken."""

    stretches: list[Stretch] | None
    steps: int


def find_common(old: Sequence[Hashable], new: Sequence[Hashable], *, most_steps: int) -> Compared:
    """The longest common subsequence; a step is one comparison."""
    start = _count_alike(old, new)
    end = _count_alike(old[start:][::-1], new[start:][::-1])
    middle_old, middle_new = _number(old[start : len(old) - end], new[start : len(new) - end])
    found, steps = _search(middle_old, middle_new, most_steps)
    if found is None:
        return Compared(None, steps)
    inner = [Stretch(each.old + start, each.new + start, each.size) for each in found]
    around = [Stretch(0, 0, start), *inner, Stretch(len(old) - end, len(new) - end, end)]
    return Compared([stretch for stretch in around if stretch.size], steps)


def common_ends(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Stretch]:
    """The common prefix and suffix, in one pass."""
    start = _count_alike(old, new)
    end = _count_alike(old[start:][::-1], new[start:][::-1])
    ends = [Stretch(0, 0, start), Stretch(len(old) - end, len(new) - end, end)]
    return [stretch for stretch in ends if stretch.size]


def _count_alike(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    for count, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return count
    return min(len(old), len(new))


def _number(old: Sequence[Hashable], new: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Numbers equal items alike, because comparing numbers is faster than comparing long texts."""
    numbers: dict[Hashable, int] = {}
    return (
        [numbers.setdefault(item, len(numbers)) for item in old],
        [numbers.setdefault(item, len(numbers)) for item in new],
    )


def _search(old: list[int], new: list[int], most_steps: int) -> tuple[list[Stretch] | None, int]:
    """For a growing number of differences, how far each diagonal reaches."""
    reached: dict[int, tuple[int, _Path | None]] = {1: (0, None)}
    steps = 0
    for differences in range(len(old) + len(new) + 1):
        for diagonal in range(-differences, differences + 1, 2):
            at, path = _go_on(reached, diagonal, differences)
            start, most = at, min(len(old), len(new) + diagonal)
            while at < most and old[at] == new[at - diagonal]:
                at += 1
            if at > start:
                path = _Path(path, Stretch(start, start - diagonal, at - start))
            reached[diagonal] = at, path
            steps += 1 + at - start
            if at >= len(old) and at - diagonal >= len(new):
                return _unwind(path), steps
        if steps > most_steps:
            break
    return None, steps


def _go_on(
    reached: dict[int, tuple[int, _Path | None]], diagonal: int, differences: int
) -> tuple[int, _Path | None]:
    """Continues from the neighbouring diagonal that is further: an insertion or a deletion."""
    is_first, is_last = diagonal == -differences, diagonal == differences
    if is_first or (not is_last and reached[diagonal - 1][0] < reached[diagonal + 1][0]):
        return reached[diagonal + 1]
    at, path = reached[diagonal - 1]
    return at + 1, path


def _unwind(path: _Path | None) -> list[Stretch]:
    stretches = []
    while path:
        stretches.append(path.stretch)
        path = path.before
    return stretches[::-1]
