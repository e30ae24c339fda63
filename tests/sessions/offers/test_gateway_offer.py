"""What a policy's keys get through the gateway."""

import json
from typing import Any

import pytest

from catalog.domain.choices import Exposure, Kind, Mode, Transport
from catalog.domain.errors import InvalidInput
from catalog.models import Policy, Server, Tool
from sessions.domain.gateway_names import NameStyle
from sessions.offers import gateway_offer
from sessions.offers.gateway_offer import GatewayOffer, gateway_offer_of
from sessions.offers.gateway_tools import ALWAYS_LOAD
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db

OURS = ["search_tools", "describe_tools", "call_read_tool", "call_tool", "read_result"]


def http_server(name: str, **values: Any) -> Server:
    return make_server(name=name, transport=Transport.HTTP, url="http://127.0.0.1:1/mcp", **values)


def offer(policy: Policy | None = None, **options: Any) -> GatewayOffer:
    return gateway_offer_of((policy or make_policy()).pk, **options)


def listed(found: GatewayOffer) -> list[str]:
    return [tool["name"] for tool in found.list_page().tools]


class TestSearchExposure:
    def test_lists_our_five_then_what_the_policy_loads(self) -> None:
        server = http_server("time")
        make_tool(server=server, name="now")
        make_tool(server=server, name="zones")
        assert listed(offer(make_policy(never_defer=["time/zones"]))) == [*OURS, "time__zones"]

    def test_list_does_not_grow_with_what_is_deferred(self) -> None:
        make_tool(server=http_server("time"), name="now")
        before = len(json.dumps(offer().list_page().tools))
        for number in range(30):
            make_tool(server=http_server(f"s{number}"), name="act")
        policy = make_policy(prompt_budget_tokens=1)
        assert len(json.dumps(offer(policy).list_page().tools)) <= before

    def test_as_many_loaded_tools_as_a_page_may_have_are_on_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_offer, "GATEWAY_PAGE_ENTRIES", 2)
        server = http_server("time")
        for name in ("now", "then", "zones"):
            make_tool(server=server, name=name)
        page = offer(make_policy(never_defer=["now", "then"])).list_page()
        assert [tool["name"] for tool in page.tools] == [*OURS, "time__now", "time__then"]
        assert page.next is None

    def test_search_tool_names_the_servers_behind_it(self) -> None:
        make_tool(server=http_server("time"), name="now")
        found = offer()
        assert "- time (1): now" in found.list_page().tools[0]["description"]

    def test_our_tools_are_loaded_at_once_by_clients_that_defer(self) -> None:
        make_tool(server=http_server("time"), name="now")
        assert all(tool["_meta"] == {ALWAYS_LOAD: True} for tool in offer().list_page().tools)


class TestNothingDeferred:
    @pytest.mark.parametrize("exposure", list(Exposure))
    def test_lists_every_tool_and_read_result_alone(self, exposure: Exposure) -> None:
        make_tool(server=http_server("time"), name="now")
        assert listed(offer(make_policy(mode=Mode.OFF), exposure=exposure)) == ["read_result", "time__now"]


class TestNativeExposure:
    def test_lists_all_and_marks_what_is_loaded(self) -> None:
        server = http_server("time")
        make_tool(server=server, name="now", meta={ALWAYS_LOAD: True, "own": 1})
        make_tool(server=server, name="zones")
        policy = make_policy(never_defer=["zones"], always_defer=["now"])
        page = offer(policy, exposure=Exposure.NATIVE).list_page()
        metas = {tool["name"]: tool.get("_meta") for tool in page.tools}
        assert metas == {
            "read_result": {ALWAYS_LOAD: True},
            "time__now": {"own": 1},
            "time__zones": {ALWAYS_LOAD: True},
        }

    def test_pages_hold_every_tool_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gateway_offer, "GATEWAY_PAGE_ENTRIES", 2)
        server = http_server("time")
        for number in range(5):
            make_tool(server=server, name=f"t{number}")
        found = offer(exposure=Exposure.NATIVE)
        names, cursor, sizes = [], None, []
        while True:
            page = found.list_page(cursor)
            names += [tool["name"] for tool in page.tools]
            sizes.append(len(page.tools))
            cursor = page.next
            if cursor is None:
                break
        assert names == ["read_result", *(f"time__t{number}" for number in range(5))]
        assert sizes == [2, 2, 2]

    def test_empty_cursor_is_none(self) -> None:
        make_tool(server=http_server("time"), name="now")
        found = offer(exposure=Exposure.NATIVE)
        assert found.list_page("") == found.list_page()

    def test_unknown_cursor_is_refused(self) -> None:
        with pytest.raises(InvalidInput):
            offer(exposure=Exposure.NATIVE).list_page("%%%")


class TestDefinitions:
    def test_output_schema_only_where_results_are_never_cut(self) -> None:
        make_tool(server=http_server("time"), name="now", output_schema={"type": "object"})
        limited = make_policy(mode=Mode.OFF)
        unlimited = make_policy(mode=Mode.OFF, max_result_tokens=0)
        assert "outputSchema" not in offer(limited).list_page().tools[1]
        assert offer(unlimited).list_page().tools[1]["outputSchema"] == {"type": "object"}

    def test_schema_is_one_of_an_object(self) -> None:
        make_tool(server=http_server("time"), name="now")
        assert offer(make_policy(mode=Mode.OFF)).list_page().tools[1]["inputSchema"] == {"type": "object"}


class TestLeftOut:
    def test_snapshots_and_builtins_are_counted_and_in_no_name(self) -> None:
        make_tool(server=http_server("time"), name="now")
        make_tool(server=make_server(name="files"), name="read")
        make_tool(server=http_server("own", kind=Kind.BUILTIN), name="bash")
        found = offer()
        assert found.left_out == {"snapshot": 1, "builtin": 1}
        assert sorted(found.by_name) == ["mcp__time__now", "time__now"]

    def test_server_that_becomes_a_snapshot_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gateway_offer, "SNAPSHOTS_KEPT_SECONDS", -1)
        server, policy = http_server("time"), make_policy()
        make_tool(server=server, name="now")
        assert offer(policy).by_name
        Server.objects.filter(pk=server.pk).update(transport=Transport.SNAPSHOT, url="")
        assert not offer(policy).by_name


class TestNames:
    def test_qualified_names_are_taken_too(self) -> None:
        make_tool(server=http_server("time"), name="now")
        found = offer(names=NameStyle.OWN)
        assert found.by_name["now"] is found.by_name["mcp__time__now"]

    def test_tool_that_is_hidden_is_unknown(self) -> None:
        tool, policy = make_tool(server=http_server("time"), name="now"), make_policy()
        assert "time__now" in offer(policy).by_name
        Tool.objects.filter(pk=tool.pk).update(hidden=True)
        policy.version += 1
        policy.save()
        assert "time__now" not in offer(policy).by_name


def test_tokens_are_those_of_the_whole_list() -> None:
    make_tool(server=http_server("time"), name="now", description="x" * 4000)
    found = offer(make_policy(mode=Mode.OFF))
    assert 1000 < found.listed_tokens < 1200
