"""Waits for child processes without a thread for each."""

import asyncio
import os
import sys
from contextlib import suppress


def watch_children_without_threads() -> None:
    """Call once where leases are used, in the running event loop or before it is set.

    Python 3.11 would hold a thread for each child; later versions do this by themselves.
    """
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        watcher = asyncio.PidfdChildWatcher()
        with suppress(RuntimeError):  # no loop is running: the next that is set attaches itself
            watcher.attach_loop(asyncio.get_running_loop())
        asyncio.set_child_watcher(watcher)
