"""A planted secret is in no page and no API answer, whoever asks. Addresses come from the URL map itself."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE
from catalog.domain import dialects
from catalog.domain.choices import AuthState
from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.oauth import SECRET_BASIC, AuthorizationServer, ClientCredentials, SignInRequest
from catalog.models import OAuthAttempt, OAuthClient, OAuthGrant, Scope, Server
from catalog.models.jobs import JobKind
from catalog.services import config, jobs, keys, oauth_rows, refresh
from catalog.services.oauth_rows import AttemptSecrets, GrantSecrets
from tests.harness.rows import make_tool

pytestmark = pytest.mark.django_db

CANARY = "canary-31fe88"
FILE = {
    "mcpServers": {
        "planted": {"command": "tool-server", "args": ["--key", CANARY], "env": {"TOKEN": CANARY}},
        "remote": {
            "url": f"https://user:{CANARY}@mcp.example.com/sse?key={CANARY}",
            "headers": {"X-Key": CANARY},
        },
    }
}


def plant() -> str:
    """Servers with secrets, one of them failing and one signed in to, with tools, changes and runs to show.
    Gives an admin key.
    """
    config.import_config(config=dialects.parse_config(FILE), policy_slug="default", actor=COMMAND_LINE)
    plant_sign_in(Server.objects.get(name="remote"))
    for server in Server.objects.all():
        make_tool(server=server, name="use")
        job = refresh.request_refresh(server=server)
        jobs.run_job(job_id=job.pk, holder="test", handlers={JobKind.REFRESH_SERVER: _fail})
    return keys.create_key(name="admin", actor=COMMAND_LINE, scope=Scope.ADMIN).text


def plant_sign_in(server: Server) -> None:
    """Access token, refresh token, the client's secret, and the verifier of a sign-in under way."""
    issuer = "https://as.example.com"
    signer = AuthorizationServer(issuer, {"issuer": issuer, "authorization_endpoint": f"{issuer}/authorize"})
    client = OAuthClient(server=server, source="given", issuer=issuer, client_id="shown", scopes=["read"])
    oauth_rows.seal_client_secret(client, CANARY)
    client.save()
    now = timezone.now()
    grant = OAuthGrant(server=server, state=AuthState.CONNECTED, issuer=issuer, granted_scopes=["read"])
    grant.obtained_at = grant.connected_at = now
    grant.expires_at, grant.connected_by, grant.renews = now + timedelta(hours=1), "root", True
    grant.sealed = oauth_rows.seal_grant(grant, GrantSecrets(CANARY, CANARY, signer))
    grant.save()
    request = SignInRequest(signer, CANARY, CANARY, "https://tools.example.com/oauth/callback", ("read",))
    user = User.objects.create_user("somebody")
    ends_at = now + timedelta(minutes=10)
    attempt = OAuthAttempt(server=server, user=user, state_sha256="0" * 64, expires_at=ends_at)
    credentials = ClientCredentials("shown", CANARY, SECRET_BASIC)
    oauth_rows.seal_attempt(attempt, AttemptSecrets(request, credentials, "0" * 64))
    attempt.save()


def _fail(job: object) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UpstreamFailure(FailureCode.REFUSED, "Nothing listens there")

    refresh.run_refresh(job, list_tools=refuse)  # type: ignore[arg-type]


def addresses(patterns: list[URLPattern | URLResolver], prefix: str = "/") -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if "admin" not in route:
                yield from addresses(pattern.url_patterns, route)
        else:
            yield from fill(route)


def fill(route: str) -> Iterator[str]:
    """Every parameter of a route by its name; a route that names something else must be added here."""
    tool = "mcp__planted__use"
    known = {
        "<path:name>": ["planted", "remote"],
        "<str:qualified_name>": [tool],
        "<slug:slug>": ["default"],
        "<int:key_id>": ["1"],
        "<int:change_id>": ["1"],
    }
    for parameter, values in known.items():
        if parameter in route:
            yield from (filled for value in values for filled in fill(route.replace(parameter, value)))
            return
    yield route


def test_planted_secret_is_in_no_answer() -> None:
    key = plant()
    console, agent = Client(), Client(headers={"authorization": f"Bearer {key}"})
    console.force_login(User.objects.create_superuser("root"))
    asked = 0
    for address in addresses(get_resolver().url_patterns):
        client = agent if address.startswith("/api/") else console
        answer = client.get(address)
        asked += answer.status_code == 200
        body = b"".join(answer) if answer.streaming else answer.content
        assert CANARY.encode() not in body, address
        assert CANARY not in str(answer.headers)
    assert asked >= 14
    assert b"shown" in console.get("/servers/remote/").content
