"""Ends a process when its parent dies, by Linux's parent death signal. Other systems have nothing like it.

As a program, `parent_death.py SIGNAL PARENT PROGRAM…` becomes PROGRAM, which gets SIGNAL when PARENT dies. It
is a program of its own because no Python code of a threaded parent may run between fork and exec.
"""

import ctypes
import multiprocessing
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Kill this process when the one that forked it by `multiprocessing` ends; else do nothing."""
    parent = multiprocessing.parent_process()
    if parent is not None and sys.platform.startswith("linux"):
        _follow(parent.pid, signal.SIGKILL)


def exec_with_parent(sign: signal.Signals, parent: int, program: list[str]) -> None:
    if sys.platform.startswith("linux"):
        _follow(parent, sign)
    os.execv(program[0], program)  # noqa: S606  our own programs


def _follow(parent: int | None, sign: signal.Signals) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, sign)
    if os.getppid() != parent:  # it died before the signal was asked for
        os._exit(1)


if __name__ == "__main__":
    exec_with_parent(signal.Signals(int(sys.argv[1])), int(sys.argv[2]), sys.argv[3:])
