"""Children are watched without threads of their own."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from catalog.upstream.child_watcher import watch_children_without_threads


@pytest.fixture(autouse=True)
def former_watcher() -> Iterator[None]:
    """The loop's policy as it was."""
    if sys.version_info >= (3, 12):
        yield
        return
    watcher = asyncio.get_child_watcher()
    yield
    asyncio.set_child_watcher(watcher)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system has no pidfd")
class TestWatchChildrenWithoutThreads:
    def test_running_loop_starts_children_and_learns_how_they_ended(self) -> None:
        async def run_child() -> tuple[int, int]:
            watch_children_without_threads()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "input(); raise SystemExit(7)", stdin=asyncio.subprocess.PIPE
            )
            during = threading.active_count()
            await process.communicate(b"\n")
            return await process.wait(), during

        before = threading.active_count()
        assert asyncio.run(run_child()) == (7, before)
