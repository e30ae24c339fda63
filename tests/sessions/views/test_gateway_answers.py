"""The tab that shows what an MCP client gets: the same as by REST, in both exposures."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.domain.choices import Mode, Transport
from catalog.models import Policy, Server
from catalog.services import decisions
from sessions.offers import gateway_offer
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_server, make_tool
from tests.sessions.api.calling import make_agent

pytestmark = pytest.mark.django_db

PAGE, FILE = "/policies/default/agent/?format=gateway", "/policies/default/agent.json?format=gateway"


@pytest.fixture(autouse=True)
def server(db: None) -> Server:
    Policy.objects.filter(slug="default").update(mode=Mode.ALWAYS, never_defer=["*tool_0"])
    server = make_server(name="notes", transport=Transport.HTTP, url="https://notes.example.com/")
    for number in range(3):
        make_tool(server=server, name=f"tool_{number}", description="x" * 4000)
    make_tool(server=make_server())
    decisions.bring_up_to_date()
    return server


def listed(response: Any) -> Any:
    found = re.search(r'id="tools-text"[^>]*>(.*?)</pre>', text_of(response), re.DOTALL)
    assert found
    return json.loads(html.unescape(found[1]))


class TestPage:
    @pytest.mark.parametrize("exposure", ["search", "native"])
    def test_shows_the_list_that_rest_gives(self, exposure: str) -> None:
        sent = make_agent(admin=True).read(f"/policies/default/mcp?expose={exposure}")
        page = signed_in(Role.VIEWER).get(f"{PAGE}&expose={exposure}")
        assert listed(page) == sent["tools"]
        assert f"{sent['tokens']:,} tokens" in visible_text(page)

    def test_counts_what_is_left_out(self) -> None:
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert "Left out 1 tool " in page
        assert "1 of servers that are a file of definitions" in page

    def test_says_what_search_saves(self) -> None:
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert re.search(r"3 tools can be called, saved [\d,]+ tokens", page)

    def test_says_where_search_costs_more(self, server: Server) -> None:
        server.tools.all().delete()
        for number in range(2):
            make_tool(server=server, name=f"small_{number}")
        decisions.bring_up_to_date()
        assert "listing few costs" in visible_text(signed_in(Role.VIEWER).get(PAGE))

    def test_is_the_first_tab_and_names_the_policy_s_exposure(self) -> None:
        page = text_of(signed_in(Role.VIEWER).get(f"{PAGE}&expose=native"))
        tabs = re.findall(r'<a id="tab-\d+" href="([^"]+)"( aria-current="true")?', page)
        assert tabs[0] == ("?format=gateway", ' aria-current="true"')
        assert not any(current for _, current in tabs[1:])
        search, native = re.findall(r'<a id="exposure-(?:search|native)"(.*?)</a>', page, re.DOTALL)
        assert "policy&#x27;s" in search or "policy's" in search
        assert "aria-current" in native

    def test_unknown_exposure_is_the_policy_s_own(self) -> None:
        page = signed_in(Role.VIEWER).get(f"{PAGE}&expose=x")
        assert page.context["answer"].offer.exposure == "search"

    def test_part_has_no_frame(self) -> None:
        part = text_of(signed_in(Role.VIEWER).get(PAGE, headers=HTMX))
        assert 'id="agent-answer"' in part
        assert "<html" not in part

    def test_needs_sign_in_and_a_role_and_only_reads(self, client: Client) -> None:
        assert client.get(PAGE).headers["Location"].startswith("/sign-in/")
        assert signed_in(Role.NONE).get(PAGE).status_code == 403
        assert signed_in(Role.ADMIN).post(PAGE).status_code == 405

    def test_missing_policy_is_not_found(self) -> None:
        assert signed_in(Role.VIEWER).get(PAGE.replace("default", "nothing")).status_code == 404

    def test_costs_the_same_queries_for_many(
        self, server: Server, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        for number in range(20):
            make_tool(server=server, name=f"more_{number}")
        decisions.bring_up_to_date()
        client = signed_in(Role.VIEWER)
        client.get(PAGE)
        with django_assert_num_queries(6):
            client.get(PAGE)


class TestFile:
    def test_has_every_page_as_one_list(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gateway_offer, "GATEWAY_PAGE_ENTRIES", 1)
        answer = signed_in(Role.VIEWER).get(f"{FILE}&expose=native")
        whole = answer.json()
        assert [tool["name"] for tool in whole["tools"]] == [
            "read_result",
            *(f"notes__tool_{n}" for n in range(3)),
        ]
        assert "nextCursor" not in whole
        assert answer.headers["Content-Disposition"] == 'attachment; filename="default-gateway-native.json"'

    def test_part_is_the_list_alone(self) -> None:
        client = signed_in(Role.VIEWER)
        assert client.get(f"{FILE}&part=tools").json() == client.get(FILE).json()["tools"]
