"""A tool's definition as the search reads it."""

from typing import Any

from catalog.domain.limits import DOCUMENT_LEVELS, DOCUMENT_PARAMETERS
from catalog.search.documents import ToolDocument, make_document


def read(definition: dict[str, Any]) -> ToolDocument:
    return make_document(definition, id=1, qualified_name="mcp__s__t", server="s")


def test_own_parameters_have_name_description_and_values() -> None:
    schema = {
        "properties": {"state": {"title": "State", "description": "which", "enum": ["open", "closed", 3]}}
    }
    assert read({"name": "t", "inputSchema": schema}).parameters == (("state", "State which open closed"),)


def test_nested_parameters_are_found_in_objects_lists_and_branches() -> None:
    inside = {"properties": {"deep": {"description": "down there"}}}
    schema = {
        "properties": {
            "object": inside,
            "list": {"items": inside},
            "either": {"anyOf": [inside, {"type": "null"}]},
        },
    }
    document = read({"inputSchema": schema})
    assert [name for name, _ in document.parameters] == ["object", "list", "either"]
    assert document.nested == (("deep", "down there"),) * 3


def test_depth_and_number_are_bounded() -> None:
    schema: dict[str, Any] = {}
    for _ in range(50):
        schema = {"properties": {"p": schema}}
    assert len(read({"inputSchema": schema}).nested) == DOCUMENT_LEVELS
    wide: dict[str, Any] = {"properties": {f"p{number}": {} for number in range(DOCUMENT_PARAMETERS + 1)}}
    assert len(read({"inputSchema": wide}).parameters) == DOCUMENT_PARAMETERS


def test_names_and_values_are_cut() -> None:
    properties = {"n" * 1_000: {"description": "d" * 15_000, "enum": ["v" * 15_000, "w" * 15_000]}}
    ((name, text),) = read({"inputSchema": {"properties": properties}}).parameters
    assert (len(name), len(text)) == (200, 20_000)


def test_title_and_hint_come_from_where_servers_put_them() -> None:
    document = read({"annotations": {"title": "Nice"}, "_meta": {"anthropic/searchHint": "find me"}})
    assert (document.title, document.hint) == ("Nice", "find me")


def test_what_has_the_wrong_type_counts_as_missing() -> None:
    broken: dict[str, Any] = {
        "name": 7,
        "description": None,
        "inputSchema": {"properties": ["x"], "items": 3, "anyOf": {}},
        "_meta": [],
    }
    assert read(broken) == ToolDocument(id=1, qualified_name="mcp__s__t", name="", server="s")


def test_admin_keywords_are_joined() -> None:
    document = make_document({}, id=1, qualified_name="q", server="s", keywords=["rain", "sun"])
    assert document.keywords == "rain sun"
