"""Servers that are signed in to as a client of one's own, with a person and without.

The numbers of threats are those of the list that this feature was designed against.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from catalog.access.actors import Actor
from catalog.domain.choices import AuthKind, AuthState, Transport
from catalog.domain.connection import UpstreamFailure
from catalog.domain.errors import InvalidInput
from catalog.models import Change, OAuthClient, OAuthGrant, Server
from catalog.selectors.sign_in_card import read_card
from catalog.services import access_tokens, oauth_clients, sign_in
from catalog.services.oauth_clients import ClientSettings
from tests.catalog.services.signing_in import (
    CALLBACK,
    add_server,
    begin,
    connect,
    give_client,
    grant_of,
    let_expire,
    make_admin,
    open_jobs,
    run_refresh,
    secrets_of,
)
from tests.harness.key_pairs import make_key
from tests.harness.protected_server import (
    ProtectedServer,
    lend,
    run_protected_server,
)
from tests.harness.rows import make_server
from tests.harness.sign_in_server import run_sign_in_server

pytestmark = pytest.mark.django_db


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


class TestOwnClient:
    def test_is_used_with_its_secret(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        place.signer.rules.registers = False
        place.signer.add_client("own", "client_secret_basic", secret="s3cret", redirect_uris=(CALLBACK,))
        give_client(server, place, admin, client_secret="s3cret", scopes=("count",))
        assert connect(server, admin).granted_scopes == ["count"]
        assert run_refresh(server).is_ok
        assert place.signer.count("/register") == 0

    def test_may_be_for_an_issuer_with_a_slash(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.add_client("own", redirect_uris=(CALLBACK,))
        give_client(server, place, admin, issuer=f"{place.signer.issuer}/")
        connect(server, admin)
        assert run_refresh(server).is_ok

    def test_goes_to_its_issuer_alone(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        """Threat 6: the server says that others sign people in for it from now on."""
        place.signer.add_client("own", "client_secret_basic", secret="s3cret", redirect_uris=(CALLBACK,))
        give_client(server, place, admin, client_secret="s3cret")
        connect(server, admin)
        with run_sign_in_server(place.url) as stranger:
            place.signer = stranger
            with pytest.raises(UpstreamFailure, match="does not name the issuer"):
                begin(server, admin)
            assert access_tokens.fresh_access_token(server, refused=secrets_of(server).access_token)
            assert stranger.seen == []

    def test_is_not_renewed_at_another_issuer(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        """Threat 6: what belongs to one issuer stays there, whatever the rows say."""
        place.signer.add_client("own", redirect_uris=(CALLBACK,))
        give_client(server, place, admin)
        connect(server, admin)
        count = place.signer.count("/token")
        OAuthClient.objects.update(issuer="https://other.test")
        with pytest.raises(UpstreamFailure):
            access_tokens.fresh_access_token(server, refused=secrets_of(server).access_token)
        assert place.signer.count("/token") == count

    def test_that_is_another_ends_what_the_former_was_granted(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        connect(server, admin)
        place.signer.add_client("own", redirect_uris=(CALLBACK,))
        give_client(server, place, admin)
        grant = grant_of(server)
        assert (grant.state, grant.sealed) == (AuthState.NONE, "")
        change = Change.objects.latest("pk")
        granted = {"signIn": "connected", "issuer": place.signer.issuer, "scopes": "read offline_access"}
        assert change.before == granted
        assert (change.after["signIn"], change.after["clientId"]) == ("none", "own")
        assert run_refresh(server).error_code == "sign_in_needed"

    def test_secret_has_to_be_given_again_for_another_client(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        give_client(server, place, admin, client_secret="s3cret")
        for change in ({"client_id": "other"}, {"issuer": "https://other.test"}):
            with pytest.raises(InvalidInput, match="must be given again"):
                give_client(server, place, admin, **change)

    @pytest.mark.parametrize(
        "values",
        [
            {"issuer": "as.test"},
            {"issuer": ""},
            {"client_id": "${HOME}"},
            {"client_id": "a\nb"},
            {"client_secret": "${HOME}"},
            {"client_secret": "tökèn"},
            {"scopes": ("${HOME}",)},
            {"scopes": ("a b",)},
            {"scopes": tuple(f"s{number}" for number in range(51))},
            {"kind": AuthKind.CLIENT_CREDENTIALS},
        ],
    )
    def test_that_cannot_be_is_refused(
        self, place: ProtectedServer, server: Server, admin: Actor, values: dict[str, Any]
    ) -> None:
        """Threat 14."""
        with pytest.raises(InvalidInput):
            give_client(server, place, admin, **values)
        assert not OAuthClient.objects.exists()

    def test_of_a_command_is_none(self, place: ProtectedServer, admin: Actor) -> None:
        command = make_server(transport=Transport.STDIO, command="x")
        with pytest.raises(InvalidInput, match="for servers with an address"):
            give_client(command, place, admin)

    def test_is_forgotten_with_its_grant(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        place.signer.add_client("own", redirect_uris=(CALLBACK,))
        give_client(server, place, admin)
        connect(server, admin)
        oauth_clients.set_client(server=server, wanted=ClientSettings(AuthKind.NONE), actor=admin)
        assert not OAuthClient.objects.exists()
        assert grant_of(server).sealed == ""
        change = Change.objects.latest("pk")
        assert (change.before["signIn"], change.before["issuer"]) == ("connected", place.signer.issuer)
        assert change.after == {"signIn": "none"}


class TestClientCredentials:
    """A client that gets its tokens without a person."""

    @pytest.mark.parametrize("kind", ["secret", "rsa", "ec"])
    def test_connect_a_server_by_themselves(
        self, place: ProtectedServer, server: Server, admin: Actor, kind: str
    ) -> None:
        if kind == "secret":
            secret, values = "s3cret", {"method": "client_secret_basic", "secret": "s3cret"}
        else:
            secret, public = make_key(kind)
            values = {"method": "private_key_jwt", "public_key": public}
        place.signer.add_client("own", **values, may_ask_for_itself=True)
        give_client(server, place, admin, kind=AuthKind.CLIENT_CREDENTIALS, client_secret=secret)
        assert open_jobs(server) == 1
        assert run_refresh(server).is_ok
        grant = grant_of(server)
        assert (grant.state, grant.granted_scopes, grant.connected_by) == (AuthState.CONNECTED, ["read"], "")
        assert place.signer.find_scopes(secrets_of(server).access_token) == frozenset({"read"})

    def test_are_asked_for_again_when_the_token_ends(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        self.give(place, server, admin)
        run_refresh(server)
        place.signer.refuse_access_tokens()
        assert run_refresh(server).is_ok
        assert place.signer.count("/token") == 2
        assert place.signer.forms("/token")[-1]["grant_type"] == "client_credentials"

    def test_that_are_refused_wait_for_an_admin(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        self.give(place, server, admin)
        place.signer.clients["own"].secret = "another"
        run = run_refresh(server)
        assert (run.error_code, server.status) == ("reconnect_needed", "sign_in_needed")
        assert "check the client id and secret" in run.error
        assert (grant_of(server).state, server.next_refresh_at) == (AuthState.RECONNECT_NEEDED, None)
        with pytest.raises(UpstreamFailure):
            access_tokens.fresh_access_token(server)
        assert place.signer.count("/token") == 1
        assert OAuthClient.objects.exists()  # it was given, and the admin may have to correct it only
        place.signer.clients["own"].secret = "s3cret"
        sign_in.obtain_own_token(server=server, actor=admin)
        assert run_refresh(server).is_ok

    def test_that_ask_for_scopes_which_are_not_granted_say_so(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        self.give(place, server, admin, scopes=("read", "everything"))
        run = run_refresh(server)
        assert (run.error_code, server.status) == ("scope_needed", "sign_in_needed")
        card = read_card(Server.objects.get(pk=server.pk), header_names=())
        assert card is not None
        assert (card.auth.state, card.auth.is_connected) == (AuthState.SCOPE_NEEDED, False)
        assert "does not grant the scopes" in card.auth.error
        assert (card.action, card.can_disconnect) == ("Connect", False)
        give_client(server, place, admin, kind=AuthKind.CLIENT_CREDENTIALS, scopes=("read",))
        assert run_refresh(server).is_ok
        assert (grant_of(server).state, grant_of(server).last_error) == (AuthState.CONNECTED, "")

    @pytest.mark.parametrize("was_connected", [False, True])
    def test_are_connected_when_the_provider_grants_them_after_all(
        self, place: ProtectedServer, server: Server, admin: Actor, was_connected: bool
    ) -> None:
        self.give(place, server, admin, scopes=("read", "count"))
        if was_connected:
            run_refresh(server)
            let_expire(server)
        granted, place.signer.rules.scopes = place.signer.rules.scopes, ("read",)
        run_refresh(server)
        assert grant_of(server).state == AuthState.SCOPE_NEEDED
        place.signer.rules.scopes = granted
        OAuthGrant.objects.update(rest_until=None)
        assert run_refresh(server).is_ok
        assert grant_of(server).state == AuthState.CONNECTED

    def test_ask_for_the_scopes_that_an_admin_wants(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        self.give(place, server, admin, scopes=("read", "count"))
        run_refresh(server)
        assert place.signer.forms("/token")[-1]["scope"] == "read count"

    def test_ask_for_no_more_when_they_are_renewed(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        self.give(place, server, admin)
        run_refresh(server)
        OAuthGrant.objects.update(needed_scopes=["read", "count"])
        place.signer.refuse_access_tokens()
        assert run_refresh(server).is_ok
        assert place.signer.forms("/token")[-1]["scope"] == "read"
        sign_in.obtain_own_token(server=server, actor=admin)
        assert place.signer.forms("/token")[-1]["scope"] == "read count"

    def test_need_no_pkce(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        place.signer.rules.pkce = None
        self.give(place, server, admin)
        assert run_refresh(server).is_ok

    def give(self, place: ProtectedServer, server: Server, admin: Actor, **values: Any) -> None:
        place.signer.add_client("own", "client_secret_basic", secret="s3cret", may_ask_for_itself=True)
        kind = AuthKind.CLIENT_CREDENTIALS
        give_client(server, place, admin, kind=kind, client_secret="s3cret", **values)
