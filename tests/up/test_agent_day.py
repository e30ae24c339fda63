"""An agent's whole day over HTTP, in every form; and fifty of its threads on one session."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.instance import Instance, running_instance, wait_for
from tests.up.rest import RestClient

pytestmark = pytest.mark.slow

FORMS = ("mcp", "stub", "anthropic", "anthropic&hosted=true", "openai", "openai&hosted=true", "auto")
THREADS = 50
CROWD_SECONDS = 30.0
COUNT = """
from sessions.models import SearchEvent
print(SearchEvent.objects.filter(query="pull request review").count())
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with running_instance(tmp_path_factory.mktemp("data")) as running:
        running.wait_until_healthy()
        yield running


@pytest.fixture(scope="module")
def agent(instance: Instance) -> RestClient:
    return RestClient(instance.port, instance.manage("create_key", "day").stdout.strip())


@pytest.fixture(scope="module")
def admin(instance: Instance) -> RestClient:
    return RestClient(instance.port, instance.manage("create_key", "boss", "--admin").stdout.strip())


@pytest.mark.parametrize("form", FORMS)
def test_whole_day(agent: RestClient, form: str) -> None:
    begun = agent.post("/sessions", {"external_id": f"day-{form}", "model": "claude-opus-4-5"}, status=201)
    assert agent.post("/sessions", {"external_id": f"day-{form}"})["id"] == begun["id"]
    path = f"/sessions/{begun['id']}"
    morning = agent.call("GET", f"{path}/tools?format={form}", Accept_Encoding="gzip")
    listed, tag = morning.json(), morning.headers["ETag"]
    assert listed["active"] is True
    assert listed["search_tool"] is not None
    assert len(listed["deferred"]) == listed["counts"]["deferred"] > 100
    assert agent.call("GET", f"{path}/tools?format={form}", If_None_Match=tag).status == 304

    found = agent.post(f"{path}/search", {"query": "create a github issue", "max_results": 3})
    assert found["outcome"] == "matched"
    assert found["loaded"][0] == "mcp__github__create_issue"
    noon = agent.call("GET", f"{path}/tools?format={form}", If_None_Match=tag)
    assert noon.status == 200
    assert noon.json()["counts"]["discovered"] == 3
    if form.startswith(("anthropic", "openai", "auto")):
        assert noon.json()["tools"] == listed["tools"]
    full = agent.get(f"{path}/tools?format={form}&discovered=full")
    assert found["loaded"][0] in str(full["tools"])

    after_turn = agent.post(f"{path}/turns", {"context_used": 9000, "called": [found["loaded"][0]]})
    assert (after_turn["turn"], after_turn["context_used"]) == (1, 9000)
    kept = agent.post(f"{path}/snapshots", {}, status=201)
    assert agent.post(f"{path}/unload", {"names": [found["loaded"][1]]})["counts"]["discovered"] == 2
    assert agent.post(f"{path}/compact")["counts"]["discovered"] == 2
    assert agent.post(f"{path}/reset")["counts"]["discovered"] == 0
    restored = agent.post(f"{path}/restore", {"snapshot": kept["id"]})
    by_search = [tool["name"] for tool in restored["loaded"] if tool["reason"] == "discovered"]
    assert by_search == found["loaded"]
    assert restored["lost"] == []
    assert agent.call("DELETE", path).status == 204
    assert agent.call("GET", path).status == 404


def test_admin_change_reaches_a_polling_agent_within_two_seconds(
    agent: RestClient, admin: RestClient
) -> None:
    path = f"/sessions/{agent.post('/sessions', {}, status=201)['id']}/tools"
    before = agent.call("GET", path)
    tag, name = before.headers["ETag"], before.json()["deferred"][0]["name"]
    changed = admin.call("PATCH", f"/tools/{name}", {"loading": "always"})
    started = time.monotonic()
    assert changed.status == 200
    wait_for(lambda: agent.call("GET", path, If_None_Match=tag).status == 200, within_seconds=5)
    assert time.monotonic() - started < 2
    assert name in [tool["name"] for tool in agent.get(path)["tools"]]
    admin.call("PATCH", f"/tools/{name}", {"loading": "inherit"})


def test_searches_are_on_record_a_moment_later(agent: RestClient, instance: Instance) -> None:
    path = f"/sessions/{agent.post('/sessions', {}, status=201)['id']}"
    agent.post(f"{path}/search", {"query": "pull request review"})
    wait_for(lambda: instance.manage("shell", "-c", COUNT).stdout.split()[-1:] == ["1"], within_seconds=15)


@dataclass
class Crowd:
    """Fifty threads on one session; each keeps one tool of its own that nobody may take from it."""

    client: RestClient
    path: str
    names: list[str]
    deadline: float
    turns: int = 0
    snapshots: int = 0
    problems: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, number: int) -> None:
        own, dice, seen = self.names[number], random.Random(number), 0
        try:
            self.client.post(f"{self.path}/search", {"query": f"select:{own}"})
            while time.monotonic() < self.deadline:
                seen = self._step(dice, own, seen)
        except Exception as error:
            self.problems.append(f"{number}: {type(error).__name__} {error}")

    def _step(self, dice: random.Random, own: str, seen: int) -> int:
        shared = dice.choice(self.names[THREADS:])
        step: Callable[[], Any] = dice.choice(
            [
                lambda: self.client.post(f"{self.path}/search", {"query": f"select:{shared}"}) and None,
                lambda: self._count("turns", f"{self.path}/turns", 200),
                lambda: self.client.post(f"{self.path}/unload", {"names": [shared]}),
                lambda: self._count("snapshots", f"{self.path}/snapshots", 201) and None,
                lambda: self.client.get(self.path),
            ]
        )
        state = step()
        if not isinstance(state, dict) or "loaded" not in state:
            return seen
        loaded = [tool["name"] for tool in state["loaded"]]
        if len(loaded) != len(set(loaded)) or own not in loaded or state["version"] < seen:
            self.problems.append(f"{own}: version {seen} then {state['version']}, {loaded}")
        return int(state["version"])

    def _count(self, what: str, path: str, status: int) -> Any:
        state = self.client.post(path, {}, status=status)
        with self.lock:
            setattr(self, what, getattr(self, what) + 1)
        return state if what == "turns" else None


def test_fifty_threads_on_one_session_lose_nothing(agent: RestClient) -> None:
    path = f"/sessions/{agent.post('/sessions', {}, status=201)['id']}"
    names = [tool["name"] for tool in agent.get(f"{path}/tools")["deferred"]]
    crowd = Crowd(agent, path, names, time.monotonic() + CROWD_SECONDS)
    threads = [threading.Thread(target=crowd.work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert crowd.problems == []
    state = agent.get(path)
    loaded = [tool["name"] for tool in state["loaded"]]
    assert set(names[:THREADS]) <= set(loaded)
    assert len(loaded) == len(set(loaded))
    assert state["turn"] == crowd.turns > 0
    assert len(agent.get(f"{path}/snapshots")["items"]) == min(crowd.snapshots, 100) > 0
    assert [tool["name"] for tool in agent.get(f"{path}/tools")["tools"]] == loaded
