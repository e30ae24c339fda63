"""What changed in a definition, word by word. Definitions come from servers: their length is not trusted."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from catalog.models import ToolRevision

MAX_WORDS = 3000
CONTEXT_WORDS = 24
READ_FIRST = ("title", "description")
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """`kind` is `same`, `gone` or `new`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class FieldDiff:
    field: str
    pieces: list[Piece]


@dataclass(frozen=True, slots=True)
class RevisionDiff:
    """A revision and what it changed; the oldest known changed nothing."""

    revision: ToolRevision
    fields: list[FieldDiff]


def compare_revisions(revisions: Sequence[ToolRevision]) -> list[RevisionDiff]:
    """Each with the one before it; the newest first, as they are given."""
    return [
        RevisionDiff(newer, compare_definitions(older.definition, newer.definition) if older else [])
        for newer, older in zip_longest(revisions, revisions[1:])
    ]


def compare_definitions(before: Mapping[str, object], after: Mapping[str, object]) -> list[FieldDiff]:
    """Field by field, those alike left out."""
    return [
        FieldDiff(field, compare_words(_text(before.get(field)), _text(after.get(field))))
        for field in sorted({*before, *after})
        if before.get(field) != after.get(field)
    ]


def spell_out(definition: Mapping[str, object], *, kind: str) -> list[FieldDiff]:
    """A whole definition as pieces of one kind, what is read first at the head."""
    ordered = sorted(definition, key=lambda field: (field not in READ_FIRST, field))
    return [FieldDiff(field, [Piece(kind, _text(definition[field]))]) for field in ordered if field != "name"]


def compare_words(before: str, after: str) -> list[Piece]:
    """Long stretches that stayed the same are cut to what stands around a change."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    if max(len(old), len(new)) > MAX_WORDS:
        return [piece for piece in (Piece("gone", before), Piece("new", after)) if piece.text]
    return list(_pieces(old, new))


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            yield Piece("same", _shorten(old[old_from:old_to]))
            continue
        if old_from < old_to:
            yield Piece("gone", "".join(old[old_from:old_to]))
        if new_from < new_to:
            yield Piece("new", "".join(new[new_from:new_to]))


def _shorten(words: list[str]) -> str:
    if len(words) <= 2 * CONTEXT_WORDS:
        return "".join(words)
    return "".join([*words[:CONTEXT_WORDS], " … ", *words[-CONTEXT_WORDS:]])


def _text(value: object) -> str:
    if value is None:
        return ""
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    )
