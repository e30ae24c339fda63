"""Signing in and out, one's own account, the theme."""

import re

import pytest
from django.test import Client

from catalog.access.roles import Role
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import PASSWORD, make_user

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "a longer and better secret"


class TestSignIn:
    @pytest.mark.parametrize(
        ("wanted", "reached"),
        [
            ("", "/"),
            ("/tools/?q=x", "/tools/?q=x"),
            ("https://evil.example/", "/"),
            ("//evil.example/", "/"),
            ("javascript:alert(1)", "/"),
        ],
    )
    def test_leads_where_one_wanted_to_go_within_the_site(
        self, client: Client, wanted: str, reached: str
    ) -> None:
        user = make_user(Role.VIEWER)
        values = {"username": user.username, "password": PASSWORD, "next": wanted}
        assert client.post("/sign-in/", values).headers["Location"] == reached

    def test_wrong_password_is_told_without_saying_which_was_wrong(self, client: Client) -> None:
        user = make_user(Role.VIEWER)
        response = client.post("/sign-in/", {"username": user.username, "password": "wrong"})
        unknown = client.post("/sign-in/", {"username": "nobody", "password": "wrong"})
        for answer in (response, unknown):
            assert "do not match an account" in visible_text(answer)
            assert "_auth_user_id" not in client.session

    def test_focus_is_on_the_field_to_fill_in(self, client: Client) -> None:
        first, again = client.get("/sign-in/"), client.post("/sign-in/", {"username": "ada", "password": "x"})
        for response, field in ((first, "id_username"), (again, "id_password")):
            focused = re.findall(r'<input[^>]*id="(\w+)"[^>]*\bautofocus\b', text_of(response))
            assert focused == [field]

    def test_session_gets_a_new_id(self, client: Client) -> None:
        user = make_user(Role.VIEWER)
        client.session.save()
        before = client.session.session_key
        client.post("/sign-in/", {"username": user.username, "password": PASSWORD})
        assert client.session.session_key != before

    def test_page_is_open_and_keeps_where_one_wanted_to_go(self, client: Client) -> None:
        response = client.get("/sign-in/?next=/tools/")
        assert response.status_code == 200
        assert 'name="next" value="/tools/"' in text_of(response)
        assert "Overview" not in visible_text(response)

    def test_wrong_method(self, client: Client) -> None:
        assert client.delete("/sign-in/").status_code == 405


class TestSignOut:
    def test_only_by_post(self) -> None:
        client = signed_in(Role.VIEWER)
        assert client.get("/sign-out/").status_code == 405
        assert client.post("/sign-out/").headers["Location"] == "/sign-in/"
        assert client.get("/").status_code == 302


class TestAccount:
    @pytest.mark.parametrize(
        ("role", "words"),
        [
            (Role.NONE, "see only this page"),
            (Role.VIEWER, "see everything but keys"),
            (Role.EDITOR, "refresh servers, change tools"),
            (Role.ADMIN, "see and change everything"),
        ],
    )
    def test_says_what_one_may_do(self, role: Role, words: str) -> None:
        assert words in visible_text(signed_in(role).get("/account/"))

    def test_password_is_changed_and_other_browsers_are_signed_out(self) -> None:
        user = make_user(Role.VIEWER)
        here, elsewhere = Client(), Client()
        here.force_login(user)
        elsewhere.force_login(user)
        values = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
        response = here.post("/account/", values, follow=True)
        user.refresh_from_db()
        assert "Your password is changed" in visible_text(response)
        assert user.check_password(NEW_PASSWORD)
        assert elsewhere.get("/account/").status_code == 302

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"old_password": "wrong"}, "old password was entered incorrectly"),
            ({"new_password1": "short", "new_password2": "short"}, "too short"),
            ({"new_password2": "another one entirely"}, "match"),
            ({}, "This field is required"),
        ],
    )
    def test_mistake_is_told_and_changes_nothing(self, values: dict[str, str], message: str) -> None:
        user = make_user(Role.VIEWER)
        client = Client()
        client.force_login(user)
        right = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
        response = client.post("/account/", {**right, **values} if values else {"old_password": ""})
        user.refresh_from_db()
        assert response.status_code == 422
        assert message in visible_text(response)
        assert user.check_password(PASSWORD)

    def test_needs_sign_in_and_a_known_method(self, client: Client) -> None:
        assert client.get("/account/").status_code == 302
        assert signed_in(Role.VIEWER).put("/account/").status_code == 405


class TestTheme:
    @pytest.mark.parametrize("theme", ["light", "dark", "system"])
    def test_choice_is_drawn_by_the_server(self, theme: str) -> None:
        client = signed_in(Role.VIEWER)
        response = client.post("/theme/", {"theme": theme, "next": "/tools/?q=x"})
        assert response.headers["Location"] == "/tools/?q=x"
        assert f'data-bs-theme="{theme}"' in text_of(client.get("/tools/"))

    def test_unknown_theme_and_foreign_way_back_are_ignored(self) -> None:
        client = signed_in(Role.VIEWER)
        response = client.post("/theme/", {"theme": '"><script>', "next": "https://evil.example/"})
        assert response.headers["Location"] == "/"
        client.cookies["theme"] = '"><script>'
        assert 'data-bs-theme="system"' in text_of(client.get("/"))

    def test_only_by_post(self) -> None:
        assert signed_in(Role.VIEWER).get("/theme/").status_code == 405


def test_part_asked_for_after_the_session_ended_leads_to_sign_in(client: Client) -> None:
    response = client.get("/tools/", headers=HTMX)
    assert response.status_code == 200
    assert response.headers["HX-Redirect"] == "/sign-in/"
