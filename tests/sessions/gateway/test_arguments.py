"""Arguments are checked against schemas that servers gave: every mistake named, the work bounded."""

import json
import socket
import time
from typing import Any

import pytest

from catalog.domain.errors import InvalidInput
from sessions.gateway.arguments import check_arguments, read_arguments
from sessions.offers.rendering.wire import ToolText

NESTED = json.loads("[" * 150 + "]" * 150)


class _Text:
    """The part of a tool's text that is looked at."""

    name = "mcp__fixture__echo"

    def __init__(self, schema: object) -> None:
        self.schema = json.dumps(schema)


def check(schema: object, arguments: dict[str, Any]) -> list[str]:
    """The places of what is wrong."""
    text: ToolText = _Text(schema)  # type: ignore[assignment]
    try:
        check_arguments(text, arguments)
    except InvalidInput as problem:
        return [one.place for one in problem.errors]
    return []


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["a", "b"]},
        "address": {"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip", "city"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


class TestMistakes:
    def test_none(self) -> None:
        assert check(PERSON, {"name": "Ada", "age": 1, "address": {"zip": "1", "city": "x"}}) == []

    def test_every_missing_field_is_named(self) -> None:
        assert check(PERSON, {"address": {}}) == [
            "arguments.address.zip",
            "arguments.address.city",
            "arguments.name",
            "arguments.age",
        ]

    def test_every_wrong_field_is_named(self) -> None:
        wrong = {"name": "A", "age": "1", "kind": "c", "tags": [1, "b", "c"], "other": 1}
        assert set(check(PERSON, wrong)) == {
            *("arguments.name", "arguments.age", "arguments.kind"),
            *("arguments.tags", "arguments.tags.0", "arguments"),
        }

    @pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", "urn:unknown", None])
    def test_of_any_draft(self, draft: str | None) -> None:
        schema = {**PERSON, "$schema": draft} if draft else PERSON
        assert check(schema, {"name": "Ada"}) == ["arguments.age"]

    def test_are_few_of_many(self) -> None:
        schema = {"type": "object", "additionalProperties": {"type": "string"}}
        assert len(check(schema, {str(number): number for number in range(5_000)})) == 50

    def test_are_told_shortly(self) -> None:
        text: ToolText = _Text({"properties": {"a": {"type": "integer"}}})  # type: ignore[assignment]
        with pytest.raises(InvalidInput) as raised:
            check_arguments(text, {"a": "x" * 1_000_000})
        assert len(str(raised.value)) < 400


class TestHostileSchemas:
    """No network, no hang, no crash: what cannot be decided in time is the server's to decide."""

    NESTED: dict[str, Any] = {"type": "object"}
    for _ in range(100):
        NESTED = {"type": "object", "properties": {"a": NESTED}, "required": ["b"]}

    SCHEMAS: dict[str, dict[str, Any]] = {
        "refers to itself": {"$ref": "#"},
        "refers to itself by turns": {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        },
        "branches into itself": {"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]},
        "refers elsewhere": {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        "refers to a file": {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        "names another draft": {"$schema": "http://127.0.0.1:9/draft", "properties": {}},
        "refers to nothing": {"properties": {"a": {"$ref": "#/nowhere"}}},
        "many alternatives": {"anyOf": [{"type": "string"}] * 20_000},
        "many alternatives inside": {"properties": {"a": {"anyOf": [{"type": "integer"}] * 5_000}}},
        "one of many": {"oneOf": [{"required": ["b"]}] * 8_000},
        "catastrophic pattern": {"properties": {"a": {"pattern": "^(x+x+)+y$"}}},
        "catastrophic names": {"patternProperties": {"^(a+a+)+$": {"type": "string"}}},
        "compares all": {"properties": {"c": {"uniqueItems": True}}},
        "compares with many": {"properties": {"c": {"items": {"enum": list(range(20_000))}}}},
        "deep": NESTED,
        "dynamic": {"$dynamicRef": "#a", "$dynamicAnchor": "a"},
        "unevaluated": {"unevaluatedProperties": {"$ref": "#"}},
        "divides": {"properties": {"d": {"multipleOf": 1e-308}}},
    }

    @pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
    def test_take_a_bounded_time(self, schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("the network was asked")

        monkeypatch.setattr(socket, "create_connection", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        arguments = {"a": "x" * 900_000, "c": list(range(20_000)), "d": 1e308, "e": [{}] * 20_000}
        started = time.process_time()
        check(schema, arguments)
        assert time.process_time() - started < 3

    WRONG: dict[str, Any] = {
        "type": {"type": "nonsense"},
        "minLength": {"properties": {"a": {"minLength": "x"}}},
        "required": {"required": 5},
        "properties": {"properties": []},
        "items": {"properties": {"a": {"items": 7}}},
        "enum": {"properties": {"a": {"enum": 3}}},
        "anyOf": {"anyOf": {"a": 1}},
        "ref": {"$ref": 5},
        "no object": [1],
        "true": True,
        "id": {"$id": "http://[", "$ref": "#"},
        "multipleOf zero": {"properties": {"n": {"multipleOf": 0}}},
    }

    @pytest.mark.parametrize("schema", WRONG.values(), ids=list(WRONG))
    def test_that_are_no_schemas_let_everything_through(self, schema: Any) -> None:
        check(schema, {"a": "x", "n": 1})

    def test_numbers_of_any_size_are_compared(self) -> None:
        schema = {"properties": {"n": {"type": "integer", "maximum": 5, "multipleOf": 0.1}}}
        check(schema, {"n": 10**400})


class TestReading:
    @pytest.mark.parametrize(
        ("given", "read"),
        [
            ({}, {}),
            ({"arguments": None}, {}),
            ({"arguments": {"a": 1}}, {"a": 1}),
            ({"arguments": {"a": 1}, "arguments_json": None}, {"a": 1}),
            ({"arguments_json": '{"a": 1}'}, {"a": 1}),
            ({"arguments_json": ""}, {}),
            ({"arguments": {"a": 1}, "arguments_json": " "}, {"a": 1}),
            ({"arguments_json": '{"a": ' + "[" * 150 + "]" * 150 + "}"}, {"a": NESTED}),
            ({"arguments_json": "null"}, {}),
        ],
    )
    def test_of_either(self, given: dict[str, Any], read: dict[str, Any]) -> None:
        assert read_arguments(given) == read

    @pytest.mark.parametrize(
        ("given", "place"),
        [
            ({"arguments": {}, "arguments_json": "{}"}, "arguments"),
            ({"arguments": []}, "arguments"),
            ({"arguments": "{}"}, "arguments"),
            ({"arguments_json": "[]"}, "arguments_json"),
            ({"arguments_json": "{"}, "arguments_json"),
            ({"arguments_json": {}}, "arguments_json"),
            ({"arguments_json": "[" * 100_000}, "arguments_json"),
            ({"arguments_json": "9" * 5_000}, "arguments_json"),
            ({"arguments_json": '{"a": "\\ud800"}'}, "arguments_json"),
            ({"arguments_json": '{"a": NaN}'}, "arguments_json"),
            ({"arguments_json": '{"a": 1e999}'}, "arguments_json"),
            ({"arguments_json": '{"a": ' + "[" * 300 + "]" * 300 + "}"}, "arguments_json"),
        ],
    )
    def test_of_both_or_none_that_is_an_object_is_refused(self, given: dict[str, Any], place: str) -> None:
        with pytest.raises(InvalidInput) as raised:
            read_arguments(given)
        assert [one.place for one in raised.value.errors] == [place]
