"""The card of a tool's page that says whether a key can call it, and why."""

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.domain.choices import Transport
from catalog.models import Tool
from catalog.services import decisions
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_key, make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db

CARD = "/tools/mcp__notes__add_note/gateway/"


@pytest.fixture(autouse=True)
def tool(db: None) -> Tool:
    make_policy(slug="narrow", visible=["other/*"])
    server = make_server(name="notes", transport=Transport.HTTP, url="https://notes.example.com/")
    tool = make_tool(server=server, name="add_note")
    decisions.bring_up_to_date()
    return tool


class TestAnswer:
    def test_of_the_default_policy_where_nothing_is_asked(self) -> None:
        card = visible_text(signed_in(Role.VIEWER).get(CARD, headers=HTMX))
        assert "Can be called It is found by search; call_read_tool refuses it" in card
        assert "Its name there is notes__add_note ." in card

    def test_of_a_policy(self) -> None:
        response = signed_in(Role.VIEWER).get(CARD, {"for": "policy:narrow"}, headers=HTMX)
        assert "Cannot be called The policy narrow does not show it" in visible_text(response)
        assert '<a href="/policies/narrow/">The policy</a>' in text_of(response)
        assert '<option value="policy:narrow" selected>' in text_of(response)

    def test_of_a_key_for_admins(self) -> None:
        key = make_key(name="old-laptop", revoked_at=timezone.now())
        response = signed_in(Role.ADMIN).get(CARD, {"for": f"key:{key.pk}"}, headers=HTMX)
        assert "Cannot be called The key is revoked." in visible_text(response)
        assert f'<option value="key:{key.pk}" selected>old-laptop</option>' in text_of(response)

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR])
    def test_keys_are_for_admins(self, role: Role) -> None:
        key = make_key(name="secret-project", revoked_at=timezone.now())
        response = signed_in(role).get(CARD, {"for": f"key:{key.pk}"}, headers=HTMX)
        assert "secret-project" not in text_of(response)
        assert "Can be called" in visible_text(response)

    @pytest.mark.parametrize("asked", ["key:99999", "key:x", "key:" + "1" * 40, "key:²", "policy:x", "x", ""])
    def test_of_the_default_policy_for_nonsense(self, asked: str) -> None:
        response = signed_in(Role.ADMIN).get(CARD, {"for": asked}, headers=HTMX)
        assert response.context["asker"].policy.slug == "default"
        assert response.context["asker"].key is None


class TestCard:
    def test_tool_s_page_asks_for_it(self, tool: Tool) -> None:
        assert f'hx-get="{CARD}"' in text_of(signed_in(Role.VIEWER).get(tool.get_absolute_url()))

    def test_is_a_page_without_javascript(self) -> None:
        client = signed_in(Role.VIEWER)
        assert "<h1>Through the gateway</h1>" in text_of(client.get(CARD))
        assert "<html" not in text_of(client.get(CARD, headers=HTMX))

    def test_needs_sign_in_and_a_role_and_only_reads(self, client: Client) -> None:
        assert client.get(CARD).headers["Location"].startswith("/sign-in/")
        assert signed_in(Role.NONE).get(CARD).status_code == 403
        assert signed_in(Role.ADMIN).post(CARD).status_code == 405

    def test_missing_tool_is_not_found(self) -> None:
        assert signed_in(Role.VIEWER).get(CARD.replace("add_note", "nothing")).status_code == 404

    def test_costs_the_same_queries_for_many(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        for _ in range(20):
            make_key(policy=make_policy())
        key, client = make_key(), signed_in(Role.ADMIN)
        client.get(CARD, {"for": f"key:{key.pk}"}, headers=HTMX)
        with django_assert_num_queries(9):
            client.get(CARD, {"for": f"key:{key.pk}"}, headers=HTMX)
