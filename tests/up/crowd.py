"""Fifty threads on one session, each with a tool of its own, and what each of them sees."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.harness.rest import RestClient

THREADS = 50
FEWEST_STEPS = 5  # of each thread, however slow the machine

Step = Callable[[], Any]


@dataclass
class Crowd:
    """Works on a session until the deadline. `with_resets` may take from everybody what it has loaded."""

    client: RestClient
    path: str
    names: Sequence[str]
    with_resets: bool = False
    turns: int = 0
    snapshots: int = 0
    resets: int = 0
    lists: dict[int, list[str]] = field(default_factory=dict)  # by version
    problems: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._all_at_once(lambda number: self._work_until(deadline, number))

    def load_own(self) -> None:
        """Everybody loads the own tool once, all at the same moment."""
        self._all_at_once(self._load_own)

    def _all_at_once(self, work: Callable[[int], None]) -> None:
        threads = [threading.Thread(target=self._guard, args=(work, number)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guard(self, work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        except Exception as error:
            self.problems.append(f"{number}: {type(error).__name__} {error}")

    def _load_own(self, number: int) -> None:
        self.client.post(f"{self.path}/search", {"query": f"select:{self.names[number]}"})

    def _work_until(self, deadline: float, number: int) -> None:
        dice, seen, done = random.Random(number), 0, itertools.count()
        self._load_own(number)
        while next(done) < FEWEST_STEPS or time.monotonic() < deadline:
            state = dice.choice(self._steps(number, dice))()
            if isinstance(state, dict) and "loaded" in state and "version" in state:
                self._check(state, self.names[number], seen)
                seen = state["version"]

    def _steps(self, number: int, dice: random.Random) -> list[Step]:
        shared = dice.choice(self.names[THREADS:])
        steps: list[Step] = [
            lambda: self.client.post(f"{self.path}/search", {"query": f"select:{shared}"}),
            lambda: self._count("turns", f"{self.path}/turns", 200),
            lambda: self.client.post(f"{self.path}/unload", {"names": [shared]}),
            lambda: self._count("snapshots", f"{self.path}/snapshots", 201),
            lambda: self.client.get(self.path),
        ]
        if self.with_resets:
            steps.append(lambda: self._count("resets", f"{self.path}/reset", 200))
            steps.append(lambda: self._load_own(number))
        return steps

    def _check(self, state: dict[str, Any], own: str, seen: int) -> None:
        version, loaded = state["version"], [tool["name"] for tool in state["loaded"]]
        turns = [tool["turn"] for tool in state["loaded"] if tool["reason"] == "discovered"]
        is_sound = len(loaded) == len(set(loaded)) and turns == sorted(turns) and version >= seen
        if not is_sound or not (own in loaded or self.with_resets):
            self.problems.append(f"{own}: version {seen} then {version}, {loaded} of turns {turns}")
        if self.lists.setdefault(version, loaded) != loaded:
            self.problems.append(f"{own}: version {version} is {loaded} and was {self.lists[version]}")

    def _count(self, what: str, path: str, status: int) -> Any:
        state = self.client.post(path, {}, status=status)
        with self.lock:
            setattr(self, what, getattr(self, what) + 1)
        return state
