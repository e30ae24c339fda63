"""The form for everything that was given of a server: secrets stay, mistakes keep what was typed."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.domain import dialects
from catalog.domain.connection import Connection, FailureCode, ServerListing, UpstreamFailure
from catalog.models import Change, Job, Server
from catalog.models.jobs import JobKind
from catalog.services import config, connection_tests, jobs, servers
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_server

pytestmark = pytest.mark.django_db

CANARY, TYPED = "canary-40aa17", "typed-8123-secret"
WEB, LOCAL = "/servers/web/edit/", "/servers/local/edit/"
FILE = {
    "mcpServers": {
        "web": {
            "url": f"https://mcp.example.com/mcp?key={CANARY}",
            "headers": {"Authorization": f"Bearer {CANARY}", "X-Team": "${TEAM}"},
        },
        "local": {
            "command": "npx",
            "args": ["-y", "@acme/files", "--token", CANARY, "two\nlines"],
            "env": {"TOKEN": CANARY, "keys": CANARY},
        },
    }
}


@pytest.fixture(autouse=True)
def imported(db: None) -> None:
    config.import_config(config=dialects.parse_config(FILE), policy_slug="default", actor=COMMAND_LINE)


def form_in(page: Any) -> dict[str, Any]:
    """What the browser would send for the form as it stands."""
    form = page.context["form"]
    sent: dict[str, Any] = {}
    for name in form.fields:
        if name in ("headers", "env"):
            sent[f"{name}-name"] = [row.name for row in form.rows_of(name)]
            sent[f"{name}-value"] = [row.value for row in form.rows_of(name)]
        elif (value := form[name].value()) is not None:
            sent[name] = value
    version = re.search(r'name="version" value="([^"]+)"', text_of(page))
    assert version
    return {**sent, "version": unescape(version[1])}


def entry_of(name: str) -> dialects.ServerEntry:
    return servers.read_entry(Server.objects.get(name=name))


class TestForm:
    @pytest.mark.parametrize("address", [WEB, LOCAL])
    def test_opens_without_any_stored_secret(self, address: str) -> None:
        page = signed_in(Role.ADMIN).get(address)
        assert page.status_code == 200
        assert CANARY not in text_of(page)
        assert "set · replace" in text_of(page)
        assert "no-store" in page.headers["Cache-Control"]
        assert not broken_rules(page)

    @pytest.mark.parametrize(("name", "address"), [("web", WEB), ("local", LOCAL)])
    def test_saved_as_it_was_opened_it_changes_nothing(self, name: str, address: str) -> None:
        client, before, changes = signed_in(Role.ADMIN), entry_of(name), Change.objects.count()
        assert client.post(address, form_in(client.get(address))).status_code == 302
        assert entry_of(name) == before
        assert Change.objects.count() == changes

    def test_replaced_header_is_stored_and_the_server_asked(self) -> None:
        Server.objects.filter(name="web").update(failures=2, last_error="No.", last_error_code="unauthorized")
        Job.objects.all().delete()
        client = signed_in(Role.EDITOR)
        sent = form_in(client.get(WEB))
        sent["headers-value"][0] = f"Bearer {TYPED}"
        page = client.post(WEB, sent, follow=True)
        assert entry_of("web").headers == {"Authorization": f"Bearer {TYPED}", "X-Team": "${TEAM}"}
        assert entry_of("web").url.endswith(CANARY)
        assert Server.objects.get(name="web").failures == 0
        assert Job.objects.filter(kind=JobKind.REFRESH_SERVER).count() == 1
        assert TYPED not in text_of(page)
        assert "Saved web." in visible_text(page)

    def test_rows_are_added_and_removed(self) -> None:
        client = signed_in(Role.EDITOR)
        sent = form_in(client.get(WEB))
        sent["headers-name"] = ["", "X-Team", "X-New", ""]
        sent["headers-value"] = ["", "${TEAM}", TYPED, ""]
        assert client.post(WEB, sent).status_code == 302
        assert entry_of("web").headers == {"X-Team": "${TEAM}", "X-New": TYPED}

    def test_command_is_changed_by_admins_with_its_secrets_given_again(self) -> None:
        client = signed_in(Role.ADMIN)
        sent = {**form_in(client.get(LOCAL)), "args": "-y\n@acme/files-2", "cwd": "/srv"}
        refused = client.post(LOCAL, sent)
        assert refused.status_code == 422
        assert "TOKEN must be given again" in visible_text(refused)
        sent["env-value"] = [TYPED, TYPED, ""]
        assert client.post(LOCAL, sent).status_code == 302
        entry = entry_of("local")
        assert (entry.args, entry.cwd, entry.env["TOKEN"]) == (("-y", "@acme/files-2"), "/srv", TYPED)

    def test_admin_marks_an_argument_as_secret_and_takes_the_mark_back(self) -> None:
        client = signed_in(Role.ADMIN)
        for marked, shown in (["1"], "npx -y ••• --token •••"), ([], "npx -y @acme/files --token •••"):
            sent = {**form_in(client.get(LOCAL)), "secret_args": marked}
            assert client.post(LOCAL, sent).status_code == 302
            assert entry_of("local").args[1] == "@acme/files"
            assert shown in visible_text(signed_in(Role.VIEWER).get("/servers/local/"))
            page = text_of(client.get(LOCAL))
            assert ("@acme/files" in page) is (not marked)

    def test_editor_is_not_offered_a_command_and_gives_none(self) -> None:
        client, before = signed_in(Role.EDITOR), entry_of("local")
        page = client.get(LOCAL)
        assert 'name="command"' not in text_of(page)
        sent = {**form_in(page), "command": "sh", "args": "x", "description": "Files."}
        assert client.post(LOCAL, sent).status_code == 302
        assert entry_of("local") == before
        assert Server.objects.get(name="local").description == "Files."

    def test_editor_may_not_move_secrets_nor_refer_to_variables(self) -> None:
        client, before = signed_in(Role.EDITOR), entry_of("web")
        moved = client.post(WEB, {**form_in(client.get(WEB)), "url": "https://mcp.example.com/other"})
        assert moved.status_code == 422
        assert "Authorization must be given again" in visible_text(moved)
        sent = form_in(client.get(WEB))
        sent["headers-value"][0] = "${HOME}"
        assert "only an admin may add or change" in visible_text(client.post(WEB, sent))
        assert entry_of("web") == before

    def test_snapshot_has_no_address(self) -> None:
        make_server(name="snap")
        client = signed_in(Role.ADMIN)
        page = client.get("/servers/snap/edit/")
        assert 'name="url"' not in text_of(page)
        assert "Test connection" not in text_of(page)
        client.post("/servers/snap/edit/", {**form_in(page), "description": "Old  tools."})
        assert Server.objects.get(name="snap").description == "Old tools."

    def test_admin_says_that_it_keeps_no_state_and_editors_leave_it(self) -> None:
        admin, editor = signed_in(Role.ADMIN), signed_in(Role.EDITOR)
        admin.post(WEB, form_in(admin.get(WEB)) | {"keeps_no_state": "on"})
        assert Server.objects.get(name="web").keeps_no_state
        assert Change.objects.latest("pk").after == {"keepsNoState": True}
        assert "keys may share one connection" in visible_text(editor.get("/servers/web/"))
        assert "keeps_no_state" not in editor.get(WEB).context["form"].fields
        editor.post(WEB, form_in(editor.get(WEB)) | {"description": "Other words."})
        assert Server.objects.get(name="web").keeps_no_state
        editor.post(WEB, form_in(editor.get(WEB)) | {"keeps_no_state": ""})
        assert Server.objects.get(name="web").keeps_no_state
        admin.post(WEB, form_in(admin.get(WEB)) | {"keeps_no_state": ""})
        assert not Server.objects.get(name="web").keeps_no_state

    def test_mistake_keeps_all_that_was_typed(self) -> None:
        client = signed_in(Role.ADMIN)
        sent = {**form_in(client.get(WEB)), "url": "ftp://nowhere", "description": "Ours."}
        sent["headers-name"], sent["headers-value"] = ["Authorization", "X-New"], ["", TYPED]
        page = client.post(WEB, sent)
        assert page.status_code == 422
        assert "Must be an http or https address" in visible_text(page)
        for typed in ("ftp://nowhere", "Ours.", "X-New", TYPED):
            assert f'value="{typed}"' in text_of(page)
        assert CANARY not in text_of(page)
        assert "set · replace" in text_of(page)
        assert "no-store" in page.headers["Cache-Control"]

    @pytest.mark.parametrize(
        ("names", "values", "message"),
        [
            (["X-New"], [""], "X-New needs a value"),
            ([""], ["x"], "Each value needs a name"),
            (["A", "A"], ["x", "y"], "A is given twice"),
            (["Host"], ["x"], "Host is set by HTTP itself"),
        ],
    )
    def test_wrong_row_is_told_in_place(self, names: list[str], values: list[str], message: str) -> None:
        client = signed_in(Role.EDITOR)
        sent = {**form_in(client.get(WEB)), "headers-name": names, "headers-value": values}
        page = client.post(WEB, sent)
        assert page.status_code == 422
        assert message in visible_text(page)


class TestConflict:
    def test_change_of_another_field_is_taken_over_and_both_are_saved(self) -> None:
        client = signed_in(Role.ADMIN)
        opened = form_in(client.get(WEB))
        servers.set_description(
            server=Server.objects.get(name="web"), description="Theirs.", actor=COMMAND_LINE
        )
        opened["headers-value"][0] = TYPED
        page = client.post(WEB, opened)
        assert page.status_code == 409
        assert "Save both" in visible_text(page)
        assert client.post(WEB, form_in(page)).status_code == 302
        assert Server.objects.get(name="web").description == "Theirs."
        assert entry_of("web").headers["Authorization"] == TYPED

    def test_header_that_both_changed_is_replaced_only_on_purpose(self) -> None:
        client = signed_in(Role.ADMIN)
        opened = form_in(client.get(WEB))
        theirs = {"web": {**FILE["mcpServers"]["web"], "headers": {"Authorization": "theirs-77"}}}
        config.import_config(
            config=dialects.parse_config({"mcpServers": theirs}), policy_slug="default", actor=COMMAND_LINE
        )
        opened["headers-value"][0] = TYPED
        page = client.post(WEB, opened)
        assert page.status_code == 409
        assert "Headers is now Authorization" in visible_text(page)
        assert "theirs-77" not in text_of(page)
        assert CANARY not in text_of(page)
        assert client.post(WEB, form_in(page)).status_code == 302
        assert entry_of("web").headers["Authorization"] == TYPED

    def test_address_that_another_has_changed_is_told_and_kept(self) -> None:
        client = signed_in(Role.ADMIN)
        opened = form_in(client.get(WEB))
        moved = {"web": {"url": "https://moved.example/mcp", "headers": {"Authorization": "theirs-77"}}}
        config.import_config(
            config=dialects.parse_config({"mcpServers": moved}), policy_slug="default", actor=COMMAND_LINE
        )
        page = client.post(WEB, {**opened, "description": "Ours."})
        assert page.status_code == 409
        assert "Address is now https://moved.example/mcp" in visible_text(page)
        assert entry_of("web").url == "https://moved.example/mcp"
        assert CANARY not in text_of(page)


class TestConnectionTest:
    @pytest.fixture
    def work(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Runs what waits; a server refuses every token but the one typed."""

        def list_tools(connection: Connection, **_: Any) -> ServerListing:
            if connection.headers.get("Authorization") != TYPED:
                raise UpstreamFailure(FailureCode.UNAUTHORIZED, "The server refused the token (401)")
            return ServerListing(({"name": "read<b>"},))

        def run() -> None:
            handlers = {
                JobKind.TEST_SERVER: lambda job: connection_tests.run_test(job, list_tools=list_tools)
            }
            jobs.run_job(job_id=Job.objects.open().latest("pk").pk, holder="worker", handlers=handlers)

        return run

    def poll(self, client: Client, part: Any) -> Any:
        address = re.search(r'hx-get="(/connection-tests/\d+/)" hx-trigger="every 1s"', text_of(part))
        assert address
        return client.get(address[1], headers=HTMX)

    def test_is_asked_for_polled_and_told(self, work: Any) -> None:
        client, before = signed_in(Role.EDITOR), entry_of("web")
        sent = form_in(client.get(WEB))
        part = client.post("/servers/web/test/", sent, headers=HTMX)
        assert "<html" not in text_of(part)
        assert "Testing" in visible_text(self.poll(client, part))
        work()
        failed = self.poll(client, part)
        assert 'href="#field-headers"' in text_of(failed)
        assert "refused the token (401)" in visible_text(failed)
        sent["headers-value"][0] = TYPED
        part = client.post("/servers/web/test/", sent, headers=HTMX)
        work()
        passed = self.poll(client, part)
        assert "It answers: 1 tool" in visible_text(passed)
        assert "read&lt;b&gt;" in text_of(passed)
        assert entry_of("web") == before

    def test_new_server_is_tested_before_it_is_added(self, work: Any) -> None:
        client = signed_in(Role.EDITOR)
        values = {"name": "new", "url": "https://new.example/", "transport": "http", "defer": "inherit"}
        part = client.post(
            "/add-server/test/", {**values, "headers": f"Authorization: {TYPED}"}, headers=HTMX
        )
        work()
        assert "It answers: 1 tool" in visible_text(self.poll(client, part))
        assert not Server.objects.filter(name="new").exists()

    def test_mistakes_are_told_and_nothing_is_asked(self) -> None:
        client = signed_in(Role.EDITOR)
        part = client.post("/servers/web/test/", {**form_in(client.get(WEB)), "url": "ftp://x"}, headers=HTMX)
        assert part.status_code == 200
        assert 'href="#field-url"' in text_of(part)
        taken = {"name": "web", "url": "https://a.example/", "transport": "http", "defer": "inherit"}
        assert "of that name already" in visible_text(client.post("/add-server/test/", taken, headers=HTMX))
        command = {"name": "new", "command": "sh", "defer": "inherit"}
        assert "Not tested" in visible_text(client.post("/add-server/test/", command, headers=HTMX))
        assert not Job.objects.filter(kind=JobKind.TEST_SERVER).exists()

    def test_second_test_waits_for_the_first(self) -> None:
        client = signed_in(Role.EDITOR)
        sent = form_in(client.get(WEB))
        client.post("/servers/web/test/", sent, headers=HTMX)
        assert "under way" in visible_text(client.post("/servers/web/test/", sent, headers=HTMX))

    def test_result_is_for_whoever_asked(self) -> None:
        client = signed_in(Role.EDITOR)
        client.post("/servers/web/test/", form_in(client.get(WEB)), headers=HTMX)
        job = Job.objects.get(kind=JobKind.TEST_SERVER)
        assert signed_in(Role.ADMIN).get(f"/connection-tests/{job.pk}/").status_code == 404


class TestServerPage:
    def test_arguments_are_shown_to_everybody_and_secrets_to_nobody(self) -> None:
        page = signed_in(Role.VIEWER).get("/servers/local/")
        assert "npx -y @acme/files --token •••" in visible_text(page)
        assert "TOKEN, keys (values are kept encrypted)" in visible_text(page)
        assert CANARY not in text_of(page)
        assert "Authorization, X-Team" in visible_text(signed_in(Role.VIEWER).get("/servers/web/"))

    @pytest.mark.parametrize(
        ("name", "code", "field"),
        [
            ("web", FailureCode.UNAUTHORIZED, "headers"),
            ("web", FailureCode.UNKNOWN_HOST, "url"),
            ("local", FailureCode.COMMAND_NOT_FOUND, "command"),
        ],
    )
    def test_headline_leads_to_the_field_that_mends_it(self, name: str, code: str, field: str) -> None:
        Server.objects.update(failures=1, last_error="It failed.", last_error_code=code)
        link = f'href="/servers/{name}/edit/?field={field}"'
        admin = signed_in(Role.ADMIN)
        assert link in text_of(admin.get(f"/servers/{name}/"))
        assert link not in text_of(signed_in(Role.VIEWER).get(f"/servers/{name}/"))
        editor = text_of(signed_in(Role.EDITOR).get(f"/servers/{name}/"))
        assert (link in editor) is (name == "web")
        page = text_of(admin.get(f"/servers/{name}/edit/?field={field}"))
        assert re.search(rf'name="{field}(-value)?"[^>]* autofocus', page)


def test_others_are_refused(client: Client) -> None:
    for address in (WEB, "/servers/web/test/", "/add-server/test/"):
        assert client.post(address).status_code == 302
        assert signed_in(Role.VIEWER).post(address).status_code == 403
    assert signed_in(Role.ADMIN).get("/servers/nowhere/edit/").status_code == 404
    assert signed_in(Role.ADMIN).put(WEB).status_code == 405
