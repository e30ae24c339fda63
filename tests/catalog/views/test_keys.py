"""The pages of keys: for admins, and each key's text in one answer only, after a redirect."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.models import ApiKey, Change, Scope
from catalog.views import new_keys
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_key, make_policy, make_session

pytestmark = pytest.mark.django_db
NEW_KEY = {"name": "coder", "policy": "default", "scope": "agent", "lifetime_days": ""}


def read_all_text() -> str:
    """Every row of every table, sign-ins decoded."""
    rows = [list(model._base_manager.values()) for model in apps.get_models()]
    return str([rows, [session.get_decoded() for session in Session.objects.all()]])


class TestList:
    def test_shows_state_scope_and_use(self) -> None:
        now = timezone.now()
        make_session(key=make_key(name="in use"))
        make_key(name="late", expires_at=now - timedelta(days=1), scope=Scope.ADMIN)
        make_key(name="dead", revoked_at=now)
        page = visible_text(signed_in(Role.ADMIN).get("/keys/"))
        for words in ("Active agent default 1 never", "Expired admin", "Revoked agent"):
            assert words in page
        assert page.index("in use") < page.index("dead")

    def test_revoked_key_cannot_be_revoked_again(self) -> None:
        key = make_key(revoked_at=timezone.now())
        assert f"/keys/{key.pk}/revoke/" not in text_of(signed_in(Role.ADMIN).get("/keys/"))

    def test_part_is_the_table_alone(self) -> None:
        response = signed_in(Role.ADMIN).get("/keys/", headers=HTMX)
        assert "<html" not in text_of(response)
        assert 'id="key-table"' in text_of(response)

    def test_empty_list_says_what_to_do(self) -> None:
        assert "create_key" in visible_text(signed_in(Role.ADMIN).get("/keys/"))

    def test_costs_the_same_queries_for_many(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        for _ in range(20):
            make_key()
        client = signed_in(Role.ADMIN)
        client.get("/keys/")
        with django_assert_num_queries(7):
            client.get("/keys/")

    @pytest.mark.parametrize("role", [Role.NONE, Role.VIEWER, Role.EDITOR])
    def test_others_are_refused(self, role: Role) -> None:
        response = signed_in(role).get("/keys/")
        assert response.status_code == 403
        assert "This needs the role admin" in visible_text(response)
        assert signed_in(role).post("/keys/", NEW_KEY).status_code == 403
        assert not ApiKey.objects.exists()

    def test_needs_sign_in_and_a_known_method(self, client: Client) -> None:
        assert client.get("/keys/").status_code == 302
        assert signed_in(Role.ADMIN).put("/keys/").status_code == 405


class TestCreate:
    def test_key_is_shown_once_after_a_redirect_and_kept_nowhere(self) -> None:
        client = signed_in(Role.ADMIN)
        response = client.post("/keys/", NEW_KEY)
        key = ApiKey.objects.get()
        assert (response.status_code, response.headers["Location"]) == (302, f"/connect/?key={key.pk}")
        kept = read_all_text()
        page = client.get(response.headers["Location"])
        text = page.context["new_text"]
        in_snippets = sum(repr(tab).count(text) for group in page.context["groups"] for tab in group.tabs)
        assert in_snippets > 4
        assert visible_text(page).count(text) == 1 + in_snippets
        assert text.startswith(f"tk_{key.prefix}_")
        assert text not in kept
        assert text not in text_of(client.get("/keys/"))
        assert text not in text_of(client.get(f"/connect/?key={key.pk}"))

    def test_reload_makes_no_second_key(self) -> None:
        client = signed_in(Role.ADMIN)
        address = client.post("/keys/", NEW_KEY).headers["Location"]
        for _ in range(3):
            assert client.get(address).status_code == 200
        assert ApiKey.objects.count() == 1

    def test_text_is_for_its_own_key_and_for_whoever_made_it(self) -> None:
        client, other = signed_in(Role.ADMIN), signed_in(Role.ADMIN)
        client.post("/keys/", NEW_KEY)
        address = client.post("/keys/", {**NEW_KEY, "name": "second"}).headers["Location"]
        first, second = ApiKey.objects.order_by("pk")
        assert other.get(address).context["new_text"] == ""
        assert client.get(f"/connect/?key={first.pk}").context["new_text"] == ""
        assert client.get(f"/connect/?key={second.pk}").context["new_text"] == "", "it was taken"

    def test_text_moved_to_another_sign_in_opens_nothing(self) -> None:
        client, thief = signed_in(Role.ADMIN), signed_in(Role.ADMIN)
        address = client.post("/keys/", NEW_KEY).headers["Location"]
        session = thief.session
        session[new_keys.SESSION_ENTRY] = client.session[new_keys.SESSION_ENTRY]
        session.save()
        assert thief.get(address).context["new_text"] == ""

    def test_text_is_not_shown_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(new_keys, "SHOWN_WITHIN", timedelta(seconds=-1))
        client = signed_in(Role.ADMIN)
        address = client.post("/keys/", NEW_KEY).headers["Location"]
        assert client.get(address).context["new_text"] == ""

    def test_answer_is_never_cached(self) -> None:
        client = signed_in(Role.ADMIN)
        response = client.post("/keys/", NEW_KEY)
        for answer in (response, client.get(response.headers["Location"])):
            assert "no-store" in answer.headers["Cache-Control"]

    def test_policy_scope_and_expiry_are_taken(self) -> None:
        make_policy(slug="tight")
        values = {"name": "ci", "policy": "tight", "scope": "admin", "lifetime_days": "30"}
        signed_in(Role.ADMIN).post("/keys/", values)
        key = ApiKey.objects.get()
        assert (key.name, key.policy.slug, key.scope) == ("ci", "tight", Scope.ADMIN)
        assert key.expires_at is not None
        assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)

    def test_limits_are_taken_shown_and_recorded(self) -> None:
        client = signed_in(Role.ADMIN)
        client.post("/keys/", {**NEW_KEY, "rate_limit_per_minute": "1,200", "max_sessions": "3"})
        key = ApiKey.objects.get()
        assert (key.rate_limit_per_minute, key.max_sessions) == (1_200, 3)
        assert "1,200 requests a minute · at most 3 sessions" in visible_text(client.get("/keys/"))
        recorded = Change.objects.get().after
        assert (recorded["rate_limit_per_minute"], recorded["max_sessions"]) == (1_200, 3)

    def test_no_limits_unless_they_are_given(self) -> None:
        signed_in(Role.ADMIN).post("/keys/", NEW_KEY)
        key = ApiKey.objects.get()
        assert (key.expires_at, key.rate_limit_per_minute, key.max_sessions) == (None, None, None)
        assert Change.objects.get().after == {"scope": "agent", "policy": "default"}

    @pytest.mark.parametrize(
        "wrong",
        [
            {"name": ""},
            {"name": "  "},
            {"policy": "nowhere"},
            {"scope": "root"},
            {"lifetime_days": "1"},
            {"rate_limit_per_minute": "0"},
            {"rate_limit_per_minute": "many"},
            {"max_sessions": "-1"},
            {"max_sessions": "99999999999"},
        ],
    )
    def test_mistake_is_told_and_makes_no_key(self, wrong: dict[str, str]) -> None:
        response = signed_in(Role.ADMIN).post("/keys/", {**NEW_KEY, **wrong})
        assert response.status_code == 422
        assert "errorlist" in text_of(response)
        assert not ApiKey.objects.exists()


class TestRevoke:
    def test_takes_force_and_is_recorded(self) -> None:
        key = make_key(name="coder")
        response = signed_in(Role.ADMIN).post(f"/keys/{key.pk}/revoke/", follow=True)
        key.refresh_from_db()
        assert key.revoked_at is not None
        assert "The key coder is revoked" in visible_text(response)
        assert Change.objects.get().actor.startswith("admin")

    def test_editor_stranger_wrong_method_and_missing_key_are_refused(self, client: Client) -> None:
        key = make_key()
        address = f"/keys/{key.pk}/revoke/"
        assert signed_in(Role.EDITOR).post(address).status_code == 403
        assert client.post(address).status_code == 302
        assert signed_in(Role.ADMIN).get(address).status_code == 405
        assert signed_in(Role.ADMIN).post("/keys/0/revoke/").status_code == 404
        key.refresh_from_db()
        assert key.revoked_at is None
