"""Adding servers in the console: the plan first, mistakes with their places, no secret shown, the result."""

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.domain import dialects
from catalog.models import Job, Policy, Server
from catalog.selectors import imports
from catalog.services import config, derived_state, servers
from sessions.offers import costs
from tests.catalog.import_documents import CASES, DOCUMENTS
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_job, make_server, make_tool

pytestmark = pytest.mark.django_db

PAGE, PASTE, FORM = "/add-server/", "/add-server/paste/", "/add-server/form/"
CANARY = "canary-77ab12"
REMOTE = {"url": f"https://mcp.example.com/?key={CANARY}", "headers": {"X-Key": CANARY}}


def paste(client: Client, document: object, *, step: str = "check", version: str = "", **options: Any) -> Any:
    text = document if isinstance(document, str) else json.dumps(document)
    values = {"config": text, "policy": "default", "step": step, "version": version}
    return client.post(PASTE, values, **options)


def version_in(response: Any) -> str:
    found = re.search(r'name="version" value="([^"]+)"', text_of(response))
    assert found
    return found[1]


def confirm(client: Client, document: object, **values: Any) -> Any:
    text = json.dumps(document)
    given = {"config": text, "policy": "default", "step": "import", "with_ticks": "yes", **values}
    return client.post(PASTE, given)


def read_entry(name: str) -> dialects.ServerEntry:
    return servers.read_entry(Server.objects.get(name=name))


def import_as_admin(document: object) -> None:
    config.import_config(config=dialects.parse_config(document), policy_slug="default", actor=COMMAND_LINE)


class TestPlan:
    def test_tells_and_stores_nothing(self) -> None:
        document = {"mcpServers": {"remote": REMOTE}, "env": {"ENABLE_TOOL_SEARCH": "auto:5"}}
        response = paste(signed_in(Role.EDITOR), document, headers=HTMX)
        page = visible_text(response)
        assert "<html" not in text_of(response)
        assert re.search(r"remote .*https://mcp.example.com/\?key=••• .*http .*add", page)
        assert "Policy default : Mode auto" in page
        assert "Read as mcpServers with claude settings" in page
        assert CANARY not in text_of(response)
        assert not Server.objects.exists()

    def test_has_a_box_for_each_that_can_be_taken_and_disabled_ones_are_unticked(self) -> None:
        make_server(name="same", transport="http", url="https://same.example/")
        servers = {
            "on": {**REMOTE, "timeout": 5},
            "off": {**REMOTE, "disabled": True},
            "bad": {"url": "ftp://x"},
            "same": {"url": "https://same.example/"},
        }
        response = paste(signed_in(Role.EDITOR), {"servers": servers, "theme": "dark"}, headers=HTMX)
        boxes = dict(re.findall(r'name="take" value="(\w+)"[^>]*?(checked)?>', text_of(response)))
        assert boxes == {"on": "checked", "off": ""}
        page = visible_text(response)
        assert "disabled in the file: nothing of it is started" in page
        assert "Not read: timeout" in page
        assert "Not read of the file theme" in page
        assert "url: must be an http or https address" in page
        assert "1 to keep, 1 refused" in page

    def test_what_is_missing_has_a_field(self) -> None:
        document = {
            "inputs": [{"id": "key", "description": "Key of the <b>team</b>"}],
            "servers": {"a": {"url": "https://a.example", "headers": {"X": "${input:key}"}}},
        }
        client = signed_in(Role.EDITOR)
        response = paste(client, document, headers=HTMX)
        assert "Key of the &lt;b&gt;team&lt;/b&gt;" in text_of(response)
        assert 'name="given_name" value="input:key"' in text_of(response)
        values = {"given_server": ["a"], "given_name": ["input:key"], "given_value": [CANARY], "take": ["a"]}
        assert confirm(client, document, **values).status_code == 302
        assert read_entry("a").headers == {"X": CANARY}

    def test_file_of_another_program_is_no_success(self) -> None:
        response = paste(signed_in(Role.EDITOR), {"dependencies": {"x": CANARY}}, headers=HTMX)
        page = visible_text(response)
        assert "This cannot be imported" in page
        assert "seen: dependencies" in page
        assert "Import<" not in text_of(response)
        assert CANARY not in text_of(response)

    def test_all_refused_is_shown_row_by_row_and_imports_nothing(self) -> None:
        client = signed_in(Role.EDITOR)
        document = {"mcpServers": {"a": {"url": CANARY}, "b": {}}}
        looked = visible_text(paste(client, document, headers=HTMX))
        assert "url: must be an http or https address" in looked
        assert "needs a command or a url" in looked
        imported = paste(client, document, step="import")
        assert imported.status_code == 422
        assert "mcpServers.a.url must be an http or https address" in visible_text(imported)
        assert CANARY not in text_of(imported)
        assert not Server.objects.exists()

    @pytest.mark.parametrize(
        ("document", "message"),
        [
            ("{", "line 1 column 2 invalid JSON"),
            ([], "the file must hold an object"),
            ("", "Paste a config, or choose a file"),
            ("hello", "a config is JSON"),
        ],
    )
    def test_mistake_is_told_with_its_place(self, document: object, message: str) -> None:
        client = signed_in(Role.EDITOR)
        looked = paste(client, document, headers=HTMX)
        assert looked.status_code == 200
        assert message in visible_text(looked)
        imported = paste(client, document, step="import")
        assert imported.status_code == 422
        assert message in visible_text(imported)

    def test_long_plan_has_no_boxes_and_takes_all(self) -> None:
        many = {f"s{number}": {"url": f"https://s{number}.example/"} for number in range(210)}
        document = {"mcpServers": {**many, "bad": {}}}
        client = signed_in(Role.EDITOR)
        response = paste(client, document, headers=HTMX)
        assert 'name="take"' not in text_of(response)
        assert "And 11 more. All 210 new and changed ones" in visible_text(response)
        assert "needs a command or a url" in visible_text(response)
        paste(client, document, step="import", version=version_in(response))
        assert Server.objects.count() == 210

    def test_hostile_text_is_harmless(self) -> None:
        name = "<script>x</script>\u202e"
        document = {
            "servers": {name: {"command": name, "args": [name], name: 1, "env": {"A": f"${{input:{name}}}"}}}
        }
        page = paste(signed_in(Role.ADMIN), document)
        assert not broken_rules(page)
        assert "<script>x" not in text_of(page)


class TestImport:
    def test_only_what_was_ticked_is_imported(self) -> None:
        document = {"mcpServers": {"a": REMOTE, "b": {**REMOTE, "disabled": True}, "c": REMOTE}}
        client = signed_in(Role.EDITOR)
        assert confirm(client, document, take=["a", "b"]).status_code == 302
        assert dict(Server.objects.values_list("name", "enabled")) == {"a": True, "b": False}
        assert [job.subject for job in Job.objects.filter(kind="refresh_server")] == [
            Server.objects.get(name="a").pk
        ]

    def test_nothing_ticked_is_told(self) -> None:
        response = confirm(signed_in(Role.EDITOR), {"mcpServers": {"a": REMOTE}}, take=[])
        assert response.status_code == 422
        assert "choose at least one server" in visible_text(response)

    @pytest.mark.parametrize("what", ["added", "changed", "policy"])
    def test_over_what_has_changed_since_the_plan_is_refused(self, what: str) -> None:
        document = {"mcpServers": {"remote": REMOTE}, "toolSearch": {"enabled": True}}
        client = signed_in(Role.EDITOR)
        if what == "changed":
            import_as_admin({"mcpServers": {"remote": {"url": "https://first.example/"}}})
        version = version_in(paste(client, document, headers=HTMX))
        if what == "policy":
            import_as_admin({"toolSearch": {"enabled": False}})
        else:
            import_as_admin({"mcpServers": {"remote": {"url": "https://other.example/"}}})
        before = list(Server.objects.values())
        response = paste(client, document, step="import", version=version)
        assert response.status_code == 422
        assert "has changed since it was read" in visible_text(response)
        assert list(Server.objects.values()) == before
        fresh = version_in(paste(client, document, headers=HTMX))
        assert paste(client, document, step="import", version=fresh).status_code == 302

    def test_adds_servers_and_asks_for_their_tools(self) -> None:
        document = {"mcpServers": {"remote": REMOTE}, "toolSearch": {"enabled": True}}
        client = signed_in(Role.EDITOR)
        response = paste(client, document, step="import", follow=True)
        assert response.redirect_chain[-1][0].startswith("/imported/?servers=")
        assert "1 server: 0 tools" in visible_text(response)
        server = Server.objects.get()
        assert servers.read_entry(server).headers == {"X-Key": CANARY}
        assert Policy.objects.get(slug="default").mode == "auto"
        assert Job.objects.filter(subject=server.pk).exists()
        again = paste(client, document, headers=HTMX)
        assert "is here already" in visible_text(again)
        assert "Nothing to import: every server of the file is here" in visible_text(again)
        repeated = paste(client, document, step="import", follow=True)
        assert "Nothing changed: 1 server of the file is here already" in visible_text(repeated)

    @pytest.mark.parametrize("way", ["file", "text"])
    def test_without_script_the_plan_keeps_the_text_sealed(self, way: str) -> None:
        client = signed_in(Role.EDITOR)
        text = json.dumps({"mcpServers": {"remote": REMOTE}})
        given = {"config": text} if way == "text" else {"file": SimpleUploadedFile("mcp.json", text.encode())}
        plan = client.post(PASTE, {"policy": "default", "step": "check", **given})
        assert plan.status_code == 200
        assert CANARY not in text_of(plan)
        assert not broken_rules(plan)
        found = re.search(r'name="sealed" value="([^"]+)"', text_of(plan))
        assert found
        values = {"policy": "default", "step": "import", "sealed": found[1], "version": version_in(plan)}
        stranger = signed_in(Role.EDITOR).post(PASTE, values)
        assert "paste it again" in visible_text(stranger)
        assert client.post(PASTE, {**values, "with_ticks": "yes", "take": "remote"}).status_code == 302
        assert read_entry("remote").headers == {"X-Key": CANARY}

    def test_command_is_for_admins(self) -> None:
        document = {"mcpServers": {"local": {"command": "npx", "env": {"TOKEN": CANARY}}}}
        refused = paste(signed_in(Role.EDITOR), document, step="import")
        assert "can be added by admins only" in visible_text(refused)
        assert not Server.objects.exists()
        assert paste(signed_in(Role.ADMIN), document, step="import").status_code == 302
        assert Server.objects.get().command == "npx"

    def test_reference_is_for_admins(self) -> None:
        document = {"mcpServers": {"x": {"url": "https://mcp.test/?p=${GITHUB_TOKEN}"}}}
        refused = paste(signed_in(Role.EDITOR), document, step="import")
        assert refused.status_code == 422
        told = "mcpServers.x.url refers to the variable GITHUB_TOKEN: only an admin may add or change that"
        assert told in visible_text(refused)
        assert not Server.objects.exists()
        assert paste(signed_in(Role.ADMIN), document, step="import").status_code == 302

    def test_plan_tells_what_is_replaced(self) -> None:
        command = {"mcpServers": {"local": {"command": "npx", "env": {"TOKEN": CANARY}}}}
        paste(signed_in(Role.ADMIN), command, step="import")
        replacement = {"mcpServers": {"local": {"url": "https://mcp.test/"}}}
        looked = visible_text(paste(signed_in(Role.ADMIN), replacement, headers=HTMX))
        assert "gets another command or address" in looked
        assert "cannot be undone" in looked
        refused = paste(signed_in(Role.EDITOR), replacement, step="import")
        assert "only an admin may replace it" in visible_text(refused)
        assert Server.objects.get().command == "npx"


class TestResult:
    def test_failing_ones_come_first_with_their_reason(self) -> None:
        make_tool(server=self.make("answers", last_refreshed_at=timezone.now()), description="x" * 400)
        self.make("fails", failures=1, last_error="The server needs a token <b>")
        self.make("waits")
        self.make("rests", enabled=False)
        make_server(name="another")
        response = self.look("answers", "fails", "waits", "rests")
        page = visible_text(response)
        names = re.findall(r'class="name" href="/servers/(\w+)/"', text_of(response))
        assert names == ["fails", "waits", "answers", "rests"]
        assert "4 servers: 1 tool," in page
        assert "1 needs you." in page
        assert "The server needs a token &lt;b&gt;" in text_of(response)
        assert "1 still being asked" in page
        assert "1 is disabled and not asked" in page
        assert 'hx-trigger="every 2s"' in text_of(response)
        assert not broken_rules(response)

    def test_sum_is_what_an_agent_pays_and_asking_ends(self) -> None:
        server = self.make("answers", last_refreshed_at=timezone.now())
        for number in range(20):
            make_tool(server=server, name=f"tool_{number}", description="does one thing or another " * 20)
        response = self.look("answers")
        cost = costs.cost_of_policy(Policy.objects.get(slug="default"))
        assert f"20 tools, {cost.full_tokens:,} tokens → {cost.sent_tokens:,}." in visible_text(response)
        assert "hx-trigger" not in text_of(response).split('id="import-result"')[1].split(">")[0]
        make_tool(description="another server's")
        derived_state.bring_up_to_date()
        assert "→" not in visible_text(self.look("answers"))
        assert "With everything else in the catalog" in visible_text(self.look("answers"))

    def test_server_that_is_asked_again_counts_as_waiting(self) -> None:
        server = self.make("again", last_refreshed_at=timezone.now())
        make_job(subject=server.pk)
        assert "1 still being asked" in visible_text(self.look("again"))

    def test_part_is_the_part_alone_and_costs_a_few_queries(self) -> None:
        names = [self.make(f"s{number}", last_refreshed_at=timezone.now()).name for number in range(120)]
        client = signed_in(Role.VIEWER)
        address = f"/imported/?servers={imports.write_ids(names)}"
        client.get(address, headers=HTMX)
        with CaptureQueriesContext(connection) as queries:
            response = client.get(address, headers=HTMX)
        assert len(queries) <= 14
        assert "<html" not in text_of(response)
        assert "And 20 more" in visible_text(response)

    @pytest.mark.parametrize("ids", ["", "x", "1-", "-", "99999999999999999999", "5-1", "1," * 5000])
    def test_odd_address_is_an_import_of_nothing(self, ids: str) -> None:
        response = signed_in(Role.VIEWER).get(f"/imported/?servers={ids}")
        assert response.status_code == 200
        assert "0 servers" in visible_text(response)

    def test_ids_are_written_as_ranges(self) -> None:
        made = [self.make(f"s{number}") for number in range(6)]
        first = made[0].pk
        made.pop(3)
        assert imports.write_ids([one.name for one in made]) == f"{first}-{first + 2},{first + 4}-{first + 5}"

    def make(self, name: str, **values: Any) -> Server:
        return make_server(name=name, transport="http", url="https://mcp.test/", **values)

    def look(self, *names: str) -> Any:
        return signed_in(Role.VIEWER).get(f"/imported/?servers={imports.write_ids(names)}&policy=default")


class TestForm:
    def test_adds_a_server_by_address(self) -> None:
        values = {
            "name": "remote",
            "url": "https://mcp.example.com/mcp",
            "transport": "http",
            "headers": f"Authorization: Bearer {CANARY}\nX-Team: tools",
            "defer": "load",
        }
        response = signed_in(Role.EDITOR).post(FORM, values, follow=True)
        assert "Added remote" in visible_text(response)
        entry = servers.read_entry(Server.objects.get())
        assert entry.headers == {"Authorization": f"Bearer {CANARY}", "X-Team": "tools"}
        assert entry.defer_loading is False
        assert CANARY not in text_of(response)

    def test_admin_adds_a_command(self) -> None:
        values = {"name": "local", "command": "npx", "args": "-y\nserver", "env": "A=b=c", "defer": "inherit"}
        signed_in(Role.ADMIN).post(FORM, values)
        entry = servers.read_entry(Server.objects.get())
        assert (entry.command, entry.args, entry.env) == ("npx", ("-y", "server"), {"A": "b=c"})

    def test_editor_is_not_asked_for_a_command_and_gives_none(self) -> None:
        client = signed_in(Role.EDITOR)
        assert 'name="command"' not in text_of(client.get(PAGE))
        response = client.post(FORM, {"name": "local", "command": "npx", "defer": "inherit"})
        assert response.status_code == 422
        assert not Server.objects.exists()

    def test_name_that_is_taken_meanwhile_keeps_its_server(self) -> None:
        """Of two who add one name at once, the second is told."""
        make_server(name="taken", transport="http", url="https://first.example/")
        values = {"name": "taken", "url": "https://a.example/", "transport": "http", "defer": "inherit"}
        response = signed_in(Role.ADMIN).post(FORM, values)
        assert response.status_code == 422
        assert "There is a server of that name already" in visible_text(response)
        assert Server.objects.get().url == "https://first.example/"

    @pytest.mark.parametrize(
        ("values", "field", "message"),
        [
            (
                {"name": "taken", "url": "https://a.example/"},
                "name",
                "There is a server of that name already",
            ),
            ({"name": "x", "url": f"ftp://{CANARY}"}, "url", "Must be an http or https address"),
            (
                {"name": "x", "url": "https://a.example/", "headers": CANARY},
                "headers",
                "Each line must be a name",
            ),
            ({"name": "x"}, "__all__", "Needs a command or a url"),
            ({"url": "https://a.example/"}, "name", "This field is required"),
        ],
    )
    def test_mistake_is_told_in_place_and_keeps_what_was_typed(
        self, values: dict[str, str], field: str, message: str
    ) -> None:
        make_server(name="taken")
        given = {"defer": "inherit", "transport": "http", **values}
        response = signed_in(Role.ADMIN).post(FORM, given)
        assert response.status_code == 422
        assert message in str(response.context["server_form"].errors[field])
        assert message in visible_text(response)
        for typed in values.values():
            assert typed in text_of(response)
        assert "no-store" in response.headers["Cache-Control"]
        assert Server.objects.count() == 1


def test_page_is_for_editors_and_never_cached(client: Client) -> None:
    page = signed_in(Role.EDITOR).get(PAGE)
    assert page.status_code == 200
    assert "no-store" in page.headers["Cache-Control"]
    assert not broken_rules(page)
    assert 'href="/add-server/"' not in text_of(signed_in(Role.VIEWER).get("/servers/"))
    for address in (PAGE, PASTE, FORM):
        assert client.post(address).status_code == 302
        assert signed_in(Role.VIEWER).post(address).status_code in (403, 405)
    assert signed_in(Role.VIEWER).get(PAGE).status_code == 403
    assert signed_in(Role.EDITOR).get(PASTE).status_code == 405
    assert signed_in(Role.EDITOR).get(FORM).status_code == 405


@given(text=st.sampled_from(CASES).map(lambda case: case.text) | DOCUMENTS.map(json.dumps))
@hypothesis_settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_every_text_has_a_plan_or_a_reason(text: str) -> None:
    """Never an error of ours, and never silence."""
    response = paste(signed_in(Role.ADMIN), text, headers=HTMX)
    assert response.status_code == 200
    page = visible_text(response)
    assert "What importing it would do" in page or "This cannot be imported" in page
    assert 'name="version"' not in text_of(response) or "Read as" in page
