"""What changed in a definition, word by word. Definitions come from servers: their length is not trusted."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from catalog.domain.differences import Stretch, common_ends, find_common
from catalog.domain.limits import DIFFERENCE_CHARS, DIFFERENCE_STEPS, DIFFERENCE_WORDS
from catalog.models import ToolRevision

CONTEXT_WORDS = 24
READ_FIRST = ("title", "description")
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(slots=True)
class Effort:
    """What the comparisons of one page may cost together, and have left."""

    steps: int = DIFFERENCE_STEPS


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
    effort = Effort()
    return [
        RevisionDiff(newer, compare_definitions(older.definition, newer.definition, effort) if older else [])
        for newer, older in zip_longest(revisions, revisions[1:])
    ]


def compare_definitions(
    before: Mapping[str, object], after: Mapping[str, object], effort: Effort
) -> list[FieldDiff]:
    """Field by field, those alike left out."""
    return [
        FieldDiff(field, compare_words(_text(before.get(field)), _text(after.get(field)), effort))
        for field in sorted({*before, *after})
        if before.get(field) != after.get(field)
    ]


def spell_out(definition: Mapping[str, object], *, kind: str) -> list[FieldDiff]:
    """A whole definition as pieces of one kind, what is read first at the head."""
    ordered = sorted(definition, key=lambda field: (field not in READ_FIRST, field))
    texts = {field: _cut(_text(definition[field])) for field in ordered if field != "name"}
    return [FieldDiff(field, [Piece(kind, text)]) for field, text in texts.items()]


def compare_words(before: str, after: str, effort: Effort) -> list[Piece]:
    """Long stretches that stayed the same are cut to what stands around a change.

    Where the effort does not suffice, all between the first and the last difference went, and all came.
    """
    old, new = _WORD.findall(before), _WORD.findall(after)
    return list(_pieces(old, new, _find_common(old, new, effort)))


def _find_common(old: list[str], new: list[str], effort: Effort) -> list[Stretch]:
    if max(len(old), len(new)) > DIFFERENCE_WORDS or effort.steps <= 0:
        return common_ends(old, new)
    compared = find_common(old, new, most_steps=effort.steps)
    effort.steps -= compared.steps
    return common_ends(old, new) if compared.stretches is None else compared.stretches


def _pieces(old: list[str], new: list[str], common: Iterable[Stretch]) -> Iterator[Piece]:
    old_at = new_at = 0
    for stretch in (*common, Stretch(len(old), len(new), 0)):
        if old_at < stretch.old:
            yield Piece("gone", _cut("".join(old[old_at : stretch.old])))
        if new_at < stretch.new:
            yield Piece("new", _cut("".join(new[new_at : stretch.new])))
        old_at, new_at = stretch.old + stretch.size, stretch.new + stretch.size
        if stretch.size:
            yield Piece("same", _shorten(old[stretch.old : old_at]))


def _shorten(words: list[str]) -> str:
    if len(words) <= 2 * CONTEXT_WORDS:
        return _cut("".join(words))
    return _cut("".join(words[:CONTEXT_WORDS])) + " … " + _cut("".join(words[-CONTEXT_WORDS:]))


def _cut(text: str) -> str:
    """As much as one reads on such a page; the tool's own page has the present form whole."""
    if len(text) <= DIFFERENCE_CHARS:
        return text
    return f"{text[:DIFFERENCE_CHARS]} … ({len(text) - DIFFERENCE_CHARS:,} more characters)"


def _text(value: object) -> str:
    if value is None:
        return ""
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    )
