"""Caches definitions as text in this process, for as long as an offer uses them."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from threading import Lock
from weakref import WeakValueDictionary

from catalog.domain.definitions import Definition
from catalog.models import Tool
from sessions.offers.rendering.wire import ToolText, write_text

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

Wanted = tuple[int, str, str]  # a tool's id, digest and qualified name

_texts: WeakValueDictionary[int, ToolText] = WeakValueDictionary()
# Definitions that a thread is reading just now: who needs the same waits for it, nobody else does.
_under_way: dict[Wanted, Future[dict[int, ToolText]]] = {}
_lock = Lock()  # for both, never held while the database is read


def read_definitions(wanted: Mapping[int, tuple[str, str]]) -> dict[int, ToolText]:
    """The definitions of tools by id, each wanted with its digest and qualified name. Only those not known in
    this version, under this name, are read from the database, each by one thread.
    """
    known: dict[int, ToolText] = {}
    missing = [(tool_id, *version) for tool_id, version in wanted.items()]
    while missing:
        with _lock:
            known |= _find_known(missing)
            missing = [one for one in missing if one[0] not in known]
            mine = [one for one in missing if one not in _under_way][:READ_AT_ONCE]
            others = {_under_way[one] for one in missing if one in _under_way} if not mine else set()
            reading: Future[dict[int, ToolText]] = Future()
            _under_way.update(dict.fromkeys(mine, reading))
        if mine:
            known |= _read_for_all(mine, reading)
            taken = set(mine)  # one that has no row any more is not asked for again
            missing = [one for one in missing if one not in taken]
        elif others:
            known |= _wait_for(others, missing)
    return known


def _find_known(wanted: Sequence[Wanted]) -> dict[int, ToolText]:
    found = ((one, _texts.get(one[0])) for one in wanted)
    return {one[0]: text for one, text in found if text is not None and _is_wanted(text, one)}


def _is_wanted(text: ToolText, one: Wanted) -> bool:
    return (text.id, text.digest, text.name) == one


def _read_for_all(mine: Sequence[Wanted], reading: "Future[dict[int, ToolText]]") -> dict[int, ToolText]:
    """Read, and give it to those who wait. Where that fails they read for themselves."""
    found: dict[int, ToolText] = {}
    try:
        found = _read([tool_id for tool_id, *_ in mine])
    finally:
        with _lock:
            _texts.update(found)
            for one in mine:
                _under_way.pop(one, None)
        reading.set_result(found)
    return found


def _wait_for(others: "set[Future[dict[int, ToolText]]]", missing: Sequence[Wanted]) -> dict[int, ToolText]:
    """The definitions that other threads were reading, where they are still current."""
    wait(others)
    found: dict[int, ToolText] = {}
    for other in others:
        found |= other.result()
    return {one[0]: found[one[0]] for one in missing if one[0] in found and _is_wanted(found[one[0]], one)}


def clear() -> None:
    with _lock:
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
