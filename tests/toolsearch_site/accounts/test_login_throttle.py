"""The login throttle: limits per place and per name, and no lock-out of known users."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from catalog.access.roles import Role
from tests.harness.pages import visible_text
from tests.harness.rows import PASSWORD, make_user
from toolsearch_site.accounts import login_throttle
from toolsearch_site.models import SignInCount

pytestmark = pytest.mark.django_db

TOO_MANY = "There were too many attempts. Try again in 15 minutes."


def attempt(
    username: str, password: str = "wrong", *, address: str = "192.0.2.1", client: Client | None = None
) -> Any:
    values = {"username": username, "password": password}
    return (client or Client()).post("/sign-in/", values, REMOTE_ADDR=address)


def test_sixth_guess_at_one_place_is_refused_even_if_it_is_right() -> None:
    user = make_user(Role.ADMIN)
    for _ in range(5):
        assert attempt(user.username).status_code == 200
    client = Client()
    answer = attempt(user.username, PASSWORD, client=client)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 900
    assert TOO_MANY in visible_text(answer)
    assert "_auth_user_id" not in client.session


def test_refusal_is_the_same_for_a_name_that_nobody_has() -> None:
    make_user(Role.ADMIN, username="ada")
    answers = {}
    for name in ("ada", "nobody"):
        for _ in range(6):
            answers[name] = attempt(name)
    assert visible_text(answers["ada"]).replace("ada", "") == visible_text(answers["nobody"]).replace(
        "nobody", ""
    )


def test_case_and_width_of_a_name_make_no_new_count() -> None:
    for name in ("ada", "ADA", "Ada", "ＡＤＡ", "aDa"):
        assert attempt(name).status_code == 200
    assert attempt("ada").status_code == 429


def test_window_ends_by_itself() -> None:
    user = make_user(Role.VIEWER)
    for _ in range(6):
        attempt(user.username)
    SignInCount.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    assert attempt(user.username, PASSWORD).status_code == 302


def test_success_forgives_the_slips_before_it() -> None:
    user = make_user(Role.VIEWER)
    for _ in range(3):
        for _ in range(4):
            attempt(user.username)
        assert attempt(user.username, PASSWORD).status_code == 302


def test_many_names_from_one_address_are_refused() -> None:
    for number in range(login_throttle.PER_ADDRESS):
        assert attempt(f"user-{number}").status_code == 200
    assert attempt("another").status_code == 429
    assert attempt("another", address="192.0.2.2").status_code == 200


def test_one_name_from_many_addresses_is_refused_but_not_in_its_owners_browser() -> None:
    user = make_user(Role.ADMIN)
    own = Client()
    assert attempt(user.username, PASSWORD, client=own).status_code == 302
    own.post("/sign-out/")
    for number in range(login_throttle.PER_NAME):
        attempt(user.username, address=f"198.51.100.{number}")
    assert attempt(user.username, PASSWORD, address="203.0.113.1").status_code == 429
    assert attempt(user.username, PASSWORD, client=own).status_code == 302


def test_known_browser_is_limited_by_itself_and_for_its_user_only() -> None:
    user, other = make_user(Role.VIEWER), make_user(Role.ADMIN)
    own = Client()
    attempt(user.username, PASSWORD, client=own)
    own.post("/sign-out/")
    for _ in range(login_throttle.PER_KNOWN_BROWSER):
        assert attempt(user.username, client=own).status_code == 200
    assert attempt(user.username, client=own).status_code == 429
    for _ in range(login_throttle.PER_NAME_AND_ADDRESS):
        assert attempt(other.username, client=own).status_code == 200
    assert attempt(other.username, client=own).status_code == 429


@pytest.mark.parametrize("cookie", ["", "x", "eyJuYW1lIjoiYSJ9:1:forged"])
def test_forged_mark_of_a_browser_is_worth_nothing(cookie: str) -> None:
    client = Client()
    client.cookies[login_throttle.KNOWN_COOKIE] = cookie
    for _ in range(5):
        attempt("ada", client=client)
    assert attempt("ada", client=client).status_code == 429


def test_no_name_is_kept() -> None:
    attempt("hunter2-typed-in-the-wrong-field")
    assert "hunter2" not in str(list(SignInCount.objects.values()))


class TestAddress:
    def ask(self, rf: Any, **headers: str) -> str:
        return login_throttle.address_of(rf.get("/", REMOTE_ADDR="10.0.0.9", **headers))

    def test_header_counts_only_behind_a_proxy_and_only_its_last_entry(self, rf: Any) -> None:
        sent = {"HTTP_X_FORWARDED_FOR": "1.1.1.1, 192.0.2.7"}
        with override_settings(BEHIND_TLS=False):
            assert self.ask(rf, **sent) == "10.0.0.9"
        with override_settings(BEHIND_TLS=True):
            assert self.ask(rf, **sent) == "192.0.2.7"
            assert self.ask(rf) == "10.0.0.9"
            assert self.ask(rf, HTTP_X_FORWARDED_FOR="<script>") == "unknown"

    @pytest.mark.parametrize(
        ("address", "counted"),
        [("2001:db8:1:2:3::9", "2001:db8:1:2::/64"), ("::ffff:192.0.2.1", "192.0.2.1")],
    )
    def test_network_of_an_ipv6_address_counts(self, rf: Any, address: str, counted: str) -> None:
        assert login_throttle.address_of(rf.get("/", REMOTE_ADDR=address)) == counted
