"""Clients as which this console signs in: one's own, the one that it describes itself as, registered ones."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import AuthKind, AuthState, Transport
from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.errors import InvalidInput
from catalog.domain.limits import OAUTH_SCOPES, OAUTH_TOKEN_CHARS
from catalog.domain.oauth import (
    AuthorizationServer,
    ClientCredentials,
    is_address,
    is_credential,
    is_private_key,
    is_scope,
)
from catalog.domain.problems import Problems
from catalog.models import OAuthClient, OAuthGrant, Server
from catalog.models.changes import Subject
from catalog.models.oauth import ClientSource
from catalog.sealing import SealBroken
from catalog.services import changes, grant_endings, grant_renewal, oauth_rows
from catalog.services.catalog_lock import lock_catalog
from catalog.upstream import oauth, oauth_discovery
from catalog.upstream.oauth_http import Network

CLIENT_FIELDS = ("signInKind", "signInIssuer", "clientId", "clientScopes", "clientSecret", "pkceUnlisted")


@dataclass(frozen=True, slots=True)
class WayBack:
    """Where the provider sends the browser. `document` is the address of this console's description as a
    client; empty where providers cannot read it.
    """

    redirect_uri: str
    others: tuple[str, ...] = ()
    home: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """A client of one's own. `client_secret` None keeps the stored one; it may be a private key as PEM."""

    kind: AuthKind
    issuer: str = ""
    client_id: str = ""
    client_secret: str | None = None
    scopes: tuple[str, ...] = ()
    pkce_unlisted: bool = False


def change_client(*, server: Server, given: Mapping[str, Any], actor: actors.Actor) -> None:
    """Change some fields of a client of one's own, or make one of them. Raises InvalidInput."""
    row = OAuthClient.objects.filter(server=server, source=ClientSource.GIVEN).first()
    known = ClientSettings(AuthKind.OAUTH)
    if row is not None:
        known = ClientSettings(
            kind=AuthKind(row.kind),
            issuer=row.issuer,
            client_id=row.client_id,
            scopes=tuple(row.scopes),
            pkce_unlisted=row.pkce_unlisted,
        )
    scopes = {"scopes": tuple(given["scopes"])} if "scopes" in given else {}
    set_client(server=server, wanted=replace(known, **{**given, **scopes}), actor=actor)


@lock_catalog()
def set_client(*, server: Server, wanted: ClientSettings, actor: actors.Actor) -> None:
    """Sign in to a server as a client of one's own; the kind `none` forgets the client and the sign-in.

    What another client was granted ends with that. The caller wakes the workers. Raises InvalidInput.
    """
    actors.require(actor, Role.ADMIN)
    if wanted.kind not in (AuthKind.OAUTH, AuthKind.CLIENT_CREDENTIALS):
        _forget_sign_in(server, wanted, actor)
        return
    row = OAuthClient.objects.select_for_update().filter(server=server, source=ClientSource.GIVEN).first()
    before = describe_client(row)
    had_secret = oauth_rows.read_client_secret(row) if row else ""
    require_remote(server)
    _check_client(wanted, row)
    secret = had_secret if wanted.client_secret is None else wanted.client_secret
    OAuthClient.objects.filter(server=server).exclude(source=ClientSource.GIVEN).delete()
    client = row or OAuthClient(server=server, source=ClientSource.GIVEN)
    client.kind, client.issuer, client.client_id = wanted.kind, wanted.issuer, wanted.client_id
    client.scopes, client.pkce_unlisted = list(wanted.scopes), wanted.pkce_unlisted
    oauth_rows.seal_client_secret(client, secret)
    after = describe_client(client)
    if before == after and had_secret == secret:
        return
    client.save()
    if had_secret and secret and had_secret != secret:
        after["clientSecret"] = "replaced"
    grant = OAuthGrant.objects.filter(server=server).first()
    if grant is not None and grant.sealed:
        before |= grant_renewal.describe_grant(grant)
        after["signIn"] = AuthState.NONE
    grant_endings.end_with_client(server)
    if wanted.kind is AuthKind.CLIENT_CREDENTIALS:
        OAuthGrant.objects.get_or_create(server=server)
    changes.record_change(actor=actor, subject=Subject.SERVER, name=server.name, before=before, after=after)


def _forget_sign_in(server: Server, wanted: ClientSettings, actor: actors.Actor) -> None:
    """A client that is given along with the kind `none` is a mistake."""
    if wanted.kind is AuthKind.HEADERS:
        raise InvalidInput.at("auth.kind", "is what a server with headers has: give the headers")
    row = OAuthClient.objects.filter(server=server, source=ClientSource.GIVEN).first()
    grant = OAuthGrant.objects.filter(server=server).first()
    if row is None and not (grant and grant.sealed):
        return
    before, after = describe_client(row), dict[str, object]()
    if grant is not None and grant.sealed:
        before, after = before | grant_renewal.describe_grant(grant), {"signIn": AuthState.NONE}
        transaction.on_commit(grant_endings.prepare_revocation(grant), robust=True)
    OAuthClient.objects.filter(server=server).delete()
    grant_endings.end_with_client(server)
    changes.record_change(actor=actor, subject=Subject.SERVER, name=server.name, before=before, after=after)


def describe_client(client: OAuthClient | None) -> dict[str, object]:
    """A client of one's own for the change record, without its secret; empty where there is none."""
    if client is None or client.source != ClientSource.GIVEN:
        return {}
    return {
        "signInKind": str(client.kind),
        "signInIssuer": client.issuer,
        "clientId": client.client_id,
        "clientScopes": " ".join(client.scopes),
        "clientSecret": "given" if client.sealed else "none",
        **({"pkceUnlisted": True} if client.pkce_unlisted else {}),
    }


def describe_edited_client(server: Server) -> dict[str, object]:
    """For the version of an edit: the same fields with and without a client, and the secret itself."""
    client: OAuthClient | None = getattr(server, "oauth_client", None)
    described = describe_client(client)
    if client is not None and described:
        try:
            described["clientSecret"] = oauth_rows.read_client_secret(client)
        except SealBroken:
            described["clientSecret"] = client.sealed
    return {**dict.fromkeys(CLIENT_FIELDS, ""), **described}


def describe_this_client() -> dict[str, object]:
    """This console as a client, for providers that read it at the address that is its client id."""
    home = settings.PUBLIC_URL
    return {
        "client_id": document_address(),
        "client_name": oauth.CLIENT_NAME,
        "client_uri": home,
        "redirect_uris": [f"{home}{settings.SIGN_IN_CALLBACK}"],
        "grant_types": list(oauth_discovery.GRANT_TYPES),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }


def document_address() -> str:
    return f"{settings.PUBLIC_URL}{settings.CLIENT_DOCUMENT_PATH}"


def find_client(
    server: Server, found: AuthorizationServer, way_back: WayBack, network: Network
) -> ClientCredentials:
    """One's own, then the document, then the registration of before, then a new one.

    The scopes of `found` are those that are asked for.
    """
    row = OAuthClient.objects.filter(server=server).first()
    if row is not None and row.source == ClientSource.GIVEN:
        if not oauth.is_same_issuer(row.issuer, found.issuer):
            raise UpstreamFailure(
                FailureCode.SIGN_IN_UNUSABLE, f"The client id is for {row.issuer}, not for {found.issuer}"
            )
        return oauth_rows.read_client(row, found)
    if way_back.document and (client := oauth.use_document(found, way_back.document)):
        _keep_client(server, found, ClientSource.DOCUMENT, client, [way_back.redirect_uri])
        return client
    if row is not None and _can_be_used_again(row, found, way_back):
        return oauth_rows.read_client(row, found)
    if not found.can_register:
        raise UpstreamFailure(
            FailureCode.SIGN_IN_UNUSABLE,
            f"{found.host} takes no clients that it does not know: create one there, with the redirect "
            f"address {way_back.redirect_uri}, and give its client id here",
        )
    redirect_uris = [way_back.redirect_uri, *way_back.others]
    client = oauth.register(found, redirect_uris, network, home=way_back.home)
    _keep_client(server, found, ClientSource.REGISTERED, client, redirect_uris)
    return client


def drop_registration(server_id: int, client_id: str) -> None:
    registered = OAuthClient.objects.filter(server=server_id, client_id=client_id)
    registered.filter(source=ClientSource.REGISTERED).delete()


def _can_be_used_again(row: OAuthClient, found: AuthorizationServer, way_back: WayBack) -> bool:
    is_registered = row.source == ClientSource.REGISTERED and row.issuer == found.issuer
    has_expired = row.secret_expires_at is not None and row.secret_expires_at <= timezone.now()
    # Some authorization servers let a client ask for no others than it registered for.
    may_ask = not row.scopes or set(found.scopes) <= set(row.scopes)
    return is_registered and may_ask and not has_expired and way_back.redirect_uri in row.redirect_uris


@transaction.atomic
def _keep_client(
    server: Server,
    found: AuthorizationServer,
    source: ClientSource,
    client: ClientCredentials,
    redirect_uris: list[str],
) -> None:
    row, _ = OAuthClient.objects.update_or_create(
        server=server,
        defaults={
            "kind": AuthKind.OAUTH,
            "source": source,
            "issuer": found.issuer,
            "client_id": client.client_id,
            "method": client.method,
            "redirect_uris": redirect_uris,
            "secret_expires_at": client.secret_expires_at,
            "scopes": list(found.scopes) if source == ClientSource.REGISTERED else [],
        },
    )
    oauth_rows.seal_client_secret(row, client.secret)
    row.save(update_fields=["sealed"])


def _check_client(wanted: ClientSettings, row: OAuthClient | None) -> None:
    problems = Problems()
    if not is_address(wanted.issuer):
        problems.add("auth.issuer", "must be the address of the authorization server that the client is for")
    if not is_credential(wanted.client_id):
        problems.add("auth.client_id", "must be one line of printable ASCII, without ${")
    secret = wanted.client_secret
    is_another = row is not None and (row.issuer, row.client_id) != (wanted.issuer, wanted.client_id)
    if secret is None and is_another and row and row.sealed:
        problems.add("auth.client_secret", "must be given again: the stored one is another client's")
    is_key = is_private_key(secret or "") and len(secret or "") <= OAUTH_TOKEN_CHARS
    if secret and not is_key and not is_credential(secret):
        problems.add("auth.client_secret", "must be one line of printable ASCII, or a private key as PEM")
    has_secret = bool(secret) or (secret is None and row is not None and bool(row.sealed))
    if wanted.kind is AuthKind.CLIENT_CREDENTIALS and not has_secret:
        problems.add("auth.client_secret", "is needed: without a person it is all there is to prove who asks")
    if len(wanted.scopes) > OAUTH_SCOPES or not all(map(is_scope, wanted.scopes)):
        problems.add("auth.scopes", f"must be at most {OAUTH_SCOPES} names without spaces and quotes")
    problems.raise_if_any()


def require_remote(server: Server) -> None:
    if server.transport not in (Transport.HTTP, Transport.SSE):
        raise InvalidInput.at("auth", "is for servers with an address: a command takes variables")
