"""Parts of the list of calls follow each other without a gap, whatever the filter; none counts all rows."""

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.console.cursors import write_cursor
from catalog.domain.errors import InvalidInput, NotFound
from sessions.models import Call, CallOutcome, Via
from sessions.selectors import calls
from sessions.selectors.calls import CallFilter, read_part
from tests.harness.rows import make_call, make_key, make_session, make_tool

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def make_calls(count: int, **values: Any) -> list[int]:
    """Ids, the newest first; three at each instant."""
    made = [make_call(at=NOW + timedelta(seconds=number // 3), **values) for number in range(count)]
    return [call.pk for call in reversed(made)]


def ids(part: calls.CallPart) -> list[int]:
    return [call.pk for call in part.calls]


@pytest.mark.parametrize("wanted", [CallFilter(), CallFilter(server="github"), CallFilter(client="claude")])
def test_older_parts_follow_each_other(wanted: CallFilter) -> None:
    made = make_calls(20)
    part = read_part(wanted, most=7)
    seen = ids(part)
    while part.older:
        part = read_part(wanted, before=part.older, most=7)
        seen += ids(part)
    assert seen == made


def test_newer_parts_lead_back_to_the_newest() -> None:
    made = make_calls(20)
    first = read_part(CallFilter(), most=5)
    assert first.newer is None
    second = read_part(CallFilter(), before=first.older, most=5)
    third = read_part(CallFilter(), before=second.older, most=5)
    assert third.newer is not None
    back = read_part(CallFilter(), after=third.newer, most=5)
    assert ids(back) == made[5:10]
    assert back.newer is not None
    newest = read_part(CallFilter(), after=back.newer, most=5)
    assert (ids(newest), newest.newer) == (made[:5], None)


def test_filters_narrow_the_list() -> None:
    key, other = make_key(name="coder"), make_key(name="other")
    session = uuid.uuid4()
    found = make_call(
        key=key,
        server="time",
        tool="mcp__time__now",
        via=Via.DIRECT,
        outcome=CallOutcome.TIMEOUT,
        client="Codex",
        session_id=session,
    )
    make_call(key=other)
    gone = make_call(key_name="away")
    for wanted in (
        CallFilter(key="coder"),
        CallFilter(key=str(key.pk)),
        CallFilter(server="time"),
        CallFilter(tool="mcp__time__now"),
        CallFilter(via=Via.DIRECT),
        CallFilter(outcome=CallOutcome.TIMEOUT),
        CallFilter(client="codeX"),
        CallFilter(session_id=session),
        CallFilter(key="coder", server="time", via=Via.DIRECT),
    ):
        assert ids(read_part(wanted)) == [found.pk], wanted
    assert ids(read_part(CallFilter(key="away"))) == [gone.pk]
    for nothing in ("coder ", "0", str(2**63), "9" * 30, "²"):
        assert not read_part(CallFilter(key=nothing)).calls


def test_key_is_found_by_its_name_where_that_is_a_number() -> None:
    key = make_key(name="4711")
    call = make_call(key=key)
    assert ids(read_part(CallFilter(key="4711"))) == [call.pk]


def test_search_that_finds_little_looks_through_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LOOKED_THROUGH", 10)
    rare = make_call(at=NOW - timedelta(days=1), client="rare")
    make_calls(25)
    part, parts = read_part(CallFilter(client="rare")), 1
    while not part.calls:
        assert part.looked_through is not None
        assert part.older is not None
        part, parts = read_part(CallFilter(client="rare"), before=part.older), parts + 1
    assert (ids(part), parts, part.older) == ([rare.pk], 3, None)


def test_no_part_counts_or_reads_what_it_does_not_show() -> None:
    make_calls(60, arguments="secret argument", result="secret result")
    with CaptureQueriesContext(connection) as queries:
        part = read_part(CallFilter(server="github"))
        rows = calls.read_rows(part.calls)
    assert len(rows) == calls.PART_ROWS
    statements = [query["sql"] for query in queries]
    assert len(statements) == 3
    assert not any("COUNT(" in sql or '"arguments"' in sql or '"result"' in sql for sql in statements)


def test_stamp_changes_with_a_new_call() -> None:
    make_calls(3)
    before = calls.stamp_part(read_part(CallFilter()), now=NOW)
    assert calls.stamp_part(read_part(CallFilter()), now=NOW) == before
    make_calls(1)
    assert calls.stamp_part(read_part(CallFilter()), now=NOW) != before


def test_rows_link_what_is_still_there() -> None:
    tool, session = make_tool(), make_session()
    make_call(tool=tool.qualified_name, server=tool.server.name, session_id=session.pk)
    make_call(tool="mcp__gone__away", server="gone", session_id=uuid.uuid4(), at=NOW - timedelta(days=1))
    there, gone = calls.read_rows(read_part(CallFilter()).calls)
    assert (there.tool, there.server, there.has_session) == (tool, tool.server, True)
    assert (gone.tool, gone.server, gone.has_session) == (None, None, False)


def test_export_reads_all_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "EXPORTED_AT_ONCE", 7)
    made = make_calls(30)
    assert [call.pk for call in calls.iterate_calls(CallFilter())] == made
    monkeypatch.setattr(calls, "MOST_EXPORTED", 10)
    assert [call.pk for call in calls.iterate_calls(CallFilter())] == made[:10]


@pytest.mark.parametrize(
    ("at", "pk"),
    [
        ("x", "1"),
        ("2026-01-01", "1"),
        ("2026-01-01T00:00:00", "1"),
        ("2026-11-18T12:00:00+00:00", "x"),
        ("2026-11-18T12:00:00+00:00", str(2**63)),
        ("2026-11-18T12:00:00+00:00", "-1"),
        ("0001-01-01T00:00:00+23:00", "1"),
    ],
)
def test_texts_that_are_no_cursor_are_refused(at: str, pk: str) -> None:
    with pytest.raises(InvalidInput):
        calls.read_place(write_cursor(at, pk))


def test_cursor_is_read_as_it_was_written() -> None:
    place = calls.Place(NOW, 7)
    assert calls.read_place(place.cursor) == place
    assert isinstance(place.at, datetime)


def test_call_that_is_gone_is_not_found() -> None:
    call = make_call()
    assert calls.find_call(call.pk) == call
    Call.objects.all().delete()
    for call_id in (call.pk, 2**63):
        with pytest.raises(NotFound):
            calls.find_call(call_id)
