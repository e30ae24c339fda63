"""Calls over leases, on both transports and in both eras."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Limits, Rules, StdioRules, UpstreamFailure
from catalog.domain.upstream_calls import CallTimedOut, Era, LeaseHolder, UpstreamError
from catalog.upstream.leases import LeasePool
from tests.catalog.upstream.conftest import odd_connection
from tests.catalog.upstream.leasing import Caller, open_pool, until, upstream_of
from tests.harness.upstream_fixture import REGION, HttpFixture, count_in, run_over_http, stdio_connection

pytestmark = pytest.mark.anyio

CELLS = [(transport, era) for transport in ("stdio", "http") for era in ("auto", "legacy")]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("upstream") / "log"


@pytest.fixture(scope="module")
def http_fixture(log: Path) -> Iterator[HttpFixture]:
    with run_over_http(log) as fixture:
        yield fixture


@pytest.fixture(params=CELLS, ids="-".join)
async def caller(request: Any, log: Path, http_fixture: HttpFixture) -> AsyncIterator[Caller]:
    transport, era = request.param
    connection = stdio_connection(log) if transport == "stdio" else http_fixture.connection()
    async with open_pool() as (pool, _):
        yield Caller(pool, upstream_of(connection), era=era)


async def test_a_result_comes_as_it_was_sent(caller: Caller) -> None:
    result = await caller.call("media")
    kinds = [part["type"] for part in result["content"]]
    assert kinds == ["image", "audio", "resource", "resource_link"]
    assert result["content"][0]["mimeType"] == "image/png"
    trace = (await caller.call("extra"))["_meta"]["example.org/trace"]
    assert trace == "t1"


async def test_structured_content_is_not_held_against_a_schema(caller: Caller) -> None:
    assert (await caller.call("wrong_shape"))["structuredContent"] == {"number": "many"}
    first, second = [(await caller.call("changes_shape"))["structuredContent"] for _ in range(2)]
    assert second == {"numbers": ["many"]}
    assert first in ({"number": 1}, second)


async def test_an_error_answer_keeps_its_code_and_data(caller: Caller) -> None:
    with pytest.raises(UpstreamError) as refused:
        await caller.call("refuse")
    assert (refused.value.code, refused.value.message) == (-32042, "refused by the tool")
    assert refused.value.data == {"why": "asked to"}
    assert (await caller.call("fail"))["isError"] is True


async def test_a_lease_is_reused(caller: Caller) -> None:
    await caller.call("echo")
    [opened] = caller.pool.snapshot()
    await asyncio.gather(*(caller.call("echo") for _ in range(5)))
    [lease] = caller.pool.snapshot()
    assert lease.id == opened.id
    assert (lease.key_id, lease.server_id, lease.open_calls) == (1, 1, 0)
    assert lease.protocol_version == ("2025-11-25" if caller.holder.era == "legacy" else "2026-07-28")
    assert lease.last_used_at > opened.last_used_at


async def test_progress_comes_only_where_it_is_wanted(caller: Caller) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def on_progress(*progress: Any) -> None:
        told.append(progress)

    await caller.call("progress", steps=300, on_progress=on_progress)
    assert told[-1] == (300.0, 300.0, "step 300")
    assert len(told) < 100
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    meta = (await caller.call("headers"))["structuredContent"]["meta"]
    assert "progressToken" not in meta
    meta = (await caller.call("headers", on_progress=on_progress))["structuredContent"]["meta"]
    assert isinstance(meta["progressToken"], int)


async def test_the_callers_meta_is_passed_on_but_not_what_is_the_sdks(caller: Caller) -> None:
    given = {
        "traceparent": "00-1-2-01",
        "progressToken": 77,
        "io.modelcontextprotocol/protocolVersion": "1999-01-01",
        "io.modelcontextprotocol/logLevel": "debug",
    }
    meta = (await caller.call("headers", meta=given))["structuredContent"]["meta"]
    assert meta["traceparent"] == "00-1-2-01"
    assert "progressToken" not in meta
    assert "io.modelcontextprotocol/logLevel" not in meta
    assert meta.get("io.modelcontextprotocol/protocolVersion") in (None, "2026-07-28")


async def test_who_gives_up_stops_the_call_at_the_server(caller: Caller, log: Path) -> None:
    tag = f"{id(caller)}"
    call = asyncio.create_task(caller.call("silent", tag=tag))
    await until(lambda: count_in(log, f"started silent {tag}") == 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: count_in(log, f"cancelled silent {tag}") == 1)
    assert await caller.text("echo") == "hello"
    assert len(caller.pool.snapshot()) == 1


async def test_a_call_that_takes_too_long_is_ended_at_the_server(caller: Caller, log: Path) -> None:
    await caller.call("echo")
    tag = f"late{id(caller)}"
    with pytest.raises(CallTimedOut, match=r"within 0\.3 s"):
        await caller.call("silent", tag=tag, timeout_seconds=0.3)
    await until(lambda: count_in(log, f"cancelled silent {tag}") == 1)
    assert await caller.text("echo") == "hello"


async def test_resources_prompts_and_completion_go_the_same_way(caller: Caller) -> None:
    async def ask(method: str, **params: Any) -> Any:
        return await caller.pool.request(caller.upstream, caller.holder, method, params, timeout_seconds=10)

    assert (await ask("resources/read", uri="note://two"))["contents"][0]["text"] == "the note two"
    assert (await ask("prompts/get", name="greet", arguments={"name": "Ada"}))["messages"][0][
        "role"
    ] == "user"
    reference = {"type": "ref/prompt", "name": "greet"}
    found = await ask("completion/complete", ref=reference, argument={"name": "name", "value": "A"})
    assert found["completion"]["values"] == ["Ada", "Alan"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_modern_question_passes_and_its_answer_too(transport: str, http_fixture: HttpFixture) -> None:
    connection = stdio_connection() if transport == "stdio" else http_fixture.connection()
    async with open_pool() as (pool, _):
        holder = LeaseHolder(1, "auto", frozenset({"elicitation"}))
        params: dict[str, Any] = {"name": "input_required", "arguments": {}}
        asked = await pool.request(upstream_of(connection), holder, "tools/call", params, timeout_seconds=10)
        assert asked["resultType"] == "input_required"
        assert asked["inputRequests"]["sure"]["method"] == "elicitation/create"
        assert asked["requestState"] == "asked"
        answers = {"sure": {"action": "accept", "content": {"sure": True}}}
        told = {**params, "inputResponses": answers, "requestState": "asked"}
        done = await pool.request(upstream_of(connection), holder, "tools/call", told, timeout_seconds=10)
        assert '"sure":true' in done["content"][0]["text"]


@pytest.mark.parametrize(
    ("tool", "what"), [("ask", "elicitation"), ("sample", "sampling"), ("roots", "roots")]
)
@pytest.mark.parametrize(
    "answers", [frozenset(), frozenset({"elicitation", "sampling", "roots"})], ids=["mute", "answers"]
)
async def test_an_old_server_is_refused_by_name_and_counted(
    tool: str, what: str, answers: frozenset[str]
) -> None:
    async with open_pool() as (pool, refused):
        holder = LeaseHolder(1, "legacy", answers)
        params = {"name": tool, "arguments": {}}
        told = await pool.request(
            upstream_of(stdio_connection()), holder, "tools/call", params, timeout_seconds=10
        )
        assert told["content"][0]["text"].lower().startswith("refused")
        assert what in told["content"][0]["text"].lower()
        assert refused == {what: 1}


async def test_what_a_client_can_answer_is_declared_to_the_server(http_fixture: HttpFixture) -> None:
    async with open_pool() as (pool, _):
        declared = []
        for answers in (frozenset[str](), frozenset({"elicitation"}), frozenset({"sampling", "roots"})):
            upstream, holder = upstream_of(http_fixture.connection()), LeaseHolder(1, "auto", answers)
            params = {"name": "headers", "arguments": {}}
            told = await pool.request(upstream, holder, "tools/call", params, timeout_seconds=10)
            meta = told["structuredContent"]["meta"]
            declared.append(sorted(meta["io.modelcontextprotocol/clientCapabilities"]))
        assert declared == [[], ["elicitation"], ["roots", "sampling"]]
        assert len(pool.snapshot()) == 3


async def test_log_messages_are_dropped_and_counted() -> None:
    async with open_pool() as (pool, refused):
        caller = Caller(pool, upstream_of(stdio_connection()), era="legacy")
        assert await caller.text("chatty", count=3) == "done"
        assert refused == {"logging": 3}


async def test_parameters_that_are_headers_are_sent_as_headers(http_fixture: HttpFixture) -> None:
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(http_fixture.connection()))
        assert await caller.text("region", region="eu", input_schema=REGION) == "eu"
        with pytest.raises(UpstreamError) as refused:
            await Caller(pool, caller.upstream, key_id=2).call("region", region="eu")
        assert refused.value.code == -32020


async def test_fields_that_mcp_does_not_know_are_kept() -> None:
    async with open_pool() as (pool, _):
        result = await Caller(pool, upstream_of(odd_connection("answers_strangely"))).call("extra")
        assert result["weather"] == {"sun": True, "rain": None}
        assert result["content"] == [{"type": "text", "text": "more", "shade": "blue"}]


async def test_a_result_that_is_none_is_told_and_harms_no_other_call() -> None:
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(odd_connection("answers_strangely")))
        for _ in range(7):
            with pytest.raises(UpstreamFailure, match="not what MCP asks for") as failed:
                await caller.call("mistyped")
            assert failed.value.code is FailureCode.NOT_MCP
        assert (await caller.call("extra"))["weather"]
        assert pool.breakers() == []


async def test_arguments_that_are_null_stay_null() -> None:
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(stdio_connection()))
        assert await caller.text("echo", text=None, tag="a") in ("hello", "None")


async def test_a_reference_is_filled_in_when_the_lease_is_opened(http_fixture: HttpFixture) -> None:
    connection = http_fixture.connection(Authorization="Bearer ${FIXTURE_KEY}")
    async with open_pool(environment={"FIXTURE_KEY": "k-1234567890"}) as (pool, _):
        told = await Caller(pool, upstream_of(connection)).call("headers")
        assert told["structuredContent"]["authorization"] == "Bearer k-1234567890"
    async with open_pool(environment={}) as (pool, _):
        with pytest.raises(UpstreamFailure, match="FIXTURE_KEY is not set") as failed:
            await Caller(pool, upstream_of(connection)).call("headers")
        assert failed.value.code is FailureCode.MISSING_VARIABLE
        assert pool.breakers() == []


async def test_no_secret_is_in_an_error(http_fixture: HttpFixture) -> None:
    secret = "k-very-secret-4711"
    connection = odd_connection("fails_with_its_secret", env={"API_TOKEN": secret})
    async with open_pool() as (pool, _):
        with pytest.raises(UpstreamError) as refused:
            await pool.request(
                upstream_of(connection), LeaseHolder(1), "prompts/get", {"name": "x"}, timeout_seconds=10
            )
        assert "bad token" in refused.value.message
        assert secret not in refused.value.message
    connection = odd_connection("tells_its_secrets", env={"API_TOKEN": secret})
    async with open_pool() as (pool, _):
        with pytest.raises(UpstreamFailure) as failed:
            await Caller(pool, upstream_of(connection)).call("echo")
        assert secret not in f"{failed.value.message}{failed.value.stderr_tail}"


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (Rules(stdio=StdioRules(enabled=False)), FailureCode.STDIO_NOT_ALLOWED),
        (Rules(stdio=StdioRules(allowed_commands=frozenset({"npx"}))), FailureCode.STDIO_NOT_ALLOWED),
    ],
)
async def test_a_command_runs_only_where_commands_may(rules: Rules, code: FailureCode) -> None:
    async with open_pool() as (pool, _):
        with pytest.raises(UpstreamFailure) as failed:
            await Caller(pool, upstream_of(stdio_connection(), rules=rules)).call("echo")
        assert failed.value.code is code


async def test_an_address_passes_the_guard(http_fixture: HttpFixture) -> None:
    async with open_pool() as (pool, _):
        with pytest.raises(UpstreamFailure) as failed:
            await Caller(pool, upstream_of(http_fixture.connection(), rules=Rules())).call("echo")
        assert failed.value.code is FailureCode.BLOCKED_ADDRESS


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_command_that_exits_on_the_newest_greeting_is_started_again(era: Era) -> None:
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(odd_connection("ends_on_an_unknown_question")), era=era)
        assert (await caller.call("any"))["isError"] is True
        assert [lease.protocol_version for lease in pool.snapshot()] == ["2025-11-25"]


async def test_who_gives_up_while_a_server_starts_does_not_stop_it() -> None:
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(stdio_connection()))
        with pytest.raises(CallTimedOut):
            await caller.call("echo", timeout_seconds=0.01)
        [opening] = pool.snapshot()
        assert await caller.text("echo") == "hello"
        assert [lease.id for lease in pool.snapshot()] == [opening.id]


async def test_a_server_that_never_greets_is_told_in_time() -> None:
    limits = Limits(connect_timeout_seconds=0.5)
    async with open_pool() as (pool, _):
        with pytest.raises(UpstreamFailure, match=r"greeting within 0\.5 s") as failed:
            await Caller(pool, upstream_of(odd_connection("hangs_on_connect"), limits=limits)).call("echo")
        assert failed.value.code is FailureCode.CONNECT_TIMEOUT
        await until(lambda: not pool.snapshot())


async def test_sse_servers_are_called_as_well(sse_port: int) -> None:
    connection = Connection(Transport.SSE, url=f"http://127.0.0.1:{sse_port}/sse")
    async with open_pool() as (pool, _):
        assert await Caller(pool, upstream_of(connection)).text("lend_book", book_id=7) == "lent 7"


async def test_a_closed_pool_calls_nobody() -> None:
    pool = LeasePool()
    await pool.aclose()
    with pytest.raises(UpstreamFailure, match="stopping"):
        await Caller(pool, upstream_of(stdio_connection())).call("echo")
