"""Long stretches of encoded text: a reader cannot tell what they say, a model may."""

import re
from collections.abc import Iterator

LEAST_CHARS = 120
LEAST_DIFFERENT = 10
_RUN = re.compile(r"[A-Za-z0-9+/=_-]+")
_LETTER, _DIGIT = re.compile(r"[A-Za-z]"), re.compile(r"[0-9]")


def find_encoded(text: str) -> Iterator[re.Match[str]]:
    """Runs without a blank that hold letters and digits; rulers drawn with one sign are none."""
    for run in _RUN.finditer(text):
        if run.end() - run.start() < LEAST_CHARS:
            continue
        found = run[0]
        if len(set(found)) >= LEAST_DIFFERENT and _LETTER.search(found) and _DIGIT.search(found):
            yield run
