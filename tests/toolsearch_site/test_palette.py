"""The command palette: what it finds, what it offers to whom, and what it costs."""

import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.domain.choices import Transport
from catalog.models import Server, Tool
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_key, make_policy, make_server, make_session, make_tool
from toolsearch_site import palette

pytestmark = pytest.mark.django_db


def labels(text: str, role: Role = Role.ADMIN) -> dict[str, list[str]]:
    return {group.heading: [item.label for item in group.items] for group in palette.find(text, role)}


def url_of(text: str, heading: str, role: Role = Role.ADMIN) -> str:
    return next(group.items[0].url for group in palette.find(text, role) if group.heading == heading)


class TestFinding:
    def test_every_kind_leads_to_its_page(self) -> None:
        tool = make_tool(server=make_server(name="zebra-mail"), name="zebra_send")
        make_policy(slug="zebra-policy")
        key = make_key(name="zebra-key")
        session = make_session(key=key, external_id="zebra-chat")
        assert url_of("zebra", "Servers") == tool.server.get_absolute_url()
        assert url_of("zebra", "Tools") == tool.get_absolute_url()
        assert url_of("zebra", "Policies") == "/policies/zebra-policy/"
        assert url_of("zebra", "Sessions") == session.get_absolute_url()
        assert url_of("zebra", "Keys") == f"/keys/#key-{key.pk}"
        assert url_of("test con", "Pages") == "/console/"
        assert url_of(str(session.pk), "Sessions") == session.get_absolute_url()

    def test_without_words_pages_are_listed_and_nothing_is_read(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        make_tool()
        with django_assert_num_queries(0):
            found = labels("  ")
        assert list(found) == ["Pages"]
        assert {"Overview", "Tools", "Add servers"} <= set(found["Pages"])

    def test_every_word_counts_and_the_very_name_comes_first(self) -> None:
        server = make_server(name="git")
        for name in ("a_git_issue_long", "git_issue", "issue"):
            make_tool(server=server, name=name)
        assert labels("issue git")["Tools"] == ["issue", "git_issue", "a_git_issue_long"]
        assert labels("GIT_ISSUE")["Tools"][0] == "git_issue"

    def test_hidden_and_gone_tools_are_not_offered(self) -> None:
        make_tool(name="zebra_hidden", hidden=True)
        gone = make_tool(name="zebra_gone")
        Tool.objects.filter(pk=gone.pk).update(gone_at=gone.changed_at)
        assert "Tools" not in labels("zebra")

    def test_key_on_a_later_page_of_the_list(self) -> None:
        keys = [make_key(name=f"key-{number:03}") for number in range(55)]
        assert url_of("key-052", "Keys") == f"/keys/?page=2#key-{keys[52].pk}"

    @pytest.mark.parametrize("text", ["\0", "%", "_", "'; drop", "x" * 5000, "refresh", "🎉 \u202e"])
    def test_any_text_is_only_looked_for(self, text: str) -> None:
        make_tool()
        assert signed_in(Role.ADMIN).get("/find/", {"q": text}, headers=HTMX).status_code == 200


class TestActions:
    @pytest.fixture
    def server(self) -> Server:
        return make_server(name="stripe", transport=Transport.STDIO, command="x")

    def test_verb_and_a_part_of_the_name(self, server: Server) -> None:
        make_server(name="other", transport=Transport.STDIO, command="x")
        assert labels("refresh str")["Actions"] == ["Refresh stripe"]
        assert url_of("defer stripe", "Actions") == "/servers/stripe/loading/?defer=defer"
        assert url_of("edit def", "Actions") == "/policies/default/edit/"

    def test_name_of_one_server_offers_what_can_be_done_with_it(self, server: Server) -> None:
        offered = labels("stripe")["Actions"]
        assert offered == ["Refresh stripe", "Defer stripe", "Load stripe", "Disable stripe"]

    def test_what_would_change_nothing_is_not_offered(self, server: Server) -> None:
        Server.objects.update(enabled=False, defer_loading=True)
        offered = labels("stripe")["Actions"]
        assert offered == ["Load stripe", "Inherit loading of stripe", "Enable stripe"]

    def test_snapshot_is_not_refreshed(self) -> None:
        make_server(name="frozen")
        assert "Actions" not in labels("refresh frozen")

    def test_action_is_a_form_with_its_token_and_works(self, server: Server) -> None:
        client = Client(enforce_csrf_checks=True)
        client.cookies = signed_in(Role.EDITOR).cookies
        page = text_of(client.get("/find/?q=disable+stripe", headers=HTMX))
        form = re.search(
            r'<form method="post" action="([^"]+)" id="(palette-form-[\d-]+)">(.*?)</form>', page, re.DOTALL
        )
        assert form is not None
        assert f'form="{form[2]}"' in page
        given = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[3]))
        assert client.post(form[1], given).status_code == 302
        server.refresh_from_db()
        assert not server.enabled


class TestRoles:
    @pytest.mark.parametrize("text", ["zebra", "refresh zebra", "edit default", "add", "keys", "system"])
    def test_viewer_is_offered_nothing_that_is_refused(self, text: str) -> None:
        make_tool(server=make_server(name="zebra", transport=Transport.STDIO, command="x"), name="zebra_send")
        make_key(name="zebra-key")
        client = signed_in(Role.VIEWER)
        page = text_of(client.get("/find/", {"q": text}, headers=HTMX))
        assert "zebra-key" not in page
        assert "<form" not in page
        for address in re.findall(r'role="option"[^>]*href="([^"]+)"', page):
            assert client.get(address.replace("&amp;", "&")).status_code == 200, address

    @pytest.mark.parametrize(("role", "sees_keys"), [(Role.EDITOR, False), (Role.ADMIN, True)])
    def test_keys_are_for_admins(self, role: Role, sees_keys: bool) -> None:
        make_key(name="zebra-key")
        assert ("Keys" in labels("zebra", role)) is sees_keys
        assert ("Keys" in labels("", role)["Pages"]) is sees_keys


class TestPart:
    def test_hostile_names_are_shown_and_harmless(self) -> None:
        make_tool(server=make_server(name="<b>zebra\u202e"), name="<script>zebra")
        response = signed_in(Role.ADMIN).get("/find/?q=zebra", headers=HTMX)
        assert not broken_rules(response)
        assert "<script>" not in text_of(response)
        assert "\\u{202e}" in visible_text(response)

    def test_says_how_many_and_offers_to_search_on(self) -> None:
        make_tool(name="zebra_send")
        response = signed_in(Role.VIEWER).get("/find/?q=zebra", headers=HTMX)
        assert "1 result" in visible_text(response)
        assert 'href="/tools/?q=zebra"' in text_of(response)
        assert 'href="/console/?q=zebra"' in text_of(response)

    def test_without_the_script_it_is_the_tools_filter(self) -> None:
        assert signed_in(Role.VIEWER).get("/find/?q=zebra").headers["Location"] == "/tools/?q=zebra"

    def test_is_on_every_page_with_a_button(self) -> None:
        page = text_of(signed_in(Role.VIEWER).get("/changes/"))
        assert page.count('data-opens="palette"') == 2
        assert 'role="combobox"' in page

    def test_costs_the_same_queries_for_many(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        def count_items() -> int:
            with django_assert_num_queries(5):
                return sum(len(group.items) for group in palette.find("zebra", Role.ADMIN))

        make_tool(server=make_server(name="zebra-0"), name="zebra_0")
        make_tool(server=make_server(name="zebra-1"), name="zebra_1")
        few = count_items()
        for number in range(2, 40):
            make_tool(server=make_server(name=f"zebra-{number}"), name=f"zebra_{number}")
            make_session(external_id=f"zebra-{number}")
            make_key(name=f"zebra-{number}")
        assert few < count_items() <= 30
