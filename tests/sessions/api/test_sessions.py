"""A session by REST, from its creation to its end."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE
from catalog.domain.choices import Kind
from catalog.models import Policy, Tool
from catalog.services import policies, servers, tool_settings
from sessions.models import AgentSession, LoadedTool
from sessions.offers import offer_cache
from sessions.selectors import own_sessions
from sessions.services import eviction, snapshots, write_behind
from tests.harness.rows import make_server, make_tool
from tests.sessions.api.calling import ROOT, Agent, follow, make_agent

pytestmark = pytest.mark.django_db

CREATE = "mcp__github__create_issue"
LIST = "mcp__github__list_issues"
MERGE = "mcp__github__merge_pull_request"
SEND = "mcp__slack__send_message"
READ = "mcp__files__read_file"


def change_default(**fields: Any) -> None:
    policy = Policy.objects.get(slug="default")
    policies.change_policy(policy=policy, changed=fields, actor=COMMAND_LINE)
    follow()


def loaded(state: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in state["loaded"]]


class TestCreation:
    def test_new_session_tells_its_whole_state(self, agent: Agent) -> None:
        state = agent.post("/sessions", {"model": "gpt-4o"}, status=201)
        assert state | {"id": "", "created_at": "", "last_seen_at": "", "expires_at": "", "tokens": ""} == {
            "id": "",
            "external_id": None,
            "policy": "default",
            "model": "gpt-4o",
            "active": True,
            "turn": 0,
            "context_window": 200000,
            "context_used": 0,
            "version": 1,
            "counts": {"total": 5, "loaded": 0, "deferred": 5, "discovered": 0, "locked": 0},
            "tokens": "",
            "loaded": [],
            "deferred_by_server": {"files": 1, "github": 3, "slack": 1},
            "created_at": "",
            "last_seen_at": "",
            "expires_at": "",
        }

    def test_same_external_id_is_the_same_session_of_this_key_only(self, agent: Agent) -> None:
        first = agent.post("/sessions", {"external_id": "chat"}, status=201)
        assert agent.post("/sessions", {"external_id": "chat"})["id"] == first["id"]
        other = make_agent().post("/sessions", {"external_id": "chat"}, status=201)
        assert other["id"] != first["id"]

    def test_expired_session_makes_room_for_a_new_one_of_its_name(self, agent: Agent) -> None:
        first = agent.post("/sessions", {"external_id": "chat"}, status=201)
        AgentSession.objects.update(expires_at=timezone.now())
        assert agent.get(f"/sessions/{first['id']}").status_code == 404
        assert agent.post("/sessions", {"external_id": "chat"}, status=201)["id"] != first["id"]

    def test_agent_may_name_its_own_policy_only(self, agent: Agent) -> None:
        policies.create_policy(wanted={"slug": "other"}, actor=COMMAND_LINE)
        assert agent.post("/sessions", {"policy": "default"}, status=201)["policy"] == "default"
        assert agent.call("POST", "/sessions", {"policy": "other"}).status_code == 404
        assert make_agent(admin=True).post("/sessions", {"policy": "other"}, status=201)["policy"] == "other"

    def test_oldest_idle_session_goes_when_there_are_too_many(self, agent: Agent) -> None:
        few = make_agent(max_sessions=2)
        first, second = few.begin(), few.begin()
        AgentSession.objects.filter(pk=second.id).update(last_seen_at=timezone.now() - timedelta(days=1))
        few.begin()
        assert few.get(second.path).status_code == 404
        assert few.get(first.path).status_code == 200

    def test_policy_limit_holds_for_all_its_keys(self, agent: Agent) -> None:
        change_default(max_sessions=1)
        first = agent.begin()
        make_agent().begin()
        assert agent.get(first.path).status_code == 404


class TestOwnTools:
    BUILTIN = {"name": "bash", "description": "Run a command.", "inputSchema": {"type": "object"}}

    def test_builtin_loads_and_is_listed(self, agent: Agent) -> None:
        session = agent.begin(builtin_tools=[self.BUILTIN])
        listed = session.tools()
        assert [tool["name"] for tool in listed["tools"]] == ["bash"]
        assert listed["routes"]["bash"] == ["builtin", "bash"]
        assert session.state()["loaded"] == [
            {"name": "bash", "server": "builtin", "reason": "builtin", "turn": 0}
        ]

    def test_builtin_that_should_be_deferred_is_found_and_loaded(self, agent: Agent) -> None:
        session = agent.begin(builtin_tools=[{**self.BUILTIN, "shouldDefer": True}])
        assert session.tools()["tools"] == []
        found = session.search("run a command")
        assert found["loaded"] == ["bash"]
        assert found["matches"][0]["server"] == "builtin"
        assert session.search("bash")["matches"][0]["name"] == "bash"

    def test_builtin_that_takes_the_search_tools_name_gets_an_ending(self, agent: Agent) -> None:
        session = agent.begin(builtin_tools=[{"name": "search_tools"}])
        name = session.tools()["tools"][0]["name"]
        assert name.startswith("search_tools_")
        assert session.tools()["search_tool"]["name"] == "search_tools"

    def test_two_of_one_name_are_refused_with_their_place(self, agent: Agent) -> None:
        answer = agent.call("POST", "/sessions", {"builtin_tools": [self.BUILTIN, self.BUILTIN]})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["place"] == "builtin_tools[1].name"

    @pytest.mark.parametrize("field", ["inputSchema", "_meta", "own"])
    def test_definition_that_is_nested_too_deeply_is_refused(self, agent: Agent, field: str) -> None:
        """Far below what Python can take: every reader needs some of that for itself."""
        for levels, status in ((199, 201), (200, 422), (900, 422), (960, 422)):
            nested = '{"a":' * levels + "1" + "}" * levels
            answer = self.send(agent, "POST", "/sessions", f'{{"name": "bash", "{field}": {nested}}}')
            assert answer.status_code == status, levels

    def test_number_that_is_too_large_for_any_database_is_refused_with_its_place(self, agent: Agent) -> None:
        session = agent.begin()
        for method, path in (("POST", "/sessions"), ("PATCH", session.path)):
            answer = self.send(agent, method, path, '{"name": "bash", "inputSchema": {"maximum": 1e400}}')
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["place"].endswith("builtin_tools.0")

    def test_every_field_of_a_definition_is_sent_on(self, agent: Agent) -> None:
        tool = {**self.BUILTIN, "title": "Bash", "annotations": {"readOnlyHint": False}, "_meta": {"a": 1}}
        assert agent.begin(builtin_tools=[tool]).tools()["tools"] == [tool]

    @staticmethod
    def send(agent: Agent, method: str, path: str, tool: str) -> Any:
        """A text that `json.dumps` would not write."""
        return agent.client.generic(
            method,
            f"{ROOT}{path}",
            f'{{"builtin_tools": [{tool}]}}',
            content_type="application/json",
            headers={"Authorization": f"Bearer {agent.text}"},
        )

    def test_builtins_count_in_the_threshold_of_tools(self, agent: Agent) -> None:
        change_default(mode="auto", threshold_unit="tools", threshold=6)
        assert agent.begin().state()["active"] is False
        assert agent.begin(builtin_tools=[self.BUILTIN]).state()["active"] is True


class TestVisible:
    def test_session_narrows_what_it_sees_everywhere(self, agent: Agent) -> None:
        session = agent.begin(visible=["github/*"])
        assert session.state()["counts"]["total"] == 3
        assert session.search("post a message to a channel")["outcome"] == "no_match"
        assert session.search(f"select:{SEND}")["missing"] == [SEND]
        assert SEND not in str(session.tools(format="anthropic"))

    def test_session_cannot_widen_its_policy(self, agent: Agent) -> None:
        change_default(visible=["slack/*"])
        assert agent.begin(visible=["*"]).state()["counts"]["total"] == 1

    def test_turn_narrows_the_next_turn_only(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{SEND}")
        narrowed = session.do("turns", visible=["github/*"])
        assert (narrowed["counts"]["total"], loaded(narrowed)) == (3, [])
        widened = session.do("turns")
        assert (widened["counts"]["total"], loaded(widened)) == (5, [SEND])


class TestUnloading:
    def test_tools_go_after_each_turn_when_the_policy_keeps_none(self, agent: Agent) -> None:
        change_default(keep_loaded_tools=False)
        session = agent.begin()
        session.search(f"select:{SEND}")
        assert loaded(session.state()) == [SEND]
        assert loaded(session.do("turns")) == []

    def test_idle_tools_go_and_called_ones_stay(self, agent: Agent) -> None:
        change_default(unload_after_idle_turns=2)
        session = agent.begin()
        session.search(f"select:{SEND},{CREATE}")
        session.do("turns")
        assert loaded(session.do("turns", called=["send_message"])) == [SEND, CREATE]
        assert loaded(session.do("turns")) == [SEND]
        assert loaded(session.do("turns")) == []

    def test_least_recently_used_go_past_the_limit(self, agent: Agent) -> None:
        change_default(max_loaded_tools=2)
        session = agent.begin()
        session.search(f"select:{SEND}")
        session.search(f"select:{CREATE}")
        session.do("turns", called=[SEND])
        session.search(f"select:{LIST}")
        assert loaded(session.state()) == [SEND, LIST]

    def test_unload_by_qualified_or_bare_name(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{SEND},{CREATE},{LIST}")
        assert loaded(session.do("unload", names=[SEND, "list_issues", "unknown"])) == [CREATE]

    def test_reset_drops_all_and_the_context_used(self, agent: Agent) -> None:
        change_default(mode="auto", threshold_unit="context_used", threshold=10)
        session = agent.begin(context_window=1000)
        assert session.state()["active"] is False
        assert session.do("turns", context_used=100)["active"] is True
        assert session.do("turns", context_used=5)["active"] is True
        session.search(f"select:{SEND}")
        state = session.do("reset")
        assert (state["active"], state["context_used"], state["counts"]["discovered"]) == (False, 0, 0)


class TestSnapshots:
    def test_restore_brings_back_order_and_names_what_is_lost(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{SEND}")
        session.search(f"select:{CREATE},{READ}")
        kept = session.snapshot()
        assert kept["loaded"] == [SEND, CREATE, READ]
        session.do("turns")
        session.do("unload", names=[SEND, CREATE])
        session.search(f"select:{SEND}")
        tool_settings.change_tool(tool=Tool.objects.get(name="read_file"), actor=COMMAND_LINE, hidden=True)
        follow()
        state = session.do("restore", snapshot=kept["id"])
        assert (loaded(state), state["lost"]) == ([SEND, CREATE], [READ])
        assert [tool["turn"] for tool in state["loaded"]] == [0, 0]

    def test_tool_that_has_the_name_since_is_not_brought_back(self, agent: Agent) -> None:
        """Of the tool that was loaded no row is left, and another one was listed under its name."""
        session = agent.begin()
        session.search(f"select:{SEND},{CREATE}")
        kept = session.snapshot()
        session.do("unload", names=[SEND])
        slack = Tool.objects.get(name="send_message").server
        Tool.objects.filter(name="send_message").delete()
        make_tool(server=slack, name="send_message", description="Sends money.")
        follow()
        state = session.do("restore", snapshot=kept["id"])
        assert (loaded(state), state["lost"]) == ([CREATE], [SEND])

    def test_tool_that_was_given_the_name_since_is_not_brought_back(self, agent: Agent) -> None:
        """By a change of its server's kind, after the other's had freed it."""
        first, second = make_server(name="one", kind="plugin"), make_server(name="two")
        for server in (first, second):
            make_tool(server=server, name="wave")
        servers.set_kind(server=first, kind=Kind.BUILTIN, actor=COMMAND_LINE)
        change_default(defer_builtins=True)
        follow()
        session = agent.begin()
        session.search(f"select:wave,{CREATE}")
        kept = session.snapshot()
        session.do("unload", names=["wave"])
        servers.set_kind(server=first, kind=Kind.MCP, actor=COMMAND_LINE)
        servers.set_kind(server=second, kind=Kind.BUILTIN, actor=COMMAND_LINE)
        follow()
        assert Tool.objects.get(qualified_name="wave").server == second
        state = session.do("restore", snapshot=kept["id"])
        assert (loaded(state), set(state["lost"])) == ([CREATE], {"wave", "mcp__two__wave"})

    def test_deferral_state_comes_back(self, agent: Agent) -> None:
        change_default(mode="auto", threshold_unit="context_used", threshold=10)
        session = agent.begin(context_window=1000)
        session.do("turns", context_used=500)
        kept = session.snapshot()
        assert kept["active"] is True
        session.do("reset")
        assert session.do("restore", snapshot=kept["id"])["active"] is True

    def test_compaction_takes_a_snapshot_and_keeps_the_tools(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{SEND}")
        assert loaded(session.do("compact")) == [SEND]
        items = agent.read(f"{session.path}/snapshots")["items"]
        assert [(kept["cause"], kept["loaded"]) for kept in items] == [("compaction", [SEND])]

    def test_compaction_drops_them_where_the_policy_says_so(self, agent: Agent) -> None:
        change_default(keep_on_compaction=False)
        session = agent.begin()
        session.search(f"select:{SEND}")
        assert loaded(session.do("compact")) == []
        kept = agent.read(f"{session.path}/snapshots")["items"][0]
        assert loaded(session.do("restore", snapshot=kept["id"])) == [SEND]

    @pytest.mark.parametrize("act", ["snapshots", "compact", "restore"])
    def test_offer_is_made_before_the_transaction(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch, act: str
    ) -> None:
        """Which holds SQLite's one writer: an offer of a session's own may take a third of a second."""
        session = agent.begin(visible=["slack/*"])
        body = {"snapshot": session.snapshot()["id"]} if act == "restore" else {}
        seen: list[bool] = []
        outside, make = len(connection.savepoint_ids), offer_cache.offer_of_session

        def note(*args: Any, **options: Any) -> Any:
            seen.append(len(connection.savepoint_ids) > outside)
            return make(*args, **options)

        monkeypatch.setattr(offer_cache, "offer_of_session", note)
        assert agent.call("POST", f"{session.path}/{act}", body).status_code in (200, 201)
        assert seen
        assert not any(seen)

    def test_snapshot_of_another_session_is_not_found(self, agent: Agent) -> None:
        kept = agent.begin().snapshot()
        answer = agent.call("POST", f"{agent.begin().path}/restore", {"snapshot": kept["id"]})
        assert answer.status_code == 404


class TestList:
    def test_pages_through_all_of_this_keys_sessions(self, agent: Agent) -> None:
        mine = {agent.begin().id for _ in range(5)}
        make_agent().begin()
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = agent.read(f"/sessions?limit=2&cursor={cursor}")
            seen += [state["id"] for state in page["items"]]
            cursor = page["next"]
        assert len(seen) == 5
        assert set(seen) == mine

    def test_filters_by_how_lately_it_was_seen(self, agent: Agent) -> None:
        idle, fresh = agent.begin(), agent.begin()
        AgentSession.objects.filter(pk=idle.id).update(last_seen_at=timezone.now() - timedelta(hours=2))
        assert [state["id"] for state in agent.read("/sessions?state=active")["items"]] == [fresh.id]
        assert [state["id"] for state in agent.read("/sessions?state=idle")["items"]] == [idle.id]

    def test_number_of_queries_does_not_grow_with_the_sessions(
        self, agent: Agent, django_assert_max_num_queries: Any
    ) -> None:
        for _ in range(20):
            agent.begin().search(f"select:{SEND}")
        with django_assert_max_num_queries(4):
            assert len(agent.read("/sessions")["items"]) == 20

    @pytest.mark.parametrize("bound", ["PAGE_OWN_TOOLS", "PAGE_LOADED_TOOLS"])
    def test_page_of_much_work_ends_early_and_the_next_goes_on(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch, bound: str
    ) -> None:
        monkeypatch.setattr(own_sessions, bound, 4)
        monkeypatch.setattr(own_sessions, "READ_AT_ONCE", 2)
        own = [{"name": "bash"}, {"name": "edit"}]
        begun = [agent.begin(builtin_tools=own).id for _ in range(5)]
        pages, path = [], "/sessions?limit=4"
        while path:
            page = agent.read(path)
            pages.append([item["id"] for item in page["items"]])
            path = f"/sessions?limit=4&cursor={page['next']}" if page["next"] else ""
        assert [len(page) for page in pages] == ([1] * 5 if bound == "PAGE_OWN_TOOLS" else [3, 2])
        assert [one for page in pages for one in page] == begun[::-1]

    def test_foreign_cursor_is_422(self, agent: Agent) -> None:
        assert agent.get("/sessions?cursor=nonsense").status_code == 422


class TestWhatAKeyMayStore:
    """In bytes, over all its sessions: the longest unused of those that bring something along goes first."""

    OWN = [{"name": "bash", "description": "x" * 10_000}]

    @pytest.fixture(autouse=True)
    def limit(self, settings: Any) -> None:
        settings.MAX_KEY_BYTES = 25_000

    def left(self) -> set[str]:
        return {str(pk) for pk in AgentSession.objects.values_list("pk", flat=True)}

    def test_longest_unused_with_tools_of_its_own_ends(self, agent: Agent) -> None:
        plain, first, second = agent.begin(), *(agent.begin(builtin_tools=self.OWN) for _ in range(2))
        AgentSession.objects.filter(pk=second.id).update(last_seen_at=timezone.now() - timedelta(hours=1))
        third = agent.begin(builtin_tools=self.OWN)
        assert self.left() == {plain.id, first.id, third.id}

    def test_tools_that_are_brought_later_count_too(self, agent: Agent) -> None:
        first, second, third = (agent.begin() for _ in range(3))
        for session in (first, second, third):
            answer = agent.call("PATCH", session.path, {"builtin_tools": self.OWN})
            assert answer.status_code == 200
        assert self.left() == {second.id, third.id}

    def test_lists_of_visible_tools_count_too(self, agent: Agent) -> None:
        globs = [f"{number:04}{'x' * 100}" for number in range(100)]
        _, second, third = (agent.begin(visible=globs) for _ in range(3))
        assert self.left() == {second.id, third.id}
        second.do("turns", visible=globs)
        assert self.left() == {second.id}

    def test_what_is_taken_back_leaves_room(self, agent: Agent) -> None:
        first = agent.begin(builtin_tools=self.OWN)
        assert agent.call("PATCH", first.path, {"builtin_tools": []}).status_code == 200
        others = [agent.begin(builtin_tools=self.OWN) for _ in range(2)]
        assert self.left() == {first.id, *(session.id for session in others)}

    def test_session_past_the_limit_by_itself_is_served(self, agent: Agent) -> None:
        session = agent.begin(builtin_tools=[{"name": "bash", "description": "x" * 50_000}])
        assert self.left() == {session.id}

    def test_other_keys_keep_theirs(self, agent: Agent) -> None:
        others = [make_agent().begin(builtin_tools=self.OWN) for _ in range(4)]
        assert self.left() == {session.id for session in others}

    def test_loaded_tools_count_past_what_every_session_may_have(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(eviction, "LOADED_TOOL_BYTES", 12_000)
        monkeypatch.setattr(eviction, "UNCOUNTED_BYTES", 1_000)
        first, second, third = (agent.begin() for _ in range(3))
        for session in (first, second, third):
            session.search(f"select:{SEND}")
        assert self.left() == {second.id, third.id}
        second.do("unload", names=[SEND])
        assert AgentSession.objects.get(pk=second.id).own_bytes == 0

    def test_few_loaded_tools_count_nothing_and_ask_for_no_sum(self, agent: Agent) -> None:
        session = agent.begin()
        with CaptureQueriesContext(connection) as queries:
            session.search(f"select:{SEND}")
            session.snapshot()
        assert AgentSession.objects.get(pk=session.id).own_bytes == 0
        assert not [query for query in queries if "own_bytes" in query["sql"] and "SUM(" in query["sql"]]

    @pytest.mark.parametrize("act", ["snapshots", "compact"])
    def test_snapshots_count_past_what_every_session_may_have(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch, act: str
    ) -> None:
        monkeypatch.setattr(eviction, "UNCOUNTED_BYTES", 0)
        monkeypatch.setattr(eviction, "LOADED_TOOL_BYTES", 0)
        first, second = agent.begin(), agent.begin(builtin_tools=self.OWN)
        third = agent.begin(builtin_tools=self.OWN)
        LoadedTool.objects.bulk_create(
            LoadedTool(session_id=first.id, name=f"{n:03}{'x' * 60}", position=n, loaded_turn=0, used_turn=0)
            for n in range(100)
        )
        agent.call("POST", f"{first.path}/{act}", {})
        assert AgentSession.objects.get(pk=first.id).own_bytes > 6_000
        assert self.left() == {first.id, third.id}
        assert agent.call("PATCH", first.path, {"context_window": 999}).status_code == 200
        assert AgentSession.objects.get(pk=first.id).own_bytes > 6_000
        assert str(second.id) not in self.left()

    def test_oldest_snapshots_of_a_session_go_past_its_bytes(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session = agent.begin()
        session.search(f"select:{SEND}")
        one = len(json.dumps([[SEND, 0, 0, 1]]))
        monkeypatch.setattr(snapshots, "SNAPSHOTS_OF_A_SESSION_BYTES", 2 * one)
        kept = [session.snapshot()["id"] for _ in range(4)]
        left = [item["id"] for item in agent.read(f"{session.path}/snapshots")["items"]]
        assert left == kept[:1:-1]
        monkeypatch.setattr(snapshots, "SNAPSHOTS_OF_A_SESSION_BYTES", 1)
        last = session.snapshot()["id"]
        assert [item["id"] for item in agent.read(f"{session.path}/snapshots")["items"]] == [last]

    def test_session_that_brings_nothing_asks_for_no_sum(self, agent: Agent) -> None:
        agent.begin(builtin_tools=self.OWN)
        with CaptureQueriesContext(connection) as queries:
            agent.begin()
        assert not [query for query in queries if "SUM(" in query["sql"]]


class TestEnd:
    def test_deleted_session_is_gone(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{SEND}")
        assert agent.call("DELETE", session.path).status_code == 204
        assert agent.get(session.path).status_code == 404
        assert not LoadedTool.objects.exists()

    def test_expired_sessions_are_removed_and_a_poll_keeps_one_alive(self, agent: Agent) -> None:
        polled, left = agent.begin(), agent.begin()
        soon = timezone.now() + timedelta(seconds=5)
        AgentSession.objects.update(expires_at=soon)
        polled.tools()
        write_behind.flush()
        assert eviction.expire(now=soon) == 1
        assert agent.get(polled.path).status_code == 200
        assert agent.get(left.path).status_code == 404


def test_patch_changes_what_is_given_and_takes_back_what_is_null(agent: Agent) -> None:
    session = agent.begin(visible=["github/*"], model="gpt-4o")
    changed = agent.call("PATCH", session.path, {"context_window": 1000}).json()
    assert (changed["context_window"], changed["model"], changed["counts"]["total"]) == (1000, "gpt-4o", 3)
    widened = agent.call("PATCH", session.path, {"visible": None, "model": None}).json()
    assert (widened["model"], widened["counts"]["total"]) == (None, 5)
    assert widened["version"] > changed["version"] > 1


def test_version_grows_with_the_list_and_not_with_a_turn(agent: Agent) -> None:
    session = agent.begin()
    assert session.do("turns", context_used=3)["version"] == 1
    session.search(f"select:{SEND}")
    assert session.state()["version"] == 2
    session.search(f"select:{SEND}")
    assert session.state()["version"] == 2
    assert session.do("reset")["version"] == 3
