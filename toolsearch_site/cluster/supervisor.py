"""Runs several programs as children: labelled logs, restart with back-off, one clean stop."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

STOP_WITHIN_SECONDS = 5.0
FIRST_RESTART_AFTER_SECONDS = 0.5
LONGEST_RESTART_AFTER_SECONDS = 30.0
STEADY_AFTER_SECONDS = 30.0
SUPERVISOR = "up"  # the label of its own lines
# For glibc. Threads that take turns at large work would each keep the memory of theirs for the next time:
# few share it, and large blocks go back to the system at once. What an operator sets counts more.
MEMORY = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 20),
}
PARENT_DEATH = Path(__file__).with_name("parent_death.py")

Say = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Program:
    """One program. `connections` is how many database connections each of its processes may open."""

    label: str
    argv: Sequence[str]
    connections: int = 2


@dataclass(slots=True)
class Child:
    """A program as it runs now."""

    program: Program
    process: subprocess.Popen[str] | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    quick_deaths: int = 0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Keeps the programs running until `stop` is called, from a signal handler or another thread."""

    def __init__(self, programs: Sequence[Program], *, say: Say) -> None:
        self._children = [Child(program) for program in programs]
        self._say = say
        self.stopping = threading.Event()

    def stop(self) -> None:
        self.stopping.set()

    def run(self) -> None:
        """Call on the main thread: a child's parent death signal is sent when the thread that
        made it ends.
        """
        try:
            while not self.stopping.is_set():
                for child in self._children:
                    self._check(child)
                self.stopping.wait(0.1)
        finally:
            self._stop_all()

    def _check(self, child: Child) -> None:
        if child.is_alive:
            return
        now = time.monotonic()
        if child.process is not None:
            self._reap(child, now)
        if now >= child.restart_at:
            self._start(child, now)

    def _start(self, child: Child, now: float) -> None:
        child.process = _spawn(child.program)
        child.started_at = now
        reader = threading.Thread(
            target=_pass_logs, args=(child.program, child.process, self._say), daemon=True
        )
        reader.start()

    def _reap(self, child: Child, now: float) -> None:
        """Kill what a dead child left running, and schedule its restart."""
        process = child.process
        assert process is not None
        _kill_group(process)
        steady = now - child.started_at >= STEADY_AFTER_SECONDS
        child.quick_deaths = 0 if steady else child.quick_deaths + 1
        pause = min(FIRST_RESTART_AFTER_SECONDS * 2**child.quick_deaths, LONGEST_RESTART_AFTER_SECONDS)
        child.restart_at = now + pause
        child.process = None
        self._say(
            SUPERVISOR,
            f"{child.program.label} ended with {_ending(process.returncode)}; restarting in {pause:g} s",
        )

    def _stop_all(self) -> None:
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + STOP_WITHIN_SECONDS
        for process in running:
            try:
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._say(SUPERVISOR, f"process {process.pid} did not stop in time; killed")
            _kill_group(process)


def run_to_end(program: Program, *, say: Say) -> int:
    """Run one program before the others, with labelled logs. Returns its exit code."""
    process = _spawn(program)
    _pass_logs(program, process, say)
    return process.wait()


def _pass_logs(program: Program, process: subprocess.Popen[str], say: Say) -> None:
    assert process.stdout is not None
    with process.stdout as printed:
        for line in printed:
            say(program.label, line.rstrip("\n"))


def _spawn(program: Program) -> subprocess.Popen[str]:
    """Start in a process group of its own, so that Ctrl-C reaches only the supervisor."""
    with_parent = (sys.executable, "-I", str(PARENT_DEATH), str(os.getpid()))
    return subprocess.Popen(  # noqa: S603  our own programs
        (*with_parent, *program.argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
        env={
            **MEMORY,
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "TOOLSEARCH_CONNECTIONS": str(program.connections),
        },
    )


def _kill_group(process: subprocess.Popen[str]) -> None:
    """Kill the child's process group, which may outlive the child."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ending(returncode: int) -> str:
    return f"signal {signal.Signals(-returncode).name}" if returncode < 0 else f"exit code {returncode}"
