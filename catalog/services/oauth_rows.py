"""Reads and writes the sealed columns of sign-ins to servers: clients, grants and attempts."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.conf import settings

from catalog.domain.oauth import AuthorizationServer, ClientCredentials, SignInRequest, Tokens
from catalog.models import OAuthAttempt, OAuthClient, OAuthGrant
from catalog.models.oauth import ClientSource
from catalog.sealing import Sealer
from catalog.upstream import oauth


@dataclass(frozen=True, slots=True, repr=False)
class GrantSecrets:
    """`server` is who gives new tokens; None until it is known. `client` is the one that a person's grant was
    given to: the row may hold another by now, of a sign-in that did not end in a grant.
    """

    access_token: str = ""
    refresh_token: str = ""
    server: AuthorizationServer | None = None
    client: ClientCredentials | None = None


@dataclass(frozen=True, slots=True, repr=False)
class AttemptSecrets:
    """`address_sha256` is of the server's address when the sign-in began."""

    request: SignInRequest
    client: ClientCredentials
    address_sha256: str


def address_digest(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def seal_client_secret(client: OAuthClient, secret: str) -> None:
    """Set it on the row, which has its id. Save the row after."""
    client.sealed = _seal({"secret": secret}, _client_context(client)) if secret else ""


def read_client_secret(client: OAuthClient) -> str:
    """Raises SealBroken."""
    return str(_unseal(client.sealed, _client_context(client))["secret"]) if client.sealed else ""


def read_client(client: OAuthClient, server: AuthorizationServer) -> ClientCredentials:
    """Raises SealBroken."""
    secret = read_client_secret(client)
    is_given = client.source == ClientSource.GIVEN
    method = oauth.choose_method(server, secret) if is_given else client.method
    return ClientCredentials(client.client_id, secret, method, client.secret_expires_at)


def read_client_of_grant(client: OAuthClient | None, secrets: GrantSecrets) -> ClientCredentials | None:
    """As whom a person's grant is renewed and ended: a client of one's own is read from its row, which is
    `client`. Raises SealBroken.
    """
    is_given = client is not None and client.source == ClientSource.GIVEN
    if secrets.client is not None and not is_given:
        return secrets.client
    return read_client(client, secrets.server) if client and secrets.server else None


def seal_grant(grant: OAuthGrant, secrets: GrantSecrets) -> str:
    """The text for the row's `sealed`."""
    server = _describe_server(secrets.server) if secrets.server else None
    client = _describe_client(secrets.client) if secrets.client else None
    tokens = {"access_token": secrets.access_token, "refresh_token": secrets.refresh_token}
    return _seal({**tokens, "server": server, "client": client}, _grant_context(grant.server_id))


def read_grant(grant: OAuthGrant) -> GrantSecrets:
    """Raises SealBroken."""
    return open_grant(grant.server_id, grant.sealed)


def open_grant(server_id: int, sealed: str) -> GrantSecrets:
    """Raises SealBroken."""
    if not sealed:
        return GrantSecrets()
    opened = _unseal(sealed, _grant_context(server_id))
    server, client = opened["server"], opened.get("client")
    return GrantSecrets(
        opened["access_token"],
        opened["refresh_token"],
        _read_server(server) if server else None,
        ClientCredentials(**client) if client else None,
    )


def renewed_secrets(secrets: GrantSecrets, server: AuthorizationServer, tokens: Tokens) -> GrantSecrets:
    """With new tokens. No new refresh token means that the former one is still good."""
    refresh_token = tokens.refresh_token or secrets.refresh_token
    return replace(secrets, access_token=tokens.access_token, refresh_token=refresh_token, server=server)


def seal_attempt(attempt: OAuthAttempt, secrets: AttemptSecrets) -> None:
    """Set it on the row; it is bound to the row's state."""
    request = secrets.request
    attempt.sealed = _seal(
        {
            "server": _describe_server(request.server),
            "state": request.state,
            "verifier": request.verifier,
            "redirect_uri": request.redirect_uri,
            "scopes": list(request.scopes),
            "client": _describe_client(secrets.client),
            "address_sha256": secrets.address_sha256,
        },
        _attempt_context(attempt),
    )


def read_attempt(attempt: OAuthAttempt) -> AttemptSecrets:
    """Raises SealBroken."""
    opened = _unseal(attempt.sealed, _attempt_context(attempt))
    request = SignInRequest(
        server=_read_server(opened["server"]),
        state=opened["state"],
        verifier=opened["verifier"],
        redirect_uri=opened["redirect_uri"],
        scopes=tuple(opened["scopes"]),
    )
    return AttemptSecrets(request, ClientCredentials(**opened["client"]), opened["address_sha256"])


def _describe_server(server: AuthorizationServer) -> dict[str, Any]:
    return {**asdict(server), "metadata": dict(server.metadata), "scopes": list(server.scopes)}


def _describe_client(client: ClientCredentials) -> dict[str, str]:
    return {"client_id": client.client_id, "secret": client.secret, "method": client.method}


def _read_server(stored: Mapping[str, Any]) -> AuthorizationServer:
    return AuthorizationServer(**{**stored, "scopes": tuple(stored["scopes"])})


def _seal(mapping: Mapping[str, Any], context: str) -> str:
    return Sealer(settings.ENCRYPTION_KEYS).seal(mapping, context=context)


def _unseal(sealed: str, context: str) -> dict[str, Any]:
    return Sealer(settings.ENCRYPTION_KEYS).unseal(sealed, context=context)


def _client_context(client: OAuthClient) -> str:
    return f"oauth_client:{client.server_id}"


def _grant_context(server_id: int) -> str:
    return f"oauth_grant:{server_id}"


def _attempt_context(attempt: OAuthAttempt) -> str:
    return f"oauth_attempt:{attempt.state_sha256}"
