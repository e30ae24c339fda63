"""The page that connects an agent: complete snippets, and a line that follows the first call."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from catalog.access import key_uses
from catalog.access.roles import Role
from catalog.models import ApiKey
from catalog.services import decisions
from sessions.domain.gateway_clients import CLIENTS
from sessions.domain.snippets import GUIDES, KEY_PLACEHOLDER
from sessions.models import CallOutcome
from sessions.services import write_behind
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_call, make_key, make_search, make_server, make_session, make_tool
from tests.sessions.api.calling import fill_catalog, make_agent

pytestmark = pytest.mark.django_db


def tabs_of(response: Any) -> list[Any]:
    return [tab for group in response.context["groups"] for tab in group.tabs]


def texts_of(response: Any) -> list[str]:
    return [way.before + way.text for tab in tabs_of(response) for way in tab.ways]


class TestSnippets:
    def test_mcp_clients_come_first_then_frameworks_then_rest(self) -> None:
        groups = signed_in(Role.VIEWER).get("/connect/").context["groups"]
        assert [group.label for group in groups] == ["MCP clients", "Frameworks", "REST API"]
        labels = [[tab.label for tab in group.tabs] for group in groups]
        assert labels[0][:4] == ["Claude Code", "Codex", "Gemini CLI", "opencode"]
        assert labels[2] == ["curl", "Anthropic SDK", "OpenAI SDK"]

    def test_each_has_the_address_and_nothing_left_to_fill(self) -> None:
        make_tool(server=make_server(name="harbour"), name="get_tide")
        decisions.bring_up_to_date()
        response = signed_in(Role.VIEWER).get("/connect/")
        rest = {guide.slug for guide in GUIDES}
        for tab in tabs_of(response):
            address = "http://testserver" if tab.slug in rest else "http://testserver:8001/mcp"
            for way in tab.ways:
                assert address in way.text, tab.slug
                assert not re.search(r"@\w+@", way.before + way.text), tab.slug
        assert all("get tide" in tab.ways[0].text for tab in tabs_of(response) if tab.slug in rest)

    def test_each_has_a_place_for_the_key_or_asks_for_it(self) -> None:
        for text in texts_of(signed_in(Role.VIEWER).get("/connect/")):
            assert KEY_PLACEHOLDER in text or "promptString" in text

    def test_new_key_is_filled_in_once(self) -> None:
        client = signed_in(Role.ADMIN)
        made = client.post("/keys/", {"name": "k", "policy": "default", "scope": "agent"}, follow=True)
        text = made.context["new_text"]
        assert sum(text in shown for shown in texts_of(made)) >= len(GUIDES) + len(CLIENTS) - 1
        again = client.get(made.redirect_chain[-1][0])
        assert not any(text in shown for shown in texts_of(again))

    def test_gateway_s_own_address_is_used_where_one_is_set(self, settings: Settings) -> None:
        settings.GATEWAY_URL = "https://tools.example.com/mcp"
        page = text_of(signed_in(Role.VIEWER).get("/connect/"))
        assert "https://tools.example.com/mcp" in page
        assert ":8001" not in page

    def test_names_of_tools_become_no_code(self) -> None:
        make_tool(server=make_server(), name="\"; rm -rf '$HOME' #")
        decisions.bring_up_to_date()
        for text in texts_of(signed_in(Role.VIEWER).get("/connect/")):
            assert "rm" not in text.split()

    def test_empty_catalog_has_snippets_too(self) -> None:
        assert len(tabs_of(signed_in(Role.VIEWER).get("/connect/"))) == len(GUIDES) + len(CLIENTS)

    def test_python_snippets_compile(self) -> None:
        for guide in GUIDES[1:]:
            compile(guide.fill(address="http://h", key="tk_x", query="a b"), guide.slug, "exec")

    def test_who_may_make_a_key_is_led_there(self) -> None:
        assert 'href="/keys/"' in text_of(signed_in(Role.ADMIN).get("/connect/"))
        viewer = signed_in(Role.VIEWER).get("/connect/")
        assert 'href="/keys/"' not in text_of(viewer)
        assert "create_key" in visible_text(viewer)

    def test_leads_to_the_reference_of_the_api(self) -> None:
        assert 'href="/api/v1/docs"' in text_of(signed_in(Role.VIEWER).get("/connect/"))

    def test_needs_sign_in_and_a_role_and_only_reads(self, client: Client) -> None:
        assert client.get("/connect/").headers["Location"] == "/sign-in/?next=/connect/"
        assert signed_in(Role.NONE).get("/connect/").status_code == 403
        assert signed_in(Role.ADMIN).post("/connect/").status_code == 405

    @pytest.mark.parametrize("asked", ["0", "99999"])
    def test_missing_key_is_not_found(self, asked: str) -> None:
        assert signed_in(Role.ADMIN).get("/connect/", {"key": asked}).status_code == 404

    @pytest.mark.parametrize("asked", ["", "x", "-1", "1" * 40, "²"])
    def test_nonsense_is_no_key(self, asked: str) -> None:
        response = signed_in(Role.ADMIN).get("/connect/", {"key": asked})
        assert (response.status_code, response.context["key"]) == (200, None)


class TestFirstCall:
    def test_waits_until_the_key_is_used(self) -> None:
        fill_catalog()
        agent, other = make_agent(), make_agent()
        other.begin()
        client, address = signed_in(Role.ADMIN), f"/connect/?key={agent.key.pk}"
        key_uses.flush()
        assert "Waiting for the first call" in visible_text(client.get(address))
        assert client.get(address, headers=HTMX).status_code == 204
        agent.call("POST", "/sessions", {}, User_Agent="Coder/2.1 (linux)")
        key_uses.flush()
        line = visible_text(client.get(address, headers=HTMX))
        assert "s ago: Coder/2.1, began a session" in line
        assert "<html" not in text_of(client.get(address, headers=HTMX))

    def test_a_later_search_is_told_at_once(self) -> None:
        fill_catalog()
        agent = make_agent()
        session = agent.begin()
        key_uses.flush()
        ApiKey.objects.update(last_used_at=timezone.now() - timedelta(seconds=30))
        session.search("create <b>issue</b>")
        write_behind.flush()
        line = visible_text(signed_in(Role.ADMIN).get(f"/connect/?key={agent.key.pk}", headers=HTMX))
        assert "searched “create &lt;b&gt;issue&lt;/b&gt;”" in line

    def test_a_later_call_of_a_tool_is_told_at_once(self) -> None:
        key = make_key()
        ApiKey.objects.update(
            last_used_at=timezone.now() - timedelta(seconds=30), last_call="POST /mcp", last_client="node"
        )
        make_call(key=key, tool="mcp__github__create_issue", client="codex", outcome=CallOutcome.TIMEOUT)
        line = visible_text(signed_in(Role.ADMIN).get(f"/connect/?key={key.pk}", headers=HTMX))
        assert "s ago: codex, called mcp__github__create_issue: timed out Calls" in line

    def test_an_earlier_call_of_a_tool_is_not_the_last(self) -> None:
        key = make_key()
        ApiKey.objects.update(last_used_at=timezone.now(), last_call="POST /mcp", last_client="node")
        make_call(key=key, at=timezone.now() - timedelta(minutes=2))
        line = visible_text(signed_in(Role.ADMIN).get(f"/connect/?key={key.pk}", headers=HTMX))
        assert "s ago: node, reached the gateway Calls" in line

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            ("GET /policies/default/tools", "read its tool list"),
            ("GET /sessions/…/tools", "read its tool list"),
            ("POST /sessions/…/search", "searched"),
            ("POST /sessions/…/turns", "ended a turn"),
            ("POST /mcp", "reached the gateway"),
            ("POST /mcp tools/list", "listed its tools"),
            ("GET /servers", "GET /servers"),
            ("", "called"),
        ],
    )
    def test_calls_are_told_in_words(self, call: str, words: str) -> None:
        key = make_key()
        ApiKey.objects.update(last_used_at=timezone.now(), last_call=call)
        line = visible_text(signed_in(Role.ADMIN).get(f"/connect/?key={key.pk}", headers=HTMX))
        assert f"s ago: {words}" in line

    def test_old_call_is_told_by_its_age(self) -> None:
        make_key()
        ApiKey.objects.update(last_used_at=timezone.now() - timedelta(hours=2, minutes=1))
        assert "Seen 2 hours ago" in visible_text(signed_in(Role.ADMIN).get("/connect/", headers=HTMX))

    def test_names_of_keys_are_for_admins(self) -> None:
        key = make_key(name="secret-project")
        make_search(make_session(key=key), query="q")
        for path in ("/connect/", f"/connect/?key={key.pk}"):
            assert "secret-project" not in visible_text(signed_in(Role.VIEWER).get(path))
        assert "secret-project" in visible_text(signed_in(Role.ADMIN).get(f"/connect/?key={key.pk}"))

    def test_costs_the_same_queries_for_many(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        for _ in range(20):
            make_session(key=make_key())
        ApiKey.objects.update(last_used_at=timezone.now())
        client = signed_in(Role.VIEWER)
        client.get("/connect/", headers=HTMX)
        with django_assert_num_queries(7):
            client.get("/connect/", headers=HTMX)
