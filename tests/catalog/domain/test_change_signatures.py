"""A signature covers every field of a change, and is the same in every database."""

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from catalog.domain.change_signatures import NO_SIGNATURE, SignedFields, sign_change, sign_end

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
CHANGE = SignedFields(
    id=7,
    at=datetime(2026, 11, 17, 8, 30, 0, 123456, tzinfo=UTC),
    actor="ada",
    subject="policy",
    name="default",
    action="changed",
    before={"threshold": 10},
    after={"threshold": 20, "visible": ["a*"]},
)


def seal(change: SignedFields = CHANGE, *, number: int = 3, previous: str = "ab", key: bytes = KEY) -> str:
    return sign_change(change, number=number, previous=previous, key=key)


@pytest.mark.parametrize(
    "altered",
    [
        {"id": 8},
        {"at": CHANGE.at + timedelta(microseconds=1)},
        {"actor": "eve"},
        {"subject": "tool"},
        {"name": "defaul"},
        {"action": "created"},
        {"before": {"threshold": 11}},
        {"before": {}},
        {"after": {"threshold": 20, "visible": ["a"]}},
        {"after": {"threshold": True, "visible": ["a*"]}},
    ],
)
def test_every_field_counts(altered: dict[str, Any]) -> None:
    assert seal(dataclasses.replace(CHANGE, **altered)) != seal()


def test_place_and_key_count() -> None:
    assert len({seal(), seal(number=4), seal(previous=NO_SIGNATURE), seal(key=OTHER_KEY)}) == 4


def test_end_is_no_change_and_names_its_number() -> None:
    ends = {sign_end(number=3, last="ab", key=KEY), sign_end(number=2, last="ab", key=KEY)}
    assert len({*ends, seal()}) == 3


@pytest.mark.parametrize(
    ("kept", "given_back"),
    [(1.0, 1), (-0.0, 0), (1e16, 10**16), (1.5e300, 15 * 10**299), (0.1, 0.1), (10**400, 10**400)],
)
def test_number_may_be_spelled_anew_by_the_database(kept: float, given_back: float) -> None:
    before, after = (dataclasses.replace(CHANGE, after={"n": [number]}) for number in (kept, given_back))
    assert seal(before) == seal(after)


def test_order_of_names_and_zone_of_the_time_do_not_count() -> None:
    turned = dict(reversed(list(CHANGE.after.items())))
    elsewhere = CHANGE.at.astimezone(timezone(timedelta(hours=5)))
    assert seal(dataclasses.replace(CHANGE, after=turned, at=elsewhere)) == seal()
