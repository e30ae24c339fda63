"""Access tokens of servers that were signed in to: used while good, renewed by one process at a time.

While one renews, everybody else goes on with the token that is still good, or waits for the new one. How that
is done is in `grant_renewal.py`.
"""

import random
import time
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

from django.utils import timezone

from catalog.domain.choices import AuthKind, AuthState, Transport
from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.oauth import Challenge, is_renewal_due
from catalog.models import OAuthClient, OAuthGrant, Server
from catalog.process_memory import remember
from catalog.sealing import SealBroken
from catalog.services import connections, grant_renewal, oauth_rows
from catalog.services.oauth_rows import GrantSecrets

WAIT_SECONDS = 15.0
TOKENS_KEPT = 500
PAUSE_SECONDS = (0.05, 0.15)

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
            raise UpstreamFailure(FailureCode.RECONNECT_NEEDED, grant.last_error or grant_renewal.ENDED)
        secrets, now = _read_secrets(grant), timezone.now()
        token = secrets.access_token
        is_good = bool(token) and token != refused and not _has_expired(grant, now)
        if is_good and not _is_due(grant, now):
            return token
        renewed = (
            None
            if _is_resting(grant, now)
            else grant_renewal.try_renew(grant, client, secrets, is_good=is_good)
        )
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
    ended = UpstreamFailure(FailureCode.RECONNECT_NEEDED, grant_renewal.ENDED)
    if grant is not None and _read_secrets(grant).access_token == token:
        grant_renewal.end_grant(grant, ended)
    return ended


def forget_need(server: Server) -> None:
    """A server that asked for a sign-in answers without one again."""
    asking = OAuthGrant.objects.filter(server=server, state=AuthState.SIGN_IN_NEEDED)
    asking.update(state=AuthState.NONE)


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
