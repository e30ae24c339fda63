"""An agent's whole day over HTTP, in every form; and fifty of its threads on one session."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.instance import Instance, wait_for
from tests.harness.rest import RestClient
from tests.up.crowd import THREADS, Crowd

DEMO_TOOLS = 186
FORMS = ("mcp", "stub", "anthropic", "anthropic&hosted=true", "openai", "openai&hosted=true", "auto")
COUNT = """
from sessions.models import SearchEvent
print(SearchEvent.objects.filter(query="pull request review").count())
"""


@pytest.fixture(scope="module")
def instance(shared_instance: Instance) -> Instance:
    return shared_instance


@pytest.fixture(scope="module")
def agent(instance: Instance) -> RestClient:
    """Once the demo is whole: a worker asks one of its servers for its tools after the start."""
    client = RestClient(instance.port, instance.manage("create_key", "day").stdout.strip())

    def is_whole() -> bool:
        return bool(client.get("/policies/default/tools")["counts"]["total"] == DEMO_TOOLS)

    wait_for(is_whole, within_seconds=60, about=instance)
    return client


@pytest.fixture(scope="module")
def admin(instance: Instance) -> RestClient:
    return RestClient(instance.port, instance.manage("create_key", "boss", "--admin").stdout.strip())


def test_server_name_with_a_slash_is_one_part_of_an_address(admin: RestClient) -> None:
    path = "/servers/io.example%2Fnotes"
    admin.post("/servers", {"name": "io.example/notes", "url": "http://127.0.0.1:1/mcp"}, status=201)
    assert admin.get(path)["name"] == "io.example/notes"
    assert admin.call("PATCH", path, {"deferLoading": True}).json()["deferLoading"] is True
    assert admin.post(f"{path}/refresh", {}, status=202)["server"] == "io.example/notes"
    assert admin.get(f"{path}/refresh")["server"] == "io.example/notes"
    assert admin.get("/tools?server=io.example%2Fnotes")["items"] == []
    assert admin.call("DELETE", path).status == 204
    assert admin.call("GET", path).status == 404


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


@pytest.mark.parametrize("lives", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_session_ends_while_notes_of_it_are_written(agent: RestClient, lives: int) -> None:
    """Short lives, so that some end in the very moment that their searches are recorded."""

    def live_shortly(_: int) -> int:
        path = f"/sessions/{agent.post('/sessions', {}, status=201)['id']}"
        agent.post(f"{path}/search", {"query": "create an issue"})
        return agent.call("DELETE", path).status

    with ThreadPoolExecutor(max_workers=8) as threads:
        assert set(threads.map(live_shortly, range(lives))) == {204}


def begin_crowd(agent: RestClient, *, with_resets: bool = False) -> Crowd:
    path = f"/sessions/{agent.post('/sessions', {}, status=201)['id']}"
    names = [tool["name"] for tool in agent.get(f"{path}/tools")["deferred"]]
    return Crowd(agent, path, names, with_resets)


@pytest.mark.parametrize("seconds", [4.0, pytest.param(30.0, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_fifty_threads_on_one_session_lose_nothing(agent: RestClient, seconds: float) -> None:
    crowd = begin_crowd(agent)
    crowd.work(seconds)
    assert crowd.problems == []
    state = agent.get(crowd.path)
    loaded = [tool["name"] for tool in state["loaded"]]
    assert set(crowd.names[:THREADS]) <= set(loaded)
    assert len(loaded) == len(set(loaded))
    assert state["turn"] == crowd.turns > 0
    assert len(agent.get(f"{crowd.path}/snapshots")["items"]) == min(crowd.snapshots, 100) > 0
    assert [tool["name"] for tool in agent.get(f"{crowd.path}/tools")["tools"]] == loaded


@pytest.mark.parametrize("seconds", [3.0, pytest.param(8.0, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_resets_amid_fifty_threads_leave_nothing_half_done(agent: RestClient, seconds: float) -> None:
    crowd = begin_crowd(agent, with_resets=True)
    crowd.work(seconds)
    assert crowd.problems == []
    assert crowd.resets > 0
    assert agent.get(crowd.path)["turn"] == crowd.turns > 0
    assert agent.post(f"{crowd.path}/reset")["counts"]["discovered"] == 0
    crowd.load_own()
    assert crowd.problems == []
    loaded = agent.get(crowd.path)["loaded"]
    found = [tool["name"] for tool in loaded if tool["reason"] == "discovered"]
    assert sorted(found) == sorted(crowd.names[:THREADS])
