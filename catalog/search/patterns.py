"""Regular expressions over the catalog that cannot hang.

The `regex` package runs them: it gives up at a deadline, which the standard library cannot, and lets other
threads work meanwhile. An engine without backtracking would need no
deadline but knows no lookaround and no back-references, which agents do send.
"""

import time
from collections.abc import Callable
from functools import cache

import numpy as np
import regex

from catalog.domain.errors import InvalidInput
from catalog.domain.limits import PATTERN_TEXT_SECONDS, PATTERN_WAIT_SECONDS, PATTERN_WORK_SECONDS
from catalog.domain.patterns import read_pattern
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled

Fits = Callable[[str], bool]


def match_rows(compiled: Compiled, pattern: str, allowed: Mask | None) -> dict[int, str]:
    """The tools a pattern fits, each with the first field it fits, in row order. Raises `InvalidInput`."""
    program = _compile(pattern)

    def fits(text: str) -> bool:
        return program.search(text, timeout=PATTERN_TEXT_SECONDS, concurrent=True) is not None

    fits_parameter = cache(fits)  # many tools have parameters of the same name
    check_time = _start_clock()
    rows = range(len(compiled)) if allowed is None else np.flatnonzero(allowed).tolist()
    found: dict[int, str] = {}
    try:
        for row in rows:
            check_time()
            field = _first_fit(compiled, row, fits, fits_parameter)
            if field:
                found[row] = field
    except TimeoutError:
        raise InvalidInput.at("pattern", "the pattern takes too long to run") from None
    return found


def _start_clock() -> Callable[[], None]:
    """What raises `TimeoutError` when the time is up. Processor time is dear to ask for: only where it may
    have passed.
    """
    started, worked = time.monotonic(), time.thread_time()

    def check() -> None:
        waited_seconds = time.monotonic() - started
        if waited_seconds < PATTERN_WORK_SECONDS:
            return
        if waited_seconds > PATTERN_WAIT_SECONDS or time.thread_time() - worked > PATTERN_WORK_SECONDS:
            raise TimeoutError

    return check


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
