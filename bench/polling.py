"""Measures polling and searching: `python bench/polling.py`, one table.

Beside our own answers stand a bare Django view under the same server, and FastMCP with the same tools; the
ratios are printed last, and a missed bound ends in exit code 1. Needs `wrk` and the data's `catalog-10k`.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", ROOT.parent / "shared" / "data"))
SIZES = (100, 1_000, 10_000)
SECONDS = int(os.environ.get("BENCH_SECONDS", "5"))
CONNECTIONS = 8
MANY_SESSIONS = 10_000
QUERIES = ("create issue", "send a message", "list files in a folder", "weather forecast", "run a query")

PEER_SCRIPT = """
import json, sys
from fastmcp import FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.function_tool import FunctionTool

tools_file, port, searches = sys.argv[1:]
server = FastMCP("peer")
for line in open(tools_file):
    definition = json.loads(line)
    server.add_tool(FunctionTool(
        name=f"{definition['server']}__{definition['name']}"[:120],
        description=definition.get("description") or "",
        parameters=definition.get("inputSchema") or {"type": "object"},
        fn=lambda: "",
    ))
if searches == "yes":
    server.add_transform(BM25SearchTransform(max_results=5))
server.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, stateless_http=True,
           json_response=True, log_level="error")
"""
BARE_SCRIPT = """
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="constant", MIDDLEWARE=[])
urlpatterns = [path("bare", lambda request: HttpResponse("ok"))]
application = get_wsgi_application()
"""
MANY_SCRIPT = """
from datetime import timedelta
from django.utils import timezone
from catalog.models import ApiKey, Tool
from sessions.models import AgentSession, LoadedTool
key = ApiKey.objects.first()
now = timezone.now()
rows = [AgentSession(key=key, policy=key.policy, last_seen_at=now, expires_at=now + timedelta(days=1))
        for _ in range({count})]
AgentSession.objects.bulk_create(rows, batch_size=500)
name = Tool.objects.values_list("qualified_name", flat=True).first()
LoadedTool.objects.bulk_create(
    [LoadedTool(session=row, name=name, position=1, loaded_turn=0, used_turn=0) for row in rows],
    batch_size=500)
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """One run of `wrk`; times in milliseconds."""

    label: str
    per_second: float
    p50: float
    p99: float
    errors: str = ""


def main() -> None:
    if shutil.which("wrk") is None:
        sys.exit("polling: needs wrk")
    readings: list[Reading] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            readings += measure_size(Path(folder), size)
    show(readings)
    if not judge({reading.label: reading.per_second for reading in readings}):
        sys.exit(1)


def measure_size(folder: Path, size: int) -> Iterator[Reading]:
    tools = folder / f"{size}.jsonl"
    lines = (DATA / "catalog-10k" / "tools.jsonl").read_text().splitlines()[:size]
    tools.write_text("\n".join(lines) + "\n")
    with running_bare_site(folder) as url:
        yield best_of_three(f"bare view, {size:,} tools", url)
    with running_toolsearch(folder / f"data-{size}", tools) as service:
        yield from measure_service(service, size)
    with running_peer(folder, tools, searches=False) as url:
        yield measure_peer(url, f"FastMCP tools/list, {size:,} tools", "tools/list", [{}])
    with running_peer(folder, tools, searches=True) as url:
        calls = [{"name": "search_tools", "arguments": {"query": query}} for query in QUERIES]
        yield measure_peer(url, f"FastMCP search, {size:,} tools", "tools/call", calls)


@dataclass(frozen=True, slots=True)
class Service:
    url: str
    key: str
    environment: dict[str, str]

    def call(self, method: str, path: str, body: object = None) -> tuple[dict[str, str], bytes]:
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return {name.lower(): value for name, value in answer.headers.items()}, answer.read()

    def begin(self) -> str:
        return str(json.loads(self.call("POST", "/sessions", {})[1])["id"])


def measure_service(service: Service, size: int) -> Iterator[Reading]:
    label = f"{size:,} tools"
    key = {"Authorization": f"Bearer {service.key}"}
    path = f"/sessions/{service.begin()}"
    tag = service.call("GET", f"{path}/tools")[0]["etag"]
    list_url = f"{service.url}/api/v1{path}/tools"
    yield best_of_three(f"304 of a session, {label}", list_url, {**key, "If-None-Match": tag})
    yield run_wrk(f"list, deferred, {label}", list_url, key)
    yield run_wrk(f"list, deferred, gzip, {label}", list_url, {**key, "Accept-Encoding": "gzip"})
    everything = f"{list_url}?format=anthropic"
    service.call("GET", f"{path}/tools?format=anthropic")
    yield run_wrk(f"list, all definitions, {label}", everything, key)
    yield run_wrk(f"list, all definitions, gzip, {label}", everything, {**key, "Accept-Encoding": "gzip"})
    yield best_of_three(f"search, {label}", f"{service.url}/api/v1{path}/search", key, queries=QUERIES)
    if size == SIZES[-1]:
        manage(service.environment, "shell", "-c", MANY_SCRIPT.format(count=MANY_SESSIONS))
        many = f"{label}, {MANY_SESSIONS:,} sessions"
        tag = service.call("GET", f"{path}/tools")[0]["etag"]
        yield best_of_three(f"304 of a session, {many}", list_url, {**key, "If-None-Match": tag})
        yield best_of_three(f"search, {many}", f"{service.url}/api/v1{path}/search", key, queries=QUERIES)


def measure_peer(url: str, label: str, method: str, calls: Sequence[object]) -> Reading:
    bodies = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": call}) for call in calls]
    accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    return run_wrk(label, url, accept, bodies=bodies, seconds=max(SECONDS, 10))


def best_of_three(
    label: str, url: str, headers: dict[str, str] | None = None, *, queries: Sequence[str] = ()
) -> Reading:
    """Short answers are at the mercy of the machine: whatever else it did, it could do this."""
    readings = (run_wrk(label, url, headers, queries=queries) for _ in range(3))
    return max(readings, key=lambda reading: reading.per_second)


def run_wrk(
    label: str,
    url: str,
    headers: dict[str, str] | None = None,
    *,
    queries: Sequence[str] = (),
    bodies: Sequence[str] = (),
    seconds: int = SECONDS,
) -> Reading:
    command = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "--latency"]
    for name, value in (headers or {}).items():
        command += ["-H", f"{name}: {value}"]
    bodies = bodies or [json.dumps({"query": query}) for query in queries]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        if bodies:
            script.write(post_script(bodies))
            script.flush()
            command += ["-s", script.name]
        subprocess.run([*command[:3], "-d1s", *command[4:], url], capture_output=True, check=True)
        printed = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    return read_wrk(label, printed)


def post_script(bodies: Sequence[str]) -> str:
    listed = ", ".join(json.dumps(body) for body in bodies)
    return (
        f"local bodies = {{{listed}}}\nlocal at = 0\n"
        'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
        "request = function() at = at % #bodies + 1; return wrk.format(nil, nil, nil, bodies[at]) end\n"
    )


def read_wrk(label: str, printed: str) -> Reading:
    per_second = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    errors = re.search(r"Non-2xx or 3xx responses: \d+|Socket errors: .*", printed)
    assert per_second, printed
    return Reading(
        label,
        float(per_second[1]),
        read_time(printed, 50),
        read_time(printed, 99),
        errors[0] if errors else "",
    )


def read_time(printed: str, percent: int) -> float:
    found = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s)", printed)
    assert found, printed
    return float(found[1]) * {"us": 0.001, "ms": 1, "s": 1000}[found[2]]


@contextmanager
def running_toolsearch(data: Path, tools: Path) -> Iterator[Service]:
    """The web server alone, as `manage.py up` starts it: nothing else takes the processors."""
    environment = {**os.environ, "TOOLSEARCH_DATA": str(data)}
    port = "8799"
    manage(environment, "migrate", "--verbosity", "0")
    manage(environment, "import_tools", "-", str(tools))
    key = manage(environment, "create_key", "bench").strip().splitlines()[-1]
    server = [sys.executable, "-m", "toolsearch_site.edge.granian_server", "--processes", "2"]
    with running([*server, "--host", "127.0.0.1", "--port", port], environment):
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/healthz")
        yield Service(url, key, environment)


@contextmanager
def running_bare_site(folder: Path) -> Iterator[str]:
    """Django without middleware, and a view that returns a constant, under the same server."""
    (folder / "bare_site.py").write_text(BARE_SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    with running(granian("bare_site:application", "8797"), environment):
        wait_for("http://127.0.0.1:8797/bare")
        yield "http://127.0.0.1:8797/bare"


@contextmanager
def running_peer(folder: Path, tools: Path, *, searches: bool) -> Iterator[str]:
    script = folder / "peer.py"
    script.write_text(PEER_SCRIPT)
    command = [sys.executable, str(script), str(tools), "8798", "yes" if searches else "no"]
    with running(command, dict(os.environ)):
        wait_for("http://127.0.0.1:8798/mcp")
        yield "http://127.0.0.1:8798/mcp"


def granian(application: str, port: str) -> list[str]:
    """With as many threads as work at once in a process of ours."""
    command = [sys.executable, "-m", "granian", application, "--interface", "wsgi"]
    return [
        *(*command, "--host", "127.0.0.1", "--port", port),
        *("--workers", "2", "--blocking-threads", "4", "--no-ws"),
    ]


@contextmanager
def running(command: Sequence[str], environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


def manage(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"manage.py {arguments[0]} failed:\n{done.stderr}")
    return done.stdout


def wait_for(url: str) -> None:
    """Until something answers, whatever it says."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)
        else:
            return
    sys.exit(f"{url} did not answer within a minute")


def show(readings: Sequence[Reading]) -> None:
    width = max(len(reading.label) for reading in readings)
    print(f"{'':{width}}  {'req/s':>9}  {'p50 ms':>8}  {'p99 ms':>8}")
    for reading in readings:
        row = f"{reading.label:{width}}  {reading.per_second:9,.1f}  {reading.p50:8.2f}  {reading.p99:8.2f}"
        print(f"{row}  {reading.errors}".rstrip())


def judge(rates: dict[str, float]) -> bool:
    """Prints each ratio with its bound; whether all are kept."""
    few, some, most = (f"{size:,} tools" for size in SIZES)
    many = f"{most}, {MANY_SESSIONS:,} sessions"
    bounds = [(f"304 of a session, {size:,} tools", f"bare view, {size:,} tools", 0.5) for size in SIZES]
    bounds += [
        (f"304 of a session, {most}", f"304 of a session, {few}", 0.8),
        (f"304 of a session, {many}", f"304 of a session, {most}", 0.8),
        (f"search, {many}", f"search, {most}", 0.8),
        (f"search, {most}", f"304 of a session, {most}", 0.16),
        (f"list, all definitions, {some}", f"FastMCP tools/list, {some}", 30),
        (f"search, {most}", f"FastMCP search, {most}", 100),
    ]
    is_kept = True
    for ours, peer, least in bounds:
        ratio = rates[ours] / rates[peer]
        is_kept &= ratio >= least
        word = "" if ratio >= least else "  MISSED"
        print(f"{ours} / {peer}: {ratio:.2f}, at least {least:g}{word}")
    return is_kept


if __name__ == "__main__":
    main()
