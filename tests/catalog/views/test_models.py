"""The page of the table of models."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.models import Change, ModelSupport
from tests.harness.pages import HTMX, signed_in, text_of, visible_text

pytestmark = pytest.mark.django_db

NEW = {
    "name_pattern": "house-*",
    "provider": "anthropic",
    "hosted_search": "on",
    "context_window": "1,000,000",
    "input_price": "2.50",
    "cached_input_price": "",
}


def row_of(pattern: str = "claude-opus-4*") -> ModelSupport:
    return ModelSupport.objects.get(name_pattern=pattern)


class TestTable:
    def test_shows_who_searches_and_how_much_context_there_is(self) -> None:
        page = visible_text(signed_in(Role.VIEWER).get("/models/"))
        assert "claude-opus-4* Anthropic · 200,000 tokens Yes 200,000" in page
        assert "gpt-* OpenAI No the policy's" in page

    def test_prices_are_shown_and_examples_are_marked(self) -> None:
        ModelSupport.objects.filter(name_pattern="claude-opus-4*").update(
            input_price=5, cached_input_price="0.125", prices_are_examples=True
        )
        client = signed_in(Role.ADMIN)
        assert "200,000 $5.00 example $0.125" in visible_text(client.get("/models/"))
        form = text_of(client.get(f"/models/{row_of().pk}/"))
        assert 'name="input_price" value="5"' in form

    @pytest.mark.parametrize(
        ("name", "told"),
        [
            (
                "claude-opus-4-5",
                "falls under claude-opus-4* : format=auto gives it the hosted form of Anthropic",
            ),
            ("claude-instant", "falls under claude-* : format=auto gives it MCP and our own search"),
            ("llama-9", "No row fits llama-9"),
        ],
    )
    def test_name_can_be_tried(self, name: str, told: str) -> None:
        assert told in visible_text(signed_in(Role.VIEWER).get("/models/", {"model": name}))

    def test_part_is_the_table_alone(self) -> None:
        part = text_of(signed_in(Role.VIEWER).get("/models/", headers=HTMX))
        assert "<html" not in part
        assert 'id="model-table"' in part

    def test_empty_table_says_what_that_means(self) -> None:
        ModelSupport.objects.all().delete()
        assert "Every model then gets MCP" in visible_text(signed_in(Role.VIEWER).get("/models/"))

    def test_costs_the_same_queries_for_many(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        client = signed_in(Role.VIEWER)
        client.get("/models/")
        with django_assert_num_queries(4):
            client.get("/models/")
        ModelSupport.objects.bulk_create(
            ModelSupport(name_pattern=f"m-{number}", provider="other") for number in range(100)
        )
        with django_assert_num_queries(4):
            client.get("/models/")

    @pytest.mark.parametrize(
        ("role", "edits"), [(Role.VIEWER, False), (Role.EDITOR, False), (Role.ADMIN, True)]
    )
    def test_only_admins_are_offered_changes(self, role: Role, edits: bool) -> None:
        page = text_of(signed_in(role).get("/models/"))
        assert (f"/models/{row_of().pk}/" in page) is edits
        assert ('name="name_pattern"' in page) is edits


class TestChange:
    def test_row_is_added_recorded_and_can_be_undone(self) -> None:
        response = signed_in(Role.ADMIN).post("/models/", NEW, follow=True)
        row = row_of("house-*")
        assert (row.provider, row.hosted_search, row.context_window) == ("anthropic", True, 1_000_000)
        assert (row.input_price, row.cached_input_price) == (Decimal("2.5"), None)
        assert "Saved the row for house-*" in visible_text(response)
        assert f"/changes/{Change.objects.get().pk}/undo/" in text_of(response)

    def test_row_is_edited(self) -> None:
        row = row_of()
        client = signed_in(Role.ADMIN)
        assert 'value="200,000"' in text_of(client.get(f"/models/{row.pk}/"))
        client.post(f"/models/{row.pk}/", {**NEW, "name_pattern": row.name_pattern, "hosted_search": ""})
        row.refresh_from_db()
        assert (row.hosted_search, row.context_window) == (False, 1_000_000)

    def test_row_is_deleted_and_the_toast_brings_it_back(self) -> None:
        client = signed_in(Role.ADMIN)
        client.post(f"/models/{row_of().pk}/delete/")
        assert not ModelSupport.objects.filter(name_pattern="claude-opus-4*").exists()
        client.post(f"/changes/{Change.objects.get().pk}/undo/")
        assert row_of().context_window == 200_000

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ({"name_pattern": ""}, "This field is required"),
            ({"name_pattern": "claude-*"}, "There is a row for claude-* already"),
            ({"provider": "nobody"}, "Select a valid choice"),
            ({"context_window": "0"}, "greater than or equal to 1"),
            ({"context_window": "many"}, "Enter a whole number"),
            ({"input_price": "-1"}, "greater than or equal to 0"),
            ({"cached_input_price": "little"}, "Enter a number"),
        ],
    )
    def test_mistake_is_told_in_place_and_changes_nothing(self, wrong: dict[str, Any], told: str) -> None:
        client, row = signed_in(Role.ADMIN), row_of()
        for address in ("/models/", f"/models/{row.pk}/"):
            response = client.post(address, {**NEW, **wrong})
            assert response.status_code == 422
            assert told in visible_text(response)
        assert not Change.objects.exists()

    @pytest.mark.parametrize("role", [Role.NONE, Role.VIEWER, Role.EDITOR])
    def test_others_are_refused(self, role: Role) -> None:
        client, row = signed_in(role), row_of()
        for address in ("/models/", f"/models/{row.pk}/", f"/models/{row.pk}/delete/"):
            assert client.post(address, NEW).status_code == 403
        assert not Change.objects.exists()

    def test_stranger_wrong_method_and_missing_row(self, client: Client) -> None:
        assert client.get("/models/").status_code == 302
        admin = signed_in(Role.ADMIN)
        assert admin.put("/models/").status_code == 405
        assert admin.get(f"/models/{row_of().pk}/delete/").status_code == 405
        assert admin.get("/models/999999/").status_code == 404
