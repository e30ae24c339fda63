"""Every config file of the table: what its plan says, what is stored after it, by each way it comes in."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings

from catalog import documents
from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.dialects import Config, ConfigFormat
from catalog.domain.errors import InvalidInput
from catalog.models import Change, Job, Server
from catalog.services import config, import_plans, servers
from catalog.services.import_plans import ImportAction
from tests.catalog.import_documents import CASES, DOCUMENTS, HTTPS, KEY, Case
from tests.sessions.api.calling import make_agent

pytestmark = pytest.mark.django_db

DEFAULTS: dict[str, Any] = {
    "transport": "stdio",
    "command": "",
    "args": (),
    "env": {},
    "url": "",
    "headers": {},
    "enabled": True,
}
EDITOR = Actor(label="editor", role=Role.EDITOR)
GOOD = [case for case in CASES if not case.error]
BAD = [case for case in CASES if case.error]


def name_case(case: Case) -> str:
    return case.what


def plan(text: str, *, actor: Actor = COMMAND_LINE) -> import_plans.ImportPlan:
    given = documents.read_config_text(text)
    return config.plan_import(config=given, policy_slug="default", actor=actor)


def load(text: str, *, actor: Actor = COMMAND_LINE, **more: Any) -> import_plans.ImportPlan:
    given = documents.read_config_text(text)
    return config.import_config(config=given, policy_slug="default", actor=actor, **more)


def read_stored() -> dict[str, dict[str, Any]]:
    entries = [servers.read_entry(server) for server in Server.objects.all()]
    return {one.name: {key: getattr(one, key) for key in DEFAULTS} for one in entries}


def test_table_covers_every_format() -> None:
    assert len(CASES) >= 40
    assert {case.format for case in GOOD} == set(ConfigFormat)


@pytest.mark.parametrize("case", GOOD, ids=name_case)
def test_plan_says_what_is_then_stored(case: Case) -> None:
    looked = plan(case.text)
    assert not Server.objects.exists()
    assert looked.format == case.format
    rows = {row.name: row for row in looked.servers}
    assert {name for name, row in rows.items() if row.action is ImportAction.ADD} == set(case.taken)
    assert {row.name for row in looked.refused} == set(case.refused)
    for name, reason in case.refused.items():
        assert reason in rows[name].reason
    assert {name: row.missing for name, row in rows.items() if row.missing} == case.missing
    assert {name: row.ignored for name, row in rows.items() if row.ignored} == case.ignored
    assert {name: row.project for name, row in rows.items() if row.project} == case.projects
    for name, fields in case.taken.items():
        assert rows[name].target.startswith((fields.get("command") or fields["url"]).partition("?")[0])
        assert rows[name].enabled == fields.get("enabled", True)
    assert KEY not in repr(looked)

    load(case.text)
    assert read_stored() == {name: {**DEFAULTS, **fields} for name, fields in case.taken.items()}
    asked = set(Job.objects.filter(kind="refresh_server").values_list("subject", flat=True))
    assert asked == set(Server.objects.filter(enabled=True).values_list("pk", flat=True))
    again = load(case.text)
    assert set(again.unchanged) == set(case.taken)
    assert (again.added, again.changed) == ((), ())


@pytest.mark.parametrize("case", BAD, ids=name_case)
def test_what_holds_nothing_is_told_and_stores_nothing(case: Case) -> None:
    with pytest.raises(InvalidInput) as refused:
        load(case.text)
    assert case.error in str(refused.value)
    assert not Server.objects.exists()
    assert not Change.objects.exists()


class TestTarget:
    @pytest.mark.parametrize(
        ("line", "target"),
        [
            (f"npx -y some-mcp --token {KEY}", "npx -y some-mcp --token •••"),
            ("npx -y some-mcp '/my folder'", "npx -y some-mcp '/my folder'"),
            ("https://u:p@mcp.example.com/x?key=abc", "https://•••@mcp.example.com/x?key=•••"),
            ("npx -y some-mcp $HOME_DIR", "npx -y some-mcp ${HOME_DIR}"),
        ],
    )
    def test_secrets_are_masked_and_the_rest_is_shown(self, line: str, target: str) -> None:
        [row] = plan(line).servers
        assert row.target == target


class TestMissing:
    FILE = json.dumps(
        {
            "servers": {
                "gh": {
                    "command": "gh-mcp",
                    "args": ["--in", "${workspaceFolder}/x"],
                    "env": {"TOKEN": "${input:token}", "SET": "${MCP_TEST_SET}"},
                }
            }
        }
    )

    def test_variable_that_is_set_is_not_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MCP_TEST_SET", "x")
        [row] = plan(self.FILE).servers
        assert row.missing == ("workspaceFolder", "input:token")

    def test_values_that_are_given_take_their_place(self) -> None:
        values = {("gh", "input:token"): KEY, ("gh", "workspaceFolder"): "/srv", ("gh", "MCP_TEST_SET"): ""}
        load(self.FILE, values=values)
        stored = read_stored()["gh"]
        assert stored["args"] == ("--in", "/srv/x")
        assert stored["env"] == {"TOKEN": KEY, "SET": "${MCP_TEST_SET}"}

    def test_value_that_makes_no_address_is_refused(self) -> None:
        text = json.dumps({"servers": {"a": {"url": "${input:base}/mcp"}, "b": {"url": HTTPS}}})
        done = load(text, values={("a", "input:base"): "ftp://x"})
        assert [(row.name, row.reason) for row in done.refused] == [
            ("a", "url: must be an http or https address")
        ]
        assert list(read_stored()) == ["b"]

    def test_reference_of_an_editor_is_mended_by_a_value(self) -> None:
        text = json.dumps({"mcpServers": {"a": {"url": HTTPS, "headers": {"X-Key": "${MCP_TEST_KEY}"}}}})
        [row] = plan(text, actor=EDITOR).servers
        assert (row.action, row.can_be_mended, row.missing) == ("refuse", True, ("MCP_TEST_KEY",))
        assert "only an admin" in row.reason
        load(text, actor=EDITOR, values={("a", "MCP_TEST_KEY"): KEY})
        assert read_stored()["a"]["headers"] == {"X-Key": KEY}

    def test_editor_is_not_told_which_variables_are_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MCP_TEST_KEY", "x")
        text = json.dumps({"mcpServers": {"a": {"url": HTTPS, "headers": {"X-Key": "${MCP_TEST_KEY}"}}}})
        assert plan(text, actor=EDITOR).servers[0].missing == ("MCP_TEST_KEY",)


class TestChoosing:
    TEXT = json.dumps({"mcpServers": {"a": {"url": HTTPS}, "b": {"command": "b-mcp"}, "c": {}}})

    def test_some_are_taken(self) -> None:
        done = load(self.TEXT, only=["b"])
        assert [(row.name, row.action) for row in done.servers] == [("b", "add")]
        assert list(read_stored()) == ["b"]

    def test_unknown_name_is_told(self) -> None:
        with pytest.raises(InvalidInput, match="only: names what the file does not have: d"):
            load(self.TEXT, only=["a", "d"])

    def test_none_is_no_import(self) -> None:
        with pytest.raises(InvalidInput, match="choose at least one"):
            load(self.TEXT, only=[])

    def test_refused_one_alone_is_an_error(self) -> None:
        with pytest.raises(InvalidInput, match=r"mcpServers\.c: needs a command"):
            load(self.TEXT, only=["c"])


class TestUpdate:
    def test_reason_names_what_changes(self) -> None:
        load(json.dumps({"mcpServers": {"a": {"url": HTTPS}, "b": {"command": "b-mcp"}}}))
        changed = {"a": {"url": HTTPS, "headers": {"X": "1"}}, "b": {"command": "other"}, "c": {"url": HTTPS}}
        rows = {row.name: row for row in plan(json.dumps({"mcpServers": changed})).servers}
        assert [(row.action, row.is_replaced) for row in rows.values()] == [
            ("update", False),
            ("update", True),
            ("add", False),
        ]
        assert rows["a"].reason == "changes headers"
        assert "another command or address" in rows["b"].reason

    def test_many_new_servers_are_one_change(self) -> None:
        many = {f"s{number}": {"url": f"https://s{number}.example/?key={KEY}"} for number in range(30)}
        load(json.dumps({"mcpServers": {**many, "off": {"command": "x", "disabled": True}}}))
        record = Change.objects.get(subject="server")
        assert (record.name, record.action) == ("31 servers", "created")
        assert record.after["servers"]["s3"] == "http https://s3.example/"
        assert record.after["servers"]["off"] == "stdio x, disabled"
        assert KEY not in str(record.after)


class TestCommand:
    def run(self, tmp_path: Path, text: str, *options: str) -> tuple[str, str]:
        file = tmp_path / "mcp.conf"
        file.write_text(text)
        out, err = StringIO(), StringIO()
        call_command("import_config", str(file), *options, stdout=out, stderr=err)
        return out.getvalue(), err.getvalue()

    def test_refused_ones_are_on_stderr_and_the_others_stored(self, tmp_path: Path) -> None:
        out, err = self.run(tmp_path, "[mcp_servers.a]\ncommand = 'a-mcp'\n[mcp_servers.b]\nurl = 'x'\n")
        assert "add a: a-mcp" in out
        assert "b: refused: url: must be an http or https address" in err
        assert list(read_stored()) == ["a"]

    def test_plan_as_json(self, tmp_path: Path) -> None:
        out, _ = self.run(tmp_path, f"claude mcp add -t http x {HTTPS}", "--dry-run", "--json")
        told = json.loads(out)
        assert told["format"] == "line"
        [row] = told["servers"]
        assert (
            row.items()
            >= {
                "name": "x",
                "action": "add",
                "transport": "http",
                "target": HTTPS,
                "enabled": True,
                "project": None,
                "ignored": [],
                "missing": [],
            }.items()
        )
        assert told["settings"] == {}
        assert not Server.objects.exists()

    def test_some_are_taken(self, tmp_path: Path) -> None:
        self.run(tmp_path, TestChoosing.TEXT, "--only", "a, b")
        assert sorted(read_stored()) == ["a", "b"]

    def test_all_refused_is_a_failure(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="needs a command"):
            self.run(tmp_path, '{"mcpServers": {"a": {}}}', "--dry-run")


class TestRest:
    @pytest.mark.parametrize("case", [GOOD[0], *GOOD[10:20:3], *GOOD[-4:]], ids=name_case)
    def test_text_carries_any_format(self, case: Case) -> None:
        agent = make_agent(admin=True)
        looked = self.post(agent, case.text, "?dry_run=true")
        assert looked.status_code == 200, looked.content
        body = looked.json()
        assert body["format"] == case.format
        assert {row["name"] for row in body["servers"] if row["action"] == "add"} == set(case.taken)
        assert not Server.objects.exists()
        assert self.post(agent, case.text).status_code == 200
        assert set(read_stored()) == set(case.taken)

    def test_json_body_takes_other_clients_too_and_some_of_it(self) -> None:
        agent = make_agent(admin=True)
        document = {"servers": {"a": {"url": HTTPS}, "b": {"url": HTTPS}, "c": 5}}
        answer = agent.call("POST", "/config?only=a", document)
        assert (answer.status_code, answer.json()["added"]) == (200, ["a"])
        answer = agent.call("POST", "/config", document)
        rows = {row["name"]: row["action"] for row in answer.json()["servers"]}
        assert rows == {"a": "keep", "b": "add", "c": "refuse"}

    @pytest.mark.parametrize("text", ["", "hello", "{}", '{"servers": {"a": 5}}', "\0", "a: *b"])
    def test_what_holds_nothing_is_422(self, text: str) -> None:
        answer = self.post(make_agent(admin=True), text)
        assert answer.status_code == 422, answer.content
        assert answer.json()["errors"]

    def test_large_text_is_for_strict_json(self) -> None:
        agent = make_agent(admin=True)
        padding = " " * (256 * 1024)
        assert (
            self.post(agent, f'{{"mcpServers": {{"a": {{"url": "{HTTPS}"}}}}{padding}}}').status_code == 200
        )
        refused = self.post(agent, f'{{"mcpServers": {{"a": {{"url": "{HTTPS}",}}}}{padding}}}')
        assert refused.status_code == 422
        assert "256 KiB" in refused.json()["detail"]

    def post(self, agent: Any, text: str, query: str = "") -> Any:
        return agent.client.post(
            f"/api/v1/config{query}",
            text,
            content_type="text/plain",
            headers={"authorization": f"Bearer {agent.text}"},
        )


class TestBounds:
    def test_server_of_a_placeholder_fails_its_refresh_by_name(self) -> None:
        from catalog.domain.connection import UpstreamFailure, resolve
        from catalog.services.connections import read_connection

        load('{"servers": {"a": {"url": "https://a.example", "headers": {"X": "${input:key}"}}}}')
        with pytest.raises(UpstreamFailure, match=r"\$\{input:key\} was never given"):
            resolve(read_connection(Server.objects.get()), {})

    def test_commands_that_are_turned_off_are_refused_alone(self, settings: Settings) -> None:
        settings.STDIO_ENABLED = False
        done = load(json.dumps({"mcpServers": {"a": {"url": HTTPS}, "b": {"command": "x"}}}))
        assert [row.name for row in done.refused] == ["b"]
        assert list(read_stored()) == ["a"]

    @pytest.mark.parametrize(
        "text",
        [
            "/*" * 100_000,
            "a." * 100_000 + "b = 1",
            "[" * 100_000,
            "- " * 100_000,
            '{"a": ' + ", " * 50_000 + "}",
            "x = " + "[" * 50_000,
            "9" * 10_000,
            "a: " + "9" * 10_000,
            "d: 2026-99-99",
        ],
    )
    def test_hostile_text_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidInput):
            documents.read_config_text(text)

    def test_other_encodings(self) -> None:
        text = '{"servers": {"a": {"command": "é"},}}'
        for content in (text.encode("utf-8-sig"), text.encode("utf-16")):
            assert documents.read_config_text(content).servers[0].command == "é"
        with pytest.raises(InvalidInput, match="UTF-8"):
            documents.read_config_text(b"\xff\xfa {")


@given(document=DOCUMENTS)
@hypothesis_settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_every_document_is_planned_or_explained(document: dict[str, Any]) -> None:
    """Either servers or settings come out of it, each with an action and a reason, or an error that tells."""
    try:
        looked = plan(json.dumps(document))
    except InvalidInput:
        return
    assert looked.servers or looked.settings
    assert looked.format
    for row in looked.servers:
        assert row.reason
        assert row.action is ImportAction.REFUSE or row.target


@given(
    text=st.text(max_size=60)
    | st.sampled_from([case.text for case in CASES]).flatmap(
        lambda text: st.integers(0, len(text)).map(lambda end: text[:end])
    )
)
@hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_text_is_read_or_explained(text: str) -> None:
    try:
        found = documents.read_config_text(text)
    except InvalidInput:
        return
    assert isinstance(found, Config)
    assert found.order or found.policy_changes is not None
