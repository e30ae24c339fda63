"""An instance whose gateway is measured: `manage.py up` on a data folder of its own."""

import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.commands import run_command
from tests.harness.instance import ROOT, Instance, running_gateway, wait_for
from tests.harness.nodes import descendants_of, find_free_port, own_cpu_seconds
from tests.harness.rest import RestClient

START_WITHIN_SECONDS = 120.0
IMPORT_WITHIN_SECONDS = 600.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# A file's definitions belong to snapshots, which cannot be called and are left out of the gateway's lists.
PREPARE = """
from catalog.access.actors import COMMAND_LINE
from catalog.models import Policy, Scope, Server
from catalog.services import keys
Server.objects.filter(transport="snapshot").update(transport="http", url="http://127.0.0.1:9/mcp")
Policy.objects.update(record_calls="full")
policy = Policy.objects.get(slug="default")
scopes = [Scope.ADMIN] + [Scope.AGENT] * {keys}
for number, scope in enumerate(scopes):
    print(keys.create_key(name=f"key-{{number}}", actor=COMMAND_LINE, policy=policy, scope=scope).text)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """An instance, its keys, and the processor time and memory of its parts."""

    instance: Instance
    admin_key: str
    keys: Sequence[str]

    @property
    def url(self) -> str:
        return f"{self.instance.gateway_url}/mcp"

    @property
    def rest(self) -> RestClient:
        return RestClient(self.instance.port, self.admin_key)

    def cpu_seconds(self, part: str) -> float:
        return cpu_seconds_of(self.instance.pid_of(part))

    def memory_mb(self, part: str) -> float:
        return sum(map(resident_mb, descendants_of(self.instance.pid_of(part))))

    def add_servers(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """By name; until their tools have been read and can be called."""
        for name, given in settings.items():
            self.rest.post("/servers", {"name": name, **given}, status=201)

        def are_read() -> bool:
            return all(self.rest.get(f"/servers/{name}")["tools"] for name in settings)

        wait_for(are_read, within_seconds=START_WITHIN_SECONDS, about=self.instance)


@contextmanager
def running_measured(data: Path, tools: Sequence[str], *, keys: int) -> Iterator[Measured]:
    """With these definitions, each a line of JSON, of servers that can be called."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("\n".join(tools) + "\n")
        file.flush()
        manage(data, "migrate", "--verbosity", "0")
        manage(data, "import_tools", "-", file.name)
    admin_key, *made = manage(data, "shell", "--verbosity", "0", "--command", PREPARE.format(keys=keys))
    with running_gateway(data, "--no-demo") as instance:
        instance.wait_until_healthy()
        wait_for(instance.is_gateway_alive, within_seconds=START_WITHIN_SECONDS, about=instance)
        yield Measured(instance, admin_key, made)


def manage(data: Path, *arguments: str) -> list[str]:
    """The lines that a command prints."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {**kept, "TOOLSEARCH_DATA": str(data)}
    done = run_command(*arguments, environment=environment, timeout_seconds=IMPORT_WITHIN_SECONDS)
    if done.returncode:
        raise RuntimeError(f"manage.py {arguments[0]} failed:\n{done.stderr[-2000:]}")
    return done.stdout.split("\n")[:-1]


@contextmanager
def running_upstreams(count: int) -> Iterator[list[str]]:
    """The addresses of so many servers, all in one process."""
    command = [sys.executable, "-m", "bench.upstreams", str(count)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ports = [int(process.stdout.readline()) for _ in range(count)]
            for port in ports:
                wait_for_answer(port)
            yield [f"http://127.0.0.1:{port}/mcp" for port in ports]
        finally:
            process.kill()


@contextmanager
def running_pass_through(upstream: str, mode: str) -> Iterator[tuple[str, int]]:
    """Its address and process, under the server that the gateway runs under."""
    port = find_free_port()
    command = [sys.executable, "-m", "granian", "bench.pass_through:application", "--interface", "asgi"]
    options = ["--host", "127.0.0.1", "--port", str(port), "--http", "1", "--no-ws", "--workers", "1"]
    environment = {**os.environ, "UPSTREAM": upstream, "ERA": mode}
    with _running([*command, *options, "--log-level", "error"], port, environment) as pid:
        yield f"http://127.0.0.1:{port}/mcp", pid


@contextmanager
def running_fastmcp_proxy(upstream: str) -> Iterator[tuple[str, int]]:
    port = find_free_port()
    command = [sys.executable, "-m", "bench.fastmcp_proxy", upstream, str(port)]
    with _running(command, port, os.environ) as pid:
        yield f"http://127.0.0.1:{port}/mcp", pid


@contextmanager
def running_second_gateway(instance: Instance) -> Iterator[int]:
    """Beside the instance's own, on the same data; its port."""
    port = find_free_port()
    command = [sys.executable, "-m", "toolsearch_site.edge.gateway_server", "--processes", "1"]
    place = ["--host", "127.0.0.1", "--port", str(port)]
    with _running([*command, *place], port, instance.environment):
        yield port


@contextmanager
def _running(command: Sequence[str], port: int, environment: Mapping[str, str]) -> Iterator[int]:
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for_answer(port)
        yield process.pid
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for_answer(port: int) -> None:
    """Until something answers there, whatever it says."""
    wait_for(lambda: _answers(port), within_seconds=START_WITHIN_SECONDS)


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def cpu_seconds_of(pid: int) -> float:
    """Of a process and all below it, those that have ended included."""
    return sum(map(own_cpu_seconds, descendants_of(pid)))


def resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 1024**2
    except OSError:
        return 0.0
