"""Definitions as text, kept by this process for as long as an offer in force uses them."""

from collections.abc import Mapping, Sequence
from threading import Lock
from weakref import WeakValueDictionary

from catalog.domain.definitions import Definition
from catalog.models import Tool
from sessions.domain.wire import ToolText, write_text

READ_AT_ONCE = 1000
_COLUMNS = (
    "pk",
    "digest",
    "qualified_name",
    "server__name",
    "server__kind",
    "chars",
    "name",
    "title",
    "description",
    "input_schema",
    "output_schema",
    "annotations",
    "meta",
    "extra",
)

_texts: WeakValueDictionary[int, ToolText] = WeakValueDictionary()
_lock = Lock()


def read_texts(wanted: Mapping[int, tuple[str, str]]) -> dict[int, ToolText]:
    """The definitions of tools by id, each wanted with its digest and qualified name. Only those not known in
    this version, under this name, are read from the database.
    """
    with _lock:
        known = {tool_id: text for tool_id in wanted if (text := _texts.get(tool_id)) is not None}
        known = {
            tool_id: text for tool_id, text in known.items() if (text.digest, text.name) == wanted[tool_id]
        }
        missing = [tool_id for tool_id in wanted if tool_id not in known]
        for start in range(0, len(missing), READ_AT_ONCE):
            known |= _read(missing[start : start + READ_AT_ONCE])
        _texts.update(known)
        return known


def forget() -> None:
    _texts.clear()


def _read(tool_ids: Sequence[int]) -> dict[int, ToolText]:
    rows = Tool.objects.filter(pk__in=tool_ids).values_list(*_COLUMNS)
    return {
        tool_id: write_text(
            id=tool_id,
            digest=digest,
            name=name,
            server=server,
            kind=kind,
            definition=Definition(*fields).to_wire(),
            chars=chars,
        )
        for tool_id, digest, name, server, kind, chars, *fields in rows
    }
