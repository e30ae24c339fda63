"""Marks a whole definition when it is stored, and a server's own texts whenever they are used."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from catalog.domain.definitions import Definition
from catalog.domain.limits import MARKING_CHARS, MARKING_FINDS, MARKS_OF_A_DEFINITION
from catalog.domain.marking.characters import ASCII_CHARACTERS, CHARACTERS, read_tags
from catalog.domain.marking.confusables import MIXED_WORD, is_confusable, name_odd_letter, write_plainly
from catalog.domain.marking.encoded import find_encoded
from catalog.domain.marking.mark import MASK, Mark, MarkKind
from catalog.domain.marking.texts import Texts
from catalog.domain.marking.wording import INSTRUCTIONS, MARKUP, Wording
from catalog.domain.values import is_storable

FOUND_CHARS = 120
LONG_CHARS = 8_000
KEPT_SERVERS = 2_000
_ICONS = "icons"  # pictures are encoded text by nature, and no model reads them
_MASKED = re.compile(re.escape(MASK))
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")

Finds = Iterator[tuple[MarkKind, int, str]]


def mark_definition(definition: Definition, *, is_masked: bool = False) -> tuple[Mark, ...]:
    """At most one mark per kind and field, in the order of the kinds; nearly every definition has none.

    `is_masked` says that secrets were masked in it: otherwise the mask is the server's own text.
    """
    return _mark(Texts(definition.to_wire()), name=definition.name, is_masked=is_masked)


@lru_cache(maxsize=KEPT_SERVERS)
def mark_server(*, title: str = "", version: str = "", instructions: str = "") -> tuple[Mark, ...]:
    """Marks of a server's own texts. They are not stored, because these texts are few and short."""
    texts = Texts({"title": title, "version": version, "instructions": instructions})
    return _mark(texts, is_masked=True)


def _mark(texts: Texts, *, name: str = "", is_masked: bool = False) -> tuple[Mark, ...]:
    marks: dict[tuple[MarkKind, str], Mark] = {}
    for kind, place, found in _look(texts, is_masked):
        field, at = texts.locate(place)
        if kind is MarkKind.ENCODED and field.startswith(_ICONS):
            continue
        mark = Mark(kind, field, at, 1, found)
        known = marks.get((kind, field))
        marks[kind, field] = mark if known is None else _join(known, mark)
    marks.update({(mark.kind, mark.field): mark for mark in _look_at_name(name)})
    order = list(MarkKind)
    ordered = sorted(marks.values(), key=lambda mark: order.index(mark.kind))
    length = list(_look_at_length(texts))  # never among those left out: it may say that others are missing
    kept = [*ordered[: MARKS_OF_A_DEFINITION - len(length)], *length]
    return tuple(replace(mark, found=_cut(mark.found)) for mark in kept)


def talks_to_model(text: str) -> bool:
    """Whether a text would be marked as an instruction to the model."""
    marks = _mark(Texts({"description": text}))
    return any(mark.kind is MarkKind.INSTRUCTION for mark in marks)


def is_marked(text: str) -> bool:
    """Whether a short text would get any mark."""
    return bool(_mark(Texts({"description": text})))


def _join(one: Mark, other: Mark) -> Mark:
    first = min(one, other, key=lambda mark: mark.at)
    return replace(first, count=min(one.count + other.count, MARKING_FINDS))


def _look(texts: Texts, is_masked: bool) -> Finds:
    plain = write_plainly(texts.whole)
    yield from _look_for(MarkKind.INSTRUCTION, INSTRUCTIONS, plain, texts)
    yield from _look_for(MarkKind.MARKUP, MARKUP, plain, texts)
    if is_masked:
        for match in _scan(_MASKED, texts.whole, texts):
            yield MarkKind.SECRET, match.start(), match[0]
    for place, found in find_encoded(plain):
        yield MarkKind.ENCODED, place, found
    yield from _look_at_characters(texts)


def _look_for(kind: MarkKind, wordings: Iterable[Wording], plain: str, texts: Texts) -> Finds:
    lowered = plain.lower()
    for wording in wordings:
        if wording.may_be_in(lowered):
            for match in _scan(wording.pattern, plain, texts):
                yield kind, match.start(), match[0]


def _look_at_characters(texts: Texts) -> Finds:
    text = texts.whole
    for kind, pattern in CHARACTERS if not text.isascii() else ASCII_CHARACTERS:
        for match in _scan(pattern, text, texts):
            found = match["found"]
            yield kind, match.start(), read_tags(found) if kind is MarkKind.TAGS else found
    if not text.isascii():
        for match in _scan(MIXED_WORD, text, texts):
            yield MarkKind.LOOK_ALIKE, match.start(), name_odd_letter(match[0])


def _scan(pattern: re.Pattern[str], text: str, texts: Texts) -> Iterator[re.Match[str]]:
    """The matches of the pattern, limited per field and in the number of fields to what marks can show. A
    text of nothing but matches would cost ten times more.
    """
    has_group = "found" in pattern.groupindex
    place, field, finds, fields = 0, -1, 0, 0
    while (match := pattern.search(text, place)) and fields <= MARKS_OF_A_DEFINITION:
        place = max(match.end(), match.start() + 1)
        if has_group and not match["found"]:
            continue
        index = texts.index_at(match.start())
        if index != field:
            field, finds, fields = index, 0, fields + 1
        finds += 1
        yield match
        if finds >= MARKING_FINDS:
            place = texts.end_of(index)


def _look_at_name(name: str) -> Iterator[Mark]:
    if is_confusable(name):
        yield Mark(MarkKind.LOOK_ALIKE, "name", 0, 1, name_odd_letter(name))


def _look_at_length(texts: Texts) -> Iterator[Mark]:
    if texts.is_cut:
        yield Mark(MarkKind.LONG, "definition", 0, 1, f"only the first {MARKING_CHARS:,} were looked at")
    elif len(texts.whole) > LONG_CHARS and texts.longest()[1] > LONG_CHARS:
        field, chars = texts.longest()
        yield Mark(MarkKind.LONG, field, 0, 1, f"{chars:,} characters")


def _cut(found: str) -> str:
    """Short, on one line, and without characters that databases refuse."""
    text = found[:FOUND_CHARS]
    text = text if is_storable(text) else _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    text = text.replace("\n", " ")
    return text if len(found) <= FOUND_CHARS else f"{text}…"
