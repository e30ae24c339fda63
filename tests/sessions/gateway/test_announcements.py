"""Who listens hears of a change of its policy's lists, and of nothing else."""

import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from django.db import transaction

from catalog.access.actors import COMMAND_LINE
from catalog.domain.limits import GATEWAY_OPEN_STREAMS
from catalog.models import Server, ServerFeatures, Tool
from catalog.services import decisions, servers, tools
from tests.harness.gateway import MODERN, RunningGateway, wait_until
from tests.harness.rows import make_policy
from tests.sessions.gateway.catalog import ON_THREADS, Catalog, define, follow, give_tools, make_key

pytestmark = ON_THREADS

TOOLS, PROMPTS, RESOURCES = (
    f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")
)
ALL = {"notifications": {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}}


def hide_a_tool(catalog: Catalog) -> None:
    tool = catalog.tool("echo")
    Tool.objects.filter(pk=tool.pk).update(hidden=True)
    tools.mark_changed([tool.pk])
    follow()


def disable_the_server(catalog: Catalog) -> None:
    servers.set_enabled(server=catalog.server, enabled=False, actor=COMMAND_LINE)
    follow()


def describe_anew(catalog: Catalog) -> None:
    give_tools(catalog.server, [define("echo", description="Another description.")])
    follow()


CHANGES: dict[str, Callable[[Catalog], object]] = {
    "policy's visible": lambda catalog: catalog.change(visible=["echo"]),
    "policy's exposure": lambda catalog: catalog.change(exposure="native"),
    "policy's limit of results": lambda catalog: catalog.change(max_result_tokens=0),
    "tool hidden": hide_a_tool,
    "server disabled": disable_the_server,
    "definition": describe_anew,
}


class TestChanges:
    @pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
    def test_of_tools_are_told_in_time(
        self, gateway: RunningGateway, catalog: Catalog, change: Callable[[Catalog], object]
    ) -> None:
        with gateway.listen(catalog.key, ALL) as heard:
            change(catalog)
            wait_until(lambda: TOOLS in heard.methods)

    def test_of_resources_and_prompts_are_told(self, gateway: RunningGateway, catalog: Catalog) -> None:
        with gateway.listen(catalog.key, ALL) as heard:
            with transaction.atomic():  # as a refresh does
                ServerFeatures.objects.filter(server=catalog.server).update(prompts=[])
                decisions.request_new_lists()
            follow()
            wait_until(lambda: {PROMPTS, RESOURCES} <= set(heard.methods))
            assert TOOLS not in heard.methods

    def test_of_a_server_into_a_snapshot_are_told(self, gateway: RunningGateway, catalog: Catalog) -> None:
        with gateway.listen(catalog.key, ALL) as heard:
            Server.objects.filter(pk=catalog.server.pk).update(transport="snapshot", url="")
            wait_until(lambda: TOOLS in heard.methods)

    def test_reach_only_who_asked_for_them(self, gateway: RunningGateway, catalog: Catalog) -> None:
        tools_only = {"notifications": {"toolsListChanged": True}}
        with gateway.listen(catalog.key, tools_only) as heard:
            catalog.change(visible=["echo"])
            wait_until(lambda: TOOLS in heard.methods)
            assert {PROMPTS, RESOURCES}.isdisjoint(heard.methods)

    def test_of_single_resources_are_not_promised(self, gateway: RunningGateway, catalog: Catalog) -> None:
        told = gateway.ask(catalog.key, "server/discover").result["capabilities"]["resources"]
        assert told == {"listChanged": True, "subscribe": False}
        wanted = {
            "toolsListChanged": True,
            "resourceSubscriptions": ["toolsearch://fixture/note%3A%2F%2Fone"],
        }
        with gateway.listen(catalog.key, {"notifications": wanted}) as heard:
            [acknowledged] = heard.messages
            assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}

    def test_reach_the_sdks_client(self, gateway: RunningGateway, catalog: Catalog) -> None:
        with gateway.connect(catalog.key, mode=MODERN) as agent:
            listening = agent.client.listen(tools_list_changed=True)
            with agent.portal.wrap_async_context_manager(listening) as subscription:
                catalog.change(exposure="native")
                event = agent.portal.call(subscription.__anext__)
            assert type(event).__name__ == "ToolsListChanged"
            assert len(agent.do("list_tools").tools) > 20


class TestNothing:
    def test_is_told_where_nothing_changed(self, gateway: RunningGateway, catalog: Catalog) -> None:
        """Nor of a change in what only calls read; two looks are waited for."""
        with gateway.listen(catalog.key, ALL) as heard:
            follow()
            ends_at = time.monotonic() + 2.5
            wait_until(lambda: time.monotonic() > ends_at)
            assert heard.methods == ["notifications/subscriptions/acknowledged"]

    def test_is_told_of_another_policy(self, gateway: RunningGateway, catalog: Catalog) -> None:
        policy = make_policy()
        follow()
        other = make_key(policy)[1]
        with gateway.listen(catalog.key, ALL) as heard, gateway.listen(other, ALL) as heard_by_other:
            catalog.change(visible=["echo"])
            wait_until(lambda: TOOLS in heard.methods)
            assert heard_by_other.methods == ["notifications/subscriptions/acknowledged"]


def test_a_key_has_so_many_streams_and_no_more(gateway: RunningGateway, catalog: Catalog) -> None:
    with ExitStack() as streams:
        for _ in range(GATEWAY_OPEN_STREAMS):
            streams.enter_context(gateway.listen(catalog.key, ALL))
        error = gateway.ask(catalog.key, "subscriptions/listen", ALL).error
        assert str(GATEWAY_OPEN_STREAMS) in error["message"]
        with gateway.listen(make_key(catalog.policy)[1], ALL) as heard:
            assert not heard.is_over
