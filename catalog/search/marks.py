"""Marks in a text the words by which a search found it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from catalog.search import words

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    is_marked: bool = False


def find_words(text: str, typed: Iterable[str]) -> list[Span]:
    """Where a text has one of the words, in whatever form: `issues` where `issue` was typed."""
    terms = {term for word in typed for term in words.document_terms(word)}
    return [(place.start, place.end) for place in words.locate(text) if terms & set(place.terms)]


def find_inside(text: str, typed: Iterable[str]) -> list[Span]:
    """Where a text holds one of the words, also inside another word."""
    wanted = sorted({word for word in typed if word}, key=len, reverse=True)
    if not wanted:
        return []
    pattern = re.compile("|".join(map(re.escape, wanted)), re.IGNORECASE)
    return [found.span() for found in pattern.finditer(text)]


def cut_at(text: str, spans: Iterable[Span]) -> list[Piece]:
    """The whole text in pieces; the spans, in order, are the marked ones. Neighbours become one."""
    joined: list[Span] = []
    for start, end in spans:
        begin = joined.pop()[0] if joined and joined[-1][1] == start else start
        joined.append((begin, end))
    pieces: list[Piece] = []
    done = 0
    for start, end in joined:
        pieces += [Piece(text[done:start]), Piece(text[start:end], is_marked=True)]
        done = end
    return [piece for piece in (*pieces, Piece(text[done:])) if piece.text]
