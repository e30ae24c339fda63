"""The page of agents' sessions."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from sessions.models import AgentSession, LoadedTool
from sessions.selectors import session_table
from sessions.selectors.session_table import SessionFilter
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_event, make_key, make_policy, make_session

pytestmark = pytest.mark.django_db


def test_shows_each_session_with_what_it_loaded() -> None:
    session = make_session(key=make_key(name="coder"), external_id="chat-7", model="some-model", turn=12)
    for position in range(3):
        LoadedTool.objects.create(
            session=session, name=f"tool-{position}", position=position, loaded_turn=1, used_turn=1
        )
    page = visible_text(signed_in(Role.VIEWER).get("/sessions/"))
    for words in ("chat-7", str(session.id), "Active", "coder", "default", "some-model", "12 3 – – just now"):
        assert words in page


def test_shows_the_tokens_of_its_last_event() -> None:
    session = make_session()
    for turn, sent in enumerate((500, 250)):
        make_event(session, turn=turn, tokens_sent=sent, tokens_full=1000)
    assert "0 0 250 75% just now" in visible_text(signed_in(Role.VIEWER).get("/sessions/"))


def test_latest_seen_comes_first() -> None:
    now = timezone.now()
    old = make_session(last_seen_at=now - timedelta(hours=2))
    new = make_session(last_seen_at=now)
    assert listed(signed_in(Role.VIEWER), "/sessions/") == [new, old]


class TestFilters:
    def test_narrow_the_list_and_stay_in_the_url(self) -> None:
        now = timezone.now()
        other = make_policy(slug="other")
        active = make_session(external_id="Billing-7", model="some-model")
        idle = make_session(policy=other, last_seen_at=now - timedelta(hours=2))
        expired = make_session(expires_at=now - timedelta(seconds=1))
        client = signed_in(Role.VIEWER)
        for query, found in [
            ("state=active", [active]),
            ("state=idle", [idle]),
            ("state=expired", [expired]),
            ("policy=other", [idle]),
            (f"key={expired.key_id}", [expired]),
            ("q=billing", [active]),
            ("q=some-mod", [active]),
            (f"q={idle.pk}", [idle]),
            ("q=nothing", []),
            ("state=nonsense&key=-1", [expired, active, idle]),
        ]:
            assert listed(client, f"/sessions/?{query}") == found, query

    def test_choices_are_marked_and_a_filter_without_match_says_so(self) -> None:
        session = make_session(key=make_key(name="coder"))
        make_key(name="writer")
        page = text_of(signed_in(Role.VIEWER).get(f"/sessions/?state=idle&key={session.key_id}"))
        assert '<option value="idle" selected>' in page
        assert f'<option selected value="{session.key_id}">coder' in page
        assert "No session matches" in page


class TestAskingAgain:
    def test_answer_is_empty_until_something_changes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        session = make_session()
        client = signed_in(Role.VIEWER)
        now = timezone.now()
        monkeypatch.setattr(timezone, "now", lambda: now)  # the minute must not end between two looks
        stamp = client.get("/sessions/").context["stamp"]
        again = {**HTMX, "X-Seen": stamp}
        assert client.get("/sessions/", headers=again).status_code == 204
        AgentSession.objects.filter(pk=session.pk).update(turn=5)
        assert client.get("/sessions/", headers=again).status_code == 200
        assert client.get("/sessions/", headers={"X-Seen": stamp}).status_code == 200

    def test_times_are_told_anew_every_minute(self) -> None:
        make_session()
        now = timezone.now()
        page = session_table.sessions_for_table(SessionFilter(), now=now)
        stamps = {session_table.stamp_table(page, now=now + timedelta(minutes=passed)) for passed in (0, 1)}
        assert len(stamps) == 2


def test_empty_list_says_how_an_agent_starts_one() -> None:
    page = visible_text(signed_in(Role.VIEWER).get("/sessions/"))
    assert "curl -X POST http://testserver/api/v1/sessions" in page


def test_part_is_the_table_alone() -> None:
    response = signed_in(Role.VIEWER).get("/sessions/", headers=HTMX)
    assert "<html" not in text_of(response)
    assert 'id="session-table"' in text_of(response)


def test_costs_the_same_queries_for_many(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    key, client = make_key(), signed_in(Role.VIEWER)
    make_session(key=key)
    client.get("/sessions/")
    with django_assert_num_queries(9):
        client.get("/sessions/")
    for _ in range(60):
        make_event(make_session(key=key))
    with django_assert_num_queries(9):
        client.get("/sessions/")
    with django_assert_num_queries(7):
        client.get("/sessions/?page=2", headers=HTMX)


def test_page_of_ten_thousand_touches_only_its_own_rows() -> None:
    """The plan of what is counted beside the rows: by index, never over all sessions."""
    make_event(make_session())
    with CaptureQueriesContext(connection) as ran:
        session_table.sessions_for_table(SessionFilter(), now=timezone.now())
    told = [query["sql"] for query in ran if "loadedtool" in query["sql"] or "sessionevent" in query["sql"]]
    assert len(told) == 2
    for sql in told:
        assert " IN (" in sql
        if connection.vendor == "sqlite":
            plan = " ".join(str(row) for row in _explain(sql))
            assert "SCAN agent_sessions_loadedtool" not in plan
            assert "SCAN agent_sessions_sessionevent" not in plan


def test_needs_sign_in_and_a_role_and_only_reads(client: Client) -> None:
    assert client.get("/sessions/").status_code == 302
    assert signed_in(Role.NONE).get("/sessions/").status_code == 403
    assert signed_in(Role.ADMIN).post("/sessions/").status_code == 405


def listed(client: Client, address: str) -> list[AgentSession]:
    return [row.session for row in client.get(address).context["page"].rows]


def _explain(sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        return list(cursor.fetchall())
