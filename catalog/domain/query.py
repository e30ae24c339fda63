"""The query language, parsed into a frozen tree.

`select:a,b` names tools, `+word` requires a word of the qualified name, an empty text browses, and anything
else is ranked keywords. A pattern is given in a field of its own and has its own parser.
"""

import re
from dataclasses import dataclass

from catalog.domain.errors import InvalidInput
from catalog.domain.limits import PATTERN_CHARS, QUERY_CHARS, SELECT_CHARS, SELECT_NAMES

SELECT = "select:"
QUOTES = "\"'`“”‘’«»"

_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Keywords:
    text: str
    form: str = "keywords"


@dataclass(frozen=True, slots=True)
class Required:
    """`required` are the words behind the plus signs, `rest` is ranked; `text` is the query as typed."""

    text: str
    required: tuple[str, ...]
    rest: str
    form: str = "required"


@dataclass(frozen=True, slots=True)
class Select:
    """Names as typed, without quotes and backticks, each once, in order."""

    names: tuple[str, ...]
    form: str = "select"


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    form: str = "pattern"


@dataclass(frozen=True, slots=True)
class Browse:
    form: str = "listing"


Query = Keywords | Required | Select | Pattern | Browse


def parse_query(text: str) -> Keywords | Required | Select | Browse:
    """Read what stands in `query`. Raises `InvalidInput`, which names the position of the mistake."""
    if len(text) > SELECT_CHARS:
        raise _problem("query", SELECT_CHARS, f"even with select: at most {SELECT_CHARS} characters")
    stripped = text.strip()
    if not stripped:
        return Browse()
    if stripped[: len(SELECT)].lower() == SELECT:
        return _parse_select(text)
    if len(stripped) > QUERY_CHARS:
        raise _problem("query", QUERY_CHARS, f"a query has at most {QUERY_CHARS} characters")
    return _parse_words(stripped)


def parse_pattern(text: str) -> Pattern:
    """Check the length of `pattern`; the regex engine checks the rest."""
    if not text:
        raise _problem("pattern", 0, "a pattern needs at least one character")
    if len(text) > PATTERN_CHARS:
        raise _problem("pattern", PATTERN_CHARS, f"a pattern has at most {PATTERN_CHARS} characters")
    return Pattern(text)


def strip_quotes(text: str) -> str:
    """The text without the spaces, quotes and backticks around it."""
    return text.strip().strip(QUOTES).strip()


def name_forms(text: str) -> tuple[str, ...]:
    """The tool names that a text may stand for, likeliest first: as typed, without quotes, without any
    punctuation around it. `_` and `-` belong to names, so they are removed last.
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
    if len(names) > SELECT_NAMES:
        raise _problem("query", start, f"select: takes at most {SELECT_NAMES} names, not {len(names)}")
    return Select(names)


def _parse_words(text: str) -> Keywords | Required:
    tokens = _TOKEN.findall(text)
    demanded = tuple(dict.fromkeys(token[1:] for token in tokens if _is_demand(token)))
    if not demanded:
        return Keywords(text)
    rest = " ".join(token for token in tokens if not _is_demand(token))
    return Required(text, demanded, rest)


def _is_demand(token: str) -> bool:
    """Whether a plus sign is followed by a word; a lone sign, as in `a + b`, is text."""
    return token[0] == "+" and any(map(str.isalnum, token))


def _problem(place: str, position: int, message: str) -> InvalidInput:
    return InvalidInput.at(place, f"{message} (position {position})")
