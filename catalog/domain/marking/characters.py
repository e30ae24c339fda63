"""Finds invisible characters, and those that make text look different from what it is."""

import re

from catalog.domain.marking.mark import MarkKind

_BLACK_FLAG = "\U0001f3f4"
_JOINERS = "\u200c\u200d"  # part of many scripts and emoji, out of place beside a Latin letter
_LATIN = "\\x00-\u024f"

CHARACTERS: tuple[tuple[MarkKind, re.Pattern[str]], ...] = (
    # The flags of England, Scotland and Wales are written in tags, and are no secret.
    (
        MarkKind.TAGS,
        re.compile(
            f"{_BLACK_FLAG}[\U000e0020-\U000e007e]{{1,6}}\U000e007f|(?P<found>[\U000e0000-\U000e007f]+)"
        ),
    ),
    (
        MarkKind.INVISIBLE,
        re.compile(
            "(?P<found>"
            "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u2800\u3164"
            "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
            "\U000e0100-\U000e01ef]+"
            "|[\ufe0e\ufe0f]{2,}"
            f"|(?<=[{_LATIN}])[{_JOINERS}]|[{_JOINERS}](?=[{_LATIN}])"
            ")"
        ),
    ),
    (MarkKind.DIRECTION, re.compile("(?P<found>[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+)")),
    (MarkKind.CONTROL, re.compile("(?P<found>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]+)")),
)
# All that ASCII text can have of them: most text is ASCII, and the others cost more to look for.
ASCII_CHARACTERS = tuple(each for each in CHARACTERS if each[0] is MarkKind.CONTROL)
_TAG_BASE = 0xE0000


def read_tags(text: str) -> str:
    """The letters that tag characters spell; a model reads them like ordinary letters."""
    return "".join(chr(ord(tag) - _TAG_BASE) for tag in text if 0x20 <= ord(tag) - _TAG_BASE < 0x7F)
