"""Waits for child processes without a thread for each."""

import asyncio
import os
import sys
from contextlib import suppress


def watch_children_without_threads() -> None:
    """Call once where leases are used: in their event loop, or before there is one.

    Python 3.11 would hold a thread for each child; later versions do this by themselves.
    """
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        watcher = asyncio.PidfdChildWatcher()
        with suppress(RuntimeError):  # none is running: asyncio hands it over when one is made
            watcher.attach_loop(asyncio.get_running_loop())
        asyncio.set_child_watcher(watcher)
