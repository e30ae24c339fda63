"""The gateway's page: where it is, whether it runs, what it serves, who calls it, its connections."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from catalog.access.roles import Role
from catalog.domain.choices import Kind, Transport
from catalog.services import decisions
from sessions.domain.gateway_clients import CLIENTS
from sessions.models import GatewayClient, OpenLease
from sessions.selectors import gateway_page
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import (
    make_gateway_client,
    make_gateway_process,
    make_key,
    make_lease,
    make_policy,
    make_server,
    make_tool,
)

pytestmark = pytest.mark.django_db

PAGE = "/gateway/"
LONG_AGO = timedelta(seconds=11)


def make_callable_tool(**values: Any) -> None:
    make_tool(server=make_server(transport=Transport.HTTP, url="https://mcp.example.com/"), **values)


class TestAddress:
    def test_is_on_the_host_that_was_asked_at_the_gateway_s_port(self, settings: Settings) -> None:
        settings.GATEWAY_PORT = 9001
        assert "http://testserver:9001/mcp" in text_of(signed_in(Role.VIEWER).get(PAGE))

    def test_of_a_number_of_six_is_in_brackets(self, settings: Settings) -> None:
        settings.ALLOWED_HOSTS = ["[::1]"]
        page = signed_in(Role.VIEWER).get(PAGE, headers={"Host": "[::1]:8000"})
        assert "http://[::1]:8001/mcp" in text_of(page)

    def test_that_was_set_is_the_one(self, settings: Settings) -> None:
        settings.GATEWAY_URL = "https://tools.example.com/mcp"
        assert "https://tools.example.com/mcp" in text_of(signed_in(Role.VIEWER).get(PAGE))


class TestProcesses:
    def test_without_one_the_page_says_how_to_start_it(self) -> None:
        make_gateway_process(seen_at=timezone.now() - LONG_AGO, open_calls=3)
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert "Not running" in page
        assert "manage.py run_node gateway" in page

    def test_all_that_were_seen_lately_count(self) -> None:
        make_gateway_process(open_calls=2, open_streams=5)
        make_gateway_process(open_calls=1, open_streams=1)
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert "Processes 2 Open calls 3 Open streams 6" in page


class TestServed:
    def test_tools_that_nobody_can_call_are_counted_with_the_reason(self) -> None:
        make_callable_tool(name="a")
        make_tool(server=make_server(), name="b")
        make_tool(server=make_server(kind=Kind.BUILTIN), name="c")
        decisions.bring_up_to_date()
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert "Can be called 1 tool " in page
        assert "1 of servers that are a file of definitions" in page
        assert "1 built into an agent" in page

    def test_policy_can_be_chosen(self) -> None:
        make_policy(slug="narrow", visible=["nothing"])
        make_callable_tool()
        decisions.bring_up_to_date()
        page = signed_in(Role.VIEWER).get(PAGE, {"policy": "narrow"})
        assert "Can be called 0 tools" in visible_text(page)
        assert "<option selected>narrow</option>" in text_of(page)

    def test_unknown_policy_means_the_default_one(self) -> None:
        assert signed_in(Role.VIEWER).get(PAGE, {"policy": "x"}).context["policy"].slug == "default"


class TestClients:
    def test_those_seen_are_listed_the_last_first(self) -> None:
        key, now = make_key(name="laptop"), timezone.now()
        make_gateway_client(key=key, name="old", last_seen_at=now - timedelta(days=2))
        make_gateway_client(key=key, name="codex", version="0.169", last_call_at=now - timedelta(hours=3))
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert page.index("codex 0.169") < page.index("old")
        assert "laptop 3 hours ago" in page
        assert "laptop never" in page

    def test_without_one_the_page_leads_to_the_snippets(self) -> None:
        assert "No MCP client has connected yet" in visible_text(signed_in(Role.VIEWER).get(PAGE))

    def test_very_many_are_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gateway_page, "CLIENT_ROWS", 2)
        for _ in range(5):
            make_gateway_client()
        assert "The last 2, and 3 more" in visible_text(signed_in(Role.VIEWER).get(PAGE))

    def test_every_known_client_has_its_row_and_its_set_up(self) -> None:
        page = text_of(signed_in(Role.VIEWER).get(PAGE))
        for client in CLIENTS:
            assert f'href="/connect/?client={client.slug}"' in page
            opened = text_of(signed_in(Role.VIEWER).get("/connect/", {"client": client.slug}))
            assert f'id="agent-{client.slug}" checked' in opened


class TestLeases:
    def test_those_of_living_processes_are_listed(self) -> None:
        alive, lost = make_gateway_process(), make_gateway_process(seen_at=timezone.now() - LONG_AGO)
        lease = make_lease(process=alive, open_calls=7)
        make_lease(process=alive, server=lease.server, key=make_key(name="laptop"))
        gone = make_lease(process=lost)
        page = visible_text(signed_in(Role.VIEWER).get(PAGE))
        assert " shared 2025-11-25 7" in page
        assert " laptop 2025-11-25 0" in page
        assert page.count(lease.server.name) >= 2
        assert gone.server.name not in page

    def test_editor_closes_one(self) -> None:
        lease, client = make_lease(), signed_in(Role.EDITOR)
        assert f'action="/gateway/connections/{lease.pk}/close/"' in text_of(client.get(PAGE))
        answer = client.post(f"/gateway/connections/{lease.pk}/close/", follow=True)
        assert OpenLease.objects.get().close_requested
        assert "The connection closes within seconds" in visible_text(answer)
        assert "closing" in visible_text(client.get(PAGE))

    def test_one_that_is_gone_is_told_so(self) -> None:
        answer = signed_in(Role.EDITOR).post(f"/gateway/connections/{uuid.uuid4()}/close/", follow=True)
        assert "closed already" in visible_text(answer)

    def test_viewer_has_no_button_and_may_not_close(self) -> None:
        lease, client = make_lease(), signed_in(Role.VIEWER)
        assert "/close/" not in text_of(client.get(PAGE))
        assert client.post(f"/gateway/connections/{lease.pk}/close/").status_code == 403
        assert not OpenLease.objects.get().close_requested

    def test_nothing_is_closed_by_looking(self) -> None:
        lease = make_lease()
        assert signed_in(Role.EDITOR).get(f"/gateway/connections/{lease.pk}/close/").status_code == 405


class TestPage:
    def test_needs_sign_in_and_a_role_and_only_reads(self, client: Client) -> None:
        assert client.get(PAGE).headers["Location"] == f"/sign-in/?next={PAGE}"
        assert signed_in(Role.NONE).get(PAGE).status_code == 403
        assert signed_in(Role.ADMIN).post(PAGE).status_code == 405

    def test_part_is_empty_while_nothing_changes(self) -> None:
        process, client = make_gateway_process(), signed_in(Role.VIEWER)
        part = client.get(PAGE, headers=HTMX)
        assert "<html" not in text_of(part)
        assert "What clients can do" not in text_of(part)
        seen = {**HTMX, "X-Seen": part.context["stamp"]}
        process.seen_at += timedelta(seconds=2)
        process.save()
        assert client.get(PAGE, headers=seen).status_code == 204
        make_gateway_client()
        assert client.get(PAGE, headers=seen).status_code == 200

    @pytest.mark.parametrize("change", ["call", "lease", "closing", "tool", "silence"])
    def test_whatever_is_shown_is_told(self, change: str) -> None:
        lease, client = make_lease(), signed_in(Role.VIEWER)
        caller = make_gateway_client()
        seen = {**HTMX, "X-Seen": client.get(PAGE, headers=HTMX).context["stamp"]}
        assert client.get(PAGE, headers=seen).status_code == 204
        if change == "call":
            GatewayClient.objects.filter(pk=caller.pk).update(last_call_at=timezone.now())
        elif change == "lease":
            make_lease(process=lease.process)
        elif change == "closing":
            OpenLease.objects.update(close_requested=True)
        elif change == "tool":
            make_tool()
            decisions.bring_up_to_date()
        else:
            lease.process.seen_at -= LONG_AGO
            lease.process.save()
        assert client.get(PAGE, headers=seen).status_code == 200

    def test_costs_the_same_queries_for_many(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        process, client = make_gateway_process(), signed_in(Role.EDITOR)
        for _ in range(20):
            make_gateway_client()
            make_lease(process=process, key=make_key())
        client.get(PAGE)
        with django_assert_num_queries(9):
            client.get(PAGE)
