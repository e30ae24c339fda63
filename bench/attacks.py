"""The attacks of `bench.hostile`, each as a stranger, an agent's key, a viewer or a server could make it.

An attack runs for a while and returns, in words, what it found wrong beside the polls that it disturbed.
"""

import contextlib
import http.client
import http.cookies
import itertools
import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.agents import Answer, Client, Tally
from tests.harness.nodes import ROOT

ATTACKERS = 2
VIEWERS, LOOK_AGAIN_SECONDS = 12, 2.0
# A caller of good will is told within this time that a request is too much.
ANSWERED_WITHIN_SECONDS = 5.0
SLOW_CONNECTIONS = 40
SLOW_BYTE_SECONDS = 2.0
UNREAD_SECONDS = 45.0  # longer than an answer may be left unread (docs/operations.md)
OWN_OFFERS = 210
FORMATS = ("mcp", "anthropic", "openai", "stub")
LONG_BUILTINS, LONG_BUILTIN_CHARS = 220, 1_040_000
FLOODS = 3
QUICK_WRITES, IN_FORCE_WITHIN_SECONDS = 120, 2.0
PATTERNS = (
    "(?:a{1000}){1000}",
    "(?:a{1000}){3000}",
    "(?:(?:a{99}){99}){999}",
    "(?:(?:(?:(?:a{99}){99}){99}){99}){99}",
    "(a|aa)+$",
    "(.*a){20}",
    "(?:[a-z_]+)*!",
    "(?:x{0,999}){0,999}",
)
SERVER = ROOT / "bench" / "misbehaving_server.py"


@dataclass(frozen=True, slots=True)
class Target:
    """The instance under attack."""

    port: int
    agent_key: str
    admin_key: str
    folder: Path
    log: Path
    environment: Mapping[str, str]

    def agent(self) -> Client:
        return Client([self.port], self.agent_key, Tally())

    def admin(self) -> Client:
        return Client([self.port], self.admin_key, Tally())

    def new_session(self, **fields: object) -> Answer | None:
        return self.agent().ask_once(self.port, "begin", "POST", "/sessions", fields)

    def manage(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )


Item = TypeVar("Item")


def patterns(target: Target, seconds: float) -> list[str]:
    """H1: short patterns that compile or match at length."""
    made = target.new_session()
    assert made is not None
    path = f"/sessions/{made.body['id']}/search"

    def strike(client: Client, turn: int) -> Answer | None:
        body = {"pattern": PATTERNS[turn % len(PATTERNS)], "load": False}
        return client.ask_once(target.port, "pattern", "POST", path, body)

    return _repeat(target, seconds, strike, allowed=(200, 422))


def globs(target: Target, seconds: float) -> list[str]:
    """M1: a thousand globs of many wildcards whose letters are in every name."""

    def strike(client: Client, turn: int) -> Answer | None:
        visible = [f"*{'*'.join('etaoinsrc_mp__a')}*{turn}{number}" for number in range(1_000)]
        return client.ask_once(target.port, "globs", "POST", "/sessions", {"visible": visible})

    return _repeat(target, seconds, strike, allowed=(200, 201, 422))


def prepare_word_differences(target: Target) -> None:
    """A tool whose new text is as unlike its old one as can be."""
    listing = target.folder / "differences.json"
    _write_tools(listing, {"changing": "a!" * 1_490})
    _add_server(target, "differences", "listing", str(listing))
    _wait_for_tool(target, "differences", "a!")
    _write_tools(listing, {"changing": "a?" * 1_490})
    target.admin().ask("refresh", "POST", "/servers/differences/refresh")
    _wait_for_tool(target, "differences", "a?")


def word_differences(target: Target, seconds: float) -> list[str]:
    """H2: the tool that was prepared, looked at by viewers."""
    cookie = sign_in(target)

    def look(client: Client, turn: int) -> Answer | None:
        page = "/tools/mcp__differences__changing/" if turn % 2 else "/review/"
        return _get_page(target, page, cookie)

    return _repeat(target, seconds, look, allowed=(200,), attackers=VIEWERS, pause=LOOK_AGAIN_SECONDS)


def slow_bodies(target: Target, seconds: float) -> list[str]:
    """H3: bodies that come byte by byte, without an account."""
    page = _get_page(target, "/sign-in/")
    assert page is not None
    head = (
        "POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
        f"Cookie: csrftoken={_cookies(page)['csrftoken']}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    ).encode()
    deadline = time.monotonic() + seconds
    connections: list[socket.socket] = []
    while time.monotonic() < deadline:
        connections = [one for one in connections if _send_byte(one)]
        while len(connections) < SLOW_CONNECTIONS:
            one = socket.create_connection(("127.0.0.1", target.port), timeout=5)
            one.sendall(head)
            connections.append(one)
        time.sleep(SLOW_BYTE_SECONDS)
    for one in connections:
        one.close()
    return []


def slow_readers(target: Target, seconds: float) -> list[str]:
    """L3: long lists that nobody reads. After the attack no connection may still be held."""
    asked = "GET /api/v1/policies/default/tools?format=anthropic HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head = f"{asked}Authorization: Bearer {target.agent_key}\r\n\r\n".encode()
    connections = []
    for _ in range(SLOW_CONNECTIONS):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", target.port))
        one.sendall(head)
        connections.append(one)
    time.sleep(max(seconds, UNREAD_SECONDS))
    # What had arrived is read first: only then does a connection that the server has left say so.
    open_still = [one for one in connections if not _is_ended_by_peer(one)]
    time.sleep(1.0)
    held = sum(not _is_ended_by_peer(one) for one in open_still)
    for one in connections:
        one.close()
    return [f"{held} of {len(connections)} unread answers are still held"] if held else []


def own_offers(target: Target, seconds: float) -> list[str]:
    """M2: sessions whose lists are all different, in every format."""
    clients = [target.agent() for _ in range(ATTACKERS)]
    made = [target.new_session(visible=["*", f"unique-{number}"]) for number in range(OWN_OFFERS)]
    addresses = [
        f"/sessions/{one.body['id']}/tools?format={name}"
        for name, one in itertools.product(FORMATS, made)
        if one is not None and one.status == 201
    ]
    _share_out(clients, addresses, lambda client, path: client.ask_once(target.port, "own", "GET", path))
    started = time.monotonic()
    answer = target.agent().ask_once(target.port, "sessions", "GET", "/sessions?limit=200")
    took = time.monotonic() - started
    found = [f"{OWN_OFFERS * len(FORMATS) - len(addresses)} lists were not there"]
    found = found if len(addresses) < OWN_OFFERS * len(FORMATS) else []
    if answer is None or answer.status != 200 or took > ANSWERED_WITHIN_SECONDS:
        found.append(f"the list of sessions took {took:.1f} s")
    return found


def builtins(target: Target, seconds: float) -> list[str]:
    """M13 and H4: a key that stores as much as it may; a backup of that must restore."""
    definition = {"name": "own", "description": "x" * LONG_BUILTIN_CHARS, "inputSchema": {"type": "object"}}
    clients = [target.agent() for _ in range(ATTACKERS)]
    refused: list[int] = []

    def store(client: Client, number: int) -> None:
        body = {"external_id": f"long-{number}", "builtin_tools": [definition]}
        answer = client.ask_once(target.port, "builtins", "POST", "/sessions", body)
        if answer is None or answer.status >= 500:
            refused.append(answer.status if answer else 0)

    _share_out(clients, range(LONG_BUILTINS), store)
    found = (
        [f"{len(refused)} of {LONG_BUILTINS} were answered with {sorted(set(refused))}"] if refused else []
    )
    backup = str(target.folder / "long.backup")
    taken, elsewhere = target.manage("backup", backup), str(target.folder / "restored")
    target.manage("migrate", "--verbosity", "0", TOOLSEARCH_DATA=elsewhere)
    restored = target.manage("restore", backup, TOOLSEARCH_DATA=elsewhere)
    for done, what in ((taken, "backup"), (restored, "restore")):
        if done.returncode:
            found.append(f"{what} failed: {done.stderr.strip().splitlines()[-1:]}")
    return found


def server_floods(target: Target, seconds: float) -> list[str]:
    """L2: a server that sends requests without end instead of its tools."""
    _add_server(target, "flood", "flood")
    ends = time.monotonic() + seconds * 2
    for _ in range(FLOODS):
        target.admin().ask("refresh", "POST", "/servers/flood/refresh")
        while time.monotonic() < ends and _refresh_state(target, "flood") not in {"done", "failed"}:
            time.sleep(0.5)
    return []


def writes_in_a_row(target: Target, seconds: float) -> list[str]:
    """L15: many quick edits of one tool; the last has to be in force as soon as a single one."""
    admin, session = target.admin(), target.new_session()
    tools = admin.ask("tools", "GET", "/tools?limit=1")
    assert session is not None
    assert tools is not None
    name, search = tools.body["items"][0]["name"], f"/sessions/{session.body['id']}/search"
    slowest, deadline, turn = 0.0, time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        turn += 1
        for number in range(1, QUICK_WRITES + 1):
            body = {"keywords": [_make_word(turn, number)]}
            admin.ask_once(target.port, "edit", "PATCH", f"/tools/{name}", body)
        written, wanted = time.monotonic(), {"query": _make_word(turn, QUICK_WRITES), "load": False}
        while not _finds(target, search, wanted, name) and time.monotonic() < written + 60:
            time.sleep(0.05)
        slowest = max(slowest, time.monotonic() - written)
    is_late = slowest > IN_FORCE_WITHIN_SECONDS
    return [f"the last of {QUICK_WRITES} edits was in force after {slowest:.1f} s"] if is_late else []


def _make_word(*numbers: int) -> str:
    """One that no tool has, in letters alone: digits would be words of their own, which tools have."""
    return "zebra" + "q".join(str(number) for number in numbers).translate(
        str.maketrans("0123456789", "abcdefghij")
    )


def _finds(target: Target, path: str, wanted: Mapping[str, object], name: str) -> bool:
    answer = target.agent().ask_once(target.port, "search", "POST", path, wanted)
    return answer is not None and name in [match["name"] for match in answer.body.get("matches", ())]


def sign_in(target: Target) -> str:
    """The cookie of the first admin, whose password the instance printed."""
    found = re.search(r"first sign-in: user (\S+), password (\S+)", target.log.read_text())
    assert found, f"no sign-in in {target.log}"
    page = _get_page(target, "/sign-in/")
    assert page is not None
    token = _cookies(page)["csrftoken"]
    form = {"username": found[1], "password": found[2], "csrfmiddlewaretoken": token}
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
    headers = {"Cookie": f"csrftoken={token}", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/sign-in/", urllib.parse.urlencode(form), headers)
    response = connection.getresponse()
    response.read()
    cookies: http.cookies.SimpleCookie = http.cookies.SimpleCookie()
    for value in response.headers.get_all("Set-Cookie", []):
        cookies.load(value)
    assert response.status == 302, f"signing in was answered with {response.status}"
    return "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())


def _get_page(target: Target, path: str, cookie: str = "") -> Answer | None:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            return None
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


def _cookies(answer: Answer) -> dict[str, str]:
    cookies: http.cookies.SimpleCookie = http.cookies.SimpleCookie(answer.headers.get("set-cookie", ""))
    return {name: morsel.value for name, morsel in cookies.items()}


def _repeat(
    target: Target,
    seconds: float,
    strike: Callable[[Client, int], Answer | None],
    *,
    allowed: Sequence[int],
    attackers: int = ATTACKERS,
    pause: float = 0.0,
) -> list[str]:
    """Several attackers at once, each asking again as soon as it was answered, or after a pause."""
    deadline, turns, found = time.monotonic() + seconds, itertools.count(), []
    slowest = 0.0
    lock = threading.Lock()

    def attack() -> None:
        nonlocal slowest
        client = target.agent()
        while time.monotonic() < deadline:
            started = time.monotonic()
            answer = strike(client, next(turns))
            took = time.monotonic() - started
            with lock:
                slowest = max(slowest, took)
                if answer is None or answer.status not in allowed:
                    found.append(f"answered with {answer.status if answer else 'nothing'}")
            time.sleep(pause)

    _run_together([attack] * attackers)
    if slowest > ANSWERED_WITHIN_SECONDS:
        found.append(f"one request took {slowest:.1f} s")
    return sorted({f"{found.count(what)} times {what}" if found.count(what) > 1 else what for what in found})


def _share_out(
    clients: Sequence[Client], items: Sequence[Item], act: Callable[[Client, Item], object]
) -> None:
    def work(number: int) -> None:
        for item in items[number :: len(clients)]:
            act(clients[number], item)

    _run_together([lambda number=number: work(number) for number in range(len(clients))])  # type: ignore[misc]


def _run_together(tasks: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task, daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send_byte(connection: socket.socket) -> bool:
    """False where the other side has ended it."""
    try:
        if _is_ended_by_peer(connection):
            connection.close()
            return False
        connection.sendall(b"x")
    except OSError:
        return False
    return True


def _is_ended_by_peer(connection: socket.socket) -> bool:
    """Read what is there without waiting; an end or a reset is the peer's."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.setblocking(True)
    return True


def _write_tools(path: Path, described: Mapping[str, str]) -> None:
    tools = [
        {"name": name, "description": text, "inputSchema": {"type": "object"}}
        for name, text in described.items()
    ]
    path.write_text(json.dumps(tools))


def _add_server(target: Target, name: str, *arguments: str) -> None:
    body = {"name": name, "command": sys.executable, "args": [str(SERVER), *arguments]}
    answer = target.admin().ask_once(target.port, "server", "POST", "/servers", body)
    assert answer is not None, f"{name}: no answer"
    assert answer.status == 201, f"{name}: {answer.body}"


def _wait_for_tool(target: Target, server: str, beginning: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = target.admin().ask_once(target.port, "tool", "GET", f"/tools/mcp__{server}__changing")
        if answer is not None and answer.status == 200 and answer.body["description"].startswith(beginning):
            return
        time.sleep(0.2)
    raise TimeoutError(f"{server} was not refreshed")


def _refresh_state(target: Target, server: str) -> str:
    answer = target.admin().ask_once(target.port, "refresh", "GET", f"/servers/{server}/refresh")
    return "" if answer is None or answer.status != 200 else str(answer.body["state"])
