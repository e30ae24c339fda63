"""The shapes we send are those of the providers' own packages."""

from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest
from anthropic.types import (
    MessageParam,
    ToolParam,
    ToolResultBlockParam,
    ToolSearchToolBm25_20251119Param,
    ToolSearchToolRegex20251119Param,
)
from openai.types.responses import (
    FunctionToolParam,
    NamespaceToolParam,
    ResponseInputItemParam,
    ToolSearchToolParam,
)
from openai.types.responses.namespace_tool_param import ToolFunction
from pydantic import TypeAdapter

from catalog.models import Policy
from catalog.services import policies
from catalog.services.changes import COMMAND_LINE
from tests.sessions.api.calling import Agent, follow

pytestmark = pytest.mark.django_db

CREATE = "mcp__github__create_issue"


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
    def test_own_search(self, agent: Agent, discovered: str) -> None:
        session = agent.begin()
        session.search(f"select:{CREATE}")
        tools = session.tools(format="anthropic", discovered=discovered)["tools"]
        for tool in tools:
            check(ToolParam, tool)
        assert not all(tool.get("defer_loading") for tool in tools)
        assert not any("cache_control" in tool for tool in tools)

    @pytest.mark.parametrize(
        ("hosted", "shape"),
        [("bm25", ToolSearchToolBm25_20251119Param), ("regex", ToolSearchToolRegex20251119Param)],
    )
    def test_hosted_search(self, agent: Agent, hosted: str, shape: Any) -> None:
        search, *tools = agent.begin().tools(format="anthropic", hosted=hosted)["tools"]
        check(shape, search)
        for tool in tools:
            check(ToolParam, tool)

    @pytest.mark.parametrize("query", ["create issue", "zebra", ""])
    def test_result_of_a_search_is_content_and_refers_to_listed_tools(self, agent: Agent, query: str) -> None:
        session = agent.begin()
        found = session.search(query)
        block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": found["anthropic"]}
        check(ToolResultBlockParam, block)
        TypeAdapter(MessageParam).validate_python({"role": "user", "content": [block]})
        assert found["anthropic"]
        listed = {tool["name"] for tool in session.tools(format="anthropic")["tools"]}
        assert {reference["tool_name"] for reference in found["tool_references"]} <= listed


class TestOpenai:
    @pytest.mark.parametrize("discovered", ["default", "full"])
    def test_client_search(self, agent: Agent, discovered: str) -> None:
        session = agent.begin()
        session.search(f"select:{CREATE}")
        search, *functions = session.tools(format="openai", discovered=discovered)["tools"]
        check(ToolSearchToolParam, search)
        for function in functions:
            check(FunctionToolParam, function)

    def test_hosted_search(self, agent: Agent) -> None:
        search, *namespaces = agent.begin().tools(format="openai", hosted="true")["tools"]
        check(ToolSearchToolParam, search)
        for namespace in namespaces:
            check(NamespaceToolParam, namespace)
            for function in namespace["tools"]:
                check(ToolFunction, function)

    @pytest.mark.parametrize("query", ["create issue", "zebra"])
    def test_result_of_a_search_is_an_input_item(self, agent: Agent, query: str) -> None:
        found = agent.begin().search(query, call_id="call_1")
        TypeAdapter(ResponseInputItemParam).validate_python(found["openai"])
        for function in found["openai"]["tools"]:
            check(FunctionToolParam, function)
