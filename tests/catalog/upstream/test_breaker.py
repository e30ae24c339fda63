"""A server that keeps failing is left alone for a while, and then tried with one call at a time."""

import asyncio
import socket
from datetime import UTC, datetime

import pytest

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, UpstreamFailure
from catalog.domain.upstream_calls import BreakerPosition, CallTimedOut, UpstreamSuspended
from catalog.upstream.breaker import FAILURES_TO_OPEN, Breaker
from tests.catalog.upstream.leasing import Caller, open_pool, upstream_of
from tests.harness.upstream_fixture import run_over_http, stdio_connection

DOWN = UpstreamFailure(FailureCode.REFUSED, "it is down")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(clock: Clock) -> Breaker:
    breaker = Breaker(1, "a", clock=clock)
    for _ in range(FAILURES_TO_OPEN):
        breaker.fail(DOWN)
    return breaker


def test_few_failures_change_nothing(clock: Clock) -> None:
    breaker = Breaker(1, "a", clock=clock)
    for _ in range(FAILURES_TO_OPEN - 1):
        breaker.fail(DOWN)
    assert breaker.admit() is False
    breaker.succeed()
    breaker.fail(DOWN)
    assert breaker.position is BreakerPosition.CLOSED


def test_an_open_breaker_says_until_when(opened: Breaker) -> None:
    with pytest.raises(UpstreamSuspended, match="it is down") as suspended:
        opened.admit()
    assert 9 < suspended.value.retry_after_seconds <= 10
    assert 5 < (suspended.value.until - datetime.now(UTC)).total_seconds() <= 10
    assert suspended.value.code is FailureCode.SUSPENDED
    assert opened.state().open_until is not None


def test_half_open_lets_one_call_try(opened: Breaker, clock: Clock) -> None:
    clock.now += 10
    assert opened.state().position is BreakerPosition.HALF_OPEN
    assert opened.admit() is True
    with pytest.raises(UpstreamSuspended):
        opened.admit()
    opened.end_trial()
    assert opened.admit() is True
    opened.succeed()
    opened.end_trial()
    assert opened.state().position is BreakerPosition.CLOSED
    assert opened.admit() is False


def test_each_failed_try_doubles_the_pause_up_to_five_minutes(opened: Breaker, clock: Clock) -> None:
    pauses = []
    for _ in range(7):
        with pytest.raises(UpstreamSuspended) as suspended:
            opened.admit()
        pauses.append(round(suspended.value.retry_after_seconds))
        clock.now += suspended.value.retry_after_seconds + 0.01
        assert opened.admit()
        opened.fail(DOWN)
        opened.end_trial()
    assert pauses == [10, 20, 40, 80, 160, 300, 300]


def test_late_failures_of_calls_that_were_under_way_do_not_lengthen_the_pause(opened: Breaker) -> None:
    for _ in range(20):
        opened.fail(DOWN)
    with pytest.raises(UpstreamSuspended) as suspended:
        opened.admit()
    assert suspended.value.retry_after_seconds <= 10


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.anyio
async def test_a_server_that_is_down_is_left_alone_until_its_settings_change() -> None:
    connection = Connection(Transport.HTTP, url=f"http://127.0.0.1:{free_port()}/mcp")
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(connection))
        for _ in range(FAILURES_TO_OPEN):
            with pytest.raises(UpstreamFailure, match="refused the connection"):
                await caller.call("echo")
        with pytest.raises(UpstreamSuspended):
            await Caller(pool, caller.upstream, key_id=2).call("echo")
        [state] = pool.breakers()
        assert (state.server_id, state.position) == (1, BreakerPosition.OPEN)
        assert state.failures == FAILURES_TO_OPEN
        changed = upstream_of(stdio_connection(), credential="second")
        assert await Caller(pool, changed).text("echo") == "hello"
        assert pool.breakers() == []


@pytest.mark.anyio
async def test_callers_that_wait_for_one_start_count_as_one_failure() -> None:
    connection = Connection(Transport.HTTP, url=f"http://127.0.0.1:{free_port()}/mcp")
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(connection))
        outcomes = await asyncio.gather(*(caller.call("echo") for _ in range(20)), return_exceptions=True)
        assert all(isinstance(outcome, UpstreamFailure) for outcome in outcomes)
        assert [state.failures for state in pool.breakers()] == [1]


@pytest.mark.anyio
async def test_errors_timeouts_and_cancelled_calls_are_no_failures() -> None:
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(stdio_connection()))
        await caller.call("echo")
        for _ in range(FAILURES_TO_OPEN):
            await caller.call("fail")
            with pytest.raises(CallTimedOut):
                await caller.call("silent", timeout_seconds=0.01)
            call = asyncio.create_task(caller.call("silent"))
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        assert pool.breakers() == []
        assert await caller.text("echo") == "hello"


@pytest.mark.anyio
async def test_a_missing_command_is_told_each_time() -> None:
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(Connection(Transport.STDIO, command="no-such-command")))
        for _ in range(FAILURES_TO_OPEN + 2):
            with pytest.raises(UpstreamFailure, match="was not found") as failed:
                await caller.call("echo")
            assert failed.value.code is FailureCode.COMMAND_NOT_FOUND
        assert pool.breakers() == []


@pytest.mark.anyio
async def test_one_try_closes_the_breaker_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog.upstream.breaker.FIRST_PAUSE_SECONDS", 0.05)
    port = free_port()
    connection = Connection(Transport.HTTP, url=f"http://127.0.0.1:{port}/mcp")
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(connection))
        for _ in range(FAILURES_TO_OPEN):
            with pytest.raises(UpstreamFailure):
                await caller.call("echo")
        assert pool.breakers()[0].position is not BreakerPosition.CLOSED
        with run_over_http(port=port):
            assert await caller.text("echo") == "hello"
        assert pool.breakers() == []
