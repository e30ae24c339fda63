"""Editing many tools in the console: those ticked, or what a filter matches; a look first, and an undo."""

import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.domain.choices import Loading
from catalog.models import Change, Policy, Tool, ToolTag
from catalog.services import decisions
from catalog.services.tools import mark_facts_changed
from sessions.offers import costs
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def tools() -> list[Tool]:
    """Two tools of github, one of slack, 1,000 tokens each, all deferred."""
    github, slack = make_server(name="github"), make_server(name="slack")
    made = [
        make_tool(server=server, name=name, description="x" * (3998 - len(name)))
        for server, name in ((github, "one"), (github, "two"), (slack, "send"))
    ]
    decisions.bring_up_to_date()
    return made


def ticked(tools: list[Tool]) -> str:
    return "/bulk-edit/?" + "&".join(f"tool={tool.pk}" for tool in tools)


def chosen_in(response: Any) -> str:
    found = re.search(r'name="chosen" value="([^"]+)"', text_of(response))
    assert found
    return found[1]


def sent_under(slug: str) -> int:
    return costs.cost_of_policy(Policy.objects.get(slug=slug)).sent_tokens


def read_signed(text: str) -> int:
    return int(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))


def shown_parts(response: Any) -> list[int]:
    """The tokens of each row of a preview."""
    found = re.findall(r'<td class="number (?:more|less)">([^<]+)</td>', text_of(response))
    return [read_signed(text) for text in found]


def shown_difference(response: Any) -> int:
    found = re.search(r"tokens \(([^)]+)\)", text_of(response))
    assert found
    return read_signed(found[1])


class TestLook:
    def test_opens_with_what_is_to_be_edited(self, tools: list[Tool]) -> None:
        response = signed_in(Role.EDITOR).get(ticked(tools[:2]))
        page = visible_text(response)
        assert "Edit 2 tools" in page
        assert "mcp__github__two" in page
        assert "mcp__slack__send" not in page
        assert "Nothing yet" in page
        assert not broken_rules(response)

    def test_filter_is_read_from_the_url(self, tools: list[Tool]) -> None:
        client = signed_in(Role.EDITOR)
        assert "Edit 2 tools" in visible_text(client.get("/bulk-edit/?all=1&server=github"))
        assert "Edit 3 tools" in visible_text(client.get("/bulk-edit/?all=1"))

    def test_tells_what_flips_and_stores_nothing(self, tools: list[Tool]) -> None:
        response = signed_in(Role.EDITOR).post(ticked(tools[:2]), {"loading": "always"}, headers=HTMX)
        page = visible_text(response)
        assert "<html" not in text_of(response)
        assert f"{sent_under('default')} → " in page
        assert sum(shown_parts(response)) == shown_difference(response)
        assert "2 tools change." in page
        assert "github +2 – +2,000" in page
        assert not Tool.objects.exclude(loading=Loading.INHERIT).exists()

    def test_hiding_and_showing_are_looked_at_too(self, tools: list[Tool]) -> None:
        Tool.objects.filter(pk=tools[0].pk).update(loading="always")
        Tool.objects.filter(pk=tools[1].pk).update(loading="always", hidden=True)
        mark_facts_changed(Tool.objects.all())
        decisions.bring_up_to_date()
        client = signed_in(Role.EDITOR)
        hidden = client.post(ticked(tools), {"visibility": "hidden"}, headers=HTMX)
        assert "2 tools change." in visible_text(hidden)
        assert "github – +1 −1,000" in visible_text(hidden)
        shown = client.post(ticked(tools), {"visibility": "shown"}, headers=HTMX)
        assert "github +1 – +1,000" in visible_text(shown)
        assert sum(shown_parts(shown)) == shown_difference(shown)

    def test_tells_what_flips_under_each_policy(self, tools: list[Tool]) -> None:
        make_policy(slug="eager", mode="off")
        page = visible_text(
            signed_in(Role.EDITOR).post(ticked(tools[:2]), {"loading": "always"}, headers=HTMX)
        )
        assert f"default 2 tools change {sent_under('default')} → " in page
        assert "eager Nothing changes 3,000 tokens" in page

    def test_lists_the_ten_heaviest_servers_and_sums_up_the_rest(self) -> None:
        for number in range(13):
            server = make_server(name=f"server-{number:02}")
            make_tool(server=server, name="a", description="x" * (401 + 101 * number), loading="always")
        decisions.bring_up_to_date()
        part = signed_in(Role.EDITOR).post("/bulk-edit/?all=1", {"loading": "defer"}, headers=HTMX)
        page = visible_text(part)
        assert "13 tools change." in page
        assert page.index("server-12") < page.index("server-11") < page.index("server-03")
        assert "server-02" not in page
        assert "3 more servers – +3" in page
        assert sum(shown_parts(part)) == shown_difference(part)

    def test_tags_flip_nothing(self, tools: list[Tool]) -> None:
        response = signed_in(Role.EDITOR).post(ticked(tools), {"add_tags": "docs"}, headers=HTMX)
        assert "tags are for filtering here" in visible_text(response)

    def test_costs_the_same_queries_for_many_tools(
        self, tools: list[Tool], django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        client = signed_in(Role.EDITOR)
        client.post(ticked(tools), {"loading": "always"}, headers=HTMX)
        for chosen in (tools[:1], tools):
            with django_assert_num_queries(11):
                client.post(ticked(chosen), {"loading": "always"}, headers=HTMX)

    def test_without_script_it_is_a_page(self, tools: list[Tool]) -> None:
        response = signed_in(Role.EDITOR).post(ticked(tools), {"loading": "always", "step": "look"})
        assert "<html" in text_of(response)
        assert "3 tools change." in visible_text(response)

    @pytest.mark.parametrize("query", ["", "?tool=x", "?tool=999999", "?all=1&q=nothing"])
    def test_nothing_ticked_leads_back(self, query: str) -> None:
        response = signed_in(Role.EDITOR).get(f"/bulk-edit/{query}", follow=True)
        assert "Select the tools to edit first." in visible_text(response)


class TestApply:
    def test_changes_and_leads_back_with_an_undo(self, tools: list[Tool]) -> None:
        client = signed_in(Role.EDITOR)
        values = {"loading": "defer", "visibility": "", "add_tags": "docs, team a", "step": "apply"}
        response = client.post("/bulk-edit/?all=1&server=github", values, follow=True)
        assert response.redirect_chain == [("/tools/?server=github", 302)]
        assert "Changed 2 tools." in visible_text(response)
        assert Tool.objects.filter(loading="defer").count() == 2
        assert ToolTag.objects.count() == 4
        change = Change.objects.get()
        assert f'action="/changes/{change.pk}/undo/"' in text_of(response)
        undone = client.post(f"/changes/{change.pk}/undo/", follow=True)
        assert "Undone. 2 tools are as they were before." in visible_text(undone)
        assert not Tool.objects.filter(loading="defer").exists()
        assert not ToolTag.objects.exists()

    @pytest.mark.parametrize("what", ["another matches", "one matches no more"])
    def test_other_tools_than_were_shown_are_not_changed(self, tools: list[Tool], what: str) -> None:
        client, path = signed_in(Role.EDITOR), "/bulk-edit/?all=1&server=github"
        chosen = chosen_in(client.get(path))
        if what == "another matches":
            make_tool(server=tools[0].server, name="three")
        else:
            Tool.objects.filter(pk=tools[0].pk).delete()
        values = {"loading": "defer", "chosen": chosen, "step": "apply"}
        response = client.post(path, values)
        assert response.status_code == 422
        assert "Nothing was changed: other tools match by now" in visible_text(response)
        assert not Tool.objects.filter(loading="defer").exists()
        again = client.post(path, {**values, "chosen": chosen_in(response)})
        assert again.status_code == 302
        of_github = Tool.objects.filter(server=tools[0].server)
        assert of_github.filter(loading="defer").count() == of_github.count()

    def test_look_that_names_the_pressed_button_stores_nothing(self, tools: list[Tool]) -> None:
        """htmx adds the button that is pressed while a look is due."""
        values = {"loading": "always", "step": "apply"}
        response = signed_in(Role.EDITOR).post(ticked(tools[:2]), values, headers=HTMX)
        assert "2 tools change." in visible_text(response)
        assert not Change.objects.exists()

    def test_admin_marks_tools_as_read_only_and_editors_are_not_offered_that(self, tools: list[Tool]) -> None:
        admin, editor = signed_in(Role.ADMIN), signed_in(Role.EDITOR)
        look = admin.post(ticked(tools), {"read_only": "yes"}, headers=HTMX)
        assert "Nothing changes in what loads" in visible_text(look)
        assert "read_only" not in editor.get(ticked(tools)).context["form"].fields
        for client, marked in ((editor, 0), (admin, 3)):
            client.post(ticked(tools), {"read_only": "yes", "step": "apply"})
            assert Tool.objects.filter(read_only=True).count() == marked

    def test_record_tells_numbers_not_ids(self, tools: list[Tool]) -> None:
        client = signed_in(Role.EDITOR)
        client.post(ticked(tools), {"loading": "defer", "add_tags": "docs", "step": "apply"})
        page = visible_text(client.get("/changes/"))
        assert "tool 3 tools loading inherit (3) → defer (3) tag docs no (3) → yes (3)" in page

    def test_nothing_different_is_told(self, tools: list[Tool]) -> None:
        response = signed_in(Role.EDITOR).post(ticked(tools), {"step": "apply"}, follow=True)
        assert "nothing was changed" in visible_text(response)

    @pytest.mark.parametrize(
        ("values", "message"),
        [({"add_tags": "x" * 41}, "Each at most 40 characters"), ({"loading": "maybe"}, "Select a valid")],
    )
    def test_mistake_is_told_in_place(self, tools: list[Tool], values: dict[str, str], message: str) -> None:
        response = signed_in(Role.EDITOR).post(ticked(tools), {**values, "step": "apply"})
        assert response.status_code == 422
        assert message in visible_text(response)
        assert not Change.objects.exists()


def test_others_are_refused(client: Client, tools: list[Tool]) -> None:
    address = ticked(tools)
    assert client.get(address).status_code == 302
    assert signed_in(Role.VIEWER).get(address).status_code == 403
    assert signed_in(Role.VIEWER).post(address, {"loading": "defer", "step": "apply"}).status_code == 403
    assert signed_in(Role.EDITOR).delete(address).status_code == 405
    assert not Change.objects.exists()


@pytest.mark.parametrize(("role", "offered"), [(Role.VIEWER, False), (Role.EDITOR, True)])
def test_list_offers_it_to_editors(tools: list[Tool], role: Role, offered: bool) -> None:
    page = text_of(signed_in(role).get("/tools/?server=github"))
    assert ('action="/bulk-edit/"' in page) is offered
    assert ('type="checkbox"' in page) is offered
    assert ("Edit all 2 matching" in page) is offered


def test_decisions_of_edited_tools_are_being_made_until_they_are(tools: list[Tool]) -> None:
    client = signed_in(Role.EDITOR)
    client.post(ticked(tools[:2]), {"loading": "always", "step": "apply"})
    waiting = client.get("/tools/")
    assert visible_text(waiting).count("deciding…") == 2
    assert 'id="tool-table" hx-get="/tools/"' in text_of(waiting)
    assert visible_text(client.get("/servers/github/")).count("deciding…") == 2
    decisions.bring_up_to_date()
    decided = visible_text(client.get("/tools/"))
    assert "deciding…" not in decided
    assert decided.count("the tool is set to always load") == 2
