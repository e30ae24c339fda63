"""The sessions that loaded a tool by a search."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.models import Tool
from sessions.models import AgentSession, EventKind, LoadedTool, SessionEvent
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_key, make_server, make_session, make_tool

pytestmark = pytest.mark.django_db

ADDRESS = "/tools/mcp__github__read/sessions/"


@pytest.fixture
def tool() -> Tool:
    return make_tool(server=make_server(name="github"), name="read")


def load(session: AgentSession, name: str = "mcp__github__read", *, turn: int = 1, used: int = 1) -> None:
    LoadedTool.objects.create(
        session=session,
        name=name,
        position=session.loaded_tools.count(),
        loaded_turn=turn,
        used_turn=used,
    )


def test_lists_live_sessions_the_latest_seen_first(tool: Tool) -> None:
    now = timezone.now()
    key = make_key(name="claude")
    load(make_session(key=key, external_id="older", last_seen_at=now - timedelta(hours=2)), turn=2, used=5)
    load(make_session(key=key, external_id="newer", last_seen_at=now))
    load(make_session(key=key, external_id="other"), "mcp__github__write")
    load(make_session(key=key, external_id="expired", expires_at=now - timedelta(days=1)))
    page = visible_text(signed_in(Role.VIEWER).get(ADDRESS, headers=HTMX))
    assert page.index("newer") < page.index("older")
    assert "claude · turn 2, last used on turn 5" in page
    assert "2 sessions" in page
    assert "other" not in page
    assert "expired" not in page


def test_tells_who_loaded_it_lately_and_let_it_go(tool: Tool) -> None:
    now = timezone.now()
    gone, still = make_session(external_id="gone"), make_session(external_id="still")
    load(still)
    for session in (gone, still):
        SessionEvent.objects.create(
            session=session,
            at=now,
            kind=EventKind.LOADED,
            turn=3,
            loaded=["mcp__github__write", "mcp__github__read"],
            tokens_full=0,
            tokens_sent=0,
        )
    page = visible_text(signed_in(Role.VIEWER).get(ADDRESS, headers=HTMX))
    present, past = page.split("Loaded lately, and unloaded since")
    assert "still" in present
    assert "gone" in past
    assert "turn 3" in past
    assert "still" not in past


def test_tool_page_asks_for_the_card_and_links_to_it(tool: Tool) -> None:
    page = text_of(signed_in(Role.VIEWER).get(tool.get_absolute_url()))
    assert re.search(rf'hx-get="{ADDRESS}"\s+hx-trigger="load"', page)
    assert f'href="{ADDRESS}"' in page


def test_card_shows_a_page_of_them_and_leads_to_the_rest(
    tool: Tool, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    key = make_key()
    for number in range(25):
        load(make_session(key=key, external_id=f"s-{number}"))
    client = signed_in(Role.VIEWER)
    card = client.get(ADDRESS, headers=HTMX)
    assert text_of(card).count("<li>") == 20
    assert "All of them" in visible_text(card)
    with django_assert_num_queries(7):
        whole = client.get(f"{ADDRESS}?page=2")
    assert text_of(whole).count('<a class="name mono" href="/sessions/') == 5
    assert "Page 2 of 2" in visible_text(whole)
    assert not broken_rules(whole)


def test_tool_nobody_loaded_is_told_so(tool: Tool) -> None:
    assert "No session that is open now found it" in visible_text(signed_in(Role.VIEWER).get(ADDRESS))


def test_others_are_refused(client: Client, tool: Tool) -> None:
    assert client.get(ADDRESS).status_code == 302
    assert signed_in(Role.NONE).get(ADDRESS).status_code == 403
    assert signed_in(Role.ADMIN).post(ADDRESS).status_code == 405
    assert signed_in(Role.VIEWER).get("/tools/nothing/sessions/").status_code == 404
