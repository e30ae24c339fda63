"""Signing in to servers by OAuth: what is kept, and rules for what servers and sign-in servers say."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import urlsplit

from catalog.domain import limits

# A token is renewed this long before it expires, or in the last third of its life where that is shorter.
RENEW_AHEAD = timedelta(seconds=60)
RENEW_AHEAD_SHARE = 3
# A token that is still good is not renewed again so soon, however short its life.
LEAST_BETWEEN_RENEWALS = timedelta(seconds=10)

# RFC 6750: what may stand behind `Bearer`. A `${VAR}` cannot, so no token is ever taken for a reference.
_ACCESS_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
_VISIBLE = re.compile(r"[\x20-\x7e]+")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_PARAMETER = re.compile(r'([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
REFERENCE_MARK = "${"

# Methods by which a client proves to the token endpoint who it is.
NO_SECRET, SECRET_BASIC, SECRET_POST = "none", "client_secret_basic", "client_secret_post"
PRIVATE_KEY = "private_key_jwt"
PEM_BEGINNING = "-----BEGIN"


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a server said in `WWW-Authenticate` when it refused a request. All of it is untrusted."""

    resource_metadata: str = ""
    scopes: tuple[str, ...] = ()
    error: str = ""

    @property
    def asks_for_scopes(self) -> bool:
        return self.error == "insufficient_scope"


@dataclass(frozen=True, slots=True, repr=False)
class ClientCredentials:
    """How this console is known to an authorization server. `secret` may be a private key in PEM form."""

    client_id: str
    secret: str = ""
    method: str = NO_SECRET
    secret_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """Who signs people in for a server, as it describes itself.

    `resource` is what tokens are asked for; empty for a server of the 2025-03-26 revision, which has no
    description of its own. `scopes` are those that are asked for where an admin names none.
    """

    issuer: str
    metadata: Mapping[str, Any]
    resource: str = ""
    scopes: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        return host_of(str(self.metadata["authorization_endpoint"]))

    @property
    def can_register(self) -> bool:
        return bool(self.metadata.get("registration_endpoint"))

    def lists(self, name: str) -> tuple[str, ...] | None:
        """One of the lists in the metadata; None where it is left out."""
        found = self.metadata.get(name)
        return None if found is None else tuple(found)


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """An answer of a token endpoint. `scopes` is None where it names none: those that were asked for."""

    access_token: str
    refresh_token: str = ""
    expires_in_seconds: int | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SignInRequest:
    """One way to the authorization server and back. `state` and `verifier` are secret until then."""

    server: AuthorizationServer
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str
    scopes: tuple[str, ...] = ()


def read_challenge(header: str) -> Challenge:
    """Of a `WWW-Authenticate` header. What is no sound value counts as not said."""
    found: dict[str, str] = {}
    for name, quoted, plain in _PARAMETER.findall(header[: limits.CHALLENGE_CHARS]):
        value = re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        found.setdefault(name.lower(), value)
    address = found.get("resource_metadata", "")
    return Challenge(
        resource_metadata=address if is_address(address) else "",
        scopes=read_scopes(found.get("scope", "")),
        error=found.get("error", "") if _SCOPE.fullmatch(found.get("error", "")) else "",
    )


def read_scopes(text: str | Iterable[str] | None) -> tuple[str, ...]:
    """The scopes that may be asked for, in order, each once."""
    words = text.split() if isinstance(text, str) else list(text or ())
    sound = [word for word in words if is_scope(word)]
    return tuple(dict.fromkeys(sound))[: limits.OAUTH_SCOPES]


def is_scope(text: object) -> bool:
    return (
        isinstance(text, str)
        and len(text) <= limits.OAUTH_SCOPE_CHARS
        and _SCOPE.fullmatch(text) is not None
        and REFERENCE_MARK not in text
    )


def is_access_token(text: str) -> bool:
    return len(text) <= limits.OAUTH_TOKEN_CHARS and _ACCESS_TOKEN.fullmatch(text) is not None


def is_credential(text: str) -> bool:
    """Whether a client's id, its secret or a refresh token is one line that no reference can hide in."""
    return (
        len(text) <= limits.OAUTH_TOKEN_CHARS
        and _VISIBLE.fullmatch(text) is not None
        and REFERENCE_MARK not in text
    )


def is_private_key(text: str) -> bool:
    return text.lstrip().startswith(PEM_BEGINNING)


def is_address(text: str) -> bool:
    """Whether a text is a whole address of the web, in printable ASCII and without a user."""
    if not (0 < len(text) <= limits.OAUTH_URL_CHARS and text.isascii() and text.isprintable()):
        return False
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
        if "[" in parts.netloc:
            IPv6Address(host)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(host) and "@" not in parts.netloc


def host_of(address: str) -> str:
    """Host and port, as people are shown where they go. What is longer than a host can be is cut."""
    return urlsplit(address).netloc.rpartition("@")[2][: limits.OAUTH_HOST_CHARS]


def is_renewal_due(*, now: datetime, obtained_at: datetime, expires_at: datetime | None) -> bool:
    """Whether a token should be renewed before it is used. One without an end never is."""
    if expires_at is None:
        return False
    if now >= expires_at:
        return True
    ahead = min(RENEW_AHEAD, (expires_at - obtained_at) / RENEW_AHEAD_SHARE)
    return now >= expires_at - ahead and now >= obtained_at + LEAST_BETWEEN_RENEWALS
