"""The pages of policies."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.models import Policy
from catalog.selectors import policies
from catalog.services import decisions
from catalog.services import policies as policy_services
from tests.harness.pages import signed_in, text_of, visible_text
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db


class TestList:
    @pytest.mark.parametrize(
        ("values", "summary"),
        [
            ({"mode": "off"}, "Every tool loads up front"),
            ({"mode": "always"}, "Every tool waits for a search"),
            ({"mode": "auto"}, "past 10,000 characters"),
            ({"mode": "auto", "threshold_unit": "tools"}, "past 15 tools"),
            (
                {"mode": "auto", "threshold": 2.5, "threshold_unit": "context_percent"},
                "past 2.5 % of the context",
            ),
        ],
    )
    def test_says_in_a_sentence_when_each_defers(self, values: dict[str, object], summary: str) -> None:
        make_policy(slug="mine", **values)
        assert summary in visible_text(signed_in(Role.VIEWER).get("/policies/"))

    def test_costs_the_same_queries_for_many(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        for _ in range(20):
            make_policy()
        client = signed_in(Role.VIEWER)
        client.get("/policies/")
        with django_assert_num_queries(5):
            client.get("/policies/")

    def test_empty_list_says_what_to_do(self) -> None:
        Policy.objects.all().delete()
        assert "import_config" in visible_text(signed_in(Role.VIEWER).get("/policies/"))

    def test_needs_sign_in_and_a_role_and_only_reads(self, client: Client) -> None:
        assert client.get("/policies/").status_code == 302
        assert signed_in(Role.NONE).get("/policies/").status_code == 403
        assert signed_in(Role.ADMIN).post("/policies/").status_code == 405


class TestDetail:
    def test_explains_every_field(self) -> None:
        policy = make_policy(
            slug="mine", never_defer=["github/*", "Read"], session_ttl=timedelta(days=7), visible=[]
        )
        page = visible_text(signed_in(Role.VIEWER).get("/policies/mine/"))
        explained = {field.name for group in policies.explain_fields(policy) for field in group.fields}
        settings = {field.name for field in Policy._meta.fields}
        assert settings - explained == {"id", "slug", "description", "version", "created_at", "updated_at"}
        for words in ("github/*, Read", "7 days", "search_tools", "none", "200,000"):
            assert words in page

    def test_shows_its_versions_with_what_each_changed(self) -> None:
        mine = make_policy(slug="mine")
        policy_services.change_policy(policy=mine, changed={"max_results": 8}, actor=COMMAND_LINE)
        page = visible_text(signed_in(Role.VIEWER).get("/policies/mine/"))
        assert "2 current max_results 5 → 8 command line" in page
        assert "1 the first version toolsearch" in page
        assert "Roll back" not in page

    def test_long_history_is_cut_and_can_be_had_whole(self) -> None:
        mine = make_policy(slug="mine", max_results=1)
        for number in range(2, policies.VERSION_ROWS + 4):
            policy_services.change_policy(policy=mine, changed={"max_results": number}, actor=COMMAND_LINE)
        client = signed_in(Role.VIEWER)
        cut, whole = client.get("/policies/mine/"), client.get("/policies/mine/?versions=all")
        assert "20 of 23 versions" in visible_text(cut)
        assert "the first version" not in visible_text(cut)
        assert "the first version" in visible_text(whole)

    def test_tells_what_its_agents_pay_and_the_readings(self) -> None:
        make_policy(slug="mine", mode="auto", threshold_unit="tools", threshold=2)
        make_tool(server=make_server(defer_loading=False), name="aa", description="x" * 3996)
        decisions.bring_up_to_date()
        page = visible_text(signed_in(Role.VIEWER).get("/policies/mine/"))
        assert "1,000 tokens 1 tool loads, 0 wait for a search" in page
        assert "Tools chosen 1 2 under" in page
        assert "Characters 4,000 10,000 under" in page

    @pytest.mark.parametrize(
        ("role", "edits", "deletes"),
        [(Role.VIEWER, False, False), (Role.EDITOR, True, False), (Role.ADMIN, True, True)],
    )
    def test_offers_what_the_role_may_do(self, role: Role, edits: bool, deletes: bool) -> None:
        make_policy(slug="mine")
        page = text_of(signed_in(role).get("/policies/mine/"))
        assert ("/policies/mine/edit/" in page) is edits
        assert ("/policies/mine/delete/" in page) is deletes
        assert "/policies/default/delete/" not in text_of(signed_in(role).get("/policies/default/"))

    def test_missing_policy_sign_in_and_method(self, client: Client) -> None:
        assert signed_in(Role.VIEWER).get("/policies/nothing/").status_code == 404
        assert client.get("/policies/default/").status_code == 302
        assert signed_in(Role.ADMIN).post("/policies/default/").status_code == 405
        assert "<html" in text_of(signed_in(Role.VIEWER).get("/policies/default/"))
