"""A config file goes in whole or not at all, comes out again, and twice changes nothing."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain import dialects
from catalog.domain.dialects import Dialect
from catalog.domain.errors import InvalidInput, NotAllowed, NotFound
from catalog.models import Change, Job, Policy, Server
from catalog.services import config, connections, import_plans, servers, snapshots, undo
from tests.harness.rows import make_server

pytestmark = pytest.mark.django_db

CANARY = "canary-5f2b"
EDITOR = Actor(label="editor", role=Role.EDITOR)
FILE: dict[str, object] = {
    "toolSearch": {"enabled": True, "tokenThreshold": 8000, "maxResults": 8},
    "mcpServers": {
        "github": {"command": "gh-mcp-server", "args": ["--token", CANARY], "env": {"GITHUB_TOKEN": CANARY}},
        "linear": {
            "url": f"https://mcp.example.com/linear?key={CANARY}",
            "headers": {"Authorization": f"Bearer {CANARY}"},
            "deferLoading": True,
        },
    },
}


def load(
    document: object = FILE, *, actor: Actor = COMMAND_LINE, dry_run: bool = False
) -> import_plans.ImportPlan:
    parsed = dialects.read_config(document)
    return config.import_config(config=parsed, policy_slug="default", actor=actor, dry_run=dry_run)


def refused_in(plan: import_plans.ImportPlan) -> dict[str, str]:
    return {one.name: one.reason for one in plan.refused}


class TestImport:
    def test_adds_servers_sets_the_policy_and_asks_for_the_tools(self) -> None:
        plan = load()
        assert plan.added == ("github", "linear")
        policy = Policy.objects.get(slug="default")
        assert (policy.mode, policy.threshold_unit, policy.threshold, policy.max_results) == (
            "auto",
            "chars",
            8000,
            8,
        )
        assert Server.objects.get(name="linear").defer_loading is True
        assert Job.objects.open().filter(kind="refresh_server").count() == 2

    def test_second_time_changes_nothing(self) -> None:
        load()
        before = (list(Server.objects.values()), Change.objects.count())
        plan = load()
        assert (plan.added, plan.changed, plan.unchanged) == ((), (), ("github", "linear"))
        assert plan.policy_changes == {}
        assert (list(Server.objects.values()), Change.objects.count()) == before

    def test_dry_run_says_the_same_and_stores_nothing(self) -> None:
        plan = load(dry_run=True)
        assert plan.added == ("github", "linear")
        assert plan.policy_changes["threshold"] == 8000
        assert not Server.objects.exists()
        assert not Job.objects.exists()

    def test_change_is_seen_and_recorded_without_its_secret(self) -> None:
        load()
        servers = FILE["mcpServers"]
        assert isinstance(servers, dict)
        plan = load(
            {"mcpServers": {"github": {**servers["github"], "env": {"GITHUB_TOKEN": "another-canary"}}}}
        )
        assert plan.changed == ("github",)
        record = Change.objects.first()
        assert record is not None
        assert record.after == {"secrets": "replaced"}

    def test_unknown_policy_stores_nothing(self) -> None:
        with pytest.raises(NotFound):
            config.import_config(config=dialects.parse_config(FILE), policy_slug="other", actor=COMMAND_LINE)
        assert not Server.objects.exists()

    def test_snapshot_of_the_same_name_becomes_the_server(self) -> None:
        make_server(name="github")
        assert load().changed == ("github",)
        assert Server.objects.get(name="github").transport == "stdio"


class TestWhoMayRunWhat:
    def test_only_admins_define_commands(self) -> None:
        command = {"mcpServers": {"local": {"command": "x"}}}
        with pytest.raises(InvalidInput, match=r"mcpServers.local.command: .* by admins only"):
            load(command, actor=EDITOR)
        assert not Server.objects.exists()
        (parsed,) = dialects.parse_config(command).servers
        with pytest.raises(NotAllowed):
            servers.store_entry(entry=parsed, actor=EDITOR)

    def test_editor_takes_the_addresses_of_a_file_with_commands(self) -> None:
        plan = load(actor=EDITOR)
        assert plan.added == ("linear",)
        assert "by admins only" in refused_in(plan)["github"]
        assert [server.name for server in Server.objects.all()] == ["linear"]

    def test_editors_may_add_addresses(self) -> None:
        load(
            {"mcpServers": {"web": {"url": "https://mcp.example.com"}}},
            actor=Actor(label="editor", role=Role.EDITOR),
        )
        assert Server.objects.get().name == "web"

    def test_viewers_may_not_import(self) -> None:
        with pytest.raises(NotAllowed):
            load(actor=Actor(label="viewer", role=Role.VIEWER))

    def test_commands_can_be_turned_off(self, settings: Settings) -> None:
        settings.STDIO_ENABLED = False
        plan = load()
        assert plan.added == ("linear",)
        assert "command: commands are turned off" in refused_in(plan)["github"]

    def test_command_of_before_stays_where_commands_are_turned_off(self, settings: Settings) -> None:
        load()
        settings.STDIO_ENABLED = False
        same: dict[str, Any] = {"command": "gh-mcp-server", "args": ["--token", CANARY]}
        github = {**same, "env": {"GITHUB_TOKEN": CANARY}, "deferLoading": True}
        assert load({"mcpServers": {"github": github}}).changed == ("github",)
        with pytest.raises(InvalidInput, match="admins only"):
            load({"mcpServers": {"github": {**github, "deferLoading": False}}}, actor=EDITOR)
        for other in ({"args": ["--other"]}, {"command": "other-server"}, {"env": {"GITHUB_TOKEN": "x"}}):
            with pytest.raises(InvalidInput, match=r"github.*command.*turned off"):
                load({"mcpServers": {"github": {**github, **other}}})

    def test_commands_can_be_limited_to_a_list(self, settings: Settings) -> None:
        settings.STDIO_COMMANDS = frozenset({"npx"})
        assert "not among the commands allowed" in refused_in(load(dry_run=True))["github"]
        settings.STDIO_COMMANDS = frozenset({"gh-mcp-server"})
        assert load().added == ("github", "linear")


class TestExport:
    @pytest.mark.parametrize("dialect", list(Dialect))
    def test_leaves_secrets_out(self, dialect: Dialect) -> None:
        load()
        rendered = config.export_config(dialect=dialect, policy_slug="default", actor=COMMAND_LINE)
        assert CANARY not in str(rendered.document)
        assert "${GITHUB_TOKEN}" in str(rendered.document)

    def test_includes_them_for_an_admin_who_asks(self) -> None:
        load()
        export = config.export_config(
            dialect=Dialect.PIZZAPI, policy_slug="default", actor=COMMAND_LINE, secrets=True
        )
        assert export.document["mcpServers"]["github"]["env"] == {"GITHUB_TOKEN": CANARY}  # type: ignore[index]
        with pytest.raises(NotAllowed):
            config.export_config(
                dialect=Dialect.PIZZAPI,
                policy_slug="default",
                actor=Actor(label="editor", role=Role.EDITOR),
                secrets=True,
            )

    def test_imported_again_keeps_the_secrets_it_left_out(self) -> None:
        load()
        export = config.export_config(dialect=Dialect.PIZZAPI, policy_slug="default", actor=COMMAND_LINE)
        plan = load(export.document)
        assert (plan.added, plan.changed, dict(plan.policy_changes)) == ((), (), {})
        connection = connections.read_connection(Server.objects.get(name="linear"))
        assert connection.headers == {"Authorization": f"Bearer {CANARY}"}


class TestStolenSecrets:
    """An editor may change addresses, but not have a stored secret sent to a new one."""

    @pytest.mark.parametrize(
        ("changed", "places"),
        [
            ({"url": "https://evil.test/linear?key=${LINEAR_KEY}"}, ("url", "headers.Authorization")),
            ({"url": "https://mcp.example.com:444/linear"}, ("headers.Authorization",)),
            ({"url": "http://mcp.example.com/linear"}, ("headers.Authorization",)),
            ({"url": "https://mcp.example.com/other"}, ("headers.Authorization",)),
            ({"url": "https://mcp.example.com/linear?k=${LINEAR_KEY}"}, ("url",)),
        ],
    )
    def test_secret_has_to_be_given_again_for_another_destination(
        self, changed: dict[str, str], places: tuple[str, ...]
    ) -> None:
        load()
        with pytest.raises(InvalidInput) as refused:
            load({"mcpServers": {"linear": {**self._shown("linear"), **changed}}}, actor=EDITOR)
        assert [one.place for one in refused.value.errors] == [f"mcpServers.linear.{at}" for at in places]
        assert all("given again" in one.message or "itself" in one.message for one in refused.value.errors)
        kept = connections.read_connection(Server.objects.get(name="linear"))
        assert kept.headers == {"Authorization": f"Bearer {CANARY}"}
        assert kept.url == f"https://mcp.example.com/linear?key={CANARY}"

    @pytest.mark.parametrize(
        "changed", [{"type": "sse"}, {"url": "https://MCP.example.com:443/linear?key=new"}, {"headers": {}}]
    )
    def test_same_destination_keeps_what_was_not_changed(self, changed: dict[str, Any]) -> None:
        load()
        load({"mcpServers": {"linear": {**self._shown("linear"), **changed}}}, actor=EDITOR)
        kept = connections.read_connection(Server.objects.get(name="linear"))
        assert dict(kept.headers) == ({} if "headers" in changed else {"Authorization": f"Bearer {CANARY}"})

    def test_path_is_a_part_of_it_for_editors_only(self) -> None:
        load()
        shown = self._shown("linear")
        moved = {"mcpServers": {"linear": {**shown, "url": "https://mcp.example.com/other"}}}
        with pytest.raises(InvalidInput):
            load(moved, actor=EDITOR)
        plan = load(moved)
        assert (plan.changed, plan.replaced) == (("linear",), ())
        kept = connections.read_connection(Server.objects.get(name="linear"))
        assert kept.headers == {"Authorization": f"Bearer {CANARY}"}

    @pytest.mark.parametrize("changed", [{"command": "other"}, {"args": ["--verbose"]}])
    def test_command_and_arguments_are_a_destination_too(self, changed: dict[str, Any]) -> None:
        load()
        with pytest.raises(InvalidInput, match=r"mcpServers.github.env.GITHUB_TOKEN: must be given again"):
            load({"mcpServers": {"github": {**self._shown("github"), **changed}}})

    def test_secrets_that_are_given_go_along(self) -> None:
        load()
        moved = {"url": "https://new.test/", "headers": {"Authorization": "Bearer other", "X": "${TOKEN}"}}
        plan = load({"mcpServers": {"linear": moved}})
        assert (plan.changed, plan.replaced) == (("linear",), ("linear",))
        kept = connections.read_connection(Server.objects.get(name="linear"))
        assert kept.headers == moved["headers"]

    def _shown(self, name: str) -> dict[str, Any]:
        export = config.export_config(dialect=Dialect.PIZZAPI, policy_slug="default", actor=COMMAND_LINE)
        return dict(export.document["mcpServers"][name])  # type: ignore[index]

    def test_lost_encryption_key_lets_secrets_be_entered_again(self, settings: Settings) -> None:
        load()
        settings.ENCRYPTION_KEYS = (Fernet.generate_key().decode(),)
        assert load().changed == ("github", "linear")
        assert connections.read_connection(Server.objects.get(name="github")).env == {"GITHUB_TOKEN": CANARY}


class TestCommandServer:
    REPLACEMENT: dict[str, object] = {"mcpServers": {"github": {"url": "https://evil.test/"}}}

    def test_editor_does_not_replace_one_by_an_address(self) -> None:
        load()
        with pytest.raises(InvalidInput, match=r"mcpServers.github: .* only an admin may replace it"):
            load(self.REPLACEMENT, actor=EDITOR)
        assert Server.objects.get(name="github").transport == "stdio"

    def test_admin_is_told_before_it_is_done(self) -> None:
        load()
        assert load(self.REPLACEMENT, dry_run=True).replaced == ("github",)
        load(self.REPLACEMENT)
        assert connections.read_connection(Server.objects.get(name="github")).env == {}
        record = Change.objects.first()
        assert record is not None
        assert not undo.can_undo(record)


class TestReferences:
    WEB: dict[str, Any] = {"url": "https://mcp.test/?p=${OTHER_TOKEN}", "headers": {"A": "Bearer ${TOKEN}"}}

    @pytest.mark.parametrize(
        "entry",
        [
            {"url": "https://mcp.test/?p=${GITHUB_TOKEN}"},
            {"url": "https://mcp.test/", "headers": {"X": "Bearer ${GITHUB_TOKEN:-none}"}},
            {"url": "${GITHUB_TOKEN}"},
        ],
    )
    def test_editor_adds_none(self, entry: dict[str, object]) -> None:
        with pytest.raises(InvalidInput, match="variable GITHUB_TOKEN: only an admin"):
            load({"mcpServers": {"web": entry}}, actor=EDITOR)
        assert not Server.objects.exists()

    def test_editor_keeps_those_of_an_admin_and_changes_none(self) -> None:
        load({"mcpServers": {"web": self.WEB}})
        more = {**self.WEB, "headers": {**self.WEB["headers"], "X-Team": "tools"}, "deferLoading": True}
        assert load({"mcpServers": {"web": more}}, actor=EDITOR).changed == ("web",)
        kept = connections.read_connection(Server.objects.get(name="web"))
        assert kept.headers == {"A": "Bearer ${TOKEN}", "X-Team": "tools"}
        for headers in ({"A": "Bearer ${OTHER_TOKEN}"}, {"B": "Bearer ${TOKEN}"}):
            with pytest.raises(InvalidInput, match="only an admin may add or change"):
                load({"mcpServers": {"web": {**self.WEB, "headers": headers}}}, actor=EDITOR)

    @pytest.mark.parametrize(
        "url",
        [
            "https://evil.test/?p=${OTHER_TOKEN}",
            "https://evil.test/",
            "https://mcp.test:444/",
            "http://mcp.test/",
            "https://mcp.test/other",
        ],
    )
    def test_editor_sends_those_of_an_admin_nowhere_else(self, url: str) -> None:
        load({"mcpServers": {"web": self.WEB}})
        with pytest.raises(InvalidInput, match=r"headers.A: .*variable TOKEN: only an admin"):
            load({"mcpServers": {"web": {**self.WEB, "url": url}}}, actor=EDITOR)
        with pytest.raises(InvalidInput, match=r"headers.A: .*variable TOKEN: only an admin"):
            self._store({**self.WEB, "url": url}, actor=EDITOR)
        kept = connections.read_connection(Server.objects.get(name="web"))
        assert kept.url == self.WEB["url"]
        load({"mcpServers": {"web": {**self.WEB, "url": url}}})  # an admin gives them again

    def test_editor_drops_those_of_an_admin_and_moves_the_rest(self) -> None:
        load({"mcpServers": {"web": self.WEB}})
        moved = {"url": "https://mcp.test/other", "headers": {"X-Team": "tools"}}
        assert load({"mcpServers": {"web": moved}}, actor=EDITOR).changed == ("web",)

    def test_list_of_the_operator_counts_for_admins_too(self, settings: Settings) -> None:
        settings.REFERENCES = ("MCP_*", "TOKEN")
        refused = r"mcpServers.web.url: the variable OTHER_TOKEN .*TOOLSEARCH_REFERENCES"
        with pytest.raises(InvalidInput, match=refused):
            load({"mcpServers": {"web": self.WEB}})
        settings.REFERENCES = ("*",)
        load({"mcpServers": {"web": self.WEB}})
        settings.REFERENCES = ()
        changed = {**self.WEB, "deferLoading": True}  # a reference that is there stays there
        assert load({"mcpServers": {"web": changed}}).changed == ("web",)

    @pytest.mark.parametrize("name", ["POSTGRES_PASSWORD", "TOOLSEARCH_METRICS_TOKEN", "SECRET_KEY", "PORT"])
    def test_none_stands_for_what_is_the_services_own(self, name: str) -> None:
        with pytest.raises(InvalidInput, match=f"{name} belongs to this service"):
            load({"mcpServers": {"web": {"url": f"https://mcp.test/${{{name}:-x}}"}}})

    def _store(self, entry: dict[str, Any], *, actor: Actor) -> None:
        (parsed,) = dialects.parse_config({"mcpServers": {"web": entry}}).servers
        servers.store_entry(entry=parsed, actor=actor)


class TestWork:
    def test_dry_run_holds_nothing(self) -> None:
        load()
        with CaptureQueriesContext(connection) as queries:
            load({"mcpServers": {"new": {"url": "https://mcp.test/"}}}, dry_run=True)
        assert queries.captured_queries
        assert not [query for query in queries if not query["sql"].startswith("SELECT")]

    def test_servers_of_one_file_have_a_number(self) -> None:
        many = {f"s{number}": {"url": "https://mcp.test/"} for number in range(10_001)}
        with pytest.raises(InvalidInput, match="mcpServers: has 10001 servers, at most 10000"):
            load({"mcpServers": many}, dry_run=True)
        assert len(load({"mcpServers": dict(list(many.items())[:1_000])}, dry_run=True).added) == 1_000


class TestAtRest:
    def test_secrets_are_in_no_column(self) -> None:
        load()
        for table in (Server, Change, Job):
            assert CANARY not in str(list(table.objects.values()))

    def test_sealed_text_moved_to_another_row_cannot_be_opened(self) -> None:
        load()
        github, linear = Server.objects.order_by("name")
        linear.sealed = github.sealed
        with pytest.raises(Exception, match="another"):
            connections.read_connection(linear)


class TestDisabled:
    OFF: dict[str, object] = {"mcpServers": {"files": {"command": "files-mcp", "disabled": True}}}
    UNSAID: dict[str, object] = {"mcpServers": {"files": {"command": "files-mcp"}}}

    def test_server_is_added_and_nothing_of_it_is_started(self) -> None:
        plan = load(self.OFF)
        assert (plan.added, plan.disabled) == (("files",), ("files",))
        assert Server.objects.get(name="files").enabled is False
        assert not Job.objects.filter(kind="refresh_server").exists()

    def test_later_file_that_does_not_say_leaves_it(self) -> None:
        load(self.OFF)
        assert load(self.UNSAID).unchanged == ("files",)
        assert load(self.OFF).unchanged == ("files",)
        assert Server.objects.get(name="files").enabled is False

    def test_new_address_does_not_start_a_disabled_server(self) -> None:
        load(self.OFF)
        assert load({"mcpServers": {"files": {"command": "other-mcp"}}}).changed == ("files",)
        assert not Job.objects.filter(kind="refresh_server").exists()

    def test_file_turns_a_server_off_and_on(self) -> None:
        load(self.UNSAID)
        Job.objects.all().delete()
        plan = load(self.OFF)
        assert (plan.changed, plan.disabled) == (("files",), ("files",))
        assert Server.objects.get(name="files").enabled is False
        assert not Job.objects.filter(kind="refresh_server").exists()
        assert load({"mcpServers": {"files": {"command": "files-mcp", "enabled": True}}}).changed == (
            "files",
        )
        assert Server.objects.get(name="files").enabled is True
        assert Job.objects.filter(kind="refresh_server").count() == 1
        told = [change.after for change in Change.objects.filter(subject="server", action="changed")]
        assert told == [{"enabled": True}, {"enabled": False}]

    def test_export_says_so(self) -> None:
        load(self.OFF)
        exported = config.export_config(
            dialect=Dialect.PIZZAPI, policy_slug="default", actor=COMMAND_LINE
        ).document
        assert exported["mcpServers"] == {"files": {"command": "files-mcp", "enabled": False}}
        assert load(exported).unchanged == ("files",)


class TestIgnoredKeys:
    FILE: dict[str, object] = {
        "mcpServers": {"files": {"command": "files-mcp", "timeout": 5, "alwaysAllow": ["x"]}},
        "theme": "dark",
    }

    def test_plan_names_them(self) -> None:
        plan = load(self.FILE, dry_run=True)
        assert plan.ignored == {"files": ("timeout", "alwaysAllow")}
        assert plan.ignored_keys == ("theme",)

    def test_command_names_them_on_stderr_and_leaves_stdout_to_the_json(self, tmp_path: Path) -> None:
        file = tmp_path / "config.json"
        file.write_text(json.dumps(self.FILE))
        out, err = StringIO(), StringIO()
        call_command("import_config", str(file), "--json", "--dry-run", stdout=out, stderr=err)
        assert json.loads(out.getvalue())["ignored"] == {"files": ["timeout", "alwaysAllow"]}
        assert json.loads(out.getvalue())["ignored_keys"] == ["theme"]
        assert "files: not read: timeout, alwaysAllow" in err.getvalue()
        assert "not read: theme\n" in err.getvalue()

    def test_wrong_setting_stores_nothing(self) -> None:
        with pytest.raises(InvalidInput, match="maxResults"):
            load({**self.FILE, "toolSearch": {"maxResult": 3}})
        assert not Server.objects.exists()


def test_everruns_list_is_merged_into_the_policys() -> None:
    Policy.objects.filter(slug="default").update(never_defer=["bash"])
    document = {"capabilities": {"tool_search": {"never_defer": ["read_file"]}}}
    assert load(document).policy_changes["never_defer"] == ["bash", "read_file"]
    assert load(document).policy_changes == {}
    assert Policy.objects.get(slug="default").never_defer == ["bash", "read_file"]


def test_pizzapi_over_everruns_defers_no_built_in_tools() -> None:
    load({"capabilities": ["tool_search"]})
    assert Policy.objects.get(slug="default").defer_builtins is True
    load({"toolSearch": {"enabled": True}})
    assert Policy.objects.get(slug="default").defer_builtins is False


class TestNames:
    REFUSED = ("..", "a/../b", "x/refresh", "~12", "", " ", "a\nb", "nul\0", "\ud800", "x" * 101)

    @pytest.mark.parametrize("dry_run", [True, False])
    def test_no_new_server_gets_one_that_cannot_be_addressed(self, dry_run: bool) -> None:
        entries = {name: {"url": "https://a.test"} for name in self.REFUSED}
        with pytest.raises(InvalidInput, match="named") as refused:
            load({"mcpServers": entries}, dry_run=dry_run)
        assert len(refused.value.errors) == len(self.REFUSED)
        assert not Server.objects.exists()
        plan = load({"mcpServers": {"good": {"url": "https://a.test"}, **entries}}, dry_run=dry_run)
        assert (plan.added, len(plan.refused)) == (("good",), len(self.REFUSED))

    @pytest.mark.parametrize("name", REFUSED)
    def test_no_new_snapshot_gets_one(self, name: str) -> None:
        with pytest.raises(InvalidInput, match="named"):
            snapshots.import_snapshots(definitions_by_server={name: []}, actor=COMMAND_LINE)
        assert not Server.objects.exists()

    @pytest.mark.parametrize("name", ["..", "a/../b", "x/refresh", "~12"])
    def test_export_of_a_server_from_before_is_imported_again(self, name: str) -> None:
        make_server(name=name, transport="http", url="https://a.test/")
        exported = config.export_config(dialect=Dialect.CLAUDE, policy_slug="default", actor=COMMAND_LINE)
        document = json.loads(json.dumps(exported.document))
        assert load(document).unchanged == (name,)
        document["mcpServers"][name]["url"] = "https://b.test/"
        assert load(document).changed == (name,)


class TestKeepsNoState:
    URL = "https://mcp.example.com/"

    def load(self, *, actor: Actor = COMMAND_LINE, **more: object) -> import_plans.ImportPlan:
        return load({"mcpServers": {"web": {"url": self.URL, **more}}}, actor=actor)

    def test_is_read_kept_where_the_file_says_nothing_and_written(self) -> None:
        self.load(keepsNoState=True)
        assert self.load().unchanged == ("web",)
        written = config.export_config(dialect=Dialect.CLAUDE, policy_slug="default", actor=COMMAND_LINE)
        entry = {"type": "http", "url": self.URL, "keepsNoState": True}
        assert written.document["mcpServers"] == {"web": entry}
        assert self.load(keepsNoState=False).servers[0].reason == "changes keepsNoState"
        assert Server.objects.get().keeps_no_state is False

    def test_only_admins_change_it(self) -> None:
        with pytest.raises(InvalidInput, match="admins only"):
            self.load(keepsNoState=True, actor=EDITOR)
        self.load(keepsNoState=False, actor=EDITOR)
        self.load(keepsNoState=True)
        assert self.load(keepsNoState=True, deferLoading=True, actor=EDITOR).changed == ("web",)
        with pytest.raises(InvalidInput, match="admins only"):
            self.load(keepsNoState=False, actor=EDITOR)
        assert Server.objects.get().keeps_no_state is True
