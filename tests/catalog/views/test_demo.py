"""The demo in the console and by REST: marked, disabled, enabled and removed as a whole."""

import pytest
from django.test import Client

from catalog.access.roles import Role
from catalog.models import Change, SavedQuery, Server, Tool
from catalog.services.demo import load_demo
from tests.harness.pages import signed_in, visible_text
from tests.harness.rows import make_server, make_tool
from tests.sessions.api.calling import make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _demo() -> None:
    assert load_demo()


def test_pages_mark_what_came_with_it() -> None:
    tool = make_tool(server=make_server(name="own"), name="use")
    client = signed_in(Role.VIEWER)
    listed = visible_text(client.get("/servers/"))
    assert listed.count(" demo ") >= 12
    assert "github demo" in listed
    assert "own demo" not in listed
    assert "github demo" in visible_text(client.get("/servers/github/"))
    of_demo = Tool.objects.filter(server__name="github")[0]
    assert "demo" in visible_text(client.get(of_demo.get_absolute_url()))
    assert "demo" not in visible_text(client.get(tool.get_absolute_url()))
    assert "demo" in visible_text(client.get("/console/saved/"))


def test_rest_and_exports_mark_it() -> None:
    make_tool(server=make_server(name="own"), name="use")
    admin = make_agent(admin=True)
    listed = {one["name"]: one["demo"] for one in admin.read("/servers")["items"]}
    assert listed.pop("own") is False
    assert set(listed.values()) == {True}
    github = admin.read("/servers/github")
    assert admin.call("PATCH", "/servers/github", {**github, "deferLoading": True}).status_code == 200
    assert admin.read("/servers/github")["demo"] is True
    client = signed_in(Role.VIEWER)
    rows = b"".join(client.get("/tools.csv")).decode().splitlines()
    assert rows[0].endswith(",demo")
    assert {row.rpartition(",")[2] for row in rows[1:]} >= {"True", "False"}


def test_server_of_the_same_name_can_be_added_by_rest() -> None:
    admin = make_agent(admin=True)
    definition = {"name": "use", "inputSchema": {"type": "object"}}
    admin.post("/servers", {"name": "github", "tools": [definition]}, status=201)
    assert admin.read("/servers/github")["demo"] is False
    assert admin.call("POST", "/servers", {"name": "github", "tools": [definition]}).status_code == 409
    admin.post("/servers", {"name": "workshop", "url": "https://mcp.example.com/"}, status=201)
    assert admin.read("/servers/workshop")["settings"]["command"] is None


def test_server_with_another_address_is_ones_own() -> None:
    admin = make_agent(admin=True)
    answer = admin.call("PATCH", "/servers/workshop", {"args": ["other.py"]})
    assert answer.status_code == 200, answer.content
    assert answer.json()["demo"] is False
    assert answer.json()["settings"]["args"] == ["other.py"]


def test_is_disabled_and_enabled_with_an_undo() -> None:
    client = signed_in(Role.EDITOR)
    page = client.post("/demo/enabled/", {"enabled": "no", "next": "/"}, follow=True)
    assert page.redirect_chain[-1][0] == "/"
    assert "12 demo servers disabled" in visible_text(page)
    change = Change.objects.latest("pk")
    assert "Undo" in visible_text(client.get("/changes/"))
    client.post(f"/changes/{change.pk}/undo/")
    assert not Server.objects.filter(enabled=False).exists()
    client.post("/demo/enabled/", {"enabled": "no"})
    client.post("/demo/enabled/", {"enabled": "yes"})
    assert not Server.objects.filter(enabled=False).exists()


def test_is_removed_with_one_click() -> None:
    page = signed_in(Role.ADMIN).post("/demo/remove/", {"next": "/"}, follow=True)
    assert "Removed the demo: 12 servers," in visible_text(page)
    assert not Server.objects.exists()
    assert not SavedQuery.objects.exists()
    assert "There is no demo here" in visible_text(signed_in(Role.ADMIN).post("/demo/remove/", follow=True))


def test_others_are_refused(client: Client) -> None:
    assert client.post("/demo/remove/").status_code == 302
    for role in (Role.NONE, Role.VIEWER, Role.EDITOR):
        assert signed_in(role).post("/demo/remove/").status_code == 403
    assert signed_in(Role.VIEWER).post("/demo/enabled/").status_code == 403
    for address in ("/demo/remove/", "/demo/enabled/"):
        assert signed_in(Role.ADMIN).get(address).status_code == 405
    assert Server.objects.filter(demo=True, enabled=True).count() == 12
