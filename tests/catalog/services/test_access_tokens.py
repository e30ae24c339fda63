"""Tokens of servers that were signed in to: used while good, renewed in time, and never seen.

The numbers of threats are those of the list that this feature was designed against.
"""

import gzip
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from catalog import process_memory
from catalog.access.actors import COMMAND_LINE, Actor
from catalog.domain.backup_file import BackupWriter, Header, TableLine
from catalog.domain.choices import AuthState, Transport
from catalog.domain.connection import Connection, FailureCode, UpstreamFailure
from catalog.domain.dialects import ServerEntry
from catalog.domain.oauth import Challenge
from catalog.models import Change, Job, OAuthAttempt, OAuthGrant, RefreshRun, Server
from catalog.models.jobs import JobKind
from catalog.services import (
    access_tokens,
    connection_tests,
    connections,
    grant_renewal,
    jobs,
    refresh,
    sign_in,
)
from catalog.services.access_tokens import fresh_access_token
from catalog.services.backup import tables, taking
from catalog.services.connection_tests import TestResult
from catalog.services.oauth_rows import GrantSecrets
from catalog.upstream import oauth
from tests.catalog.services.signing_in import (
    CALLBACK,
    add_server,
    begin,
    connect,
    finish,
    give_client,
    go,
    grant_of,
    let_expire,
    make_admin,
    run_refresh,
    secrets_of,
)
from tests.harness.bad_answers import send_json, send_status
from tests.harness.protected_server import ProtectedServer, lend, run_protected_server

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
def admin() -> Actor:
    return make_admin()


@pytest.fixture
def server(place: ProtectedServer, admin: Actor) -> Server:
    """One that an admin has connected, and that was refreshed. One request for tokens was made."""
    added = add_server(place.connection())
    run_refresh(added)
    connect(added, admin)
    assert run_refresh(added).is_ok
    place.tokens.clear()
    return added


def asked_for_tokens(place: ProtectedServer) -> int:
    """Since the server was connected."""
    return place.signer.count("/token") - 1


def fail(server: Server, code: FailureCode, *, refused: str = "") -> str:
    with pytest.raises(UpstreamFailure) as failure:
        fresh_access_token(server, refused=refused)
    assert failure.value.code is code, failure.value.message
    return failure.value.message


class TestUse:
    def test_of_a_good_one_asks_nobody(self, place: ProtectedServer, server: Server) -> None:
        for _ in range(3):
            assert fresh_access_token(server) == secrets_of(server).access_token
        assert asked_for_tokens(place) == 0

    def test_of_one_without_an_end_never_asks(self, place: ProtectedServer, admin: Actor) -> None:
        place.signer.rules.lives = (None,)
        server = add_server(place.connection())
        connect(server, admin)
        OAuthGrant.objects.update(obtained_at=timezone.now() - timedelta(days=999))
        assert fresh_access_token(server) == secrets_of(server).access_token
        assert asked_for_tokens(place) == 0

    def test_is_none_where_nobody_has_signed_in(self, place: ProtectedServer) -> None:
        server = add_server(place.connection())
        assert fresh_access_token(server) == ""
        run_refresh(server)
        assert fresh_access_token(server) == ""

    def test_goes_before_a_header_of_the_settings(self, place: ProtectedServer, admin: Actor) -> None:
        server = add_server(place.connection(Authorization="Bearer pasted"))
        connect(server, admin)
        assert run_refresh(server).is_ok
        assert set(place.tokens) == {secrets_of(server).access_token}

    def test_is_none_where_the_settings_have_one_and_the_grant_has_ended(
        self, place: ProtectedServer, admin: Actor
    ) -> None:
        server = add_server(place.connection(Authorization="Bearer pasted"))
        connect(server, admin)
        place.signer.end_grants()
        assert run_refresh(server).error_code == "reconnect_needed"
        assert run_refresh(server).error_code == "unauthorized"
        assert place.tokens[-1] == "pasted"

    def test_of_one_that_belongs_to_another_row_is_refused(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        other = add_server(place.connection(), "other")
        connect(other, admin)
        OAuthGrant.objects.filter(server=other).update(sealed=grant_of(server).sealed)
        fail(other, FailureCode.SECRETS_UNREADABLE)
        assert run_refresh(other).error_code == "secrets_unreadable"


class TestRenewal:
    def test_of_an_expired_one_comes_before_the_request(self, place: ProtectedServer, server: Server) -> None:
        before, generation = secrets_of(server), grant_of(server).generation
        let_expire(server)
        assert run_refresh(server).is_ok
        after, grant = secrets_of(server), grant_of(server)
        assert set(place.tokens) == {after.access_token}
        assert after.access_token != before.access_token
        assert after.refresh_token != before.refresh_token
        assert (grant.generation, grant.holder, grant.held_until) == (generation + 1, "", None)
        assert grant.expires_at is not None
        assert grant.expires_at > timezone.now()
        assert asked_for_tokens(place) == 1

    def test_goes_on_with_each_new_refresh_token(self, place: ProtectedServer, server: Server) -> None:
        for _ in range(4):
            let_expire(server)
            fresh_access_token(server)
        assert (place.signer.reuses, place.signer.rotations) == (0, 4)

    def test_keeps_the_refresh_token_where_no_new_one_comes(
        self, place: ProtectedServer, server: Server
    ) -> None:
        place.signer.rules.rotates = False
        kept = secrets_of(server).refresh_token
        for _ in range(2):
            let_expire(server)
            fresh_access_token(server)
            assert secrets_of(server).refresh_token == kept

    def test_is_ahead_of_the_end(self, place: ProtectedServer, server: Server) -> None:
        now = timezone.now()
        life = {
            "obtained_at": now - timedelta(minutes=59, seconds=30),
            "expires_at": now + timedelta(seconds=30),
        }
        OAuthGrant.objects.update(**life)
        fresh_access_token(server)
        assert asked_for_tokens(place) == 1

    def test_needs_nothing_that_a_process_remembers(self, place: ProtectedServer, server: Server) -> None:
        """A refresh token goes to the issuer's own endpoint, not to one made up at the server's."""
        let_expire(server)
        process_memory.reset()
        fresh_access_token(Server.objects.get(pk=server.pk))
        assert asked_for_tokens(place) == 1
        assert "/token" not in place.paths

    def test_that_names_other_scopes_keeps_those(self, place: ProtectedServer, server: Server) -> None:
        place.signer.rules.tokens = {"scope": "read"}
        let_expire(server)
        fresh_access_token(server)
        assert grant_of(server).granted_scopes == ["read"]
        assert grant_of(server).asked_scopes == ["read", "offline_access"]


class TestSilentSigner:
    """The authorization server fails for a while: nothing ends by that."""

    def test_good_token_is_used_until_its_end(self, place: ProtectedServer, server: Server) -> None:
        place.signer.answers["/token"] = send_status(503)
        ahead = timezone.now() + timedelta(seconds=20)
        OAuthGrant.objects.update(obtained_at=timezone.now() - timedelta(hours=1), expires_at=ahead)
        for _ in range(3):
            assert run_refresh(server).is_ok
        assert asked_for_tokens(place) == 1  # then it is left alone for a while
        grant = grant_of(server)
        assert (grant.state, grant.holder) == (AuthState.CONNECTED, "")
        assert "HTTP status 503" in grant.last_error

    def test_expired_token_waits_for_it(self, place: ProtectedServer, server: Server) -> None:
        place.signer.answers["/token"] = send_status(503)
        let_expire(server)
        run = run_refresh(server)
        assert (run.error_code, server.status) == ("sign_in_server_down", "failing")
        assert server.next_refresh_at is not None
        assert run_refresh(server).error_code == "sign_in_server_down"
        assert asked_for_tokens(place) == 1
        assert place.tokens == []

    def test_is_asked_again_after_a_rest(self, place: ProtectedServer, server: Server) -> None:
        place.signer.answers["/token"] = send_status(503)
        let_expire(server)
        run_refresh(server)
        place.signer.answers.clear()
        OAuthGrant.objects.update(rest_until=timezone.now())
        assert run_refresh(server).is_ok
        assert grant_of(server).last_error == ""

    @pytest.mark.parametrize(
        ("wanted", "seconds"),
        [("120", 120), ("1", 30), ("999999999", 3600), ("9" * 4000, 30), ("-5", 30), ("soon", 30)],
    )
    def test_is_left_alone_for_as_long_as_it_asks_within_reason(
        self, place: ProtectedServer, server: Server, wanted: str, seconds: int
    ) -> None:
        place.signer.answers["/token"] = lambda handler: handler.send_body(
            429, b"{}", "application/json", **{"retry-after": wanted}
        )
        let_expire(server)
        before = timezone.now()
        fail(server, FailureCode.SIGN_IN_SERVER_DOWN)
        until = grant_of(server).rest_until
        assert until is not None
        assert seconds <= (until - before).total_seconds() < seconds + 10

    def test_answer_that_cannot_be_used_is_not_kept(self, place: ProtectedServer, server: Server) -> None:
        """Threat 14."""
        before = secrets_of(server)
        place.signer.rules.tokens = {"access_token": "${HOME}"}
        let_expire(server)
        assert run_refresh(server).error_code == "sign_in_unusable"
        assert secrets_of(server) == before
        assert place.tokens == []


class TestRefusedToken:
    def test_is_renewed_once_and_the_server_asked_once_more(
        self, place: ProtectedServer, server: Server
    ) -> None:
        before = secrets_of(server).access_token
        place.signer.refuse_access_tokens()
        assert run_refresh(server).is_ok
        assert list(dict.fromkeys(place.tokens)) == [before, secrets_of(server).access_token]
        assert asked_for_tokens(place) == 1

    def test_that_is_refused_again_ends_the_grant(self, place: ProtectedServer, server: Server) -> None:
        place.find_scopes = lambda token: None
        run = run_refresh(server)
        assert (run.error_code, grant_of(server).state) == ("reconnect_needed", AuthState.RECONNECT_NEEDED)
        assert len(set(place.tokens)) == 2
        assert asked_for_tokens(place) == 1
        assert secrets_of(server).access_token == ""

    def test_that_another_process_has_renewed_meanwhile_is_not_renewed(
        self, place: ProtectedServer, server: Server
    ) -> None:
        old = secrets_of(server).access_token
        new = fresh_access_token(server, refused=old)
        assert fresh_access_token(server, refused=old) == new != old
        assert asked_for_tokens(place) == 1

    def test_without_a_refresh_token_ends_the_grant(self, place: ProtectedServer, admin: Actor) -> None:
        place.signer.rules.gives_refresh_tokens = False
        server = add_server(place.connection())
        assert not connect(server, admin).renews
        assert run_refresh(server).is_ok
        let_expire(server)
        assert run_refresh(server).error_code == "reconnect_needed"
        assert asked_for_tokens(place) == 0

    def test_that_lacks_a_right_is_not_renewed(self, place: ProtectedServer, server: Server) -> None:
        """A new token would have no more of them."""
        place.answers["/mcp"] = 403, {"www-authenticate": 'Bearer error="insufficient_scope", scope="count"'}
        assert run_refresh(server).error_code == "scope_needed"
        assert asked_for_tokens(place) == 0
        assert secrets_of(server).access_token
        del place.answers["/mcp"]
        assert run_refresh(server).is_ok  # what it may do goes on
        assert grant_of(server).state == AuthState.SCOPE_NEEDED

    def test_that_lacked_a_right_and_is_not_the_present_one_says_nothing_of_that(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        """An admin grants more while a call is under way with the token of before."""
        lacks = UpstreamFailure(
            FailureCode.SCOPE_NEEDED,
            "more",
            challenge=Challenge(scopes=("count",), error="insufficient_scope"),
        )
        old = secrets_of(server).access_token
        connect(server, admin)
        with pytest.raises(UpstreamFailure):
            access_tokens.renew_refused_token(server, old, lacks)
        assert access_tokens.end_refused_grant(server, old, lacks) is lacks
        assert grant_of(server).state == AuthState.CONNECTED
        with pytest.raises(UpstreamFailure):
            access_tokens.renew_refused_token(server, secrets_of(server).access_token, lacks)
        assert grant_of(server).state == AuthState.SCOPE_NEEDED

    def test_of_nobody_says_nothing_of_a_sign_in_that_came_meanwhile(
        self, place: ProtectedServer, server: Server, admin: Actor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def connect_while_reading(**values: Any) -> tuple[OAuthGrant, bool]:
            read = OAuthGrant.objects.get(server=values["server"]), False
            connect(server, admin)
            return read

        sign_in.disconnect(server=server, actor=admin)
        monkeypatch.setattr(OAuthGrant.objects, "get_or_create", connect_while_reading)
        needed = UpstreamFailure(FailureCode.SIGN_IN_NEEDED, "sign in", challenge=Challenge())
        access_tokens._store_need(server, needed.challenge, AuthState.SIGN_IN_NEEDED)  # type: ignore[arg-type]
        assert grant_of(server).state == AuthState.CONNECTED


class TestEndedGrant:
    """The provider has ended it: that is told once, and nobody is asked again."""

    @pytest.fixture(autouse=True)
    def _ended(self, place: ProtectedServer, server: Server) -> None:
        place.signer.end_grants()

    def test_is_told_once(self, place: ProtectedServer, server: Server) -> None:
        changes = Change.objects.count()
        run = run_refresh(server)
        assert (run.error_code, server.status) == ("reconnect_needed", "sign_in_needed")
        assert "connect again" in server.last_error
        assert server.stale_since is not None
        for _ in range(3):
            run_refresh(server)
            fail(server, FailureCode.RECONNECT_NEEDED)
        change = Change.objects.latest("pk")
        assert Change.objects.count() == changes + 1
        assert (change.actor, change.after) == ("toolsearch", {"signIn": "reconnect_needed"})
        granted = {"issuer": place.signer.issuer, "scopes": "read offline_access"}
        assert change.before == {"signIn": "connected", **granted}
        assert asked_for_tokens(place) == 1

    def test_is_not_tried_again_by_the_clock(self, place: ProtectedServer, server: Server) -> None:
        run_refresh(server)
        assert server.next_refresh_at is None
        assert refresh.request_due_refreshes(now=timezone.now() + timedelta(days=99)) == 0

    def test_keeps_no_token(self, server: Server) -> None:
        run_refresh(server)
        secrets = secrets_of(server)
        assert (secrets.access_token, secrets.refresh_token) == ("", "")
        assert secrets.server is not None  # who gives new ones

    def test_keeps_the_tools(self, server: Server) -> None:
        count = server.tools.filter(gone_at=None).count()
        run_refresh(server)
        assert server.tools.filter(gone_at=None).count() == count > 0

    def test_begins_anew_with_a_sign_in(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        run_refresh(server)
        assert connect(server, admin).state == AuthState.CONNECTED
        assert run_refresh(server).is_ok
        assert (server.status, server.failures) == ("ok", 0)
        assert place.signer.count("/register") == 1
        let_expire(server)
        assert run_refresh(server).is_ok

    def test_forgets_a_registration_that_the_provider_has_forgotten(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.clients.clear()
        run_refresh(server)
        assert connect(server, admin).state == AuthState.CONNECTED
        assert place.signer.count("/register") == 2


class TestHold:
    """Threat 8: a refresh token that is used twice ends the grant, so one process at a time uses it."""

    @pytest.fixture(autouse=True)
    def _held(self, server: Server) -> None:
        let_expire(server)
        self.set_hold(seconds=30)

    def set_hold(self, *, seconds: int) -> None:
        until = timezone.now() + timedelta(seconds=seconds)
        OAuthGrant.objects.update(holder="another", held_until=until)

    def test_of_another_is_waited_for(
        self, place: ProtectedServer, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def renew_elsewhere() -> None:
            OAuthGrant.objects.update(held_until=None)
            renewed.append(fresh_access_token(server))

        renewed: list[str] = []
        monkeypatch.setattr(access_tokens, "pause", renew_elsewhere)
        assert fresh_access_token(server) == renewed[0]
        assert asked_for_tokens(place) == 1

    def test_is_not_for_a_refresh_token_that_was_used_since_it_was_read(
        self, place: ProtectedServer, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def claim_after_another(grant: OAuthGrant) -> bool:
            monkeypatch.setattr(grant_renewal, "_claim", claim)
            renewed.append(fresh_access_token(server))
            return claim(grant)

        renewed: list[str] = []
        claim = grant_renewal._claim
        self.set_hold(seconds=-1)
        monkeypatch.setattr(grant_renewal, "_claim", claim_after_another)
        assert fresh_access_token(server) == renewed[0]
        assert (place.signer.reuses, asked_for_tokens(place)) == (0, 1)

    def test_of_another_hinders_nobody_while_the_token_is_good(
        self, place: ProtectedServer, server: Server
    ) -> None:
        ahead = timezone.now() + timedelta(seconds=20)
        OAuthGrant.objects.update(expires_at=ahead)
        assert fresh_access_token(server) == secrets_of(server).access_token
        assert asked_for_tokens(place) == 0

    def test_that_lasts_is_waited_for_so_long(
        self, place: ProtectedServer, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(access_tokens, "WAIT_SECONDS", 0.1)
        assert "in time" in fail(server, FailureCode.SIGN_IN_SERVER_DOWN)
        assert asked_for_tokens(place) == 0

    def test_of_one_that_is_gone_passes_on(self, place: ProtectedServer, server: Server) -> None:
        self.set_hold(seconds=-1)
        assert fresh_access_token(server)
        assert asked_for_tokens(place) == 1

    def test_of_one_that_died_with_the_new_token_ends_the_grant_once(
        self, place: ProtectedServer, server: Server
    ) -> None:
        """Nothing on our side can save it."""
        place.signer.families[-1].refresh_token = "what nobody has"
        self.set_hold(seconds=-1)
        fail(server, FailureCode.RECONNECT_NEEDED)
        fail(server, FailureCode.RECONNECT_NEEDED)
        assert (place.signer.reuses, asked_for_tokens(place)) == (1, 1)

    def test_that_was_lost_stores_nothing(
        self, place: ProtectedServer, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An admin connects again while a worker renews what was."""
        renew = oauth.renew

        def renew_while_connecting(*given: Any, **options: Any) -> Any:
            tokens = renew(*given, **options)
            connect(server, make_admin())
            signed_in.append(secrets_of(server))
            return tokens

        signed_in: list[GrantSecrets] = []
        self.set_hold(seconds=-1)
        monkeypatch.setattr(oauth, "renew", renew_while_connecting)
        assert fresh_access_token(server) == signed_in[0].access_token
        assert [secrets_of(server)] == signed_in

    def test_that_was_lost_ends_nothing(
        self, place: ProtectedServer, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse_while_connecting(*_: Any, **__: Any) -> Any:
            connect(server, make_admin())
            raise UpstreamFailure(FailureCode.RECONNECT_NEEDED, "ended")

        self.set_hold(seconds=-1)
        monkeypatch.setattr(oauth, "renew", refuse_while_connecting)
        fail(server, FailureCode.RECONNECT_NEEDED)
        assert grant_of(server).state == AuthState.CONNECTED

    def test_that_was_lost_holds_nobody_up(
        self, place: ProtectedServer, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail_while_connecting(*_: Any, **__: Any) -> Any:
            connect(server, make_admin())
            self.set_hold(seconds=30)
            raise UpstreamFailure(FailureCode.SIGN_IN_SERVER_DOWN, "down")

        self.set_hold(seconds=-1)
        monkeypatch.setattr(oauth, "renew", fail_while_connecting)
        fail(server, FailureCode.SIGN_IN_SERVER_DOWN)
        grant = grant_of(server)
        assert (grant.holder, grant.rest_until, grant.last_error) == ("another", None, "")


class TestConnectionTests:
    """A test of a server's settings sends its token along, but nowhere else."""

    def run(self, entry: ServerEntry) -> TestResult:
        job = connection_tests.request_test(entry=entry, actor=make_admin(), caller=1)
        handlers = {JobKind.TEST_SERVER: connection_tests.run_test}
        jobs.run_job(job_id=job.pk, holder="worker", handlers=handlers)
        result = connection_tests.read_result(Job.objects.get(pk=job.pk))
        assert result is not None
        return result

    def entry(self, server: Server, url: str, **values: Any) -> ServerEntry:
        return ServerEntry(name=server.name, transport=Transport.HTTP, url=url, **values)

    def test_of_the_same_address_sends_it(self, place: ProtectedServer, server: Server) -> None:
        result = self.run(self.entry(server, place.url, headers={"X-Team": "blue"}))
        assert result.ok
        assert set(place.tokens) == {secrets_of(server).access_token}

    def test_of_another_address_does_not(self, place: ProtectedServer, server: Server) -> None:
        """Threat 7."""
        with run_protected_server() as other:
            for url in (other.url, f"{place.url}?a=b", f"{place.origin}/other"):
                assert not self.run(self.entry(server, url)).ok
            assert set(other.tokens) == {""}
        assert set(place.tokens) <= {""}

    def test_of_another_name_does_not(self, place: ProtectedServer, server: Server) -> None:
        result = self.run(ServerEntry(name="new", transport=Transport.HTTP, url=place.url))
        assert (result.ok, "needs a sign-in" in result.error) == (False, True)
        assert set(place.tokens) == {""}

    def test_of_a_grant_that_has_ended_says_so(self, place: ProtectedServer, server: Server) -> None:
        place.signer.end_grants()
        let_expire(server)
        assert "connect again" in self.run(self.entry(server, place.url)).error


class TestSecrecy:
    """Threat 9: tokens, secrets and verifiers are in the sealed columns and nowhere else."""

    @pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
    def test_nothing_that_is_kept_or_logged_has_one(
        self, place: ProtectedServer, admin: Actor, caplog: pytest.LogCaptureFixture, method: str
    ) -> None:
        caplog.set_level(logging.DEBUG)
        place.signer.rules.methods = (method,)
        server = add_server(place.connection())
        self.live_through_everything(place, server, admin)
        begin(server, admin)
        given = [text for text in place.signer.given if text]
        assert len(given) > 8
        kept = self.dump()
        for text in given:
            assert text not in kept
            assert text not in caplog.text
        assert server.name in kept
        assert Change.objects.count() >= 4
        assert RefreshRun.objects.count() >= 6

    def live_through_everything(self, place: ProtectedServer, server: Server, admin: Actor) -> None:
        run_refresh(server)
        connect(server, admin)
        run_refresh(server)
        let_expire(server)
        run_refresh(server)
        place.signer.refuse_access_tokens()
        run_refresh(server)
        told = {"error": "server_error", "error_description": " ".join(place.signer.given)}
        place.signer.answers["/token"] = send_json(told, 500)
        let_expire(server)
        run_refresh(server)
        place.signer.answers.clear()
        place.signer.end_grants()
        let_expire(server)
        run_refresh(server)
        answer = go(server, admin)
        place.signer.answers["/token"] = send_json({**told, "error": "invalid_request"}, 400)
        with pytest.raises(UpstreamFailure):
            finish(answer, admin)
        place.signer.answers.clear()
        connect(server, admin)
        run_refresh(server)
        sign_in.disconnect(server=server, actor=admin)
        run_refresh(server)
        connect(server, admin)

    def dump(self) -> str:
        """Every table, as it is stored."""
        rows = []
        with connection.cursor() as cursor:
            for model in apps.get_models(include_auto_created=True):
                cursor.execute(f"SELECT * FROM {connection.ops.quote_name(model._meta.db_table)}")
                rows += cursor.fetchall()
        return str(rows)

    def test_sealed_columns_are_what_has_them(self, server: Server) -> None:
        """So that the test above looks for what is there."""
        assert secrets_of(server).access_token.startswith("access-")
        assert "access-" not in grant_of(server).sealed


class TestBackup:
    """A refresh token that is restored would be one that is used twice."""

    def test_leaves_grants_and_attempts_out_and_keeps_a_given_client(
        self, place: ProtectedServer, server: Server, admin: Actor, tmp_path: Path
    ) -> None:
        place.signer.add_client("own", "client_secret_basic", secret="s3cret", redirect_uris=(CALLBACK,))
        give_client(server, place, admin, client_secret="s3cret")
        connect(server, admin)
        begin(server, admin)
        assert OAuthGrant.objects.exists()
        assert OAuthAttempt.objects.exists()
        content = self.write(tmp_path / "backup")
        assert "catalog.oauthclient" in content
        assert '"own"' in content
        assert "oauthgrant" not in content
        assert "oauthattempt" not in content
        assert grant_of(server).sealed not in content
        assert not [text for text in place.signer.given if text in content]

    def write(self, path: Path) -> str:
        """What `take_backup` writes, which begins a transaction of its own."""
        with path.open("wb") as packed:
            writer = BackupWriter(packed, Header("", [], ""))
            for label, model in tables.kept_models().items():
                writer.begin_table(TableLine(label, tables.columns_of(model)))
                taking._write_rows(writer, model)
            writer.write_checksum()
        return gzip.decompress(path.read_bytes()).decode()

    def test_that_was_restored_asks_for_a_sign_in(self, place: ProtectedServer, server: Server) -> None:
        OAuthGrant.objects.all().delete()
        assert run_refresh(server).error_code == "sign_in_needed"
        assert grant_of(server).state == AuthState.SIGN_IN_NEEDED

    def test_that_was_restored_connects_a_client_of_ones_own_by_itself(
        self, place: ProtectedServer, server: Server, admin: Actor
    ) -> None:
        place.signer.add_client("own", "client_secret_basic", secret="s", may_ask_for_itself=True)
        give_client(server, place, admin, kind="client_credentials", client_secret="s")
        OAuthGrant.objects.all().delete()
        assert run_refresh(server).is_ok


def test_rows_of_a_server_that_is_a_command_now_are_not_used(server: Server) -> None:
    Server.objects.filter(pk=server.pk).update(transport="stdio", command="x", url="", sealed="")
    assert fresh_access_token(server) == ""


def test_address_that_is_filled_in_is_the_one_that_is_signed_in_to(
    place: ProtectedServer, admin: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORT_OF_PLACE", str(place.port))
    server = add_server(place.connection())
    url = place.url.replace(str(place.port), "${PORT_OF_PLACE}")
    connections.write_connection(server, Connection(Transport.HTTP, url=url))
    server.save()
    connect(server, admin)
    assert run_refresh(server).is_ok


def test_command_line_cannot_go_to_a_provider() -> None:
    """There is no browser to come back with."""
    assert COMMAND_LINE.user is None
