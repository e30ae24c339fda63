"""A tool list for people: its beginning, indented, or all of it as agents get it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions.offers.rendering.columns import Item
from sessions.offers.rendering.formats import ListForm
from sessions.offers.rendering.pieces import Piece, PieceWriter
from sessions.offers.tool_lists import ResolvedTools, write_tools

SHOWN_CHARS = 40_000


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a list; `is_whole` where that is all of it."""

    text: str
    entries: int
    is_whole: bool


def read_sample(resolved: ResolvedTools, form: ListForm, *, max_chars: int = SHOWN_CHARS) -> Sample:
    return _take(_lay_out(write_tools(resolved, form)), max_chars)


def sample_entries(entries: Iterable[Mapping[str, Any]], *, max_chars: int = SHOWN_CHARS) -> Sample:
    return _take(map(_indent, entries), max_chars)


def _take(texts: Iterable[str], max_chars: int) -> Sample:
    """Whole entries while they fit; a first entry that is too long is cut."""
    shown: list[str] = []
    room = max_chars
    for text in texts:
        if len(text) > room:
            return _cut(shown, text, room)
        shown.append(text)
        room -= len(text)
    return Sample(_bracket(shown), len(shown), is_whole=True)


def render_tools(resolved: ResolvedTools, form: ListForm) -> Sequence[Piece]:
    """The list alone, as in the whole answer."""
    writer = PieceWriter()
    writer.add("[")
    writer.add_list(write_tools(resolved, form))
    writer.add("]")
    return writer.finish()


def _lay_out(items: Iterator[Item]) -> Iterator[str]:
    for item in items:
        text = item if isinstance(item, str) else item.content.decode()
        for entry in json.loads(f"[{text}]"):
            yield _indent(entry)


def _indent(entry: Mapping[str, Any]) -> str:
    return "  " + json.dumps(entry, ensure_ascii=False, indent=2).replace("\n", "\n  ")


def _cut(shown: list[str], text: str, room: int) -> Sample:
    if shown:
        return Sample(_bracket([*shown, "  …"]), len(shown), is_whole=False)
    return Sample(f"[\n{text[:room]}…", 1, is_whole=False)


def _bracket(entries: Sequence[str]) -> str:
    return "[\n" + ",\n".join(entries) + "\n]" if entries else "[]"
