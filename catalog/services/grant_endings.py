"""Ends grants: what is told to the provider, and what is forgotten here with a client or an address."""

from collections.abc import Callable
from functools import partial

from django.db.models import F
from django.utils import timezone

from catalog.domain.choices import AuthKind, AuthState
from catalog.domain.connection import SIGN_IN_CODES
from catalog.models import OAuthAttempt, OAuthClient, OAuthGrant, Server
from catalog.models.oauth import ClientSource
from catalog.sealing import SealBroken
from catalog.services import grant_renewal, oauth_rows, refresh
from catalog.upstream import oauth


def prepare_revocation(grant: OAuthGrant) -> Callable[[], bool]:
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
        network=grant_renewal.read_network(),
    )


def end_with_client(server: Server) -> None:
    """A grant belongs to the client that it was given to."""
    grant = OAuthGrant.objects.filter(server=server).first()
    if grant is not None:
        clear_grant(grant)
    OAuthAttempt.objects.filter(server=server).delete()
    ask_anew(server)


def clear_grant(grant: OAuthGrant) -> None:
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


def ask_anew(server: Server) -> None:
    """That a sign-in was needed before says nothing of what comes after it."""
    rows = Server.objects.filter(pk=server.pk)
    rows.filter(last_error_code__in=SIGN_IN_CODES).update(
        failures=0, last_error_code="", last_error="", stale_since=None
    )
    rows.update(next_refresh_at=timezone.now())
    if server.enabled:
        refresh.request_refresh(server=server)


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
