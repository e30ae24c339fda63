"""Ends a process when its parent dies, by Linux's parent death signal. Other systems have nothing like it.

As a program, `parent_death.py PARENT PROGRAM…` becomes PROGRAM, which is killed when PARENT dies. It is a
program of its own because no Python code of a threaded parent may run between fork and exec. The signal may
come more than once, so no program could be trusted to end in its own way.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Kill this process when the one that forked it by `multiprocessing` ends; else do nothing."""
    parent = multiprocessing.parent_process()
    if parent is not None and sys.platform.startswith("linux"):
        _follow(parent.pid)


def exit_when_orphaned(*, look_every_seconds: float = 0.5) -> None:
    """Have a thread end this process soon after its parent has died.

    For processes that a thread of the parent forks: the signal would come when that thread ends.
    """
    watch = threading.Thread(target=_watch, args=(os.getppid(), look_every_seconds), daemon=True)
    watch.start()


def _watch(parent: int, look_every_seconds: float) -> None:
    while os.getppid() == parent:
        time.sleep(look_every_seconds)
    os._exit(1)


def exec_with_parent(parent: int, program: list[str]) -> None:
    if sys.platform.startswith("linux"):
        _follow(parent)
    os.execv(program[0], program)  # noqa: S606  our own programs


def _follow(parent: int | None) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the signal was asked for
        os._exit(1)


if __name__ == "__main__":
    exec_with_parent(int(sys.argv[1]), sys.argv[2:])
