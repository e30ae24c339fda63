"""Who signs people in for a server is read from documents by strangers, none of which is believed.

The numbers of threats are those of the list that this feature was designed against.
"""

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from catalog.domain.addresses import AddressRules
from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.limits import OAUTH_BYTES
from catalog.domain.oauth import AuthorizationServer, Challenge, ClientCredentials
from catalog.upstream import oauth, oauth_http
from catalog.upstream.oauth_http import Network
from tests.catalog.upstream.internet import LINK_LOCAL, PRIVATE, PUBLIC, Internet, put_behind_the_guard
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
from tests.harness.sign_in_server import METADATA, Answer, SignInServer, run_sign_in_server

SERVER = "https://mcp.test/mcp"
SERVER_DOCUMENT = "https://mcp.test/.well-known/oauth-protected-resource/mcp"
ISSUER = "https://as.test"
ISSUER_DOCUMENT = f"{ISSUER}{METADATA}"
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint")
HERE = "https://here.test/oauth/callback"
NOT_ASKED = Challenge()
AT_HOME = Network(AddressRules(allow_private=True))


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    """A server and its authorization server, at public addresses."""
    made = put_behind_the_guard(monkeypatch)
    made.show(SERVER_DOCUMENT, describe_server())
    made.show(ISSUER_DOCUMENT, describe_issuer())
    return made


@pytest.fixture
def signer() -> Iterator[SignInServer]:
    """A real one, on this machine, that describes the server too."""
    with run_sign_in_server("") as running:
        running.resource = f"{running.issuer}/mcp"
        described = {"resource": running.resource, "authorization_servers": [running.issuer]}
        running.answers["/.well-known/oauth-protected-resource/mcp"] = send_json(described)
        yield running


def describe_server(**values: Any) -> dict[str, Any]:
    described = {"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["read"]}
    return {name: value for name, value in {**described, **values}.items() if value is not None}


def describe_issuer(**values: Any) -> dict[str, Any]:
    described = {
        "issuer": ISSUER,
        **{name: f"{ISSUER}/{name.removesuffix('_endpoint')}" for name in ENDPOINTS},
        "code_challenge_methods_supported": ["S256"],
    }
    return {name: value for name, value in {**described, **values}.items() if value is not None}


def discover(internet: Internet, challenge: Challenge = NOT_ASKED, **options: Any) -> AuthorizationServer:
    return oauth.discover(SERVER, challenge, internet.network, **options)


def fail(action: Callable[[], object], code: FailureCode = FailureCode.SIGN_IN_UNUSABLE) -> str:
    with pytest.raises(UpstreamFailure) as failure:
        action()
    assert failure.value.code is code, failure.value.message
    return failure.value.message


class TestDescriptionOfTheServer:
    def test_leads_to_its_authorization_server(self, internet: Internet) -> None:
        found = discover(internet)
        assert (found.issuer, found.resource, found.scopes) == (ISSUER, SERVER, ("read",))
        assert found.metadata["token_endpoint"] == f"{ISSUER}/token"
        assert internet.urls == [SERVER_DOCUMENT, ISSUER_DOCUMENT]

    def test_is_looked_for_first_where_the_challenge_says(self, internet: Internet) -> None:
        elsewhere = "https://docs.test/resource"
        internet.show(elsewhere, describe_server(scopes_supported=["elsewhere"]))
        assert discover(internet, Challenge(elsewhere)).scopes == ("elsewhere",)
        assert internet.urls[0] == elsewhere

    def test_may_be_at_the_root(self, internet: Internet) -> None:
        internet.pages["https://mcp.test/.well-known/oauth-protected-resource"] = internet.pages.pop(
            SERVER_DOCUMENT
        )
        assert discover(internet, Challenge("https://docs.test/none")).resource == SERVER

    @pytest.mark.parametrize(
        "resource", ["https://mcp.test/", "https://mcp.test/mcp/", "https://MCP.test/mcp"]
    )
    def test_may_be_of_what_the_server_is_part_of(self, internet: Internet, resource: str) -> None:
        internet.show(SERVER_DOCUMENT, describe_server(resource=resource))
        assert discover(internet).resource.lower() == resource.lower()

    @pytest.mark.parametrize(
        "resource",
        [
            "https://other.test/mcp",
            "http://mcp.test/mcp",
            "https://mcp.test:8443/mcp",
            "https://mcp.test/other",
            "https://mcp.test/m",
        ],
    )
    def test_of_another_server_is_refused(self, internet: Internet, resource: str) -> None:
        """Threat 7: else tokens for one server would be asked for in the name of another."""
        internet.show(SERVER_DOCUMENT, describe_server(resource=resource))
        assert "is of another server" in fail(lambda: discover(internet))
        assert ISSUER_DOCUMENT not in internet.urls

    @pytest.mark.parametrize("status", [500, 503, 429])
    def test_that_fails_for_now_is_not_taken_for_none(self, internet: Internet, status: int) -> None:
        internet.show(SERVER_DOCUMENT, {}, status)
        message = fail(lambda: discover(internet), FailureCode.SIGN_IN_SERVER_DOWN)
        assert f"HTTP status {status}" in message
        assert internet.urls == [SERVER_DOCUMENT]

    @pytest.mark.parametrize(
        "told", [{}, {"resource": SERVER}, {"resource": SERVER, "authorization_servers": []}]
    )
    def test_that_is_unsound_is_not_taken_for_none(self, internet: Internet, told: dict[str, Any]) -> None:
        """Endpoints are made up only where nothing is described."""
        internet.show(SERVER_DOCUMENT, told)
        internet.show(f"https://mcp.test{METADATA}", describe_issuer(issuer="https://mcp.test"))
        assert "is not sound" in fail(lambda: discover(internet))

    def test_that_there_is_none_of_makes_the_server_its_own_signer(self, internet: Internet) -> None:
        """A server of the 2025-03-26 revision: it has no resource, and its endpoints have fixed places."""
        internet.pages.clear()
        found = discover(internet, Challenge(scopes=("read",)))
        assert (found.issuer, found.resource, found.scopes) == ("https://mcp.test", "", ("read",))
        assert found.metadata["token_endpoint"] == "https://mcp.test/token"
        assert found.can_register

    def test_that_there_is_none_of_leaves_metadata_at_the_server(self, internet: Internet) -> None:
        internet.pages.clear()
        own = describe_issuer(issuer="https://mcp.test/", token_endpoint="https://mcp.test/special")
        internet.show(f"https://mcp.test{METADATA}", own)
        found = discover(internet)
        assert (found.metadata["token_endpoint"], found.resource) == ("https://mcp.test/special", "")


class TestScopes:
    def test_of_the_challenge_go_before_those_of_the_documents(self, internet: Internet) -> None:
        assert discover(internet, Challenge(scopes=("write",))).scopes == ("write",)

    def test_are_the_issuers_where_nobody_else_names_any(self, internet: Internet) -> None:
        internet.show(SERVER_DOCUMENT, describe_server(scopes_supported=None))
        internet.show(ISSUER_DOCUMENT, describe_issuer(scopes_supported=["a", "b"]))
        assert discover(internet).scopes == ("a", "b")

    def test_ask_for_renewal_where_the_issuer_names_that(self, internet: Internet) -> None:
        internet.show(ISSUER_DOCUMENT, describe_issuer(scopes_supported=["offline_access"]))
        assert discover(internet).scopes == ("read", "offline_access")

    def test_that_are_unsound_are_not_asked_for(self, internet: Internet) -> None:
        """Threats 11 and 14."""
        hostile = ["read", "${HOME}", "a\r\nb", "é", 'x"y', *(f"s{number}" for number in range(500))]
        internet.show(SERVER_DOCUMENT, describe_server(scopes_supported=hostile))
        found = discover(internet).scopes
        assert found[:3] == ("read", "a", "b")
        assert len(found) == 50


class TestIssuer:
    @pytest.mark.parametrize(
        "told", ["https://evil.test", f"{ISSUER}/", "http://as.test", f"{ISSUER}:8443", f"{ISSUER}/tenant"]
    )
    def test_that_says_it_is_another_is_refused(self, internet: Internet, told: str) -> None:
        """Threat 4: as strings, to the slash."""
        internet.show(ISSUER_DOCUMENT, describe_issuer(issuer=told))
        assert "says that it is another issuer" in fail(lambda: discover(internet))

    def test_is_the_first_that_the_server_names(self, internet: Internet) -> None:
        both = ["https://as.test", "https://other.test"]
        internet.show(SERVER_DOCUMENT, describe_server(authorization_servers=both))
        assert discover(internet).issuer == ISSUER

    def test_that_an_admin_names_is_chosen_among_them(self, internet: Internet) -> None:
        both = ["https://other.test", ISSUER]
        internet.show(SERVER_DOCUMENT, describe_server(authorization_servers=both))
        assert discover(internet, issuer=ISSUER).issuer == ISSUER

    def test_that_an_admin_names_may_end_in_a_slash(self, internet: Internet) -> None:
        assert discover(internet, issuer=f"{ISSUER}/").issuer == ISSUER

    def test_that_an_admin_names_and_the_server_does_not_is_refused(self, internet: Internet) -> None:
        """Threat 6: a server that moves to another issuer gets no secret of the former one's client."""
        message = fail(lambda: discover(internet, issuer="https://other.test"))
        assert "does not name the issuer https://other.test" in message
        assert internet.urls == [SERVER_DOCUMENT]

    @pytest.mark.parametrize("issuer", [ISSUER, f"{ISSUER}/"])
    def test_that_an_admin_names_is_asked_also_where_the_server_describes_nothing(
        self, internet: Internet, issuer: str
    ) -> None:
        del internet.pages[SERVER_DOCUMENT]
        found = discover(internet, issuer=issuer)
        assert (found.issuer, found.resource) == (ISSUER, "")

    def test_with_a_path_is_found_in_all_three_places(self, internet: Internet) -> None:
        tenant = f"{ISSUER}/tenant"
        internet.show(SERVER_DOCUMENT, describe_server(authorization_servers=[tenant]))
        internet.show(f"{tenant}/.well-known/openid-configuration", describe_issuer(issuer=tenant))
        assert discover(internet).issuer == tenant
        assert internet.urls[1:] == [
            f"{ISSUER}{METADATA}/tenant",
            f"{ISSUER}/.well-known/openid-configuration/tenant",
            f"{tenant}/.well-known/openid-configuration",
        ]

    def test_without_a_description_is_refused_and_no_endpoint_is_made_up(self, internet: Internet) -> None:
        del internet.pages[ISSUER_DOCUMENT]
        assert "has no description of itself" in fail(lambda: discover(internet))
        assert not {f"{ISSUER}/token", f"{ISSUER}/register"} & set(internet.urls)

    def test_with_an_unsound_description_is_told_so(self, internet: Internet) -> None:
        internet.show(ISSUER_DOCUMENT, {"issuer": ISSUER})
        assert "is not sound" in fail(lambda: discover(internet))

    @pytest.mark.parametrize("issuer", [f"{ISSUER}/{'x' * 3_000}", "https://user:pw@as.test"])
    def test_with_an_address_that_cannot_be_is_refused_in_few_words(
        self, internet: Internet, issuer: str
    ) -> None:
        """Threat 11: a document may hold 256 KB, a message and a column of the database cannot."""
        internet.show(SERVER_DOCUMENT, describe_server(authorization_servers=[issuer]))
        message = fail(lambda: discover(internet))
        assert "names a sign-in server that cannot be" in message
        assert internet.urls == [SERVER_DOCUMENT]

    @pytest.mark.parametrize("field", ["resource", "authorization_servers"])
    def test_names_of_others_are_cut_in_messages(self, internet: Internet, field: str) -> None:
        """Threat 11."""
        long = f"https://{'x' * 100_000}.test/"
        value = long if field == "resource" else [long, f"{ISSUER}/{'y' * 1_500}", f"{ISSUER}/{'z' * 1_500}"]
        internet.show(SERVER_DOCUMENT, describe_server(**{field: value}))
        assert len(fail(lambda: discover(internet, issuer="https://other.test"))) < 1_000

    def test_that_fails_for_now_is_down(self, internet: Internet) -> None:
        internet.show(ISSUER_DOCUMENT, {}, 502)
        fail(lambda: discover(internet), FailureCode.SIGN_IN_SERVER_DOWN)

    def test_is_remembered_by_what_is_needed_alone(self, internet: Internet) -> None:
        """Threat 11: the rest may be anything, of any size."""
        more = {"op_policy_uri": "https://as.test/policy", "unknown": "x" * 50_000}
        internet.show(ISSUER_DOCUMENT, describe_issuer(**more))
        assert not more.keys() & discover(internet).metadata.keys()


class TestPkce:
    @pytest.mark.parametrize("methods", [["plain"], []])
    @pytest.mark.parametrize("may_be_unlisted", [False, True])
    def test_that_is_not_taken_is_refused(
        self, internet: Internet, methods: list[str], may_be_unlisted: bool
    ) -> None:
        internet.show(ISSUER_DOCUMENT, describe_issuer(code_challenge_methods_supported=methods))
        message = fail(lambda: discover(internet, pkce_unlisted=may_be_unlisted))
        assert "does not take PKCE with S256" in message

    def test_that_is_not_listed_is_refused_unless_an_admin_allows_it(self, internet: Internet) -> None:
        internet.show(ISSUER_DOCUMENT, describe_issuer(code_challenge_methods_supported=None))
        assert "does not say that it takes PKCE" in fail(lambda: discover(internet))
        assert discover(internet, pkce_unlisted=True).issuer == ISSUER


class TestPlainHttp:
    """Threat 2: the address guard alone would let it pass."""

    def test_issuer_is_refused_and_never_asked(self, internet: Internet) -> None:
        internet.show(SERVER_DOCUMENT, describe_server(authorization_servers=["http://as.test"]))
        internet.show(f"http://as.test{METADATA}", describe_issuer(issuer="http://as.test"))
        assert "as.test is not at https" in fail(lambda: discover(internet))
        assert internet.urls == [SERVER_DOCUMENT]

    def test_description_of_the_server_is_refused(self, internet: Internet) -> None:
        fail(lambda: discover(internet, Challenge("http://mcp.test/resource")))
        assert internet.urls == []

    @pytest.mark.parametrize("name", ENDPOINTS)
    def test_endpoint_is_refused(self, internet: Internet, name: str) -> None:
        internet.show(ISSUER_DOCUMENT, describe_issuer(**{name: "http://as.test/x"}))
        assert "is not at https" in fail(lambda: discover(internet))

    def test_endpoint_is_asked_nothing_though_it_was_let_in(self, internet: Internet) -> None:
        signer = AuthorizationServer(ISSUER, describe_issuer(token_endpoint="http://as.test/token"))
        fail(lambda: oauth.renew(signer, ClientCredentials("id"), "refresh", internet.network))
        assert internet.urls == []

    def test_is_allowed_on_this_machine_and_on_a_private_network(
        self, internet: Internet, signer: SignInServer
    ) -> None:
        internet.names["inside.test"] = PRIVATE
        internet.show(SERVER_DOCUMENT, describe_server(authorization_servers=["http://inside.test"]))
        inside = {
            name: value.replace(ISSUER, "http://inside.test")
            for name, value in describe_issuer().items()
            if isinstance(value, str)
        }
        internet.show(
            f"http://inside.test{METADATA}", {**inside, "code_challenge_methods_supported": ["S256"]}
        )
        network = Network(AddressRules(allow_private=True), internet.resolve)
        assert oauth.discover(SERVER, NOT_ASKED, network).issuer == "http://inside.test"


BLOCKED = {
    "link-local": f"https://{LINK_LOCAL}",
    "a name that leads inside": "https://inside.test",
    "a name that leads to the cloud's own host": "https://metadata.test",
}


@pytest.mark.parametrize("place", BLOCKED.values(), ids=BLOCKED.keys())
class TestBlockedAddresses:
    """Threat 1: nothing that is asked for in the name of a sign-in leads inside."""

    @pytest.fixture(autouse=True)
    def _names(self, internet: Internet) -> None:
        internet.names |= {"inside.test": PRIVATE, "metadata.test": LINK_LOCAL}

    def fail_blocked(self, internet: Internet, action: Callable[[], object], place: str) -> None:
        message = fail(action, FailureCode.BLOCKED_ADDRESS)
        assert message.startswith(f"Signing in leads to {place.removeprefix('https://')}. The host")
        assert PRIVATE not in message
        assert internet.addresses <= {PUBLIC}

    def test_description_of_the_server(self, internet: Internet, place: str) -> None:
        self.fail_blocked(internet, lambda: discover(internet, Challenge(f"{place}/x")), place)

    def test_issuer(self, internet: Internet, place: str) -> None:
        internet.show(SERVER_DOCUMENT, describe_server(authorization_servers=[place]))
        self.fail_blocked(internet, lambda: discover(internet), place)

    def test_registration(self, internet: Internet, place: str) -> None:
        signer = AuthorizationServer(ISSUER, describe_issuer(registration_endpoint=f"{place}/x"))
        self.fail_blocked(internet, lambda: oauth.register(signer, [HERE], internet.network), place)

    def test_token(self, internet: Internet, place: str) -> None:
        signer = AuthorizationServer(ISSUER, describe_issuer(token_endpoint=f"{place}/x"))
        client = ClientCredentials("id")
        for ask in (
            lambda: oauth.renew(signer, client, "refresh", internet.network),
            lambda: oauth.request_own_token(signer, client, (), internet.network),
            lambda: oauth.exchange_code(oauth.begin(signer, HERE, ()), client, "code", internet.network),
        ):
            self.fail_blocked(internet, ask, place)

    def test_revocation(self, internet: Internet, place: str) -> None:
        signer = AuthorizationServer(ISSUER, describe_issuer(revocation_endpoint=f"{place}/x"))
        client = ClientCredentials("id")
        assert not oauth.revoke(signer, client, "token", is_refresh=True, network=internet.network)
        assert internet.asked == []

    def test_no_redirect_leads_there(self, internet: Internet, place: str) -> None:
        described = describe_issuer()
        signer, client = AuthorizationServer(ISSUER, described), ClientCredentials("id")
        for url in (SERVER_DOCUMENT, ISSUER_DOCUMENT, *(described[name] for name in ENDPOINTS)):
            internet.redirect(url, f"{place}/x")
        fail(lambda: oauth.register(signer, [HERE], internet.network))
        fail(
            lambda: oauth.renew(signer, client, "r", internet.network),
            FailureCode.SIGN_IN_SERVER_DOWN,
        )
        assert not oauth.revoke(signer, client, "t", is_refresh=True, network=internet.network)
        internet.show(SERVER_DOCUMENT, describe_server())
        fail(lambda: discover(internet))
        assert internet.addresses == {PUBLIC}


class TestAddressOfTheServer:
    @pytest.mark.parametrize(
        "url",
        ["https://me:s3cret@mcp.test/mcp", "https://mcp.test:443/mcp", "https://MCP.test/mcp?key=s3cret"],
    )
    def test_may_be_written_in_another_way(self, internet: Internet, url: str) -> None:
        found = oauth.discover(url, NOT_ASKED, internet.network)
        assert found.resource == SERVER
        assert "s3cret" not in str(internet.asked)

    def test_is_made_up_of_without_its_user(self, internet: Internet) -> None:
        """Threat 9: the endpoints are shown to people."""
        internet.pages.clear()
        found = oauth.discover("https://me:s3cret@mcp.test/mcp", NOT_ASKED, internet.network)
        assert found.metadata["authorization_endpoint"] == "https://mcp.test/authorize"

    def test_may_have_letters_beyond_ascii(self, internet: Internet) -> None:
        internet.pages.clear()
        found = oauth.discover("https://bücher.test/mcp", NOT_ASKED, internet.network)
        assert found.issuer == "https://xn--bcher-kva.test"

    @pytest.mark.parametrize(
        "url",
        ["https://mcp.test:99999/mcp", "https://mcp.test:x/", "https://[::zz]/", "https://[v1.x]/", "", "x"],
    )
    def test_that_cannot_be_is_told(self, internet: Internet, url: str) -> None:
        fail(lambda: oauth.discover(url, NOT_ASKED, internet.network), FailureCode.INVALID_ADDRESS)
        assert internet.asked == []


def test_address_that_no_url_can_have_is_refused(internet: Internet) -> None:
    """It would be an error of ours."""
    internet.show(ISSUER_DOCUMENT, describe_issuer(token_endpoint="https://as.test:99999/token"))
    fail(lambda: discover(internet))


class TestLimits:
    """Threat 10: whatever is sent, it ends, and soon."""

    @pytest.fixture(autouse=True)
    def _hasty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(oauth, "DISCOVERY_SECONDS", 0.6)
        monkeypatch.setattr(oauth_http, "REQUEST_SECONDS", 0.3)

    @pytest.mark.parametrize(
        ("answer", "code", "words"),
        [
            (send_huge, FailureCode.SIGN_IN_UNUSABLE, "too large or cannot be read"),
            (send_endless, FailureCode.SIGN_IN_UNUSABLE, "too large or cannot be read"),
            (send_packed, FailureCode.SIGN_IN_UNUSABLE, "too large or cannot be read"),
            (send_never_ending, FailureCode.SIGN_IN_SERVER_DOWN, "did not answer within 0.6 s"),
            (send_nothing, FailureCode.SIGN_IN_SERVER_DOWN, "cannot be used now"),
            (send_html, FailureCode.SIGN_IN_UNUSABLE, "has no description of itself"),
            (send_json(["no", "object"]), FailureCode.SIGN_IN_UNUSABLE, "has no description of itself"),
            (send_json({"a": "b"}), FailureCode.SIGN_IN_UNUSABLE, "is not sound"),
            (send_status(500), FailureCode.SIGN_IN_SERVER_DOWN, "HTTP status 500"),
            (send_status(403), FailureCode.SIGN_IN_UNUSABLE, "has no description of itself"),
            (redirect_to("http://127.0.0.1:9/"), FailureCode.SIGN_IN_UNUSABLE, "has no description"),
        ],
    )
    def test_of_a_description(
        self, signer: SignInServer, answer: Answer, code: FailureCode, words: str
    ) -> None:
        signer.answers[METADATA] = answer
        assert words in fail(lambda: oauth.discover(signer.resource, NOT_ASKED, AT_HOME), code)

    def test_are_of_all_answers_together(self, internet: Internet) -> None:
        half = "x" * (OAUTH_BYTES * 6 // 10)
        internet.show(SERVER_DOCUMENT, describe_server(more=half))
        internet.show(ISSUER_DOCUMENT, describe_issuer(more=half))
        fail(lambda: discover(internet))

    def test_nested_without_end_is_not_read(self, internet: Internet) -> None:
        deep = "[" * 100_000 + "]" * 100_000
        internet.pages[ISSUER_DOCUMENT] = lambda asked: httpx2.Response(
            200, text=f'{{"issuer": "{ISSUER}", "x": {deep}}}', headers={"content-type": "application/json"}
        )
        fail(lambda: discover(internet))


def test_what_is_sent_tells_no_more_than_it_must(internet: Internet) -> None:
    """No cookie, no referrer, and no compression, whose size nobody could limit."""
    discover(internet)
    for asked in internet.asked:
        assert asked.headers.keys() <= {
            *("host", "accept", "accept-encoding", "user-agent", "connection", "mcp-protocol-version")
        }
        assert (asked.headers["accept"], asked.headers["accept-encoding"]) == ("application/json", "identity")
