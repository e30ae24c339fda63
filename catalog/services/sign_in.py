"""Connects servers that need a sign-in: an admin goes to the provider and comes back with a grant.

As which client is in `oauth_clients.py`, what happens to the tokens afterwards in `access_tokens.py`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from django.utils import timezone

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import AuthKind, AuthState
from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.errors import Conflict, ToolSearchError
from catalog.domain.limits import OAUTH_SCOPES
from catalog.domain.oauth import AuthorizationServer, Tokens
from catalog.models import OAuthAttempt, OAuthClient, OAuthGrant, Server
from catalog.models.changes import Subject
from catalog.models.oauth import ClientSource
from catalog.services import (
    access_tokens,
    changes,
    connections,
    grant_endings,
    grant_renewal,
    oauth_clients,
    oauth_rows,
    refresh,
)
from catalog.services.catalog_lock import lock_catalog
from catalog.services.oauth_clients import WayBack
from catalog.services.oauth_rows import AttemptSecrets, GrantSecrets
from catalog.upstream import oauth

BEGIN_SECONDS = 15.0  # to find out who signs people in, and to register there
ATTEMPT_LASTS = timedelta(minutes=10)
STALE = "This sign-in is not under way here any more: connect again from the server's page"


class SignInFailed(ToolSearchError):
    """A sign-in came back without a grant. The message is for the admin who went."""

    status = 400
    title = "The sign-in did not succeed"


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
    """Find out where to sign in, and as which client, within 15 s. Call outside of a transaction.

    Raises UpstreamFailure where there is no way to sign in.
    """
    actors.require(actor, Role.ADMIN)
    assert actor.user is not None
    oauth_clients.require_remote(server)
    connection = connections.read_connection(server)
    grant = OAuthGrant.objects.filter(server=server).first()
    own = OAuthClient.objects.filter(server=server, source=ClientSource.GIVEN).first()
    url, network = grant_renewal.resolved_address(connection), grant_renewal.read_network()
    network = network.within(BEGIN_SECONDS)
    found = oauth.discover(
        url,
        grant_renewal.challenge_of(grant),
        network,
        issuer=own.issuer if own else "",
        pkce_unlisted=bool(own and own.pkce_unlisted),
    )
    scopes = _join_scopes(tuple(own.scopes) if own else (), found, grant)
    client = oauth_clients.find_client(server, replace(found, scopes=scopes), way_back, network)
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
            opened.request, opened.client, answer["code"], grant_renewal.read_network()
        )
    except UpstreamFailure as failure:
        if failure.code is FailureCode.CLIENT_REFUSED:
            oauth_clients.drop_registration(attempt.server_id, opened.client.client_id)
        raise
    return _store_grant(attempt.server_id, opened, tokens, actor)


def obtain_own_token(*, server: Server, actor: actors.Actor) -> None:
    """Connect a server whose client gets tokens without a person. Raises UpstreamFailure."""
    actors.require(actor, Role.ADMIN)
    grant, _ = OAuthGrant.objects.get_or_create(server=server)
    grant_endings.clear_grant(grant)
    access_tokens.fresh_access_token(server)
    with lock_catalog():
        grant_endings.ask_anew(server)


def disconnect(*, server: Server, actor: actors.Actor) -> bool:
    """Forget the tokens, and tell the provider so. Returns whether it took note of that.

    Blocks for some seconds; call outside of a transaction. Raises Conflict where nothing is ended by it.
    """
    actors.require(actor, Role.ADMIN)
    with lock_catalog():
        if OAuthClient.objects.filter(server=server, kind=AuthKind.CLIENT_CREDENTIALS).exists():
            raise Conflict(
                f"{server.name} is connected without a person, by its client id, and the next refresh would "
                "connect it again: remove the client id (by REST, give the kind none), or disable the server"
            )
        grant = OAuthGrant.objects.select_for_update().filter(server=server).first()
        if grant is None or not grant.sealed:
            raise Conflict(f"{server.name} is not connected")
        before, revoke = grant_renewal.describe_grant(grant), grant_endings.prepare_revocation(grant)
        grant_endings.clear_grant(grant)
        changes.record_change(
            actor=actor,
            subject=Subject.SERVER,
            name=server.name,
            before=before,
            after={"signIn": AuthState.NONE},
        )
        if server.enabled:
            refresh.request_refresh(server=server)
    return revoke()


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
    grant_renewal.store_tokens(grant, GrantSecrets(client=opened.client), tokens, opened.request.server)
    grant.state = AuthState.CONNECTED
    grant.address_sha256 = opened.address_sha256
    grant.connected_by, grant.connected_at = actor.label, grant.obtained_at
    grant.save()
    grant_endings.ask_anew(server)
    changes.record_change(
        actor=actor,
        subject=Subject.SERVER,
        name=server.name,
        before={"signIn": before},
        after=grant_renewal.describe_grant(grant),
    )
    return server


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


def digest_state(state: str) -> str:
    """By which an attempt is found: the state itself stays with the browser and the provider."""
    return hashlib.sha256(state.encode()).hexdigest()
