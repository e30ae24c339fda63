"""Errors as pages: in the design, in words, with their status."""

import pytest
from django.test import Client, override_settings

from catalog.access.roles import Role
from catalog.domain.errors import Conflict, InvalidInput, ToolSearchError, Unavailable
from catalog.selectors import totals
from tests.harness.pages import broken_rules, signed_in, visible_text

pytestmark = pytest.mark.django_db


def test_unknown_address_is_a_page_for_anybody(client: Client) -> None:
    for visitor in (client, signed_in(Role.VIEWER)):
        response = visitor.get("/nowhere/")
        assert response.status_code == 404
        assert "There is nothing at this address" in visible_text(response)
        assert not broken_rules(response)


@pytest.mark.parametrize(
    "error", [Conflict("it is taken"), Unavailable("it sleeps"), InvalidInput.at("name", "is too long")]
)
def test_error_of_the_engine_is_a_page_with_its_status(
    error: ToolSearchError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(totals, "read_totals", fail)
    response = signed_in(Role.VIEWER).get("/")
    assert response.status_code == error.status
    assert error.title in visible_text(response)
    assert str(error)[1:] in visible_text(response)
    assert not broken_rules(response)


def test_anything_else_is_a_page_that_tells_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("the password is tulip")

    monkeypatch.setattr(totals, "read_totals", fail)
    client = signed_in(Role.VIEWER)
    client.raise_request_exception = False
    response = client.get("/")
    assert response.status_code == 500
    assert "Something went wrong" in visible_text(response)
    assert "tulip" not in visible_text(response)
    assert not broken_rules(response)


@override_settings(ALLOWED_HOSTS=["here.example"])
def test_bad_request_is_a_page(client: Client) -> None:
    response = client.get("/", headers={"host": "elsewhere.example"})
    assert response.status_code == 400
    assert "could not make sense" in visible_text(response)


def test_api_keeps_its_own_answers(client: Client) -> None:
    response = client.get("/api/v1/nowhere")
    assert response.status_code == 404
