"""When leases are opened, shared, and closed."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.upstream_calls import UpstreamBusy
from tests.catalog.upstream.conftest import RollCall, odd_connection
from tests.catalog.upstream.leasing import Caller, descendants, is_alive, open_pool, until, upstream_of
from tests.harness.upstream_fixture import HttpFixture, count_in, run_over_http, stdio_connection

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def http_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFixture]:
    with run_over_http() as fixture:
        yield fixture


async def test_a_lease_is_closed_after_a_while_without_calls() -> None:
    async with open_pool(idle_seconds=0.3) as (pool, _):
        caller = Caller(pool, upstream_of(stdio_connection()))
        await caller.call("echo")
        [lease] = pool.snapshot()
        assert lease.pid
        processes = [lease.pid, *descendants(lease.pid)]
        await until(lambda: not pool.snapshot())
        assert not any(map(is_alive, processes))
        assert await caller.text("echo") == "hello"


async def test_a_lease_in_use_is_not_idle() -> None:
    async with open_pool(idle_seconds=0.2) as (pool, _):
        caller = Caller(pool, upstream_of(stdio_connection()))
        assert await caller.text("slow", seconds=0.9) == "done"


async def test_each_key_has_its_own_lease(http_fixture: HttpFixture) -> None:
    async with open_pool() as (pool, _):
        upstream = upstream_of(http_fixture.connection())
        await asyncio.gather(*(Caller(pool, upstream, key_id=key).call("echo") for key in (1, 1, 2, 2)))
        assert sorted(lease.key_id or 0 for lease in pool.snapshot()) == [1, 2]


async def test_a_server_without_state_is_shared_by_all_keys() -> None:
    async with open_pool() as (pool, _):
        upstream = upstream_of(stdio_connection(), keeps_no_state=True)
        told = [await Caller(pool, upstream, key_id=key).text("count") for key in (1, 2, 3)]
        assert told == ["1", "2", "3"]
        [lease] = pool.snapshot()
        assert lease.key_id is None
        assert await pool.close_of_key(1) == 0


async def test_eras_do_not_share(http_fixture: HttpFixture) -> None:
    async with open_pool() as (pool, _):
        upstream = upstream_of(http_fixture.connection())
        await Caller(pool, upstream, era="auto").call("echo")
        await Caller(pool, upstream, era="legacy").call("echo")
        assert sorted(lease.protocol_version for lease in pool.snapshot()) == ["2025-11-25", "2026-07-28"]


async def test_a_changed_credential_opens_a_new_lease_and_closes_the_old_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_pool() as (pool, _):
        before = upstream_of(stdio_connection(log))
        running = asyncio.create_task(Caller(pool, before).text("slow", seconds=4))
        await until(lambda: count_in(log, "started slow") == 1)
        [old] = pool.snapshot()
        after = replace(before, credential="second")
        assert await Caller(pool, after).text("count") == "1"
        assert {lease.id for lease in pool.snapshot()} > {old.id}
        assert await running == "done"
        await until(lambda: old.id not in {lease.id for lease in pool.snapshot()})
        assert len(pool.snapshot()) == 1


@pytest.mark.parametrize(
    ("caps", "places"),
    [
        ({"per_key": 2}, [(1, 1), (1, 2), (1, 3)]),
        ({"per_server": 2}, [(1, 1), (2, 1), (3, 1)]),
        ({"total": 2}, [(1, 1), (2, 2), (3, 3)]),
    ],
)
async def test_past_a_cap_the_longest_unused_lease_makes_room(
    caps: dict[str, int], places: list[tuple[int, int]], http_fixture: HttpFixture
) -> None:
    async with open_pool(**caps) as (pool, _):
        upstream = upstream_of(http_fixture.connection())
        callers = [Caller(pool, replace(upstream, server_id=server), key_id=key) for key, server in places]
        await callers[0].call("echo")
        await callers[1].call("echo")
        await callers[0].call("echo")
        await callers[2].call("echo")
        await until(lambda: len(pool.snapshot()) == 2)
        left = {(lease.key_id, lease.server_id) for lease in pool.snapshot()}
        assert left == {places[0], places[2]}


async def test_commands_have_a_cap_of_their_own() -> None:
    async with open_pool(commands=1) as (pool, _):
        for key in (1, 2):
            await Caller(pool, upstream_of(stdio_connection()), key_id=key).call("echo")
        await until(lambda: [lease.key_id for lease in pool.snapshot()] == [2])


async def test_where_all_are_in_use_the_refusal_says_when_to_come_back(http_fixture: HttpFixture) -> None:
    async with open_pool(total=1) as (pool, _):
        upstream = upstream_of(http_fixture.connection())
        running = asyncio.create_task(Caller(pool, upstream).call("silent"))
        await until(lambda: bool(pool.snapshot()))
        with pytest.raises(UpstreamBusy, match="All 1 connections in all are in use") as busy:
            await Caller(pool, upstream, key_id=2).call("echo")
        assert busy.value.code is FailureCode.BUSY
        assert busy.value.retry_after_seconds > 0
        assert pool.breakers() == []
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await Caller(pool, upstream, key_id=2).text("echo") == "hello"


async def test_a_lease_can_be_closed_by_its_id() -> None:
    async with open_pool() as (pool, _):
        caller = Caller(pool, upstream_of(stdio_connection()))
        await caller.call("echo")
        [lease] = pool.snapshot()
        assert lease.pid
        processes = [lease.pid, *descendants(lease.pid)]
        assert len(processes) == 2
        running = asyncio.create_task(caller.call("silent"))
        await until(lambda: pool.snapshot()[0].open_calls == 1)
        assert await pool.close_lease(lease.id) is True
        with pytest.raises(UpstreamFailure, match="closed here") as failed:
            await running
        assert failed.value.code is FailureCode.CLOSED
        assert not any(map(is_alive, processes))
        assert pool.snapshot() == []
        assert pool.breakers() == []
        assert await pool.close_lease(lease.id) is False
        assert await caller.text("echo") == "hello"


async def test_the_leases_of_a_key_can_be_closed(http_fixture: HttpFixture) -> None:
    async with open_pool() as (pool, _):
        upstream = upstream_of(http_fixture.connection())
        for key, server in ((1, 1), (1, 2), (2, 1)):
            await Caller(pool, replace(upstream, server_id=server), key_id=key).call("echo")
        assert await pool.close_of_key(1) == 2
        assert [lease.key_id for lease in pool.snapshot()] == [2]


async def test_a_lease_can_be_closed_while_it_is_opened() -> None:
    async with open_pool() as (pool, _):
        calling = asyncio.create_task(
            Caller(pool, upstream_of(odd_connection("hangs_on_connect"))).call("any")
        )
        await until(lambda: bool(pool.snapshot()))
        [lease] = pool.snapshot()
        await pool.close_lease(lease.id)
        with pytest.raises(UpstreamFailure, match="closed here"):
            await calling
        assert pool.snapshot() == []


async def test_closing_the_pool_ends_servers_that_cling_to_life(roll_call: RollCall) -> None:
    async with open_pool() as (pool, _):
        connection = odd_connection("clings_to_life", env={"ROLL_CALL": roll_call.port})
        calling = asyncio.create_task(Caller(pool, upstream_of(connection)).call("any"))
        await asyncio.to_thread(roll_call.hear, 2)
        started = asyncio.get_running_loop().time()
        await pool.aclose()
        assert asyncio.get_running_loop().time() - started < 4
        with pytest.raises(UpstreamFailure):
            await calling
    roll_call.assert_all_dead()


HOLDER = textwrap.dedent(
    """
    import asyncio, sys
    from tests.catalog.upstream.leasing import Caller, upstream_of
    from tests.harness.upstream_fixture import stdio_connection
    from catalog.upstream.leases import LeasePool

    async def main():
        pool = LeasePool()
        for key in (1, 2):
            await Caller(pool, upstream_of(stdio_connection()), key_id=key).call("echo")
        print("ready", flush=True)
        await asyncio.sleep(600)

    asyncio.run(main())
    """
)


@pytest.mark.slow
async def test_no_child_outlives_a_killed_process() -> None:
    command = [sys.executable, "-c", HOLDER]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as holder:
        assert holder.stdout
        assert await asyncio.to_thread(holder.stdout.readline) == "ready\n"
        processes = descendants(holder.pid)
        assert len(processes) == 4
        os.kill(holder.pid, signal.SIGKILL)
        await until(lambda: not any(map(is_alive, processes)))
