"""While the database is down every caller gets a 503, and nothing else is revealed."""

import errno
from sqlite3 import OperationalError as SqliteError
from typing import Any, NoReturn

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError
from django.test import Client
from psycopg.errors import DiskFull

from catalog.access.actors import SYSTEM
from catalog.access.roles import Role
from catalog.domain.errors import Unavailable
from catalog.selectors import rest, totals
from catalog.services import keys
from sessions.offers import polls
from tests.harness.pages import broken_rules, signed_in, visible_text

pytestmark = pytest.mark.django_db
POSTGRESQL_FULL, SQLITE_FULL = OperationalError("could not extend file"), OperationalError("no")
POSTGRESQL_FULL.__cause__ = DiskFull("could not extend file")
SQLITE_FULL.__cause__ = SqliteError("database or disk is full")
DISK_IS_FULL = [POSTGRESQL_FULL, SQLITE_FULL, OSError(errno.ENOSPC, "No space left on device")]
AWAY = OperationalError("server closed the connection unexpectedly\nat 10.0.0.7")


def fail_with(error: Exception) -> Any:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


@pytest.fixture
def headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {keys.create_key(name='agent', actor=SYSTEM).text}"}


class TestApi:
    @pytest.mark.parametrize("error", [AWAY, InterfaceError("connection already closed")])
    @pytest.mark.parametrize("path", ["/api/v1/policies/default/tools", "/api/v1/servers"])
    def test_answers_with_a_problem_that_says_when_to_come_back(
        self, monkeypatch: pytest.MonkeyPatch, client: Client, path: str, error: Exception
    ) -> None:
        monkeypatch.setattr(polls, "read_row", fail_with(error))
        monkeypatch.setattr("catalog.access.keys._find_in_force", fail_with(error))
        response = client.get(path, headers={"Authorization": "Bearer tk_abcdefgh_" + "x" * 43})
        assert response.status_code == 503
        assert response["Content-Type"] == "application/problem+json"
        assert int(response["Retry-After"]) > 0
        assert response.json()["status"] == 503
        assert "10.0.0.7" not in response.content.decode()

    @pytest.mark.parametrize("error", DISK_IS_FULL)
    def test_full_disk_is_named(
        self, monkeypatch: pytest.MonkeyPatch, client: Client, headers: dict[str, str], error: Exception
    ) -> None:
        monkeypatch.setattr(rest, "list_visible_servers", fail_with(error))
        response = client.get("/api/v1/servers", headers=headers)
        assert response.status_code == 503
        assert "The disk is full" in response.json()["detail"]

    def test_engine_that_is_unavailable_says_when_to_come_back(
        self, monkeypatch: pytest.MonkeyPatch, client: Client, headers: dict[str, str]
    ) -> None:
        monkeypatch.setattr(
            rest, "list_visible_servers", fail_with(Unavailable("the index is being written"))
        )
        response = client.get("/api/v1/servers", headers=headers)
        assert response.status_code == 503
        assert int(response["Retry-After"]) > 0

    def test_a_mistake_of_ours_stays_a_500(
        self, monkeypatch: pytest.MonkeyPatch, client: Client, headers: dict[str, str]
    ) -> None:
        monkeypatch.setattr(rest, "list_visible_servers", fail_with(RuntimeError("broken")))
        response = client.get("/api/v1/servers", headers=headers)
        assert response.status_code == 500
        assert "Retry-After" not in response.headers


class TestConsole:
    @pytest.mark.parametrize("error", DISK_IS_FULL)
    def test_full_disk_is_named(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        monkeypatch.setattr(totals, "read_totals", fail_with(error))
        response = signed_in(Role.VIEWER).get("/")
        assert response.status_code == 503
        assert "The disk is full" in visible_text(response)

    def test_page_says_it_plainly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(totals, "read_totals", fail_with(AWAY))
        self.assert_plain_page(signed_in(Role.VIEWER))

    def test_also_when_not_even_the_reader_is_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The sign-in is read before any view is reached."""
        client = signed_in(Role.VIEWER)
        client.raise_request_exception = False
        monkeypatch.setattr(SessionStore, "load", fail_with(AWAY))
        self.assert_plain_page(client)

    def assert_plain_page(self, client: Client) -> None:
        response = client.get("/")
        assert response.status_code == 503
        assert int(response["Retry-After"]) > 0
        assert "Back in a moment" in visible_text(response)
        assert "10.0.0.7" not in visible_text(response)
        assert not broken_rules(response)
