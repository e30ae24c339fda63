"""The page of agents' sessions."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access import Role
from sessions.models import LoadedTool
from tests.pages import HTMX, signed_in, text_of, visible_text
from tests.rows import make_key, make_session

pytestmark = pytest.mark.django_db


def test_shows_each_session_with_what_it_loaded() -> None:
    session = make_session(key=make_key(name="coder"), external_id="chat-7", model="some-model", turn=12)
    for position in range(3):
        LoadedTool.objects.create(
            session=session, name=f"tool-{position}", position=position, loaded_turn=1, used_turn=1
        )
    page = visible_text(signed_in(Role.VIEWER).get("/sessions/"))
    for words in ("chat-7", str(session.id), "coder", "default", "some-model", "12 3 just now"):
        assert words in page


def test_latest_seen_comes_first() -> None:
    now = timezone.now()
    old = make_session(last_seen_at=now - timedelta(hours=2))
    new = make_session(last_seen_at=now)
    assert signed_in(Role.VIEWER).get("/sessions/").context["page"].rows == [new, old]


def test_empty_list_says_how_an_agent_starts_one() -> None:
    page = visible_text(signed_in(Role.VIEWER).get("/sessions/"))
    assert "curl -X POST http://testserver/api/v1/sessions" in page


def test_part_is_the_table_alone() -> None:
    response = signed_in(Role.VIEWER).get("/sessions/", headers=HTMX)
    assert "<html" not in text_of(response)
    assert 'id="session-table"' in text_of(response)


def test_costs_the_same_queries_for_many(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for _ in range(20):
        make_session()
    client = signed_in(Role.VIEWER)
    client.get("/sessions/")
    with django_assert_num_queries(6):
        client.get("/sessions/")


def test_needs_sign_in_and_a_role_and_only_reads(client: Client) -> None:
    assert client.get("/sessions/").status_code == 302
    assert signed_in(Role.NONE).get("/sessions/").status_code == 403
    assert signed_in(Role.ADMIN).post("/sessions/").status_code == 405
