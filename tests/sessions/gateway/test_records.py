"""What is recorded of calls and searches, and what is not."""

from typing import Any

import pytest

from catalog.services import connections
from sessions.models import AgentSession, Call, GatewayClient, SearchEvent
from sessions.services import write_behind
from tests.harness.gateway import ERAS, LEGACY, MODERN, MODES, RunningGateway
from tests.harness.upstream_fixture import HttpFixture
from tests.sessions.gateway.catalog import (
    ON_THREADS,
    Catalog,
    add_server,
    define,
    follow,
    give_tools,
    last_call,
    recorded_calls,
)

pytestmark = ON_THREADS

SECRET = "Kx7-horse-battery-9Qz"


@pytest.mark.parametrize("era", ERAS)
def test_each_call_is_one_record(gateway: RunningGateway, catalog: Catalog, era: str) -> None:
    catalog.change(call_timeout_seconds=1)
    given: tuple[tuple[str, dict[str, Any], str, str], ...] = (
        ("fixture__echo", {"text": "é" * 10}, "direct", "ok"),
        ("call_tool", {"name": "fixture__fail"}, "call_tool", "tool_error"),
        ("call_read_tool", {"name": "fixture__count"}, "call_read_tool", "ok"),
        ("call_read_tool", {"name": "fixture__fail"}, "call_read_tool", "refused"),
        ("fixture__refuse", {}, "direct", "tool_error"),
        ("call_tool", {"name": "fixture__silent"}, "call_tool", "timeout"),
    )
    for tool, arguments, _, _ in given:
        gateway.call(catalog.key, tool, arguments, era=era, agent="some-agent/1.2 (linux)")
    records = recorded_calls()
    assert [(call.via, call.outcome) for call in records] == [(via, outcome) for *_, via, outcome in given]
    assert {call.revision for call in records} == {era}
    assert {call.client for call in records} == {"raw" if era == MODERN else "some-agent"}
    assert {call.server for call in records} == {"fixture"}
    assert {call.key_name for call in records} == {"key of all"}
    assert {call.policy for call in records} == {"all"}
    first, refused = records[0], records[3]
    assert (first.tool, first.request_bytes) == ("mcp__fixture__echo", len('{"text":""}') + 10 * 6)
    assert first.result_bytes > 60
    assert first.upstream_ms is not None
    assert first.upstream_ms <= first.duration_ms
    assert (refused.upstream_ms, refused.result_bytes) == (None, 0)
    assert not any(call.arguments or call.result for call in records)


def test_bad_input_of_our_own_tools_is_refused(gateway: RunningGateway, catalog: Catalog) -> None:
    given: tuple[tuple[str, dict[str, Any]], ...] = (
        ("search_tools", {"pattern": "("}),
        ("search_tools", {"query": 5}),
        ("search_tools", {"query": "x" * 501}),
        ("search_tools", {"query": "x", "max_results": 0}),
        ("describe_tools", {}),
        ("describe_tools", {"names": ["x"] * 21}),
        ("call_tool", {}),
        ("read_result", {"handle": 1}),
    )
    for tool, arguments in given:
        assert gateway.call(catalog.key, tool, arguments).is_tool_error, arguments
    records = recorded_calls()
    assert [call.tool for call in records] == [tool for tool, _ in given]
    assert {(call.outcome, call.server, call.via) for call in records} == {("refused", "", "direct")}
    assert all(call.request_bytes > 1 and call.error for call in records)


class TestSearches:
    @pytest.mark.parametrize("era", ERAS)
    def test_are_recorded_under_the_session_of_key_and_client(
        self, gateway: RunningGateway, catalog: Catalog, era: str
    ) -> None:
        for _ in range(2):
            gateway.call(catalog.key, "search_tools", {"query": "say"}, era=era, agent="some-agent/1")
        gateway.call(catalog.key, "fixture__echo", era=era, agent="some-agent/1")
        write_behind.flush()
        session = AgentSession.objects.get()
        assert session.external_id == ("mcp:raw" if era == MODERN else "mcp:some-agent")
        searches = SearchEvent.objects.filter(session=session)
        assert [search.query for search in searches] == ["say", "say"]
        assert last_call().session_id == session.pk

    def test_load_nothing(self, gateway: RunningGateway, catalog: Catalog) -> None:
        before = gateway.ask(catalog.key, "tools/list").result
        gateway.call(catalog.key, "search_tools", {"query": "select:fixture__echo"})
        assert gateway.ask(catalog.key, "tools/list").result == before


class TestClients:
    @pytest.mark.parametrize("mode", MODES)
    def test_are_noted_by_name_and_revision(
        self, gateway: RunningGateway, catalog: Catalog, mode: str
    ) -> None:
        with gateway.connect(catalog.key, mode=mode) as agent:
            agent.do("list_tools")
            agent.do("call_tool", "fixture__echo")
        recorded_calls()
        client = GatewayClient.objects.exclude(last_call_at=None).get()
        assert client.revision == (MODERN if mode == "auto" else LEGACY)
        assert client.name == ("tester" if mode == "auto" else "python-httpx2")
        assert client.exposure == "search"

    def test_that_lie_about_themselves_do_no_harm(self, gateway: RunningGateway, catalog: Catalog) -> None:
        for agent in ("", "/", "x" * 5_000, "\x07bell/1", "é/ü", "<b>/1"):
            headers = {"User-Agent": agent.encode()}
            answer = gateway.call(catalog.key, "fixture__count", era=LEGACY, headers=headers)
            assert not answer.is_tool_error
        records = recorded_calls()
        assert len(records) == 6
        assert all(call.client.isprintable() and len(call.client) <= 100 for call in records)


class TestFull:
    def test_has_arguments_and_results(self, gateway: RunningGateway, catalog: Catalog) -> None:
        catalog.change(record_calls="full")
        gateway.call(catalog.key, "fixture__echo", {"text": "hello"})
        call = last_call()
        assert call.arguments == '{"text": "hello"}'
        assert '"hello"' in call.result

    def test_masks_what_is_a_secret_by_its_name_or_form(
        self, gateway: RunningGateway, catalog: Catalog
    ) -> None:
        catalog.change(record_calls="full")
        token = "ghp_" + "a1B2" * 9
        gateway.call(catalog.key, "fixture__echo", {"text": f"use {token}", "password": "hunter22"})
        call = last_call()
        assert token not in call.arguments + call.result
        assert "hunter22" not in call.arguments

    @pytest.mark.parametrize("name", ["Authorization", "X-Region"])
    def test_masks_the_settings_of_the_server(
        self, gateway: RunningGateway, catalog: Catalog, upstream: HttpFixture, name: str
    ) -> None:
        catalog.change(record_calls="full")
        connection = upstream.connection(**{name: f"Bearer {SECRET}" if name == "Authorization" else SECRET})
        connections.write_connection(catalog.server, connection)
        catalog.server.save()
        gateway.call(catalog.key, "fixture__echo", {"text": f"it was {SECRET}"})
        gateway.call(catalog.key, "fixture__headers")
        for call in recorded_calls():
            assert call.outcome == "ok"
            assert SECRET not in call.arguments + call.result + call.error
        assert "it was" in recorded_calls()[0].arguments

    def test_masks_what_the_settings_refer_to(
        self,
        gateway: RunningGateway,
        catalog: Catalog,
        upstream: HttpFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("UPSTREAM_PLACE", SECRET)
        catalog.change(record_calls="full")
        server = add_server("referring", upstream.connection(**{"X-Place": "${UPSTREAM_PLACE}"}))
        give_tools(server, [define("echo")])
        follow()
        gateway.call(catalog.key, "referring__echo", {"text": f"it was {SECRET}"})
        call = last_call()
        assert call.outcome == "ok"
        assert SECRET not in call.arguments + call.result

    def test_is_for_this_policy_and_from_now_on(self, gateway: RunningGateway, catalog: Catalog) -> None:
        gateway.call(catalog.key, "fixture__echo", {"text": "before"})
        catalog.change(record_calls="full")
        gateway.call(catalog.key, "fixture__echo", {"text": "during"})
        catalog.change(record_calls="names")
        gateway.call(catalog.key, "fixture__echo", {"text": "after"})
        assert [bool(call.arguments) for call in recorded_calls()] == [False, True, False]


def test_an_error_of_our_own_leaves_a_record_and_tells_nothing(
    gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr("sessions.gateway.calling.read_target", fail)
    for era in ERAS:
        answer = gateway.call(catalog.key, "fixture__echo", era=era)
        assert answer.error["code"] == -32603
        assert SECRET not in answer.text
    assert [call.outcome for call in recorded_calls()] == ["upstream_failed"] * 2
    assert SECRET not in last_call().error
    assert Call.objects.count() == 2
