"""What servers and authorization servers say is read with care; when a token is renewed."""

from datetime import UTC, datetime, timedelta

import pytest

from catalog.domain import limits
from catalog.domain.oauth import (
    AuthorizationServer,
    Challenge,
    ClientCredentials,
    SignInRequest,
    Tokens,
    host_of,
    is_access_token,
    is_address,
    is_credential,
    is_private_key,
    is_renewal_due,
    is_scope,
    read_challenge,
    read_scopes,
)

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
METADATA_URL = "https://mcp.test/.well-known/oauth-protected-resource/mcp"


class TestChallenge:
    def test_says_where_it_is_described_and_which_scopes_it_wants(self) -> None:
        header = f'Bearer realm="x", resource_metadata="{METADATA_URL}", scope="read write"'
        assert read_challenge(header) == Challenge(METADATA_URL, ("read", "write"))

    def test_takes_plain_values_other_cases_and_any_order(self) -> None:
        header = f"bearer SCOPE=read,Error=invalid_token, Resource_Metadata={METADATA_URL}"
        assert read_challenge(header) == Challenge(METADATA_URL, ("read",), "invalid_token")

    def test_that_says_nothing_says_nothing(self) -> None:
        for header in ("", "Bearer", 'Basic realm="x"', "Bearer realm", '"""', "scope", 'scope="'):
            assert read_challenge(header) == Challenge(), header

    def test_only_missing_rights_ask_for_scopes(self) -> None:
        assert read_challenge('Bearer error="insufficient_scope"').asks_for_scopes
        assert not read_challenge('Bearer error="invalid_token"').asks_for_scopes

    def test_words_within_another_value_are_not_parameters(self) -> None:
        """The SDK's own search finds a scope in this description."""
        header = 'Bearer error="invalid_token", error_description="scope=admin resource_metadata=http://x/"'
        assert read_challenge(header) == Challenge(error="invalid_token")

    def test_escaped_quote_does_not_end_a_value(self) -> None:
        header = r'Bearer error_description="a \", scope=\"admin", scope="read"'
        assert read_challenge(header).scopes == ("read",)

    def test_of_a_parameter_given_twice_the_first_counts(self) -> None:
        assert read_challenge('Bearer scope="read", scope="admin"').scopes == ("read",)

    @pytest.mark.parametrize(
        "address",
        [
            "",
            "/.well-known/oauth-protected-resource",
            "file:///etc/passwd",
            "ftp://mcp.test/x",
            "javascript:alert(1)",
            "https://",
            "https://user@mcp.test/",
            "https://mcp.tést/",
            "http://[::1",
            "https://[v1.x]/",
            "https://mcp.test:99999/",
            "https://mcp.test:http/",
            f"https://mcp.test/{'x' * limits.OAUTH_URL_CHARS}",
        ],
    )
    def test_what_is_no_address_of_the_web_counts_as_not_said(self, address: str) -> None:
        assert read_challenge(f'Bearer resource_metadata="{address}", scope="read"') == Challenge(
            scopes=("read",)
        )

    def test_of_a_long_one_only_the_beginning_is_read(self) -> None:
        """Threat 11: of a header without end."""
        header = f'Bearer {"a=b, " * limits.CHALLENGE_CHARS}scope="read"'
        assert read_challenge(header) == Challenge()


class TestScopes:
    def test_each_is_asked_for_once_in_order(self) -> None:
        assert read_scopes("write read  write\tadmin") == ("write", "read", "admin")
        assert read_scopes(["b", "a", "b"]) == ("b", "a")
        assert read_scopes(None) == read_scopes("") == ()

    @pytest.mark.parametrize(
        "scope",
        [
            "",
            "a b",
            "a\r\nb",
            'a"b',
            "a\\b",
            "é",
            "${HOME}",
            "x${HOME}",
            "\x7f",
            "a" * (limits.OAUTH_SCOPE_CHARS + 1),
            None,
            7,
        ],
    )
    def test_that_no_standard_allows_are_left_out(self, scope: object) -> None:
        """Threats 11 and 14."""
        assert not is_scope(scope)
        assert read_scopes(["read", scope]) == ("read",)  # type: ignore[list-item]

    @pytest.mark.parametrize("scope", ["https://graph.test/.default", "repo:status", "<b>", "a" * 300])
    def test_that_look_odd_are_sound(self, scope: str) -> None:
        assert read_scopes(scope) == (scope,)

    def test_are_at_most_so_many(self) -> None:
        """Threat 11: a list without end."""
        assert len(read_scopes(f"scope-{number}" for number in range(9_999))) == limits.OAUTH_SCOPES


class TestTokens:
    """Threat 14: a header or a reference cannot hide in what a provider gives."""

    @pytest.mark.parametrize("token", ["abc", "eyJ.a-b_c~d+e/f==", "x" * limits.OAUTH_TOKEN_CHARS])
    def test_of_the_standard_are_taken(self, token: str) -> None:
        assert is_access_token(token)
        assert is_credential(token)

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "${CLOUD_KEY}",
            "a${CLOUD_KEY}",
            "a\r\nX-Other: b",
            "a\n",
            "tökèn",
            "a\x00b",
            "x" * (limits.OAUTH_TOKEN_CHARS + 1),
        ],
    )
    def test_with_anything_else_are_refused(self, token: str) -> None:
        assert not is_access_token(token)
        assert not is_credential(token)

    def test_other_credentials_may_have_any_visible_character(self) -> None:
        assert is_credential("a secret, with $pace & 'quotes'")
        assert not is_access_token("a b")

    def test_private_key_is_told_from_a_secret(self) -> None:
        assert is_private_key("\n-----BEGIN PRIVATE KEY-----\n")
        assert not is_private_key("s3cret")

    def test_are_in_no_repr(self) -> None:
        """Threat 9: what a log or a traceback may show."""
        signer = AuthorizationServer("https://as.test", {"authorization_endpoint": "https://as.test/a"})
        secret = "canary-0123456789"
        for value in (
            Tokens(secret, secret),
            ClientCredentials("id", secret),
            SignInRequest(signer, state=secret, verifier=secret, redirect_uri="https://here.test/"),
        ):
            assert secret not in repr(value)


@pytest.mark.parametrize("text", ["https://a.test", "http://127.0.0.1:8000/x?y=z", "https://[::1]/"])
def test_whole_addresses_are_addresses(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://a.test/x", "a.test"),
        ("http://127.0.0.1:8000/", "127.0.0.1:8000"),
        ("https://me:secret@a.test/", "a.test"),
    ],
)
def test_people_are_shown_host_and_port_alone(address: str, host: str) -> None:
    assert host_of(address) == host


class TestAuthorizationServer:
    def test_people_go_to_the_host_of_its_pages(self) -> None:
        signer = AuthorizationServer(
            "https://issuer.test", {"authorization_endpoint": "https://login.test/a"}
        )
        assert signer.host == "login.test"

    def test_list_that_is_left_out_is_told_from_an_empty_one(self) -> None:
        signer = AuthorizationServer("https://issuer.test", {"scopes_supported": []})
        assert (signer.lists("scopes_supported"), signer.lists("other")) == ((), None)
        assert not signer.can_register


class TestRenewal:
    @pytest.mark.parametrize(
        ("life", "age", "is_due"),
        [
            (3600, 3539, False),
            (3600, 3540, True),  # a minute ahead
            (90, 59, False),
            (90, 60, True),  # in the last third
            (12, 9, False),
            (12, 10, True),  # not before ten seconds have passed
            (6, 5, False),
            (6, 6, True),  # it has expired
            (1, 1, True),
            (0, 0, True),
        ],
    )
    def test_is_due_shortly_before_the_end(self, life: int, age: int, is_due: bool) -> None:
        begun = NOW - timedelta(seconds=age)
        ends_at = begun + timedelta(seconds=life)
        assert is_renewal_due(now=NOW, obtained_at=begun, expires_at=ends_at) is is_due

    def test_is_never_due_without_an_end(self) -> None:
        assert not is_renewal_due(now=NOW, obtained_at=NOW - timedelta(days=999), expires_at=None)
