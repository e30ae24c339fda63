"""Connects servers that need a sign-in: an admin goes to the provider and comes back with a grant.

What happens to the tokens afterwards is in `access_tokens.py`.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import AuthKind, AuthState, Transport
from catalog.domain.connection import SIGN_IN_CODES, FailureCode, UpstreamFailure
from catalog.domain.errors import Conflict, InvalidInput, ToolSearchError
from catalog.domain.limits import OAUTH_SCOPES, OAUTH_TOKEN_CHARS
from catalog.domain.oauth import (
    AuthorizationServer,
    ClientCredentials,
    Tokens,
    is_address,
    is_credential,
    is_private_key,
    is_scope,
)
from catalog.domain.problems import Problems
from catalog.models import OAuthAttempt, OAuthClient, OAuthGrant, Server
from catalog.models.changes import Subject
from catalog.models.oauth import ClientSource
from catalog.sealing import SealBroken
from catalog.services import access_tokens, changes, connections, oauth_rows, refresh
from catalog.services.catalog_lock import lock_catalog
from catalog.services.oauth_rows import AttemptSecrets, GrantSecrets
from catalog.upstream import oauth, oauth_discovery

CLIENT_FIELDS = ("signInKind", "signInIssuer", "clientId", "clientScopes", "clientSecret", "pkceUnlisted")
ATTEMPT_LASTS = timedelta(minutes=10)
STALE = "This sign-in is not under way here any more: connect again from the server's page"


class SignInFailed(ToolSearchError):
    """A sign-in came back without a grant. The message is for the admin who went."""

    status = 400
    title = "The sign-in did not succeed"


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


@dataclass(frozen=True, slots=True)
class Departure:
    """What an admin is told before leaving. `url` is where to."""

    attempt: OAuthAttempt
    host: str
    scopes: tuple[str, ...]
    client_source: str
    redirect_uri: str
    url: str


def begin(*, server: Server, actor: actors.Actor, way_back: WayBack) -> OAuthAttempt:
    """Find out where to sign in, and as which client. Blocks for some seconds; call outside of a transaction.

    Raises UpstreamFailure where there is no way to sign in.
    """
    actors.require(actor, Role.ADMIN)
    assert actor.user is not None
    _require_remote(server)
    connection = connections.read_connection(server)
    grant = OAuthGrant.objects.filter(server=server).first()
    own = OAuthClient.objects.filter(server=server, source=ClientSource.GIVEN).first()
    network, url = access_tokens.read_network(), access_tokens.resolved_address(connection)
    found = oauth.discover(
        url,
        access_tokens.challenge_of(grant),
        network,
        issuer=own.issuer if own else "",
        pkce_unlisted=bool(own and own.pkce_unlisted),
    )
    scopes = _join_scopes(tuple(own.scopes) if own else (), found, grant)
    client = _find_client(server, replace(found, scopes=scopes), way_back, network)
    request = oauth.begin(found, way_back.redirect_uri, scopes)
    attempt = OAuthAttempt(
        state_sha256=digest_state(request.state),
        server=server,
        user=actor.user,
        expires_at=timezone.now() + ATTEMPT_LASTS,
    )
    digest = oauth_rows.address_digest(connection.url)
    oauth_rows.seal_attempt(attempt, AttemptSecrets(request, client, digest))
    attempt.save()
    return attempt


def find_departure(*, state_sha256: str, actor: actors.Actor) -> Departure:
    """Raises SignInFailed where it is not this admin's, or has expired."""
    actors.require(actor, Role.ADMIN)
    attempt = _find_attempt(state_sha256, actor)
    opened = oauth_rows.read_attempt(attempt)
    client = OAuthClient.objects.filter(server=attempt.server).first()
    return Departure(
        attempt=attempt,
        host=opened.request.server.host,
        scopes=opened.request.scopes,
        client_source=client.source if client else "",
        redirect_uri=opened.request.redirect_uri,
        url=oauth.write_authorization_url(opened.request, opened.client.client_id),
    )


def finish(*, answer: Mapping[str, str], actor: actors.Actor) -> Server:
    """Exchange what the provider sent along for tokens, once. The caller has checked that the state belongs
    to this browser, and wakes the workers.

    Raises SignInFailed, and UpstreamFailure where the provider gives no token.
    """
    actors.require(actor, Role.ADMIN)
    attempt = _find_attempt(digest_state(answer.get("state", "")), actor)
    opened = oauth_rows.read_attempt(attempt)
    count, _ = OAuthAttempt.objects.filter(pk=attempt.pk).delete()
    if count != 1:
        raise SignInFailed(STALE)
    if error := answer.get("error"):
        raise SignInFailed(_explain_error(error, opened.request.server.host))
    found = opened.request.server
    oauth.require_issuer(found, answer.get("iss"))
    if not answer.get("code"):
        raise SignInFailed(f"{found.host} sent no code along: connect again")
    try:
        tokens = oauth.exchange_code(
            opened.request, opened.client, answer["code"], access_tokens.read_network()
        )
    except UpstreamFailure as failure:
        if failure.code is FailureCode.CLIENT_REFUSED:
            _drop_registration(attempt.server_id, opened.client.client_id)
        raise
    return _store_grant(attempt.server_id, opened, tokens, actor)


def obtain_own_token(*, server: Server, actor: actors.Actor) -> None:
    """Connect a server whose client gets tokens without a person. Raises UpstreamFailure."""
    actors.require(actor, Role.ADMIN)
    grant, _ = OAuthGrant.objects.get_or_create(server=server)
    _clear_grant(grant)
    access_tokens.fresh_access_token(server)
    with lock_catalog():
        _ask_anew(server)


def disconnect(*, server: Server, actor: actors.Actor) -> bool:
    """Forget the tokens, and tell the provider so. Returns whether it took note of that.

    Blocks for some seconds; call outside of a transaction.
    """
    actors.require(actor, Role.ADMIN)
    with lock_catalog():
        grant = OAuthGrant.objects.select_for_update().filter(server=server).first()
        if grant is None or not grant.sealed:
            raise Conflict(f"{server.name} is not connected")
        before, revoke = str(grant.state), _prepare_revocation(grant)
        _clear_grant(grant)
        _record(server, actor, {"signIn": before}, {"signIn": AuthState.NONE})
        if server.enabled:
            refresh.request_refresh(server=server)
    return revoke()


def _prepare_revocation(grant: OAuthGrant) -> Callable[[], bool]:
    """What tells the provider that a grant is not used any more, for when it has been forgotten here."""
    client = OAuthClient.objects.filter(server=grant.server_id).first()
    try:
        secrets = oauth_rows.read_grant(grant)
        found, token = secrets.server, secrets.refresh_token or secrets.access_token
        credentials = oauth_rows.read_client_of_grant(client, secrets)
    except SealBroken:
        return lambda: False
    if found is None or credentials is None or not token:
        return lambda: False
    return partial(
        oauth.revoke,
        found,
        credentials,
        token,
        is_refresh=bool(secrets.refresh_token),
        network=access_tokens.read_network(),
    )


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
    _require_remote(server)
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
    _end_with_client(server)
    if wanted.kind is AuthKind.CLIENT_CREDENTIALS:
        OAuthGrant.objects.get_or_create(server=server)
    _record(server, actor, before, after)


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
        before, after = {**before, "signIn": str(grant.state)}, {**after, "signIn": AuthState.NONE}
        transaction.on_commit(_prepare_revocation(grant), robust=True)
    OAuthClient.objects.filter(server=server).delete()
    _end_with_client(server)
    _record(server, actor, before, after)


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


def forget_address(server: Server, *, keeps_client: bool) -> None:
    """What belonged to the address that a server had: its grant, its registration and what is under way.

    A client of one's own stays where the server stays on its host. Call with the catalog locked.
    """
    OAuthGrant.objects.filter(server=server).delete()
    OAuthAttempt.objects.filter(server=server).delete()
    clients = OAuthClient.objects.filter(server=server)
    (clients.exclude(source=ClientSource.GIVEN) if keeps_client else clients).delete()
    if keeps_client and clients.filter(kind=AuthKind.CLIENT_CREDENTIALS).exists():
        OAuthGrant.objects.create(server=server)


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


def _find_client(
    server: Server, found: AuthorizationServer, way_back: WayBack, network: oauth.Network
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


def _drop_registration(server_id: int, client_id: str) -> None:
    registered = OAuthClient.objects.filter(server=server_id, client_id=client_id)
    registered.filter(source=ClientSource.REGISTERED).delete()


def _join_scopes(
    own: tuple[str, ...], found: AuthorizationServer, grant: OAuthGrant | None
) -> tuple[str, ...]:
    """Those that an admin wants or the server asks for, and those that were asked for before: a server may
    name in its challenge those alone that one call lacked.
    """
    wanted, listed = own or found.scopes, found.lists("scopes_supported")
    if grant is not None and grant.state == AuthState.SCOPE_NEEDED:
        wanted = (*grant.asked_scopes, *grant.granted_scopes, *wanted, *grant.needed_scopes)
    elif grant is not None and grant.issuer == found.issuer:
        wanted = (*(one for one in grant.asked_scopes if listed is None or one in listed), *wanted)
    return tuple(dict.fromkeys(wanted))[:OAUTH_SCOPES]


@lock_catalog()
def _store_grant(server_id: int, opened: AttemptSecrets, tokens: Tokens, actor: actors.Actor) -> Server:
    server = Server.objects.filter(pk=server_id).first()
    if server is None:
        raise SignInFailed("The server was removed meanwhile")
    if oauth_rows.address_digest(connections.read_connection(server).url) != opened.address_sha256:
        raise SignInFailed("The server's address was changed meanwhile: connect again")
    grant, _ = OAuthGrant.objects.select_for_update().get_or_create(server=server)
    before = grant.state
    grant.granted_scopes = list(opened.request.scopes)
    grant.asked_scopes = list(opened.request.scopes)
    access_tokens.store_tokens(grant, GrantSecrets(client=opened.client), tokens, opened.request.server)
    grant.state = AuthState.CONNECTED
    grant.address_sha256 = opened.address_sha256
    grant.connected_by, grant.connected_at = actor.label, grant.obtained_at
    grant.save()
    _ask_anew(server)
    scopes = " ".join(grant.granted_scopes)
    _record(
        server,
        actor,
        {"signIn": before},
        {"signIn": AuthState.CONNECTED, "issuer": grant.issuer, "scopes": scopes},
    )
    return server


def _ask_anew(server: Server) -> None:
    """That a sign-in was needed before says nothing of what comes after it."""
    rows = Server.objects.filter(pk=server.pk)
    rows.filter(last_error_code__in=SIGN_IN_CODES).update(
        failures=0, last_error_code="", last_error="", stale_since=None
    )
    rows.update(next_refresh_at=timezone.now())
    if server.enabled:
        refresh.request_refresh(server=server)


def _clear_grant(grant: OAuthGrant) -> None:
    """Keeps what the server asks for, so that one can connect again."""
    OAuthGrant.objects.filter(pk=grant.pk).update(
        state=AuthState.NONE,
        sealed="",
        issuer="",
        asked_scopes=[],
        granted_scopes=[],
        connected_by="",
        connected_at=None,
        obtained_at=None,
        expires_at=None,
        renews=False,
        generation=F("generation") + 1,
        holder="",
        held_until=None,
        rest_until=None,
        last_error="",
    )


def _end_with_client(server: Server) -> None:
    """A grant belongs to the client that it was given to."""
    grant = OAuthGrant.objects.filter(server=server).first()
    if grant is not None:
        _clear_grant(grant)
    OAuthAttempt.objects.filter(server=server).delete()
    _ask_anew(server)


def _find_attempt(state_sha256: str, actor: actors.Actor) -> OAuthAttempt:
    found = OAuthAttempt.objects.select_related("server").filter(
        state_sha256=state_sha256, user=actor.user, expires_at__gt=timezone.now()
    )
    attempt = found.first()
    if attempt is None:
        raise SignInFailed(STALE)
    return attempt


def _explain_error(error: str, host: str) -> str:
    """Of the provider's own text nothing is shown."""
    if error == "access_denied":
        return f"You did not allow it at {host}: nothing was changed"
    if error == "invalid_scope":
        return f"{host} does not grant the scopes that were asked for: nothing was changed"
    if error in {"temporarily_unavailable", "server_error"}:
        return f"{host} cannot sign you in now: try again later"
    return f"{host} refused the sign-in: nothing was changed"


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


def _require_remote(server: Server) -> None:
    if server.transport not in (Transport.HTTP, Transport.SSE):
        raise InvalidInput.at("auth", "is for servers with an address: a command takes variables")


def _record(
    server: Server, actor: actors.Actor, before: Mapping[str, object], after: Mapping[str, object]
) -> None:
    changes.record_change(actor=actor, subject=Subject.SERVER, name=server.name, before=before, after=after)


def digest_state(state: str) -> str:
    """By which an attempt is found: the state itself stays with the browser and the provider."""
    return hashlib.sha256(state.encode()).hexdigest()
