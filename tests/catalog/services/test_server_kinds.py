"""The kind of a server: given when it is made, edited later, and what follows from it."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.access.actors import COMMAND_LINE
from catalog.domain import dialects
from catalog.domain.choices import Kind, Loading
from catalog.domain.definitions import Definition
from catalog.domain.dialects import Dialect
from catalog.domain.errors import Conflict
from catalog.models import Change, DecidedList, Policy, SavedQuery, Server, Tool
from catalog.models.changes import Subject
from catalog.services import (
    approvals,
    config,
    import_plans,
    policies,
    saved_queries,
    servers,
    tool_settings,
    tools,
    undo,
)
from tests.harness.rows import make_server, make_tool
from tests.sessions.api.calling import Agent, Conversation, fill_catalog, follow, make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Agent:
    fill_catalog()
    return make_agent(admin=True)


def names_of(server: str) -> set[str]:
    return set(Tool.objects.filter(server__name=server).values_list("qualified_name", flat=True))


def import_document(document: dict[str, Any]) -> import_plans.ImportPlan:
    return config.import_config(
        config=dialects.parse_config(document), policy_slug="default", actor=COMMAND_LINE
    )


class TestGivenWhenAServerIsMade:
    def test_by_rest(self, admin: Agent) -> None:
        made = admin.post("/servers", {"name": "own", "kind": "plugin", "tools": [{"name": "a"}]}, status=201)
        assert made["kind"] == "plugin"
        url = {"name": "api", "kind": "builtin", "url": "https://mcp.test/"}
        assert admin.post("/servers", url, status=201)["kind"] == "builtin"
        assert names_of("own") == {"plugin__own__a"}
        assert admin.read("/tools/plugin__own__a")["kind"] == "plugin"

    def test_by_import_tools(self, tmp_path: Path) -> None:
        file = tmp_path / "tools.jsonl"
        lines = [{"server": "one", "name": "wave"}, {"server": "two", "name": "nod"}]
        file.write_text("\n".join(map(json.dumps, lines)))
        call_command("import_tools", "-", str(file), kind="builtin", stdout=StringIO())
        assert names_of("one") | names_of("two") == {"wave", "nod"}
        call_command("import_tools", "-", str(file), stdout=StringIO())
        assert set(Server.objects.values_list("kind", flat=True)) == {"builtin"}
        call_command("import_tools", "-", str(file), kind="plugin", stdout=StringIO())
        assert names_of("one") | names_of("two") == {"plugin__one__wave", "plugin__two__nod"}

    def test_command_names_the_kinds_it_takes(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="plugin"):
            call_command("import_tools", "own", "-", "--kind", "plug-in")

    def test_by_config_and_an_export_carries_it(self, admin: Agent) -> None:
        document = {"mcpServers": {"api": {"url": "https://mcp.test/", "kind": "plugin"}}}
        assert admin.post("/config", document)["added"] == ["api"]
        assert Server.objects.get(name="api").kind == "plugin"
        assert admin.post("/config", document)["unchanged"] == ["api"]
        exported = config.export_config(
            dialect=Dialect.CLAUDE, policy_slug="default", actor=COMMAND_LINE
        ).document
        assert exported["mcpServers"]["api"]["kind"] == "plugin"  # type: ignore[index]
        assert admin.post("/config", dict(exported))["unchanged"] == ["api"]

    def test_config_that_does_not_say_leaves_it(self, admin: Agent) -> None:
        import_document({"mcpServers": {"api": {"url": "https://mcp.test/", "kind": "plugin"}}})
        plan = import_document({"mcpServers": {"api": {"url": "https://mcp.test/"}}})
        assert (plan.unchanged, Server.objects.get(name="api").kind) == (("api",), "plugin")


class TestChanged:
    def change(self, kind: Kind, server: str = "github") -> None:
        servers.set_kind(server=Server.objects.get(name=server), kind=kind, actor=COMMAND_LINE)
        follow()

    def test_by_rest_and_by_config(self, admin: Agent) -> None:
        assert admin.call("PATCH", "/servers/slack", {"kind": "plugin"}).json()["kind"] == "plugin"
        assert names_of("slack") == {"plugin__slack__send_message"}
        make_server(name="api", transport="http", url="https://mcp.test/")
        plan = import_document({"mcpServers": {"api": {"url": "https://mcp.test/", "kind": "builtin"}}})
        assert (plan.changed, Server.objects.get(name="api").kind) == (("api",), "builtin")

    def test_names_of_many_tools_are_written_as_they_are(self, admin: Agent) -> None:
        """The catalog is held meanwhile: Django's bulk update would take many times as long."""
        server = make_server(name="many")
        for number in range(30):
            make_tool(server=server, name=f"tool_{number}")
        with CaptureQueriesContext(connection) as queries:
            self.change(Kind.PLUGIN, "many")
        renaming = [query["sql"] for query in queries if 'SET "qualified_name"' in query["sql"]]
        assert renaming
        assert not [statement for statement in renaming if "CASE WHEN" in statement]
        assert names_of("many") == {f"plugin__many__tool_{number}" for number in range(30)}

    def test_tools_get_the_names_of_the_kind_and_keep_the_rest(self, admin: Agent) -> None:
        tool = Tool.objects.get(name="create_issue")
        Tool.objects.filter(pk=tool.pk).update(loading=Loading.ALWAYS, keywords=["bug"])
        approvals.approve_tools(seen={tool.qualified_name: tool.digest}, actor=COMMAND_LINE)
        self.change(Kind.PLUGIN)
        after = Tool.objects.get(pk=tool.pk)
        assert after.qualified_name == "plugin__github__create_issue"
        assert (after.loading, after.keywords, after.approval) == ("always", ["bug"], "approved")
        self.change(Kind.MCP)
        assert Tool.objects.get(pk=tool.pk).qualified_name == tool.qualified_name

    def test_gone_tools_are_renamed_too(self, admin: Agent) -> None:
        server = Server.objects.get(name="slack")
        old = make_tool(server=server, name="old")
        Tool.objects.filter(pk=old.pk).update(gone_at=server.created_at)
        self.change(Kind.PLUGIN, "slack")
        assert "plugin__slack__old" in names_of("slack")

    def test_name_of_another_tool_stays_with_it(self, admin: Agent) -> None:
        make_tool(server=make_server(name="other", kind="builtin"), name="read_file")
        self.change(Kind.BUILTIN, "files")
        assert names_of("other") == {"read_file"}
        assert names_of("files") != {"read_file"}
        assert all(name.startswith("read_file_") for name in names_of("files"))

    def test_name_of_the_search_tool_stays_its_own(self, admin: Agent) -> None:
        make_tool(server=make_server(name="finder"), name="search_tools")
        self.change(Kind.BUILTIN, "finder")
        assert "search_tools" not in names_of("finder")

    def test_lists_and_searches_have_the_new_names(self, admin: Agent) -> None:
        session = make_agent().begin()
        assert "mcp__slack__send_message" in listed(session)
        self.change(Kind.PLUGIN, "slack")
        assert "plugin__slack__send_message" in listed(session)
        assert "mcp__slack__send_message" not in listed(session)
        found = session.search("post a message to a channel")
        assert found["loaded"] == ["plugin__slack__send_message"]
        assert session.tools()["routes"]["plugin__slack__send_message"] == ["slack", "send_message"]
        assert session.search("+plugin message")["matches"][0]["name"] == "plugin__slack__send_message"

    def test_session_searches_again_for_what_it_had_loaded(self, admin: Agent) -> None:
        session = make_agent().begin()
        session.search("select:mcp__slack__send_message")
        snapshot = session.snapshot()
        self.change(Kind.PLUGIN, "slack")
        assert session.state()["loaded"] == []
        assert session.do("restore", snapshot=snapshot["id"])["lost"] == ["mcp__slack__send_message"]
        assert session.search("select:send_message")["loaded"] == ["plugin__slack__send_message"]

    def test_saved_queries_expect_the_new_names(self, admin: Agent) -> None:
        policy = Policy.objects.get(slug="default")
        saved_queries.save_query(
            policy=policy, query="post a message", expected=["mcp__slack__send_message"], actor=COMMAND_LINE
        )
        self.change(Kind.PLUGIN, "slack")
        assert SavedQuery.objects.get().expected == ["plugin__slack__send_message"]

    def test_built_in_tools_load_and_leave_the_sums(self, admin: Agent) -> None:
        """Rule 8, and thresholds in characters, which count `mcp` and `plugin` only."""
        before = DecidedList.objects.get(policy__slug="default")
        slack = Tool.objects.get(name="send_message")
        self.change(Kind.BUILTIN, "slack")
        after = DecidedList.objects.get(policy__slug="default")
        assert (before.chars - after.chars, after.all_chars) == (slack.chars, before.all_chars)
        assert admin.read("/tools/send_message")["decisions"]["default"] == {
            "decision": "load",
            "reason": "builtin",
        }
        self.change(Kind.PLUGIN, "slack")
        again = DecidedList.objects.get(policy__slug="default")
        assert (again.chars, again.deferred) == (before.chars, before.deferred)

    def test_threshold_follows(self, admin: Agent) -> None:
        chars = DecidedList.objects.get(policy__slug="default").chars
        policy = Policy.objects.get(slug="default")
        limit = {"mode": "auto", "threshold_unit": "chars", "threshold": chars - 1}
        policies.change_policy(policy=policy, changed=limit, actor=COMMAND_LINE)
        follow()
        session = make_agent().begin()
        assert session.state()["active"] is True
        self.change(Kind.PLUGIN, "slack")
        assert session.state()["active"] is True
        self.change(Kind.BUILTIN, "slack")
        assert session.state()["active"] is False

    def test_change_is_recorded_and_undone(self, admin: Agent) -> None:
        self.change(Kind.PLUGIN, "slack")
        change = Change.objects.filter(subject=Subject.SERVER, name="slack").latest("pk")
        assert (change.before, change.after) == ({"kind": "mcp"}, {"kind": "plugin"})
        undo.undo_change(change=change, actor=COMMAND_LINE)
        assert names_of("slack") == {"mcp__slack__send_message"}

    @pytest.mark.parametrize("is_approval", [False, True])
    def test_change_of_a_tool_is_not_undone_on_another_that_has_its_name_now(
        self, admin: Agent, is_approval: bool
    ) -> None:
        """The first server gives the name up by its change of kind, and the second gets it."""
        first = make_tool(server=make_server(name="one", kind="builtin"), name="wave")
        second = make_tool(server=make_server(name="two"), name="wave")
        for tool in (first, second):
            if is_approval:
                approvals.approve_tools(seen={tool.qualified_name: tool.digest}, actor=COMMAND_LINE)
            else:
                tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, hidden=True)
        change = Change.objects.get(subject=Subject.TOOL, name="wave")
        first.refresh_from_db()
        Tool.objects.filter(pk=second.pk).update(approved_at=first.approved_at)
        self.change(Kind.MCP, "one")
        with pytest.raises(Conflict):
            undo.undo_change(change=change, actor=COMMAND_LINE)
        self.change(Kind.BUILTIN, "two")
        second.refresh_from_db()
        assert second.qualified_name == "wave"
        before = Tool.objects.values().get(pk=second.pk)
        with pytest.raises(Conflict):
            undo.undo_change(change=change, actor=COMMAND_LINE)
        assert Tool.objects.values().get(pk=second.pk) == before

    def test_change_of_a_tool_is_undone_beside_another_servers_change_of_kind(self, admin: Agent) -> None:
        tool = Tool.objects.get(name="create_issue")
        tool_settings.change_tool(tool=tool, actor=COMMAND_LINE, hidden=True)
        change = Change.objects.latest("pk")
        self.change(Kind.PLUGIN, "slack")
        undo.undo_change(change=change, actor=COMMAND_LINE)
        assert not Tool.objects.get(pk=tool.pk).hidden

    def test_listing_that_was_prepared_before_gets_the_new_names(self, admin: Agent) -> None:
        server = Server.objects.get(name="slack")
        listing = tools.prepare_listing(server=server, definitions=[Definition(name="nod")])
        self.change(Kind.PLUGIN, "slack")
        tools.store_listing(server=server, listing=listing, now=server.created_at)
        assert "plugin__slack__nod" in names_of("slack")


def listed(session: Conversation) -> set[str]:
    answer = session.tools()
    return {tool["name"] for tool in (*answer["tools"], *answer["deferred"])}
