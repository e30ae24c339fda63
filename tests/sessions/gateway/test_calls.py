"""Calls: who is asked, what is refused, how one ends early."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from catalog.domain.limits import GATEWAY_OPEN_CALLS
from catalog.models import Server, Tool
from catalog.services import connections
from sessions.models import UpstreamState
from tests.harness.gateway import ERAS, LEGACY, MODERN, MODES, RunningGateway, wait_until
from tests.harness.upstream_fixture import HttpFixture, count_in, run_over_http, stdio_connection
from tests.sessions.gateway.catalog import (
    ON_THREADS,
    Catalog,
    add_server,
    define,
    follow,
    give_tools,
    last_call,
    make_key,
    recorded_calls,
)

pytestmark = ON_THREADS

NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "object", "required": ["c"]}},
    "required": ["a", "d"],
}


@pytest.mark.parametrize("era", ERAS)
class TestArguments:
    def test_that_do_not_fit_are_refused_with_every_field(
        self, gateway: RunningGateway, catalog: Catalog, upstream_log: Path, era: str
    ) -> None:
        give_tools(catalog.server, [define("echo", NUMBERS)])
        follow()
        before = count_in(upstream_log, "started echo")
        wrong = {"a": "s3cret-value", "b": {}}
        for tool, arguments in (
            ("fixture__echo", wrong),
            ("call_tool", {"name": "fixture__echo", "arguments": wrong}),
            ("call_read_tool", {"name": "mcp__fixture__echo", "arguments": wrong}),
        ):
            answer = gateway.call(catalog.key, tool, arguments, era=era)
            assert answer.is_tool_error
            for place in ("arguments.a:", "arguments.b.c: is missing", "arguments.d: is missing"):
                assert place in answer.said
            call = last_call()
            assert (call.outcome, call.arguments) == ("refused", "")
            assert "s3cret" not in call.error
            assert "arguments.a, " in call.error
        assert count_in(upstream_log, "started echo") == before

    def test_given_twice_are_refused(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        given = {"name": "fixture__echo", "arguments": {"text": "a"}, "arguments_json": "{}"}
        answer = gateway.call(catalog.key, "call_tool", given, era=era)
        assert answer.is_tool_error
        assert "not both" in answer.said
        call = last_call()
        assert (call.outcome, call.tool, call.via) == ("refused", "mcp__fixture__echo", "call_tool")

    def test_as_text_are_read(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        given = {"name": "fixture__echo", "arguments_json": '{"text": "é"}'}
        assert gateway.call(catalog.key, "call_tool", given, era=era).said == "é"


class TestReadOnly:
    def test_tool_that_is_not_is_refused_by_call_read_tool(
        self, gateway: RunningGateway, catalog: Catalog
    ) -> None:
        answer = gateway.call(catalog.key, "call_read_tool", {"name": "fixture__slow"})
        assert answer.is_tool_error
        assert "call_tool" in answer.said
        assert (last_call().outcome, last_call().via) == ("refused", "call_read_tool")

    def test_admins_mark_goes_before_the_definition(self, gateway: RunningGateway, catalog: Catalog) -> None:
        Tool.objects.filter(name="echo").update(read_only=False)
        Tool.objects.filter(name="chatty").update(read_only=True)
        refused = gateway.call(catalog.key, "call_read_tool", {"name": "fixture__echo"})
        taken = gateway.call(catalog.key, "call_read_tool", {"name": "fixture__chatty"})
        assert (refused.is_tool_error, taken.said) == (True, "done")


class TestProgress:
    @pytest.mark.parametrize("era", ERAS)
    def test_reaches_who_asks(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        answer = gateway.call(catalog.key, "fixture__progress", era=era, meta={"progressToken": "p1"})
        told = [one["params"] for one in answer.messages if one.get("method") == "notifications/progress"]
        assert told
        assert {one["progressToken"] for one in told} == {"p1"}
        assert (told[-1]["progress"], told[-1]["total"], told[-1]["message"]) == (3, 3, "step 3")
        assert answer.said == "done"

    @pytest.mark.parametrize("era", ERAS)
    def test_reaches_nobody_else(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        answer = gateway.call(catalog.key, "fixture__progress", era=era)
        assert [one for one in answer.messages if "method" in one] == []
        sent = gateway.call(catalog.key, "fixture__headers", era=era).result["structuredContent"]["meta"]
        assert "progressToken" not in sent

    @pytest.mark.parametrize("mode", MODES)
    def test_reaches_the_sdks_client(self, gateway: RunningGateway, catalog: Catalog, mode: str) -> None:
        told: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append(progress)

        with gateway.connect(catalog.key, mode=mode) as agent:
            given = {"name": "fixture__progress"}
            assert not agent.do("call_tool", "call_tool", given, progress_callback=note).is_error
            wait_until(lambda: told and told[-1] == 3)


class TestEnds:
    @pytest.mark.parametrize("era", ERAS)
    def test_early_where_the_client_leaves(
        self, gateway: RunningGateway, catalog: Catalog, upstream_log: Path, era: str
    ) -> None:
        started = count_in(upstream_log, "started silent")
        cancelled = count_in(upstream_log, "cancelled silent")
        params = {"name": "call_tool", "arguments": {"name": "fixture__silent"}}
        with gateway.begin(catalog.key, "tools/call", params, era=era):
            wait_until(lambda: count_in(upstream_log, "started silent") > started)
        wait_until(lambda: count_in(upstream_log, "cancelled silent") > cancelled)
        wait_until(lambda: recorded_calls() and last_call().outcome == "cancelled")
        wait_until(lambda: not gateway.transport.requests)

    def test_early_for_an_old_client_that_names_another_method_in_a_header(
        self, gateway: RunningGateway, catalog: Catalog, upstream_log: Path
    ) -> None:
        """Only the newest revision's headers are compared with what is asked."""
        started = count_in(upstream_log, "started silent")
        cancelled = count_in(upstream_log, "cancelled silent")
        params, headers = {"name": "fixture__silent", "arguments": {}}, {"Mcp-Method": "tools/list"}
        with gateway.begin(catalog.key, "tools/call", params, era=LEGACY, headers=headers):
            wait_until(lambda: count_in(upstream_log, "started silent") > started)
        wait_until(lambda: count_in(upstream_log, "cancelled silent") > cancelled)

    @pytest.mark.parametrize("era", ERAS)
    def test_when_the_policy_says(
        self, gateway: RunningGateway, catalog: Catalog, upstream_log: Path, era: str
    ) -> None:
        cancelled = count_in(upstream_log, "cancelled silent")
        catalog.change(call_timeout_seconds=1)
        answer = gateway.call(catalog.key, "fixture__silent", era=era)
        assert answer.is_tool_error
        assert answer.said == "The server did not answer within 1 s"
        assert last_call().outcome == "timeout"
        assert 900 <= (last_call().upstream_ms or 0) < 5_000
        wait_until(lambda: count_in(upstream_log, "cancelled silent") > cancelled)

    @pytest.mark.parametrize("era", ERAS)
    def test_with_the_servers_own_error(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        answer = gateway.call(catalog.key, "fixture__refuse", era=era)
        assert answer.is_tool_error
        assert "refused by the tool" in answer.said
        assert answer.result["structuredContent"]["code"] == -32042
        assert (last_call().outcome, last_call().error) == ("tool_error", "refused by the tool")

    @pytest.mark.parametrize("era", ERAS)
    def test_with_the_servers_crash_which_is_told_and_not_repeated(
        self, gateway: RunningGateway, catalog: Catalog, tmp_path: Path, era: str
    ) -> None:
        log = tmp_path / "log"
        server = add_server("fragile", stdio_connection(log))
        give_tools(server, [define("crash"), define("echo")])
        follow()
        answer = gateway.call(catalog.key, "fragile__crash", era=era)
        assert answer.is_tool_error
        assert "whether it was carried out is not known" in answer.said, last_call().error
        assert count_in(log, "started crash") == 1
        assert last_call().outcome == "upstream_failed"
        assert gateway.call(catalog.key, "fragile__echo", {"text": "again"}, era=era).said == "again"

    def test_with_a_server_that_is_not_there(self, gateway: RunningGateway, catalog: Catalog) -> None:
        with run_over_http() as gone:
            connection = gone.connection(Authorization="Bearer s3cret-of-the-server")
        give_tools(add_server("away", connection), [define("echo")])
        follow()
        answer = gateway.call(catalog.key, "away__echo")
        assert answer.is_tool_error
        assert answer.said == "The server away could not be reached."
        assert last_call().outcome == "upstream_failed"
        assert "s3cret" not in last_call().error


class TestQuestions:
    def test_pass_to_a_modern_client_and_its_answer_back(
        self, gateway: RunningGateway, catalog: Catalog
    ) -> None:
        capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
        for tool, arguments in (
            ("fixture__input_required", {}),
            ("call_tool", {"name": "fixture__input_required"}),
        ):
            asked = gateway.call(catalog.key, tool, arguments, capabilities=capabilities).result
            assert asked["resultType"] == "input_required"
            assert asked["requestState"] == "asked"
            assert list(asked["inputRequests"]) == ["sure"]
            answers = {"sure": {"action": "accept", "content": {"sure": True}}}
            again = gateway.call(
                catalog.key,
                tool,
                arguments,
                capabilities=capabilities,
                params={"inputResponses": answers, "requestState": "asked"},
            )
            assert again.said.startswith("answered: ")
            assert [call.outcome for call in recorded_calls()[-2:]] == ["ok", "ok"]

    def test_are_answered_by_the_sdks_client(self, gateway: RunningGateway, catalog: Catalog) -> None:
        async def answer(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action="accept", content={"sure": True})

        with gateway.connect(catalog.key, mode="auto", elicitation_callback=answer) as agent:
            for tool, arguments in (
                ("fixture__input_required", {}),
                ("call_tool", {"name": "fixture__input_required"}),
            ):
                result = agent.do("call_tool", tool, arguments)
                assert '"sure":true' in result.content[0].text

    def test_are_refused_by_name_for_an_old_client(self, gateway: RunningGateway, catalog: Catalog) -> None:
        for name, word in (("ask", "licitation"), ("sample", "ampling"), ("roots", "oots")):
            answer = gateway.call(catalog.key, f"fixture__{name}", era=LEGACY)
            assert "refused" in answer.said
            assert word in answer.said, name

    def test_by_a_server_that_needs_the_newest_revision_are_refused(
        self, gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def ask(*_: Any, **__: Any) -> Any:
            return {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}

        monkeypatch.setattr("catalog.upstream.leases.LeasePool.request", ask)
        answer = gateway.call(catalog.key, "fixture__echo", era=LEGACY)
        assert answer.is_tool_error
        assert "input" in answer.said
        assert last_call().outcome == "refused"

    def test_by_a_prompt_are_refused_and_counted_too(
        self, gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def ask(*_: Any, **__: Any) -> Any:
            return {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}

        monkeypatch.setattr("catalog.upstream.leases.LeasePool.request", ask)
        params = {"name": "fixture__greet", "arguments": {"name": "Ada"}}
        assert "input" in gateway.ask(catalog.key, "prompts/get", params, era=LEGACY).error["message"]
        wait_until(lambda: [one.refused for one in UpstreamState.objects.all()] == [{"input_required": 1}])


class TestLimits:
    def test_open_calls_of_a_key(self, gateway: RunningGateway, catalog: Catalog, upstream_log: Path) -> None:
        before = count_in(upstream_log, "started silent")
        params = {"name": "fixture__silent", "arguments": {}}
        with ExitStack() as open_calls:
            for _ in range(GATEWAY_OPEN_CALLS):
                open_calls.enter_context(gateway.begin(catalog.key, "tools/call", params))
            wait_until(lambda: count_in(upstream_log, "started silent") == before + GATEWAY_OPEN_CALLS, 30)
            refused = gateway.call(catalog.key, "fixture__echo")
            read = gateway.ask(
                catalog.key, "resources/read", {"uri": "toolsearch://fixture/note%3A%2F%2Fone"}
            )
            other = gateway.call(make_key(catalog.policy)[1], "fixture__echo", {"text": "x"})
        assert refused.is_tool_error
        assert refused.result["structuredContent"]["retry_after_seconds"] == 1
        assert str(GATEWAY_OPEN_CALLS) in read.error["message"]
        assert other.said == "x"
        wait_until(lambda: not gateway.transport.requests)
        assert gateway.call(catalog.key, "fixture__echo", {"text": "y"}).said == "y"


class TestSecrets:
    @pytest.fixture
    def with_headers(self, catalog: Catalog, upstream: HttpFixture) -> Server:
        connection = upstream.connection(Authorization="Bearer of-the-server")
        connections.write_connection(catalog.server, connection)
        catalog.server.save()
        return catalog.server

    @pytest.mark.parametrize("era", ERAS)
    def test_the_servers_own_are_sent_and_never_the_agents_key(
        self, gateway: RunningGateway, catalog: Catalog, with_headers: Server, era: str
    ) -> None:
        for tool, arguments in (
            ("fixture__headers", {}),
            ("call_read_tool", {"name": "fixture__headers"}),
        ):
            result = gateway.call(
                catalog.key, tool, arguments, era=era, headers={"X-Own": catalog.key, "Cookie": catalog.key}
            ).result
            assert result["structuredContent"]["authorization"] == "Bearer of-the-server"
            assert catalog.key not in str(result)

    def test_none_are_sent_where_the_server_has_none(self, gateway: RunningGateway, catalog: Catalog) -> None:
        result = gateway.call(catalog.key, "fixture__headers").result
        assert result["structuredContent"]["authorization"] is None

    def test_changed_ones_are_used_by_the_next_call(
        self, gateway: RunningGateway, catalog: Catalog, upstream: HttpFixture
    ) -> None:
        gateway.call(catalog.key, "fixture__headers")
        connections.write_connection(catalog.server, upstream.connection(Authorization="Bearer another"))
        catalog.server.save()
        result = gateway.call(catalog.key, "fixture__headers").result
        assert result["structuredContent"]["authorization"] == "Bearer another"


@pytest.mark.parametrize("era", ERAS)
def test_parameters_that_are_headers_are_sent_so(gateway: RunningGateway, catalog: Catalog, era: str) -> None:
    """The fixture refuses modern calls without the header."""
    headers = {"Mcp-Param-Region": "eu"}
    direct = gateway.call(catalog.key, "fixture__region", {"region": "eu"}, era=era, headers=headers)
    given = {"name": "fixture__region", "arguments": {"region": "us"}}
    assert direct.said == "eu"
    assert gateway.call(catalog.key, "call_tool", given, era=era).said == "us"


def test_parameter_that_is_too_long_for_a_header_is_refused(
    gateway: RunningGateway, catalog: Catalog
) -> None:
    given = {"name": "fixture__region", "arguments": {"region": "x" * 100_000}}
    answer = gateway.call(catalog.key, "call_tool", given, era=MODERN)
    assert "arguments.region: is sent as a header" in answer.said
    assert gateway.call(catalog.key, "fixture__echo", {"text": "still there"}).said == "still there"


@pytest.mark.parametrize("query", ["", "?names=own"])
@pytest.mark.parametrize("name", ["fixture__echo", "mcp__fixture__echo", "echo"])
def test_names_by_which_a_tool_is_called(
    gateway: RunningGateway, catalog: Catalog, name: str, query: str
) -> None:
    answer = gateway.call(catalog.key, name, {"text": "x"}, query=query, era=MODERN)
    is_known = name == "mcp__fixture__echo" or (name == "echo") == bool(query)
    assert answer.said == "x" if is_known else answer.error["code"] == -32602
