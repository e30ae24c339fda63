"""Runs `manage.py` commands in forks of one resident process, which has imported the libraries.

A command gets an environment, a working folder and an input of its own, as a new interpreter would; only the
time to import the libraries is saved, which is most of what a command takes.
"""

import atexit
import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 120.0
TIMED_OUT = "timed out"
# None of them reads the project's settings: those belong to the command.
LIBRARIES = (
    "celery.app.base",
    "cryptography.fernet",
    "django.contrib.admin",
    "django.db.models",
    "httpx2",
    "jsonschema",
    "kombu.transport.virtual",
    "manage",
    "mcp",
    "numpy",
    "psycopg",
    "redis",
    "regex",
    "whoosh.index",
    "whoosh.qparser",
)


def run_command(
    *arguments: str,
    environment: Mapping[str, str],
    given: str = "",
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """What `manage.py` answers to these arguments, in this environment and no other."""
    with tempfile.TemporaryDirectory(prefix="toolsearch-command-") as folder:
        (Path(folder) / "stdin").write_text(given)
        code = _ask(arguments, environment, folder, timeout_seconds)
        if code == TIMED_OUT:
            raise subprocess.TimeoutExpired(arguments, timeout_seconds)
        printed, told = (Path(folder, name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(arguments, int(code), printed, told)


def _ask(arguments: tuple[str, ...], environment: Mapping[str, str], folder: str, timeout: float) -> str:
    server = _start_server()
    assert server.stdin is not None
    assert server.stdout is not None
    wanted = {
        "arguments": arguments,
        "environment": dict(environment),
        "folder": folder,
        "timeout_seconds": timeout,
    }
    server.stdin.write(json.dumps(wanted) + "\n")
    server.stdin.flush()
    return server.stdout.readline().strip()


@functools.cache
def _start_server() -> "subprocess.Popen[str]":
    """One for each worker of a test run, when it is first asked. It ends when its input does."""
    server = subprocess.Popen(
        [sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(_end, server)
    return server


def _end(server: "subprocess.Popen[str]") -> None:
    server.communicate()


def _serve() -> int:
    """Answers each request with the code that its command ended with. In a fork: returns that code."""
    for library in LIBRARIES:
        importlib.import_module(library)
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if not child:
            return _run(wanted)
        print(_wait_for(child, wanted["timeout_seconds"]), flush=True)
    return 0


def _wait_for(child: int, timeout_seconds: float) -> int | str:
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TIMED_OUT


def _run(wanted: dict[str, Any]) -> int:
    """In the fork. Returning lets the interpreter end as it always does."""
    for number, (name, flags) in enumerate(
        (
            ("stdin", os.O_RDONLY),
            ("stdout", os.O_CREAT | os.O_WRONLY | os.O_APPEND),
            ("stderr", os.O_CREAT | os.O_WRONLY | os.O_APPEND),
        )
    ):
        opened = os.open(f"{wanted['folder']}/{name}", flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 the one of the server has read ahead
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.argv = ["manage.py", *wanted["arguments"]]
    try:
        sys.modules["manage"].main()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_serve())
