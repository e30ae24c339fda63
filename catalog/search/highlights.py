"""Highlights the words in a text by which a search found it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from catalog.search import words

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TextSpan:
    text: str
    is_highlighted: bool = False


def find_words(text: str, typed: Iterable[str]) -> list[Span]:
    """Where a text has one of the words, in any inflection: `issues` for `issue`."""
    terms = {term for word in typed for term in words.document_terms(word)}
    return [(place.start, place.end) for place in words.locate(text) if terms & set(place.terms)]


def find_inside(text: str, typed: Iterable[str]) -> list[Span]:
    """Where a text contains one of the words, also inside another word."""
    wanted = sorted({word for word in typed if word}, key=len, reverse=True)
    if not wanted:
        return []
    pattern = re.compile("|".join(map(re.escape, wanted)), re.IGNORECASE)
    return [found.span() for found in pattern.finditer(text)]


def cut_at(text: str, spans: Iterable[Span]) -> list[TextSpan]:
    """The whole text in pieces; the spans, in order, are highlighted. Adjacent ones are joined."""
    joined: list[Span] = []
    for start, end in spans:
        begin = joined.pop()[0] if joined and joined[-1][1] == start else start
        joined.append((begin, end))
    pieces: list[TextSpan] = []
    done = 0
    for start, end in joined:
        pieces += [TextSpan(text[done:start]), TextSpan(text[start:end], is_highlighted=True)]
        done = end
    return [piece for piece in (*pieces, TextSpan(text[done:])) if piece.text]
