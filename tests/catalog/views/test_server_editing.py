"""Changing a server in the console: deferLoading with a look first, on and off, how often, its end."""

import pytest
from django.test import Client

from catalog.access.roles import Role
from catalog.domain.choices import Transport
from catalog.models import Change, Policy, Server, Tool
from sessions.offers import costs
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db

ADDRESS = "/servers/github/"


@pytest.fixture
def github() -> Server:
    server = make_server(name="github", transport=Transport.STDIO, command="x")
    make_tool(server=server, name="read", description="x" * 3994)
    return server


def sent_under(slug: str) -> int:
    return costs.cost_of_policy(Policy.objects.get(slug=slug)).sent_tokens


class TestLoading:
    def test_look_tells_what_flips_and_stores_nothing(self, github: Server) -> None:
        response = signed_in(Role.EDITOR).get(f"{ADDRESS}loading/?defer=load", headers=HTMX)
        page = visible_text(response)
        assert "<html" not in text_of(response)
        now = sent_under("default")
        assert f"{now} → 1,000 tokens (+{1000 - now})" in page
        assert "github +1 – +1,000" in page
        assert "Set to load?" in page
        assert 'value="inherit" checked' in text_of(response), "it shows what is in force"
        github.refresh_from_db()
        assert github.defer_loading is None

    def test_look_tells_what_flips_under_each_policy(self, github: Server) -> None:
        make_policy(slug="eager", mode="off")
        page = visible_text(signed_in(Role.EDITOR).get(f"{ADDRESS}loading/?defer=load", headers=HTMX))
        assert f"default 1 tool changes {sent_under('default')} → 1,000 tokens" in page
        assert "eager Nothing changes 1,000 tokens" in page

    def test_look_without_script_is_a_page(self, github: Server) -> None:
        response = signed_in(Role.EDITOR).get(f"{ADDRESS}loading/?defer=load")
        assert not broken_rules(response)
        assert "Apply" in visible_text(response)

    @pytest.mark.parametrize("query", ["", "?defer=inherit", "?defer=nonsense"])
    def test_nothing_new_shows_the_switch_alone(self, github: Server, query: str) -> None:
        response = signed_in(Role.EDITOR).get(f"{ADDRESS}loading/{query}", headers=HTMX)
        assert "Apply" not in visible_text(response)
        assert 'value="inherit" checked' in text_of(response)

    def test_server_without_tools_flips_nothing(self) -> None:
        make_server(name="github")
        response = signed_in(Role.EDITOR).get(f"{ADDRESS}loading/?defer=load", headers=HTMX)
        assert "so nothing changes" in visible_text(response)

    @pytest.mark.parametrize(("word", "value"), [("load", False), ("defer", True), ("inherit", None)])
    def test_choice_is_stored_and_can_be_undone_from_the_toast(
        self, github: Server, word: str, value: bool | None
    ) -> None:
        Server.objects.update(defer_loading=not value)
        client = signed_in(Role.EDITOR)
        response = client.post(f"{ADDRESS}loading/", {"defer": word, "from": "list"}, follow=True)
        github.refresh_from_db()
        assert github.defer_loading is value
        change = Change.objects.get()
        assert f'action="/changes/{change.pk}/undo/"' in text_of(response)
        response = client.post(f"/changes/{change.pk}/undo/", {"next": "/servers/"}, follow=True)
        assert "Undone. Server github is as it was before." in visible_text(response)
        github.refresh_from_db()
        assert github.defer_loading is (not value)

    @pytest.mark.parametrize(
        ("word", "told"),
        [
            ("load", "github loads up front now."),
            ("defer", "github is deferred now"),
            ("inherit", "github follows"),
        ],
    )
    def test_toast_says_what_the_server_does_now(self, github: Server, word: str, told: str) -> None:
        Server.objects.update(defer_loading={"load": True, "defer": False, "inherit": True}[word])
        response = signed_in(Role.EDITOR).post(f"{ADDRESS}loading/", {"defer": word}, follow=True)
        assert told in visible_text(response)

    def test_same_choice_tells_nothing(self, github: Server) -> None:
        response = signed_in(Role.EDITOR).post(f"{ADDRESS}loading/", {"defer": "inherit"}, follow=True)
        assert "data-toast=" not in text_of(response).split("<template")[0]
        assert not Change.objects.exists()

    def test_unknown_choice_is_refused(self, github: Server) -> None:
        assert signed_in(Role.EDITOR).post(f"{ADDRESS}loading/", {"defer": "maybe"}).status_code == 422

    def test_list_offers_the_switch_to_editors(self, github: Server) -> None:
        assert "/loading/" in text_of(signed_in(Role.EDITOR).get("/servers/"))
        assert "/loading/" not in text_of(signed_in(Role.VIEWER).get("/servers/"))


class TestEnabled:
    def test_goes_off_and_on(self, github: Server) -> None:
        client = signed_in(Role.EDITOR)
        response = client.post(f"{ADDRESS}enabled/", {"enabled": "no"}, follow=True)
        assert "disabled: its tools are no longer listed" in visible_text(response)
        assert not Server.objects.get().enabled
        client.post(f"{ADDRESS}enabled/", {"enabled": "yes"})
        assert Server.objects.get().enabled


class TestInterval:
    def test_is_read_as_people_write_it(self, github: Server) -> None:
        response = signed_in(Role.EDITOR).post(f"{ADDRESS}interval/", {"interval": "2 days"}, follow=True)
        assert Server.objects.get().refresh_interval_seconds == 2 * 86_400
        assert 'value="2 days"' in text_of(response)

    @pytest.mark.parametrize(
        ("interval", "message"),
        [
            ("often", "Must be a number of seconds, or a duration"),
            ("5 s", "Must be from 10 seconds"),
            ("", "This field is required"),
        ],
    )
    def test_mistake_is_told_in_place(self, github: Server, interval: str, message: str) -> None:
        response = signed_in(Role.EDITOR).post(f"{ADDRESS}interval/", {"interval": interval})
        assert response.status_code == 422
        assert message in visible_text(response)
        assert Server.objects.get().refresh_interval_seconds == 3600


class TestDelete:
    def test_needs_the_name_typed(self, github: Server) -> None:
        client = signed_in(Role.ADMIN)
        assert "its 1 tool, what was set" in visible_text(client.get(ADDRESS))
        response = client.post(f"{ADDRESS}delete/", {"confirm": "git"}, follow=True)
        assert "Nothing was deleted: type github" in visible_text(response)
        assert Tool.objects.exists()
        response = client.post(f"{ADDRESS}delete/", {"confirm": "github"}, follow=True)
        assert "The server github and its tools are deleted." in visible_text(response)
        assert not Server.objects.exists()
        assert Change.objects.get().action == "deleted"

    def test_is_offered_to_admins_only(self, github: Server) -> None:
        assert "/delete/" in text_of(signed_in(Role.ADMIN).get(ADDRESS))
        assert "/delete/" not in text_of(signed_in(Role.EDITOR).get(ADDRESS))


@pytest.mark.parametrize(
    ("part", "values", "least"),
    [
        ("loading/", {"defer": "load"}, Role.EDITOR),
        ("enabled/", {"enabled": "no"}, Role.EDITOR),
        ("interval/", {"interval": "1 day"}, Role.EDITOR),
        ("delete/", {"confirm": "github"}, Role.ADMIN),
    ],
)
def test_others_are_refused(
    client: Client, github: Server, part: str, values: dict[str, str], least: Role
) -> None:
    address = ADDRESS + part
    assert client.post(address, values).status_code == 302
    assert signed_in(Role(least - 1)).post(address, values).status_code == 403
    assert signed_in(Role.ADMIN).put(address).status_code == 405
    assert signed_in(Role.ADMIN).post(f"/servers/nowhere/{part}", values).status_code == 404
    row = Server.objects.get()
    assert (row.defer_loading, row.enabled, row.refresh_interval_seconds) == (None, True, 3600)


@pytest.mark.parametrize("name", ["..", "a/../b", "x/refresh", "x/delete"])
def test_server_of_a_name_that_browsers_resolve_is_shown_and_deleted_by_its_number(name: str) -> None:
    """No new server gets such a name; one that had it before does not become another server's page."""
    server, client = make_server(name=name), signed_in(Role.ADMIN)
    address = f"/servers/~{server.pk}/"
    assert f'href="{address}"' in text_of(client.get("/servers/"))
    page = text_of(client.get(address))
    assert f'action="{address}delete/"' in page
    assert f'action="{address}enabled/"' in page
    client.post(f"{address}enabled/", {"enabled": "no"})
    server.refresh_from_db()
    assert server.enabled is False
    client.post(f"{address}delete/", {"confirm": name})
    assert not Server.objects.filter(pk=server.pk).exists()
