"""A config file goes in whole or not at all, comes out again, and twice changes nothing."""

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from catalog.access import Role
from catalog.domain import dialects
from catalog.domain.dialects import Dialect
from catalog.domain.errors import InvalidInput, NotAllowed, NotFound
from catalog.models import Change, Job, Policy, Server
from catalog.services import config, connections
from catalog.services.changes import COMMAND_LINE, Actor
from tests.rows import make_server

pytestmark = pytest.mark.django_db

CANARY = "canary-5f2b"
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


def load(document: object = FILE, *, actor: Actor = COMMAND_LINE, dry_run: bool = False) -> config.ImportPlan:
    parsed = dialects.parse(document)
    return config.import_config(config=parsed, policy_slug="default", actor=actor, dry_run=dry_run)


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
            config.import_config(config=dialects.parse(FILE), policy_slug="other", actor=COMMAND_LINE)
        assert not Server.objects.exists()

    def test_snapshot_of_the_same_name_becomes_the_server(self) -> None:
        make_server(name="github")
        assert load().changed == ("github",)
        assert Server.objects.get(name="github").transport == "stdio"


class TestWhoMayRunWhat:
    def test_only_admins_define_commands(self) -> None:
        with pytest.raises(NotAllowed):
            load(actor=Actor(label="editor", role=Role.EDITOR))
        assert not Server.objects.exists()

    def test_editors_may_add_addresses(self) -> None:
        load(
            {"mcpServers": {"web": {"url": "https://mcp.example.com"}}},
            actor=Actor(label="editor", role=Role.EDITOR),
        )
        assert Server.objects.get().name == "web"

    def test_viewers_may_not_import(self) -> None:
        with pytest.raises(NotAllowed):
            load({"mcpServers": {}}, actor=Actor(label="viewer", role=Role.VIEWER))

    def test_commands_can_be_turned_off(self, settings: Settings) -> None:
        settings.STDIO_ENABLED = False
        with pytest.raises(InvalidInput, match=r"mcpServers.github.command: commands are turned off"):
            load()

    def test_commands_can_be_limited_to_a_list(self, settings: Settings) -> None:
        settings.STDIO_COMMANDS = frozenset({"npx"})
        with pytest.raises(InvalidInput, match="not among the commands allowed"):
            load()
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
        "changed",
        [
            {"url": "https://evil.example.com/linear?key=${LINEAR_KEY}"},
            {"type": "sse", "url": "https://mcp.example.com/linear?key=${LINEAR_KEY}"},
        ],
    )
    def test_hidden_values_are_not_kept_for_another_destination(self, changed: dict[str, str]) -> None:
        load()
        export = config.export_config(dialect=Dialect.PIZZAPI, policy_slug="default", actor=COMMAND_LINE)
        hidden = export.document["mcpServers"]["linear"]  # type: ignore[index]
        editor = Actor(label="editor", role=Role.EDITOR)
        load({"mcpServers": {"linear": {**hidden, **changed}}}, actor=editor)
        connection = connections.read_connection(Server.objects.get(name="linear"))
        assert CANARY not in str([connection.url, *connection.headers.values()])

    def test_lost_encryption_key_lets_secrets_be_entered_again(self, settings: Settings) -> None:
        load()
        settings.ENCRYPTION_KEYS = (Fernet.generate_key().decode(),)
        assert load().changed == ("github", "linear")
        assert connections.read_connection(Server.objects.get(name="github")).env == {"GITHUB_TOKEN": CANARY}


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
