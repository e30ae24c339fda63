"""The tool list in every form, and polling it."""

import gzip
import json
from typing import Any

import pytest

from catalog.access.actors import COMMAND_LINE
from catalog.models import Policy, Tool
from catalog.services import policies, tool_settings
from sessions.offers.rendering import list_warnings
from tests.harness.rows import make_server, make_tool
from tests.sessions.api.calling import Agent, follow, make_agent

pytestmark = pytest.mark.django_db

CREATE = "mcp__github__create_issue"
SEND = "mcp__slack__send_message"
ALL = [
    "mcp__files__read_file",
    CREATE,
    "mcp__github__list_issues",
    "mcp__github__merge_pull_request",
    SEND,
]


def change_default(**fields: Any) -> None:
    policy = Policy.objects.get(slug="default")
    policies.change_policy(policy=policy, changed=fields, actor=COMMAND_LINE)
    follow()


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


class TestMcp:
    def test_everything_is_deferred_with_its_first_sentence(self, agent: Agent) -> None:
        listed = agent.begin().tools()
        assert listed["active"] is True
        assert listed["tools"] == []
        assert names(listed["deferred"]) == ALL
        assert listed["deferred"][3]["description"] == "Merge a pull request."
        assert listed["search_tool"]["name"] == "search_tools"
        assert "5 tools are deferred" in listed["prompt"]
        assert listed["counts"] == {"total": 5, "loaded": 0, "deferred": 5, "discovered": 0, "locked": 0}
        assert listed["tokens"]["saved"] == listed["tokens"]["full"] - listed["tokens"]["sent"]

    def test_loading_appends(self, agent: Agent) -> None:
        change_default(never_defer=["slack/*"])
        session = agent.begin()
        assert names(session.tools()["tools"]) == [SEND]
        session.search("select:mcp__github__list_issues")
        session.search(f"select:{CREATE}")
        listed = session.tools()
        assert names(listed["tools"]) == [SEND, "mcp__github__list_issues", CREATE]
        assert listed["tools"][2]["inputSchema"]["required"] == ["title"]
        assert listed["routes"][CREATE] == ["github", "create_issue"]
        assert CREATE not in names(listed["deferred"])
        assert listed["counts"] == {"total": 5, "loaded": 3, "deferred": 2, "discovered": 2, "locked": 0}

    def test_inactive_list_is_whole_and_has_no_search_tool(self, agent: Agent) -> None:
        change_default(mode="off")
        listed = agent.begin().tools()
        assert listed["active"] is False
        assert names(listed["tools"]) == ALL
        assert (listed["search_tool"], listed["prompt"], listed["deferred"]) == (None, "", [])
        assert listed["tokens"] == {**listed["tokens"], "saved": 0}


def test_stub_is_filled_in_place(agent: Agent) -> None:
    session = agent.begin()
    before = session.tools(format="stub")["tools"]
    assert names(before) == ALL
    assert {json.dumps(tool["inputSchema"]) for tool in before} == {
        '{"type": "object", "additionalProperties": true}'
    }
    session.search(f"select:{CREATE}")
    after = session.tools(format="stub")["tools"]
    assert names(after) == ALL
    assert after[1]["inputSchema"]["required"] == ["title"]
    assert [tool for tool in after if tool["name"] != CREATE] == [
        tool for tool in before if tool["name"] != CREATE
    ]


class TestAnthropic:
    def test_search_tool_first_then_loaded_then_flagged(self, agent: Agent) -> None:
        change_default(never_defer=["slack/*"])
        tools = agent.begin().tools(format="anthropic")["tools"]
        assert names(tools)[:2] == ["search_tools", SEND]
        assert [tool.get("defer_loading", False) for tool in tools] == [False, False, True, True, True, True]
        assert all("input_schema" in tool and "cache_control" not in tool for tool in tools)

    def test_discovering_changes_nothing_unless_asked_in_full(self, agent: Agent) -> None:
        session = agent.begin()
        before = session.tools(format="anthropic")["tools"]
        session.search(f"select:{CREATE}")
        assert session.tools(format="anthropic")["tools"] == before
        full = session.tools(format="anthropic", discovered="full")["tools"]
        assert names(full)[:2] == ["search_tools", CREATE]
        assert "defer_loading" not in full[1]
        assert sorted(names(full)) == sorted(names(before))

    @pytest.mark.parametrize(
        ("hosted", "name"),
        [
            ("true", "tool_search_tool_bm25"),
            ("bm25", "tool_search_tool_bm25"),
            ("regex", "tool_search_tool_regex"),
        ],
    )
    def test_hosted_search_takes_our_place(self, agent: Agent, hosted: str, name: str) -> None:
        listed = agent.begin().tools(format="anthropic", hosted=hosted)
        assert listed["tools"][0] == {"type": f"{name}_20251119", "name": name}
        assert name in listed["prompt"]
        assert "search_tools" not in names(listed["tools"])


class TestOpenai:
    def test_client_search_and_what_is_loaded(self, agent: Agent) -> None:
        change_default(never_defer=["slack/*"])
        session = agent.begin()
        before = session.tools(format="openai")["tools"]
        assert before[0]["type"] == "tool_search"
        assert before[0]["execution"] == "client"
        assert [(tool["type"], tool["name"]) for tool in before[1:]] == [("function", SEND)]
        session.search(f"select:{CREATE}")
        assert session.tools(format="openai")["tools"] == before
        assert names(session.tools(format="openai", discovered="full")["tools"][1:]) == [SEND, CREATE]

    def test_hosted_has_a_namespace_per_server(self, agent: Agent) -> None:
        tools = agent.begin().tools(format="openai", hosted="true")["tools"]
        assert tools[0] == {"type": "tool_search"}
        assert [(space["type"], space["name"]) for space in tools[1:]] == [
            ("namespace", "files"),
            ("namespace", "github"),
            ("namespace", "slack"),
        ]
        assert all(tool["defer_loading"] for space in tools[1:] for tool in space["tools"])


@pytest.mark.parametrize(
    ("model", "format", "first"),
    [
        ("claude-opus-4-5-20251101", "anthropic", "tool_search_tool_bm25_20251119"),
        ("claude-3-5-haiku-20241022", "mcp", None),
        ("gpt-5.4-mini", "openai", "tool_search"),
        ("gpt-4o", "mcp", None),
        ("gemini-3-pro", "mcp", None),
    ],
)
def test_auto_follows_the_table_of_models(agent: Agent, model: str, format: str, first: str | None) -> None:
    listed = agent.begin(model=model).tools(format="auto")
    assert listed["format"] == format
    if first is not None:
        assert listed["tools"][0]["type"] == first


class TestPolling:
    def test_unchanged_list_is_304_and_a_change_is_not(self, agent: Agent) -> None:
        session = agent.begin()
        first = agent.get(f"{session.path}/tools")
        tag = first.headers["ETag"]
        again = agent.get(f"{session.path}/tools", If_None_Match=tag)
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
        session.do("turns", context_used=10)
        assert agent.get(f"{session.path}/tools", If_None_Match=f'"other", {tag}').status_code == 304
        strong = tag.removeprefix("W/")
        assert agent.get(f"{session.path}/tools", If_None_Match=strong).status_code == 304
        session.search(f"select:{CREATE}")
        assert agent.get(f"{session.path}/tools", If_None_Match=tag).status_code == 200

    def test_forms_have_tags_of_their_own(self, agent: Agent) -> None:
        session = agent.begin()
        forms = ("mcp", "stub", "anthropic", "anthropic&hosted=true", "anthropic&discovered=full", "openai")
        tags = {agent.get(f"{session.path}/tools?format={form}").headers["ETag"] for form in forms}
        assert len(tags) == len(forms)

    def test_definition_that_changes_without_a_decision_changes_the_tag(self, agent: Agent) -> None:
        session = agent.begin()
        tag = agent.get(f"{session.path}/tools").headers["ETag"]
        tool_settings.change_tool(
            tool=Tool.objects.get(name="read_file"), actor=COMMAND_LINE, keywords=["cat"]
        )
        follow()
        assert agent.get(f"{session.path}/tools", If_None_Match=tag).status_code == 304
        changed = {"description": "Read a file of the workspacE.", "digest": "x" * 64}
        Tool.objects.filter(name="read_file").update(**changed)
        tool_settings.change_tool(tool=Tool.objects.get(name="read_file"), actor=COMMAND_LINE, keywords=[])
        follow()
        assert agent.get(f"{session.path}/tools", If_None_Match=tag).status_code == 200

    def test_policy_of_a_name_that_no_database_keeps_is_not_found(self, agent: Agent) -> None:
        assert agent.get("/policies/%00/tools").status_code == 404
        assert agent.get("/policies/default%00/tools").status_code == 404

    def test_304_costs_one_query(self, agent: Agent, django_assert_num_queries: Any) -> None:
        session = agent.begin()
        for path in (f"{session.path}/tools", "/policies/default/tools"):
            tag = agent.get(path).headers["ETag"]
            with django_assert_num_queries(1):
                assert agent.get(path, If_None_Match=tag).status_code == 304

    def test_full_list_costs_two_queries_and_four_where_a_session_brings_its_own(
        self, agent: Agent, django_assert_num_queries: Any
    ) -> None:
        plain, own, narrowed = agent.begin(), agent.begin(builtin_tools=[{"name": "think"}]), agent.begin()
        narrowed.do("turns", visible=["mcp__github__*"])
        for session, queries in ((plain, 2), (own, 4), (narrowed, 4)):
            session.search(f"select:{CREATE},mcp__github__list_issues")
            session.tools()
            with django_assert_num_queries(queries):
                listed = session.tools()
            names_listed = [tool["name"] for tool in listed["tools"]]
            assert names_listed[-2:] == [CREATE, "mcp__github__list_issues"]
            assert ("think" in names_listed) is (session is own)
            assert listed["counts"]["discovered"] == 2
            assert listed["version"] == session.state()["version"]
        assert {tool["server"] for tool in narrowed.state()["loaded"]} == {"github"}

    def test_compressed_answer_is_the_same(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{CREATE}")
        plain = agent.get(f"{session.path}/tools?format=stub")
        packed = agent.get(f"{session.path}/tools?format=stub", Accept_Encoding="gzip")
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.content) == plain.content

    def test_policy_list_needs_no_session(self, agent: Agent) -> None:
        listed = agent.read("/policies/default/tools")
        assert listed["session"] is None
        assert names(listed["deferred"]) == ALL

    @pytest.mark.parametrize("query", ["format=yaml", "hosted=maybe", "discovered=some"])
    def test_unknown_word_is_422_with_its_place(self, agent: Agent, query: str) -> None:
        answer = agent.get(f"/policies/default/tools?{query}")
        assert answer.status_code == 422
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["errors"][0]["place"] == f"query.{query.partition('=')[0]}"

    def test_hidden_tool_leaves_every_list_and_what_was_loaded(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{CREATE}")
        tool_settings.change_tool(tool=Tool.objects.get(name="create_issue"), actor=COMMAND_LINE, hidden=True)
        follow()
        assert CREATE not in json.dumps([session.tools(format=form) for form in ("mcp", "stub", "anthropic")])
        assert session.state()["counts"]["discovered"] == 0

    def test_policy_that_no_worker_has_decided_yet_is_decided_at_once(self, agent: Agent) -> None:
        policy = policies.create_policy(wanted={"slug": "fresh", "mode": "off"}, actor=COMMAND_LINE)
        listed = make_agent(policy=policy).read("/policies/fresh/tools")
        assert names(listed["tools"]) == ALL


class TestWarnings:
    COSTS_MORE = "Deferring costs "
    FORMS = ("mcp", "stub", "anthropic", "openai", "auto", "anthropic&hosted=true", "openai&hosted=true")

    @pytest.mark.parametrize("form", FORMS)
    def test_small_catalog_is_told_that_deferring_costs_more(self, agent: Agent, form: str) -> None:
        listed = agent.begin().tools(format=form)
        of_policy = agent.read(f"/policies/default/tools?format={form}")
        assert listed["tokens"]["saved"] < 0 or "hosted" in form
        told = [text for text in listed["warnings"] if text.startswith(self.COSTS_MORE)]
        assert bool(told) is (listed["tokens"]["saved"] < 0)
        assert of_policy["warnings"] == listed["warnings"]

    @pytest.mark.parametrize("form", FORMS)
    def test_nothing_to_warn_of_is_an_empty_list(self, agent: Agent, form: str) -> None:
        make_tool(server=make_server(name="large"), name="large", input_schema={"title": "x" * 4000})
        follow()
        assert agent.begin().tools(format=form)["warnings"] == []
        change_default(mode="off")
        assert agent.begin().tools(format=form)["warnings"] == []

    def test_limit_of_the_anthropic_api_is_told(self, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(list_warnings, "ANTHROPIC_MOST_DEFERRED", 4)
        make_tool(server=make_server(name="large"), name="large", input_schema={"title": "x" * 4000})
        follow()
        session = agent.begin()
        warning = "6 tools are deferred; the Anthropic API searches 4 at most."
        assert session.tools(format="anthropic")["warnings"] == [warning]
        assert session.tools(format="anthropic", hosted="true")["warnings"] == [warning]
        assert session.tools(format="mcp")["warnings"] == []

    def test_answer_with_warnings_stays_unchanged(self, agent: Agent) -> None:
        path = f"{agent.begin().path}/tools"
        listed = agent.get(path)
        assert listed.json()["warnings"]
        assert agent.get(path, If_None_Match=listed["ETag"]).status_code == 304
