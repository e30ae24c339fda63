"""Regular expressions over the catalog that cannot hang.

The `regex` package runs them: it takes what Python's own syntax takes, gives up at a deadline, which the
standard library cannot, and lets other threads work meanwhile. An engine without backtracking would need no
deadline but knows no lookaround and no back-references, which agents do send.
"""

import time

import numpy as np
import regex

from catalog.domain.errors import InvalidInput
from catalog.search.compiled import Compiled, Mask

# Half of what a caller may wait: the engine counts processor time, which passes slowly on a busy machine.
BUDGET_SECONDS = 0.5


def match_rows(compiled: Compiled, pattern: str, allowed: Mask | None) -> dict[int, str]:
    """The tools a pattern fits, each with the first field it fits, in row order. Raises `InvalidInput`."""
    program = _compile(pattern)
    deadline = time.monotonic() + BUDGET_SECONDS
    rows = range(len(compiled)) if allowed is None else np.flatnonzero(allowed).tolist()
    found: dict[int, str] = {}
    try:
        for row in rows:
            field = _first_fit(compiled, program, row, deadline)
            if field:
                found[row] = field
    except TimeoutError:
        raise InvalidInput.at("pattern", "the pattern takes too long to run") from None
    return found


def _compile(pattern: str) -> "regex.Pattern[str]":
    try:
        return regex.compile(pattern, regex.IGNORECASE)
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        position = getattr(error, "pos", None)
        where = f" (position {position})" if position is not None else ""
        raise InvalidInput.at("pattern", f"not a regular expression: {error}{where}") from error


def _first_fit(compiled: Compiled, program: "regex.Pattern[str]", row: int, deadline: float) -> str | None:
    texts = (
        ("qualified_name", compiled.qualified_names[row]),
        ("name", compiled.names[row]),
        ("description", compiled.descriptions[row]),
        *(("parameter_names", name) for name in compiled.parameter_names[row]),
    )
    remaining_seconds = deadline - time.monotonic()
    if remaining_seconds <= 0:
        raise TimeoutError
    for field, text in texts:
        if program.search(text, timeout=remaining_seconds, concurrent=True):
            return field
    return None
