"""Definitions are judged one by one, in words that say what is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError

from catalog.domain.connection import Limits
from catalog.upstream import judge_definitions
from catalog.upstream.schema_check import schema_problem

OBJECT = {"type": "object"}
FULL = {
    "name": "read_file",
    "title": "Read a file",
    "description": "Reads.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
    "icons": [{"src": "https://example.org/i.png"}],
    "execution": {"taskSupport": "optional"},
    "_meta": {"anthropic/alwaysLoad": True},
}


def why_unfit(**fields: Any) -> str:
    kept, rejected = judge_definitions([{"name": "t", "inputSchema": OBJECT, **fields}])
    assert not kept
    return rejected[0].why


def test_a_full_definition_comes_through_unchanged() -> None:
    assert judge_definitions([FULL]) == ((FULL,), ())


def test_unknown_and_null_fields_are_left_out() -> None:
    given = {"name": "t", "inputSchema": OBJECT, "title": None, "description": None, "x-vendor": 1}
    assert judge_definitions([given])[0] == ({"name": "t", "inputSchema": OBJECT},)


def test_the_order_is_the_servers_and_the_first_of_a_name_is_kept() -> None:
    tools = [{"name": name, "inputSchema": OBJECT, "title": str(n)} for n, name in enumerate("bab")]
    kept, rejected = judge_definitions(tools)
    assert [(tool["name"], tool["title"]) for tool in kept] == [("b", "0"), ("a", "1")]
    assert [one.name for one in rejected] == ["b"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "it has no name"),
        ({"name": "  "}, "it has no name"),
        ({"name": 7}, "it has no name"),
        ({"name": "n" * 129}, "its name is longer than 128 characters"),
        ({"description": ["no"]}, "description: Input should be a valid string"),
        ({"annotations": "no"}, "annotations: Input should be a valid dictionary"),
        ({"icons": [{}]}, "icons.0.src: Field required"),
        ({"inputSchema": None}, "it has no inputSchema"),
        ({"inputSchema": []}, "inputSchema: Input should be a valid dictionary"),
        ({"inputSchema": {}}, 'inputSchema: its type must be "object", not null'),
        ({"inputSchema": {"type": "string"}}, 'inputSchema: its type must be "object", not "string"'),
        ({"inputSchema": {**OBJECT, "required": "a"}}, "inputSchema: required: 'a' is not of type 'array'"),
        (
            {"inputSchema": {**OBJECT, "$schema": "http://example.org/my-draft"}},
            "inputSchema: it names a draft of JSON Schema that is not known here: http://example.org/my-draft",
        ),
        ({"outputSchema": {"type": "objekt"}}, "outputSchema: type: 'objekt' is not valid"),
        ({"title": "\ud800"}, "it holds text that is not valid Unicode"),
        ({"description": "a\0b"}, "it holds a NUL character"),
        ({"_meta": {"a\0": 1}}, "it holds a NUL character"),
        ({"_meta": {"n": float("nan")}}, "it holds a number that JSON does not know"),
        ({"description": "x" * 300_000}, "it has 300"),
    ],
)
def test_what_is_wrong_is_said_in_words(fields: dict[str, Any], words: str) -> None:
    assert words in why_unfit(**fields)


def test_a_definition_without_a_name_is_known_by_its_place() -> None:
    kept, rejected = judge_definitions(
        [{"name": "t", "inputSchema": OBJECT}, "no object", {"inputSchema": OBJECT}]
    )
    assert len(kept) == 1
    assert [one.name for one in rejected] == ["#2", "#3"]


def test_a_backslash_before_u0000_is_no_nul() -> None:
    assert judge_definitions([{"name": "t", "description": "\\u0000", "inputSchema": OBJECT}])[0]


def test_a_schema_nested_without_end_is_kept_out() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(2000):
        schema = {"type": "object", "properties": {"a": schema}}
    assert "nested too deeply" in why_unfit(inputSchema=schema)


def test_the_size_limit_is_the_callers() -> None:
    assert judge_definitions([FULL], Limits(max_definition_bytes=10))[1][0].name == "read_file"


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-04/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_a_schema_is_checked_in_the_draft_it_names(draft: str) -> None:
    assert schema_problem({"$schema": draft, "type": "object", "properties": {}}) is None
    assert schema_problem({"$schema": draft, "type": "object", "properties": []}) is not None


def test_a_pattern_of_another_language_is_no_fault() -> None:
    assert schema_problem({"type": "object", "properties": {"a": {"pattern": "^\\p{L}+$"}}}) is None


KEYWORDS = st.sampled_from(
    [
        *(
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "anyOf",
            "not",
            "minimum",
            "minLength",
            "pattern",
        ),
        *(
            "$ref",
            "$defs",
            "prefixItems",
            "dependentRequired",
            "additionalProperties",
            "const",
            "title",
            "default",
        ),
        *(
            "definitions",
            "dependencies",
            "format",
            "$anchor",
            "contentSchema",
            "unevaluatedItems",
            "$recursiveRef",
            "$id",
        ),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["object", "string", "x", "#/a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=3),
    max_leaves=8,
)


@given(schema=st.dictionaries(KEYWORDS, VALUES, max_size=4))
@settings(max_examples=300, deadline=None)
def test_the_fast_check_agrees_with_the_official_one(schema: dict[str, Any]) -> None:
    try:
        Draft202012Validator.check_schema(schema, format_checker=None)
        is_valid = True
    except SchemaError:
        is_valid = False
    assert (schema_problem(schema) is None) is is_valid, json.dumps(schema)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"required": [{"a": number} for number in range(8_000)]}, "a list of too many objects"),
        ({"dependentRequired": {"anyOf": [{"a": number} for number in range(8_000)]}}, "too many objects"),
        ({"enum": [1, "a"] * 5_000}, "texts and numbers together"),
        ({"properties": {f"p{number}": {} for number in range(6_000)}}, "more than 5,000 objects and lists"),
    ],
)
def test_a_schema_that_takes_long_to_check_is_kept_out_unchecked(schema: dict[str, Any], words: str) -> None:
    """Lists without repeats were compared item by item: the first took half a minute."""
    assert words in why_unfit(inputSchema={"type": "object", **schema})


def test_long_lists_of_texts_or_numbers_are_no_trouble() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [f"v{number}" for number in range(9_000)]}}}
    assert judge_definitions([{"name": "t", "inputSchema": schema}])[0]
