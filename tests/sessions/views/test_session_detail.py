"""A session's page: state, history and actions."""

import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.console.cursors import write_cursor
from catalog.models import Change
from sessions.models import AgentSession, EventKind, LoadedTool, SearchEventOutcome
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_event, make_key, make_search, make_session
from tests.sessions.api.calling import Conversation, fill_catalog, make_agent
from tests.sessions.conftest import Recording

pytestmark = pytest.mark.django_db


@pytest.fixture
def talk(recording: Recording) -> Conversation:
    fill_catalog()
    with recording():
        begun = make_agent().begin(external_id="chat-7", model="some-model")
        begun.search("create issue", max_results=1)
        begun.do("turns", context_used=1500)
    return begun


@pytest.fixture
def session(talk: Conversation) -> AgentSession:
    return AgentSession.objects.get(pk=talk.id)


class TestWhatIsShown:
    def test_state_course_timeline_and_tools(self, talk: Conversation, session: AgentSession) -> None:
        page = visible_text(signed_in(Role.VIEWER).get(session.get_absolute_url()))
        state = talk.state()
        for words in (
            "chat-7",
            "Active",
            "some-model",
            f"Its tool list costs now {state['tokens']['sent']} tokens",
            f"With everything loaded {state['tokens']['full']} tokens",
            "1 tool in full, 1 of them discovered; 4 wait for a search",
            "Over 2 turns, deferring costs",
            "Turn 1 started with 1,500 tokens of context used",
            "Loaded 1 tool mcp__github__create_issue",
            "Searched create issue 1 found",
            "Session started",
            "create_issue github · turn 0",
            "1,500 of 200,000 tokens",
        ):
            assert words in page, words

    @pytest.mark.parametrize(
        ("role", "sees_it"), [(Role.VIEWER, False), (Role.EDITOR, False), (Role.ADMIN, True)]
    )
    def test_only_admins_see_how_its_key_begins(
        self, session: AgentSession, role: Role, sees_it: bool
    ) -> None:
        page = text_of(signed_in(role).get(session.get_absolute_url()))
        assert (session.key.prefix in page) == sees_it
        assert session.key.name in page

    def test_table_holds_what_the_chart_draws(self, session: AgentSession) -> None:
        shown = signed_in(Role.VIEWER).get(session.get_absolute_url())
        points = shown.context["shown"].token_history.points
        assert [point.turn for point in points] == [0, 1]
        for point in points:
            row = f'<tr data-turn="{point.turn}" data-sent="{point.sent}" data-full="{point.full}">'
            assert row in text_of(shown)

    def test_every_kind_of_event_is_told(self) -> None:
        session = make_session()
        for kind in EventKind:
            make_event(session, kind=kind, loaded_count=2, unloaded_count=3, snapshot_turn=7, by="erin")
        make_search(session, outcome=SearchEventOutcome.NO_MATCH, query="play jazz")
        make_search(session, outcome=SearchEventOutcome.LISTING, query="")
        make_search(session, outcome=SearchEventOutcome.INACTIVE)
        page = visible_text(signed_in(Role.VIEWER).get(session.get_absolute_url()))
        for words in (
            "Session started",
            "The agent changed its session",
            "Turn 0 started",
            "Loaded 2 tools",
            "Unloaded 3 tools",
            "Took a snapshot",
            "The conversation was compacted",
            "Restored the snapshot of turn 7",
            "Reset by erin",
            "Searched play jazz found nothing",
            "Listed the tools list",
            "nothing is deferred",
        ):
            assert words in page, words

    def test_search_opens_in_the_test_console_as_this_session(self) -> None:
        session = make_session()
        make_search(session, query="a & b")
        make_search(session, query="^x", form="pattern")
        page = text_of(signed_in(Role.VIEWER).get(session.get_absolute_url()))
        assert f'href="/console/?q=a%20%26%20b&amp;as=session:{session.pk}"' in page
        assert f'href="/console/?q=%5Ex&amp;as=session:{session.pk}&amp;read_as=pattern"' in page

    def test_many_names_end_in_a_count(self) -> None:
        session = make_session()
        make_event(session, kind=EventKind.LOADED, loaded=[f"tool_{n}" for n in range(9)], loaded_count=9)
        page = visible_text(signed_in(Role.VIEWER).get(session.get_absolute_url()))
        assert "tool_0 , tool_1 , tool_2 , tool_3 , tool_4 and 4 more" in page

    def test_tool_that_is_not_offered_any_more_is_named(self, session: AgentSession) -> None:
        LoadedTool.objects.create(
            session=session, name="mcp__gone__x", position=9, loaded_turn=0, used_turn=0
        )
        page = visible_text(signed_in(Role.VIEWER).get(session.get_absolute_url()))
        assert "no longer deferred or offered: mcp__gone__x" in page

    def test_fresh_and_expired_sessions_have_a_page(self) -> None:
        now = timezone.now()
        fresh = make_session()
        page = visible_text(signed_in(Role.VIEWER).get(fresh.get_absolute_url()))
        assert "Nothing is recorded yet" in page
        ended = make_session(expires_at=now - timedelta(seconds=1))
        page = text_of(signed_in(Role.ADMIN).get(ended.get_absolute_url()))
        assert "hx-trigger" not in page.partition('id="session-live"')[2].partition(">")[0]
        assert f"{ended.get_absolute_url()}reset/" not in page
        assert f"{ended.get_absolute_url()}delete/" in page

    def test_older_part_of_the_timeline_is_a_link_and_stands_still(self) -> None:
        session, now = make_session(), timezone.now()
        for second in range(50):
            make_event(session, at=now - timedelta(seconds=second), turn=100 - second)
        client = signed_in(Role.VIEWER)
        first = client.get(session.get_absolute_url())
        older = first.context["shown"].timeline.older
        second_page = client.get(session.get_absolute_url(), {"before": older.cursor})
        assert "Turn 60 started" in visible_text(second_page)
        assert "Turn 61 started" not in visible_text(second_page)
        assert "Back to the latest" in visible_text(second_page)
        assert "every 2s" not in text_of(second_page)
        nonsense = ["yesterday", "2026-01-01T00:00:00Z"]
        nonsense += [
            write_cursor(*values)
            for values in (
                ("2026-13-45T00:00:00Z", "event", "1"),
                ("2026-01-01T00:00:00", "event", "1"),
                ("2026-01-01T00:00:00Z", "other", "1"),
                ("2026-01-01T00:00:00Z", "event", "one"),
            )
        ]
        for text in nonsense:
            shown = client.get(session.get_absolute_url(), {"before": text})
            assert "Turn 100 started" in visible_text(shown)
        for at, pk in (("0001-01-01T00:00:00+14:00", "1"), ("9999-12-31T23:59:59-12:00", "9" * 30)):
            far = write_cursor(at, "search", pk)
            assert client.get(session.get_absolute_url(), {"before": far}).status_code == 200


class TestFollowing:
    def test_answer_is_empty_until_something_happens(
        self, talk: Conversation, session: AgentSession, recording: Recording
    ) -> None:
        client, address = signed_in(Role.VIEWER), session.get_absolute_url()
        seen = client.get(address).context["shown"].watched.stamp
        assert client.get(address, headers={**HTMX, "X-Seen": seen}).status_code == 204
        for what in ({"query": "zzzz"}, {"query": "read a file"}):
            with recording():
                talk.do("search", **what)
            part = client.get(address, headers={**HTMX, "X-Seen": seen})
            assert part.status_code == 200
            assert "<html" not in text_of(part)
            assert f"Searched {what['query']}" in visible_text(part)
            seen = part.context["shown"].watched.stamp

    def test_catalog_that_changes_is_news_too(self, session: AgentSession) -> None:
        client, address = signed_in(Role.VIEWER), session.get_absolute_url()
        seen = client.get(address).context["shown"].watched.stamp
        session.policy.version += 1
        session.policy.save()
        assert client.get(address, headers={**HTMX, "X-Seen": seen}).status_code == 200

    def test_empty_answer_costs_two_reads_beside_the_readers_own(
        self, session: AgentSession, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        client, address = signed_in(Role.VIEWER), session.get_absolute_url()
        seen = client.get(address).context["shown"].watched.stamp
        with django_assert_num_queries(5):
            client.get(address, headers={**HTMX, "X-Seen": seen})

    def test_whole_page_costs_the_same_whatever_happened(
        self, session: AgentSession, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        client, address = signed_in(Role.VIEWER), session.get_absolute_url()
        client.get(address)
        with django_assert_num_queries(9):
            client.get(address)
        for turn in range(30):
            make_event(session, turn=turn)
            make_search(session, turn=turn)
        with django_assert_num_queries(9):
            client.get(address)

    def test_session_that_ends_meanwhile_stops_the_asking(self, session: AgentSession) -> None:
        client, address = signed_in(Role.VIEWER), session.get_absolute_url()
        session.delete()
        part = client.get(address, headers=HTMX)
        assert part.status_code == 286
        assert "This session has ended" in visible_text(part)
        assert client.get(address).status_code == 404


class TestActing:
    def test_reset_unload_and_delete(self, talk: Conversation, session: AgentSession) -> None:
        client, address = signed_in(Role.ADMIN), session.get_absolute_url()
        talk.search("message")
        first, *others = session.loaded_tools.values_list("name", flat=True)
        one = client.post(f"{address}unload/", {"name": first}, follow=True)
        assert "Unloaded 1 tool." in visible_text(one)
        assert list(session.loaded_tools.values_list("name", flat=True)) == others
        every = client.post(f"{address}unload/", {"all": "1"}, follow=True)
        assert f"Unloaded {len(others)} tool" in visible_text(every)
        nothing = client.post(f"{address}unload/", {"name": first}, follow=True)
        assert "Nothing was unloaded" in visible_text(nothing)
        assert "The session is reset" in visible_text(client.post(f"{address}reset/", follow=True))
        gone = client.post(f"{address}delete/", follow=True)
        assert "The session chat-7 is deleted" in visible_text(gone)
        assert not AgentSession.objects.exists()
        assert Change.objects.filter(subject="session").count() == 4

    def test_expired_session_cannot_be_reset(self) -> None:
        session = make_session(expires_at=timezone.now() - timedelta(seconds=1))
        assert signed_in(Role.ADMIN).post(f"{session.get_absolute_url()}reset/").status_code == 404

    @pytest.mark.parametrize(
        ("role", "offered"),
        [
            (Role.VIEWER, set()),
            (Role.EDITOR, {"reset", "unload"}),
            (Role.ADMIN, {"reset", "unload", "delete"}),
        ],
    )
    def test_each_role_is_offered_what_it_may_do_and_refused_the_rest(
        self, session: AgentSession, role: Role, offered: set[str]
    ) -> None:
        client, address = signed_in(role), session.get_absolute_url()
        page = text_of(client.get(address))
        for action in ("reset", "unload", "delete"):
            assert (f'action="{address}{action}/"' in page) is (action in offered)
            if action not in offered:
                assert client.post(f"{address}{action}/").status_code == 403
        assert session.loaded_tools.count() == 1


def test_needs_sign_in_a_role_and_the_right_method(client: Client) -> None:
    address = make_session(key=make_key()).get_absolute_url()
    assert client.get(address).status_code == 302
    assert signed_in(Role.NONE).get(address).status_code == 403
    admin = signed_in(Role.ADMIN)
    assert admin.post(address).status_code == 405
    assert admin.get(f"{address}reset/").status_code == 405
    for path in ("", "reset/", "unload/", "delete/"):
        missing = f"/sessions/{uuid.uuid4()}/{path}"
        assert (admin.post(missing) if path else admin.get(missing)).status_code == 404
