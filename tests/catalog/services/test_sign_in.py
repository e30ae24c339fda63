"""An admin connects a server that needs a sign-in: there, back, and what ends it.

The numbers of threats are those of the list that this feature was designed against.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalog.access.actors import Actor, actor_of
from catalog.access.roles import Role
from catalog.domain.choices import AuthKind, AuthState, Transport
from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.dialects import ServerEntry
from catalog.domain.errors import Conflict, InvalidInput, NotAllowed
from catalog.models import Change, OAuthAttempt, OAuthClient, OAuthGrant, RefreshRun, Server
from catalog.services import access_tokens, oauth_clients, oauth_rows, retention, servers, sign_in
from catalog.services.oauth_clients import ClientSettings, WayBack
from catalog.services.oauth_rows import AttemptSecrets
from catalog.services.sign_in import SignInFailed
from catalog.upstream import oauth_http
from tests.catalog.services.signing_in import (
    CALLBACK,
    WAY_BACK,
    add_server,
    begin,
    connect,
    finish,
    give_client,
    go,
    grant_of,
    let_expire,
    make_admin,
    open_jobs,
    run_refresh,
    secrets_of,
)
from tests.harness.bad_answers import send_html, send_json, send_status
from tests.harness.clocks import set_clock
from tests.harness.protected_server import (
    SCOPE_OF_TOOL,
    ProtectedServer,
    lend,
    run_protected_server,
)
from tests.harness.rows import make_server, make_user
from tests.harness.sign_in_server import run_sign_in_server

pytestmark = pytest.mark.django_db

CANARY = "canary-0123456789"
DOCUMENT = "https://tools.test/oauth/client.json"


@pytest.fixture(scope="session")
def running() -> Iterator[ProtectedServer]:
    with run_protected_server() as made:
        yield made


@pytest.fixture
def place(running: ProtectedServer) -> Iterator[ProtectedServer]:
    with lend(running):
        yield running


@pytest.fixture
def server(place: ProtectedServer) -> Server:
    """One that was refused its first refresh."""
    added = add_server(place.connection())
    run_refresh(added)
    return added


@pytest.fixture
def admin() -> Actor:
    return make_admin()


def last_change() -> Change:
    return Change.objects.latest("pk")


def change_url(server: Server, url: str, **values: Any) -> Server:
    entry = ServerEntry(name=server.name, transport=Transport.HTTP, url=url, **values)
    return servers.store_entry(entry=entry, actor=make_admin())


class TestWholeWay:
    def test_leads_from_a_refusal_to_tools(self, place: ProtectedServer, admin: Actor) -> None:
        server = add_server(place.connection())
        run = run_refresh(server)
        assert (run.error_code, server.status) == ("sign_in_needed", "sign_in_needed")
        needed = grant_of(server)
        assert (needed.state, needed.needed_scopes) == (AuthState.SIGN_IN_NEEDED, ["read"])
        assert needed.resource_metadata == place.metadata_url
        assert Server.objects.of_status(server.status).get() == server

        attempt, url = begin(server, admin)
        departure = sign_in.find_departure(state_sha256=attempt.state_sha256, actor=admin)
        assert (departure.host, departure.scopes) == (place.signer.host, ("read", "offline_access"))
        assert departure.client_source == "registered"
        grant = finish(go(server, admin), admin)
        assert (grant.state, grant.issuer) == (AuthState.CONNECTED, place.signer.issuer)
        assert (grant.connected_by, grant.renews) == (admin.label, True)
        assert grant.granted_scopes == grant.asked_scopes == ["read", "offline_access"]
        assert grant.expires_at is not None
        assert grant.expires_at > timezone.now() + timedelta(minutes=59)
        assert url.startswith(f"{place.signer.issuer}/authorize?")

        assert open_jobs(server) == 1
        assert run_refresh(server).is_ok
        assert server.status == "ok"
        assert server.tools.count() > 20
        assert place.tokens[0] == ""
        assert place.tokens[-1] == secrets_of(server).access_token

    def test_is_in_the_change_record_without_a_secret(self, server: Server, admin: Actor) -> None:
        grant = connect(server, admin)
        change = last_change()
        assert (change.actor, change.user, change.name) == (admin.label, admin.user, server.name)
        assert change.before == {"signIn": "sign_in_needed"}
        assert change.after == {
            "signIn": "connected",
            "issuer": grant.issuer,
            "scopes": "read offline_access",
        }

    def test_again_is_in_the_change_record_as_the_first_one(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        place.signer.end_grants()
        run_refresh(server)
        grant = connect(server, admin)
        granted = {"issuer": grant.issuer, "scopes": "read offline_access"}
        assert last_change().before == {"signIn": "reconnect_needed"}
        assert last_change().after == {"signIn": "connected", **granted}

    def test_may_be_gone_before_the_server_was_ever_asked(self, place: ProtectedServer, admin: Actor) -> None:
        server = add_server(place.connection())
        assert connect(server, admin).granted_scopes == ["read", "offline_access"]
        assert run_refresh(server).is_ok

    def test_again_takes_the_place_of_what_was(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        first = connect(server, admin)
        before = secrets_of(server)
        again = connect(server, admin)
        assert again.pk == first.pk
        assert again.generation > first.generation
        assert secrets_of(server).access_token != before.access_token
        assert run_refresh(server).is_ok

    def test_leaves_a_server_that_is_disabled_alone(self, server: Server, admin: Actor) -> None:
        Server.objects.filter(pk=server.pk).update(enabled=False)
        connect(server, admin)
        assert open_jobs(server) == 0

    def test_is_for_servers_with_an_address(self, admin: Actor) -> None:
        with pytest.raises(InvalidInput, match="for servers with an address"):
            begin(make_server(), admin)

    def test_that_leads_nowhere_leaves_nothing(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.rules.pkce = None
        with pytest.raises(UpstreamFailure) as failure:
            begin(server, admin)
        assert failure.value.code is FailureCode.SIGN_IN_UNUSABLE
        assert not OAuthAttempt.objects.exists()
        assert not OAuthClient.objects.exists()


class TestAttempts:
    """Threat 5: a sign-in comes back once, soon, and with whoever went. Otherwise nothing is exchanged."""

    @pytest.fixture(autouse=True)
    def _nothing_is_exchanged(self, place: ProtectedServer) -> Iterator[None]:
        yield
        assert place.signer.count("/token") <= self.exchanges

    exchanges = 0

    def test_that_came_back_does_not_again(self, server: Server, admin: Actor) -> None:
        self.exchanges = 1
        answer = go(server, admin)
        finish(answer, admin)
        assert not OAuthAttempt.objects.exists()
        with pytest.raises(SignInFailed, match="not under way here any more"):
            finish(answer, admin)

    def test_that_comes_back_twice_at_once_does_so_once(
        self, server: Server, admin: Actor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def read_while_another_takes_it(attempt: OAuthAttempt) -> AttemptSecrets:
            OAuthAttempt.objects.filter(pk=attempt.pk).delete()
            return read(attempt)

        answer, read = go(server, admin), oauth_rows.read_attempt
        monkeypatch.setattr(oauth_rows, "read_attempt", read_while_another_takes_it)
        with pytest.raises(SignInFailed, match="not under way here any more"):
            finish(answer, admin)

    def test_of_another_admin_is_nobody_elses(self, server: Server, admin: Actor) -> None:
        attempt, _ = begin(server, admin)
        answer, other = go(server, admin), make_admin()
        with pytest.raises(SignInFailed):
            finish(answer, other)
        with pytest.raises(SignInFailed):
            sign_in.find_departure(state_sha256=attempt.state_sha256, actor=other)
        assert OAuthAttempt.objects.count() == 2

    @pytest.mark.parametrize("state", [None, "", "other"])
    def test_with_another_state_is_none(self, server: Server, admin: Actor, state: str | None) -> None:
        answer = {**go(server, admin), "state": state}
        with pytest.raises(SignInFailed):
            finish({name: value for name, value in answer.items() if value is not None}, admin)

    def test_of_eleven_minutes_ago_is_over(self, server: Server, admin: Actor) -> None:
        attempt, _ = begin(server, admin)
        answer = go(server, admin)
        assert attempt.expires_at <= timezone.now() + timedelta(minutes=10)
        OAuthAttempt.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
        with pytest.raises(SignInFailed):
            finish(answer, admin)
        retention.prune(now=timezone.now())
        assert not OAuthAttempt.objects.exists()

    def test_whose_server_is_gone_is_over(self, server: Server, admin: Actor) -> None:
        answer = go(server, admin)
        server.delete()
        with pytest.raises(SignInFailed):
            finish(answer, admin)

    def test_whose_servers_address_was_changed_is_over(self, server: Server, admin: Actor) -> None:
        answer = go(server, admin)
        change_url(server, "http://127.0.0.1:9/mcp")
        with pytest.raises(SignInFailed):
            finish(answer, admin)

    def test_that_ends_where_another_address_is_stores_nothing(self, server: Server, admin: Actor) -> None:
        """Threat 7: also where nobody has swept the attempt away."""
        self.exchanges = 1
        answer = go(server, admin)
        Server.objects.filter(pk=server.pk).update(url="http://127.0.0.1:9/mcp")
        with pytest.raises(SignInFailed, match="address was changed meanwhile"):
            finish(answer, admin)
        assert grant_of(server).sealed == ""

    def test_keeps_its_secrets_sealed_and_for_its_own_row(self, server: Server, admin: Actor) -> None:
        attempt, url = begin(server, admin)
        state = url.split("state=")[1].split("&")[0]
        stored = str(OAuthAttempt.objects.values())
        assert state not in stored
        assert attempt.state_sha256 in stored


class TestAnswers:
    """What comes back with the browser may be anything."""

    @pytest.mark.parametrize("iss", ["https://evil.test", "", None])
    def test_of_another_issuer_are_not_used(
        self, place: ProtectedServer, server: Server, admin: Actor, iss: str | None
    ) -> None:
        """Threat 3."""
        answer = {name: value for name, value in go(server, admin).items() if name != "iss"}
        with pytest.raises(UpstreamFailure, match="does not come from the sign-in server"):
            finish(answer if iss is None else {**answer, "iss": iss}, admin)
        assert place.signer.count("/token") == 0
        assert grant_of(server).state == AuthState.SIGN_IN_NEEDED

    @pytest.mark.parametrize(
        ("error", "words"),
        [
            ("access_denied", "You did not allow it"),
            ("invalid_scope", "does not grant the scopes"),
            ("server_error", "try again later"),
            (f"<b>{CANARY}</b>", "refused the sign-in"),
        ],
    )
    def test_that_say_no_change_nothing_and_are_told_in_our_words(
        self, place: ProtectedServer, server: Server, admin: Actor, error: str, words: str
    ) -> None:
        """Threat 11."""
        place.signer.rules.error = error
        answer = {**go(server, admin), "error_description": f"<script>{CANARY}</script>" + "x" * 1_000_000}
        with pytest.raises(SignInFailed, match=words) as failure:
            finish(answer, admin)
        assert CANARY not in str(failure.value)
        assert place.signer.count("/token") == 0
        assert grant_of(server).state == AuthState.SIGN_IN_NEEDED
        assert Change.objects.count() == 0

    def test_without_a_code_are_told(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        answer = {name: value for name, value in go(server, admin).items() if name != "code"}
        with pytest.raises(SignInFailed, match="sent no code along"):
            finish(answer, admin)
        assert place.signer.count("/token") == 0

    def test_that_cannot_be_exchanged_now_leave_what_was(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        before = secrets_of(server)
        answer = go(server, admin)
        place.signer.answers["/token"] = send_html
        with pytest.raises(UpstreamFailure):
            finish(answer, admin)
        assert (grant_of(server).state, secrets_of(server)) == (AuthState.CONNECTED, before)


class TestRegistration:
    def test_is_kept_for_the_next_time(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        for _ in range(3):
            connect(server, admin)
        assert place.signer.count("/register") == 1

    def test_is_with_both_ways_back_of_this_machine(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        begin(server, admin)
        begin(server, admin, WayBack(WAY_BACK.others[0]))
        assert place.signer.count("/register") == 1

    def test_is_done_again_for_another_way_back(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        other = WayBack("http://127.0.0.1:9000/oauth/callback")
        finish(go(server, admin, other), admin)
        assert place.signer.count("/register") == 2
        assert OAuthClient.objects.get().redirect_uris == [other.redirect_uri]

    def test_is_done_again_when_its_secret_has_ended(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.rules.methods = ("client_secret_basic",)
        connect(server, admin)
        OAuthClient.objects.update(secret_expires_at=timezone.now())
        connect(server, admin)
        assert place.signer.count("/register") == 2

    def test_is_forgotten_when_the_provider_has_forgotten_it(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        answer = go(server, admin)
        place.signer.clients.clear()
        with pytest.raises(UpstreamFailure) as failure:
            finish(answer, admin)
        assert failure.value.code is FailureCode.CLIENT_REFUSED
        assert not OAuthClient.objects.exists()
        connect(server, admin)
        assert place.signer.count("/register") == 2

    def test_at_another_issuer_is_another(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        """Threat 6: a secret of the first is not shown to the second."""
        place.signer.rules.methods = ("client_secret_basic",)
        connect(server, admin)
        first = OAuthClient.objects.get().client_id
        with run_sign_in_server(place.url) as other:
            place.signer = other
            connect(server, admin)
            client = OAuthClient.objects.get()
            assert (client.issuer, client.client_id != first) == (other.issuer, True)
            assert first not in str(other.seen)
        assert run_refresh(server).error_code == ""

    def test_is_not_needed_where_the_provider_reads_our_document(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.rules.documents = {DOCUMENT: (CALLBACK,)}
        finish(go(server, admin, WayBack(CALLBACK, document=DOCUMENT)), admin)
        client = OAuthClient.objects.get()
        assert (client.source, client.client_id, client.sealed) == ("document", DOCUMENT, "")
        assert place.signer.count("/register") == 0

    def test_that_there_is_no_way_of_asks_for_a_client_of_ones_own(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.rules.registers = False
        with pytest.raises(UpstreamFailure, match=f"redirect address {CALLBACK}"):
            begin(server, admin)

    def test_that_leads_to_no_sign_in_leaves_what_was_connected(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        """A grant is renewed as the client that it was given to."""
        connect(server, admin)
        begin(server, admin, WayBack("http://127.0.0.1:9000/oauth/callback"))
        assert place.signer.count("/register") == 2
        let_expire(server)
        assert run_refresh(server).is_ok
        assert grant_of(server).state == AuthState.CONNECTED

    def test_that_is_forgotten_leaves_what_was_connected(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        answer = go(server, admin, WayBack("http://127.0.0.1:9000/oauth/callback"))
        place.signer.clients.popitem()
        with pytest.raises(UpstreamFailure):
            finish(answer, admin)
        let_expire(server)
        assert run_refresh(server).is_ok


class TestDeadline:
    def test_of_finding_out_where_and_of_registering_is_one(
        self, place: ProtectedServer, server: Server, admin: Actor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        readings = iter([0.0, 1.0, 1.0 + sign_in.BEGIN_SECONDS])
        set_clock(monkeypatch, oauth_http, monotonic=lambda: next(readings))
        with pytest.raises(UpstreamFailure, match="did not answer in time") as failure:
            begin(server, admin)
        assert failure.value.code is FailureCode.SIGN_IN_SERVER_DOWN
        assert place.signer.count("/register") == 0
        assert not OAuthAttempt.objects.exists()


class TestDisconnecting:
    def test_ends_the_grant_on_both_sides(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        connect(server, admin)
        token = secrets_of(server).access_token
        run_refresh(server)
        assert sign_in.disconnect(server=server, actor=admin)
        assert place.signer.find_scopes(token) is None
        grant = grant_of(server)
        assert (grant.state, grant.sealed, grant.renews) == (AuthState.NONE, "", False)
        granted = {"issuer": place.signer.issuer, "scopes": "read offline_access"}
        assert last_change().before == {"signIn": "connected", **granted}
        assert last_change().after == {"signIn": "none"}
        assert run_refresh(server).error_code == "sign_in_needed"
        assert place.tokens[-1] == ""
        assert place.signer.count("/register") == 1
        connect(server, admin)

    @pytest.mark.parametrize("status", [500, 400, 404])
    def test_tells_where_the_provider_took_no_note(
        self, place: ProtectedServer, server: Server, admin: Actor, status: int
    ) -> None:
        connect(server, admin)
        place.signer.answers["/revoke"] = send_status(status)
        assert not sign_in.disconnect(server=server, actor=admin)
        assert grant_of(server).sealed == ""

    def test_of_a_grant_that_has_ended_asks_nobody(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        place.signer.end_grants()
        run_refresh(server)
        assert not sign_in.disconnect(server=server, actor=admin)
        assert place.signer.count("/revoke") == 0

    def test_of_what_is_not_connected_is_refused(self, server: Server, admin: Actor) -> None:
        with pytest.raises(Conflict, match="is not connected"):
            sign_in.disconnect(server=server, actor=admin)


class TestRights:
    """Threat 12: signing in is for admins, whatever page or call asks."""

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR])
    def test_of_others_do_not_reach(self, place: ProtectedServer, server: Server, role: Role) -> None:
        actor = actor_of(make_user(role))
        seen = list(place.signer.seen)
        wanted = ClientSettings(AuthKind.OAUTH, "https://as.test", "id")
        for act in (
            lambda: sign_in.begin(server=server, actor=actor, way_back=WAY_BACK),
            lambda: sign_in.finish(answer={"state": "x", "code": "y"}, actor=actor),
            lambda: sign_in.disconnect(server=server, actor=actor),
            lambda: oauth_clients.set_client(server=server, wanted=wanted, actor=actor),
            lambda: sign_in.obtain_own_token(server=server, actor=actor),
        ):
            with pytest.raises(NotAllowed):
                act()
        assert place.signer.seen == seen


class TestAddress:
    """Threat 7: tokens are for the address that they were given for, and for no other."""

    def test_that_is_another_gets_no_token(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        with run_protected_server() as other:
            change_url(server, other.url)
            assert not OAuthGrant.objects.filter(sealed__gt="").exists()
            assert not OAuthClient.objects.exists()
            assert run_refresh(server).error_code == "sign_in_needed"
            assert set(other.tokens) == {""}

    def test_that_was_changed_past_the_services_gets_none_either(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        with run_protected_server() as other:
            Server.objects.filter(pk=server.pk).update(url=other.url)
            assert access_tokens.fresh_access_token(Server.objects.get(pk=server.pk)) == ""
            assert run_refresh(server).error_code == "sign_in_needed"
            assert set(other.tokens) == {""}

    def test_that_was_changed_during_a_call_is_not_that_calls(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        assert access_tokens.find_server_at(server.pk, place.url) == server
        Server.objects.filter(pk=server.pk).update(url="http://127.0.0.1:9/mcp")
        with pytest.raises(UpstreamFailure, match="changed during the call"):
            access_tokens.find_server_at(server.pk, place.url)

    def test_that_redirects_elsewhere_takes_no_token_along(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        with run_protected_server() as other:
            place.answers["/mcp"] = 307, {"location": other.url}
            assert run_refresh(server).error_code == "redirected"
            assert other.tokens == []

    def test_of_the_same_host_keeps_a_client_of_ones_own_and_no_grant(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.add_client("own", redirect_uris=(CALLBACK,))
        give_client(server, place, admin)
        connect(server, admin)
        change_url(server, f"{place.url}?tenant=2")
        assert OAuthClient.objects.get().client_id == "own"
        assert not OAuthGrant.objects.exists()
        change_url(server, "http://127.0.0.1:9/mcp")
        assert not OAuthClient.objects.exists()

    def test_that_stays_keeps_its_grant(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        connect(server, admin)
        change_url(server, place.url, headers={"X-Team": "blue"})
        assert run_refresh(server).is_ok

    def test_of_a_server_that_is_removed_takes_all_with_it(self, server: Server, admin: Actor) -> None:
        connect(server, admin)
        begin(server, admin)
        servers.delete_server(server=server, actor=admin)
        for model in (OAuthGrant, OAuthClient, OAuthAttempt):
            assert not model._default_manager.exists()


class TestMoreScopes:
    def test_are_asked_for_together_with_those_of_before(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        place.scopes = (SCOPE_OF_TOOL,)
        place.signer.take_scope("offline_access")
        place.challenge = f'Bearer error="insufficient_scope", scope="{SCOPE_OF_TOOL}"'
        place.answers["/mcp"] = 403, {"www-authenticate": place.challenge}
        run = run_refresh(server)
        assert (run.error_code, server.status) == ("scope_needed", "sign_in_needed")
        grant = grant_of(server)
        assert (grant.state, grant.needed_scopes) == (AuthState.SCOPE_NEEDED, [SCOPE_OF_TOOL])
        assert place.signer.count("/token") == 1
        del place.answers["/mcp"]
        granted = connect(server, admin)
        assert granted.state == AuthState.CONNECTED
        assert set(granted.granted_scopes) == {"read", "offline_access", SCOPE_OF_TOOL}
        assert run_refresh(server).is_ok

    def test_of_before_are_asked_for_by_whoever_connects_again(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        """A server names in its challenge those that one call lacked, and not what other calls need."""
        connect(server, admin)
        place.answers["/mcp"] = self.lack(SCOPE_OF_TOOL)
        run_refresh(server)
        del place.answers["/mcp"]
        granted = set(connect(server, admin).granted_scopes)
        place.signer.end_grants()
        run_refresh(server)
        assert grant_of(server).state == AuthState.RECONNECT_NEEDED
        assert set(connect(server, admin).granted_scopes) == granted > {SCOPE_OF_TOOL, "offline_access"}

    def test_are_granted_where_a_client_gets_those_alone_that_it_registered_for(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        """As `oidc-provider` has it."""
        place.signer.rules.keeps_to_registered_scopes = True
        connect(server, admin)
        place.answers["/mcp"] = self.lack(SCOPE_OF_TOOL)
        run_refresh(server)
        del place.answers["/mcp"]
        assert SCOPE_OF_TOOL in connect(server, admin).granted_scopes
        assert place.signer.count("/register") == 2
        connect(server, admin)
        assert place.signer.count("/register") == 2

    def lack(self, scope: str) -> tuple[int, dict[str, str]]:
        return 403, {"www-authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}

    def test_that_the_provider_left_out_are_told(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.rules.tokens = {"scope": "read"}
        grant = connect(server, admin)
        assert grant.asked_scopes == ["read", "offline_access"]
        assert grant.granted_scopes == ["read"]

    def test_hostile_ones_of_a_server_are_not_kept(self, place: ProtectedServer, admin: Actor) -> None:
        """Threats 11 and 14."""
        many = " ".join(f"s{number}" for number in range(500))
        place.challenge = f'Bearer scope="${{HOME}} <b>x</b> {many}", resource_metadata="file:///etc/passwd"'
        server = add_server(place.connection())
        run_refresh(server)
        grant = grant_of(server)
        assert grant.needed_scopes[:2] == ["<b>x</b>", "s0"]
        assert len(grant.needed_scopes) == 50
        assert grant.resource_metadata == ""


def test_refused_registration_tells_nothing_of_the_providers_words(
    place: ProtectedServer, server: Server, admin: Actor
) -> None:
    """Threat 11."""
    place.signer.answers["/register"] = send_json({"error": CANARY, "error_description": CANARY}, 400)
    with pytest.raises(UpstreamFailure) as failure:
        begin(server, admin)
    assert CANARY not in str(failure.value)
    assert CANARY not in str(list(RefreshRun.objects.values()))
