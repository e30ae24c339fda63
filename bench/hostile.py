"""Attacks a running instance while agents poll: `python -m bench.hostile [--attack NAME …] [--seconds 20]`.

On 10,000 tools, embedded: patterns, globs, word differences, slow bodies, slow readers, lists of one's own,
long built-in tools, a server that floods, writes in a row. Then a full disk, on a small file system in
memory (needs the right to mount one), and edits at once on PostgreSQL. For each attack one line, beside a
quiet minute: the polls of agents that have no part in it, the memory of the largest web process and of the
largest other one, and the processors' time. Exits 1 where 99 of 100 polls took more than ten times their
quiet p99, one went unanswered, a web process took more than 600 MB, an attack was answered wrongly, or
something acknowledged is lost.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import attacks
from bench.agents import Client, Tally, percentile, write_tools
from bench.attacks import Target
from bench.bystanders import Bystanders, Poll, polling
from tests.harness.nodes import (
    ROOT,
    Cluster,
    command_of,
    descendants_of,
    end_with_all,
    find_free_port,
    missing_programs,
    own_cpu_seconds,
    running_cluster,
    wait_for,
)

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", ROOT.parent / "shared" / "data"))
CATALOG = DATA / "catalog-10k" / "tools.jsonl"
QUIET_SECONDS = 60.0
REST_SECONDS = 5.0
SAMPLE_SECONDS = 0.2
WRITE_SECONDS = 0.5
MOST_TIMES_QUIET_P99 = 10.0
MOST_WEB_MB = 600.0
DISK_MB = 300
ROUNDS_OF_EDITS = 40
CONFIGS, CONFIG_SERVERS, CONFIG_THREADS = 24, 10, 8
ATTACKS: dict[str, Callable[[Target, float], list[str]]] = {
    "patterns": attacks.patterns,
    "globs": attacks.globs,
    "word differences": attacks.word_differences,
    "slow bodies": attacks.slow_bodies,
    "slow readers": attacks.slow_readers,
    "own offers": attacks.own_offers,
    "built-ins": attacks.builtins,
    "server floods": attacks.server_floods,
    "writes in a row": attacks.writes_in_a_row,
}
# Before the attack: a change of the catalog is a new list for every agent, which is no part of it.
PREPARATIONS: dict[str, Callable[[Target], None]] = {"word differences": attacks.prepare_word_differences}
# Edits by an admin: each is a new list for every agent, so polls are not judged by quiet ones.
NEW_LISTS = frozenset({"writes in a row"})
FULL_DISK, EDITS_AT_ONCE = "full disk", "edits at once"


@dataclass(frozen=True, slots=True)
class Reading:
    """The measurements of one attack."""

    name: str
    polls: Sequence[Poll]
    web_mb: float
    other_mb: float
    cores: float
    wrong: Sequence[str] = ()

    @property
    def p99_ms(self) -> float:
        return percentile([poll.seconds for poll in self.polls], 99)

    @property
    def slowest_ms(self) -> float:
        return percentile([poll.seconds for poll in self.polls], 100)

    @property
    def unanswered(self) -> int:
        return sum(not poll.is_answered for poll in self.polls)


class Watch:
    """Samples memory and processor time of an instance, and makes sessions to look for later."""

    def __init__(self, target: Target, supervisor_pid: int) -> None:
        self.target = target
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.web_mb = self.other_mb = 0.0
        self._supervisor = supervisor_pid
        self._over = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._sample, self._write)]
        for thread in self._threads:
            thread.start()

    def observe(self, name: str, bystanders: Bystanders, act: Callable[[], list[str]]) -> Reading:
        self.web_mb = self.other_mb = 0.0
        began, used = time.monotonic(), self._cpu_seconds()
        wrong = act()
        ended = time.monotonic()
        cores = (self._cpu_seconds() - used) / (ended - began)
        time.sleep(REST_SECONDS)  # polls that were asked during the attack are answered
        polls = bystanders.polls_between(began, ended)
        return Reading(name, polls, self.web_mb, self.other_mb, cores, wrong)

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def lost(self) -> list[str]:
        """Sessions that were acknowledged and are not there."""
        client = self.target.agent()
        answers = {one: client.ask("check", "GET", f"/sessions/{one}") for one in self.acknowledged}
        gone = [one for one, answer in answers.items() if answer is None or answer.status != 200]
        return [f"{len(gone)} of {len(self.acknowledged)} acknowledged sessions are lost"] if gone else []

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            for pid in descendants_of(self._supervisor):
                if "granian" in command_of(pid):
                    self.web_mb = max(self.web_mb, _memory_mb(pid))
                else:
                    self.other_mb = max(self.other_mb, _memory_mb(pid))

    def _write(self) -> None:
        client = self.target.agent()
        while not self._over.wait(WRITE_SECONDS):
            answer = client.ask_once(self.target.port, "begin", "POST", "/sessions", {})
            if answer is not None and answer.status == 201:
                self.acknowledged.append(answer.body["id"])
            else:
                self.refused.append("no answer" if answer is None else f"{answer.status}: {answer.body}")

    def _cpu_seconds(self) -> float:
        return sum(own_cpu_seconds(pid) for pid in descendants_of(self._supervisor))


def _memory_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def running(folder: Path, tools: Path) -> Iterator[tuple[Target, int]]:
    """`manage.py up` on these tools; with the supervisor's process id."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {**kept, "TOOLSEARCH_DATA": str(folder / "data")}
    port, log = find_free_port(), folder / "up.log"
    target = Target(port, "", "", folder, log, environment)
    for command in (("migrate", "--verbosity", "0"), ("import_tools", "-", str(tools))):
        target.manage(*command).check_returncode()
    keys = [
        target.manage("create_key", *words).stdout.split()[-1] for words in (("agents",), ("ops", "--admin"))
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--no-demo", "--no-gateway", "--port", str(port)],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        client = Client([port], keys[0], Tally())
        wait_for(lambda: _is_healthy(client, port), about=f"the instance; see {log}")
        yield Target(port, keys[0], keys[1], folder, log, environment), process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def _is_healthy(client: Client, port: int) -> bool:
    answer = client.ask_once(port, "health", "GET", "/health")
    return answer is not None and answer.status == 200 and answer.body["status"] == "ok"


def do_nothing(seconds: float) -> list[str]:
    time.sleep(seconds)
    return []


def attack_embedded(folder: Path, names: Sequence[str], seconds: float) -> Iterator[Reading]:
    """Every attack on one instance, one after the other; the first reading is the quiet minute's."""
    with (
        running(folder, CATALOG) as (target, pid),
        polling([target.port], target.agent_key, folder) as others,
    ):
        watch = Watch(target, pid)
        time.sleep(REST_SECONDS)
        yield watch.observe("quiet", others, lambda: do_nothing(QUIET_SECONDS))
        for name in names:
            if name in PREPARATIONS:
                PREPARATIONS[name](target)
                time.sleep(REST_SECONDS)
            seen = watch.observe(name, others, lambda name=name: ATTACKS[name](target, seconds))  # type: ignore[misc]
            yield replace(seen, polls=[]) if name in NEW_LISTS else seen
        watch.stop()
        wrong = [*watch.lost(), *sorted(set(watch.refused))[:3]]
        yield Reading("afterwards", [], 0.0, 0.0, 0.0, wrong)


def fill_disk(folder: Path, seconds: float) -> Iterator[Reading]:
    """The data folder's file system is filled while agents poll, then emptied."""
    disk = folder / "disk"
    disk.mkdir()
    tools = folder / "few-tools.jsonl"
    write_tools(tools, servers=10, tools_each=20)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(disk)], check=True)
    try:
        with (
            running(disk, tools) as (target, pid),
            polling([target.port], target.agent_key, folder) as others,
        ):
            watch = Watch(target, pid)
            time.sleep(REST_SECONDS)
            yield watch.observe("quiet, small disk", others, lambda: do_nothing(seconds))
            yield watch.observe(FULL_DISK, others, lambda: _fill(target, disk, seconds))
            wait_for(
                lambda: _is_healthy(target.agent(), target.port), about="health after the disk had space"
            )
            watch.stop()
            refusals = [one for one in watch.refused if "disk" not in one.lower()]
            yield Reading("space again", [], 0.0, 0.0, 0.0, [*watch.lost(), *sorted(set(refusals))[:3]])
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def _fill(target: Target, disk: Path, seconds: float) -> list[str]:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    deadline, client = time.monotonic() + seconds, target.admin()
    while time.monotonic() < deadline:
        for path in ("/servers", "/tools?limit=5", "/policies", "/nothing"):
            client.ask_once(target.port, "look", "GET", path)
        time.sleep(SAMPLE_SECONDS)
    health = target.agent().ask_once(target.port, "health", "GET", "/health")
    ballast.unlink()
    told = "" if health is None else str(health.body)
    return [] if "disk" in told.lower() else [f"health does not name the disk: {told}"]


def edit_at_once(folder: Path) -> Iterator[Reading]:
    """On PostgreSQL: different fields of one server are changed at once, configs imported side by side."""
    if missing := missing_programs():
        sys.exit(f"hostile: needs {', '.join(missing)}")
    with running_cluster(folder, workers=1) as cluster:
        cluster.start()
        key = cluster.manage("create_key", "ops", "--admin").splitlines()[-1]
        wrong = [*_patch_at_once(cluster, key), *_import_at_once(cluster, key)]
        yield Reading(EDITS_AT_ONCE, [], 0.0, 0.0, 0.0, wrong)


def _patch_at_once(cluster: Cluster, key: str) -> list[str]:
    ports = [node.port for node in cluster.of_role("web")]
    admin = Client(ports, key, Tally())
    wanted = {"name": "edited", "url": "http://127.0.0.1:9/", "transport": "http"}
    admin.ask("server", "POST", "/servers", wanted)
    lost = 0
    for number in range(ROUNDS_OF_EDITS):
        transport = ("sse", "http")[number % 2]
        edits = ({"headers": {f"X-Round-{number}": "1"}}, {"transport": transport})
        clients = [Client([port], key, Tally()) for port in ports]
        threads = [
            threading.Thread(target=client.ask, args=("edit", "PATCH", "/servers/edited", edit))
            for client, edit in zip(clients, edits, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        now = admin.ask("server", "GET", "/servers/edited")
        assert now is not None
        has_headers = f"X-Round-{number}" in now.body["settings"]["headers"]
        lost += not (has_headers and now.body["transport"] == transport)
    return [f"{lost} of {ROUNDS_OF_EDITS} pairs of edits lost one"] if lost else []


def _import_at_once(cluster: Cluster, key: str) -> list[str]:
    ports = [node.port for node in cluster.of_role("web")]
    failed: list[str] = []

    def import_some(first: int) -> None:
        client = Client(ports, key, Tally())
        for number in range(first, CONFIGS, CONFIG_THREADS):
            names = [f"imported-{number}-{index}" for index in range(CONFIG_SERVERS)]
            body = {"mcpServers": {name: {"url": f"http://127.0.0.1:9/{name}"} for name in names}}
            answer = client.ask_once(ports[number % len(ports)], "config", "POST", "/config", body)
            if answer is None or answer.status != 200:
                failed.append("no answer" if answer is None else f"{answer.status}: {answer.body}")

    threads = [threading.Thread(target=import_some, args=(first,)) for first in range(CONFIG_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [f"{len(failed)} of {CONFIGS} imports failed: {failed[0]}"] if failed else []


def show(reading: Reading) -> None:
    polls = (
        f"{len(reading.polls):>7}{reading.p99_ms:>9.1f}{reading.slowest_ms:>10.0f}{reading.unanswered:>12}"
    )
    memory = f"{reading.web_mb:>8.0f}{reading.other_mb:>10.0f}{reading.cores:>7.2f}"
    print(f"{reading.name:<18}{polls}{memory}", flush=True)


def judge(reading: Reading, quiet: Reading) -> list[str]:
    missed = [f"{reading.name}: {what}" for what in reading.wrong]
    if reading.polls and reading.p99_ms > MOST_TIMES_QUIET_P99 * quiet.p99_ms:
        missed.append(f"{reading.name}: polls took {reading.p99_ms / quiet.p99_ms:.1f} times the quiet p99")
    if reading.unanswered:
        missed.append(f"{reading.name}: {reading.unanswered} polls were not answered")
    if reading.web_mb > MOST_WEB_MB:
        missed.append(f"{reading.name}: a web process took {reading.web_mb:.0f} MB")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    everything = (*ATTACKS, FULL_DISK, EDITS_AT_ONCE)
    parser.add_argument("--attack", choices=everything, action="append", help="all unless some are named")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each attack")
    options = parser.parse_args()
    if not CATALOG.exists():
        sys.exit(f"hostile: needs {CATALOG} (TOOLSEARCH_BENCH_DATA)")
    end_with_all()
    names = options.attack or everything
    print(f"{'attack':<18}{'polls':>7}{'p99 ms':>9}{'slowest':>10}{'unanswered':>12}", end="")
    print(f"{'web MB':>8}{'other MB':>10}{'cores':>7}")
    missed: list[str] = []
    for stage in _stages(names, options.seconds):
        quiet: Reading | None = None
        for reading in stage:
            quiet = quiet or reading
            show(reading)
            missed += judge(reading, quiet)
    print("\n".join(missed) or "nothing was missed")
    sys.exit(1 if missed else 0)


def _stages(names: Sequence[str], seconds: float) -> Iterator[Iterator[Reading]]:
    """One instance each, with a folder of its own."""
    on_one = [name for name in names if name in ATTACKS]
    makers: dict[str, Callable[[Path], Iterator[Reading]]] = {
        FULL_DISK: lambda folder: fill_disk(folder, seconds),
        EDITS_AT_ONCE: edit_at_once,
    }
    chosen = [makers[name] for name in makers if name in names]
    if on_one:
        chosen.insert(0, lambda folder: attack_embedded(folder, on_one, seconds))
    for maker in chosen:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            yield maker(Path(folder))


if __name__ == "__main__":
    main()
