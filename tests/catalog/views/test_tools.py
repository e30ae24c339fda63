"""The pages of tools."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.domain.choices import Loading
from catalog.domain.definitions import Definition
from catalog.models import Change, Policy, Server, Tool, ToolTag
from catalog.services import decisions, derived_state
from catalog.services.tools import store_definitions
from tests.harness.pages import HTMX, signed_in, text_of, visible_text
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db
DETAIL_QUERIES = 16
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "Where the file is."}},
    "required": ["path"],
}


def names_on(response: Any) -> list[str]:
    return [row.tool.name for row in response.context["page"].rows]


class TestList:
    def test_largest_tool_comes_first_with_its_tokens(self) -> None:
        server = make_server(name="files")
        make_tool(server=server, name="small")
        make_tool(server=server, name="large", description="x" * 4993)
        response = signed_in(Role.VIEWER).get("/tools/")
        assert names_on(response) == ["large", "small"]
        assert "1,250" in visible_text(response)

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("q=message", ["send"]),
            ("q=a+SLACK", ["send"]),
            ("q=slack+nothing", []),
            ("server=files", ["read", "write"]),
            ("loading=always", ["read"]),
            ("state=hidden", ["secret"]),
            ("state=gone", ["old"]),
            ("state=any", ["old", "read", "secret", "send", "write"]),
            ("server=files&loading=inherit", ["write"]),
            ("size=100", ["write"]),
            ("size=nonsense", ["read", "send", "write"]),
            ("tag=docs", ["send"]),
            ("loading=nonsense&state=nonsense&sort=name", ["read", "send", "write"]),
        ],
    )
    def test_filters_by_what_the_url_says(self, query: str, found: list[str]) -> None:
        files, slack = make_server(name="files"), make_server(name="slack")
        make_tool(server=files, name="read", loading=Loading.ALWAYS)
        make_tool(server=files, name="write", description="x" * 400)
        ToolTag.objects.create(
            tool=make_tool(server=slack, name="send", description="Send a message."), name="docs"
        )
        make_tool(server=slack, name="secret", hidden=True)
        old = make_tool(name="old")
        Tool.objects.filter(pk=old.pk).update(gone_at=timezone.now())
        assert sorted(names_on(signed_in(Role.VIEWER).get(f"/tools/?{query}"))) == found

    @pytest.mark.parametrize(
        ("sort", "order"),
        [
            ("name", ["b", "c", "a"]),
            ("size", ["c", "a", "b"]),
            ("server", ["b", "c", "a"]),
            ("changed", ["a", "c", "b"]),
            ("-name", ["a", "c", "b"]),
            ("-size", ["b", "a", "c"]),
            ("-nonsense", ["c", "a", "b"]),
        ],
    )
    def test_sorts(self, sort: str, order: list[str]) -> None:
        first, second = make_server(name="first"), make_server(name="second")
        make_tool(server=first, name="b", description="x" * 10)
        make_tool(server=first, name="c", description="x" * 90)
        make_tool(server=second, name="a", description="x" * 50)
        assert names_on(signed_in(Role.VIEWER).get(f"/tools/?sort={sort}")) == order

    def test_second_click_turns_the_order_round(self) -> None:
        make_tool()
        client = signed_in(Role.VIEWER)
        once, twice = text_of(client.get("/tools/?sort=name")), text_of(client.get("/tools/?sort=-name"))
        assert re.search(r'aria-sort="ascending">\s*<a id="sort-name"\s+href="\?sort=-name"', once)
        assert re.search(r'aria-sort="descending">\s*<a id="sort-name"\s+href="\?sort=name"', twice)
        assert 'href="?sort=size"' in twice

    def test_pages_hold_fifty_and_keep_the_filter(self) -> None:
        server = make_server(name="files")
        _make_many(server, 60)
        client = signed_in(Role.VIEWER)
        first = client.get("/tools/?server=files&sort=name")
        last = client.get("/tools/?server=files&sort=name&page=99")
        assert len(names_on(first)) == 50
        assert "1–50 of 60 tools" in visible_text(first)
        assert "?server=files&amp;sort=name&amp;page=2" in text_of(first)
        assert len(names_on(last)) == 10
        assert not set(names_on(first)) & set(names_on(last))

    def test_server_is_chosen_from_a_menu_or_found_where_there_are_many(self) -> None:
        client = signed_in(Role.VIEWER)
        Server.objects.bulk_create(
            Server(name=f"team-{number:03}", transport="snapshot") for number in range(50)
        )
        for address in ("/tools/?server=team-007", "/review/?server=team-007"):
            assert '<option selected value="team-007">' in text_of(client.get(address))
        Server.objects.create(name="one-more", transport="snapshot")
        for address in ("/tools/?server=team-007", "/review/?server=team-007"):
            page = text_of(client.get(address))
            assert "<option selected value=" not in page.partition('name="loading"')[0]
            assert 'name="server" value="team-007" role="combobox"' in page

    def test_part_is_the_table_alone(self) -> None:
        response = signed_in(Role.VIEWER).get("/tools/?q=x", headers=HTMX)
        assert "<html" not in text_of(response)
        assert 'id="tool-table"' in text_of(response)

    def test_empty_list_says_what_to_do(self) -> None:
        client = signed_in(Role.VIEWER)
        assert "import_tools" in visible_text(client.get("/tools/"))
        assert "No tool matches" in visible_text(client.get("/tools/?q=x"))

    def test_costs_the_same_queries_for_many_tools(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        _make_many(make_server(), 60)
        client = signed_in(Role.VIEWER)
        client.get("/tools/")
        with django_assert_num_queries(15):
            client.get("/tools/")
        with django_assert_num_queries(12):
            client.get("/tools/", headers=HTMX)

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("decision=load", ["kept", "pinned"]),
            ("decision=defer", ["other"]),
            ("reason=tool_always", ["pinned"]),
            ("decision=defer&reason=tool_always", []),
            ("decision=defer&policy=eager", []),
            ("reason=search_off&policy=eager", ["kept", "other", "pinned"]),
            ("decision=load&policy=nothing", ["kept", "pinned"]),
            ("decision=nonsense&reason=nonsense", ["kept", "other", "pinned"]),
        ],
    )
    def test_filters_by_decision_and_reason_under_a_policy(self, query: str, found: list[str]) -> None:
        make_tool(server=make_server(), name="pinned", loading=Loading.ALWAYS)
        make_tool(server=make_server(defer_loading=False), name="kept")
        make_tool(server=make_server(), name="other")
        make_policy(slug="eager", mode="off")
        decisions.bring_up_to_date()
        assert sorted(names_on(signed_in(Role.VIEWER).get(f"/tools/?{query}"))) == found

    def test_asks_again_until_the_decisions_have_caught_up(self) -> None:
        make_tool()
        client = signed_in(Role.VIEWER)
        assert 'hx-get="/tools/?q=x" hx-trigger="load delay:2s"' in text_of(client.get("/tools/?q=x"))
        decisions.bring_up_to_date()
        assert "load delay:2s" not in text_of(client.get("/tools/?q=x"))

    def test_tells_each_decision_with_its_reason_in_words(self) -> None:
        make_tool(server=make_server(defer_loading=True), name="one")
        make_tool(server=make_server(), name="two", hidden=True)
        decisions.bring_up_to_date()
        page = visible_text(signed_in(Role.VIEWER).get("/tools/?state=any"))
        assert "deferred its server is set to defer" in page
        assert "Hidden" in page

    def test_does_not_read_the_schemas(self) -> None:
        make_tool(input_schema=SCHEMA)
        tool = signed_in(Role.VIEWER).get("/tools/").context["page"].rows[0].tool
        assert "input_schema" in tool.get_deferred_fields()

    def test_needs_sign_in_and_a_role_and_only_reads(self, client: Client) -> None:
        assert client.get("/tools/").status_code == 302
        assert signed_in(Role.NONE).get("/tools/").status_code == 403
        assert signed_in(Role.ADMIN).post("/tools/").status_code == 405


class TestDetail:
    def test_shows_the_definition(self) -> None:
        tool = make_tool(
            name="read_file",
            title="Read a file",
            description="Reads it.",
            input_schema=SCHEMA,
            annotations={"readOnlyHint": True},
        )
        page = visible_text(signed_in(Role.VIEWER).get(tool.get_absolute_url()))
        for words in ("Reads it.", "Where the file is.", "required", "readOnlyHint yes", tool.qualified_name):
            assert words in page

    def test_shows_what_each_revision_changed(self) -> None:
        server = make_server()
        for words in ("Reads a file.", "Reads one file."):
            definition = Definition(name="read", description=words)
            store_definitions(server=server, definitions=[definition], now=timezone.now())
        page = text_of(signed_in(Role.VIEWER).get(Tool.objects.get().get_absolute_url()))
        assert "Reads <del>a</del><ins>one</ins> file." in page
        assert "the oldest shown" in page

    def test_tells_the_decision_under_each_policy_and_the_next_rule(self) -> None:
        tool = make_tool(server=make_server(defer_loading=False), loading=Loading.DEFER)
        make_policy(slug="eager", mode="off")
        client = signed_in(Role.VIEWER)
        assert visible_text(client.get(tool.get_absolute_url())).count("Not decided yet") == 2
        decisions.bring_up_to_date()
        page = visible_text(client.get(tool.get_absolute_url()))
        assert (
            "default deferred the tool is set to defer Otherwise it loads, "
            "because its server is set to load server_load" in page
        )
        assert (
            "eager loads search is off in this policy Otherwise it is deferred, because the tool is set"
            in page
        )

    def test_tells_why_no_policy_lists_a_tool(self) -> None:
        hidden, unseen = make_tool(hidden=True), make_tool(name="unseen")
        Policy.objects.update(visible=["other"])
        decisions.bring_up_to_date()
        client = signed_in(Role.VIEWER)
        assert "Not listed: it is hidden" in visible_text(client.get(hidden.get_absolute_url()))
        assert "the policy does not show it" in visible_text(client.get(unseen.get_absolute_url()))

    def test_viewer_reads_the_settings_and_editor_changes_them(self) -> None:
        tool = make_tool(loading=Loading.DEFER, keywords=["file", "disk"])
        as_viewer = signed_in(Role.VIEWER).get(tool.get_absolute_url())
        assert "file, disk" in visible_text(as_viewer)
        assert "settings/" not in text_of(as_viewer)
        as_editor = text_of(signed_in(Role.EDITOR).get(tool.get_absolute_url()))
        assert f'action="/tools/{tool.qualified_name}/settings/"' in as_editor
        assert 'value="defer" checked' in as_editor

    def test_gives_advice_with_what_to_do(self) -> None:
        make_tool(server=make_server(name="jira"), name="createIssue", description="Open a ticket.")
        tool = make_tool(server=make_server(name="github"), name="create_issue", input_schema={"oneOf": [{}]})
        derived_state.bring_up_to_date()
        response = signed_in(Role.VIEWER).get(tool.get_absolute_url())
        page = visible_text(response)
        assert 'href="/tools/mcp__jira__createIssue/"' in text_of(response)
        assert "The schema has oneOf at its root, which model APIs refuse." in page
        assert "It has the same name as jira/createIssue." in page
        assert "There is no description. Only the name" in page

    def test_good_definition_is_told_so(self) -> None:
        tool = make_tool(name="read_file", description="Read a file from the disk.", input_schema=SCHEMA)
        derived_state.bring_up_to_date()
        assert "No problems found" in visible_text(signed_in(Role.VIEWER).get(tool.get_absolute_url()))

    def test_costs_the_same_queries_in_a_large_catalog(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        tool = make_tool()
        client = signed_in(Role.VIEWER)
        for count in (1, 60):
            _make_many(make_server(), count)
            client.get(tool.get_absolute_url())  # reads once which tools are listed
            with django_assert_num_queries(DETAIL_QUERIES):
                client.get(tool.get_absolute_url())

    def test_missing_tool(self) -> None:
        response = signed_in(Role.VIEWER).get("/tools/nothing/")
        assert response.status_code == 404
        assert "There is no tool named nothing." in visible_text(response)

    def test_needs_sign_in_and_only_reads(self, client: Client) -> None:
        address = make_tool().get_absolute_url()
        assert client.get(address).status_code == 302
        assert signed_in(Role.ADMIN).post(address).status_code == 405


class TestSettings:
    def test_editor_saves_and_the_change_is_recorded(self) -> None:
        tool = make_tool()
        client = signed_in(Role.EDITOR)
        values = {"loading": "always", "keywords": "ticket,  bug report ,", "hidden": "on"}
        response = client.post(f"/tools/{tool.qualified_name}/settings/", values, follow=True)
        tool.refresh_from_db()
        assert (tool.loading, tool.keywords, tool.hidden) == ("always", ["ticket", "bug report"], True)
        assert f"Saved the settings of {tool.name}." in visible_text(response)
        assert Change.objects.get(name=tool.qualified_name).actor.startswith("editor")

    def test_tags_are_set_and_the_change_can_be_undone_from_the_toast(self) -> None:
        tool = make_tool()
        client = signed_in(Role.EDITOR)
        address = f"/tools/{tool.qualified_name}/settings/"
        response = client.post(address, {"loading": "inherit", "tags": "team a, docs,"}, follow=True)
        assert sorted(tool.tags.values_list("name", flat=True)) == ["docs", "team a"]
        assert 'value="docs, team a"' in text_of(response)
        change = Change.objects.get()
        assert f'action="/changes/{change.pk}/undo/"' in text_of(response)
        client.post(f"/changes/{change.pk}/undo/")
        assert not tool.tags.exists()

    def test_admin_marks_a_tool_and_others_read_the_mark(self) -> None:
        tool = make_tool(annotations={"readOnlyHint": True})
        values = {"loading": "inherit", "keywords": "", "tags": ""}
        address = f"{tool.get_absolute_url()}settings/"
        viewer, admin = signed_in(Role.VIEWER), signed_in(Role.ADMIN)
        assert "Read-only yes (as its definition says)" in visible_text(viewer.get(tool.get_absolute_url()))
        assert "Its definition says that it only reads" in visible_text(admin.get(tool.get_absolute_url()))
        admin.post(address, {**values, "read_only": "no"})
        assert Tool.objects.get().read_only is False
        assert "Read-only no (marked by an admin)" in visible_text(viewer.get(tool.get_absolute_url()))
        editor = signed_in(Role.EDITOR)
        assert 'name="read_only"' not in text_of(editor.get(tool.get_absolute_url()))
        editor.post(address, {**values, "loading": "always"})
        assert Tool.objects.get().read_only is False
        assert editor.post(address, {**values, "read_only": "yes"}).status_code == 403
        admin.post(address, {**values, "read_only": "inherit"})
        assert Tool.objects.get().read_only is None

    def test_mark_set_meanwhile_is_not_overwritten(self) -> None:
        tool = make_tool()
        client = signed_in(Role.ADMIN)
        version = client.get(tool.get_absolute_url()).context["version"]
        Tool.objects.update(read_only=False)
        sent = {"loading": "inherit", "read_only": "yes", "version": version}
        response = client.post(f"{tool.get_absolute_url()}settings/", sent)
        assert response.status_code == 409
        assert "Read-only" in visible_text(response)
        assert Tool.objects.get().read_only is False

    def test_nothing_different_is_told_without_an_undo(self) -> None:
        tool = make_tool()
        client = signed_in(Role.EDITOR)
        address = f"/tools/{tool.qualified_name}/settings/"
        client.post(address, {"loading": "always"}, follow=True)
        response = client.post(address, {"loading": "always"}, follow=True)
        assert "nothing was changed" in visible_text(response)
        assert "/undo/" not in text_of(response)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"loading": "sometimes"}, "Select a valid choice"),
            ({"loading": "always", "tags": "x" * 41}, "Each at most 40 characters"),
            ({"loading": "always", "keywords": "x" * 61}, "Each at most 60 characters"),
        ],
    )
    def test_mistake_is_told_in_place_and_changes_nothing(self, values: dict[str, str], message: str) -> None:
        tool = make_tool()
        response = signed_in(Role.EDITOR).post(f"/tools/{tool.qualified_name}/settings/", values)
        tool.refresh_from_db()
        assert response.status_code == 422
        assert message in visible_text(response)
        assert tool.loading == Loading.INHERIT

    def test_viewer_stranger_wrong_method_and_missing_tool_are_refused(self, client: Client) -> None:
        tool = make_tool()
        address = f"/tools/{tool.qualified_name}/settings/"
        assert signed_in(Role.VIEWER).post(address, {"loading": "always"}).status_code == 403
        assert client.post(address, {"loading": "always"}).status_code == 302
        assert signed_in(Role.EDITOR).get(address).status_code == 405
        assert signed_in(Role.EDITOR).post("/tools/nothing/settings/").status_code == 404
        tool.refresh_from_db()
        assert tool.loading == Loading.INHERIT


def _make_many(server: Any, count: int) -> None:
    """Straight into the table: sixty refreshes would take their time."""
    model = make_tool(server=server, name="tool")
    now = timezone.now()
    Tool.objects.bulk_create(
        Tool(
            server=server,
            name=f"tool_{number:03}",
            qualified_name=f"{model.qualified_name}_{number:03}",
            digest="0" * 64,
            chars=number,
            first_seen_at=now,
            changed_at=now,
        )
        for number in range(1, count)
    )
