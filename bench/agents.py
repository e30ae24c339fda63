"""Simulated agents that check every response, shared by the load and chaos scripts.

An agent sends to one of several addresses, as a proxy would: one that cannot be reached is skipped, and a 503
is retried after a pause. It accepts compressed responses, as HTTP libraries do.
"""

import http.client
import json
import random
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 30.0
# A server may close a connection that nobody used for a while; an agent opens a new one before that.
KEPT_SECONDS = 5.0
GZIP = zlib.MAX_WBITS + 16
UNPACK_AT_ONCE_BYTES = 64 * 1024
DEFERRED = b'],"deferred":['
LETTERS = "bcdfghjklmnpqrtvwxz"
LONGEST_PAUSE_SECONDS = 1.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @cached_property
    def body(self) -> Any:
        content = b"".join(self._unpack())
        return json.loads(content) if content else None

    @cached_property
    def listed(self) -> Any:
        """Of a tool list what comes before its ten thousand deferred names, which take long to read."""
        head = b""
        for part in self._unpack():
            head, found, _ = (head + part).partition(DEFERRED)
            if found:
                return json.loads(head + b"]}")
        return json.loads(head)

    def _unpack(self) -> Iterator[bytes]:
        if self.headers.get("content-encoding") != "gzip":
            yield self.content
            return
        unpacker, packed = zlib.decompressobj(GZIP), self.content
        while not unpacker.eof:
            yield unpacker.decompress(packed, UNPACK_AT_ONCE_BYTES)
            packed = unpacker.unconsumed_tail


@dataclass(frozen=True, slots=True)
class Trouble:
    """A request that was not answered as hoped: `connection`, `503`, or in words what was wrong with it.

    `since` is when all was known to be well: that a kept connection broke shows when it is used next.
    """

    since: float
    at: float
    kind: str
    what: str


@dataclass
class Tally:
    """The counts of all agents together."""

    counts: Counter[str] = field(default_factory=Counter)
    times: dict[str, list[float]] = field(default_factory=dict)
    all_times: list[float] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, kind: str, seconds: float) -> None:
        with self.lock:
            self.counts[kind] += 1
            self.times.setdefault(kind, []).append(seconds)
            self.all_times.append(seconds)

    def trouble(self, kind: str, what: str, since: float) -> None:
        with self.lock:
            self.troubles.append(Trouble(since, time.monotonic(), kind, what))

    def wrong_answer(self, what: str) -> None:
        with self.lock:
            self.wrong.append(what)


class Client:
    """One caller with one kept connection to each address. Not for several threads."""

    def __init__(self, ports: Sequence[int], key: str, tally: Tally) -> None:
        self._ports = list(ports)
        self._key = key
        self._tally = tally
        self._connections: dict[int, http.client.HTTPConnection] = {}
        self._used_at: dict[int, float] = {}

    def ask(self, kind: str, method: str, path: str, body: object = None, *, tag: str = "") -> Answer | None:
        """Try until answered by something other than 503. None for a change that nobody confirmed."""
        ports = random.sample(self._ports, len(self._ports))
        for turn in range(100):
            answer = self.ask_once(ports[turn % len(ports)], kind, method, path, body, tag=tag)
            if answer is not None and answer.status != 503:
                return answer
            if method not in {"GET", "PUT"}:
                return None
            time.sleep(_pause(answer))
        self._tally.wrong_answer(f"{method} {path}: never answered")
        return None

    def ask_once(
        self, port: int, kind: str, method: str, path: str, body: object = None, *, tag: str = ""
    ) -> Answer | None:
        """One request to one address; None when the connection broke."""
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip",
        }
        if tag:
            headers["If-None-Match"] = tag
        started = time.monotonic()
        try:
            answer = self._send(port, method, f"/api/v1{path}", body, headers)
        except (OSError, http.client.HTTPException) as error:
            self._connections.pop(port).close()
            since = self._used_at.pop(port, started)
            self._tally.trouble("connection", f"{port} {method} {path}: {type(error).__name__}", since)
            return None
        self._tally.count(kind, time.monotonic() - started)
        if answer.status == 503:
            self._note_503(answer, f"{port} {method} {path}", started)
        return answer

    def _note_503(self, answer: Answer, what: str, started: float) -> None:
        if not answer.headers.get("retry-after", "").isdigit():
            self._tally.wrong_answer(f"{what}: 503 without Retry-After")
        if answer.headers.get("content-type") != "application/problem+json":
            self._tally.wrong_answer(f"{what}: 503 is no problem+json")
        self._tally.trouble("503", what, started)

    def _send(self, port: int, method: str, path: str, body: object, headers: dict[str, str]) -> Answer:
        connection = self._connect(port)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        self._used_at[port] = time.monotonic()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, content)

    def _connect(self, port: int) -> http.client.HTTPConnection:
        if time.monotonic() - self._used_at.get(port, 0.0) > KEPT_SECONDS and port in self._connections:
            self._connections.pop(port).close()
        if port not in self._connections:
            self._used_at.pop(port, None)
            self._connections[port] = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        return self._connections[port]


def _pause(answer: Answer | None) -> float:
    """What the server asks for, but no more than these agents have patience for."""
    if answer is None:
        return 0.05
    return min(float(answer.headers.get("retry-after", "1")), LONGEST_PAUSE_SECONDS)


class Agent:
    """One conversation: polls its list, searches for tools by their own words, ends turns.

    `word_of` gives for each tool a word that no other tool has.
    """

    def __init__(self, number: int, client: Client, tally: Tally, word_of: dict[str, str]) -> None:
        self.name = f"agent-{number}"
        self.session = ""
        self.loaded: set[str] = set()
        self._client = client
        self._tally = tally
        self._words = word_of
        self._names = list(word_of)
        self._tag = ""
        self._has_news = False
        self._random = random.Random(number)

    def begin(self) -> None:
        """Creating is safe to repeat: the same `external_id` is the same session."""
        while not self.session:
            answer = self._client.ask("begin", "POST", "/sessions", {"external_id": self.name})
            if answer is None:
                continue
            self._expect(answer, (200, 201), "begin")
            self.session = answer.body["id"]

    def step(self) -> None:
        chosen = self._random.random()
        if chosen < 0.7:
            self.poll()
        elif chosen < 0.95:
            self.search()
        else:
            self.end_turn()

    def poll(self) -> None:
        answer = self._client.ask("poll", "GET", f"/sessions/{self.session}/tools", tag=self._tag)
        if answer is None or not self._expect(answer, (200, 304), "poll"):
            return
        if answer.status == 304:
            if not self._tag or self._has_news:
                self._tally.wrong_answer(f"{self.name}: 304 although it loaded a tool since")
            return
        self._tag, self._has_news = answer.headers["etag"], False
        sent = {tool["name"] for tool in answer.listed["tools"]}
        if answer.listed["session"] != self.session:
            self._tally.wrong_answer(f"{self.name}: the list of another session")
        if not self.loaded <= sent:
            self._tally.wrong_answer(f"{self.name}: lost {sorted(self.loaded - sent)}")

    def search(self) -> None:
        """By a word that only one tool has, or by its name: either way that tool is first, and loaded."""
        name = self._random.choice(self._names)
        query = self._random.choice((self._words[name], f"select:{name}"))
        answer = self._client.ask("search", "POST", f"/sessions/{self.session}/search", {"query": query})
        if answer is None or not self._expect(answer, (200,), "search"):
            return
        matches = answer.body["matches"]
        if [match["name"] for match in matches[:1]] != [name]:
            found = [match["name"] for match in matches]
            self._tally.wrong_answer(f"{self.name}: {query!r} found {found}, not {name}")
            return
        self.loaded.add(name)
        self._has_news = self._has_news or not matches[0]["already_loaded"]

    def end_turn(self) -> None:
        answer = self._client.ask("turn", "POST", f"/sessions/{self.session}/turns", {"called": []})
        if answer is not None:
            self._expect(answer, (200,), "turn")

    def check_kept(self) -> list[str]:
        """What was confirmed and is gone, as any node tells it now."""
        answer = self._client.ask("check", "GET", f"/sessions/{self.session}")
        if answer is None or answer.status != 200:
            return [f"{self.name}: the session is gone"]
        kept = {tool["name"] for tool in answer.body["loaded"]}
        return [f"{self.name}: {name} is no longer loaded" for name in self.loaded - kept]

    def _expect(self, answer: Answer, statuses: tuple[int, ...], what: str) -> bool:
        if answer.status in statuses:
            return True
        self._tally.wrong_answer(f"{self.name}: {what} was answered with {answer.status}: {answer.body}")
        return False


def write_tools(path: Path, *, servers: int, tools_each: int) -> dict[str, str]:
    """Write made-up definitions to import. Returns for each tool's name a word that only it has."""
    words: dict[str, str] = {}
    with path.open("w") as file:
        for server in range(servers):
            for number in range(tools_each):
                word = spell(10_000_000 + server * tools_each + number)
                definition = {
                    "server": f"server{server}",
                    "name": f"handle_{word}",
                    "description": f"Reads, checks and stores the {word} records of a project, one by one.",
                    "inputSchema": {"type": "object", "properties": {"record": {"type": "string"}}},
                }
                file.write(json.dumps(definition) + "\n")
                words[f"mcp__server{server}__handle_{word}"] = word
    return words


def spell(number: int) -> str:
    """A word of letters for a number: one that no analysis of words takes apart."""
    word = ""
    while number:
        number, letter = divmod(number, len(LETTERS))
        word = LETTERS[letter] + word
    return f"q{word}q"


def percentile(times: Sequence[float], percent: float) -> float:
    """In milliseconds; 0 when there are none."""
    if not times:
        return 0.0
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] * 1000
