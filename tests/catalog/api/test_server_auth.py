"""The `auth` of a server by REST: what it tells, what it takes, and that no secret is in any answer."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalog.domain.choices import AuthState
from catalog.domain.oauth import AuthorizationServer
from catalog.models import Change, Job, OAuthClient, OAuthGrant, Server
from catalog.services import connections, oauth_rows
from catalog.services.oauth_rows import GrantSecrets
from catalog.services.undo import can_undo
from catalog.upstream import oauth
from tests.sessions.api.calling import Agent, fill_catalog, make_agent

pytestmark = pytest.mark.django_db

ISSUER = "https://auth.example.com"
SECRET = "cs-not-to-be-told"
OWN = {"kind": "oauth", "issuer": ISSUER, "client_id": "our-id", "client_secret": SECRET}
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "revocation_endpoint": f"{ISSUER}/revoke",
}


@pytest.fixture
def admin() -> Agent:
    fill_catalog()
    made = make_agent(admin=True)
    made.post("/servers", {"name": "web", "url": "https://mcp.example.com/mcp"}, status=201)
    return made


def auth_of(admin: Agent) -> dict[str, Any]:
    found: dict[str, Any] = admin.read("/servers/web")["auth"]
    return found


def patch(admin: Agent, name: str, body: dict[str, Any], *, status: int = 200) -> Any:
    answer = admin.call("PATCH", f"/servers/{name}", body)
    assert answer.status_code == status, answer.content
    return answer.json()


def connect(name: str = "web", **values: Any) -> OAuthGrant:
    """What a sign-in leaves behind."""
    server = Server.objects.get(name=name)
    now = timezone.now()
    known = {
        "state": AuthState.CONNECTED,
        "issuer": ISSUER,
        "address_sha256": oauth_rows.address_digest(connections.read_connection(server).url),
        "granted_scopes": ["read", "write"],
        "connected_by": "ada",
        "connected_at": now,
        "obtained_at": now,
        "expires_at": now + timedelta(hours=1),
        "renews": True,
    }
    grant, _ = OAuthGrant.objects.update_or_create(server=server, defaults={**known, **values})
    held = GrantSecrets("at-1", "rt-1", AuthorizationServer(ISSUER, METADATA))
    grant.sealed = oauth_rows.seal_grant(grant, held)
    grant.save()
    return grant


class TestShown:
    def test_server_without_any(self, admin: Agent) -> None:
        assert auth_of(admin) == {
            "kind": "none",
            "state": "none",
            "issuer": "",
            "client_id": "",
            "scopes": [],
            "connected_by": "",
            "expires_at": None,
            "renews": False,
            "error": "",
        }

    def test_server_with_headers(self, admin: Agent) -> None:
        patch(admin, "web", {"headers": {"Authorization": "Bearer abc"}})
        assert (auth_of(admin)["kind"], auth_of(admin)["state"]) == ("headers", "none")

    def test_connected_server(self, admin: Agent) -> None:
        connect()
        found = auth_of(admin)
        assert (found["kind"], found["state"], found["issuer"]) == ("oauth", "connected", ISSUER)
        assert (found["scopes"], found["connected_by"], found["renews"]) == (["read", "write"], "ada", True)
        assert found["expires_at"]

    def test_tokens_are_in_no_answer(self, admin: Agent) -> None:
        connect()
        patch(admin, "web", {"auth": OWN})
        connect()
        for shown in (admin.read("/servers/web"), admin.read("/servers")):
            assert all(secret not in str(shown) for secret in ("at-1", "rt-1", SECRET))

    def test_agents_see_none_of_it(self, admin: Agent) -> None:
        connect()
        agent = make_agent()
        for server in agent.read("/servers")["items"]:
            assert server["auth"] is None

    def test_list_reads_all_servers_at_once(self, admin: Agent, django_assert_max_num_queries: Any) -> None:
        for number in range(20):
            entry = {"name": f"s{number}", "url": f"https://s{number}.example.com/"}
            admin.post("/servers", entry, status=201)
            connect(f"s{number}")
        with django_assert_max_num_queries(6):
            admin.read("/servers")


class TestClientOfOnesOwn:
    def test_is_stored_with_its_secret_sealed(self, admin: Agent) -> None:
        patch(admin, "web", {"auth": {**OWN, "scopes": ["read"]}})
        client = OAuthClient.objects.get()
        assert (client.issuer, client.client_id, client.scopes) == (ISSUER, "our-id", ["read"])
        assert SECRET not in client.sealed
        assert oauth_rows.read_client_secret(client) == SECRET
        assert (auth_of(admin)["kind"], auth_of(admin)["client_id"]) == ("oauth", "our-id")

    def test_answer_sent_back_changes_nothing(self, admin: Agent) -> None:
        patch(admin, "web", {"auth": OWN})
        connect()
        count = Change.objects.count()
        patch(admin, "web", {"auth": auth_of(admin)})
        assert auth_of(admin)["state"] == "connected"
        assert Change.objects.count() == count

    def test_answer_of_a_registered_client_sent_back_changes_nothing(self, admin: Agent) -> None:
        connect()
        patch(admin, "web", {"auth": auth_of(admin)})
        assert auth_of(admin)["state"] == "connected"

    def test_another_client_ends_what_the_former_one_was_granted(self, admin: Agent) -> None:
        patch(admin, "web", {"auth": OWN})
        connect()
        patch(admin, "web", {"auth": {"client_id": "another", "client_secret": "s2"}})
        assert auth_of(admin)["state"] == "none"
        assert OAuthGrant.objects.get().sealed == ""

    @pytest.mark.parametrize("change", [{"client_id": "another"}, {"issuer": "https://evil.example.com"}])
    def test_secret_belongs_to_its_client_and_issuer(self, admin: Agent, change: dict[str, str]) -> None:
        patch(admin, "web", {"auth": OWN})
        refused = patch(admin, "web", {"auth": change}, status=422)
        assert "auth.client_secret" in str(refused)
        assert auth_of(admin)["client_id"] == "our-id"

    def test_secret_stays_where_it_is_left_out(self, admin: Agent) -> None:
        patch(admin, "web", {"auth": OWN})
        patch(admin, "web", {"auth": {"scopes": ["read"]}})
        assert oauth_rows.read_client_secret(OAuthClient.objects.get()) == SECRET

    @pytest.mark.parametrize(
        ("wrong", "place"),
        [
            ({"issuer": ""}, "auth.issuer"),
            ({"issuer": "ftp://auth.example.com"}, "auth.issuer"),
            ({"client_id": "${CLOUD_KEY}"}, "auth.client_id"),
            ({"client_id": "a\nb"}, "auth.client_id"),
            ({"client_secret": "${CLOUD_KEY}"}, "auth.client_secret"),
            ({"client_secret": "ü"}, "auth.client_secret"),
            ({"scopes": ["two words"]}, "auth.scopes"),
            ({"scopes": [f"s{number}" for number in range(51)]}, "auth.scopes"),
        ],
    )
    def test_bad_input_is_named_and_changes_nothing(
        self, admin: Agent, wrong: dict[str, Any], place: str
    ) -> None:
        body = {"auth": {**OWN, **wrong}, "description": "never stored"}
        refused = patch(admin, "web", body, status=422)
        assert place in str(refused)
        assert not OAuthClient.objects.exists()
        assert Server.objects.get(name="web").description == ""

    def test_client_credentials_need_a_secret(self, admin: Agent) -> None:
        own = {name: value for name, value in OWN.items() if name != "client_secret"}
        refused = patch(admin, "web", {"auth": {**own, "kind": "client_credentials"}}, status=422)
        assert "auth.client_secret" in str(refused)

    def test_server_is_asked_anew(self, admin: Agent) -> None:
        Job.objects.all().delete()
        patch(admin, "web", {"auth": {**OWN, "kind": "client_credentials"}})
        assert Job.objects.open().filter(subject=Server.objects.get(name="web").pk).exists()

    def test_command_takes_none(self, admin: Agent) -> None:
        admin.post("/servers", {"name": "local", "command": "npx"}, status=201)
        patch(admin, "local", {"auth": OWN}, status=422)

    def test_change_record_has_no_secret(self, admin: Agent) -> None:
        patch(admin, "web", {"auth": OWN})
        patch(admin, "web", {"auth": {"client_secret": "another-secret"}})
        told = [str((one.before, one.after)) for one in Change.objects.all()]
        assert any("our-id" in one for one in told)
        assert not any(SECRET in one or "another-secret" in one for one in told)


class TestNone:
    def test_forgets_client_and_sign_in_and_tells_the_provider(
        self,
        admin: Agent,
        monkeypatch: pytest.MonkeyPatch,
        django_capture_on_commit_callbacks: Any,
    ) -> None:
        told: list[tuple[str, bool]] = []

        def revoke(server: object, client: object, token: str, *, is_refresh: bool, network: object) -> bool:
            told.append((token, is_refresh))
            return True

        monkeypatch.setattr(oauth, "revoke", revoke)
        patch(admin, "web", {"auth": OWN})
        connect()
        with django_capture_on_commit_callbacks(execute=True):
            patch(admin, "web", {"auth": {"kind": "none"}})
        assert (auth_of(admin)["kind"], auth_of(admin)["client_id"]) == ("none", "")
        assert told == [("rt-1", True)]

    def test_where_there_is_nothing_it_changes_nothing(self, admin: Agent) -> None:
        count = Change.objects.count()
        patch(admin, "web", {"auth": {"kind": "none"}})
        assert Change.objects.count() == count


class TestAddressChanged:
    def test_another_path_ends_the_sign_in_and_keeps_the_client(self, admin: Agent) -> None:
        patch(admin, "web", {"auth": OWN})
        connect()
        patch(admin, "web", {"url": "https://mcp.example.com/other"})
        assert (auth_of(admin)["state"], auth_of(admin)["client_id"]) == ("none", "our-id")

    def test_another_host_ends_both(self, admin: Agent) -> None:
        patch(admin, "web", {"auth": OWN})
        connect()
        patch(admin, "web", {"url": "https://other.example.com/mcp"})
        assert auth_of(admin)["kind"] == "none"
        assert not OAuthGrant.objects.exists()
        assert not OAuthClient.objects.exists()


class TestPrecondition:
    @pytest.mark.parametrize(
        "change", [{"client_id": "other", "client_secret": "s2"}, {"client_secret": "s2"}, {"kind": "none"}]
    )
    def test_of_an_edit_fails_where_the_client_is_another_meanwhile(
        self, admin: Agent, change: dict[str, str]
    ) -> None:
        patch(admin, "web", {"auth": OWN})
        tag = admin.call("GET", "/servers/web").headers["ETag"]
        mine = {"auth": {"scopes": ["read"]}}
        patch(admin, "web", {"auth": change})
        refused = admin.call("PATCH", "/servers/web", mine, If_Match=tag)
        assert refused.status_code == 412
        assert "client" in str(refused.json())
        assert "s2" not in str(refused.json())

    def test_of_an_edit_holds_where_only_a_token_was_renewed(self, admin: Agent) -> None:
        connect()
        tag = admin.call("GET", "/servers/web").headers["ETag"]
        connect(expires_at=timezone.now() + timedelta(days=1))
        answer = admin.call("PATCH", "/servers/web", {"description": "x"}, If_Match=tag)
        assert answer.status_code == 200


class TestAnswerSentBack:
    """With something else changed in it: what it said of the sign-in is not asked for."""

    @pytest.mark.parametrize("own", [None, OWN])
    def test_with_another_address_ends_the_sign_in(self, admin: Agent, own: dict[str, Any] | None) -> None:
        if own:
            patch(admin, "web", {"auth": own})
        connect()
        body = admin.read("/servers/web")
        body["settings"]["url"] = "https://other.example.com/mcp"
        patch(admin, "web", body)
        assert auth_of(admin)["kind"] == "none"
        assert not OAuthClient.objects.exists()

    def test_without_its_headers_has_none(self, admin: Agent) -> None:
        patch(admin, "web", {"headers": {"X-Team": "blue"}})
        body = admin.read("/servers/web")
        assert body["auth"]["kind"] == "headers"
        body["settings"]["headers"] = {}
        patch(admin, "web", body)
        assert auth_of(admin)["kind"] == "none"

    def test_with_a_secret_for_another_address_is_a_new_client(self, admin: Agent) -> None:
        patch(admin, "web", {"auth": OWN})
        body = admin.read("/servers/web")
        body["settings"]["url"] = "https://other.example.com/mcp"
        body["auth"]["client_secret"] = "another-secret"
        patch(admin, "web", body)
        assert (auth_of(admin)["kind"], auth_of(admin)["client_id"]) == ("oauth", "our-id")


def test_client_is_not_undone_since_its_secret_would_be_needed(admin: Agent) -> None:
    patch(admin, "web", {"auth": OWN})
    change = Change.objects.filter(after__has_key="clientId").get()
    assert not can_undo(change)
