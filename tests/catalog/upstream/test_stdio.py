"""Children start, and end, under the watcher that needs no threads."""

import asyncio
import sys
from collections.abc import Iterator

import pytest

from catalog.upstream.stdio import watch_children_without_threads


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
