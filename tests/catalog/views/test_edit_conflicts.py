"""Two people edit the same thing: the later save is told what changed, and keeps what was typed."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.choices import Loading
from catalog.models import Change, ModelSupport, Policy, Server, Tool
from catalog.models.model_support import Provider
from catalog.services import bulk, model_support, policies, servers, tool_settings
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_server, make_tool

pytestmark = pytest.mark.django_db

ANN = Actor("ann", Role.ADMIN)
EDIT = "/policies/default/edit/"
VERSION = re.compile(r'name="version" value="([^"]+)"')


def version_in(page: Any) -> str:
    return unescape(VERSION.search(text_of(page))[1])  # type: ignore[index]


def form_in(page: Any) -> dict[str, object]:
    """What the browser would send for the page's form as it stands."""
    form = page.context["form"]
    values = {name: form[name].value() for name in form.fields}
    sent = {name: "\n".join(value) if isinstance(value, list) else value for name, value in values.items()}
    kept = {name: value for name, value in sent.items() if value not in (None, False)}
    return {**kept, "version": version_in(page)}


def default() -> Policy:
    return Policy.objects.get(slug="default")


def change_policy(**changed: object) -> None:
    policies.change_policy(policy=default(), changed=changed, actor=ANN)


class TestPolicy:
    @pytest.fixture
    def editor(self) -> Client:
        return signed_in(Role.ADMIN)

    def test_older_form_does_not_undo_a_newer_save(self, editor: Client) -> None:
        opened = form_in(editor.get(EDIT))
        change_policy(quarantine="new_and_changed", visible=["github/*"])
        answer = editor.post(EDIT, {**opened, "max_results": "7"})
        assert answer.status_code == 409
        assert (default().quarantine, default().visible, default().version) == (
            "new_and_changed",
            ["github/*"],
            2,
        )
        page = visible_text(answer)
        assert "Not saved yet: the policy changed while you were editing." in page
        assert "Quarantine is now new_and_changed ann" in page
        assert "Save both" in page
        assert not broken_rules(answer)

    def test_form_keeps_what_was_typed_takes_the_rest_and_is_saved_on_purpose(self, editor: Client) -> None:
        opened = form_in(editor.get(EDIT))
        change_policy(quarantine="changed", visible=["github/*"], defer_builtins=True)
        again = form_in(editor.post(EDIT, {**opened, "max_results": "7"}))
        assert (again["max_results"], again["quarantine"], again["visible"]) == ("7", "changed", "github/*")
        assert (again["shown"], again["defer_builtins"]) == ("some", True)
        assert editor.post(EDIT, again).status_code == 302
        saved = default()
        assert (saved.max_results, saved.quarantine, saved.visible) == (7, "changed", ["github/*"])
        assert saved.defer_builtins

    def test_field_that_both_changed_is_told_and_replaced_only_on_purpose(self, editor: Client) -> None:
        opened = form_in(editor.get(EDIT))
        change_policy(max_results=9)
        answer = editor.post(EDIT, {**opened, "max_results": "7"})
        assert "You have 7 : saving replaces it." in visible_text(answer)
        assert "Save anyway" in visible_text(answer)
        assert default().max_results == 9
        assert editor.post(EDIT, form_in(answer)).status_code == 302
        assert default().max_results == 7

    def test_form_is_told_again_where_another_change_comes_in_between(self, editor: Client) -> None:
        opened = form_in(editor.get(EDIT))
        change_policy(max_results=9)
        again = form_in(editor.post(EDIT, {**opened, "mode": "off"}))
        change_policy(ranker="keyword")
        assert editor.post(EDIT, again).status_code == 409
        assert (default().mode, default().ranker) == ("always", "keyword")

    def test_mistake_keeps_the_version_that_was_opened(self, editor: Client) -> None:
        opened = form_in(editor.get(EDIT))
        change_policy(mode="off")
        wrong = editor.post(EDIT, {**opened, "max_results": "51"})
        assert wrong.status_code == 422
        assert version_in(wrong) == opened["version"]

    def test_both_made_the_same_change(self, editor: Client) -> None:
        opened = form_in(editor.get(EDIT))
        change_policy(max_results=7)
        answer = editor.post(EDIT, {**opened, "max_results": "7"}, follow=True)
        assert "nothing was saved" in visible_text(answer)

    def test_preview_carries_the_version_and_changes_nothing(self, editor: Client) -> None:
        opened = form_in(editor.get(EDIT))
        change_policy(mode="off")
        assert editor.post("/policies/default/preview/", opened, headers=HTMX).status_code == 200

    def test_text_that_is_no_version_is_a_conflict_and_no_error(self, editor: Client) -> None:
        opened = form_in(editor.get(EDIT))
        for nonsense in ("x", "é" * 9, "=" * 7, "a" * 5000):
            answer = editor.post(EDIT, {**opened, "version": nonsense, "max_results": "7"})
            assert answer.status_code == 409
        assert default().max_results == 5

    def test_roll_back_of_an_older_page_is_refused(self, editor: Client) -> None:
        change_policy(mode="auto")
        version = version_in(editor.get("/policies/default/"))
        change_policy(mode="off")
        sent = {"number": "1", "version": version}
        answer = editor.post("/policies/default/roll-back/", sent, follow=True)
        assert "Not rolled back: default was changed meanwhile (mode by ann)" in visible_text(answer)
        assert default().mode == "off"
        sent["version"] = version_in(editor.get("/policies/default/"))
        editor.post("/policies/default/roll-back/", sent)
        assert default().mode == "always"


class TestTool:
    @pytest.fixture
    def tool(self) -> Tool:
        return make_tool(server=make_server(name="github"), name="read", keywords=["a"])

    def test_settings_keep_both_edits(self, tool: Tool) -> None:
        client, address = signed_in(Role.EDITOR), f"/tools/{tool.qualified_name}/"
        opened = form_in(client.get(address))
        tool_settings.change_tool(tool=tool, actor=ANN, keywords=["b"], hidden=True)
        answer = client.post(f"{address}settings/", {**opened, "tags": "docs"})
        assert answer.status_code == 409
        assert "Keywords is now b ann" in visible_text(answer)
        assert not broken_rules(answer)
        again = form_in(answer)
        assert (again["keywords"], again["tags"], again["hidden"]) == ("b", "docs", True)
        assert client.post(f"{address}settings/", again).status_code == 302
        tool.refresh_from_db()
        assert tool_settings.settings_of(tool) == {
            "loading": "inherit",
            "keywords": ["b"],
            "hidden": True,
            "tags": ["docs"],
            "read_only": None,
        }

    def test_switch_of_an_older_list_is_refused_once(self, tool: Tool) -> None:
        client, address = signed_in(Role.EDITOR), f"/tools/{tool.qualified_name}/loading/"
        version = version_in(client.get("/tools/"))
        edit = bulk.BulkEdit(loading=Loading.DEFER)
        bulk.change_tools(tool_ids=[tool.pk], edit=edit, actor=ANN)
        sent = {"loading": "always", "version": version}
        row = client.post(address, sent, headers=HTMX)
        assert row.status_code == 200
        assert "was not set: ann has set it to defer meanwhile" in visible_text(row)
        tool.refresh_from_db()
        assert tool.loading == "defer"
        client.post(address, {**sent, "version": version_in(row)}, headers=HTMX)
        tool.refresh_from_db()
        assert tool.loading == "always"

    def test_change_of_another_field_does_not_stop_the_switch(self, tool: Tool) -> None:
        client = signed_in(Role.EDITOR)
        version = version_in(client.get("/tools/"))
        tool_settings.change_tool(tool=tool, actor=ANN, keywords=["b"])
        sent = {"loading": "always", "version": version}
        client.post(f"/tools/{tool.qualified_name}/loading/", sent)
        tool.refresh_from_db()
        assert (tool.loading, tool.keywords) == ("always", ["b"])


class TestServer:
    @pytest.fixture
    def server(self) -> Server:
        return make_server(name="web", transport="http", url="https://mcp.example.com/mcp")

    def test_loading_that_another_set_is_told_and_applied_on_purpose(self, server: Server) -> None:
        client, address = signed_in(Role.EDITOR), "/servers/web/loading/"
        version = version_in(client.get(f"{address}?defer=load"))
        servers.set_defer_loading(server=server, defer_loading=True, actor=ANN)
        answer = client.post(address, {"defer": "load", "version": version, "from": "list"})
        assert answer.status_code == 409
        assert "Not applied yet: ann has set it to defer meanwhile." in visible_text(answer)
        assert not broken_rules(answer)
        assert Server.objects.get().defer_loading is True
        sent = {"defer": "load", "version": version_in(answer), "from": "list"}
        assert client.post(address, sent).headers["Location"] == "/servers/"
        assert Server.objects.get().defer_loading is False

    def test_interval_that_another_set_is_told_and_saved_on_purpose(self, server: Server) -> None:
        client = signed_in(Role.EDITOR)
        version = version_in(client.get("/servers/web/"))
        servers.set_refresh_interval(server=server, seconds=120, actor=ANN)
        answer = client.post("/servers/web/interval/", {"interval": "2 hours", "version": version})
        assert answer.status_code == 409
        assert "ann has set it to 2 minutes meanwhile" in visible_text(answer)
        assert 'value="2 hours"' in text_of(answer)
        assert Server.objects.get().refresh_interval_seconds == 120
        client.post("/servers/web/interval/", {"interval": "2 hours", "version": version_in(answer)})
        assert Server.objects.get().refresh_interval_seconds == 7200

    def test_version_is_optional(self, server: Server) -> None:
        client = signed_in(Role.EDITOR)
        servers.set_defer_loading(server=server, defer_loading=True, actor=ANN)
        assert client.post("/servers/web/loading/", {"defer": "load"}).status_code == 302
        assert Server.objects.get().defer_loading is False


class TestModel:
    def test_row_keeps_both_edits(self) -> None:
        ModelSupport.objects.all().delete()
        fields = {"provider": Provider.OTHER, "hosted_search": False, "context_window": None}
        row = model_support.save_model(name_pattern="m*", actor=COMMAND_LINE, **fields).row  # type: ignore[arg-type]
        client, address = signed_in(Role.ADMIN), f"/models/{row.pk}/"
        opened = form_in(client.get(address))
        model_support.change_model(model_id=row.pk, changed={"hosted_search": True}, actor=ANN)
        answer = client.post(address, {**opened, "context_window": "5,000"})
        assert answer.status_code == 409
        assert "Hosted search is now yes ann" in visible_text(answer)
        assert not broken_rules(answer)
        assert client.post(address, form_in(answer)).status_code == 302
        row.refresh_from_db()
        assert (row.hosted_search, row.context_window) == (True, 5000)
        assert Change.objects.filter(name="m*").count() == 3
