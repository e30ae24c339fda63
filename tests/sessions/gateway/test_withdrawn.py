"""What was taken away between a search and a call is unknown; a revoked key ends what it has open."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE
from catalog.models import ApiKey, Server, Tool
from catalog.services import keys, servers, tools
from sessions.gateway.housekeeping import ROUND_SECONDS
from tests.harness.gateway import ERAS, RunningGateway, wait_until
from tests.harness.upstream_fixture import NAMES, count_in
from tests.sessions.gateway.catalog import (
    ON_THREADS,
    Catalog,
    define,
    follow,
    give_tools,
    make_key,
    recorded_calls,
)

pytestmark = ON_THREADS


def hide(catalog: Catalog) -> None:
    tool = catalog.tool("echo")
    Tool.objects.filter(pk=tool.pk).update(hidden=True)
    tools.mark_changed([tool.pk])


def hide_before_the_lists_follow(catalog: Catalog) -> None:
    Tool.objects.filter(pk=catalog.tool("echo").pk).update(hidden=True)


def change_under_quarantine(catalog: Catalog) -> None:
    catalog.change(quarantine="changed")
    give_tools(catalog.server, [define(name, description=f"Another {name}.") for name in NAMES])


def remove(catalog: Catalog) -> None:
    give_tools(catalog.server, [define("count")])


def disable(catalog: Catalog) -> None:
    servers.set_enabled(server=catalog.server, enabled=False, actor=COMMAND_LINE)


def disable_before_the_lists_follow(catalog: Catalog) -> None:
    Server.objects.filter(pk=catalog.server.pk).update(enabled=False)


def make_a_snapshot(catalog: Catalog) -> None:
    Server.objects.filter(pk=catalog.server.pk).update(transport="snapshot", url="", sealed="")


def delete(catalog: Catalog) -> None:
    servers.delete_server(server=catalog.server, actor=COMMAND_LINE)


def narrow(catalog: Catalog) -> None:
    catalog.change(visible=["count"])


WITHDRAWALS = (
    *(hide, hide_before_the_lists_follow, change_under_quarantine, remove, disable),
    *(disable_before_the_lists_follow, make_a_snapshot, delete, narrow),
)


@pytest.mark.parametrize("withdraw", WITHDRAWALS)
def test_a_tool_that_was_withdrawn_is_unknown(
    gateway: RunningGateway, catalog: Catalog, withdraw: Callable[[Catalog], None]
) -> None:
    """By every way of calling and every name, in both eras: as if it had never been there."""
    found = gateway.call(catalog.key, "search_tools", {"query": "select:fixture__echo"})
    assert [match["name"] for match in found.result["structuredContent"]["matches"]] == ["fixture__echo"]
    assert gateway.call(catalog.key, "fixture__echo", {"text": "x"}).said == "x"
    before = len(recorded_calls())
    withdraw(catalog)
    for era in ERAS:
        for name in ("fixture__echo", "mcp__fixture__echo"):
            for tool, arguments in (
                (name, {"text": "x"}),
                ("call_tool", {"name": name, "arguments": {"text": "x"}}),
                ("call_read_tool", {"name": name, "arguments_json": "{}"}),
            ):
                error = gateway.call(catalog.key, tool, arguments, era=era).error
                assert (error["code"], error["message"]) == (-32602, f"Unknown tool: {name}")
    assert len(recorded_calls()) == before


def test_a_server_that_was_disabled_is_not_read_from(gateway: RunningGateway, catalog: Catalog) -> None:
    params = {"uri": "toolsearch://fixture/note%3A%2F%2Fone"}
    assert gateway.ask(catalog.key, "resources/read", params).result["contents"]
    disable_before_the_lists_follow(catalog)
    assert gateway.ask(catalog.key, "resources/read", params).error["code"] == -32602
    prompt = {"name": "fixture__greet", "arguments": {"name": "Ada"}}
    assert gateway.ask(catalog.key, "prompts/get", prompt).error["code"] == -32602


@pytest.mark.parametrize("change", [{"quarantine": "changed"}, {"visible": ["fixture/echo"]}])
def test_resources_of_a_server_that_is_not_shown_whole_are_unknown(
    gateway: RunningGateway, catalog: Catalog, change: dict[str, object]
) -> None:
    params = {"uri": "toolsearch://fixture/note%3A%2F%2Fone"}
    assert gateway.ask(catalog.key, "resources/read", params).result["contents"]
    catalog.change(**change)
    assert gateway.ask(catalog.key, "resources/read", params).error["code"] == -32602
    for method, field in (
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ):
        assert gateway.ask(catalog.key, method).result[field] == []


def test_visible_that_takes_every_tool_shows_resources(gateway: RunningGateway, catalog: Catalog) -> None:
    catalog.change(visible=["fixture/*"])
    assert gateway.ask(catalog.key, "resources/list").result["resources"]


def revoke(key: ApiKey) -> None:
    keys.revoke_key(key=key, actor=COMMAND_LINE)


def expire(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())


def test_keys_are_looked_at_each_second() -> None:
    assert ROUND_SECONDS <= 1


class TestKeysThatEnd:
    @pytest.mark.parametrize("era", ERAS)
    def test_open_call_ends(
        self, gateway: RunningGateway, catalog: Catalog, upstream_log: Path, era: str
    ) -> None:
        key, text = make_key(catalog.policy)
        started, cancelled = count_in(upstream_log, "started silent"), count_in(upstream_log, "cancelled")
        params = {"name": "fixture__silent", "arguments": {}}
        with gateway.begin(text, "tools/call", params, era=era) as pending:
            wait_until(lambda: count_in(upstream_log, "started silent") > started)
            keys.revoke_key(key=key, actor=COMMAND_LINE)
            wait_until(lambda: pending.is_done)
            answer = pending.wait()
        assert not answer.messages or "result" not in answer.messages[-1]
        wait_until(lambda: count_in(upstream_log, "cancelled") > cancelled)
        assert gateway.ask(text, "tools/list", era=era).status == 401
        [call] = [call for call in recorded_calls() if call.key_id == key.pk]
        assert call.outcome == "cancelled"

    @pytest.mark.parametrize("end", [revoke, expire])
    def test_listening_ends(
        self, gateway: RunningGateway, catalog: Catalog, end: Callable[[ApiKey], None]
    ) -> None:
        key, text = make_key(catalog.policy)
        params = {"notifications": {"toolsListChanged": True}}
        with gateway.listen(text, params) as heard, gateway.listen(catalog.key, params) as other:
            end(key)
            wait_until(lambda: heard.is_over)
            assert not other.is_over

    def test_connections_are_closed(self, gateway: RunningGateway, catalog: Catalog) -> None:
        key, text = make_key(catalog.policy)
        gateway.call(text, "fixture__count")
        gateway.call(catalog.key, "fixture__count")
        assert {lease.key_id for lease in gateway.leases()} >= {key.pk}
        with gateway.begin(text, "tools/call", {"name": "fixture__silent", "arguments": {}}):
            keys.revoke_key(key=key, actor=COMMAND_LINE)
            wait_until(lambda: key.pk not in {lease.key_id for lease in gateway.leases()})
        assert len(gateway.leases()) == 1


def test_followed_lists_say_the_same(gateway: RunningGateway, catalog: Catalog) -> None:
    hide(catalog)
    follow()
    listed = gateway.ask(catalog.key, "tools/list", query="?expose=native").result["tools"]
    assert "fixture__echo" not in {tool["name"] for tool in listed}
