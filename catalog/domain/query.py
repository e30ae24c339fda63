"""The query language: what an agent may type, as a frozen tree.

`select:a,b` names tools, `+word` demands a word of the qualified name, an empty text browses, and anything
else is ranked keywords. A pattern travels in a field of its own and has its own parser.
"""

import re
from dataclasses import dataclass

from catalog.domain.errors import InvalidInput

MAX_QUERY_CHARS = 500
MAX_PATTERN_CHARS = 200
MAX_SELECT_NAMES = 20
# Room for as many of the longest names. A query is kept with the search: its length must have an end.
MAX_SELECT_CHARS = 100_000
SELECT = "select:"
QUOTES = "\"'`“”‘’«»"

_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Keywords:
    text: str
    form: str = "keywords"


@dataclass(frozen=True, slots=True)
class Required:
    """`required` are the words behind the plus signs, `rest` what ranks; `text` is the query as typed."""

    text: str
    required: tuple[str, ...]
    rest: str
    form: str = "required"


@dataclass(frozen=True, slots=True)
class Select:
    """Names as typed, quotes and backticks taken off, each once, in order."""

    names: tuple[str, ...]
    form: str = "select"


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    form: str = "pattern"


@dataclass(frozen=True, slots=True)
class Listing:
    form: str = "listing"


Query = Keywords | Required | Select | Pattern | Listing


def parse_query(text: str) -> Keywords | Required | Select | Listing:
    """Read what stands in `query`. Raises `InvalidInput`, which names the position of the mistake."""
    if len(text) > MAX_SELECT_CHARS:
        raise _problem("query", MAX_SELECT_CHARS, f"even with select: at most {MAX_SELECT_CHARS} characters")
    stripped = text.strip()
    if not stripped:
        return Listing()
    if stripped[: len(SELECT)].lower() == SELECT:
        return _parse_select(text)
    if len(stripped) > MAX_QUERY_CHARS:
        raise _problem("query", MAX_QUERY_CHARS, f"a query has at most {MAX_QUERY_CHARS} characters")
    return _parse_words(stripped)


def parse_pattern(text: str) -> Pattern:
    """Check what stands in `pattern` as far as its length goes; the regex engine checks the rest."""
    if not text:
        raise _problem("pattern", 0, "a pattern needs at least one character")
    if len(text) > MAX_PATTERN_CHARS:
        raise _problem("pattern", MAX_PATTERN_CHARS, f"a pattern has at most {MAX_PATTERN_CHARS} characters")
    return Pattern(text)


def strip_quotes(text: str) -> str:
    """The text without the spaces, quotes and backticks around it."""
    return text.strip().strip(QUOTES).strip()


def name_forms(text: str) -> tuple[str, ...]:
    """What a text may stand for as a tool's name, likeliest first: as typed, then without the quotes and then
    without any punctuation around it. `_` and `-` belong to names, so they come off last.
    """
    typed = text.strip()
    inner = _strip_signs(typed, kept="_-")
    return tuple(dict.fromkeys((typed, strip_quotes(typed), inner, _strip_signs(inner, kept=""))))


def strip_punctuation(text: str) -> str:
    """The text without the spaces and the punctuation around it; `_` and `-` belong to names and stay."""
    return _strip_signs(text, kept="_-") or text.strip()


def _strip_signs(text: str, *, kept: str) -> str:
    start, end = 0, len(text)
    while start < end and not (text[start].isalnum() or text[start] in kept):
        start += 1
    while start < end and not (text[end - 1].isalnum() or text[end - 1] in kept):
        end -= 1
    return text[start:end]


def _parse_select(text: str) -> Select:
    start = text.lower().index(SELECT) + len(SELECT)
    names = tuple(dict.fromkeys(name for part in text[start:].split(",") if (name := strip_quotes(part))))
    if not names:
        raise _problem("query", start, "select: needs at least one tool name")
    if len(names) > MAX_SELECT_NAMES:
        raise _problem("query", start, f"select: takes at most {MAX_SELECT_NAMES} names, not {len(names)}")
    return Select(names)


def _parse_words(text: str) -> Keywords | Required:
    tokens = _TOKEN.findall(text)
    demanded = tuple(dict.fromkeys(token[1:] for token in tokens if _is_demand(token)))
    if not demanded:
        return Keywords(text)
    rest = " ".join(token for token in tokens if not _is_demand(token))
    return Required(text, demanded, rest)


def _is_demand(token: str) -> bool:
    """A plus sign before a word; a lone sign, as in `a + b`, is text."""
    return token[0] == "+" and any(map(str.isalnum, token))


def _problem(place: str, position: int, message: str) -> InvalidInput:
    return InvalidInput.at(place, f"{message} (position {position})")
