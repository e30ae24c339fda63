"""What one server does harms nobody else's call, and leaves nothing behind."""

import asyncio
import gc
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from catalog.domain.connection import Connection, FailureCode, Limits, UpstreamFailure
from catalog.domain.upstream_calls import CallTimedOut
from catalog.upstream.stdio import watch_children_without_threads
from tests.catalog.upstream.conftest import odd_connection
from tests.catalog.upstream.leasing import Caller, open_pool, until, upstream_of
from tests.harness.upstream_fixture import HttpFixture, count_in, run_over_http, stdio_connection

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
HARM_SECONDS = 2.0
CALLS_MEANWHILE = 3  # of another server, at least: on a machine at rest hundreds


@pytest.fixture(scope="module")
def http_fixture() -> Iterator[HttpFixture]:
    with run_over_http() as fixture:
        yield fixture


@pytest.fixture(params=["stdio", "http", "http-legacy"])
def hostile(request: Any, http_fixture: HttpFixture) -> tuple[Connection, str]:
    connection = stdio_connection() if request.param == "stdio" else http_fixture.connection()
    return connection, "legacy" if request.param == "http-legacy" else "auto"


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["endless_progress", "flood", "silent", "big"])
async def test_a_hostile_server_delays_no_other_call(tool: str, hostile: tuple[Connection, str]) -> None:
    connection, era = hostile
    async with open_pool() as (pool, _):
        told: list[float] = []

        async def on_progress(done: float, *_: object) -> None:
            told.append(done)

        bad = Caller(pool, upstream_of(connection), era=era)  # type: ignore[arg-type]
        good = Caller(pool, upstream_of(stdio_connection(), server_id=2))
        await asyncio.gather(bad.call("echo"), good.call("echo"))
        harm = asyncio.create_task(
            bad.call(tool, size=30_000_000, timeout_seconds=HARM_SECONDS, on_progress=on_progress)
        )
        answered = 0
        while not harm.done():
            await good.call("echo")
            answered += 1
        [outcome] = await asyncio.gather(harm, return_exceptions=True)
        assert isinstance(outcome, CallTimedOut | UpstreamFailure)
        assert answered >= CALLS_MEANWHILE
        assert len(told) <= 20 * HARM_SECONDS + 5
        assert (tool == "endless_progress") == bool(told)


async def test_a_huge_result_is_cut_off_while_it_comes_in(hostile: tuple[Connection, str]) -> None:
    connection, era = hostile
    limits = Limits(max_message_bytes=1_000_000)
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(connection, limits=limits), era=era)  # type: ignore[arg-type]
        with pytest.raises(UpstreamFailure, match=r"more than 1\.0 MB") as failed:
            await caller.call("big", size=20_000_000)
        assert failed.value.code is FailureCode.TOO_LARGE
        assert len((await caller.call("big", size=900_000))["content"][0]["text"]) == 900_000
        assert pool.breakers() == []


async def test_a_lease_may_carry_more_than_a_listing_in_all(hostile: tuple[Connection, str]) -> None:
    connection, era = hostile
    limits = Limits(max_total_bytes=500_000)
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(connection, limits=limits), era=era)  # type: ignore[arg-type]
        for _ in range(5):
            await caller.call("big", size=300_000)
        assert len(pool.snapshot()) == 1


async def test_a_line_without_end_is_cut_off() -> None:
    limits = Limits(max_message_bytes=1_000_000)
    async with open_pool() as (pool, _):
        with pytest.raises(UpstreamFailure) as failed:
            await Caller(pool, upstream_of(odd_connection("never_ends_its_line"), limits=limits)).call("any")
        assert failed.value.code is FailureCode.TOO_LARGE
        await until(lambda: not pool.snapshot())


@pytest.mark.parametrize("behaviour", ["floods_requests", "asks_without_end_in_a_call"])
async def test_a_server_that_asks_without_end_is_cut_off(behaviour: str) -> None:
    async with open_pool(requests_per_call=50) as (pool, refused):
        with pytest.raises(UpstreamFailure, match="more than 50 requests") as failed:
            await Caller(pool, upstream_of(odd_connection(behaviour))).call("ask")
        assert failed.value.code is FailureCode.TOO_MANY_MESSAGES
        assert refused.total() <= 60
        assert pool.breakers() == []


async def test_children_need_no_thread() -> None:
    async with open_pool() as (pool, _):
        await Caller(pool, upstream_of(stdio_connection())).call("echo")
        before = threading.active_count()
        for key in range(2, 5):
            await Caller(pool, upstream_of(stdio_connection()), key_id=key).call("echo")
        assert threading.active_count() == before


@pytest.fixture(autouse=True, scope="module")
def anyio_children() -> Iterator[None]:
    """As the gateway does before its event loop starts."""
    before = asyncio.get_event_loop_policy()
    watcher = before.get_child_watcher()
    watch_children_without_threads()
    yield
    asyncio.set_child_watcher(watcher)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stdio-auto", "stdio-legacy", "http-auto", "http-legacy"])
async def test_a_thousand_cancelled_calls_leave_nothing(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    transport, era = kind.split("-")
    with run_over_http(log) as fixture:
        connection = stdio_connection(log) if transport == "stdio" else fixture.connection()
        async with open_pool() as (pool, _):
            caller = Caller(pool, upstream_of(connection), era=era)  # type: ignore[arg-type]
            await caller.call("echo")
            await cancel_many(caller, log, batches=1, size=50)
            await caller.call("echo")
            tasks, threads, files = len(asyncio.all_tasks()), threading.active_count(), open_files()
            await cancel_many(caller, log, batches=19, size=50)
            assert count_in(log, "started silent") == 1000
            assert count_in(log, "cancelled silent") == 1000
            assert await caller.text("echo") == "hello"
            await until(lambda: len(asyncio.all_tasks()) <= tasks)
            assert threading.active_count() <= threads
            await until(lambda: open_files() <= files)
            [lease] = pool.snapshot()
            assert lease.open_calls == 0
        assert pool.snapshot() == []


async def cancel_many(caller: Caller, log: Path, *, batches: int, size: int) -> None:
    for _ in range(batches):
        wanted = count_in(log, "started silent") + size
        calls = [asyncio.create_task(caller.call("silent")) for _ in range(size)]
        await until(partial(has_lines, log, "started silent", wanted))
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert all(call.cancelled() for call in calls)
        await until(partial(has_lines, log, "cancelled silent", wanted))
    gc.collect()


def has_lines(log: Path, word: str, count: int) -> bool:
    return count_in(log, word) >= count


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
