"""Runs a stdio server as a child subreaper, so that nothing the server started outlives the listing.

Run as a script by an isolated interpreter: `subreaper.py LIFELINE COMMAND [ARGUMENT…]`. LIFELINE is the
read end of a pipe whose other end only our process holds. When that end closes, because we close it or are
killed, this process kills the server and all its descendants, those in other sessions included. It exits
with the server's own exit code, or 128 plus the number of the signal that ended it.
"""

import ctypes
import os
import select
import signal
import sys
from contextlib import suppress

TERM_GRACE_SECONDS = 0.5
CANNOT_RUN = 126

# Only the lifeline ends this process: a sender of these signals closes the lifeline as well.
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# An ignored signal stays ignored in what is executed. The last two, Python itself ignores.
_RESTORED = (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    lifeline = int(sys.argv[1])
    os.set_inheritable(lifeline, False)
    _set_process_option(_PR_SET_CHILD_SUBREAPER, 1)
    deaths = _watch_for_deaths()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    server = os.fork()
    if server == 0:
        _become(sys.argv[2:])
    _let_go_of_pipes()
    os._exit(_keep(server, lifeline, deaths))


def _set_process_option(option: int, value: int) -> None:
    """`prctl`, where it exists. Elsewhere only the process group can be killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _watch_for_deaths() -> int:
    """A file descriptor that becomes readable when a child ends."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return readable


def _become(argv: list[str]) -> None:
    os.setsid()
    _set_process_option(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(argv[0], argv)  # noqa: S606 - no shell is the point
    except OSError as problem:
        os.write(2, f"cannot run {argv[0]}: {problem.strerror}\n".encode())
        os._exit(CANNOT_RUN)


def _let_go_of_pipes() -> None:
    """Closes the server's pipes here, so that their other ends see when the server closes them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


def _keep(server: int, lifeline: int, deaths: int) -> int:
    watched = select.poll()
    watched.register(lifeline, select.POLLIN)
    watched.register(deaths, select.POLLIN)
    status: int | None = None
    is_held = True
    while status is None and is_held:
        ready = {descriptor for descriptor, _ in watched.poll()}
        is_held = lifeline not in ready
        status = _reap(server, deaths) if deaths in ready else None
    if status is None:
        status = _ask_to_end(server, deaths)
    return _end_all(server, status)


def _reap(server: int, deaths: int) -> int | None:
    """Wait for every child that ended; returns the server's exit status if it is among them."""
    os.read(deaths, 4096)
    found: int | None = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == server:
                found = status
    return found


def _ask_to_end(server: int, deaths: int) -> int | None:
    with suppress(ProcessLookupError):
        os.killpg(server, signal.SIGTERM)
    waiting = select.poll()
    waiting.register(deaths, select.POLLIN)
    if waiting.poll(TERM_GRACE_SECONDS * 1000):
        return _reap(server, deaths)
    return None


def _end_all(server: int, status: int | None) -> int:
    """Kill until no child is left: orphans of a killed process become our children."""
    with suppress(ChildProcessError):
        while True:
            _kill_children(server)
            pid, ended = os.waitpid(-1, 0)
            status = ended if pid == server else status
    code = os.waitstatus_to_exitcode(status or 0)
    return code if code >= 0 else 128 - code


def _kill_children(server: int) -> None:
    if sys.platform != "linux":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(server, signal.SIGKILL)
    for child in _children():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)


def _children() -> list[int]:
    """Our direct children, from /proc; none where there is no /proc."""
    found: list[int] = []
    with suppress(FileNotFoundError):
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as stat:
                if int(stat.read().rpartition(b")")[2].split()[1]) == os.getpid():
                    found.append(int(entry))
    return found


if __name__ == "__main__":
    main()
