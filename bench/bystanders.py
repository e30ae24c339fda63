"""Agents that poll while somebody else attacks the instance.

They run in a process of their own, so that the attackers' work does not delay them.
"""

import json
import multiprocessing
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

from bench.agents import Client, Tally

AGENTS = 10
PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Poll:
    at: float  # by the machine's monotonic clock, which all processes share
    seconds: float
    status: int  # 0: no answer

    @property
    def is_answered(self) -> bool:
        return self.status in {200, 304}


class Bystanders:
    """Reads what the polling process wrote."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def polls_between(self, began: float, ended: float) -> list[Poll]:
        """Those that were asked in that time."""
        lines = self._path.read_text().splitlines()
        polls = (Poll(*json.loads(line)) for line in lines)
        return [poll for poll in polls if began <= poll.at < ended]


@contextmanager
def polling(ports: Sequence[int], key: str, folder: Path) -> Iterator[Bystanders]:
    context = multiprocessing.get_context("spawn")
    path, over = folder / "polls.jsonl", context.Event()
    path.touch()
    process = context.Process(target=_poll_all, args=(list(ports), key, str(path), over), daemon=True)
    process.start()
    try:
        yield Bystanders(path)
    finally:
        over.set()
        process.join(timeout=40)


def _poll_all(ports: list[int], key: str, path: str, over: Event) -> None:
    lock = threading.Lock()
    with Path(path).open("a", buffering=1) as file:

        def write(poll: Poll) -> None:
            with lock:
                file.write(json.dumps([poll.at, poll.seconds, poll.status]) + "\n")

        def follow(number: int) -> None:
            client = Client(ports, key, Tally())
            made = client.ask("begin", "POST", "/sessions", {"external_id": f"bystander-{number}"})
            assert made is not None, "no session could be made"
            address, tag = f"/sessions/{made.body['id']}/tools", ""
            while not over.wait(random.uniform(0.5, 1.5) * PAUSE_SECONDS):
                started = time.monotonic()
                answer = client.ask_once(random.choice(ports), "poll", "GET", address, tag=tag)
                write(Poll(started, time.monotonic() - started, answer.status if answer else 0))
                if answer is not None and answer.status == 200:
                    tag = answer.headers["etag"]

        threads = [threading.Thread(target=follow, args=(number,), daemon=True) for number in range(AGENTS)]
        for thread in threads:
            thread.start()
        over.wait()
