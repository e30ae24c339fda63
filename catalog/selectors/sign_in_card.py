"""What a server's page says of signing in to it, and which way it offers."""

from collections.abc import Collection
from dataclasses import dataclass

from catalog.domain.choices import AuthKind, AuthState, Transport
from catalog.domain.connection import SIGN_IN_CODES, FailureCode
from catalog.domain.oauth import host_of
from catalog.models import OAuthClient, Server
from catalog.selectors.server_auth import ServerAuth, read_auth

# A failure for which signing in, or in another way, may be the cure.
_CURABLE = frozenset(
    {
        *SIGN_IN_CODES,
        FailureCode.UNAUTHORIZED,
        FailureCode.CLIENT_REFUSED,
        FailureCode.SIGN_IN_SERVER_DOWN,
        FailureCode.SIGN_IN_UNUSABLE,
    }
)
_WORDS = {
    AuthState.NONE: "Not connected",
    AuthState.SIGN_IN_NEEDED: "Sign-in needed",
    AuthState.CONNECTED: "Connected",
    AuthState.RECONNECT_NEEDED: "Connection ended",
    AuthState.SCOPE_NEEDED: "More rights needed",
}


@dataclass(frozen=True, slots=True)
class SignInCard:
    """`host` is where one signs in, as far as that is known. `is_needed` is that the page begins with it,
    `hides_error` that the last error says nothing more.
    """

    auth: ServerAuth
    host: str
    is_needed: bool = False
    hides_error: bool = False

    @property
    def words(self) -> str:
        return _WORDS[self.auth.state]

    @property
    def action(self) -> str:
        """What the button says; empty where there is nothing for somebody to do."""
        if self.is_own:
            return "" if self.auth.is_connected else self._connect
        return "Grant more" if self.auth.state is AuthState.SCOPE_NEEDED else self._connect

    @property
    def _connect(self) -> str:
        again = (AuthState.CONNECTED, AuthState.RECONNECT_NEEDED)
        return "Reconnect" if self.auth.state in again else "Connect"

    @property
    def is_own(self) -> bool:
        """Whether the program itself signs in, without a person."""
        return self.auth.kind is AuthKind.CLIENT_CREDENTIALS

    @property
    def can_disconnect(self) -> bool:
        """What the program signs in to by itself ends with its client id."""
        return self.auth.is_connected and not self.is_own

    @property
    def missing_scopes(self) -> tuple[str, ...]:
        if self.auth.state is not AuthState.SCOPE_NEEDED:
            return ()
        return tuple(scope for scope in self.auth.needed_scopes if scope not in self.auth.scopes)


def read_card(server: Server, *, header_names: Collection[str]) -> SignInCard | None:
    """None for a server that has nothing to do with a sign-in. Reads what was not selected with it."""
    if server.transport not in (Transport.HTTP, Transport.SSE):
        return None
    has_token = "authorization" in {name.lower() for name in header_names}
    auth = read_auth(server, header_names=header_names)
    was_signed_in = not has_token and getattr(server, "oauth_grant", None) is not None
    has_sign_in = auth.kind in (AuthKind.OAUTH, AuthKind.CLIENT_CREDENTIALS)
    if not (has_sign_in or was_signed_in or server.last_error_code in _CURABLE):
        return None
    lacks_sign_in = server.failures > 0 and server.last_error_code in SIGN_IN_CODES
    is_refused = lacks_sign_in and auth.state is not AuthState.CONNECTED
    return SignInCard(
        auth=auth,
        host=auth.host or _guess_host(server),
        is_needed=is_refused or auth.state is AuthState.SCOPE_NEEDED,
        hides_error=lacks_sign_in,
    )


def _guess_host(server: Server) -> str:
    """Where somebody was going to sign in before, else at the server itself."""
    client: OAuthClient | None = getattr(server, "oauth_client", None)
    try:
        return host_of(client.issuer if client else server.url)
    except ValueError:  # an address that is none
        return server.url
