"""Runs regular expressions over the catalog with a time limit.

The `regex` package runs them: it has a timeout, which the standard library lacks, and releases the GIL. An
engine without backtracking would need no timeout, but it lacks lookaround and back-references, which agents
do send.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import regex

from catalog.domain.errors import InvalidInput
from catalog.domain.patterns import read_pattern
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled
from catalog.search.request import PatternDeadline

Fits = Callable[[str], bool]


def match_rows(
    compiled: Compiled, pattern: str, allowed: Mask | None, deadline: PatternDeadline
) -> dict[int, str]:
    """The tools a pattern fits, each with the first field it fits, in row order. Raises `InvalidInput`."""
    program = _compile(pattern)

    def fits(text: str) -> bool:
        timeout = deadline.seconds_for_next_text()
        return program.search(text, timeout=timeout, concurrent=True) is not None

    fits_parameter = cache(fits)  # many tools have parameters of the same name
    rows = range(len(compiled)) if allowed is None else np.flatnonzero(allowed).tolist()
    found: dict[int, str] = {}
    try:
        for row in rows:
            field = _first_fit(compiled, row, fits, fits_parameter)
            if field:
                found[row] = field
    except TimeoutError:
        raise InvalidInput.at("pattern", "the pattern takes too long to run") from None
    return found


def _compile(pattern: str) -> "regex.Pattern[str]":
    try:
        # The package would keep the last five hundred patterns, whatever their size.
        return regex.compile(read_pattern(pattern), cache_pattern=False)
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        raise InvalidInput.at("pattern", f"not a regular expression: {error}") from error
    finally:
        regex.purge()  # else a note of each pattern stays, cached or not


def _first_fit(compiled: Compiled, row: int, fits: Fits, fits_parameter: Fits) -> str | None:
    if fits(compiled.qualified_names[row]):
        return "qualified_name"
    if fits(compiled.names[row]):
        return "name"
    if fits(compiled.descriptions[row]):
        return "description"
    return "parameter_names" if any(map(fits_parameter, compiled.parameter_names[row])) else None
