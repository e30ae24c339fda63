"""Simulated admins for `bench.chaos`: they edit while a deployment is broken, and check that
edits were kept.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.agents import Client, Tally, spell
from tests.harness.nodes import Cluster

EDITORS = 4
REFRESHED = ("workshop-1", "workshop-2")
RECOVER_WITHIN_SECONDS = 60.0


@dataclass
class Edits:
    """Values written to each tool: the last confirmed one, and later ones without a response."""

    confirmed: dict[str, str] = field(default_factory=dict)
    tried: dict[str, list[str]] = field(default_factory=dict)
    in_force: list[tuple[float, float]] = field(default_factory=list)  # (when, seconds)

    def could_be(self, tool: str) -> set[str]:
        return {self.confirmed.get(tool, ""), *self.tried.get(tool, [])}


class Editor:
    """Sets keywords through one node, and searches for them through another."""

    def __init__(self, number: int, cluster: Cluster, key: str, tools: Sequence[str], tally: Tally) -> None:
        self.edits = Edits()
        self._ports = [node.port for node in cluster.of_role("web")]
        self._client = Client(self._ports, key, tally)
        self._tools = list(tools)
        self._tally = tally
        self._number = number
        self._made = 0
        self._session = ""
        self.last_told = ""

    def step(self) -> None:
        tool = random.choice(self._tools)
        self._made += 1
        word = spell(self._made * EDITORS + self._number)
        if self.write(tool, word, random.choice(self._ports)):
            self._time_until_found(tool, word, random.choice(self._ports))

    def write(self, tool: str, word: str, port: int) -> bool:
        answer = self._client.ask_once(port, "edit", "PATCH", f"/tools/{tool}", {"keywords": [word]})
        if answer is None or answer.status == 503:
            self.edits.tried.setdefault(tool, []).append(word)
            return False
        if answer.status != 200:
            self._tally.wrong_answer(f"an edit was answered with {answer.status}: {answer.body}")
            return False
        self.edits.confirmed[tool] = word
        self.edits.tried.pop(tool, None)
        return True

    def _time_until_found(self, tool: str, word: str, port: int) -> None:
        """Ask one node, whichever took the edit, until its own index has the word."""
        began = time.monotonic()
        while time.monotonic() - began < RECOVER_WITHIN_SECONDS:
            if self.finds(tool, word, port):
                self.edits.in_force.append((began, time.monotonic() - began))
                return
            time.sleep(0.05)
        self._tally.wrong_answer(f"an edit of {tool} was never found by {word}")

    def finds(self, tool: str, word: str, port: int) -> bool:
        if not self._session:
            made = self._client.ask_once(port, "begin", "POST", "/sessions", {})
            if made is None or made.status != 201:
                return False
            self._session = made.body["id"]
        asked = {"query": word, "load": False}
        path = f"/sessions/{self._session}/search"
        answer = self._client.ask_once(port, "search", "POST", path, asked)
        self.last_told = f"{answer.status}: {answer.body}" if answer else "no answer"
        return (
            answer is not None
            and answer.status == 200
            and tool in [match["name"] for match in answer.body["matches"][:1]]
        )

    def lost(self) -> list[str]:
        """Tools on which some node no longer shows the confirmed value."""
        found = []
        for tool in self.edits.confirmed:
            for port in self._ports:
                answer = self._client.ask_once(port, "check", "GET", f"/tools/{tool}")
                words = answer.body.get("keywords", []) if answer is not None else []
                if not set(words) & self.edits.could_be(tool):
                    found.append(f"{tool} on {port}: {words}, not {self.edits.confirmed[tool]}")
        return found


class Refresher:
    """Requests refreshes, and remembers the accepted ones."""

    def __init__(self, ports: Sequence[int], key: str, tally: Tally) -> None:
        self.promised: dict[str, int] = {}
        self._client = Client(ports, key, tally)
        self._tally = tally

    def step(self) -> None:
        name = random.choice(REFRESHED)
        answer = self._client.ask("refresh", "POST", f"/servers/{name}/refresh")
        if answer is None:
            return
        if answer.status != 202:
            self._tally.wrong_answer(f"a refresh was answered with {answer.status}: {answer.body}")
            return
        self.promised[name] = self.promised.get(name, 0) + 1

    def lost(self) -> list[str]:
        """Servers whose last refresh failed."""
        found = []
        for name in self.promised:
            answer = self._client.ask("check", "GET", f"/servers/{name}/refresh")
            if answer is None or answer.body["state"] != "done":
                found.append(f"the refresh of {name}: {answer.body if answer else 'unknown'}")
        return found
