"""The tool list for a person to read: its beginning laid out in lines, or all of it as agents get it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sessions.domain.columns import Item
from sessions.domain.formats import ListForm
from sessions.domain.pieces import Piece, Writer
from sessions.reading.tool_lists import Standing, write_tools

SHOWN_CHARS = 40_000


@dataclass(frozen=True, slots=True)
class Sample:
    """As much of a list as a page can bear; `is_whole` where that is all of it."""

    text: str
    entries: int
    is_whole: bool


def read_sample(standing: Standing, form: ListForm, *, max_chars: int = SHOWN_CHARS) -> Sample:
    """Whole entries while they fit; a first one that is too long alone is cut."""
    shown: list[str] = []
    room = max_chars
    for text in _lay_out(write_tools(standing, form)):
        if len(text) > room:
            return _cut(shown, text, room)
        shown.append(text)
        room -= len(text)
    return Sample(_bracket(shown), len(shown), is_whole=True)


def render_tools(standing: Standing, form: ListForm) -> Sequence[Piece]:
    """The list alone, as the whole answer holds it."""
    writer = Writer()
    writer.add("[")
    writer.add_list(write_tools(standing, form))
    writer.add("]")
    return writer.finish()


def _lay_out(items: Iterator[Item]) -> Iterator[str]:
    for item in items:
        text = item if isinstance(item, str) else item.content.decode()
        for entry in json.loads(f"[{text}]"):
            yield "  " + json.dumps(entry, ensure_ascii=False, indent=2).replace("\n", "\n  ")


def _cut(shown: list[str], text: str, room: int) -> Sample:
    if shown:
        return Sample(_bracket([*shown, "  …"]), len(shown), is_whole=False)
    return Sample(f"[\n{text[:room]}…", 1, is_whole=False)


def _bracket(entries: Sequence[str]) -> str:
    return "[\n" + ",\n".join(entries) + "\n]" if entries else "[]"
