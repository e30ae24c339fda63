"""Calls of servers that were signed in to: with a good token over one connection, or told in plain words."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalog.access.actors import Actor
from catalog.domain.choices import AuthKind, AuthState
from catalog.domain.marking.mark import MASK
from catalog.models import Change, OAuthGrant
from catalog.services import access_tokens, sign_in
from sessions.models import UpstreamState
from tests.catalog.services.signing_in import (
    connect,
    give_client,
    grant_of,
    let_expire,
    make_admin,
    secrets_of,
)
from tests.harness.bad_answers import send_status
from tests.harness.gateway import ERAS, Answer, RunningGateway
from tests.harness.protected_server import ProtectedServer, lend, run_protected_server
from tests.sessions.gateway.catalog import ON_THREADS, Catalog, last_call, recorded_calls

pytestmark = ON_THREADS

CONNECT_IT = "The server fixture needs a sign-in: an admin has to connect it."


@pytest.fixture(scope="session")
def running() -> Iterator[ProtectedServer]:
    with run_protected_server() as made:
        yield made


@pytest.fixture
def place(running: ProtectedServer) -> Iterator[ProtectedServer]:
    with lend(running):
        yield running


@pytest.fixture
def admin(database: None) -> Actor:
    return make_admin()


@pytest.fixture
def catalog(database: None, place: ProtectedServer) -> Catalog:
    """Its server wants a sign-in. Nobody has given one."""
    return Catalog.with_server(place)  # type: ignore[arg-type]  # it has what is needed of one


@pytest.fixture
def connected(catalog: Catalog, place: ProtectedServer, admin: Actor) -> Catalog:
    connect(catalog.server, admin)
    return catalog


def token_of(catalog: Catalog) -> str:
    return secrets_of(catalog.server).access_token


def echo(gateway: RunningGateway, catalog: Catalog, **options: Any) -> Answer:
    return gateway.call(catalog.key, "fixture__echo", {"text": "hello"}, **options)


def lease_ids(gateway: RunningGateway) -> list[str]:
    return [lease.id for lease in gateway.leases()]


def sent(place: ProtectedServer) -> list[str]:
    """The tokens that came, each once, in order."""
    return list(dict.fromkeys(place.tokens))


@pytest.mark.parametrize("era", ERAS)
class TestToken:
    def test_goes_with_every_request(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer, era: str
    ) -> None:
        assert echo(gateway, connected, era=era).said == "hello"
        assert gateway.ask(connected.key, "prompts/get", {"name": "fixture__greet"}, era=era).result
        assert sent(place) == [token_of(connected)]

    def test_that_expires_is_renewed_and_the_connection_goes_on(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer, era: str
    ) -> None:
        echo(gateway, connected, era=era)
        before, leases = token_of(connected), lease_ids(gateway)
        let_expire(connected.server)
        assert echo(gateway, connected, era=era).said == "hello"
        assert sent(place) == [before, token_of(connected)]
        assert lease_ids(gateway) == leases
        assert place.signer.rotations == 1

    def test_that_is_refused_is_renewed_and_sent_once_more(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer, era: str
    ) -> None:
        echo(gateway, connected, era=era)
        before, leases = token_of(connected), lease_ids(gateway)
        place.signer.refuse_access_tokens()
        assert echo(gateway, connected, era=era).said == "hello"
        assert sent(place) == [before, token_of(connected)]
        assert lease_ids(gateway) == leases
        assert last_call().outcome == "ok"

    def test_that_is_refused_at_the_greeting_is_renewed_too(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer, era: str
    ) -> None:
        place.signer.refuse_access_tokens()
        assert echo(gateway, connected, era=era).said == "hello"
        assert place.signer.rotations == 1

    def test_that_is_refused_twice_ends_the_grant(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer, era: str
    ) -> None:
        place.find_scopes = lambda token: None
        answer = echo(gateway, connected, era=era)
        assert (answer.is_tool_error, answer.said) == (True, CONNECT_IT)
        assert grant_of(connected.server).state == AuthState.RECONNECT_NEEDED
        assert len(sent(place)) == 2
        assert place.signer.rotations == 1
        place.tokens.clear()
        assert echo(gateway, connected, era=era).said == CONNECT_IT
        assert place.tokens == []


class TestNoToken:
    @pytest.mark.parametrize("era", ERAS)
    def test_is_told_in_plain_words(
        self, gateway: RunningGateway, catalog: Catalog, place: ProtectedServer, era: str
    ) -> None:
        answer = echo(gateway, catalog, era=era)
        assert (answer.is_tool_error, answer.said) == (True, CONNECT_IT)
        assert (last_call().outcome, "connect it" in last_call().error) == ("upstream_failed", True)
        grant = grant_of(catalog.server)
        assert (grant.state, grant.needed_scopes) == (AuthState.SIGN_IN_NEEDED, ["read"])
        assert sent(place) == [""]

    def test_is_told_of_prompts_too(self, gateway: RunningGateway, connected: Catalog) -> None:
        OAuthGrant.objects.update(state=AuthState.RECONNECT_NEEDED)
        answer = gateway.ask(connected.key, "prompts/get", {"name": "fixture__greet"})
        assert "needs a sign-in: an admin has to connect it" in answer.text

    def test_is_told_however_often(self, gateway: RunningGateway, catalog: Catalog) -> None:
        """It is nothing that a server recovers from when it is left alone."""
        assert {echo(gateway, catalog).said for _ in range(8)} == {CONNECT_IT}
        assert not UpstreamState.objects.exclude(breaker="closed").exists()

    def test_is_mended_by_a_sign_in_at_once(
        self, gateway: RunningGateway, catalog: Catalog, admin: Actor
    ) -> None:
        assert echo(gateway, catalog).is_tool_error
        connect(catalog.server, admin)
        assert echo(gateway, catalog).said == "hello"

    def test_follows_a_disconnection_at_once(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer, admin: Actor
    ) -> None:
        assert echo(gateway, connected).said == "hello"
        sign_in.disconnect(server=connected.server, actor=admin)
        place.tokens.clear()
        assert echo(gateway, connected).said == CONNECT_IT
        assert sent(place) == [""]

    def test_of_another_address_is_sent(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer
    ) -> None:
        """Threat 7."""
        OAuthGrant.objects.update(address_sha256="0" * 64)
        assert echo(gateway, connected).said == CONNECT_IT
        assert sent(place) == [""]


class TestEndedGrant:
    def test_is_told_once_and_nobody_is_asked_again(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer
    ) -> None:
        place.signer.end_grants()
        changes, requests = Change.objects.count(), place.signer.count("/token")
        assert {echo(gateway, connected).said for _ in range(3)} == {CONNECT_IT}
        assert Change.objects.count() == changes + 1
        assert place.signer.count("/token") == requests + 1
        connected.server.refresh_from_db()
        assert (connected.server.status, connected.server.next_refresh_at) == ("sign_in_needed", None)

    def test_goes_on_after_a_sign_in_over_a_connection_of_its_own(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer, admin: Actor
    ) -> None:
        """Who signs in may be somebody else at the provider."""
        echo(gateway, connected)
        leases = lease_ids(gateway)
        connect(connected.server, admin)
        assert echo(gateway, connected).said == "hello"
        assert lease_ids(gateway)[-1] not in leases


class TestMoreScopes:
    def test_are_told_in_plain_words_and_what_may_be_done_goes_on(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer, admin: Actor
    ) -> None:
        answer = gateway.call(connected.key, "fixture__count")
        assert answer.said == "The server fixture asks for more rights: an admin has to grant them."
        grant = grant_of(connected.server)
        assert (grant.state, grant.needed_scopes) == (AuthState.SCOPE_NEEDED, ["count"])
        assert "(count)" in last_call().error
        assert echo(gateway, connected).said == "hello"
        assert place.signer.rotations == 0
        assert connect(connected.server, admin).state == AuthState.CONNECTED
        assert not gateway.call(connected.key, "fixture__count").is_tool_error
        assert echo(gateway, connected).said == "hello"


class TestManyAtOnce:
    def test_are_one_renewal(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer
    ) -> None:
        """Threat 8, in one process."""
        place.signer.rules.delay_seconds = (0.1, 0.2)
        echo(gateway, connected)
        let_expire(connected.server)
        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(lambda _: echo(gateway, connected).said, range(12)))
        assert set(answers) == {"hello"}
        assert (place.signer.rotations, place.signer.reuses) == (1, 0)

    def test_that_are_refused_are_one_renewal(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer
    ) -> None:
        place.signer.rules.delay_seconds = (0.1, 0.2)
        echo(gateway, connected)
        place.signer.refuse_access_tokens()
        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(lambda _: echo(gateway, connected).said, range(6)))
        assert set(answers) == {"hello"}
        assert (place.signer.rotations, place.signer.reuses) == (1, 0)


class TestSilentSigner:
    def test_hinders_nobody_while_the_token_is_good(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer
    ) -> None:
        place.signer.answers["/token"] = send_status(503)
        now = timezone.now()
        OAuthGrant.objects.update(
            obtained_at=now - timedelta(hours=1), expires_at=now + timedelta(seconds=30)
        )
        requests = place.signer.count("/token")
        assert {echo(gateway, connected).said for _ in range(3)} == {"hello"}
        assert place.signer.count("/token") == requests + 1

    def test_is_told_where_the_token_is_not(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer
    ) -> None:
        place.signer.answers["/token"] = send_status(503)
        let_expire(connected.server)
        assert echo(gateway, connected).said == "The server fixture could not be reached."
        assert "HTTP status 503" in last_call().error
        assert place.tokens == []

    def test_is_waited_for_no_longer_than_a_call_may_take(
        self, gateway: RunningGateway, connected: Catalog, place: ProtectedServer
    ) -> None:
        connected.change(call_timeout_seconds=1)
        place.signer.rules.delay_seconds = (4.0, 4.0)
        let_expire(connected.server)
        assert "within 1 s" in echo(gateway, connected).said
        assert last_call().outcome == "timeout"


def test_client_that_needs_nobody_to_sign_in_gets_its_token_by_the_call(
    gateway: RunningGateway, catalog: Catalog, place: ProtectedServer, admin: Actor
) -> None:
    place.signer.add_client("own", "client_secret_basic", secret="s3cret", may_ask_for_itself=True)
    kind = AuthKind.CLIENT_CREDENTIALS
    give_client(catalog.server, place, admin, kind=kind, client_secret="s3cret")
    assert echo(gateway, catalog).said == "hello"
    place.signer.refuse_access_tokens()
    assert echo(gateway, catalog).said == "hello"


@pytest.mark.parametrize("era", ERAS)
def test_no_answer_has_a_token(
    gateway: RunningGateway, connected: Catalog, place: ProtectedServer, era: str
) -> None:
    """Threat 9: of a server that tells what it was sent."""
    token, meta = token_of(connected), {"progressToken": "p1"}
    answers = [
        gateway.call(connected.key, "fixture__headers", era=era),
        gateway.call(connected.key, "fixture__progress", {"words": token}, meta=meta, era=era),
        gateway.ask(connected.key, "prompts/get", greet(token), era=era),
    ]
    place.signer.refuse_access_tokens()
    answers.append(gateway.call(connected.key, "fixture__headers", era=era))
    assert place.signer.rotations == 1
    assert "Bearer" in answers[0].text
    assert "notifications/progress" in answers[1].text
    assert "Greet" in answers[2].text
    for answer in answers:
        shown = json.dumps(answer.messages, ensure_ascii=False)
        assert MASK in shown
        assert not [one for one in place.signer.given if one and one in shown]


def greet(name: str) -> dict[str, Any]:
    return {"name": "fixture__greet", "arguments": {"name": name}}


def test_full_record_has_no_token(
    gateway: RunningGateway, connected: Catalog, place: ProtectedServer
) -> None:
    """Threat 9: also of a tool that tells what it was sent."""
    connected.change(record_calls="full")
    gateway.call(connected.key, "fixture__headers", {"text": token_of(connected)})
    place.signer.refuse_access_tokens()
    gateway.call(connected.key, "fixture__headers", {"text": token_of(connected)})
    for call in recorded_calls():
        shown = json.dumps([call.arguments, call.result, call.error])
        assert "authorization" in shown
        assert not [token for token in place.signer.given if token and token in shown]


def test_full_record_has_no_renewed_token(
    gateway: RunningGateway, connected: Catalog, place: ProtectedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threat 9: one that came during the call."""
    renewed = "a plain word for it"
    place.find_scopes = lambda token: frozenset({"read"}) if token == renewed else None
    monkeypatch.setattr(access_tokens, "renew_refused_token", lambda *given: renewed)
    connected.change(record_calls="full")
    assert gateway.call(connected.key, "fixture__echo", {"text": renewed}).said == MASK
    call = last_call()
    assert call.arguments
    assert renewed not in json.dumps([call.arguments, call.result, call.error])
