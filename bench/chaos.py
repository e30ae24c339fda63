"""Breaks a deployment while agents use it: `python -m bench.chaos [--seconds 60] [--agents 100]`.

Two web nodes, two workers, a scheduler, PostgreSQL and Redis, all private. Agents poll and search, editors
edit, servers are refreshed; meanwhile every kind of process is killed, Redis is killed and PostgreSQL
restarted. Prints what was done and counted, and exits 1 on a wrong answer, a lost write, a lost job, or an
error that nothing explains.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.admins import EDITORS, RECOVER_WITHIN_SECONDS, REFRESHED, Editor, Refresher
from bench.agents import Agent, Client, Tally, Trouble, percentile, spell, write_tools
from tests.harness.nodes import (
    ROOT,
    Cluster,
    descendants_of,
    end_with_all,
    missing_programs,
    running_cluster,
    wait_for,
)

SERVERS, TOOLS_EACH = 25, 20
IN_FORCE_WITHIN_SECONDS = 2.0
AWAY_SECONDS = 4.0
STEADY_SECONDS = 2.0
COUNT_JOBS = """
import json
from django.db.models import Exists, OuterRef
from catalog.models import Job
same = Job.objects.filter(kind=OuterRef("kind"), subject=OuterRef("subject"))
later = same.filter(pk__gt=OuterRef("pk"), state="done")
lost = {"open": Job.objects.open(), "failed": Job.objects.filter(~Exists(later), state="failed")}
print(json.dumps({state: jobs.count() for state, jobs in lost.items()}))
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something to break, and what callers may then see: `503`, `connection`, or nothing at all."""

    name: str
    inflict: Callable[[], None]
    allows: frozenset[str] = frozenset()


@dataclass(slots=True)
class Injury:
    """A fault as it happened."""

    fault: Fault
    began: float
    ended: float = float("inf")

    @property
    def recovered_after(self) -> float:
        return self.ended - self.began

    def covers(self, trouble: Trouble) -> bool:
        happened_in = self.began <= trouble.at and trouble.since <= self.ended
        return happened_in and trouble.kind in self.fault.allows


class Chaos:
    def __init__(self, cluster: Cluster, agents: int, seconds: float) -> None:
        self.cluster = cluster
        self.tally = Tally()
        self.injuries: list[Injury] = []
        self.seconds = seconds
        self._over = threading.Event()
        self._admin_key = cluster.manage("create_key", "chaos", "--admin").splitlines()[-1]
        agent_key = cluster.manage("create_key", "agents").splitlines()[-1]
        ports = [node.port for node in cluster.of_role("web")]
        tools = cluster.folder / "tools.jsonl"
        self.words = write_tools(tools, servers=SERVERS, tools_each=TOOLS_EACH)
        cluster.manage("import_tools", "-", str(tools))
        names = list(self.words)
        self.agents = [
            Agent(number, Client(ports, agent_key, self.tally), self.tally, self.words)
            for number in range(agents)
        ]
        self.editors = [
            Editor(number, cluster, self._admin_key, names[number::EDITORS], self.tally)
            for number in range(EDITORS)
        ]
        # Tools of its own: its edits prove that the deployment is whole again.
        self.prober = self.editors.pop()
        self.refresher = Refresher(ports, self._admin_key, self.tally)

    def run(self) -> list[str]:
        """Returns what was missed, in words."""
        self._add_refreshed_servers()
        for agent in self.agents:
            agent.begin()
        workers = [
            *(self._start(agent.step, 0.4, 1.0) for agent in self.agents),
            *(self._start(editor.step, 0.3, 1.0) for editor in self.editors),
            self._start(self.refresher.step, 2.0, 4.0),
        ]
        began = time.monotonic()
        time.sleep(STEADY_SECONDS)
        for fault in self._faults():
            self._break(fault)
            time.sleep(STEADY_SECONDS)
        time.sleep(max(0.0, self.seconds - (time.monotonic() - began)))
        self.seconds = time.monotonic() - began
        self._over.set()
        for worker in workers:
            worker.join()
        return self._judge()

    def _start(self, step: Callable[[], None], least: float, most: float) -> threading.Thread:
        def repeat() -> None:
            while not self._over.wait(random.uniform(least, most)):
                try:
                    step()
                except Exception as error:  # a check that cannot be made is a miss, not a silence
                    self.tally.wrong_answer(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        return thread

    def _add_refreshed_servers(self) -> None:
        script = str(ROOT / "catalog" / "demo" / "workshop_server.py")
        port = self.cluster.of_role("web")[0].port
        client = Client([port], self._admin_key, self.tally)
        for name in REFRESHED:
            body = {"name": name, "command": sys.executable, "args": [script]}
            added = client.ask("edit", "POST", "/servers", body)
            if added is None or added.status != 201:
                sys.exit(f"chaos: {name} cannot be added: {added}")

    def _faults(self) -> list[Fault]:
        nodes = self.cluster.nodes
        broken = frozenset({"connection"})
        return [
            Fault("kill -9 a worker", lambda: self._kill_part("worker-1", "worker")),
            Fault("kill -9 a refresh worker", lambda: self._kill_part("worker-2", "refresher")),
            Fault("kill -9 the scheduler", lambda: self._kill_part("scheduler-1", "scheduler")),
            Fault("kill -9 a web process", self._kill_web_process, broken),
            Fault("kill -9 a web server", lambda: self._kill_part("web-2", "web"), broken),
            Fault("kill -9 an index follower", lambda: self._kill_part("web-1", "follower")),
            Fault("kill -9 a whole worker node", lambda: self._kill_node("worker-2")),
            Fault(f"kill -9 Redis for {AWAY_SECONDS:g} s", self._lose_redis),
            Fault("restart PostgreSQL", self.cluster.postgres.restart, frozenset({"503"})),
            Fault(f"stop PostgreSQL for {AWAY_SECONDS:g} s", self._lose_postgres, frozenset({"503"})),
            Fault("kill -9 a whole web node", lambda: self._kill_node(nodes["web-1"].name), broken),
        ]

    def _kill_part(self, node: str, part: str) -> None:
        killed = self.cluster.nodes[node].kill_part(part)
        wait_for(
            lambda: self.cluster.nodes[node].pid_of(part) not in {None, killed},
            about=f"{part} of {node} again",
            within_seconds=RECOVER_WITHIN_SECONDS,
        )

    def _kill_web_process(self) -> None:
        """One of those that answer requests, below the web server itself."""
        server = self.cluster.nodes["web-1"].pid_of("web")
        assert server is not None
        os.kill(descendants_of(server)[-1], signal.SIGKILL)

    def _kill_node(self, name: str) -> None:
        """What starts services on a machine starts it again."""
        self.cluster.nodes[name].kill()
        time.sleep(1.0)
        self.cluster.nodes[name].start()

    def _lose_redis(self) -> None:
        self.cluster.redis.kill()
        time.sleep(AWAY_SECONDS)
        self.cluster.redis.start()

    def _lose_postgres(self) -> None:
        self.cluster.postgres.stop()
        time.sleep(AWAY_SECONDS)
        self.cluster.postgres.start()

    def _break(self, fault: Fault) -> None:
        injury = Injury(fault, began=time.monotonic())
        self.injuries.append(injury)
        try:
            fault.inflict()
            self._wait_until_whole()
        except TimeoutError as late:
            told = self.prober.last_told
            raise TimeoutError(f"after {fault.name}: {late}; its last search was told {told}") from None
        injury.ended = time.monotonic()

    def _wait_until_whole(self) -> None:
        """Every web node is healthy, and an edit made now is found through each of them."""
        webs = self.cluster.of_role("web")
        for node in webs:
            wait_for(node.is_healthy, about=f"{node.name} healthy", within_seconds=RECOVER_WITHIN_SECONDS)
        tool, word = next(reversed(self.words)), spell(time.monotonic_ns())
        wait_for(
            lambda: self.prober.write(tool, word, webs[0].port),
            about="an edit",
            within_seconds=RECOVER_WITHIN_SECONDS,
        )
        for node in webs:
            wait_for(
                lambda port=node.port: self.prober.finds(tool, word, port),  # type: ignore[misc]
                about=f"an edit found by {node.name}",
                within_seconds=RECOVER_WITHIN_SECONDS,
            )

    def _judge(self) -> list[str]:
        jobs = self._settle_jobs()
        slow = [seconds for when, seconds in self._calm_edits() if seconds > IN_FORCE_WITHIN_SECONDS]
        lost_writes = [line for agent in self.agents for line in agent.check_kept()]
        lost_writes += [line for editor in (*self.editors, self.prober) for line in editor.lost()]
        lost_jobs = self.refresher.lost() + [f"{count} {state}" for state, count in jobs.items() if count]
        unexplained = [trouble for trouble in self.tally.troubles if not self._explains(trouble)]
        self._show(lost_writes, lost_jobs, unexplained)
        return [
            *(f"wrong answer: {line}" for line in self.tally.wrong),
            *(f"lost write: {line}" for line in lost_writes),
            *(f"lost job: {line}" for line in lost_jobs),
            *(f"unexplained: {self._tell(trouble)}" for trouble in unexplained),
            *(f"in force only after {seconds:.1f} s" for seconds in slow),
        ]

    def _settle_jobs(self) -> dict[str, int]:
        """What is open once everything had time to end, and what failed with no later job to mend it."""
        jobs: dict[str, int] = {}
        deadline = time.monotonic() + RECOVER_WITHIN_SECONDS
        while time.monotonic() < deadline:
            jobs = json.loads(self.cluster.manage("shell", "-c", COUNT_JOBS).splitlines()[-1])
            if not jobs["open"]:
                break
            time.sleep(2)
        return jobs

    def _calm_edits(self) -> list[tuple[float, float]]:
        """Those made and found while nothing was broken."""
        edits = [edit for editor in self.editors for edit in editor.edits.in_force]
        return [
            (when, seconds)
            for when, seconds in edits
            if not any(injury.began <= when + seconds and when <= injury.ended for injury in self.injuries)
        ]

    def _tell(self, trouble: Trouble) -> str:
        """With how long after the last fault's end all was well still, and when the trouble showed."""
        over = max((injury.ended for injury in self.injuries if injury.ended <= trouble.at), default=0.0)
        times = f"well {trouble.since - over:+.2f} s, seen {trouble.at - over:+.2f} s after the last fault"
        return f"{trouble.kind} {trouble.what}, {times}"

    def _explains(self, trouble: Trouble) -> bool:
        return any(injury.covers(trouble) for injury in self.injuries)

    def _show(self, lost_writes: list[str], lost_jobs: list[str], unexplained: list[Trouble]) -> None:
        print(f"{'what was done':<32}{'recovered after':>16}{'503':>7}{'broken':>8}")
        for injury in self.injuries:
            seen = Counter(trouble.kind for trouble in self.tally.troubles if injury.covers(trouble))
            row = f"{injury.fault.name:<32}{injury.recovered_after:>14.1f} s"
            print(f"{row}{seen['503']:>7}{seen['connection']:>8}")
        print(f"\n{'what was asked':<32}{'count':>8}{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}")
        for kind in sorted(self.tally.counts):
            times = self.tally.times[kind]
            row = f"{kind:<32}{self.tally.counts[kind]:>8}"
            print(
                f"{row}{percentile(times, 50):>10.1f}{percentile(times, 99):>10.1f}{max(times) * 1000:>10.0f}"
            )
        calm = [seconds for _, seconds in self._calm_edits()]
        print(
            f"\n{self.seconds:.0f} s, {len(self.agents)} agents, {sum(self.tally.counts.values())} requests"
        )
        shown = ", ".join(f"p{percent} {percentile(calm, percent):.0f} ms" for percent in (50, 99, 100))
        print(f"edit in force on a node, while nothing is broken: {shown}, of {len(calm)}")
        confirmed = sum(len(editor.edits.confirmed) for editor in (*self.editors, self.prober))
        print(f"refreshes promised {sum(self.refresher.promised.values())}, tools edited {confirmed}")
        print(f"wrong answers {len(self.tally.wrong)}, lost acknowledged writes {len(lost_writes)},", end=" ")
        print(f"lost jobs {len(lost_jobs)}, errors that nothing explains {len(unexplained)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument(
        "--folder", type=Path, help="keep data and logs here; removed after the run otherwise"
    )
    options = parser.parse_args()
    if missing := missing_programs():
        sys.exit(f"chaos: needs {', '.join(missing)}")
    end_with_all()
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as temporary,
        running_cluster(options.folder or Path(temporary)) as cluster,
    ):
        chaos = Chaos(cluster, options.agents, options.seconds)
        cluster.start()
        missed = chaos.run()
    for line in missed[:40]:
        print(line)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
