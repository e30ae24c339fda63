"""A whole running instance, as `manage.py up` starts it: for tests that look from outside."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.harness.commands import run_command
from tests.harness.workers import find_free_port, next_redis_database

ROOT = Path(__file__).resolve().parents[2]
START_WITHIN_SECONDS = 120.0
NOT_RUNNING = -1
COMMANDS = {
    "web": "granian_server",
    "gateway": "gateway_server",
    "worker": "--queues celery",
    "refresher": "--queues refresh",
    "scheduler": " beat ",
}


class Instance:
    """Talks to one `manage.py up` from outside: by HTTP, signals and what it prints.

    It has no gateway unless asked for: one process less to start.
    """

    def __init__(
        self, *, environment: Mapping[str, str], options: tuple[str, ...] = (), gateway: bool = False
    ) -> None:
        self.port, self.gateway_port = find_free_port(), find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.gateway_url = f"http://127.0.0.1:{self.gateway_port}"
        self.environment = {**environment, "TOOLSEARCH_GATEWAY_PORT": str(self.gateway_port)}
        self.lines: list[str] = []
        without = () if gateway else ("--no-gateway",)
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(self.port), *without, *options],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as printed:
            for line in printed:
                self.lines.append(line.rstrip("\n"))

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    @property
    def password(self) -> str:
        found = re.search(r"user admin, password (\S+)", self.output)
        assert found, f"no sign-in was printed:\n{self.output}"
        return found[1]

    def wait_until_healthy(self) -> None:
        wait_for(lambda: self.health().get("status") == "ok", within_seconds=START_WITHIN_SECONDS, about=self)

    def is_gateway_alive(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.gateway_url}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def health(self) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/health", timeout=5) as answer:
                return json.load(answer)  # type: ignore[no-any-return]
        except (OSError, urllib.error.URLError, ValueError):
            return {}

    def pid_of(self, part: str) -> int:
        """The process id of a part, as the kernel lists `up`'s children."""
        found = [pid for pid in children_of(self.process.pid) if COMMANDS[part] in f"{command_of(pid)} "]
        return found[0] if found else NOT_RUNNING

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(*arguments, environment=self.environment)

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(sign)
        code = self.process.wait(timeout=15)
        self._reader.join(timeout=5)
        return code


@contextmanager
def running_instance(
    data: Path, *options: str, gateway: bool = False, **variables: str
) -> Iterator[Instance]:
    """An instance on a data folder, and on a database of its own where the run is on PostgreSQL."""
    with own_database() as database_url:
        kept = ("PATH", "HOME", "SECRET_KEY", "CELERY_BROKER_URL", "LANG")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment["TOOLSEARCH_DATA"] = str(data)
        if broker := environment.get("CELERY_BROKER_URL"):
            own = urlsplit(broker)._replace(path=f"/{next_redis_database()}")
            environment["CELERY_BROKER_URL"] = own.geturl()
        if database_url:
            # A database server ends embedded mode, and with it the demo's right to start a command.
            environment |= {"DATABASE_URL": database_url, "TOOLSEARCH_STDIO": "on"}
        instance = Instance(environment={**environment, **variables}, options=options, gateway=gateway)
        try:
            yield instance
        finally:
            instance.stop()


@contextmanager
def own_database() -> Iterator[str | None]:
    server = os.environ.get("DATABASE_URL")
    if not server:
        yield None
        return
    name = f"toolsearch_up_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def wait_for(
    condition: Callable[[], object], *, within_seconds: float, about: Instance | None = None
) -> None:
    deadline = time.monotonic() + within_seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_seconds} s\n{about.output if about else ''}"
        time.sleep(0.1)


def children_of(pid: int) -> list[int]:
    """Direct children, living ones only."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(folder.name))
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def processes_of(data: Path) -> list[str]:
    """Every living process that was started on this data folder, whoever its parent is now."""
    wanted = f"TOOLSEARCH_DATA={data}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(f"{folder.name}: {command_of(int(folder.name))}")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found
