"""How a whole instance bears a working day: `python -m bench.load [--minutes 10] [--profile NAME]`.

1,000 sessions poll, 100 search, ten admins edit, on 10,000 tools; on the profiles embedded and production.
Prints requests per second, p50, p99, errors and memory as time goes by, and exits 1 on an error, a wrong
answer, or memory that keeps growing.
"""

import argparse
import contextlib
import os
import random
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
from bench.nodes import (
    ROOT,
    descendants_of,
    end_with_all,
    find_free_port,
    missing_programs,
    own_memory_mb,
    running_cluster,
    wait_for,
)

SERVERS, TOOLS_EACH = 500, 20
POLLING, SEARCHING, ADMINS = 1_000, 100, 10
# Each session's pause between two requests. A thread of ours speaks for several sessions.
PAUSE_SECONDS = 10.0
SESSIONS_PER_THREAD = 25
ROWS = 10
# Caches fill in the first part; from then on memory may rise by this much and no more.
SETTLED_AFTER = 0.4
LARGEST_GROWTH = 0.10


@dataclass(frozen=True, slots=True)
class Instance:
    """Where it answers, with which keys, and what its processes use."""

    ports: Sequence[int]
    agent_key: str
    admin_key: str
    words: dict[str, str]
    memory_mb: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Row:
    at_seconds: float
    per_second: float
    p50: float
    p99: float
    memory_mb: float


class Load:
    def __init__(self, instance: Instance) -> None:
        self.tally = Tally()
        self._instance = instance
        self._over = threading.Event()
        self._names = list(instance.words)

    def run(self, seconds: float) -> list[Row]:
        agents = self._begin()
        threads = [
            *self._start_sessions(agents[:POLLING], Agent.poll),
            *self._start_sessions(agents[POLLING:], Agent.search),
            *(self._start(self._admin(number), PAUSE_SECONDS) for number in range(ADMINS)),
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
        self, agents: Sequence[Agent], act: Callable[[Agent], None]
    ) -> Iterator[threading.Thread]:
        """One thread for those who share a client, asking for one after the other."""
        for first in range(0, len(agents), SESSIONS_PER_THREAD):
            turns = _in_turns(agents[first : first + SESSIONS_PER_THREAD], act)
            yield self._start(turns, PAUSE_SECONDS / SESSIONS_PER_THREAD)

    def _admin(self, number: int) -> Callable[[], None]:
        client = Client(self._instance.ports, self._instance.admin_key, self.tally)
        mine = self._names[number::ADMINS]

        def edit() -> None:
            word = spell(random.randrange(10**12))
            path = f"/tools/{random.choice(mine)}"
            answer = client.ask("edit", "PATCH", path, {"keywords": [word]})
            if answer is not None and answer.status != 200:
                self.tally.wrong_answer(f"an edit was answered with {answer.status}: {answer.body}")

        return edit

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
        before = self._all_times()
        time.sleep(seconds)
        times = self._all_times()[len(before) :]
        memory = self._instance.memory_mb()
        shown = percentile(times, 50), percentile(times, 99)
        return Row(number * seconds, len(times) / seconds, *shown, memory)

    def _all_times(self) -> list[float]:
        """Of the load itself, in the order of the answers."""
        with self.tally.lock:
            return list(self.tally.all_times)


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
            [sys.executable, "manage.py", "up", "--no-demo", "--port", str(port)],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        probe = Client([port], agent_key, Tally())
        wait_for(lambda: _is_healthy(probe, port), about=f"the instance; see {folder / 'up.log'}")
        yield Instance([port], agent_key, admin_key, words, lambda: _memory_of(process.pid))
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
        yield Instance(ports, agent_key, admin_key, words, lambda: sum(node.memory_mb() for node in nodes))


PROFILES = {"embedded": embedded, "production": production}


def _is_healthy(client: Client, port: int) -> bool:
    answer = client.ask_once(port, "health", "GET", "/health")
    return answer is not None and answer.body["status"] == "ok"


def _memory_of(pid: int) -> float:
    return sum(own_memory_mb(one) for one in descendants_of(pid))


def show(profile: str, rows: Sequence[Row], tally: Tally) -> list[str]:
    """Print one profile's table. Returns what was missed, in words."""
    callers = f"{POLLING:,} sessions poll, {SEARCHING} search, {ADMINS} admins edit"
    print(f"\n{profile}: {callers}, {SERVERS * TOOLS_EACH:,} tools")
    print(f"{'after s':>8}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'memory MB':>11}")
    for row in rows:
        speed = f"{row.per_second:>9.1f}{row.p50:>9.1f}{row.p99:>9.1f}"
        print(f"{row.at_seconds:>8.0f}{speed}{row.memory_mb:>11.0f}")
    for kind in ("poll", "search", "edit"):
        times = tally.times.get(kind, [])
        shown = f"p50 {percentile(times, 50):.1f} ms, p99 {percentile(times, 99):.1f} ms"
        print(f"{kind:>8}: {len(times):,}, {shown}, slowest {percentile(times, 100):.0f} ms")
    settled, last = rows[int(len(rows) * SETTLED_AFTER)].memory_mb, rows[-1].memory_mb
    counted = f"errors {len(tally.troubles)}, wrong answers {len(tally.wrong)}"
    print(f"{counted}, memory {last / settled - 1:+.1%} since it settled")
    missed = [f"{profile}: {trouble.kind} {trouble.what}" for trouble in tally.troubles]
    missed += [f"{profile}: {line}" for line in tally.wrong]
    if last > settled * (1 + LARGEST_GROWTH):
        missed.append(f"{profile}: memory grew from {settled:.0f} to {last:.0f} MB")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--profile", choices=PROFILES, action="append", help="both unless one is named")
    options = parser.parse_args()
    end_with_all()
    missed: list[str] = []
    for profile in options.profile or PROFILES:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="load-")))
            load = Load(stack.enter_context(PROFILES[profile](folder)))
            rows = load.run(options.minutes * 60)
        missed += show(profile, rows, load.tally)
    for line in missed[:20]:
        print(line)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
