"""The page of the change record."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from catalog.access import Role
from catalog.models.changes import Action, Subject
from tests.pages import HTMX, signed_in, text_of, visible_text
from tests.rows import make_change

pytestmark = pytest.mark.django_db


def names_on(response: Any) -> list[str]:
    return [row.change.name for row in response.context["page"].rows]


def test_shows_who_what_and_from_what_to_what() -> None:
    make_change(actor="ada", name="github", before={"enabled": True, "url": "a"}, after={"enabled": False})
    page = visible_text(signed_in(Role.VIEWER).get("/changes/"))
    assert "ada changed server github enabled yes → no url a" in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("actor=ada", ["one", "two"]),
        ("subject=tool", ["two"]),
        ("action=deleted", ["three"]),
        ("q=W", ["two"]),
        ("actor=ada&subject=server", ["one"]),
        ("subject=nonsense", ["one", "three", "two"]),
    ],
)
def test_filters_by_what_the_url_says(query: str, found: list[str]) -> None:
    make_change(actor="ada", name="one")
    make_change(actor="ada", name="two", subject=Subject.TOOL)
    make_change(actor="ben", name="three", action=Action.DELETED)
    assert sorted(names_on(signed_in(Role.VIEWER).get(f"/changes/?{query}"))) == found


def test_part_is_the_table_alone() -> None:
    response = signed_in(Role.VIEWER).get("/changes/", headers=HTMX)
    assert "<html" not in text_of(response)
    assert 'id="change-table"' in text_of(response)


def test_empty_list_tells_an_empty_record_from_a_narrow_filter() -> None:
    client = signed_in(Role.VIEWER)
    assert "Nothing has changed yet" in visible_text(client.get("/changes/"))
    assert "No change matches" in visible_text(client.get("/changes/?q=x"))


def test_costs_the_same_queries_for_many(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for number in range(60):
        make_change(before={"a": number})
    client = signed_in(Role.VIEWER)
    client.get("/changes/")
    with django_assert_num_queries(7):
        client.get("/changes/")


def test_needs_sign_in_and_a_role_and_only_reads(client: Client) -> None:
    assert client.get("/changes/").status_code == 302
    assert signed_in(Role.NONE).get("/changes/").status_code == 403
    assert signed_in(Role.ADMIN).post("/changes/").status_code == 405
