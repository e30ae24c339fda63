"""Makes a process undumpable: others of the same user cannot read its environment, memory or open files.

A stdio server runs as the same user as the worker that started it. On Linux `/proc/PID/environ`, `mem` and
`fd` of an undumpable process are closed to everybody but root; it cannot be traced and leaves no core file.
Every process that holds a secret calls `make_undumpable` as it starts: a fork inherits it, an exec undoes it.

As a program it runs another module undumpable: `undumpable.py MODULE [ARGUMENT…]`.
"""

import ctypes
import runpy
import sys
from pathlib import Path

PR_SET_DUMPABLE = 4


def make_undumpable() -> None:
    if sys.platform.startswith("linux"):  # other systems have no such switch
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    make_undumpable()
    del sys.argv[0]
    sys.path[0] = str(Path.cwd())  # as `python -m` has it, in place of this file's folder
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
