"""Regular expressions over the catalog that cannot hang.

The `regex` package runs them: it takes what Python's own syntax takes, gives up at a deadline, which the
standard library cannot, and lets other threads work meanwhile. An engine without backtracking would need no
deadline but knows no lookaround and no back-references, which agents do send.
"""

import time
from collections.abc import Callable
from functools import cache

import numpy as np
import regex

from catalog.domain.errors import InvalidInput
from catalog.search.arrays import Mask
from catalog.search.compiled import Compiled

Fits = Callable[[str], bool]

WORK_SECONDS = 0.3  # of processor time: on a busy machine an ordinary pattern takes no more of that
WAIT_SECONDS = 0.8
TEXT_SECONDS = 0.1  # of processor time; what takes longer on one text would take for ever on some other


def match_rows(compiled: Compiled, pattern: str, allowed: Mask | None) -> dict[int, str]:
    """The tools a pattern fits, each with the first field it fits, in row order. Raises `InvalidInput`."""
    program = _compile(pattern)

    def fits(text: str) -> bool:
        return program.search(text, timeout=TEXT_SECONDS, concurrent=True) is not None

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
        if waited_seconds < WORK_SECONDS:
            return
        if waited_seconds > WAIT_SECONDS or time.thread_time() - worked > WORK_SECONDS:
            raise TimeoutError

    return check


def _compile(pattern: str) -> "regex.Pattern[str]":
    try:
        return regex.compile(pattern, regex.IGNORECASE)
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        position = getattr(error, "pos", None)
        where = f" (position {position})" if position is not None else ""
        raise InvalidInput.at("pattern", f"not a regular expression: {error}{where}") from error


def _first_fit(compiled: Compiled, row: int, fits: Fits, fits_parameter: Fits) -> str | None:
    if fits(compiled.qualified_names[row]):
        return "qualified_name"
    if fits(compiled.names[row]):
        return "name"
    if fits(compiled.descriptions[row]):
        return "description"
    return "parameter_names" if any(map(fits_parameter, compiled.parameter_names[row])) else None
