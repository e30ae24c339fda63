"""A JSON schema as a tree: what a reader needs, and nothing a hostile schema could break."""

from typing import Any

import pytest

from catalog.domain.limits import SCHEMA_TREE_LEVELS, SCHEMA_TREE_NODES
from catalog.views.schema_tree import SchemaNode, grow_tree


def only(schema: dict[str, Any], **rest: Any) -> SchemaNode:
    (node,) = grow_tree({"properties": {"it": schema}, **rest})
    return node


def test_node_tells_type_need_description_and_limits() -> None:
    node = only(
        {"type": "string", "description": "A day.", "format": "date", "default": None}, required=["it"]
    )
    assert node == SchemaNode(
        name="it",
        type="string",
        is_required=True,
        description="A day.",
        constraints=("default null", "format date"),
    )


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": ["string", "null"]}, "string or null"),
        ({"type": "array", "items": {"type": "integer"}}, "array of integer"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "string or number"),
        ({"$ref": "#/$defs/day"}, "see #/$defs/day"),
        ({"enum": ["a", "b"]}, "one of"),
        ({}, "anything"),
    ],
)
def test_type_in_words(schema: dict[str, Any], words: str) -> None:
    assert only(schema).type == words


def test_objects_and_lists_of_objects_have_children() -> None:
    inner = {"type": "object", "properties": {"inner": {"type": "string"}}}
    assert [child.name for child in only(inner).children] == ["inner"]
    assert [child.name for child in only({"type": "array", "items": inner}).children] == ["inner"]


def test_choices_of_objects_are_told_apart() -> None:
    choices: list[dict[str, Any]] = [{"properties": {"a": {}}}, {"properties": {"b": {}}}]
    assert [child.name for child in only({"oneOf": choices}).children] == ["oneOf 1", "oneOf 2"]


@pytest.mark.parametrize(
    "schema", [None, [], "x", {"properties": []}, {"properties": {"a": 1}}, {"required": 3, "anyOf": "x"}]
)
def test_schema_that_is_none_does_not_break_the_page(schema: object) -> None:
    assert all(isinstance(node, SchemaNode) for node in grow_tree(schema))


def test_depth_and_breadth_are_bounded() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"type": "object", "properties": {"deeper": deep}}
    node, depth = grow_tree(deep)[0], 1
    while node.children:
        node, depth = node.children[0], depth + 1
    assert depth == SCHEMA_TREE_LEVELS
    wide: dict[str, Any] = {"properties": {f"p{number}": {} for number in range(1000)}}
    assert len(grow_tree(wide)) == SCHEMA_TREE_NODES


def test_list_of_lists_without_end_is_cut() -> None:
    endless: dict[str, Any] = {"type": "array"}
    for _ in range(5000):
        endless = {"type": "array", "items": endless}
    assert only(endless).type.startswith("array of array")


def test_nodes_are_bounded_over_the_whole_tree() -> None:
    wide: dict[str, Any] = {"type": "object", "properties": {f"p{number}": {} for number in range(100)}}
    tree = grow_tree({"properties": {f"o{number}": wide for number in range(100)}})
    assert sum(1 + len(node.children) for node in tree) == SCHEMA_TREE_NODES
