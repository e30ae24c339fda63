"""Conversations with authorization servers: registering, codes for tokens, renewing, revoking.

The numbers of threats are those of the list that this feature was designed against.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import jwt
import pytest

from catalog.domain.addresses import AddressRules
from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.limits import OAUTH_TOKEN_CHARS
from catalog.domain.oauth import (
    NO_SECRET,
    PRIVATE_KEY,
    SECRET_BASIC,
    SECRET_POST,
    AuthorizationServer,
    Challenge,
    ClientCredentials,
    SignInRequest,
    Tokens,
)
from catalog.upstream import oauth, oauth_http
from catalog.upstream.oauth_http import Network
from tests.harness.bad_answers import (
    redirect_to,
    send_endless,
    send_html,
    send_huge,
    send_json,
    send_never_ending,
    send_nothing,
    send_packed,
    send_status,
)
from tests.harness.clocks import set_clock
from tests.harness.key_pairs import make_key
from tests.harness.sign_in_server import Answer, SignInServer, follow, run_sign_in_server

HERE = "http://127.0.0.1:8000/oauth/callback"
AT_HOME = Network(AddressRules(allow_private=True))
CANARY = "canary-0123456789"
TELLING = {"error_description": f"<script>{CANARY}</script>" + "x" * 100_000, "error_uri": CANARY}
# What a header or a reference could hide in.
HOSTILE = [
    "${HOME}",
    f"{CANARY}${{HOME}}",
    "a\r\nX-Other: b",
    "a\n",
    "tökèn",
    "a\x00",
    "x" * (OAUTH_TOKEN_CHARS + 1),
]


@pytest.fixture
def signer() -> Iterator[SignInServer]:
    with run_sign_in_server("") as running:
        running.resource = f"{running.issuer}/mcp"
        described = {"resource": running.resource, "authorization_servers": [running.issuer]}
        running.answers["/.well-known/oauth-protected-resource/mcp"] = send_json(described)
        yield running


def discover(signer: SignInServer, *scopes: str) -> AuthorizationServer:
    return oauth.discover(signer.resource, Challenge(scopes=scopes or ("read",)), AT_HOME)


def register(signer: SignInServer, **options: Any) -> ClientCredentials:
    return oauth.register(discover(signer), [HERE], AT_HOME, **options)


def go(signer: SignInServer, client: ClientCredentials) -> tuple[SignInRequest, dict[str, str]]:
    """There and back."""
    request = oauth.begin(discover(signer), HERE, ("read",))
    return request, follow(oauth.write_authorization_url(request, client.client_id))


def sign_in(signer: SignInServer, client: ClientCredentials) -> Tokens:
    request, back = go(signer, client)
    oauth.require_issuer(request.server, back.get("iss"))
    return oauth.exchange_code(request, client, back["code"], AT_HOME)


def renew(signer: SignInServer, client: ClientCredentials, token: str) -> Tokens:
    return oauth.renew(discover(signer), client, token, AT_HOME)


def fail(action: Callable[[], object], code: FailureCode) -> str:
    """Its message, in which nothing is that the other side said."""
    with pytest.raises(UpstreamFailure) as failure:
        action()
    assert failure.value.code is code, failure.value.message
    assert CANARY not in failure.value.message
    assert len(failure.value.message) < 300
    return failure.value.message


def make_server(**metadata: Any) -> AuthorizationServer:
    endpoints = {
        "authorization_endpoint": "https://as.test/authorize",
        "token_endpoint": "https://as.test/token",
    }
    return AuthorizationServer("https://as.test", {"issuer": "https://as.test", **endpoints, **metadata})


class TestRegistration:
    def test_introduces_this_console(self, signer: SignInServer) -> None:
        client = register(signer, home="https://tools.test")
        asked = json.loads(signer.seen[-1].body)
        assert asked == {
            "redirect_uris": [HERE],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "application_type": "native",
            "client_name": "toolsearch",
            "client_uri": "https://tools.test",
            "scope": "read offline_access",
        }
        assert (client.method, client.secret, client.secret_expires_at) == (NO_SECRET, "", None)

    def test_is_as_a_web_application_at_a_public_address(self, signer: SignInServer) -> None:
        oauth.register(discover(signer), ["https://tools.test/oauth/callback"], AT_HOME)
        assert b'"application_type":"web"' in signer.seen[-1].body.replace(b" ", b"")

    @pytest.mark.parametrize(
        ("methods", "chosen"),
        [
            (("none", SECRET_BASIC), NO_SECRET),
            ((SECRET_BASIC, SECRET_POST), SECRET_BASIC),
            ((SECRET_POST,), SECRET_POST),
        ],
    )
    def test_is_by_a_method_that_the_server_takes(
        self, signer: SignInServer, methods: tuple[str, ...], chosen: str
    ) -> None:
        signer.rules.methods = methods
        client = register(signer)
        assert client.method == chosen
        assert bool(client.secret) == (chosen != NO_SECRET)
        assert sign_in(signer, client).access_token

    def test_takes_the_method_that_the_server_gives_instead(self, signer: SignInServer) -> None:
        signer.rules.registered_method = SECRET_POST
        client = register(signer)
        assert client.method == SECRET_POST
        assert sign_in(signer, client).access_token

    def test_takes_a_secret_without_a_named_method_as_the_standard_says(self, signer: SignInServer) -> None:
        signer.rules.registered_method = SECRET_BASIC
        signer.rules.registration = {"token_endpoint_auth_method": None}
        client = register(signer)
        assert client.method == SECRET_BASIC
        assert sign_in(signer, client).access_token

    def test_leaves_a_secret_that_the_client_does_not_need(self, signer: SignInServer) -> None:
        signer.rules.registration = {"client_secret": CANARY}
        assert register(signer).secret == ""

    def test_tells_when_the_secret_ends(self, signer: SignInServer) -> None:
        signer.rules.methods = (SECRET_BASIC,)
        for told, read in (
            (0, None),
            (1_900_000_000, datetime.fromtimestamp(1_900_000_000, UTC)),
            (10**30, None),
        ):
            signer.rules.registration = {"client_secret_expires_at": told}
            assert register(signer).secret_expires_at == read

    @pytest.mark.parametrize(
        "answer",
        [
            {"token_endpoint_auth_method": "private_key_jwt"},
            {"token_endpoint_auth_method": "tls_client_auth"},
            {"token_endpoint_auth_method": "client_secret_basic"},  # without a secret
            {"client_id": None},
            {"client_id": 7},
        ],
    )
    def test_that_cannot_be_used_is_told(self, signer: SignInServer, answer: Mapping[str, Any]) -> None:
        signer.rules.registration = answer
        message = fail(lambda: register(signer), FailureCode.SIGN_IN_UNUSABLE)
        assert "give a client id of your own" in message

    @pytest.mark.parametrize("value", HOSTILE)
    def test_with_a_hostile_id_or_secret_is_refused(self, signer: SignInServer, value: str) -> None:
        """Threat 14."""
        signer.rules.registration = {"client_id": value}
        fail(lambda: register(signer), FailureCode.SIGN_IN_UNUSABLE)
        signer.rules.methods = (SECRET_BASIC,)
        signer.rules.registration = {"client_secret": value}
        fail(lambda: register(signer), FailureCode.SIGN_IN_UNUSABLE)

    @pytest.mark.parametrize("status", [400, 401, 403, 404])
    def test_that_is_refused_is_told_without_the_servers_words(
        self, signer: SignInServer, status: int
    ) -> None:
        """Threat 11."""
        signer.answers["/register"] = send_json({"error": "invalid_redirect_uri", **TELLING}, status)
        fail(lambda: register(signer), FailureCode.SIGN_IN_UNUSABLE)

    def test_is_without_the_document_where_the_server_takes_none(self, signer: SignInServer) -> None:
        assert oauth.use_document(discover(signer), "https://tools.test/oauth/client.json") is None

    def test_may_be_by_a_document_of_ones_own(self, signer: SignInServer) -> None:
        address = "https://tools.test/oauth/client.json"
        signer.rules.documents = {address: (HERE,)}
        client = oauth.use_document(discover(signer), address)
        assert client is not None
        assert (client.client_id, client.method) == (address, NO_SECRET)
        assert sign_in(signer, client).access_token
        assert signer.count("/register") == 0

    def test_is_not_by_a_document_where_every_client_needs_a_secret(self, signer: SignInServer) -> None:
        address = "https://tools.test/oauth/client.json"
        signer.rules.documents, signer.rules.methods = {address: (HERE,)}, (SECRET_BASIC,)
        assert oauth.use_document(discover(signer), address) is None

    @pytest.mark.parametrize("address", ["", "http://tools.test/oauth/client.json", "https://tools.test"])
    def test_is_not_by_a_document_that_nobody_can_read(self, signer: SignInServer, address: str) -> None:
        signer.rules.documents = {address: (HERE,)}
        assert oauth.use_document(discover(signer), address) is None


class TestWayThere:
    def test_asks_for_a_code_with_pkce_for_the_server(self, signer: SignInServer) -> None:
        request = oauth.begin(discover(signer), HERE, ("read", "count"))
        url = oauth.write_authorization_url(request, "an id")
        asked = dict(parse_qsl(urlsplit(url).query))
        assert asked.pop("code_challenge") != request.verifier
        assert asked == {
            "response_type": "code",
            "client_id": "an id",
            "redirect_uri": HERE,
            "state": request.state,
            "code_challenge_method": "S256",
            "resource": signer.resource,
            "scope": "read count",
        }
        assert request.verifier not in url

    def test_every_one_has_a_state_and_a_verifier_of_its_own(self, signer: SignInServer) -> None:
        found = discover(signer)
        begun = [oauth.begin(found, HERE, ()) for _ in range(5)]
        assert len({one.state for one in begun} | {one.verifier for one in begun}) == 10
        assert all(len(one.state) >= 43 for one in begun)

    def test_keeps_what_the_address_has_and_lets_it_change_nothing(self) -> None:
        at = "https://as.test/authorize?tenant=a%20b&state=theirs&scope=admin&code_challenge_method=plain&empty="
        request = oauth.begin(make_server(authorization_endpoint=at), HERE, ())
        asked = parse_qs(urlsplit(oauth.write_authorization_url(request, "id")).query, keep_blank_values=True)
        assert (asked["tenant"], asked["empty"], asked["state"]) == (["a b"], [""], [request.state])
        assert asked["code_challenge_method"] == ["S256"]

    def test_names_no_resource_for_a_server_that_describes_none(self) -> None:
        request = oauth.begin(make_server(), HERE, ())
        asked = dict(parse_qsl(urlsplit(oauth.write_authorization_url(request, "id")).query))
        assert not asked.keys() & {"resource", "scope", "prompt"}

    def test_asks_for_consent_where_it_asks_for_renewal(self) -> None:
        request = oauth.begin(make_server(), HERE, ("read", "offline_access"))
        asked = dict(parse_qsl(urlsplit(oauth.write_authorization_url(request, "id")).query))
        assert asked["prompt"] == "consent"


class TestWayBack:
    """Threat 3: an answer of one provider is not taken to another."""

    @pytest.mark.parametrize("told", [None, "https://evil.test", "https://as.test/", "HTTPS://AS.TEST", ""])
    def test_from_a_server_that_names_itself_has_to_name_it(self, told: str | None) -> None:
        server = make_server(authorization_response_iss_parameter_supported=True)
        message = fail(lambda: oauth.require_issuer(server, told), FailureCode.SIGN_IN_UNUSABLE)
        assert "does not come from the sign-in server at as.test" in message

    def test_from_a_server_that_does_not_may_name_it_and_no_other(self) -> None:
        server = make_server()
        oauth.require_issuer(server, None)
        oauth.require_issuer(server, "https://as.test")
        fail(lambda: oauth.require_issuer(server, "https://evil.test"), FailureCode.SIGN_IN_UNUSABLE)


class TestTokens:
    def test_come_for_a_code_and_its_verifier(self, signer: SignInServer) -> None:
        client = register(signer)
        tokens = sign_in(signer, client)
        assert signer.find_scopes(tokens.access_token) == frozenset({"read"})
        assert tokens.refresh_token
        assert (tokens.expires_in_seconds, tokens.scopes) == (3600, ("read",))
        form = signer.forms("/token")[-1]
        assert form.keys() == {"grant_type", "code", "redirect_uri", "code_verifier", "client_id", "resource"}

    def test_are_asked_for_as_json(self, signer: SignInServer) -> None:
        """GitHub answers with a form to whoever does not ask for JSON."""
        sign_in(signer, register(signer))
        assert signer.seen[-1].headers["accept"] == "application/json"

    def test_do_not_come_twice_for_a_code(self, signer: SignInServer) -> None:
        client = register(signer)
        request, back = go(signer, client)
        oauth.exchange_code(request, client, back["code"], AT_HOME)
        fail(
            lambda: oauth.exchange_code(request, client, back["code"], AT_HOME), FailureCode.RECONNECT_NEEDED
        )

    def test_do_not_come_for_the_code_of_another_sign_in(self, signer: SignInServer) -> None:
        """Threat 5: a code that was slipped in has another verifier."""
        client = register(signer)
        _, stolen = go(signer, client)
        request, _ = go(signer, client)
        fail(
            lambda: oauth.exchange_code(request, client, stolen["code"], AT_HOME),
            FailureCode.RECONNECT_NEEDED,
        )

    def test_are_renewed_by_a_refresh_token_once(self, signer: SignInServer) -> None:
        client = register(signer)
        tokens = sign_in(signer, client)
        renewed = renew(signer, client, tokens.refresh_token)
        assert renewed.access_token != tokens.access_token
        assert renewed.refresh_token not in ("", tokens.refresh_token)
        assert signer.forms("/token")[-1]["resource"] == signer.resource
        message = fail(lambda: renew(signer, client, tokens.refresh_token), FailureCode.RECONNECT_NEEDED)
        assert f"{signer.host} ended this connection" in message
        assert signer.reuses == 1

    def test_without_a_new_refresh_token_leave_the_old_one_good(self, signer: SignInServer) -> None:
        signer.rules.rotates = False
        client = register(signer)
        tokens = sign_in(signer, client)
        assert renew(signer, client, tokens.refresh_token).refresh_token == ""
        assert renew(signer, client, tokens.refresh_token).access_token

    def test_may_name_neither_scopes_nor_an_end(self, signer: SignInServer) -> None:
        signer.rules.names_scopes, signer.rules.lives = False, (None,)
        tokens = sign_in(signer, register(signer))
        assert (tokens.scopes, tokens.expires_in_seconds) == (None, None)

    @pytest.mark.parametrize(
        ("told", "read"),
        [("3600", 3600), (0, 0), (-5, 0), (3600.0, 3600), (10**40, 10 * 365 * 86_400), (None, None)],
    )
    def test_end_when_they_say_within_reason(
        self, signer: SignInServer, told: object, read: int | None
    ) -> None:
        signer.rules.tokens = {"expires_in": told}
        assert sign_in(signer, register(signer)).expires_in_seconds == read

    @pytest.mark.parametrize("value", HOSTILE)
    @pytest.mark.parametrize("name", ["access_token", "refresh_token"])
    def test_that_are_hostile_are_not_kept(self, signer: SignInServer, name: str, value: str) -> None:
        """Threat 14: a reference would be filled in from this machine's variables, and sent out."""
        signer.rules.tokens = {name: value}
        message = fail(lambda: sign_in(signer, register(signer)), FailureCode.SIGN_IN_UNUSABLE)
        assert "not kept" in message

    @pytest.mark.parametrize("scope", ["${HOME}", "é", 'x"y', "x" * 400])
    def test_with_hostile_scopes_are_not_kept(self, signer: SignInServer, scope: str) -> None:
        """Threats 11 and 14."""
        signer.rules.tokens = {"scope": f"read {scope}"}
        fail(lambda: sign_in(signer, register(signer)), FailureCode.SIGN_IN_UNUSABLE)

    @pytest.mark.parametrize(
        "tokens", [{"access_token": None}, {"access_token": 7}, {"token_type": "mac"}, {"expires_in": "soon"}]
    )
    def test_that_are_none_are_not_taken(self, signer: SignInServer, tokens: Mapping[str, Any]) -> None:
        signer.rules.tokens = tokens
        message = fail(lambda: sign_in(signer, register(signer)), FailureCode.SIGN_IN_SERVER_DOWN)
        assert "its answer is no token" in message


class TestErrors:
    """What a token endpoint says, in our words. Threat 11: of its own none is shown."""

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            ("invalid_grant", FailureCode.RECONNECT_NEEDED),
            ("bad_refresh_token", FailureCode.RECONNECT_NEEDED),
            ("bad_verification_code", FailureCode.RECONNECT_NEEDED),
            ("invalid_client", FailureCode.CLIENT_REFUSED),
            ("unauthorized_client", FailureCode.CLIENT_REFUSED),
            ("incorrect_client_credentials", FailureCode.CLIENT_REFUSED),
            ("invalid_scope", FailureCode.SCOPE_NEEDED),
            ("temporarily_unavailable", FailureCode.SIGN_IN_SERVER_DOWN),
            ("server_error", FailureCode.SIGN_IN_SERVER_DOWN),
            ("invalid_target", FailureCode.SIGN_IN_UNUSABLE),
            (f"{CANARY}<b>", FailureCode.SIGN_IN_UNUSABLE),
        ],
    )
    @pytest.mark.parametrize("status", [200, 400, 401, 500])
    def test_are_told_apart_whatever_the_status(
        self, signer: SignInServer, error: str, code: FailureCode, status: int
    ) -> None:
        """GitHub's status is 200."""
        signer.answers["/token"] = send_json({"error": error, **TELLING}, status)
        if status == 500 and code is FailureCode.SIGN_IN_UNUSABLE:
            code = FailureCode.SIGN_IN_SERVER_DOWN
        fail(lambda: renew(signer, ClientCredentials("id"), "refresh"), code)

    @pytest.mark.parametrize("status", [429, 500, 502, 503])
    def test_of_a_server_that_fails_is_tried_again_later_whatever_it_calls_that(
        self, signer: SignInServer, status: int
    ) -> None:
        signer.answers["/token"] = send_json({"error": "Too Many Requests", **TELLING}, status)
        renewal = lambda: renew(signer, ClientCredentials("id"), "refresh")  # noqa: E731
        assert f"HTTP status {status}" in fail(renewal, FailureCode.SIGN_IN_SERVER_DOWN)

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (send_html, "its answer is no token"),
            (send_json(["no"]), "its answer is no token"),
            (send_json({"error": 7}), "its answer is no token"),
            (send_status(500), "HTTP status 500"),
            (send_status(429), "HTTP status 429"),
            (send_status(404), "HTTP status 404"),
            (redirect_to("http://127.0.0.1:9/"), "HTTP status 307"),
        ],
    )
    def test_what_is_no_answer_is_tried_again_later(
        self, signer: SignInServer, answer: Answer, words: str
    ) -> None:
        signer.answers["/token"] = answer
        message = fail(
            lambda: renew(signer, ClientCredentials("id"), "refresh"), FailureCode.SIGN_IN_SERVER_DOWN
        )
        assert words in message

    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            (send_huge, FailureCode.SIGN_IN_UNUSABLE),
            (send_endless, FailureCode.SIGN_IN_UNUSABLE),
            (send_packed, FailureCode.SIGN_IN_UNUSABLE),
            (send_never_ending, FailureCode.SIGN_IN_SERVER_DOWN),
            (send_nothing, FailureCode.SIGN_IN_SERVER_DOWN),
        ],
    )
    def test_what_does_not_end_is_given_up(
        self, signer: SignInServer, monkeypatch: pytest.MonkeyPatch, answer: Answer, code: FailureCode
    ) -> None:
        """Threat 10."""
        monkeypatch.setattr(oauth, "TOKEN_SECONDS", 0.6)
        monkeypatch.setattr(oauth_http, "REQUEST_SECONDS", 0.3)
        signer.answers["/token"] = signer.answers["/register"] = answer
        fail(lambda: renew(signer, ClientCredentials("id"), "refresh"), code)
        fail(lambda: register(signer), code)

    def test_several_conversations_may_have_one_deadline(
        self, signer: SignInServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each one alone would be in time."""
        now = [100.0]
        set_clock(monkeypatch, oauth_http, monotonic=lambda: now[0])
        network, found = AT_HOME.within(15), discover(signer)
        now[0] += 14
        assert oauth.register(found, [HERE], network).client_id
        now[0] += 1
        message = fail(lambda: oauth.register(found, [HERE], network), FailureCode.SIGN_IN_SERVER_DOWN)
        assert "did not answer in time" in message
        assert signer.count("/register") == 1

    def test_that_has_begun_ends_with_the_deadline_of_all(
        self, signer: SignInServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(oauth_http, "REQUEST_SECONDS", 60.0)
        found = discover(signer)
        signer.answers["/register"] = send_nothing
        message = fail(
            lambda: oauth.register(found, [HERE], AT_HOME.within(0.3)), FailureCode.SIGN_IN_SERVER_DOWN
        )
        assert "did not answer in time" in message

    def test_server_that_is_gone_is_down(self, signer: SignInServer) -> None:
        found = discover(signer)
        signer.stop()
        message = fail(
            lambda: oauth.renew(found, ClientCredentials("id"), "r", AT_HOME), FailureCode.SIGN_IN_SERVER_DOWN
        )
        assert message.startswith(f"The sign-in server at {signer.host} cannot be used now:")


class TestProof:
    """How a client shows who it is."""

    ODD = "a secret: with % + / & ~ 'quotes'"

    @pytest.mark.parametrize("method", [SECRET_BASIC, SECRET_POST])
    def test_by_a_secret(self, signer: SignInServer, method: str) -> None:
        signer.rules.methods = (method,)
        signer.add_client("id of:one", method, secret=self.ODD, redirect_uris=(HERE,))
        client = ClientCredentials("id of:one", self.ODD, oauth.choose_method(discover(signer), self.ODD))
        tokens = sign_in(signer, client)
        assert renew(signer, client, tokens.refresh_token).access_token
        in_body = "client_secret" in signer.forms("/token")[-1]
        in_header = "authorization" in signer.seen[-1].headers
        assert (in_body, in_header) == (method == SECRET_POST, method == SECRET_BASIC)

    def test_by_a_wrong_secret_is_refused(self, signer: SignInServer) -> None:
        signer.add_client("id", SECRET_BASIC, secret="right", redirect_uris=(HERE,))
        client = ClientCredentials("id", "wrong", SECRET_BASIC)
        fail(lambda: renew(signer, client, "r"), FailureCode.CLIENT_REFUSED)

    @pytest.mark.parametrize(
        ("secret", "listed", "method"),
        [
            ("", None, NO_SECRET),
            ("s", None, SECRET_BASIC),
            ("s", [SECRET_POST, NO_SECRET], SECRET_POST),
            ("s", [SECRET_BASIC, SECRET_POST], SECRET_BASIC),
            ("s", [], SECRET_BASIC),
            ("-----BEGIN PRIVATE KEY-----", None, PRIVATE_KEY),
        ],
    )
    def test_is_by_what_was_given_and_what_the_server_takes(
        self, secret: str, listed: list[str] | None, method: str
    ) -> None:
        server = make_server(**({} if listed is None else {"token_endpoint_auth_methods_supported": listed}))
        assert oauth.choose_method(server, secret) == method

    @pytest.mark.parametrize("kind", ["rsa", "ec"])
    def test_by_a_private_key_is_for_the_issuer_alone_and_short(
        self, signer: SignInServer, kind: str
    ) -> None:
        private, public = make_key(kind)
        signer.add_client("machine", PRIVATE_KEY, public_key=public, may_ask_for_itself=True)
        client = ClientCredentials("machine", private, PRIVATE_KEY)
        tokens = oauth.request_own_token(discover(signer), client, ("read",), AT_HOME)
        assert signer.find_scopes(tokens.access_token) == frozenset({"read"})
        form = signer.forms("/token")[-1]
        claims = jwt.decode(form["client_assertion"], options={"verify_signature": False})
        assert (claims["aud"], claims["iss"], claims["sub"]) == (signer.issuer, "machine", "machine")
        assert claims["exp"] - time.time() <= 60
        assert (
            jwt.get_unverified_header(form["client_assertion"])["alg"]
            == {"rsa": "RS256", "ec": "ES256"}[kind]
        )
        assert "client_secret" not in form
        oauth.request_own_token(discover(signer), client, (), AT_HOME)  # with an id of its own

    @pytest.mark.parametrize("kind", ["ed25519", "nonsense"])
    def test_by_a_key_that_cannot_be_used_is_told(self, signer: SignInServer, kind: str) -> None:
        private = make_key(kind)[0]
        client = ClientCredentials("machine", private, PRIVATE_KEY)
        message = fail(
            lambda: oauth.request_own_token(discover(signer), client, (), AT_HOME), FailureCode.CLIENT_REFUSED
        )
        assert "private key cannot be used" in message
        assert signer.count("/token") == 0

    def test_by_a_secret_without_a_person(self, signer: SignInServer) -> None:
        signer.add_client("machine", SECRET_BASIC, secret="s", may_ask_for_itself=True)
        client = ClientCredentials("machine", "s", SECRET_BASIC)
        tokens = oauth.request_own_token(discover(signer), client, ("read", "count"), AT_HOME)
        assert signer.find_scopes(tokens.access_token) == frozenset({"read", "count"})
        assert tokens.refresh_token == ""
        form = signer.forms("/token")[-1]
        assert (form["scope"], form["resource"]) == ("read count", signer.resource)


class TestRevocation:
    def test_ends_the_grant(self, signer: SignInServer) -> None:
        client = register(signer)
        tokens = sign_in(signer, client)
        found = discover(signer)
        assert oauth.revoke(found, client, tokens.refresh_token, is_refresh=True, network=AT_HOME)
        assert signer.forms("/revoke")[-1]["token_type_hint"] == "refresh_token"
        assert signer.find_scopes(tokens.access_token) is None

    def test_is_not_tried_where_the_server_takes_none(self, signer: SignInServer) -> None:
        signer.rules.metadata = {"revocation_endpoint": None}
        found = discover(signer)
        assert not oauth.revoke(found, ClientCredentials("id"), "t", is_refresh=False, network=AT_HOME)

    @pytest.mark.parametrize("answer", [send_status(503), send_nothing, send_never_ending, send_huge])
    def test_that_fails_is_told_and_stops_nobody(
        self, signer: SignInServer, monkeypatch: pytest.MonkeyPatch, answer: Answer
    ) -> None:
        """Threat 10."""
        monkeypatch.setattr(oauth, "REVOKE_SECONDS", 0.3)
        signer.answers["/revoke"] = answer
        found = discover(signer)
        assert not oauth.revoke(found, ClientCredentials("id"), "t", is_refresh=True, network=AT_HOME)

    def test_by_a_key_that_cannot_be_used_fails_too(self, signer: SignInServer) -> None:
        client = ClientCredentials("id", make_key("nonsense")[0], PRIVATE_KEY)
        assert not oauth.revoke(discover(signer), client, "t", is_refresh=True, network=AT_HOME)
