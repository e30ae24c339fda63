"""The shapes we send are those of the providers' own packages."""

import importlib
from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from catalog.access.actors import COMMAND_LINE
from catalog.models import Policy
from catalog.services import policies
from tests.sessions.api.calling import Agent, follow

pytestmark = pytest.mark.django_db

CREATE = "mcp__github__create_issue"


@pytest.fixture(scope="session")
def anthropic() -> Any:
    """Loaded by the worker that needs it: thousands of models, seconds of work."""
    return importlib.import_module("anthropic.types")


@pytest.fixture(scope="session")
def openai() -> Any:
    return importlib.import_module("openai.types.responses")


@pytest.fixture(autouse=True)
def some_load_by_rule(agent: Agent) -> None:
    policy = Policy.objects.get(slug="default")
    policies.change_policy(policy=policy, changed={"never_defer": ["slack/*"]}, actor=COMMAND_LINE)
    follow()


def check(shape: Any, value: Mapping[str, Any]) -> None:
    """The value fits the package's type and has no field that the type does not know."""
    TypeAdapter(shape).validate_python(value, strict=True)
    assert set(value) <= set(get_type_hints(shape))


class TestAnthropic:
    @pytest.mark.parametrize("discovered", ["default", "full"])
    def test_own_search(self, agent: Agent, anthropic: Any, discovered: str) -> None:
        session = agent.begin()
        session.search(f"select:{CREATE}")
        tools = session.tools(format="anthropic", discovered=discovered)["tools"]
        for tool in tools:
            check(anthropic.ToolParam, tool)
        assert not all(tool.get("defer_loading") for tool in tools)
        assert not any("cache_control" in tool for tool in tools)

    @pytest.mark.parametrize(
        ("hosted", "shape"),
        [("bm25", "ToolSearchToolBm25_20251119Param"), ("regex", "ToolSearchToolRegex20251119Param")],
    )
    def test_hosted_search(self, agent: Agent, anthropic: Any, hosted: str, shape: str) -> None:
        search, *tools = agent.begin().tools(format="anthropic", hosted=hosted)["tools"]
        check(getattr(anthropic, shape), search)
        for tool in tools:
            check(anthropic.ToolParam, tool)

    @pytest.mark.parametrize("query", ["create issue", "zebra", ""])
    def test_result_of_a_search_is_content_and_refers_to_listed_tools(
        self, agent: Agent, anthropic: Any, query: str
    ) -> None:
        session = agent.begin()
        found = session.search(query)
        block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": found["anthropic"]}
        check(anthropic.ToolResultBlockParam, block)
        TypeAdapter(anthropic.MessageParam).validate_python({"role": "user", "content": [block]})
        assert found["anthropic"]
        listed = {tool["name"] for tool in session.tools(format="anthropic")["tools"]}
        assert {reference["tool_name"] for reference in found["tool_references"]} <= listed


class TestOpenai:
    @pytest.mark.parametrize("discovered", ["default", "full"])
    def test_client_search(self, agent: Agent, openai: Any, discovered: str) -> None:
        session = agent.begin()
        session.search(f"select:{CREATE}")
        search, *functions = session.tools(format="openai", discovered=discovered)["tools"]
        check(openai.ToolSearchToolParam, search)
        for function in functions:
            check(openai.FunctionToolParam, function)

    def test_hosted_search(self, agent: Agent, openai: Any) -> None:
        search, *namespaces = agent.begin().tools(format="openai", hosted="true")["tools"]
        check(openai.ToolSearchToolParam, search)
        for namespace in namespaces:
            check(openai.NamespaceToolParam, namespace)
            for function in namespace["tools"]:
                check(openai.namespace_tool_param.ToolFunction, function)

    @pytest.mark.parametrize("query", ["create issue", "zebra"])
    def test_result_of_a_search_is_an_input_item(self, agent: Agent, openai: Any, query: str) -> None:
        found = agent.begin().search(query, call_id="call_1")
        TypeAdapter(openai.ResponseInputItemParam).validate_python(found["openai"])
        for function in found["openai"]["tools"]:
            check(openai.FunctionToolParam, function)
