"""Starts several nodes on this machine: `python -m tests.harness.nodes [FOLDER]`, until Ctrl-C.

PostgreSQL and Redis are private ones on ports of their own, and every node has a data folder of its own, so
each part can be killed without harm to anything else on the machine. Needs `initdb`, `pg_ctl` and
`redis-server`.
"""

import contextlib
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.harness.commands import run_command

ROOT = Path(__file__).resolve().parents[2]
START_WITHIN_SECONDS = 120.0
WEB_PROCESSES = 2
# Words of the command line by which a node's parts are told apart.
PARTS = {
    "web": "granian_server",
    "gateway": "gateway_server",
    "worker": "--queues celery",
    "refresher": "--queues refresh",
    "scheduler": " beat ",
    "follower": "manage.py follow",
}


class Postgres:
    """A cluster of its own. A superuser's one runs as `postgres`, for PostgreSQL refuses root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = find_free_port()
        self.url = f"postgres://toolsearch@127.0.0.1:{self.port}/postgres"
        self._user = "postgres" if os.geteuid() == 0 else None
        folder.mkdir(parents=True)
        if self._user:
            shutil.chown(folder, self._user)
        self._run("initdb", "--auth=trust", "--username=toolsearch", "--encoding=UTF8")

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        self._run("pg_ctl", "--wait", "--log", str(self.folder / "log"), "--options", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "--wait", "--mode=fast", "stop")

    def processes(self) -> list[int]:
        """The server and one process for each connection."""
        return descendants_of(int((self.folder / "postmaster.pid").read_text().split()[0]))

    def restart(self) -> None:
        """Ends every connection, as an upgrade of the server does."""
        self._run("pg_ctl", "--wait", "--mode=fast", "restart")

    def _run(self, program: str, *arguments: str) -> None:
        command = [_find_program(program), "--pgdata", str(self.folder), *arguments]
        done = subprocess.run(
            command,
            user=self._user,
            group=pwd.getpwnam(self._user).pw_gid if self._user else None,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            sys.exit(f"nodes: {program} {arguments[-1]} failed; {self.folder / 'log'} may say why")


class Redis:
    """Keeps nothing on disk: what it loses when it is killed must be made good by others."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self.port = find_free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: int) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1"]
        self._process = subprocess.Popen(
            [*command, "--save", "", "--appendonly", "no", "--dir", str(self._folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Node:
    """One `manage.py run_node`, with a data folder of its own."""

    def __init__(self, name: str, roles: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.roles = tuple(roles)
        self.data = folder / name
        self.log = folder / f"{name}.log"
        self.port, self.gateway_port = find_free_port(), find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {**environment, "TOOLSEARCH_DATA": str(self.data), "TOOLSEARCH_NODE": name}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "manage.py", "run_node", *self.roles]
        ports = ["--port", str(self.port), "--gateway-port", str(self.gateway_port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *ports, *self._processes()],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _processes(self) -> list[str]:
        return ["--processes", str(WEB_PROCESSES)] if "web" in self.roles else []

    def pid_of(self, part: str) -> int | None:
        """The process id of a part, or None while it is not running."""
        if self.process is None:
            return None
        words = PARTS[part]
        return next((pid for pid in _children_of(self.process.pid) if words in f"{command_of(pid)} "), None)

    def kill_part(self, part: str) -> int:
        """`kill -9` one part; the node's supervisor starts it again."""
        wait_for(lambda: self.pid_of(part) is not None, about=f"{part} of {self.name}")
        pid = self.pid_of(part)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        return pid

    def kill(self) -> None:
        """`kill -9` the supervisor: everything of the node goes with it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=20)

    def health(self) -> dict[str, Any]:
        """What it says of itself; empty while it says nothing."""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/health", timeout=5) as answer:
                return json.load(answer)  # type: ignore[no-any-return]
        except (OSError, urllib.error.URLError, ValueError):
            return {}

    def is_healthy(self) -> bool:
        return self.health().get("status") == "ok"

    def processes(self) -> list[int]:
        return [] if self.process is None else descendants_of(self.process.pid)


class Cluster:
    """PostgreSQL, Redis, and the nodes. `variables` are set for every node."""

    def __init__(self, folder: Path, **variables: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # the database's own user has to find its part of it
        self.folder = folder
        self.postgres = Postgres(folder / "postgres")
        self.redis = Redis(folder / "redis")
        self.nodes: dict[str, Node] = {}
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = kept | {
            "DATABASE_URL": self.postgres.url,
            "CELERY_BROKER_URL": self.redis.url(0),
            "CACHE_URL": self.redis.url(1),
            "SECRET_KEY": secrets.token_urlsafe(48),
            "TOOLSEARCH_TLS": "off",
            "TOOLSEARCH_STDIO": "on",
            **variables,
        }

    def add(self, name: str, *roles: str) -> Node:
        self.nodes[name] = Node(name, roles, self.environment, self.folder)
        return self.nodes[name]

    def of_role(self, role: str) -> list[Node]:
        return [node for node in self.nodes.values() if role in node.roles]

    def prepare(self) -> None:
        """Start the two servers and make the tables."""
        self.postgres.start()
        self.redis.start()
        self.manage("migrate", "--verbosity", "0")

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()
        for node in self.of_role("web"):
            wait_for(node.is_healthy, about=f"{node.name}: {node.log}")

    def manage(self, *arguments: str, data: str = "operator") -> str:
        """Run a command as an operator does, on a folder that no node uses."""
        environment = {**self.environment, "TOOLSEARCH_DATA": str(self.folder / data)}
        done = run_command(*arguments, environment=environment)
        if done.returncode:
            raise RuntimeError(f"manage.py {arguments[0]} failed:\n{done.stderr[-2000:]}")
        return done.stdout.strip()

    def stop(self) -> None:
        for node in self.nodes.values():
            if node.process is not None:
                node.process.terminate()
        for node in self.nodes.values():
            node.stop()
        self.redis.kill()
        with contextlib.suppress(SystemExit):
            self.postgres.stop()


@contextmanager
def running_cluster(
    folder: Path, *, web: int = 2, workers: int = 2, gateways: int = 0, **variables: str
) -> Iterator[Cluster]:
    """Two web nodes, two workers, one scheduler; nothing is started but the two servers."""
    cluster = Cluster(folder, **variables)
    for number in range(1, web + 1):
        cluster.add(f"web-{number}", "web")
    for number in range(1, workers + 1):
        cluster.add(f"worker-{number}", "worker")
    for number in range(1, gateways + 1):
        cluster.add(f"gateway-{number}", "gateway")
    cluster.add("scheduler-1", "scheduler")
    try:
        cluster.prepare()
        yield cluster
    finally:
        cluster.stop()


def missing_programs() -> list[str]:
    """What has to be installed before a cluster can be started."""
    return [name for name in ("initdb", "pg_ctl", "redis-server") if not _is_installed(name)]


def end_with_all() -> None:
    """For a script: whoever ends it ends everything that it started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def wait_for(
    condition: Callable[[], object], *, about: str, within_seconds: float = START_WITHIN_SECONDS
) -> float:
    """Seconds until the condition held."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > within_seconds:
            raise TimeoutError(f"not within {within_seconds:g} s: {about}")
        time.sleep(0.1)
    return time.monotonic() - started


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def descendants_of(pid: int) -> list[int]:
    """A process and everything below it."""
    return [pid, *(below for child in _children_of(pid) for below in descendants_of(child))]


def _children_of(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        listed = [(task / "children").read_text().split() for task in tasks]
    except OSError:
        return []
    return [int(child) for children in listed for child in children]


def own_memory_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    private = [line.split() for line in lines if line.startswith("Private_")]
    return sum(int(words[1]) for words in private) / 1024


def own_cpu_seconds(pid: int) -> float:
    """What a process has used so far, and its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _is_installed(program: str) -> bool:
    return shutil.which(program) is not None or _packaged(program) is not None


def _find_program(program: str) -> str:
    return shutil.which(program) or str(_packaged(program) or program)


def _packaged(program: str) -> Path | None:
    """Debian keeps the server's programs outside the path."""
    return max(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), default=None)


def main() -> None:
    if missing := missing_programs():
        sys.exit(f"nodes: needs {', '.join(missing)}")
    end_with_all()
    with contextlib.ExitStack() as stack:
        given = sys.argv[1:2]
        folder = Path(given[0] if given else stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(running_cluster(folder))
        key = cluster.manage("create_key", "operator", "--admin").splitlines()[-1]
        cluster.start()
        for node in cluster.nodes.values():
            print(f"{node.name:<12} {node.url if 'web' in node.roles else '':<24} log {node.log}")
        print(f"admin key {key}\nCtrl-C stops everything")
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
