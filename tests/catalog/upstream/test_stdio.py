"""Children start, and end, under the watcher that needs no threads."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.domain.connection import Limits, StdioRules
from catalog.upstream import stdio
from catalog.upstream.launch import prepare_launch
from catalog.upstream.stdio import StdioLink, watch_children_without_threads
from tests.catalog.upstream.conftest import RollCall, odd_connection


@pytest.fixture(autouse=True)
def watcher_before() -> Iterator[None]:
    """Later versions of Python have none."""
    if sys.version_info >= (3, 12):
        yield
        return
    watcher = asyncio.get_event_loop_policy().get_child_watcher()
    yield
    asyncio.set_child_watcher(watcher)


async def run_child() -> int:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(3)")
    return await child.wait()


def test_child_starts_in_a_loop_that_runs_already() -> None:
    async def main() -> int:
        watch_children_without_threads()
        return await run_child()

    assert asyncio.run(main()) == 3


def test_child_starts_in_a_loop_that_is_made_later() -> None:
    watch_children_without_threads()
    assert asyncio.run(run_child()) == 3


def test_pipe_is_closed_although_its_other_end_is_held(
    roll_call: RollCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here by the test, elsewhere by a process that could not be killed."""
    monkeypatch.setattr(stdio, "EXIT_GRACE_SECONDS", 0.01)
    monkeypatch.setattr(stdio, "END_SECONDS", 1.0)  # longer than a server has to end
    connection = odd_connection("clings_to_life", env={"ROLL_CALL": roll_call.port})

    async def main() -> None:
        link = StdioLink(prepare_launch(connection, StdioRules(), os.environ), Limits())
        async with link.connect():
            server, _child = await asyncio.to_thread(roll_call.hear, 2)
            held = os.open(f"/proc/{server}/fd/1", os.O_WRONLY)
            assert count_ends(held) == 2
        await asyncio.sleep(0)  # asyncio closes a pipe in its next round
        try:
            assert count_ends(held) == 1
        finally:
            os.close(held)

    asyncio.run(main())
    roll_call.assert_all_dead()


def count_ends(pipe: int) -> int:
    """How many descriptors of this process are ends of the same pipe."""
    own = Path("/proc/self/fd")
    targets = [os.readlink(entry) for entry in own.iterdir() if entry.is_symlink()]
    return targets.count(os.readlink(own / str(pipe)))
