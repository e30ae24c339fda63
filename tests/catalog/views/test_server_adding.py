"""Adding servers in the console: the dry run first, mistakes with their places, and no secret shown."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.domain import dialects
from catalog.models import Job, Policy, Server
from catalog.services import config, servers
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_server

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


def import_as_admin(document: object) -> None:
    config.import_config(config=dialects.parse_config(document), policy_slug="default", actor=COMMAND_LINE)


class TestPaste:
    def test_dry_run_tells_and_stores_nothing(self) -> None:
        document = {"mcpServers": {"remote": REMOTE}, "env": {"ENABLE_TOOL_SEARCH": "auto:5"}}
        response = paste(signed_in(Role.EDITOR), document, headers=HTMX)
        page = visible_text(response)
        assert "<html" not in text_of(response)
        assert "remote add" in page
        assert "Policy default : Mode auto" in page
        assert "Read as a claude config." in page
        assert CANARY not in text_of(response)
        assert not Server.objects.exists()

    def test_dry_run_tells_what_is_not_read_and_not_started(self) -> None:
        remote = {**REMOTE, "disabled": True, "timeout": 5, "cwd": "/x"}
        document = {"mcpServers": {"remote": remote}, "theme": "dark"}
        page = visible_text(paste(signed_in(Role.EDITOR), document, headers=HTMX))
        assert "remote disabled: it is not asked for its tools" in page
        assert "Not read of remote timeout, cwd" in page
        assert "Not read of the file theme" in page

    def test_file_of_another_program_is_no_success(self) -> None:
        response = paste(signed_in(Role.EDITOR), {"servers": {"remote": REMOTE}}, headers=HTMX)
        page = visible_text(response)
        assert "This cannot be imported" in page
        assert "seen: servers" in page
        assert CANARY not in text_of(response)

    def test_without_script_the_page_comes_back_empty(self) -> None:
        response = paste(signed_in(Role.EDITOR), {"mcpServers": {"remote": REMOTE}})
        assert response.status_code == 200
        assert "remote add" in visible_text(response)
        assert CANARY not in text_of(response)
        assert not broken_rules(response)

    @pytest.mark.parametrize("what", ["added", "changed", "policy"])
    def test_import_over_what_has_changed_since_the_plan_is_refused(self, what: str) -> None:
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

    def test_import_adds_servers_and_asks_for_their_tools(self) -> None:
        document = {"mcpServers": {"remote": REMOTE}, "toolSearch": {"enabled": True}}
        response = paste(signed_in(Role.EDITOR), document, step="import", follow=True)
        assert "1 added. New and changed ones" in visible_text(response)
        server = Server.objects.get()
        assert servers.read_entry(server).headers == {"X-Key": CANARY}
        assert Policy.objects.get(slug="default").mode == "auto"
        assert Job.objects.filter(subject=server.pk).exists()
        again = paste(signed_in(Role.EDITOR), document, headers=HTMX)
        assert "remote stays as it is" in visible_text(again)
        assert "Nothing: all of it is here already." in visible_text(again)

    @pytest.mark.parametrize(
        ("document", "message"),
        [
            ("{", "line 1 column 2 invalid JSON"),
            ([], "the file must hold an object"),
            ({"mcpServers": {"a": {"url": CANARY}}}, "mcpServers.a.url must be an http or https address"),
            ({"mcpServers": {"a": {}}}, "mcpServers.a needs a command or a url"),
            ("", "This field is required"),
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
        assert CANARY not in text_of(looked) + text_of(imported)
        assert not Server.objects.exists()

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
        assert "local change gets another command or address" in looked
        assert "cannot be undone" in looked
        refused = paste(signed_in(Role.EDITOR), replacement, step="import")
        assert "only an admin may replace it" in visible_text(refused)
        assert Server.objects.get().command == "npx"


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
    def test_mistake_is_told_in_place_without_what_was_given(
        self, values: dict[str, str], field: str, message: str
    ) -> None:
        make_server(name="taken")
        given = {"defer": "inherit", "transport": "http", **values}
        response = signed_in(Role.ADMIN).post(FORM, given)
        assert response.status_code == 422
        assert message in str(response.context["server_form"].errors[field])
        assert message in visible_text(response)
        assert CANARY not in text_of(response)
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
