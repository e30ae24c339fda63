"""Waits for child processes without a thread for each."""

import asyncio
import os
import sys


def watch_children_without_threads() -> None:
    """Call once, before the event loop starts, where leases are used.

    Python 3.11 would hold a thread for each child; later versions do this by themselves.
    """
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
