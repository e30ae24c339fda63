"""Word-by-word differences of definitions. Definitions come from servers, so their length is bounded."""

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
    """The comparison steps that one page has left."""

    steps: int = DIFFERENCE_STEPS


@dataclass(frozen=True, slots=True)
class DiffSpan:
    """`kind` is `same`, `gone` or `new`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class FieldDiff:
    field: str
    pieces: list[DiffSpan]


@dataclass(frozen=True, slots=True)
class RevisionDiff:
    """A revision and its changes; the oldest known has none."""

    revision: ToolRevision
    fields: list[FieldDiff]


def compare_revisions(revisions: Sequence[ToolRevision]) -> list[RevisionDiff]:
    """Each revision with the one before it; the newest first, as given."""
    effort = Effort()
    return [
        RevisionDiff(newer, compare_definitions(older.definition, newer.definition, effort) if older else [])
        for newer, older in zip_longest(revisions, revisions[1:])
    ]


def compare_definitions(
    before: Mapping[str, object], after: Mapping[str, object], effort: Effort
) -> list[FieldDiff]:
    """The fields that differ."""
    return [
        FieldDiff(field, compare_words(_text(before.get(field)), _text(after.get(field)), effort))
        for field in sorted({*before, *after})
        if before.get(field) != after.get(field)
    ]


def spell_out(definition: Mapping[str, object], *, kind: str) -> list[FieldDiff]:
    """A whole definition as pieces of one kind, the most important fields first."""
    ordered = sorted(definition, key=lambda field: (field not in READ_FIRST, field))
    texts = {field: _cut(_text(definition[field])) for field in ordered if field != "name"}
    return [FieldDiff(field, [DiffSpan(kind, text)]) for field, text in texts.items()]


def compare_words(before: str, after: str, effort: Effort) -> list[DiffSpan]:
    """Long unchanged parts are cut to the words around a change.

    Past the effort, everything between the first and the last difference counts as replaced.
    """
    old, new = _WORD.findall(before), _WORD.findall(after)
    return list(_pieces(old, new, _find_common(old, new, effort)))


def _find_common(old: list[str], new: list[str], effort: Effort) -> list[Stretch]:
    if max(len(old), len(new)) > DIFFERENCE_WORDS or effort.steps <= 0:
        return common_ends(old, new)
    compared = find_common(old, new, most_steps=effort.steps)
    effort.steps -= compared.steps
    return common_ends(old, new) if compared.stretches is None else compared.stretches


def _pieces(old: list[str], new: list[str], common: Iterable[Stretch]) -> Iterator[DiffSpan]:
    old_at = new_at = 0
    for stretch in (*common, Stretch(len(old), len(new), 0)):
        if old_at < stretch.old:
            yield DiffSpan("gone", _cut("".join(old[old_at : stretch.old])))
        if new_at < stretch.new:
            yield DiffSpan("new", _cut("".join(new[new_at : stretch.new])))
        old_at, new_at = stretch.old + stretch.size, stretch.new + stretch.size
        if stretch.size:
            yield DiffSpan("same", _shorten(old[stretch.old : old_at]))


def _shorten(words: list[str]) -> str:
    if len(words) <= 2 * CONTEXT_WORDS:
        return _cut("".join(words))
    return _cut("".join(words[:CONTEXT_WORDS])) + " … " + _cut("".join(words[-CONTEXT_WORDS:]))


def _cut(text: str) -> str:
    """As much as a diff page shows; the tool's own page has the whole definition."""
    if len(text) <= DIFFERENCE_CHARS:
        return text
    return f"{text[:DIFFERENCE_CHARS]} … ({len(text) - DIFFERENCE_CHARS:,} more characters)"


def _text(value: object) -> str:
    if value is None:
        return ""
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    )
