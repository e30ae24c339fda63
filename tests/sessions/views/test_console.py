"""The test console: what an agent's search finds, why, what it loads, and what the agent is told."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.domain.encoder_setting import EncoderSetting
from catalog.domain.policy import DEFAULT_MEANING_FLOOR
from catalog.models import Change, Policy
from catalog.models.changes import Subject
from catalog.search.request import MatchedBy
from catalog.services import reindex, saved_queries
from sessions.models import LoadedTool, SearchEvent, SearchEventOutcome
from sessions.services.loading import SearchCall, search_and_load
from sessions.services.search_results import describe_result
from tests.harness.encoders import encoder_in_force
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_policy, make_server, make_session, make_tool
from tests.harness.searches import watch_searches

pytestmark = pytest.mark.django_db

FIXED_QUERIES = 9  # who is signed in, the policy, its versions, the saved query, the session of the sign-in


@pytest.fixture
def catalog() -> None:
    github, slack = make_server(name="github"), make_server(name="slack")
    make_tool(server=github, name="create_issue", description="Open a ticket about a defect.")
    make_tool(server=github, name="merge_branch", description="Join two branches.")
    make_tool(server=slack, name="send_message", description="Write to a channel.")


def ask(query: str, role: Role = Role.VIEWER, /, **parameters: str) -> Any:
    return signed_in(role).get("/console/", {"q": query, **parameters})


def names(response: Any) -> list[str]:
    return [row.tool.tool for row in response.context["rows"]]


class TestStart:
    def test_empty_query_shows_how_to_ask(self) -> None:
        page = visible_text(signed_in(Role.VIEWER).get("/console/"))
        assert "How to ask" in page
        assert "select:" in page
        assert "No agent has searched yet" in page

    @pytest.mark.usefixtures("catalog")
    def test_saved_queries_are_at_hand(self) -> None:
        saved_queries.save_query(
            policy=Policy.objects.get(slug="default"),
            query="+slack send",
            expected=["send_message"],
            actor=COMMAND_LINE,
        )
        response = signed_in(Role.VIEWER).get("/console/")
        assert "+slack send not run" in visible_text(response)
        assert 'href="?q=%2Bslack+send"' in text_of(response)

    @pytest.mark.usefixtures("catalog")
    def test_own_last_queries_are_kept_and_typing_is_one_query(self) -> None:
        client = signed_in(Role.VIEWER)
        for query in ("se", "send", "send mes", "ticket", "send"):
            client.get("/console/", {"q": query}, headers=HTMX)
        assert client.get("/console/").context["mine"] == ["send", "ticket", "send mes"]

    @pytest.mark.usefixtures("catalog")
    def test_query_that_cannot_be_read_is_not_kept(self) -> None:
        client = signed_in(Role.VIEWER)
        client.get("/console/", {"q": "x" * 501})
        assert client.get("/console/").context["mine"] == []

    def test_agents_last_queries_are_listed_once_with_what_they_found(self) -> None:
        session = make_session()
        for query, outcome in [
            ("send", "matched"),
            ("zebra", "no_match"),
            ("send", "matched"),
            ("", "listing"),
        ]:
            SearchEvent.objects.create(
                session=session, at=session.last_seen_at, turn=0, query=query, form="keywords",
                outcome=outcome, hits=[["a", 1.0]] if outcome == "matched" else [], took_us=5,
            )  # fmt: skip
        response = signed_in(Role.VIEWER).get("/console/")
        theirs = response.context["theirs"]
        assert [(one.query, one.hits) for one in theirs] == [("send", 1), ("zebra", 0)]
        assert theirs[1].outcome is SearchEventOutcome.NO_MATCH
        assert "no match" in visible_text(response)


@pytest.mark.usefixtures("catalog")
class TestHits:
    def test_hit_is_explained_by_word_and_field(self) -> None:
        response = ask("ticket")
        assert names(response) == ["create_issue"]
        explained = response.context["rows"][0].explained
        assert [term.term for term in explained.terms] == ["ticket"]
        assert explained.terms[0].total == pytest.approx(explained.score, abs=1e-4)

    def test_words_that_were_found_are_marked_in_whatever_form(self) -> None:
        page = text_of(ask("branch"))
        assert "merge_<mark>branch</mark>" in page
        assert "Join two <mark>branches</mark>." in page

    def test_other_rankers_mark_what_they_found_inside_words(self) -> None:
        assert "merge_<mark>bran</mark>ch" in text_of(ask("bran", ranker="keyword"))

    def test_long_description_is_shown_where_the_word_stands(self) -> None:
        make_tool(name="long", description=f"{'Filler. ' * 100}The zeppelin lands. {'More. ' * 100}")
        page = visible_text(ask("zeppelin"))
        assert "… Filler." in page.replace("…Filler", "… Filler")
        assert re.search(r"The\s+zeppelin\s+lands", page)

    @pytest.mark.parametrize("ranker", ["bm25f", "keyword", "overlap"])
    def test_ranker_is_taken_from_the_url(self, ranker: str) -> None:
        assert names(ask("send message", ranker=ranker))[0] == "send_message"

    def test_values_that_mean_nothing_give_way_to_the_defaults(self) -> None:
        parameters = {"ranker": "magic", "limit": "-1", "view": "x", "read_as": "y", "as": "session:nobody"}
        response = ask("send", **parameters)
        assert response.context["searcher"].value == "default"
        assert names(response)[0] == "send_message"

    def test_pattern_is_tried_as_one(self) -> None:
        response = ask("^(create|merge)_", read_as="pattern")
        assert names(response) == ["create_issue", "merge_branch"]
        assert "a regular expression" in visible_text(response)
        assert ask("(", read_as="pattern").status_code == 422

    def test_part_is_the_results_alone(self) -> None:
        response = signed_in(Role.VIEWER).get("/console/?q=ticket", headers=HTMX)
        assert "<html" not in text_of(response)
        assert 'id="console-results"' in text_of(response)

    def test_policy_says_how_many_at_most(self) -> None:
        server = make_server(name="many")
        for number in range(9):
            make_tool(server=server, name=f"paint_{number}", description="Paint a wall.")
        response = ask("paint", limit="10")
        assert len(names(response)) == 5
        assert "5 results at most, as the policy says" in visible_text(response)
        assert "as the policy says" not in visible_text(ask("paint", limit="5"))

    def test_number_of_queries_does_not_grow_with_the_hits(self, django_assert_num_queries: Any) -> None:
        server = make_server(name="many")
        for number in range(25):
            make_tool(server=server, name=f"paint_{number}", description="Paint a wall.")
        Policy.objects.update(max_results=50)
        client = signed_in(Role.VIEWER)
        client.get("/console/?q=paint&limit=50", headers=HTMX)
        with django_assert_num_queries(FIXED_QUERIES):
            response = client.get("/console/?q=paint&limit=50", headers=HTMX)
        assert len(response.context["rows"]) == 25


@pytest.mark.usefixtures("catalog")
class TestReading:
    def test_required_words_are_named(self) -> None:
        page = visible_text(ask("+slack send"))
        assert re.search(r"required words, the rest ranked\s+· required\s+slack", page)

    def test_selection_names_what_is_missing(self) -> None:
        page = visible_text(ask("select:create_issue,nowhere"))
        assert "tools by name" in page
        assert re.search(r"No tool is named\s+nowhere", page)

    def test_words_that_no_tool_has_are_named(self) -> None:
        page = visible_text(ask("zebra"))
        assert re.search(r"No tool has the word\s+zebra", page)
        assert "No tool matches" in page
        assert "names of 3 deferred tools" in page

    def test_what_only_meaning_found_is_told_as_that(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "meaning" not in visible_text(ask("send message"))
        searches = watch_searches(monkeypatch, by=MatchedBy.BOTH)
        assert "by meaning" not in visible_text(ask("send message"))
        searches.by = MatchedBy.MEANING
        for view in ("", "rankers", "answer"):
            page = visible_text(ask("send message", view=view))
            assert re.search(r"This tool has no word of the query: it is\s+the nearest in meaning", page)
            assert f"meaning floor is {DEFAULT_MEANING_FLOOR}" in page
        page = visible_text(ask("message branches"))
        assert re.search(r"None of these tools has a word of the\s+query: they are", page)
        assert page.count("by meaning") == 2

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("words", r"bm25f with word vectors ·"),
            ("none", r"bm25f with words alone ·"),
            ("onnx:/nowhere", r"bm25f with a sentence encoder\s+\(cannot be used\) ·"),
        ],
    )
    def test_what_the_meaning_comes_from_is_told(self, value: str, words: str, tmp_path: Path) -> None:
        with encoder_in_force(EncoderSetting(value), tmp_path / "rest"):
            assert re.search(words, visible_text(ask("send message")))
            assert "vectors" not in visible_text(ask("send message", ranker="overlap"))

    def test_near_miss_leads_to_the_corrected_query(self) -> None:
        reindex.rebuild()
        response = ask("send a mesage")
        assert re.search(r"Did you mean\s+message\b.* for mesage\?", visible_text(response))
        assert 'href="?q=send+a+message"' in text_of(response)

    def test_mistake_is_told_in_place(self) -> None:
        response = signed_in(Role.VIEWER).get("/console/", {"q": "x" * 501}, headers=HTMX)
        assert response.status_code == 422
        assert "at most 500 characters" in visible_text(response)


@pytest.mark.usefixtures("catalog")
class TestWhatWouldBeLoaded:
    def test_cost_is_what_the_tools_weigh(self) -> None:
        response = ask("send message", limit="5")
        trial = response.context["trial"]
        assert trial.result.loaded == ("mcp__slack__send_message",)
        assert trial.added_tokens == response.context["rows"][0].tokens
        assert "would be loaded" in visible_text(response)

    def test_policy_that_hides_a_tool_does_not_find_it(self) -> None:
        make_policy(slug="chat", visible=["slack/*"])
        assert names(ask("ticket", **{"as": "chat"})) == []
        assert names(ask("channel", **{"as": "chat"})) == ["send_message"]

    def test_where_nothing_is_deferred_it_says_so_and_shows_the_hits(self) -> None:
        make_policy(slug="eager", mode="off")
        response = ask("ticket", **{"as": "eager"})
        assert "Nothing is deferred here" in visible_text(response)
        assert names(response) == ["create_issue"]

    def test_what_the_policy_has_no_room_for_is_told(self) -> None:
        make_policy(slug="small", max_loaded_tools=1, ranker="overlap")
        response = ask("merge send", **{"as": "small"})
        assert [(row.is_new, row.is_in_force) for row in response.context["rows"]] == [
            (True, False),
            (False, False),
        ]
        assert "past the limit" in visible_text(response)

    def test_session_is_looked_through_and_left_as_it_was(self) -> None:
        session = make_session(external_id="agent-7")
        search_and_load(session=session, call=SearchCall(query="send message"))
        version = type(session).objects.get(pk=session.pk).version
        response = ask("send ticket", **{"as": f"session:{session.pk}"})
        assert "agent-7" in visible_text(response)
        assert response.context["trial"].result.loaded == ("mcp__github__create_issue",)
        assert [row.is_new for row in response.context["rows"]].count(True) == 1
        assert "loaded already" in visible_text(response)
        assert [tool.name for tool in LoadedTool.objects.all()] == ["mcp__slack__send_message"]
        assert type(session).objects.get(pk=session.pk).version == version


@pytest.mark.usefixtures("catalog")
class TestLoadingIntoASession:
    def test_search_is_made_in_the_agents_place_and_recorded(self) -> None:
        session, client = make_session(), signed_in(Role.EDITOR)
        tried = client.get("/console/", {"q": "send message", "as": f"session:{session.pk}"})
        assert f'action="/sessions/{session.pk}/load/"' in text_of(tried)
        sent = {"q": "send message", "next": "/console/?q=send"}
        response = client.post(f"/sessions/{session.pk}/load/", sent)
        assert response.headers["Location"] == "/console/?q=send"
        assert [tool.name for tool in LoadedTool.objects.all()] == ["mcp__slack__send_message"]
        assert SearchEvent.objects.get().query == "send message"
        change = Change.objects.get(subject=Subject.SESSION)
        assert change.after == {"loaded": ["mcp__slack__send_message"]}

    def test_mistake_is_told_and_nothing_is_loaded(self) -> None:
        session, client = make_session(), signed_in(Role.EDITOR)
        client.post(f"/sessions/{session.pk}/load/", {"q": "(", "read_as": "pattern"})
        assert "Nothing was loaded" in visible_text(client.get("/console/"))
        assert not LoadedTool.objects.exists()

    def test_is_not_offered_to_viewers_for_policies_or_for_another_ranker(self) -> None:
        session = make_session()
        role, form = {"as": f"session:{session.pk}"}, "/load/"
        assert form not in text_of(ask("send", Role.VIEWER, **role))
        assert form not in text_of(ask("send", Role.EDITOR))
        assert form not in text_of(ask("send", Role.EDITOR, ranker="overlap", **role))
        assert signed_in(Role.VIEWER).post(f"/sessions/{session.pk}/load/").status_code == 403


@pytest.mark.usefixtures("catalog")
class TestAnswer:
    def test_is_what_the_agent_of_a_session_gets(self) -> None:
        session = make_session()
        shown = self.read_answer(ask("send message", view="answer", **{"as": f"session:{session.pk}"}))
        given = describe_result(search_and_load(session=session, call=SearchCall(query="send message")))
        assert {**shown, "took_ms": 0} == {**given, "took_ms": 0}

    def test_unseen_characters_survive_copying(self) -> None:
        make_tool(name="sly", description="Paint\u202e \U000e0041walls.")
        response = ask("paint", view="answer")
        assert "\u202e" not in text_of(response)
        assert self.read_answer(response)["matches"][0]["description"] == "Paint\u202e \U000e0041walls."

    @staticmethod
    def read_answer(response: Any) -> dict[str, Any]:
        found = re.search(r'id="answer-json"[^>]*>(.*?)</pre>', text_of(response), re.DOTALL)
        assert found
        answer: dict[str, Any] = json.loads(html.unescape(found[1]))
        return answer


@pytest.mark.usefixtures("catalog")
class TestRankers:
    def test_columns_begin_with_the_policys_own(self) -> None:
        make_policy(slug="old", ranker="overlap")
        chart = ask("send message", view="rankers", **{"as": "old"}).context["chart"]
        assert [column.ranker for column in chart.columns] == ["overlap", "bm25f", "keyword"]

    def test_nothing_found_by_any_is_told(self) -> None:
        assert "None of them finds a tool" in visible_text(ask("zebra", view="rankers"))


@pytest.mark.usefixtures("catalog")
class TestSaving:
    def test_saved_query_shows_what_it_should_find(self) -> None:
        policy = Policy.objects.get(slug="default")
        saved_queries.save_query(
            policy=policy, query="ticket", expected=["create_issue", "send_message"], actor=COMMAND_LINE
        )
        response = ask("ticket", Role.EDITOR)
        assert "should be found" in visible_text(response)
        assert response.context["unfound"] == "mcp__slack__send_message"

    def test_form_that_was_refused_is_open_with_what_was_typed(self) -> None:
        client = signed_in(Role.EDITOR)
        address = "/console/?q=issue"
        shown = [row.tool.name for row in client.get(address).context["rows"]]
        sent = {"policy": "default", "query": "issue", "expected": shown[1:], "others": "nowhere"}
        page = client.post("/console/saved/save/", {**sent, "next": address}, follow=True)
        assert "there is no tool nowhere" in visible_text(page)
        assert re.search(r'<details class="card save-query" open>', text_of(page))
        assert [row.tool.name for row in page.context["rows"] if row.is_expected] == shown[1:]
        assert page.context["unfound"] == "nowhere"
        assert page.context["typed"]
        assert client.get(address).context["typed"] is None

    def test_is_offered_to_editors_and_for_queries_only(self) -> None:
        form = 'action="/console/saved/save/"'
        assert form in text_of(ask("ticket", Role.EDITOR))
        assert form not in text_of(ask("ticket", Role.VIEWER))
        assert form not in text_of(ask("ticket", Role.EDITOR, read_as="pattern"))


def test_needs_sign_in_and_a_role_and_only_reads(client: Client) -> None:
    assert client.get("/console/").status_code == 302
    assert signed_in(Role.NONE).get("/console/").status_code == 403
    assert signed_in(Role.ADMIN).post("/console/").status_code == 405
