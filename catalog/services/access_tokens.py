"""Access tokens of servers that were signed in to: used while good, renewed by one process at a time.

A refresh token that is used twice ends the whole grant. So whoever renews holds the grant's row for longer
than a request may take, while no transaction is open; everybody else goes on with the token that is still
good, or waits for the new one.
"""

import os
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from catalog.access import actors
from catalog.domain.addresses import AddressRules
from catalog.domain.choices import AuthKind, AuthState, Transport
from catalog.domain.connection import Connection, FailureCode, UpstreamFailure, resolve
from catalog.domain.oauth import AuthorizationServer, Challenge, Tokens, is_renewal_due
from catalog.domain.references import ReferenceRules
from catalog.models import OAuthClient, OAuthGrant, Server
from catalog.models.changes import Subject
from catalog.models.oauth import ClientSource
from catalog.process_memory import remember
from catalog.sealing import SealBroken
from catalog.services import changes, connections, oauth_rows
from catalog.services.catalog_lock import lock_catalog
from catalog.services.oauth_rows import GrantSecrets
from catalog.upstream import oauth

HOLD = timedelta(seconds=30)  # longer than a renewal may take: two at once would end the grant
WAIT_SECONDS = 15.0
TOKENS_KEPT = 500
PAUSE_SECONDS = (0.05, 0.15)
REST = timedelta(seconds=30)  # after the authorization server failed; longer where it asks for that
LONGEST_REST = timedelta(hours=1)
ENDED = "The provider ended this connection (expired, revoked or withdrawn): connect again"
OFFLINE = "offline_access"  # a scope for renewing without the person who signed in
_ENDING = frozenset({FailureCode.RECONNECT_NEEDED, FailureCode.CLIENT_REFUSED})

T = TypeVar("T")


def ask_signed_in(server: Server, ask: Callable[[str], T]) -> T:
    """Ask a server with the token for it, empty where there is none, and once more with a renewed one where
    it refuses the first.

    Raises UpstreamFailure. What the server says that it needs is stored.
    """
    token = fresh_access_token(server)
    try:
        return ask(token)
    except UpstreamFailure as failure:
        token = renew_refused_token(server, token, failure)
    try:
        return ask(token)
    except UpstreamFailure as failure:
        raise end_refused_grant(server, token, failure) from None


def fresh_access_token(server: Server, *, refused: str = "") -> str:
    """The token to send to a server; empty where nobody has signed in to it.

    It is for the address that the given row has, which the stored one may not have any more. `refused` is one
    that the server did not take though it should be good: it is renewed. Blocks for at most some seconds, and
    must not be called in a transaction. Raises UpstreamFailure.
    """
    url, give_up_at = _read_address(server), time.monotonic() + WAIT_SECONDS
    while True:
        grant = _read_grant(server)
        client = _client_of(grant)
        if grant is None or not _is_for_address(grant, client, url):
            return ""
        if grant.state == AuthState.RECONNECT_NEEDED:
            if _has_own_token(grant):
                return ""
            raise UpstreamFailure(FailureCode.RECONNECT_NEEDED, grant.last_error or ENDED)
        secrets, now = _read_secrets(grant), timezone.now()
        token = secrets.access_token
        is_good = bool(token) and token != refused and not _has_expired(grant, now)
        if is_good and not _is_due(grant, now):
            return token
        renewed = None if _is_resting(grant, now) else _try_renew(grant, client, secrets, is_good=is_good)
        if renewed or is_good:
            return renewed or token
        if _is_resting(grant, now) or time.monotonic() > give_up_at:
            raise UpstreamFailure(
                FailureCode.SIGN_IN_SERVER_DOWN, grant.last_error or "The token could not be renewed in time"
            )
        pause()


def pause() -> None:
    """Before the row is looked at again; of varying length, so that waiting processes do not keep step."""
    time.sleep(random.uniform(*PAUSE_SECONDS))  # noqa: S311  no secret


def find_server_at(server_id: int, url: str) -> Server:
    """The row of a server that is called at this address. Raises UpstreamFailure where it has another now."""
    server = Server.objects.filter(pk=server_id).first()
    if server is None or _read_address(server) != url:
        raise UpstreamFailure(FailureCode.CLOSED, "The server's address was changed during the call")
    return server


def find_good_token(grant: OAuthGrant, url: str) -> str | None:
    """The stored token if it can be used as it is, empty where nobody has signed in; None where
    `fresh_access_token` has to say. Raises SealBroken.
    """
    if grant.state == AuthState.SIGN_IN_NEEDED:
        return ""
    if grant.state not in (AuthState.CONNECTED, AuthState.SCOPE_NEEDED) or _is_due(grant, timezone.now()):
        return None
    if grant.address_sha256 != oauth_rows.address_digest(url):
        return ""
    return _open_token(grant.server_id, grant.sealed)


@lru_cache(maxsize=TOKENS_KEPT)
def _open_token(server_id: int, sealed: str) -> str:
    """Kept, because unsealing takes longer than reading the row."""
    return oauth_rows.open_grant(server_id, sealed).access_token


remember("access tokens of servers that were called", _open_token.cache_clear)


def renew_refused_token(server: Server, token: str, failure: UpstreamFailure) -> str:
    """Another token, for one more try after a server refused this one. Stores what the server asks for.

    Raises UpstreamFailure: the given one, where no other token would help.
    """
    if failure.challenge is None:
        raise failure
    if failure.code is FailureCode.SCOPE_NEEDED:
        _store_missing_scopes(server, token, failure.challenge)
        raise failure
    if not token:
        _store_need(server, failure.challenge, AuthState.SIGN_IN_NEEDED)
    other = fresh_access_token(server, refused=token)
    if not other or other == token:
        raise failure
    return other


def end_refused_grant(server: Server, token: str, failure: UpstreamFailure) -> UpstreamFailure:
    """The failure after a server refused a token that had just been renewed."""
    if failure.code is FailureCode.SCOPE_NEEDED and failure.challenge:
        _store_missing_scopes(server, token, failure.challenge)
    if failure.code is not FailureCode.SIGN_IN_NEEDED:
        return failure
    grant = OAuthGrant.objects.filter(server=server).first()
    ended = UpstreamFailure(FailureCode.RECONNECT_NEEDED, ENDED)
    if grant is not None and _read_secrets(grant).access_token == token:
        _end(grant, ended)
    return ended


def forget_need(server: Server) -> None:
    """A server that asked for a sign-in answers without one again."""
    asking = OAuthGrant.objects.filter(server=server, state=AuthState.SIGN_IN_NEEDED)
    asking.update(state=AuthState.NONE)


def resolved_address(connection: Connection) -> str:
    """A server's address with its references filled in. Raises UpstreamFailure."""
    rules = ReferenceRules(allowed=settings.REFERENCES, own_values=settings.OWN_SECRETS)
    return resolve(connection, os.environ, rules).url


def read_network() -> oauth.Network:
    return oauth.Network(AddressRules(allow_private=settings.PRIVATE_ADDRESSES_ALLOWED))


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


def _read_grant(server: Server) -> OAuthGrant | None:
    """With its server and client. A client that needs nobody to sign in may have none yet, as in an instance
    that was restored.
    """
    grants = OAuthGrant.objects.select_related("server__oauth_client").filter(server=server)
    found = grants.first()
    own = OAuthClient.objects.filter(server=server, kind=AuthKind.CLIENT_CREDENTIALS)
    if found is None and own.exists():
        OAuthGrant.objects.get_or_create(server=server)
        found = grants.first()
    return found


def _client_of(grant: OAuthGrant | None) -> OAuthClient | None:
    return getattr(grant.server, "oauth_client", None) if grant else None


def _read_address(server: Server) -> str:
    try:
        return connections.read_connection(server).url
    except SealBroken as broken:
        raise UpstreamFailure(FailureCode.SECRETS_UNREADABLE, str(broken)) from None


def _is_for_address(grant: OAuthGrant, client: OAuthClient | None, url: str) -> bool:
    """Whether there are tokens for this address, or can be without a person."""
    row = grant.server
    if row.transport not in (Transport.HTTP, Transport.SSE):
        return False
    has_address = grant.address_sha256 != ""  # not before a client's own first token
    if has_address and (grant.sealed or grant.state == AuthState.RECONNECT_NEEDED):
        return grant.address_sha256 == oauth_rows.address_digest(url)
    is_own = client is not None and client.kind == AuthKind.CLIENT_CREDENTIALS
    return is_own and _read_address(row) == url


def _has_own_token(grant: OAuthGrant) -> bool:
    """Whether an admin has given the server a token as a header, which serves in place of a sign-in."""
    headers = connections.read_connection(grant.server).headers
    return "authorization" in {name.lower() for name in headers}


def _read_secrets(grant: OAuthGrant) -> GrantSecrets:
    try:
        return oauth_rows.read_grant(grant)
    except SealBroken as broken:
        raise UpstreamFailure(FailureCode.SECRETS_UNREADABLE, str(broken)) from None


def _is_due(grant: OAuthGrant, now: datetime) -> bool:
    if grant.obtained_at is None:
        return True
    return is_renewal_due(now=now, obtained_at=grant.obtained_at, expires_at=grant.expires_at)


def _has_expired(grant: OAuthGrant, now: datetime) -> bool:
    return grant.expires_at is not None and now >= grant.expires_at


def _is_resting(grant: OAuthGrant, now: datetime) -> bool:
    return grant.rest_until is not None and now < grant.rest_until


def _try_renew(
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
        _end(grant, ended)
        raise ended
    if not _claim(grant):
        return None
    try:
        server, tokens = _obtain(grant, client, secrets)
    except UpstreamFailure as failure:
        if failure.code in _ENDING:
            _end(grant, failure)
            raise UpstreamFailure(FailureCode.RECONNECT_NEEDED, failure.message) from None
        _rest(grant, failure)
        if is_good:
            return None
        raise
    except SealBroken as broken:
        raise UpstreamFailure(FailureCode.SECRETS_UNREADABLE, str(broken)) from None
    return _store(grant, secrets, tokens, server)


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


def _discover(grant: OAuthGrant, client: OAuthClient, network: oauth.Network) -> AuthorizationServer:
    url = resolved_address(connections.read_connection(grant.server))
    # Nobody is sent anywhere, so it does not matter whether the way there is protected by PKCE.
    return oauth.discover(url, challenge_of(grant), network, issuer=client.issuer, pkce_unlisted=True)


def challenge_of(grant: OAuthGrant | None) -> Challenge:
    """What the server said when it last asked for a sign-in."""
    if grant is None:
        return Challenge()
    return Challenge(grant.resource_metadata, tuple(grant.needed_scopes))


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
    if grant.state != AuthState.SCOPE_NEEDED:
        state["state"] = AuthState.CONNECTED
    if grant.connected_at is None:  # a client's own token: nobody signed in
        url = connections.read_connection(grant.server).url
        state |= {"connected_at": grant.obtained_at, "address_sha256": oauth_rows.address_digest(url)}
    values = {name: getattr(grant, name) for name in fields}
    released = {"holder": "", "held_until": None, "rest_until": None, "last_error": ""}
    is_stored = held.update(**values, **released, **state) == 1
    return tokens.access_token if is_stored else None


def _rest(grant: OAuthGrant, failure: UpstreamFailure) -> None:
    rest = min(max(REST, timedelta(seconds=failure.retry_after_seconds)), LONGEST_REST)
    OAuthGrant.objects.filter(pk=grant.pk, holder=grant.holder).update(
        holder="", held_until=None, rest_until=timezone.now() + rest, last_error=failure.message
    )


@lock_catalog()
def _end(grant: OAuthGrant, failure: UpstreamFailure) -> None:
    """The grant cannot be used any more, and an admin has to sign in again: told once, not retried."""
    row = OAuthGrant.objects.filter(pk=grant.pk, generation=grant.generation).first()
    if row is None or row.state == AuthState.RECONNECT_NEEDED:
        return
    now, before = timezone.now(), row.state
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
        before={"signIn": before},
        after={"signIn": AuthState.RECONNECT_NEEDED},
    )


def _store_missing_scopes(server: Server, token: str, challenge: Challenge) -> None:
    """A token of before says nothing of the present one: an admin may have granted more meanwhile."""
    if not token:
        _store_need(server, challenge, AuthState.SIGN_IN_NEEDED)
        return
    grant = OAuthGrant.objects.filter(server=server).first()
    if grant is not None and _read_secrets(grant).access_token == token:
        _store_need(server, challenge, AuthState.SCOPE_NEEDED)


def _store_need(server: Server, challenge: Challenge, state: AuthState) -> None:
    """What the server asks for, kept for whoever signs in. A grant that is good stays as it is."""
    needed = {"resource_metadata": challenge.resource_metadata, "needed_scopes": list(challenge.scopes)}
    grant, is_new = OAuthGrant.objects.get_or_create(server=server, defaults={"state": state, **needed})
    has_grant = grant.state in (AuthState.CONNECTED, AuthState.SCOPE_NEEDED, AuthState.RECONNECT_NEEDED)
    wanted = grant.state if has_grant and state is AuthState.SIGN_IN_NEEDED else state
    present = {name: getattr(grant, name) for name in (*needed, "state")}
    if not is_new and present != {**needed, "state": wanted}:
        # Not where somebody has connected meanwhile.
        OAuthGrant.objects.filter(pk=grant.pk, generation=grant.generation).update(state=wanted, **needed)
