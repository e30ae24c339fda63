"""Load test of a working day: `python -m bench.load [--minutes 10] [--profile NAME] [--pace 1]`.

1,000 sessions poll, 100 search, ten admins edit, on 10,000 tools; on the profiles embedded and production.
Every caller has its own pause between two requests and keeps to it, however long an answer takes. Most edits
set keywords, which moves the index and every policy's decided list on; one in fifty sets a tool's loading,
and so changes the list of every session. A watcher edits, too, and looks when its edit is found. For a small
machine, which the callers share with the instance, a pace of 0.5 makes every pause twice as long.

Prints requests per second, p50, p99, errors and memory as time goes by. Exits 1 on an error, a wrong answer,
requests that were not served as fast as they came, an edit that was not in force in time, or memory that
keeps growing.
"""

import argparse
import contextlib
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.agents import Agent, Client, Tally, percentile, spell, write_tools
from tests.harness.nodes import (
    ROOT,
    descendants_of,
    end_with_all,
    find_free_port,
    missing_programs,
    own_cpu_seconds,
    own_memory_mb,
    running_cluster,
    wait_for,
)

SERVERS, TOOLS_EACH = 500, 20
POLLING, SEARCHING, ADMINS = 1_000, 100, 10
LEAST_SHARE_SERVED = 0.95
# A thread of ours speaks for several sessions.
SESSIONS_PER_THREAD = 25
EDITS_PER_LOADING = 50
WATCH_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 0.1
IN_FORCE_SECONDS = 2.0
NEVER_SECONDS = 20.0
ROWS = 10
# Caches fill in the first part; from then on memory may rise by this much and no more.
SETTLED_AFTER = 0.2
LARGEST_GROWTH = 0.15
MEMORY_SAMPLES_PER_ROW = 5


@dataclass(frozen=True, slots=True)
class Pauses:
    """Of each caller between two requests: an agent polls before each turn of its model."""

    poll: float = 8.0
    search: float = 8.0
    edit: float = 5.0

    @classmethod
    def at(cls, pace: float) -> "Pauses":
        usual = cls()
        return cls(usual.poll / pace, usual.search / pace, usual.edit / pace)

    @property
    def requests_per_second(self) -> float:
        return POLLING / self.poll + SEARCHING / self.search + ADMINS / self.edit


@dataclass(frozen=True, slots=True)
class Instance:
    """Where it answers, with which keys, and which are its processes; `servers` are those of the database."""

    ports: Sequence[int]
    agent_key: str
    admin_key: str
    words: dict[str, str]
    processes: Callable[[], list[int]]
    servers: Callable[[], list[int]] = list

    def memory_mb(self) -> float:
        return sum(own_memory_mb(pid) for pid in self.processes())

    def cpu_seconds(self) -> float:
        return sum(own_cpu_seconds(pid) for pid in (*self.processes(), *self.servers()))


@dataclass(frozen=True, slots=True)
class Row:
    at_seconds: float
    per_second: float
    p50: float
    p99: float
    cores: float
    memory_mb: float


class Load:
    def __init__(self, instance: Instance, pauses: Pauses) -> None:
        self.tally = Tally()
        self.pauses = pauses
        self._instance = instance
        self._over = threading.Event()
        self._names = list(instance.words)
        self.in_force: list[float] = []

    def run(self, seconds: float) -> list[Row]:
        agents = self._begin()
        threads = [
            *self._start_sessions(agents[:POLLING], Agent.poll, self.pauses.poll),
            *self._start_sessions(agents[POLLING : POLLING + SEARCHING], Agent.search, self.pauses.search),
            *(self._start(self._admin(number), self.pauses.edit) for number in range(ADMINS)),
            self._start(self._watcher(), WATCH_SECONDS),
        ]
        rows = [self._measure(number, seconds / ROWS) for number in range(1, ROWS + 1)]
        self._over.set()
        for thread in threads:
            thread.join()
        return rows

    def _begin(self) -> list[Agent]:
        groups = range(0, POLLING + SEARCHING, SESSIONS_PER_THREAD)
        agents: list[Agent] = []
        for first in groups:
            client = Client(self._instance.ports, self._instance.agent_key, self.tally)
            numbers = range(first, first + SESSIONS_PER_THREAD)
            agents += [Agent(number, client, self.tally, self._instance.words) for number in numbers]
        for agent in agents:
            agent.begin()
        return agents

    def _start_sessions(
        self, agents: Sequence[Agent], act: Callable[[Agent], None], pause: float
    ) -> Iterator[threading.Thread]:
        """One thread for those who share a client, asking for one after the other."""
        for first in range(0, len(agents), SESSIONS_PER_THREAD):
            turns = _in_turns(agents[first : first + SESSIONS_PER_THREAD], act)
            yield self._start(turns, pause / SESSIONS_PER_THREAD)

    def _admin(self, number: int) -> Callable[[], None]:
        client = Client(self._instance.ports, self._instance.admin_key, self.tally)
        mine = self._names[1 + number :: ADMINS]
        edits = itertools.count(1 + number * EDITS_PER_LOADING // ADMINS)

        def edit() -> None:
            if next(edits) % EDITS_PER_LOADING:
                self._edit(client, random.choice(mine), {"keywords": [_make_word()]})
            else:
                self._edit(client, random.choice(mine), {"loading": random.choice(("always", "defer"))})

        return edit

    def _edit(self, client: Client, name: str, wanted: dict[str, object]) -> bool:
        answer = client.ask("edit", "PATCH", f"/tools/{name}", wanted)
        if answer is not None and answer.status != 200:
            self.tally.wrong_answer(f"an edit was answered with {answer.status}: {answer.body}")
        return answer is not None and answer.status == 200

    def _watcher(self) -> Callable[[], None]:
        """Edits a tool that no admin edits, and searches until it is found by its new word."""
        admin = Client(self._instance.ports, self._instance.admin_key, self.tally)
        client = Client(self._instance.ports, self._instance.agent_key, self.tally)
        session = client.ask("begin", "POST", "/sessions", {"external_id": "watcher"})
        assert session is not None
        path, name = f"/sessions/{session.body['id']}/search", self._names[0]

        def watch() -> None:
            word = _make_word()
            if not self._edit(admin, name, {"keywords": [word]}):
                return
            edited_at = time.monotonic()
            while time.monotonic() - edited_at < NEVER_SECONDS:
                answer = client.ask("watch", "POST", path, {"query": word, "load": False})
                if answer is not None and name in [match["name"] for match in answer.body["matches"]]:
                    break
                time.sleep(LOOK_AGAIN_SECONDS)
            self.in_force.append(time.monotonic() - edited_at)

        return watch

    def _start(self, step: Callable[[], None], pause: float) -> threading.Thread:
        """At a steady pace, whatever an answer takes, from a moment of its own."""

        def repeat() -> None:
            due = time.monotonic() + random.uniform(0, pause)
            while not self._over.wait(max(0.0, due - time.monotonic())):
                due = max(due + pause, time.monotonic() - pause)
                try:
                    step()
                except Exception as error:  # a check that cannot be made is a miss, not a silence
                    self.tally.wrong_answer(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        return thread

    def _measure(self, number: int, seconds: float) -> Row:
        started, before, used_before = time.monotonic(), len(self._all_times()), self._instance.cpu_seconds()
        memory = []
        for _ in range(MEMORY_SAMPLES_PER_ROW):
            time.sleep(seconds / MEMORY_SAMPLES_PER_ROW)
            memory.append(self._instance.memory_mb())
        times, took = self._all_times()[before:], time.monotonic() - started
        return Row(
            at_seconds=number * seconds,
            per_second=len(times) / took,
            p50=percentile(times, 50),
            p99=percentile(times, 99),
            cores=(self._instance.cpu_seconds() - used_before) / took,
            memory_mb=statistics.median(memory),
        )

    def _all_times(self) -> list[float]:
        """Of the load itself, in the order of the answers."""
        with self.tally.lock:
            return list(self.tally.all_times)


def _make_word() -> str:
    """One that no tool has."""
    return spell(random.randrange(10**11, 10**12))


def _in_turns(agents: Sequence[Agent], act: Callable[[Agent], None]) -> Callable[[], None]:
    turn = 0

    def step() -> None:
        nonlocal turn
        act(agents[turn % len(agents)])
        turn += 1

    return step


@contextmanager
def embedded(folder: Path) -> Iterator[Instance]:
    """`manage.py up`: SQLite, files for a broker, one machine."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {**kept, "TOOLSEARCH_DATA": str(folder / "data")}

    def manage(*arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    words = write_tools(folder / "tools.jsonl", servers=SERVERS, tools_each=TOOLS_EACH)
    manage("migrate", "--verbosity", "0")
    manage("import_tools", "-", str(folder / "tools.jsonl"))
    agent_key = manage("create_key", "agents").splitlines()[-1]
    admin_key = manage("create_key", "ops", "--admin").splitlines()[-1]
    port = find_free_port()
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--no-demo", "--no-gateway", "--port", str(port)],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        probe = Client([port], agent_key, Tally())
        wait_for(lambda: _is_healthy(probe, port), about=f"the instance; see {folder / 'up.log'}")
        yield Instance([port], agent_key, admin_key, words, lambda: descendants_of(process.pid))
    finally:
        process.terminate()
        process.wait(timeout=20)


@contextmanager
def production(folder: Path) -> Iterator[Instance]:
    """Two web nodes, a worker and a scheduler on PostgreSQL and Redis."""
    if missing := missing_programs():
        sys.exit(f"load: needs {', '.join(missing)}")
    with running_cluster(folder, workers=1) as cluster:
        words = write_tools(folder / "tools.jsonl", servers=SERVERS, tools_each=TOOLS_EACH)
        cluster.manage("import_tools", "-", str(folder / "tools.jsonl"))
        agent_key = cluster.manage("create_key", "agents").splitlines()[-1]
        admin_key = cluster.manage("create_key", "ops", "--admin").splitlines()[-1]
        cluster.start()
        nodes = list(cluster.nodes.values())
        ports = [node.port for node in cluster.of_role("web")]
        yield Instance(
            ports,
            agent_key,
            admin_key,
            words,
            processes=lambda: [pid for node in nodes for pid in node.processes()],
            servers=cluster.postgres.processes,
        )


PROFILES = {"embedded": embedded, "production": production}


def _is_healthy(client: Client, port: int) -> bool:
    answer = client.ask_once(port, "health", "GET", "/health")
    return answer is not None and answer.body["status"] == "ok"


def show(profile: str, rows: Sequence[Row], load: Load) -> list[str]:
    """Print one profile's table. Returns what was missed, in words."""
    tally, pauses = load.tally, load.pauses
    print(
        f"\n{profile}: {SERVERS * TOOLS_EACH:,} tools; {POLLING:,} sessions poll every {pauses.poll:g} s,",
        end=" ",
    )
    print(
        f"{SEARCHING} search every {pauses.search:g} s, {ADMINS} admins edit every {pauses.edit:g} s",
        end="",
    )
    print(f": {pauses.requests_per_second:.0f} requests per second come in")
    print(f"{'after s':>8}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'cores':>8}{'memory MB':>11}")
    for row in rows:
        speed = f"{row.per_second:>9.1f}{row.p50:>9.1f}{row.p99:>9.1f}{row.cores:>8.2f}"
        print(f"{row.at_seconds:>8.0f}{speed}{row.memory_mb:>11.0f}")
    for kind in ("poll", "search", "edit"):
        print(f"{kind:>8}: {len(tally.times.get(kind, [])):,}, {_in_ms(tally.times.get(kind, []))}")
    print(f"edits in force after: {_in_ms(load.in_force)}")
    settled, last = rows[int(len(rows) * SETTLED_AFTER) - 1].memory_mb, rows[-1].memory_mb
    middle = rows[len(rows) // 2].memory_mb
    print(f"errors {len(tally.troubles)}, wrong answers {len(tally.wrong)}", end="; ")
    print(
        f"memory {rows[0].memory_mb:.0f} MB at first, {middle:.0f} in the middle, {last:.0f} at last",
        end=": ",
    )
    print(f"{last / settled - 1:+.1%} since it settled")
    missed = [f"{trouble.kind} {trouble.what}" for trouble in tally.troubles] + tally.wrong
    if last > settled * (1 + LARGEST_GROWTH):
        missed.append(f"memory grew from {settled:.0f} to {last:.0f} MB")
    served = statistics.mean(row.per_second for row in rows)
    if served < LEAST_SHARE_SERVED * pauses.requests_per_second:
        missed.append(f"{served:.0f} requests per second were served")
    if percentile(load.in_force, 99) > IN_FORCE_SECONDS * 1000:
        missed.append(f"an edit was in force after {max(load.in_force):.1f} s")
    return [f"{profile}: {line}" for line in missed]


def _in_ms(times: Sequence[float]) -> str:
    shown = f"p50 {percentile(times, 50):.1f} ms, p99 {percentile(times, 99):.1f} ms"
    return f"{shown}, slowest {percentile(times, 100):.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--profile", choices=PROFILES, action="append", help="both unless one is named")
    parser.add_argument("--pace", type=float, default=1.0, help="less than 1 makes pauses longer")
    options = parser.parse_args()
    end_with_all()
    missed: list[str] = []
    for profile in options.profile or PROFILES:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="load-")))
            load = Load(stack.enter_context(PROFILES[profile](folder)), Pauses.at(options.pace))
            rows = load.run(options.minutes * 60)
        missed += show(profile, rows, load)
    for line in missed[:20]:
        print(line)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
