"""Error pages lead on: they keep the menu, and send nobody to a page that refuses them."""

import pytest
from django.test import Client

from catalog.access.roles import Role
from tests.harness.pages import broken_rules, signed_in, text_of, visible_text

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/keys/", "/nowhere/", "/servers/nowhere/"])
def test_page_keeps_the_menu(path: str) -> None:
    response = signed_in(Role.VIEWER).get(path)
    assert response.status_code in (403, 404)
    page = text_of(response)
    assert 'aria-label="Main"' in page
    assert 'href="/servers/"' in page
    assert page.count("<main") == page.count("<h1") == 1
    assert not broken_rules(response)


def test_without_a_role_the_way_leads_to_the_account() -> None:
    client = signed_in(Role.NONE)
    for path in ("/", "/keys/", "/nowhere/"):
        page = text_of(client.get(path))
        assert "Your account has no role yet" in page
        assert 'class="btn btn-primary" href="/account/"' in page
        assert 'class="btn btn-primary" href="/"' not in page
        assert 'action="/sign-out/"' in page
    assert client.get("/account/").status_code == 200


def test_stranger_sees_no_menu(client: Client) -> None:
    page = client.get("/nowhere/")
    assert page.status_code == 404
    assert 'aria-label="Main"' not in text_of(page)
    assert "Go to the overview" in visible_text(page)


class TestApiReference:
    def test_is_linked_from_every_page_and_leads_back(self, client: Client) -> None:
        assert 'href="/api/v1/docs"' in text_of(signed_in(Role.VIEWER).get("/servers/"))
        page = text_of(client.get("/api/v1/docs"))
        assert 'href="/"' in page
        assert '"url": "/api/v1/openapi.json"' in page

    @pytest.mark.parametrize(("theme", "is_dark"), [("dark", True), ("light", False), ("system", False)])
    def test_is_as_dark_as_the_console(self, client: Client, theme: str, is_dark: bool) -> None:
        client.cookies["theme"] = theme
        page = text_of(client.get("/api/v1/docs"))
        assert f'data-theme="{theme}"' in page
        assert ('class="dark-mode"' in page) is is_dark
