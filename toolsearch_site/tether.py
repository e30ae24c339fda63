"""Ties a program to its parent: `tether.py SIGNAL PARENT PROGRAM…` becomes PROGRAM, and gets SIGNAL when
PARENT dies. A program of its own, because no Python of a threaded parent may run between fork and exec.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    sign, parent, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if sys.platform.startswith("linux"):  # other systems have nothing like it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, sign)
    if os.getppid() != parent:  # it died before we asked
        sys.exit(1)
    os.execv(program[0], program)  # noqa: S606  our own programs


if __name__ == "__main__":
    main()
