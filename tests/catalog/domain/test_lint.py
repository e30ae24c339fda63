"""Lint of definitions: each problem is found, and good definitions have none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.definitions import Definition
from catalog.domain.lint import (
    LintContext,
    LintIssue,
    LintTarget,
    SimilarTool,
    are_alike,
    have_same_name,
    lint_definition,
    name_words,
)
from catalog.domain.schema_lint import find_rejections
from catalog.domain.verbs import has_verb

GOOD = Definition(
    name="list_orders",
    description="List the orders of a customer, newest first.",
    input_schema={"type": "object", "properties": {"customer": {"type": "string", "description": "Its id."}}},
)

ALONE = LintContext()


def issues_in(around: LintContext = ALONE, **values: Any) -> list[LintIssue]:
    """On the good definition with these values in place of its own."""
    present = {"name": GOOD.name, "description": GOOD.description, "input_schema": GOOD.input_schema}
    return list(lint_definition(Definition(**{**present, **values}), around))


def with_parameter(name: str = "customer", **schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"description": "Its id.", **schema}}}


def test_good_definition_needs_no_advice() -> None:
    assert issues_in() == []


@pytest.mark.parametrize(
    ("values", "part", "words"),
    [
        ({"name": "obv"}, LintTarget.NAME, "too short"),
        ({"name": "weather"}, LintTarget.NAME, "No word of the name"),
        ({"name": "octagon-companies-agent"}, LintTarget.NAME, "No word of the name"),
        ({"description": ""}, LintTarget.DESCRIPTION, "no description"),
        ({"description": " \n"}, LintTarget.DESCRIPTION, "no description"),
        ({"description": "Fetch durables"}, LintTarget.DESCRIPTION, "too short"),
        (
            {"name": "get all the orders", "description": "Get all the orders"},
            LintTarget.DESCRIPTION,
            "too short",
        ),
        ({"description": "Global phone number verification data"}, LintTarget.DESCRIPTION, "no verb"),
        (
            {"description": "Astronomy data for planets\n\nRetrieve sunrise."},
            LintTarget.DESCRIPTION,
            "no verb",
        ),
        (
            {"input_schema": {"properties": {"a": {}, "b": {}}}},
            LintTarget.SCHEMA,
            "parameters a and b have no",
        ),
        (
            {"input_schema": {"properties": {"a": {"type": "string"}}}},
            LintTarget.SCHEMA,
            "parameter a has no",
        ),
    ],
)
def test_finds_what_makes_a_tool_hard_to_find(values: dict[str, Any], part: LintTarget, words: str) -> None:
    (found,) = issues_in(**values)
    assert found.part == part
    assert words in found.finding
    assert not found.is_rejected
    assert found.remedy


@pytest.mark.parametrize(
    "values",
    [
        {"name": "createIssue"},
        {"name": "orders-search"},
        {"name": "is_prime"},
        {"name": "データを取得"},
        {"description": "获取指定容器的日志"},
        {"description": "Retrieves the orders of a customer"},
        {"description": "Tool for converting units of length"},
        {"input_schema": {}},
    ],
)
def test_leaves_alone_what_says_what_it_does(values: dict[str, Any]) -> None:
    assert issues_in(**values) == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "oneOf": [{}]}, "oneOf at its root"),
        ({"anyOf": [{"type": "object"}]}, "anyOf at its root"),
        ({"type": "string"}, "of type string"),
        (with_parameter("query[]", type="string"), "query[] has a name that Anthropic"),
        (with_parameter("x" * 65, type="string"), "has a name that Anthropic"),
        (with_parameter(type="array"), "The list customer does not say what it holds"),
        (with_parameter(type="object", properties={"ids": {"type": "array"}}), "The list customer.ids"),
        (with_parameter(type="array", items={"type": "array"}), "The list customer[] does not say"),
        (with_parameter(**{"$ref": "#/$defs/lost"}), "refers to #/$defs/lost"),
        (with_parameter(**{"$ref": "https://example.com/schema"}), "refers to https://example.com"),
    ],
)
def test_names_what_a_model_api_refuses(schema: dict[str, Any], words: str) -> None:
    (found,) = issues_in(input_schema=schema)
    assert found.is_rejected
    assert words in found.finding


@pytest.mark.parametrize(
    "schema",
    [
        with_parameter(type="array", items={}),
        with_parameter(type="array", prefixItems=[{"type": "string"}]),
        with_parameter(anyOf=[{"type": "string"}, {"type": "null"}]),
        {**with_parameter(**{"$ref": "#/$defs/a~1b"}), "$defs": {"a/b": {"type": "string"}}},
        {
            **with_parameter(**{"$ref": "#/$defs/list/prefixItems/0"}),
            "$defs": {"list": {"prefixItems": [{}]}},
        },
        with_parameter(**{"$ref": "#"}),
        with_parameter("a.b-c_1", type="string"),
    ],
)
def test_lets_pass_what_model_apis_take(schema: dict[str, Any]) -> None:
    assert list(find_rejections(schema)) == []


def test_what_is_refused_comes_first() -> None:
    found = issues_in(name="weather", input_schema={"oneOf": [{}]})
    assert [each.is_rejected for each in found] == [True, False]


def test_namesakes_and_doubles_are_named() -> None:
    around = LintContext(
        neighbours=(
            SimilarTool("shop/listOrders", "mcp__shop__listOrders", "listOrders", "Show what was sold."),
            SimilarTool(
                "copy/orders", "mcp__copy__orders", "orders", "List the orders of a customer, newest first!"
            ),
        )
    )
    name, description = issues_in(around)
    assert "same name as shop/listOrders" in name.finding
    assert "nearly the same as copy/orders" in description.finding
    assert [other.qualified_name for other in name.others] == ["mcp__shop__listOrders"]
    assert [other.qualified_name for other in description.others] == ["mcp__copy__orders"]


def test_many_namesakes_are_counted() -> None:
    around = LintContext(
        tuple(
            SimilarTool(f"s{n}/list_orders", f"mcp__s{n}__list_orders", "list_orders", "") for n in range(5)
        )
    )
    (found,) = issues_in(around)
    assert "s0/list_orders, s1/list_orders, s2/list_orders and 2 more" in found.finding


@pytest.mark.parametrize(
    ("larger", "description", "is_told"),
    [
        (5, "List " + "words " * 300, True),
        (50, "List " + "words " * 300, False),
        (0, "List the orders.", False),
    ],
)
def test_larger_than_most_is_told(larger: int, description: str, is_told: bool) -> None:
    found = issues_in(LintContext(larger=larger, tools=100), description=description)
    assert any(each.part == LintTarget.SIZE for each in found) is is_told


def test_size_says_which_part_to_look_at() -> None:
    around = LintContext(larger=0, tools=100)
    (wordy,) = issues_in(around, description="List " + "words " * 300)
    assert "No tool is larger" in wordy.finding
    assert "its description" in wordy.remedy
    (deep,) = issues_in(around, input_schema=with_parameter(enum=["x" * 2000]))
    assert "its schema" in deep.remedy


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("create_issue", "createIssue", True),
        ("issue-create", "create_issue", True),
        ("create_issue", "create_issues", False),
        ("!!", "??", False),
    ],
)
def test_names_are_compared_by_their_words(one: str, other: str, same: bool) -> None:
    assert have_same_name(one, other) is same


def test_few_words_are_never_alike() -> None:
    assert not are_alike("Get it", "Get it")
    assert are_alike("Get the present user's name", "Get the present user's name.")


def test_names_are_split_as_people_read_them() -> None:
    assert name_words("getHTTPResponse2_now") == ["get", "http", "response", "2", "now"]


@pytest.mark.parametrize("word", ["fetch", "fetches", "fetching", "tries", "stopped", "creating", "uses"])
def test_verbs_are_known_in_their_forms(word: str) -> None:
    assert has_verb([word])


def test_verbs_are_not_found_in_nouns() -> None:
    assert not has_verb(["weather", "orders_", "companies", ""])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
KEYWORDS = st.sampled_from(
    ["properties", "items", "$ref", "anyOf", "type", "$defs", "description", "required"]
)


@given(st.text(max_size=80), st.text(max_size=200), st.dictionaries(KEYWORDS, JSON, max_size=6))
def test_no_definition_makes_it_fail(name: str, description: str, schema: dict[str, Any]) -> None:
    for each in lint_definition(Definition(name=name, description=description, input_schema=schema), ALONE):
        assert each.finding
        assert each.remedy


def test_deep_and_wide_schemas_are_walked_to_a_bound() -> None:
    deep: dict[str, Any] = {"type": "array"}
    for _ in range(400):
        deep = {"type": "array", "items": deep}
    wide = {f"p{number}": {"type": "array", "description": "x"} for number in range(50_000)}
    assert len(list(find_rejections({"properties": {"deep": deep, **wide}}))) == 1
