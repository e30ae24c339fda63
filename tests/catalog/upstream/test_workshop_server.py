"""The server that ships with the project: it starts from anywhere, and its tools are right."""

import sys
from datetime import date
from pathlib import Path

import pytest

from catalog import upstream
from catalog.demo import workshop_server as workshop
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, Limits, ServerListing
from tests.catalog.upstream.conftest import AT_HOME


def list_workshop(*args: str) -> ServerListing:
    connection = Connection(Transport.STDIO, command=sys.executable, args=args)
    return upstream.list_tools(connection, limits=Limits(), rules=AT_HOME)


def test_it_runs_by_its_path_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    listing = list_workshop(str(workshop.__file__))
    assert listing.server_title == "Workshop"
    assert listing.instructions.startswith("Everyday tools")
    assert listing.rejected == ()


def test_it_runs_as_a_module_and_describes_every_tool() -> None:
    listing = list_workshop("-m", "catalog.demo.workshop_server")
    assert [tool["name"] for tool in listing.definitions] == [
        *("convert_units", "add_to_date", "days_between", "measure_text"),
        *("make_slug", "hash_text", "make_uuids", "format_json"),
    ]
    for tool in listing.definitions:
        assert tool["title"]
        assert tool["description"].endswith(".")
        assert "\n" not in tool["description"]
        assert tool["annotations"]["readOnlyHint"] is True


@pytest.mark.parametrize(
    ("value", "from_unit", "to_unit", "expected"),
    [
        (1, "mi", "km", 1.609344),
        (12, "in", "ft", 1),
        (2, "lb", "kg", 0.90718474),
        (1, "gal", "l", 3.785411784),
        (100, "C", "F", 212),
        (-40, "F", "C", -40),
        (0, "K", "C", -273.15),
    ],
)
def test_units_are_converted(
    value: float, from_unit: workshop.Unit, to_unit: workshop.Unit, expected: float
) -> None:
    assert workshop.convert_units(value, from_unit, to_unit) == pytest.approx(expected)


def test_units_of_different_things_are_not_converted() -> None:
    with pytest.raises(ValueError, match="kg and km do not measure the same thing"):
        workshop.convert_units(1, "kg", "km")


def test_a_month_after_the_31st_is_the_last_of_a_shorter_one() -> None:
    assert workshop.add_to_date(date(2024, 1, 31), months=1).date == "2024-02-29"
    assert workshop.add_to_date(date(2024, 3, 1), years=-1, days=-1).date == "2023-02-28"
    assert workshop.add_to_date(date(2026, 11, 15)).weekday == "Sunday"


def test_working_days_leave_out_weekends() -> None:
    monday, next_monday = date(2026, 11, 16), date(2026, 11, 23)
    assert workshop.days_between(monday, next_monday) == workshop.DateSpan(days=7, working_days=5)
    assert workshop.days_between(next_monday, monday) == workshop.DateSpan(days=-7, working_days=-5)
    assert workshop.days_between(date(2026, 11, 20), next_monday).working_days == 1


def test_text_is_counted() -> None:
    counted = workshop.measure_text("Don't panic. It is well-known!\nReally?")
    assert (counted.words, counted.lines, counted.sentences) == (6, 2, 3)


def test_slugs_hashes_and_ids() -> None:
    assert workshop.make_slug("  Crème Brûlée & Co. ") == "creme-brulee-co"
    assert workshop.make_slug("one two three", max_length=8) == "one-two"
    assert workshop.hash_text("abc").startswith("ba7816bf8f01cfea")
    assert len(set(workshop.make_uuids(20))) == 20
    assert workshop.make_uuids(name="https://example.org") == workshop.make_uuids(name="https://example.org")


def test_json_is_checked_and_formatted() -> None:
    assert workshop.format_json('{"b": 1, "a": "é"}', indent=0, sort_keys=True) == '{"a":"é","b":1}'
    with pytest.raises(ValueError, match="line 2, column 1"):
        workshop.format_json("[\n")
