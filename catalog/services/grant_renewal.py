"""Renews grants: whoever does holds the row meanwhile, stores the new tokens, and ends what was refused.

A refresh token that is used twice ends the whole grant. So the hold lasts longer than a request may take, and
no transaction is open during one.
"""

import os
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from catalog.access import actors
from catalog.domain.addresses import AddressRules
from catalog.domain.choices import AuthKind, AuthState
from catalog.domain.connection import Connection, FailureCode, UpstreamFailure, resolve
from catalog.domain.oauth import AuthorizationServer, Challenge, Tokens
from catalog.domain.references import ReferenceRules
from catalog.models import OAuthClient, OAuthGrant, Server
from catalog.models.changes import Subject
from catalog.models.oauth import ClientSource
from catalog.sealing import SealBroken
from catalog.services import changes, connections, oauth_rows
from catalog.services.catalog_lock import lock_catalog
from catalog.services.oauth_rows import GrantSecrets
from catalog.upstream import oauth
from catalog.upstream.oauth_http import Network

HOLD = timedelta(seconds=30)  # longer than a renewal may take: two at once would end the grant
REST = timedelta(seconds=30)  # after the authorization server failed; longer where it asks for that
LONGEST_REST = timedelta(hours=1)
ENDED = "The provider ended this connection (expired, revoked or withdrawn): connect again"
OFFLINE = "offline_access"  # a scope for renewing without the person who signed in
_ENDING = frozenset({FailureCode.RECONNECT_NEEDED, FailureCode.CLIENT_REFUSED})


def try_renew(
    grant: OAuthGrant, client: OAuthClient | None, secrets: GrantSecrets, *, is_good: bool
) -> str | None:
    """A new token; None where another process is getting one, or where the present one has to do.

    Raises UpstreamFailure where there is none to be had and the present one is not good either.
    """
    is_own = client is not None and client.kind == AuthKind.CLIENT_CREDENTIALS
    has_client = client is not None or secrets.client is not None
    if not has_client or not (is_own or secrets.refresh_token):
        if is_good:
            return None
        ended = UpstreamFailure(FailureCode.RECONNECT_NEEDED, ENDED)
        end_grant(grant, ended)
        raise ended
    if not _claim(grant):
        return None
    try:
        server, tokens = _obtain(grant, client, secrets)
    except UpstreamFailure as failure:
        if failure.code in _ENDING:
            end_grant(grant, failure)
            raise UpstreamFailure(FailureCode.RECONNECT_NEEDED, failure.message) from None
        _rest(grant, failure)
        if is_good:
            return None
        raise
    except SealBroken as broken:
        raise UpstreamFailure(FailureCode.SECRETS_UNREADABLE, str(broken)) from None
    return _store(grant, secrets, tokens, server)


def store_tokens(
    grant: OAuthGrant, secrets: GrantSecrets, tokens: Tokens, server: AuthorizationServer
) -> None:
    """Set new tokens on the row. Save it after."""
    now = timezone.now()
    kept = oauth_rows.renewed_secrets(secrets, server, tokens)
    grant.sealed = oauth_rows.seal_grant(grant, kept)
    grant.issuer = server.issuer
    grant.obtained_at = now
    seconds = tokens.expires_in_seconds
    grant.expires_at = None if seconds is None else now + timedelta(seconds=seconds)
    grant.renews = bool(kept.refresh_token)
    if tokens.scopes is not None or not grant.granted_scopes:
        grant.granted_scopes = list(grant.asked_scopes if tokens.scopes is None else tokens.scopes)
    grant.generation += 1
    grant.holder, grant.held_until, grant.rest_until, grant.last_error = "", None, None, ""


def describe_grant(grant: OAuthGrant) -> dict[str, object]:
    """For the change record: whose tokens, and for what, never a token."""
    scopes = " ".join(grant.granted_scopes)
    return {"signIn": str(grant.state), "issuer": grant.issuer, "scopes": scopes}


@lock_catalog()
def end_grant(grant: OAuthGrant, failure: UpstreamFailure) -> None:
    """The grant cannot be used any more, and an admin has to sign in again: told once, not retried."""
    row = OAuthGrant.objects.filter(pk=grant.pk, generation=grant.generation).first()
    if row is None or row.state == AuthState.RECONNECT_NEEDED:
        return
    now, before = timezone.now(), describe_grant(row)
    secrets = oauth_rows.read_grant(row)
    kept = replace(secrets, access_token="", refresh_token="", client=None)
    OAuthGrant.objects.filter(pk=row.pk).update(
        state=AuthState.RECONNECT_NEEDED,
        sealed=oauth_rows.seal_grant(row, kept),
        generation=F("generation") + 1,
        expires_at=None,
        renews=False,
        holder="",
        held_until=None,
        last_error=failure.message,
    )
    if failure.code is FailureCode.CLIENT_REFUSED:
        refused = OAuthClient.objects.filter(server=row.server_id).exclude(source=ClientSource.GIVEN)
        if secrets.client is not None:
            refused = refused.filter(client_id=secrets.client.client_id)
        refused.delete()
    server = Server.objects.get(pk=row.server_id)
    Server.objects.filter(pk=server.pk).update(
        failures=server.failures or 1,
        stale_since=server.stale_since or now,
        last_error_code=FailureCode.RECONNECT_NEEDED,
        last_error=failure.message,
        next_refresh_at=None,
    )
    changes.record_change(
        actor=actors.SYSTEM,
        subject=Subject.SERVER,
        name=server.name,
        before=before,
        after={"signIn": AuthState.RECONNECT_NEEDED},
    )


def challenge_of(grant: OAuthGrant | None) -> Challenge:
    """What the server said when it last asked for a sign-in."""
    if grant is None:
        return Challenge()
    return Challenge(grant.resource_metadata, tuple(grant.needed_scopes))


def resolved_address(connection: Connection) -> str:
    """A server's address with its references filled in. Raises UpstreamFailure."""
    rules = ReferenceRules(allowed=settings.REFERENCES, own_values=settings.OWN_SECRETS)
    return resolve(connection, os.environ, rules).url


def read_network() -> Network:
    return Network(AddressRules(allow_private=settings.PRIVATE_ADDRESSES_ALLOWED))


def _claim(grant: OAuthGrant) -> bool:
    """Whether this process may renew the grant now. Then the row is held, in its own words too."""
    now = timezone.now()
    holder, held_until = uuid.uuid4().hex, now + HOLD
    free = Q(held_until=None) | Q(held_until__lt=now)
    same = OAuthGrant.objects.filter(free, pk=grant.pk, generation=grant.generation)
    is_held = same.update(holder=holder, held_until=held_until) == 1
    if is_held:
        grant.holder, grant.held_until = holder, held_until
    return is_held


def _obtain(
    grant: OAuthGrant, client: OAuthClient | None, secrets: GrantSecrets
) -> tuple[AuthorizationServer, Tokens]:
    network = read_network()
    server = secrets.server
    if client is not None and client.kind == AuthKind.CLIENT_CREDENTIALS:
        if server is None:
            server = _discover(grant, client, network)
        _require_issuer(client, server)
        credentials = oauth_rows.read_client(client, server)
        grant.asked_scopes = client.scopes or grant.asked_scopes or _own_scopes(server, grant)
        return server, oauth.request_own_token(server, credentials, tuple(grant.asked_scopes), network)
    known = oauth_rows.read_client_of_grant(client, secrets)
    if server is None or known is None:
        raise UpstreamFailure(FailureCode.RECONNECT_NEEDED, ENDED)
    if client is not None and (client.source == ClientSource.GIVEN or secrets.client is None):
        _require_issuer(client, server)
    return server, oauth.renew(server, known, secrets.refresh_token, network)


def _own_scopes(server: AuthorizationServer, grant: OAuthGrant) -> list[str]:
    """What a client asks for that no admin has told. A renewal asks for the same again, and not for more."""
    return [one for one in dict.fromkeys((*server.scopes, *grant.needed_scopes)) if one != OFFLINE]


def _discover(grant: OAuthGrant, client: OAuthClient, network: Network) -> AuthorizationServer:
    url = resolved_address(connections.read_connection(grant.server))
    # Nobody is sent anywhere, so it does not matter whether the way there is protected by PKCE.
    return oauth.discover(url, challenge_of(grant), network, issuer=client.issuer, pkce_unlisted=True)


def _require_issuer(client: OAuthClient, server: AuthorizationServer) -> None:
    """A client's secret goes to nobody but who it is for."""
    if not oauth.is_same_issuer(client.issuer, server.issuer):
        raise UpstreamFailure(
            FailureCode.CLIENT_REFUSED, "The client belongs to another sign-in server: connect again"
        )


def _store(
    grant: OAuthGrant, secrets: GrantSecrets, tokens: Tokens, server: AuthorizationServer
) -> str | None:
    """None where the row was taken from us meanwhile: then what it says counts."""
    held = OAuthGrant.objects.filter(pk=grant.pk, holder=grant.holder, generation=grant.generation)
    store_tokens(grant, secrets, tokens, server)
    fields = (
        *("sealed", "issuer", "obtained_at", "expires_at", "renews", "generation"),
        *("asked_scopes", "granted_scopes"),
    )
    state: dict[str, Any] = {}
    if not _lacks_scopes(grant):
        state["state"] = AuthState.CONNECTED
    if grant.connected_at is None:  # a client's own token: nobody signed in
        url = connections.read_connection(grant.server).url
        state |= {"connected_at": grant.obtained_at, "address_sha256": oauth_rows.address_digest(url)}
    values = {name: getattr(grant, name) for name in fields}
    released = {"holder": "", "held_until": None, "rest_until": None, "last_error": ""}
    is_stored = held.update(**values, **released, **state) == 1
    return tokens.access_token if is_stored else None


def _lacks_scopes(grant: OAuthGrant) -> bool:
    """Whether the server has asked for more than its new token is good for, as far as that is known."""
    if grant.state != AuthState.SCOPE_NEEDED or grant.connected_at is None:
        return False
    return not grant.needed_scopes or not set(grant.needed_scopes) <= set(grant.granted_scopes)


def _rest(grant: OAuthGrant, failure: UpstreamFailure) -> None:
    """The authorization server gave no token now. Where it does not grant the scopes, that is the state."""
    rest = min(max(REST, timedelta(seconds=failure.retry_after_seconds)), LONGEST_REST)
    state = {"state": AuthState.SCOPE_NEEDED} if failure.code is FailureCode.SCOPE_NEEDED else {}
    OAuthGrant.objects.filter(pk=grant.pk, holder=grant.holder).update(
        holder="", held_until=None, rest_until=timezone.now() + rest, last_error=failure.message, **state
    )
