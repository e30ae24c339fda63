"""Searching by REST: what is found, loaded, and said."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from catalog.access import key_uses
from catalog.access.actors import COMMAND_LINE
from catalog.domain.policy import DEFAULT_MEANING_FLOOR
from catalog.models import Policy, Tool
from catalog.search.request import MatchedBy
from catalog.services import policies, tool_settings
from sessions.models import LoadedTool, SearchEvent
from sessions.services import events, eviction, write_behind
from tests.harness.searches import watch_searches
from tests.sessions.api.calling import Agent, follow, make_agent

pytestmark = pytest.mark.django_db

CREATE = "mcp__github__create_issue"
SEND = "mcp__slack__send_message"


def change_default(**fields: Any) -> None:
    policies.change_policy(policy=Policy.objects.get(slug="default"), changed=fields, actor=COMMAND_LINE)
    follow()


def statements_of(call: Callable[[], Any]) -> list[str]:
    """Without those that begin and end transactions."""
    with CaptureQueriesContext(connection) as made:
        call()
    ends = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
    return [query["sql"] for query in made.captured_queries if not query["sql"].startswith(ends)]


def names(found: dict[str, Any]) -> list[str]:
    return [match["name"] for match in found["matches"]]


class TestMatched:
    def test_finds_loads_and_gives_both_providers_their_blocks(self, agent: Agent) -> None:
        session = agent.begin()
        found = session.search("create a new issue", max_results=1, call_id="call_7")
        assert (found["outcome"], found["form"], found["loaded"]) == ("matched", "keywords", [CREATE])
        match = found["matches"][0]
        assert (match["server"], match["tool"], match["parameters"]) == ("github", "create_issue", ["title"])
        assert match["inputSchema"]["required"] == ["title"]
        assert match["already_loaded"] is False
        reference = {"type": "tool_reference", "tool_name": CREATE}
        assert found["tool_references"] == found["anthropic"] == [reference]
        assert found["openai"]["call_id"] == "call_7"
        assert found["openai"]["tools"][0]["name"] == CREATE
        assert session.search("create a new issue", max_results=1)["matches"][0]["already_loaded"] is True

    def test_each_match_says_what_found_it(self, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        found = agent.begin().search("select:create_issue")
        assert [match["by"] for match in found["matches"]] == ["words"]
        searches = watch_searches(monkeypatch)
        for by in MatchedBy:
            searches.by = by
            found = agent.begin().search("create issue", max_results=1)
            assert [match["by"] for match in found["matches"]] == [by]
            assert ("by meaning, none by words" in found["message"]) == (by is MatchedBy.MEANING)

    def test_policys_meaning_floor_is_in_force_at_the_next_search(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session, searches = agent.begin(), watch_searches(monkeypatch)
        session.search("create issue")
        change_default(meaning_floor=0.7)
        session.search("create issue")
        assert searches.floors == [DEFAULT_MEANING_FLOOR, 0.7]

    def test_load_false_only_looks(self, agent: Agent) -> None:
        session = agent.begin()
        found = session.search("create issue", load=False)
        assert names(found)[0] == CREATE
        assert found["loaded"] == []
        assert session.state()["counts"]["discovered"] == 0

    def test_tool_in_force_by_a_rule_is_found_and_not_loaded_again(self, agent: Agent) -> None:
        change_default(never_defer=["slack/*"])
        found = agent.begin().search(f"select:{SEND}")
        assert (found["matches"][0]["already_loaded"], found["loaded"]) == (True, [])

    def test_policy_says_how_many_and_the_caller_may_ask_for_fewer(self, agent: Agent) -> None:
        change_default(max_results=2)
        session = agent.begin()
        assert len(names(session.search("issue issues request repository", max_results=1))) == 1
        assert len(names(session.search("issue issues request repository"))) == 2
        assert len(names(session.search("issue issues request repository", max_results=50))) == 2
        assert len(names(session.search("+github", max_results=50))) == 2
        assert len(names(session.do("search", pattern="github", max_results=50))) == 2
        assert len(names(session.search(f"select:{CREATE},list_issues,{SEND}"))) == 3

    def test_search_tool_offers_what_the_policy_gives(self, agent: Agent) -> None:
        change_default(max_results=3)
        session = agent.begin()
        for form, field in (("mcp", "inputSchema"), ("stub", "inputSchema"), ("anthropic", "input_schema")):
            schema = session.tools(format=form)["search_tool"][field]
            assert schema["properties"]["max_results"]["maximum"] == 3
        schema = session.tools(format="openai")["tools"][0]["parameters"]
        assert schema["properties"]["max_results"]["maximum"] == 3

    def test_body_that_a_model_wrote_may_have_fields_that_nobody_knows(self, agent: Agent) -> None:
        found = agent.begin().search("create issue", limit=3, reason="the user asked")
        assert found["outcome"] == "matched"

    @pytest.mark.parametrize("ranker", ["bm25f", "keyword", "overlap"])
    def test_own_tool_is_first_by_its_name_whatever_the_catalog_says(self, agent: Agent, ranker: str) -> None:
        change_default(ranker=ranker)
        own = {"name": "issue", "shouldDefer": True}
        session = agent.begin(builtin_tools=[own])
        assert names(session.search("**issue**"))[0] == "issue"
        assert names(session.search("(send_message)"))[0] == SEND

    def test_required_word_filters(self, agent: Agent) -> None:
        found = agent.begin().search("+slack issue")
        assert (found["form"], names(found)) == ("required", [SEND])

    def test_pattern_is_a_regular_expression(self, agent: Agent) -> None:
        found = agent.begin().do("search", pattern="^mcp__github__.*issue")
        assert (found["form"], names(found)) == ("pattern", [CREATE, "mcp__github__list_issues"])


class TestNothingFound:
    def test_no_match_says_which_words_are_unknown_and_lists_the_deferred(self, agent: Agent) -> None:
        found = agent.begin().search("zebra xylophone")
        assert (found["outcome"], found["matches"], found["loaded"]) == ("no_match", [], [])
        assert found["unmatched_terms"] == ["zebra", "xylophone"]
        assert len(found["fallback"]) == 5
        assert found["anthropic"][0]["type"] == "text"
        assert "zebra" in found["message"]

    def test_empty_query_browses_and_loads_nothing(self, agent: Agent) -> None:
        session = agent.begin()
        found = session.search("")
        assert (found["outcome"], found["form"], len(found["fallback"])) == ("listing", "listing", 5)
        assert session.state()["counts"]["discovered"] == 0

    def test_loaded_tools_are_not_listed_as_deferred(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{SEND}")
        assert SEND not in [tool["name"] for tool in session.search("")["fallback"]]

    def test_inactive_when_nothing_is_deferred(self, agent: Agent) -> None:
        change_default(mode="off")
        found = agent.begin().search("create issue")
        assert (found["outcome"], found["matches"]) == ("inactive", [])
        assert "inactive" in found["message"]
        assert found["anthropic"][0]["type"] == "text"

    def test_tool_hidden_a_moment_ago_is_not_found_before_anything_follows(self, agent: Agent) -> None:
        session = agent.begin()
        tool_settings.change_tool(tool=Tool.objects.get(name="create_issue"), actor=COMMAND_LINE, hidden=True)
        assert CREATE not in names(session.search("create issue"))
        assert CREATE not in names(session.search(f"select:{CREATE}"))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": "a", "pattern": "b"},
        {"query": "x" * 501},
        {"pattern": "x" * 201},
        {"pattern": "("},
        {"query": "a", "max_results": 0},
        {"query": "a", "max_results": 51},
        {"query": f"select:{','.join(f'tool_{number}' for number in range(21))}"},
    ],
)
def test_what_cannot_be_asked_is_422_with_a_place(agent: Agent, body: dict[str, Any]) -> None:
    answer = agent.call("POST", f"{agent.begin().path}/search", body)
    assert answer.status_code == 422
    assert all(error["place"] for error in answer.json()["errors"])


class TestRecord:
    def test_searches_are_written_together_later(self, agent: Agent) -> None:
        session = agent.begin()
        session.search("create issue", max_results=1)
        session.search("zebra")
        assert SearchEvent.objects.count() == 0
        write_behind.flush()
        first = SearchEvent.objects.get(outcome="matched")
        assert (first.query, first.form, first.hits[0][0]) == ("create issue", "keywords", CREATE)
        assert first.tokens_loaded > 0
        assert SearchEvent.objects.filter(outcome="no_match", tokens_loaded=0).count() == 1

    def test_long_query_is_kept_cut(self, agent: Agent) -> None:
        agent.begin().search(f"select:{CREATE},{'x' * 5_000}")
        write_behind.flush()
        kept = SearchEvent.objects.get().query
        assert kept.startswith(f"select:{CREATE},xxx")
        assert len(kept) == 500

    def test_searches_wait_for_a_database_that_is_away(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise OperationalError("server closed the connection unexpectedly")

        session = agent.begin()
        session.search("create issue")
        with monkeypatch.context() as away:
            away.setattr(events, "write_events", fail)
            with pytest.raises(OperationalError):
                write_behind.flush()
        assert SearchEvent.objects.count() == 0
        session.search("send a message")
        write_behind.flush()
        asked = SearchEvent.objects.order_by("at").values_list("query", flat=True)
        assert list(asked) == ["create issue", "send a message"]

    def test_search_of_a_deleted_session_is_not_recorded(self, agent: Agent) -> None:
        session = agent.begin()
        session.search("create issue")
        agent.call("DELETE", session.path)
        write_behind.flush()
        assert not SearchEvent.objects.exists()

    def test_old_searches_are_forgotten(self, agent: Agent, settings: Any) -> None:
        agent.begin().search("create issue")
        write_behind.flush()
        event = SearchEvent.objects.get()
        settings.KEEP_SEARCHES_DAYS = 0
        assert eviction.prune_searches(now=event.at) == 0
        settings.KEEP_SEARCHES_DAYS = -1
        assert eviction.prune_searches(now=event.at) == 1


def test_repeated_search_writes_nothing(agent: Agent, django_assert_max_num_queries: Any) -> None:
    session = agent.begin()
    session.search("create issue")
    with django_assert_max_num_queries(5) as queries:
        session.search("create issue")
    assert not [query for query in queries if not query["sql"].lstrip().startswith("SELECT")]


def test_index_that_is_away_is_no_reason_not_to_answer(agent: Agent, index_folder: Any) -> None:
    index_folder.rename(index_folder.with_name("elsewhere"))
    assert names(make_agent().begin().search("create issue"))[0] == CREATE


class TestStatements:
    def test_search_that_loads_makes_five(self, agent: Agent) -> None:
        agent.begin().search("create issue")  # what the process remembers is in place
        session = agent.begin()
        made = statements_of(lambda: session.search("create issue"))
        assert len(made) == 5, made
        assert [sql.split()[0] for sql in made] == ["SELECT", "SELECT", "SELECT", "INSERT", "UPDATE"]

    def test_new_tools_and_old_ones_that_are_used_again_are_one_statement(self, agent: Agent) -> None:
        session = agent.begin()
        session.search(f"select:{CREATE}")
        session.do("turns")
        made = statements_of(lambda: session.search(f"select:{SEND},{CREATE}"))
        assert len(made) == 5, made
        rows = LoadedTool.objects.order_by("position")
        assert list(rows.values_list("name", "position", "loaded_turn", "used_turn", "used_order")) == [
            (CREATE, 1, 0, 1, 2),
            (SEND, 2, 1, 1, 2),
        ]

    def test_search_that_loads_nothing_new_makes_one(self, agent: Agent) -> None:
        session = agent.begin()
        session.search("create issue")
        assert len(statements_of(lambda: session.search("create issue"))) == 1
        assert len(statements_of(lambda: session.search("zzz"))) == 1

    def test_session_with_tools_of_its_own_makes_one_more(self, agent: Agent) -> None:
        session = agent.begin(builtin_tools=[{"name": "bash", "inputSchema": {"type": "object"}}])
        session.search(f"select:{CREATE}")
        made = statements_of(lambda: session.search(f"select:{SEND}"))
        assert len(made) == 6, made

    def test_only_what_changed_of_a_session_is_written(self, agent: Agent) -> None:
        session = agent.begin(builtin_tools=[{"name": "bash", "inputSchema": {"type": "object"}}])
        [update] = [
            sql for sql in statements_of(lambda: session.search("create issue")) if sql.startswith("UPDATE")
        ]
        written = re.findall(r'"(\w+)" = ', update.partition(" SET ")[2].partition(" WHERE ")[0])
        assert sorted(written) == ["expires_at", "last_seen_at", "version"]

    def test_use_is_noted_once(self, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        noted: list[Any] = []
        session = agent.begin()
        monkeypatch.setattr(key_uses, "enqueue", lambda key_id, _: noted.append(key_id))
        monkeypatch.setattr(write_behind, "enqueue_seen", noted.append)
        session.search("create issue")
        assert noted == [agent.key.pk, uuid.UUID(session.id)]
