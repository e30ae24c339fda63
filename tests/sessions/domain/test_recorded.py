"""What is recorded of a call in full holds no secret, and has a bounded length."""

import json
from typing import Any

import pytest

from catalog.domain.limits import RECORDED_BYTES
from sessions.domain.recorded import CUT, write_recorded

SECRET = "s3cret-of-the-server"
TOKEN = "ghp_" + "a1B2" * 9


def recorded(value: object, *secrets: str) -> Any:
    return json.loads(write_recorded(value, secrets))


def test_plain_values_stay_as_they_are() -> None:
    value = {
        "title": "Grüße",
        "labels": ["bug", None, True],
        "page": 3,
        "sha": "0f0f9b4a" * 5,
        "text": "author: Eve",
    }
    assert recorded(value) == value


@pytest.mark.parametrize(
    "value",
    [
        {"note": f"use {SECRET} here"},
        {SECRET: 1},
        [[{"deep": [SECRET]}]],
        {"password": "open sesame"},
        {"api_key": {"value": "open sesame"}},
        {"apiKey": 271828},
        {"note": f"token {TOKEN}."},
        {"header": "Authorization: Bearer open-sesame-1234"},
        {"header": "Bearer open-sesame-1234"},
        {"address": "https://me:open@sesame.example/"},
        {"command": "run --password=open"},
        {"text": json.dumps({"rows": [{"password": "open sesame"}]})},
        {"text": json.dumps(json.dumps({"client_secret": "open"}))},
    ],
)
def test_secrets_are_masked(value: object) -> None:
    text = write_recorded(value, [SECRET])
    assert "•••" in text
    for secret in (SECRET, TOKEN, "open", "271828"):
        assert secret not in text


def test_longer_secret_is_masked_before_one_that_it_holds() -> None:
    assert recorded("abcdef", "abc", "abcdef") == "•••"


@pytest.mark.parametrize("value", ["ä" * 100_000, ["x"] * 100_000, {f"k{n}": n for n in range(50_000)}])
def test_long_values_are_cut_and_say_so(value: object) -> None:
    text = write_recorded(value, [])
    assert text.endswith(CUT)
    assert RECORDED_BYTES - 10 <= len(text.encode()) <= RECORDED_BYTES


def test_secret_on_the_edge_of_what_is_looked_at_leaves_no_part() -> None:
    for shift in range(0, 60, 7):
        filled = f"{SECRET} " * 10_000
        text = write_recorded("x" * shift + filled, [SECRET])
        assert SECRET[:4] not in text


def test_deep_and_odd_values_are_recorded() -> None:
    deep: object = "end"
    for _ in range(5_000):
        deep = [deep]
    assert write_recorded(deep, []).endswith(CUT)
    assert write_recorded({"a": "\ud800\0"}, []).encode()
    assert recorded(float("nan")) != recorded(1)
    assert recorded("{not json") == "{not json"
    assert recorded("[" * 10_000) == "[" * 10_000
