"""The switch in a tool's row: a choice is stored at once, with an undo, and the decision follows."""

import pytest
from django.test import Client

from catalog.access.roles import Role
from catalog.domain.choices import Loading
from catalog.models import Change, Tool
from catalog.services import decisions
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db

ADDRESS = "/tools/mcp__github__read/loading/"


@pytest.fixture
def tool() -> Tool:
    made = make_tool(server=make_server(name="github"), name="read")
    decisions.bring_up_to_date()
    return made


def test_choice_is_stored_and_the_row_gets_switch_decision_and_undo(tool: Tool) -> None:
    headers = {**HTMX, "HX-Current-URL": "http://testserver/tools/?server=github&page=2"}
    response = signed_in(Role.EDITOR).post(ADDRESS, {"loading": "always"}, headers=headers)
    tool.refresh_from_db()
    assert tool.loading == Loading.ALWAYS
    part, change = text_of(response), Change.objects.get()
    assert "<html" not in part
    assert f'id="tool-always-{tool.pk}" value="always" checked' in part
    assert "read always loads now." in visible_text(response)
    assert f'action="/changes/{change.pk}/undo/"' in part
    assert 'name="next" value="/tools/?server=github&amp;page=2"' in part
    assert f'<div id="decision-{tool.pk}" hx-swap-oob="true"' in part


def test_decision_is_asked_for_until_it_is_made(tool: Tool) -> None:
    client = signed_in(Role.EDITOR)
    waiting = client.post(ADDRESS, {"loading": "always"}, headers=HTMX)
    assert "deciding…" in visible_text(waiting)
    assert f'hx-get="{ADDRESS}?policy=default"' in text_of(waiting)
    decisions.bring_up_to_date()
    decided = client.get(ADDRESS, headers=HTMX)
    assert "loads the tool is set to always load" in visible_text(decided)
    assert "hx-get" not in text_of(decided)


def test_decision_is_that_of_the_policy_looked_through(tool: Tool) -> None:
    make_policy(slug="eager", mode="off")
    decisions.bring_up_to_date()
    client = signed_in(Role.VIEWER)
    assert "search is off" in visible_text(client.get(f"{ADDRESS}?policy=eager", headers=HTMX))
    assert "the policy always defers" in visible_text(client.get(ADDRESS, headers=HTMX))


def test_undo_from_the_toast_takes_it_back(tool: Tool) -> None:
    client = signed_in(Role.EDITOR)
    client.post(ADDRESS, {"loading": "defer"}, headers=HTMX)
    change = Change.objects.get()
    response = client.post(f"/changes/{change.pk}/undo/", {"next": "/tools/?q=read"})
    assert response.headers["Location"] == "/tools/?q=read"
    tool.refresh_from_db()
    assert tool.loading == Loading.INHERIT


def test_without_script_one_is_led_back_to_the_list_with_a_toast(tool: Tool) -> None:
    values = {"loading": "defer", "next": "/tools/?server=github"}
    response = signed_in(Role.EDITOR).post(ADDRESS, values, follow=True)
    assert response.redirect_chain == [("/tools/?server=github", 302)]
    assert "read is deferred now" in visible_text(response)
    assert not broken_rules(response)


def test_foreign_address_is_not_followed(tool: Tool) -> None:
    values = {"loading": "defer", "next": "https://example.com/"}
    response = signed_in(Role.EDITOR).post(ADDRESS, values)
    assert response.headers["Location"] == tool.get_absolute_url()


def test_same_choice_tells_nothing(tool: Tool) -> None:
    response = signed_in(Role.EDITOR).post(ADDRESS, {"loading": "inherit"}, headers=HTMX)
    assert "data-toast" not in text_of(response)
    assert not Change.objects.exists()


def test_list_offers_the_switch_to_editors(tool: Tool) -> None:
    assert f'hx-post="{ADDRESS}"' in text_of(signed_in(Role.EDITOR).get("/tools/"))
    as_viewer = signed_in(Role.VIEWER).get("/tools/")
    assert "/loading/" not in text_of(as_viewer)
    assert "inherit" in visible_text(as_viewer)


def test_others_are_refused(client: Client, tool: Tool) -> None:
    values = {"loading": "always"}
    assert client.post(ADDRESS, values).status_code == 302
    assert signed_in(Role.VIEWER).post(ADDRESS, values).status_code == 403
    assert signed_in(Role.NONE).get(ADDRESS).status_code == 403
    assert signed_in(Role.EDITOR).post(ADDRESS, {"loading": "maybe"}).status_code == 422
    assert signed_in(Role.EDITOR).put(ADDRESS).status_code == 405
    assert signed_in(Role.EDITOR).post("/tools/nothing/loading/", values).status_code == 404
    assert not Change.objects.exists()
