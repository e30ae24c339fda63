"""How this service proves to a server who it is, for pages and REST: never a token or a secret."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from catalog.domain.choices import AuthKind, AuthState
from catalog.domain.oauth import host_of
from catalog.models import OAuthClient, OAuthGrant, Server
from catalog.models.oauth import ClientSource


@dataclass(frozen=True, slots=True)
class ServerAuth:
    """`scopes` are those that were granted, before that those that are asked for. `client_id` and
    `client_scopes` are those of a client of one's own.
    """

    kind: AuthKind
    state: AuthState
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    needed_scopes: tuple[str, ...] = ()
    connected_by: str = ""
    connected_at: datetime | None = None
    obtained_at: datetime | None = None
    expires_at: datetime | None = None
    renews: bool = False
    error: str = ""
    client_id: str = ""
    client_scopes: tuple[str, ...] = ()
    client_source: str = ""
    has_secret: bool = False
    pkce_unlisted: bool = False

    @property
    def host(self) -> str:
        """Where one signs in, as far as that is known."""
        return host_of(self.issuer) if self.issuer else ""

    @property
    def is_connected(self) -> bool:
        """Whether there is a token. Scopes may be lacking for the first one, too."""
        has_token = self.state is AuthState.SCOPE_NEEDED and self.obtained_at is not None
        return self.state is AuthState.CONNECTED or has_token

    @property
    def was_renewed(self) -> bool:
        """Whether the present token is not the one of the sign-in."""
        return self.obtained_at != self.connected_at

    @property
    def has_own_client(self) -> bool:
        return self.client_source == ClientSource.GIVEN


def read_auth(server: Server, *, header_names: Collection[str]) -> ServerAuth:
    """`header_names` are those of its settings. Reads what was not selected with the server."""
    grant: OAuthGrant | None = getattr(server, "oauth_grant", None)
    client: OAuthClient | None = getattr(server, "oauth_client", None)
    kind = _find_kind(grant, client, header_names)
    if kind in (AuthKind.NONE, AuthKind.HEADERS):
        return ServerAuth(kind, AuthState.NONE)
    own = client if client is not None and client.source == ClientSource.GIVEN else None
    wanted = tuple(own.scopes) if own else ()
    found = ServerAuth(
        kind=kind,
        state=AuthState.NONE,
        issuer=own.issuer if own else "",
        scopes=wanted,
        client_id=own.client_id if own else "",
        client_scopes=wanted,
        client_source=client.source if client else "",
        has_secret=bool(own and own.sealed),
        pkce_unlisted=bool(own and own.pkce_unlisted),
    )
    return _with_grant(found, grant) if grant else found


def _with_grant(auth: ServerAuth, grant: OAuthGrant) -> ServerAuth:
    return replace(
        auth,
        state=AuthState(grant.state),
        issuer=auth.issuer or grant.issuer,
        scopes=tuple(grant.granted_scopes) or auth.scopes or tuple(grant.needed_scopes),
        needed_scopes=tuple(grant.needed_scopes),
        connected_by=grant.connected_by,
        connected_at=grant.connected_at,
        obtained_at=grant.obtained_at,
        expires_at=grant.expires_at,
        renews=grant.renews or auth.kind is AuthKind.CLIENT_CREDENTIALS,
        error=grant.last_error,
    )


def _find_kind(
    grant: OAuthGrant | None, client: OAuthClient | None, header_names: Collection[str]
) -> AuthKind:
    """A token among the headers serves in place of a sign-in, other headers do not."""
    if client is not None and client.source == ClientSource.GIVEN:
        return AuthKind(client.kind)
    has_token = "authorization" in {name.lower() for name in header_names}
    if grant is not None and grant.state != AuthState.NONE and (grant.sealed or not has_token):
        return AuthKind.OAUTH
    return AuthKind.HEADERS if header_names else AuthKind.NONE
