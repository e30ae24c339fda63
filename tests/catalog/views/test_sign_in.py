"""The pages by which an admin signs in to a server: the way there, the way back, and the end of it."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access.roles import Role
from catalog.domain.choices import AuthState, Transport
from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.oauth import AuthorizationServer, ClientCredentials, Tokens
from catalog.models import Change, Job, OAuthAttempt, OAuthClient, OAuthGrant, Server
from catalog.models.oauth import ClientSource
from catalog.upstream import oauth
from catalog.views.sign_in import LONGEST_ANSWER_CHARS, MOST_UNDER_WAY
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_server, make_user

pytestmark = pytest.mark.django_db

ADDRESS = "/servers/tracker/"
CONNECT = f"{ADDRESS}connect/"
CALLBACK = "/oauth/callback"
ISSUER = "https://login.example.com"
HOSTILE = '<script>alert(1)</script>"onload=x'
# Loopback, as a browser on this machine asks: elsewhere nobody knows where to come back to.
LOCAL = {"Host": "127.0.0.1:8000"}
OWN_CLIENT = {"kind": "oauth", "issuer": ISSUER, "client_id": "console-7", "scopes": "read  write"}
STALE = "This sign-in is not under way here any more"


@dataclass
class Provider:
    """In place of the network: what is asked of the sign-in server, and what it answers."""

    found: AuthorizationServer = field(
        default_factory=lambda: AuthorizationServer(
            issuer=ISSUER,
            metadata={
                "issuer": ISSUER,
                "authorization_endpoint": f"{ISSUER}/authorize",
                "token_endpoint": f"{ISSUER}/token",
                "registration_endpoint": f"{ISSUER}/register",
                "code_challenge_methods_supported": ["S256"],
            },
            resource="https://mcp.example.com/mcp",
            scopes=("read", "write"),
        )
    )
    tokens: Tokens = field(default_factory=lambda: Tokens("access-1", "refresh-1", 3600, ("read", "write")))
    failure: UpstreamFailure | None = None
    registered: list[tuple[str, ...]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    own_tokens: int = 0
    takes_note: bool = True

    def discover(self, *_: object, **__: object) -> AuthorizationServer:
        if self.failure:
            raise self.failure
        return self.found

    def register(
        self, server: AuthorizationServer, redirect_uris: list[str], *_: object, **__: object
    ) -> Any:
        self.registered.append(tuple(redirect_uris))
        return ClientCredentials("registered-1")

    def exchange_code(self, request: object, client: object, code: str, network: object) -> Tokens:
        self.codes.append(code)
        if self.failure:
            raise self.failure
        return self.tokens

    def request_own_token(self, *_: object) -> Tokens:
        self.own_tokens += 1
        return self.tokens

    def revoke(self, *_: object, **__: object) -> bool:
        return self.takes_note


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    stand_in = Provider()
    for name in ("discover", "register", "exchange_code", "request_own_token", "revoke"):
        monkeypatch.setattr(oauth, name, getattr(stand_in, name))
    return stand_in


@pytest.fixture(autouse=True)
def tracker() -> Server:
    """It has answered with a 401."""
    server = make_server(
        name="tracker",
        transport=Transport.HTTP,
        url="https://mcp.example.com/mcp",
        failures=1,
        last_error_code=FailureCode.SIGN_IN_NEEDED,
        last_error="The server needs a sign-in: connect it",
    )
    OAuthGrant.objects.create(server=server, state=AuthState.SIGN_IN_NEEDED)
    return server


@pytest.fixture(autouse=True)
def hosts(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]


def leave(client: Client) -> str:
    """Press Connect and Continue. Gives the state that the provider sends back."""
    page = client.post(CONNECT, headers=LOCAL)
    attempt = parse_qs(urlsplit(page.headers["Location"]).query)["attempt"][0]
    gone = client.post(CONNECT, {"attempt": attempt}, headers=LOCAL)
    return parse_qs(urlsplit(gone.headers["Location"]).query)["state"][0]


def come_back(client: Client, **answer: str) -> Any:
    return client.get(f"{CALLBACK}?{urlencode(answer)}", headers=LOCAL, follow=True)


def connect(client: Client) -> Any:
    return come_back(client, state=leave(client), code="code-1")


def buttons(page: Any) -> list[str]:
    found = re.findall(r"<button[^>]*>(.*?)</button>", text_of(page), re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in found]


class TestLeaving:
    def test_page_says_where_for_what_and_as_whom(self, provider: Provider) -> None:
        client = signed_in(Role.ADMIN)
        page = client.post(CONNECT, headers=LOCAL, follow=True)
        words = visible_text(page)
        assert "Sign in to tracker" in words
        assert "You will sign in at login.example.com" in words
        assert "https://mcp.example.com/mcp" in words
        assert "read write" in words
        assert "which has registered itself there" in words
        assert "http://127.0.0.1:8000/oauth/callback" in words
        assert "Continue to login.example.com" in buttons(page)
        assert f'href="{ADDRESS}">Cancel' in text_of(page)
        assert not broken_rules(page)
        assert page.headers["Cache-Control"].startswith("max-age=0, no-cache, no-store")

    def test_scopes_that_nobody_names_are_told_so(self, provider: Provider) -> None:
        object.__setattr__(provider.found, "scopes", ())
        page = signed_in(Role.ADMIN).post(CONNECT, headers=LOCAL, follow=True)
        assert "no scopes by name" in visible_text(page)

    def test_hostile_names_and_scopes_are_text(self, provider: Provider, tracker: Server) -> None:
        Server.objects.update(name=HOSTILE)
        object.__setattr__(provider.found, "scopes", ("<script>alert(1)</script>",))
        client = signed_in(Role.ADMIN)
        address = Server.objects.get().get_absolute_url()
        page = client.post(f"{address}connect/", headers=LOCAL, follow=True)
        for shown in (page, client.get(address)):
            assert "<script>alert" not in text_of(shown)
            assert not broken_rules(shown)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text_of(page)

    def test_browser_with_scripts_is_told_where_to_go_and_one_without_is_sent(
        self, provider: Provider
    ) -> None:
        client = signed_in(Role.ADMIN)
        shown = client.post(CONNECT, headers=LOCAL, follow=True)
        (attempt,) = OAuthAttempt.objects.all()
        sent = client.post(CONNECT, {"attempt": attempt.state_sha256}, headers=LOCAL)
        told = client.post(CONNECT, {"attempt": attempt.state_sha256}, headers={**LOCAL, **HTMX})
        assert (sent.status_code, told.status_code) == (302, 200)
        assert sent.headers["Location"] == told.headers["HX-Redirect"]
        assert sent.headers["Location"].startswith(f"{ISSUER}/authorize?")
        policy = shown.headers["Content-Security-Policy"]
        assert f"form-action 'self' {ISSUER}" in policy.replace(";", " ")
        assert ISSUER not in client.get("/servers/").headers["Content-Security-Policy"]

    def test_odd_host_gets_no_place_in_the_content_policy(self, provider: Provider) -> None:
        provider.found.metadata["authorization_endpoint"] = "https://a;script-src*/go"  # type: ignore[index]
        page = signed_in(Role.ADMIN).post(CONNECT, headers=LOCAL, follow=True)
        assert "script-src*" not in page.headers["Content-Security-Policy"]

    @pytest.mark.parametrize(
        ("host", "addresses"),
        [
            (
                "127.0.0.1:8000",
                ("http://127.0.0.1:8000/oauth/callback", "http://localhost:8000/oauth/callback"),
            ),
            (
                "localhost:9000",
                ("http://localhost:9000/oauth/callback", "http://127.0.0.1:9000/oauth/callback"),
            ),
            ("[::1]", ("http://[::1]/oauth/callback",)),
        ],
    )
    def test_loopback_is_believed_with_its_twin(
        self, provider: Provider, host: str, addresses: tuple[str, ...]
    ) -> None:
        signed_in(Role.ADMIN).post(CONNECT, headers={"Host": host})
        assert provider.registered == [addresses]

    @pytest.mark.parametrize("host", ["tools.example.com", "127.0.0.1.example.com", "localhost.example"])
    def test_another_host_is_not_believed(self, provider: Provider, host: str) -> None:
        page = signed_in(Role.ADMIN).post(CONNECT, headers={"Host": host}, follow=True)
        assert "set TOOLSEARCH_PUBLIC_URL to the address of this console" in visible_text(page)
        assert not OAuthAttempt.objects.exists()

    def test_public_address_comes_from_the_settings_alone(self, provider: Provider, settings: Any) -> None:
        settings.PUBLIC_URL = "https://tools.example.com"
        page = signed_in(Role.ADMIN).post(CONNECT, headers={"Host": "evil.example"}, follow=True)
        assert provider.registered == [("https://tools.example.com/oauth/callback",)]
        assert "You come back to tools.example.com" in visible_text(page)

    def test_failure_is_told_on_the_servers_page(self, provider: Provider) -> None:
        provider.failure = UpstreamFailure(FailureCode.SIGN_IN_UNUSABLE, "It has no sign-in")
        page = signed_in(Role.ADMIN).post(CONNECT, headers=LOCAL, follow=True)
        assert page.redirect_chain == [(ADDRESS, 302)]
        assert "It has no sign-in" in visible_text(page)
        told = signed_in(Role.ADMIN).post(CONNECT, headers={**LOCAL, **HTMX})
        assert told.headers["HX-Redirect"] == ADDRESS

    @pytest.mark.parametrize("attempt", ["", "0" * 64, "x\0"])
    def test_unknown_attempt_leads_back(self, provider: Provider, attempt: str) -> None:
        page = signed_in(Role.ADMIN).get(CONNECT, {"attempt": attempt}, follow=True)
        assert page.redirect_chain == [(ADDRESS, 302)]
        assert STALE in visible_text(page)

    def test_attempt_of_another_browser_leads_back(self, provider: Provider) -> None:
        """Also one of the same admin's: it could not come back there."""
        user, other = make_user(Role.ADMIN), Client()
        client = Client()
        client.force_login(user)
        other.force_login(user)
        client.post(CONNECT, headers=LOCAL)
        attempt = OAuthAttempt.objects.get()
        for answer in (
            other.get(CONNECT, {"attempt": attempt.state_sha256}),
            other.post(CONNECT, {"attempt": attempt.state_sha256}),
        ):
            assert answer.headers["Location"] == ADDRESS

    def test_attempt_is_of_one_server(self, provider: Provider) -> None:
        make_server(name="other", transport=Transport.HTTP, url="https://other.example.com/")
        client = signed_in(Role.ADMIN)
        client.post(CONNECT, headers=LOCAL)
        attempt = OAuthAttempt.objects.get()
        answer = client.post("/servers/other/connect/", {"attempt": attempt.state_sha256}, headers=LOCAL)
        assert answer.headers["Location"] == "/servers/other/"

    def test_browser_keeps_a_few_at_once(self, provider: Provider) -> None:
        client = signed_in(Role.ADMIN)
        states = [leave(client) for _ in range(MOST_UNDER_WAY + 1)]
        assert come_back(client, state=states[0], code="c").status_code == 400
        assert come_back(client, state=states[1], code="c").status_code == 200

    def test_command_has_no_sign_in(self, provider: Provider) -> None:
        make_server(name="local", transport=Transport.STDIO, command="x")
        answer = signed_in(Role.ADMIN).post("/servers/local/connect/", headers=LOCAL)
        assert answer.status_code == 422
        assert not OAuthAttempt.objects.exists()


class TestComingBack:
    def test_connects_and_asks_for_its_tools(self, provider: Provider, tracker: Server) -> None:
        client = signed_in(Role.ADMIN)
        page = connect(client)
        assert page.redirect_chain == [(ADDRESS, 302)]
        words = visible_text(page)
        assert "Connected tracker. It is being asked for its tools." in words
        assert "Signs in at login.example.com" in words
        assert "Granted read write" in words
        assert "renews itself" in words
        assert {"Reconnect", "Disconnect tracker"} <= set(buttons(page))
        assert "Sign in at" not in words
        assert provider.codes == ["code-1"]
        grant = OAuthGrant.objects.get(server=tracker)
        assert grant.state == AuthState.CONNECTED
        assert not OAuthAttempt.objects.exists()
        assert Job.objects.filter(subject=tracker.pk).exists()
        assert "access-1" not in text_of(page) + text_of(client.get("/changes/"))

    def test_comes_back_once(self, provider: Provider) -> None:
        client = signed_in(Role.ADMIN)
        state = leave(client)
        assert come_back(client, state=state, code="code-1").status_code == 200
        again = come_back(client, state=state, code="code-1")
        assert again.status_code == 400
        assert STALE in visible_text(again)
        assert provider.codes == ["code-1"]

    def test_another_admins_browser_gets_nothing(self, provider: Provider) -> None:
        """Whoever plants their own sign-in would connect the console to their account."""
        state = leave(signed_in(Role.ADMIN))
        answer = come_back(signed_in(Role.ADMIN), state=state, code="code-1")
        assert answer.status_code == 400
        assert not provider.codes
        assert OAuthAttempt.objects.exists()

    def test_another_browser_of_the_same_admin_gets_nothing(self, provider: Provider) -> None:
        """Threat 5: who has seen the state cannot have the admin's own browser finish it."""
        user, client, other = make_user(Role.ADMIN), Client(), Client()
        client.force_login(user)
        other.force_login(user)
        state = leave(client)
        assert come_back(other, state=state, code="code-1").status_code == 400
        assert not provider.codes
        assert come_back(client, state=state, code="code-2").status_code == 200

    def test_browser_that_is_not_signed_in_gets_nothing(self, provider: Provider, client: Client) -> None:
        state = leave(signed_in(Role.ADMIN))
        answer = come_back(client, state=state, code="code-1")
        assert answer.status_code == 400
        assert STALE in visible_text(answer)
        assert "sessionid" not in answer.cookies
        assert not provider.codes

    def test_another_user_of_the_same_browser_gets_nothing(self, provider: Provider) -> None:
        """Their sessions differ; and the attempt is one person's."""
        client = signed_in(Role.ADMIN)
        state = leave(client)
        under_way = dict(client.session)
        client.force_login(make_user(Role.ADMIN))
        session = client.session
        session.update({name: value for name, value in under_way.items() if name == "sign_ins_under_way"})
        session.save()
        assert come_back(client, state=state, code="code-1").status_code == 400
        assert not provider.codes

    def test_who_is_no_admin_any_more_gets_nothing(self, provider: Provider) -> None:
        client = signed_in(Role.ADMIN)
        state = leave(client)
        User.objects.get().groups.clear()
        assert come_back(client, state=state, code="code-1").status_code == 400
        assert not provider.codes

    def test_eleven_minutes_are_too_long(self, provider: Provider) -> None:
        client = signed_in(Role.ADMIN)
        state = leave(client)
        OAuthAttempt.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
        answer = come_back(client, state=state, code="code-1")
        assert answer.status_code == 400
        assert STALE in visible_text(answer)
        assert not provider.codes

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"error": "access_denied"}, "You did not allow it at login.example.com"),
            ({"error": HOSTILE}, "login.example.com refused the sign-in"),
            ({}, "sent no code along"),
            ({"code": "c", "iss": "https://evil.example"}, "does not come from the sign-in server"),
        ],
    )
    def test_way_back_without_a_grant_is_told_and_asks_for_nothing(
        self, provider: Provider, answer: dict[str, str], words: str
    ) -> None:
        client = signed_in(Role.ADMIN)
        page = come_back(client, state=leave(client), **answer)
        assert page.redirect_chain == [(ADDRESS, 302)]
        assert words in visible_text(page)
        assert "<script>alert" not in text_of(page)
        assert not provider.codes
        assert not OAuthAttempt.objects.exists()

    def test_refused_code_is_told(self, provider: Provider) -> None:
        client = signed_in(Role.ADMIN)
        state = leave(client)
        provider.failure = UpstreamFailure(FailureCode.SIGN_IN_SERVER_DOWN, "It does not answer")
        page = come_back(client, state=state, code="code-1")
        assert page.redirect_chain == [(ADDRESS, 302)]
        assert "It does not answer" in visible_text(page)
        assert OAuthGrant.objects.get().state == AuthState.SIGN_IN_NEEDED

    @pytest.mark.parametrize("query", ["&code=a&code=b", "&iss=a&iss=b", f"&code={'x' * 4_001}", "&state=b"])
    def test_what_no_provider_sends_is_refused(self, provider: Provider, query: str) -> None:
        assert LONGEST_ANSWER_CHARS == 4_000
        client = signed_in(Role.ADMIN)
        answer = client.get(f"{CALLBACK}?state={leave(client)}{query}", headers=LOCAL)
        assert answer.status_code == 400
        assert "cannot be read" in visible_text(answer)
        assert not provider.codes

    def test_without_anything_it_is_a_page_in_words(self) -> None:
        page = signed_in(Role.ADMIN).get(CALLBACK)
        assert page.status_code == 400
        assert STALE in visible_text(page)
        assert not broken_rules(page)
        assert signed_in(Role.ADMIN).post(CALLBACK).status_code == 405

    def test_address_is_the_one_that_providers_are_told(self) -> None:
        assert reverse("sign_in_callback") == settings.SIGN_IN_CALLBACK
        assert reverse("client_document") == settings.CLIENT_DOCUMENT_PATH


class TestServerPage:
    @pytest.mark.parametrize(
        ("role", "is_offered"), [(Role.VIEWER, False), (Role.EDITOR, False), (Role.ADMIN, True)]
    )
    def test_begins_with_where_to_sign_in(self, role: Role, is_offered: bool) -> None:
        page = signed_in(role).get(ADDRESS)
        words = visible_text(page)
        assert "Sign in at mcp.example.com to use it." in words
        assert ("An admin has to connect it." in words) is not is_offered
        assert ("Connect" in buttons(page)) is is_offered
        assert ("Give a client id of your own" in words) is is_offered
        assert not broken_rules(page)

    @pytest.mark.parametrize(
        ("state", "button", "words"),
        [
            (AuthState.SIGN_IN_NEEDED, "Connect", "Sign-in needed"),
            (AuthState.RECONNECT_NEEDED, "Reconnect", "Sign in at login.example.com again to use it."),
            (AuthState.SCOPE_NEEDED, "Grant more", "Asks for more admin"),
        ],
    )
    def test_has_one_button_for_its_state(
        self, tracker: Server, state: AuthState, button: str, words: str
    ) -> None:
        OAuthGrant.objects.update(
            state=state, issuer=ISSUER, granted_scopes=["read"], needed_scopes=["read", "admin"], sealed="x"
        )
        Server.objects.update(last_error_code=state)
        page = signed_in(Role.ADMIN).get(ADDRESS)
        assert [one for one in buttons(page) if re.match("Connect|Reconnect|Grant", one)] == [button]
        assert words in visible_text(page)

    @pytest.mark.parametrize(
        ("lasts", "renews", "words"),
        [
            (timedelta(0), True, "Token renews itself"),
            (timedelta(hours=2, minutes=10), False, "in 2"),
            (None, False, "Token does not expire"),
        ],
    )
    def test_says_how_long_it_lasts(self, lasts: timedelta | None, renews: bool, words: str) -> None:
        now = timezone.now()
        OAuthGrant.objects.update(
            state=AuthState.CONNECTED,
            issuer=ISSUER,
            connected_at=now,
            connected_by="ada",
            expires_at=None if lasts is None else now + lasts,
            renews=renews,
        )
        page = visible_text(signed_in(Role.VIEWER).get(ADDRESS)).replace("\xa0", " ")
        assert words in page
        assert "by ada" in page

    @pytest.mark.parametrize(
        "values",
        [
            {"transport": Transport.STDIO, "command": "x", "url": "", "last_error_code": "exited"},
            {"last_error_code": "", "failures": 0},
            {"last_error_code": "refused"},
        ],
    )
    def test_of_a_server_that_needs_none_says_nothing_of_it(self, values: dict[str, object]) -> None:
        OAuthGrant.objects.all().delete()
        Server.objects.update(**values)
        words = visible_text(signed_in(Role.ADMIN).get(ADDRESS))
        assert "Sign-in" not in words
        assert "client id" not in words

    def test_costs_no_query_more(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        client = signed_in(Role.ADMIN)
        client.get(ADDRESS)
        with CaptureQueriesContext(connection) as with_it:
            client.get(ADDRESS)
        OAuthGrant.objects.all().delete()
        Server.objects.update(last_error_code=FailureCode.REFUSED)
        with django_assert_num_queries(len(with_it)):
            client.get(ADDRESS)

    def test_refused_token_of_ones_own_can_give_way_to_a_sign_in(self) -> None:
        OAuthGrant.objects.all().delete()
        Server.objects.update(last_error_code=FailureCode.UNAUTHORIZED, last_error="It refused the token")
        page = signed_in(Role.ADMIN).get(ADDRESS)
        assert "It refused the token" in visible_text(page)
        assert "Connect" in buttons(page)

    def test_lists_and_the_overview_lead_there(self) -> None:
        admin, viewer = signed_in(Role.ADMIN), signed_in(Role.VIEWER)
        for path in ("/", "/servers/", f"/imported/?servers={Server.objects.get().pk}"):
            assert "It needs a sign-in: connect it" in visible_text(admin.get(path)), path
            assert "It needs a sign-in: an admin has to connect it" in visible_text(viewer.get(path)), path
            assert "Sign-in needed" in visible_text(viewer.get(path)), path


class TestDisconnect:
    @pytest.mark.parametrize(
        ("is_told", "words"), [(True, "The provider was told."), (False, "was not told")]
    )
    def test_forgets_the_tokens_and_says_whether_the_provider_knows(
        self, provider: Provider, is_told: bool, words: str
    ) -> None:
        provider.takes_note = is_told
        client = signed_in(Role.ADMIN)
        connect(client)
        page = client.post(f"{ADDRESS}disconnect/", follow=True)
        assert f"Disconnected tracker. {'The provider' if is_told else ''}".strip() in visible_text(page)
        assert words in visible_text(page)
        grant = OAuthGrant.objects.get()
        assert (grant.state, grant.sealed) == (AuthState.NONE, "")
        assert "Connect" in buttons(page)

    def test_what_is_not_connected_cannot_be(self) -> None:
        answer = signed_in(Role.ADMIN).post(f"{ADDRESS}disconnect/")
        assert answer.status_code == 409
        assert "not connected" in visible_text(answer)

    def test_what_the_program_itself_signs_in_to_cannot_be(self, provider: Provider) -> None:
        """The next refresh would connect it again."""
        client = signed_in(Role.ADMIN)
        sent = {**OWN_CLIENT, "kind": "client_credentials", "client_secret": "planted-9"}
        client.post(f"{ADDRESS}client/", sent)
        client.post(CONNECT, headers=LOCAL)
        before, changes = OAuthGrant.objects.get(), Change.objects.count()
        assert before.state == AuthState.CONNECTED
        answer = client.post(f"{ADDRESS}disconnect/")
        assert answer.status_code == 409
        assert "remove the client id" in visible_text(answer)
        assert (OAuthGrant.objects.get().sealed, Change.objects.count()) == (before.sealed, changes)
        client.post(f"{ADDRESS}client/", {"remove": "yes"})
        assert OAuthGrant.objects.get().sealed == ""


class TestOwnClient:
    def test_is_stored_and_its_secret_never_shown(self, provider: Provider) -> None:
        client = signed_in(Role.ADMIN)
        page = client.post(f"{ADDRESS}client/", {**OWN_CLIENT, "client_secret": "planted-9"}, follow=True)
        assert "Saved the client id of tracker. Connect it now." in visible_text(page)
        assert "console-7" in text_of(page)
        assert 'value="read write"' in text_of(page)
        assert "planted-9" not in text_of(page) + text_of(client.get("/changes/"))
        row = OAuthClient.objects.get()
        assert (row.source, row.issuer, row.scopes) == (ClientSource.GIVEN, ISSUER, ["read", "write"])
        assert "planted-9" not in row.sealed

    def test_empty_secret_keeps_the_stored_one(self) -> None:
        client = signed_in(Role.ADMIN)
        client.post(f"{ADDRESS}client/", {**OWN_CLIENT, "client_secret": "planted-9"})
        before = OAuthClient.objects.get().sealed
        client.post(f"{ADDRESS}client/", {**OWN_CLIENT, "scopes": "read"})
        row = OAuthClient.objects.get()
        assert row.scopes == ["read"]
        assert before
        assert row.sealed

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"issuer": "login"}, "Must be the address of the authorization server"),
            ({"client_id": "${HOME}"}, "Must be one line of printable ASCII"),
            ({"scopes": 'a"b'}, "names without spaces and quotes"),
            ({"kind": "client_credentials", "client_secret": ""}, "Is needed: without a person"),
            ({"client_secret": "pl\u00e4nted-9"}, "or a private key as PEM"),
            ({"client_id": ""}, "This field is required."),
        ],
    )
    def test_mistakes_keep_what_was_typed_but_the_secret(self, values: dict[str, str], words: str) -> None:
        sent = {**OWN_CLIENT, "client_secret": "planted-9", **values}
        answer = signed_in(Role.ADMIN).post(f"{ADDRESS}client/", sent)
        assert answer.status_code == 422
        assert words in visible_text(answer)
        assert f'value="{sent["scopes"].replace(chr(34), "&quot;")}"' in text_of(answer)
        assert "nted-9" not in text_of(answer)
        assert re.search(r'id="own-client"[^>]* open', text_of(answer))
        assert not broken_rules(answer)
        assert not OAuthClient.objects.exists()

    def test_is_removed(self) -> None:
        client = signed_in(Role.ADMIN)
        client.post(f"{ADDRESS}client/", OWN_CLIENT)
        page = client.post(f"{ADDRESS}client/", {"remove": "yes"}, follow=True)
        assert "Removed the client id of tracker." in visible_text(page)
        assert not OAuthClient.objects.exists()

    def test_program_itself_connects_without_a_page_between(self, provider: Provider) -> None:
        client = signed_in(Role.ADMIN)
        sent = {**OWN_CLIENT, "kind": "client_credentials", "client_secret": "planted-9"}
        page = client.post(f"{ADDRESS}client/", sent, follow=True)
        assert "It is being asked for its tools." in visible_text(page)
        page = client.post(CONNECT, headers={"Host": "tools.example.com"}, follow=True)
        assert page.redirect_chain == [(ADDRESS, 302)]
        assert "Connected tracker. It is being asked for its tools." in visible_text(page)
        assert provider.own_tokens == 1
        assert "renews itself" in visible_text(page)
        assert not {"Connect", "Reconnect", "Disconnect tracker"} & set(buttons(page))


class TestClientDocument:
    def test_describes_this_console_to_whoever_asks(self, client: Client, settings: Any) -> None:
        settings.PUBLIC_URL, settings.CLIENT_DOCUMENT_OFFERED = "https://tools.example.com", True
        answer = client.get("/oauth/client.json")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Cache-Control"] == "max-age=3600"
        assert not answer.cookies
        described = answer.json()
        assert described["client_id"] == "https://tools.example.com/oauth/client.json"
        assert described["redirect_uris"] == ["https://tools.example.com/oauth/callback"]
        assert "client_secret" not in described

    def test_is_not_there_unless_it_is_offered(self, client: Client) -> None:
        assert client.get("/oauth/client.json").status_code == 404


@pytest.mark.parametrize("role", [Role.NONE, Role.VIEWER, Role.EDITOR])
@pytest.mark.parametrize("below", ["connect", "disconnect", "client"])
def test_only_admins_may(provider: Provider, role: Role, below: str) -> None:
    answer = signed_in(role).post(f"{ADDRESS}{below}/", OWN_CLIENT, headers=LOCAL)
    assert answer.status_code == 403
    assert not OAuthAttempt.objects.exists()
    assert not OAuthClient.objects.exists()
    assert not Change.objects.exists()
