"""Looks a whole definition over, once, when it is stored; a server's own texts whenever they are used."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from catalog.domain.definitions import Definition
from catalog.domain.marking.characters import ASCII_CHARACTERS, CHARACTERS, read_tags
from catalog.domain.marking.encoded import find_encoded
from catalog.domain.marking.look_alikes import MIXED_WORD, is_look_alike, name_odd_letter
from catalog.domain.marking.mark import Mark, MarkKind
from catalog.domain.marking.texts import MOST_CHARS, Texts
from catalog.domain.marking.wording import INSTRUCTIONS, MARKUP, Wording
from catalog.domain.values import is_storable

MOST_MARKS = 50
FOUND_CHARS = 120
LONG_CHARS = 8_000
KEPT_SERVERS = 2_000
_ICONS = "icons"  # pictures are encoded text by nature, and no model reads them
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")

Finds = Iterator[tuple[MarkKind, int, str]]


def mark_definition(definition: Definition) -> tuple[Mark, ...]:
    """One mark for each kind and field, in the order of the kinds; none for nearly every definition."""
    return _mark(Texts(definition.to_wire()), name=definition.name)


@lru_cache(maxsize=KEPT_SERVERS)
def mark_server(*, title: str = "", version: str = "", instructions: str = "") -> tuple[Mark, ...]:
    """Marks of what a server says of itself. They are kept nowhere: these texts are few and short."""
    return _mark(Texts({"title": title, "version": version, "instructions": instructions}))


def _mark(texts: Texts, *, name: str = "") -> tuple[Mark, ...]:
    marks: dict[tuple[MarkKind, str], Mark] = {}
    for kind, place, found in _look(texts.whole):
        field, at = texts.locate(place)
        if kind is MarkKind.ENCODED and field.startswith(_ICONS):
            continue
        mark = Mark(kind, field, at, 1, found)
        known = marks.get((kind, field))
        marks[kind, field] = mark if known is None else _join(known, mark)
    marks.update({(mark.kind, mark.field): mark for mark in _look_at_name(name)})
    marks.update({(mark.kind, mark.field): mark for mark in _look_at_length(texts)})
    order = list(MarkKind)
    ordered = sorted(marks.values(), key=lambda mark: order.index(mark.kind))
    return tuple(replace(mark, found=_cut(mark.found)) for mark in ordered[:MOST_MARKS])


def _join(one: Mark, other: Mark) -> Mark:
    first = min(one, other, key=lambda mark: mark.at)
    return replace(first, count=one.count + other.count)


def _look(text: str) -> Finds:
    lowered = text.lower()
    yield from _look_for(MarkKind.INSTRUCTION, INSTRUCTIONS, text, lowered)
    yield from _look_for(MarkKind.MARKUP, MARKUP, text, lowered)
    for run in find_encoded(text):
        yield MarkKind.ENCODED, run.start(), run[0]
    for kind, pattern in CHARACTERS if not text.isascii() else ASCII_CHARACTERS:
        for match in pattern.finditer(text):
            if found := match["found"]:
                yield kind, match.start(), read_tags(found) if kind is MarkKind.TAGS else found
    if not text.isascii():
        for match in MIXED_WORD.finditer(text):
            yield MarkKind.LOOK_ALIKE, match.start(), name_odd_letter(match[0])


def _look_for(kind: MarkKind, wordings: Iterable[Wording], text: str, lowered: str) -> Finds:
    for wording in wordings:
        for match in wording.find(text, lowered):
            yield kind, match.start(), match[0]


def _look_at_name(name: str) -> Iterator[Mark]:
    if is_look_alike(name):
        yield Mark(MarkKind.LOOK_ALIKE, "name", 0, 1, name_odd_letter(name))


def _look_at_length(texts: Texts) -> Iterator[Mark]:
    if texts.is_cut:
        yield Mark(MarkKind.LONG, "definition", 0, 1, f"only the first {MOST_CHARS:,} were looked at")
    elif len(texts.whole) > LONG_CHARS and texts.longest()[1] > LONG_CHARS:
        field, chars = texts.longest()
        yield Mark(MarkKind.LONG, field, 0, 1, f"{chars:,} characters")


def _cut(found: str) -> str:
    """Short, on one line, and without what no database keeps."""
    text = found[:FOUND_CHARS]
    text = text if is_storable(text) else _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    text = text.replace("\n", " ")
    return text if len(found) <= FOUND_CHARS else f"{text}…"
