"""One definition in every shape."""

import json
from typing import Any

import pytest

from catalog.domain.errors import InvalidInput
from sessions.offers.builtins import check_names, read_builtins
from sessions.offers.rendering.formats import Discovered, Format, Hosted, ListForm, ModelAbility, resolve_auto
from sessions.offers.rendering.wire import ToolText, write_text

DEFINITION: dict[str, Any] = {
    "name": "créer",
    "title": "Create",
    "description": 'Makes "it". Then stops.',
    "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}},
    "annotations": {"readOnlyHint": True},
    "_meta": {},
}


def make_text(**changed: Any) -> ToolText:
    return write_text(
        id=1,
        digest="d",
        name="mcp__s__cr_er",
        server="s",
        kind="mcp",
        definition={**DEFINITION, **changed},
        chars=99,
    )


def test_mcp_has_what_the_server_gave_under_the_qualified_name() -> None:
    assert json.loads(make_text().write("mcp")) == {
        "name": "mcp__s__cr_er",
        "description": 'Makes "it". Then stops.',
        "inputSchema": DEFINITION["inputSchema"],
        "title": "Create",
        "annotations": {"readOnlyHint": True},
    }


def test_other_shapes() -> None:
    text = make_text()
    assert json.loads(text.write("summary")) == {"name": "mcp__s__cr_er", "description": 'Makes "it".'}
    assert json.loads(text.write("anthropic_deferred"))["defer_loading"] is True
    assert json.loads(text.write("openai_deferred"))["parameters"] == DEFINITION["inputSchema"]
    assert json.loads("{" + text.write("route") + "}") == {"mcp__s__cr_er": ["s", "créer"]}
    assert text.parameters == ("a", "b")


def test_schema_that_says_nothing_is_an_object_for_the_apis() -> None:
    text = make_text(inputSchema={})
    assert json.loads(text.write("anthropic"))["input_schema"] == {"type": "object"}
    assert json.loads(text.write("openai"))["parameters"] == {"type": "object"}


class TestBuiltins:
    def test_name_that_is_taken_gets_an_ending(self) -> None:
        free, taken = read_builtins([{"name": "bash"}, {"name": "search_tools"}], taken={"search_tools"})
        assert free.text.name == "bash"
        assert taken.text.name.startswith("search_tools_")
        assert taken.text.tool == "search_tools"

    def test_should_defer_is_for_us_and_not_for_the_model(self) -> None:
        (tool,) = read_builtins([{"name": "bash", "shouldDefer": True}], taken=())
        assert tool.facts.should_defer is True
        assert "shouldDefer" not in tool.text.write("mcp")

    def test_two_of_one_name(self) -> None:
        with pytest.raises(InvalidInput, match=r"builtin_tools\[1\]"):
            check_names([{"name": "a"}, {"name": "a"}])


class TestAuto:
    def test_named_form_stays_what_it_is(self) -> None:
        form = ListForm(Format.STUB)
        assert resolve_auto(form, ModelAbility("openai", hosted_search=True)) is form

    def test_hosted_where_the_model_can(self) -> None:
        found = resolve_auto(ListForm(Format.AUTO), ModelAbility("anthropic", hosted_search=True))
        assert found == ListForm(Format.ANTHROPIC, Hosted.YES, Discovered.DEFAULT)

    @pytest.mark.parametrize("ability", [None, ModelAbility("anthropic", hosted_search=False)])
    def test_mcp_where_it_cannot(self, ability: ModelAbility | None) -> None:
        assert resolve_auto(ListForm(Format.AUTO), ability).format is Format.MCP
