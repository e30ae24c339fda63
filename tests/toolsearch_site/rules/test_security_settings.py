"""Security headers behind TLS, expiry of sign-ins, and password rules."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import OperationalError
from django.test import Client

from catalog.access.roles import Role
from tests.harness.instance import ROOT
from tests.harness.pages import HTMX, signed_in
from tests.harness.rows import PASSWORD, make_user
from toolsearch_site.accounts import sign_in_expiry

# Behind TLS, asked as a proxy asks; debugging only spares collecting the static files.
ASK = """
import json
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
User.objects.create_superuser("root", password="correct horse battery")
client = Client(headers={"X-Forwarded-Proto": "https", "Host": "localhost"})
client.get("/sign-in/")
values = {"username": "root", "password": "correct horse battery"}
signed_in = client.post("/sign-in/", values)
page, api = client.get("/account/"), client.get("/api/v1/openapi.json")
plain = Client(headers={"Host": "localhost"}).get("/sign-in/")
cookies = {name: dict(one) for name, one in client.cookies.items()}
print(json.dumps({
    "status": [signed_in.status_code, page.status_code],
    "page": dict(page.headers),
    "api": dict(api.headers),
    "cookies": cookies,
    "plain": [plain.status_code, plain.headers.get("Location")],
}))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    data = tmp_path_factory.mktemp("tls")
    environment = {
        "PATH": os.environ["PATH"],
        "TOOLSEARCH_DATA": str(data),
        "TOOLSEARCH_TLS": "on",
        "DEBUG": "on",
    }
    done = subprocess.run(
        [
            sys.executable,
            "manage.py",
            "shell",
            "--verbosity",
            "0",
            "--command",
            ASK,
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
class TestBehindTls:
    def test_cookies_travel_by_tls_only_and_no_script_reads_the_session(self, answers: Any) -> None:
        assert answers["status"] == [302, 200]
        cookies = answers["cookies"]
        assert {"sessionid", "csrftoken", "known"} <= cookies.keys()
        for name, cookie in cookies.items():
            assert cookie["secure"] is True, name
            assert cookie["samesite"] == "Lax", name
        assert cookies["sessionid"]["httponly"] is True
        assert cookies["known"]["httponly"] is True

    def test_transport_framing_and_referrer(self, answers: Any) -> None:
        page = answers["page"]
        assert page["Strict-Transport-Security"].startswith("max-age=31536000")
        assert page["X-Frame-Options"] == "DENY"
        assert page["X-Content-Type-Options"] == "nosniff"
        assert page["Referrer-Policy"] == "same-origin"
        assert page["Cross-Origin-Opener-Policy"] == "same-origin"
        assert answers["api"]["X-Content-Type-Options"] == "nosniff"
        assert answers["api"]["Strict-Transport-Security"].startswith("max-age=31536000")

    def test_content_policy_has_no_unsafe_value_and_names_no_other_host(self, answers: Any) -> None:
        policy = answers["page"]["Content-Security-Policy"]
        directives = {words[0]: words[1:] for part in policy.split(";") if (words := part.split())}
        assert directives["default-src"] == ["'self'"]
        assert directives["frame-ancestors"] == ["'none'"]
        assert directives["object-src"] == ["'none'"]
        assert directives["form-action"] == directives["base-uri"] == ["'self'"]
        assert {value for values in directives.values() for value in values} <= {"'self'", "'none'", "data:"}
        assert "data:" not in directives.get("script-src", [])

    def test_plain_http_leads_to_tls(self, answers: Any) -> None:
        assert answers["plain"] == [301, "https://localhost/sign-in/"]


@pytest.mark.django_db
class TestSessions:
    def test_id_from_before_the_sign_in_is_dead_afterwards(self) -> None:
        """Somebody who planted it gains nothing."""
        user, client, attacker = make_user(Role.ADMIN), Client(), Client()
        client.session.save()
        planted = client.cookies["sessionid"].value
        client.post("/sign-in/", {"username": user.username, "password": PASSWORD})
        attacker.cookies["sessionid"] = planted
        assert client.get("/account/").status_code == 200
        assert attacker.get("/account/").status_code == 302

    def test_signing_out_ends_the_session_on_the_server(self) -> None:
        user, client, thief = make_user(Role.ADMIN), Client(), Client()
        client.force_login(user)
        thief.cookies["sessionid"] = client.cookies["sessionid"].value
        assert thief.get("/account/").status_code == 200
        client.post("/sign-out/")
        assert thief.get("/account/").status_code == 302

    @pytest.mark.parametrize(
        ("noted", "limit"),
        [
            (sign_in_expiry.BEGAN, settings.SESSION_COOKIE_AGE),
            (sign_in_expiry.USED, sign_in_expiry.LONGEST_IDLE_SECONDS),
        ],
    )
    def test_sign_in_ends_when_it_is_old_or_unused(self, noted: str, limit: int) -> None:
        client = signed_in(Role.ADMIN)
        set_back(client, noted, limit - 60)
        assert client.get("/account/").status_code == 200
        client = signed_in(Role.ADMIN)
        old = client.cookies["sessionid"].value
        set_back(client, noted, limit + 60)
        assert client.get("/account/").headers["Location"] == "/sign-in/?next=/account/"
        assert not Session.objects.filter(session_key=old).exists()

    def test_use_by_a_person_is_noted_and_that_of_an_open_page_is_not(self) -> None:
        client = signed_in(Role.ADMIN)
        set_back(client, sign_in_expiry.USED, 3600)
        before = client.session[sign_in_expiry.USED]
        client.get("/system/", headers=HTMX)
        assert client.session[sign_in_expiry.USED] == before
        client.get("/system/")
        assert client.session[sign_in_expiry.USED] > before

    @pytest.mark.parametrize("path", ["/", "/system/", "/servers/"])
    def test_page_is_served_where_its_use_cannot_be_noted(
        self, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        client = signed_in(Role.ADMIN)
        set_back(client, sign_in_expiry.USED, 3600)
        before = client.session[sign_in_expiry.USED]
        monkeypatch.setattr(SessionStore, "save", fail_for_want_of_space)
        for _ in range(2):
            assert client.get(path).status_code == 200
        assert "disk is full" in caplog.text
        monkeypatch.undo()
        assert client.session[sign_in_expiry.USED] == before
        client.get(path)
        assert client.session[sign_in_expiry.USED] > before

    def test_old_sign_in_ends_where_that_cannot_be_stored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        client = signed_in(Role.ADMIN)
        set_back(client, sign_in_expiry.USED, sign_in_expiry.LONGEST_IDLE_SECONDS + 60)
        monkeypatch.setattr(SessionStore, "save", fail_for_want_of_space)
        monkeypatch.setattr(SessionStore, "delete", fail_for_want_of_space)
        for _ in range(2):
            assert client.get("/account/").headers["Location"] == "/sign-in/?next=/account/"

    def test_sign_in_of_before_there_was_a_limit_begins_now(self) -> None:
        client = signed_in(Role.ADMIN)
        session = client.session
        del session[sign_in_expiry.BEGAN], session[sign_in_expiry.USED]
        session.save()
        assert client.get("/account/").status_code == 200
        assert {sign_in_expiry.BEGAN, sign_in_expiry.USED} <= set(client.session.keys())


def fail_for_want_of_space(*_: object, **__: object) -> None:
    raise OperationalError("database or disk is full")


def set_back(client: Client, noted: str, seconds: int) -> None:
    session = client.session
    session[noted] -= seconds
    session.save()


@pytest.mark.parametrize(
    "password", ["short1!", "elevenchars", "1qaz2wsx3edc", "830274650192", "ada-lovelace1"]
)
def test_weak_password_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, user=User(username="ada-lovelace"))


def test_long_password_of_plain_words_is_taken() -> None:
    validate_password("correct horse battery staple", user=User(username="ada-lovelace"))
