"""What becomes of a call when the connection or the session is lost. Nothing is executed twice."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.upstream.leases import LeasePool
from tests.catalog.upstream.conftest import odd_connection
from tests.catalog.upstream.forgetful import ForgetfulServer, run_forgetful
from tests.catalog.upstream.leasing import Caller, descendants, open_pool, until, upstream_of
from tests.harness.upstream_fixture import count_in, lines_of, run_over_http, stdio_connection

pytestmark = pytest.mark.anyio
BAD_REQUEST = (
    b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Bad Request: no session"}}'
)
NAMELESS = b'{"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: no session"}}'


@pytest.fixture
def forgetful() -> Iterator[ForgetfulServer]:
    with run_forgetful() as server:
        yield server


@pytest.fixture
async def pool() -> AsyncIterator[LeasePool]:
    async with open_pool() as (pool, _):
        yield pool


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b""), (404, BAD_REQUEST), (400, b"gone"), (400, BAD_REQUEST), (400, NAMELESS)],
)
async def test_a_forgotten_session_is_opened_anew_and_the_call_repeated(
    status: int, body: bytes, pool: LeasePool, forgetful: ForgetfulServer
) -> None:
    forgetful.lost_status, forgetful.lost_body = status, body
    caller = Caller(pool, upstream_of(forgetful.connection))
    await caller.call("first")
    forgetful.sessions.clear()
    assert await caller.text("second") == "done"
    assert forgetful.executed == ["first", "second"]
    assert forgetful.opened == 2
    await until(lambda: len(pool.snapshot()) == 1)


async def test_a_session_that_is_always_forgotten_is_reopened_once(
    pool: LeasePool, forgetful: ForgetfulServer
) -> None:
    forgetful.refusal = 404, b""
    with pytest.raises(UpstreamFailure, match="404"):
        await Caller(pool, upstream_of(forgetful.connection)).call("any")
    assert forgetful.opened == 2


async def test_a_refusal_that_names_the_request_is_an_answer(
    pool: LeasePool, forgetful: ForgetfulServer
) -> None:
    forgetful.refusal = 400, b'{"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "which?"}}'
    with pytest.raises(Exception, match=r"which\?"):
        await Caller(pool, upstream_of(forgetful.connection)).call("any")
    assert forgetful.opened == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "needs a sign-in"),
        (403, "refuses access"),
        (500, "error of its own"),
        (429, "fewer"),
    ],
)
async def test_a_refused_post_costs_one_call_only(
    status: int, words: str, pool: LeasePool, forgetful: ForgetfulServer
) -> None:
    caller = Caller(pool, upstream_of(forgetful.connection))
    await caller.call("first")
    [opened] = pool.snapshot()
    forgetful.refusal = status, b"no"
    with pytest.raises(UpstreamFailure, match=words):
        await caller.call("second")
    forgetful.refusal = None
    assert await caller.text("third") == "done"
    assert [lease.id for lease in pool.snapshot()] == [opened.id]


async def test_a_refusal_of_our_answer_to_a_question_is_not_one_of_the_call(
    pool: LeasePool, forgetful: ForgetfulServer
) -> None:
    forgetful.asks_first = True
    caller = Caller(pool, upstream_of(forgetful.connection))
    assert await caller.text("pay") == "done"
    assert forgetful.was_told.is_set()
    forgetful.hangs_up = True
    with pytest.raises(UpstreamFailure, match="may have done what it was asked"):
        await caller.call("pay again")
    assert forgetful.executed == ["pay", "pay again"]
    assert forgetful.opened == 1


async def test_a_call_that_may_have_been_executed_is_not_repeated(
    pool: LeasePool, forgetful: ForgetfulServer
) -> None:
    caller = Caller(pool, upstream_of(forgetful.connection))
    forgetful.hangs_up = True
    with pytest.raises(UpstreamFailure, match="may have done what it was asked") as failed:
        await caller.call("pay")
    assert failed.value.code is FailureCode.DISCONNECTED
    assert forgetful.executed == ["pay"]


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_server_that_was_started_again_is_called_again(
    era: str, tmp_path: Path, pool: LeasePool
) -> None:
    log = tmp_path / "log"
    with run_over_http(log) as first:
        caller = Caller(pool, upstream_of(first.connection()), era=era)  # type: ignore[arg-type]
        await caller.call("echo")
        port = first.port
    with run_over_http(log, port=port):
        assert await caller.text("echo") == "hello"
    assert count_in(log, "started") == 2


async def test_a_server_that_is_down_is_told(pool: LeasePool) -> None:
    with run_over_http() as fixture:
        caller = Caller(pool, upstream_of(fixture.connection()))
        await caller.call("echo")
    with pytest.raises(UpstreamFailure, match="is the server running") as failed:
        await caller.call("echo")
    assert failed.value.code is FailureCode.REFUSED
    await until(lambda: not pool.snapshot())


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_crash_in_a_call_is_told_to_every_caller_and_not_repeated(
    era: str, tmp_path: Path, pool: LeasePool
) -> None:
    log = tmp_path / "log"
    caller = Caller(pool, upstream_of(stdio_connection(log)), era=era)  # type: ignore[arg-type]
    waiting = asyncio.create_task(caller.call("silent"))
    await until(lambda: count_in(log, "started silent") == 1)
    with pytest.raises(UpstreamFailure, match=r"exit code 3.*asked to crash") as failed:
        await caller.call("crash")
    assert failed.value.code is FailureCode.EXITED
    with pytest.raises(UpstreamFailure, match="exit code 3"):
        await waiting
    assert lines_of(log).count("started crash -") == 1
    assert await caller.text("echo") == "hello"
    assert pool.breakers() == []  # an answer closes the breaker


@pytest.mark.parametrize("kind", ["http", "legacy"])
async def test_a_crash_over_http_is_told_as_well(kind: str, pool: LeasePool) -> None:
    with run_over_http() as fixture:
        caller = Caller(pool, upstream_of(fixture.connection()), era="legacy" if kind == "legacy" else "auto")
        with pytest.raises(UpstreamFailure, match="may have done what it was asked") as failed:
            await caller.call("crash")
    assert failed.value.code is FailureCode.DISCONNECTED


async def test_a_child_that_died_between_calls_is_started_again_unnoticed(pool: LeasePool) -> None:
    caller = Caller(pool, upstream_of(stdio_connection()))
    assert await caller.text("count") == "1"
    [lease] = pool.snapshot()
    assert lease.pid
    [child] = descendants(lease.pid)
    os.kill(child, signal.SIGKILL)
    await until(lambda: not pool.snapshot())
    assert await caller.text("count") == "1"
    assert pool.breakers() == []


async def test_a_lost_child_is_no_cancellation_of_the_caller(pool: LeasePool) -> None:
    caller = Caller(pool, upstream_of(odd_connection("exits_at_once")))
    with pytest.raises(UpstreamFailure, match=r"exit code 3.*config file is missing") as failed:
        await caller.call("any")
    assert failed.value.code is FailureCode.EXITED
    task = asyncio.current_task()
    assert task
    assert not task.cancelling()
