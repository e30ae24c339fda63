from typing import Any

import pytest

from catalog.domain.document import parse_document
from catalog.domain.errors import InvalidInput
from catalog.domain.json_text import read_json
from catalog.domain.policy import Policy
from tests.catalog.domain.making import decide_document, make_definition, make_document, reasons_of


def places_of(document: object) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_document(document)
    return [problem.place for problem in caught.value.errors]


def test_an_empty_document_decides_nothing() -> None:
    assert parse_document({}).policy == Policy()
    assert decide_document({}).to_mapping()["decisions"] == []


def test_kind_defaults_to_mcp_and_null_is_unset() -> None:
    document = make_document({"a": [make_definition("x")]}, servers={"a": {"deferLoading": None}})
    assert reasons_of(decide_document(document)) == {"mcp__a__x": "mode_always"}


def test_both_spellings_are_read_everywhere() -> None:
    snake = make_document(
        {"a": [make_definition("x", should_defer=True, input_schema={"y": 1})], "b": [make_definition("x")]},
        policy={"max_results": 3, "meaning_floor": 1},
        servers={"a": {"kind": "builtin"}, "b": {"defer_loading": False}},
        session={"context_window": 7},
    )
    camel = make_document(
        {"a": [make_definition("x", shouldDefer=True, inputSchema={"y": 1})], "b": [make_definition("x")]},
        policy={"maxResults": 3, "meaningFloor": 1},
        servers={"a": {"kind": "builtin"}, "b": {"deferLoading": False}},
        session={"contextWindow": 7},
    )
    assert parse_document(snake) == parse_document(camel)
    assert reasons_of(decide_document(snake)) == {"mcp__b__x": "server_load", "x": "mode_always"}


def test_a_disabled_server_is_in_no_list() -> None:
    document = make_document({"a": [make_definition("x")]}, servers={"a": {"enabled": False}})
    assert parse_document(document).tools == ()


def test_only_true_itself_asks_for_loading() -> None:
    listed = [
        make_definition(f"tool_{n}", _meta={"anthropic/alwaysLoad": value})
        for n, value in enumerate([True, "true", 1, [True], None])
    ]
    reasons = list(reasons_of(decide_document(make_document({"a": listed}))).values())
    assert reasons == ["meta_always_load", *["mode_always"] * 4]


def test_the_session_may_narrow_what_is_visible() -> None:
    document = make_document(
        {"a": [make_definition("x"), make_definition("y")]}, session={"visible": ["a/x"]}
    )
    assert set(reasons_of(decide_document(document))) == {"mcp__a__x"}


def test_what_config_files_say_of_a_server_is_passed_over() -> None:
    entry = {"command": "gh-mcp-server", "args": ["-v"], "env": {"TOKEN": "x"}, "tools": []}
    assert parse_document({"servers": {"github": entry}}).tools == ()


def test_every_mistake_is_reported_at_its_place() -> None:
    document = {
        "polic": {},
        "policy": {"mode": "no", "threshold": -1},
        "servers": {
            "a": {"kind": "robot", "deferLoading": "yes", "tools": [5, {"name": ""}, {"name": 7}]},
            "b c": {
                "tools": [{"name": "x", "description": 1, "inputSchema": [], "_meta": 3, "loading": "?"}]
            },
            "c": {"tools": {"x": {}}},
            "d": {"tools": [{"name": "x"}, {"name": "x"}]},
            "e": [],
        },
        "session": {"context_window": 0, "context_used": -1, "loaded": [1], "turn": 3},
    }
    assert places_of(document) == [
        "polic",
        "policy.mode",
        "policy.threshold",
        "servers.a.kind",
        "servers.a.deferLoading",
        "servers.a.tools[0]",
        "servers.a.tools[0].name",
        "servers.a.tools[1].name",
        "servers.a.tools[2].name",
        "servers.a.tools[2].name",
        'servers["b c"].tools[0].description',
        'servers["b c"].tools[0].inputSchema',
        'servers["b c"].tools[0].loading',
        'servers["b c"].tools[0]._meta',
        "servers.c.tools",
        "servers.d.tools[1].name",
        "servers.e",
        "session.turn",
        "session.context_window",
        "session.context_used",
        "session.loaded[0]",
    ]


@pytest.mark.parametrize("document", [None, [], 5, "text", True])
def test_a_document_is_an_object(document: Any) -> None:
    assert places_of(document) == [""]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "line 1 column 2: invalid JSON"),
        ('{\n "a": tru}', "line 2 column 7: invalid JSON"),
        (b"\xff", "byte 0: invalid JSON: not UTF-8"),
        ("[" * 100_000, "invalid JSON: nested too deeply"),
        ("9" * 10_000, "invalid JSON: a number has too many digits"),
        ("", "line 1 column 1: invalid JSON"),
    ],
)
def test_bad_json_is_one_problem(content: str | bytes, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        read_json(content)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read_json(b"\xef\xbb\xbf{}") == {}
