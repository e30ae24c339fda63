"""Signs in to servers: finds the authorization server, registers with it, exchanges codes and renews tokens.

Each function is one short conversation with an end, and raises UpstreamFailure. The texts of authorization
servers are shown to nobody: they may hold parts of tokens.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError, PKCEParameters
from mcp.client.auth import utils as sdk
from mcp.client.auth.oauth2 import OAuthContext, check_registration_usable
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import ValidationError

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.oauth import (
    NO_SECRET,
    PRIVATE_KEY,
    SECRET_BASIC,
    SECRET_POST,
    AuthorizationServer,
    Challenge,
    ClientCredentials,
    SignInRequest,
    Tokens,
    host_of,
    is_access_token,
    is_credential,
    is_private_key,
    is_scope,
    read_scopes,
)
from catalog.upstream.oauth_discovery import (
    CHALLENGE_METHOD,
    GRANT_TYPES,
    find_authorization_server,
    plain_address,
)
from catalog.upstream.oauth_http import (
    Network,
    OAuthHttp,
    is_down,
    is_unusable,
    read_object,
    refuse_failing,
    run_within,
)

DISCOVERY_SECONDS = 15.0
TOKEN_SECONDS = 10.0
REVOKE_SECONDS = 5.0
ASSERTION_SECONDS = 60
CLIENT_NAME = "toolsearch"
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_MOST_SECONDS = 10 * 365 * 86_400  # of a token's life that is believed

# OAuth cannot tell a grant that expired from one that was revoked or withdrawn; the second name is GitHub's.
_ENDED = frozenset({"invalid_grant", "bad_refresh_token", "bad_verification_code"})
_CLIENT_REFUSED = frozenset({"invalid_client", "unauthorized_client", "incorrect_client_credentials"})


def discover(
    server_url: str, challenge: Challenge, network: Network, *, issuer: str = "", pkce_unlisted: bool = False
) -> AuthorizationServer:
    """Who signs people in for a server; see `find_authorization_server`."""
    address = plain_address(server_url)

    async def converse(http: OAuthHttp) -> AuthorizationServer:
        return await find_authorization_server(
            http, address, challenge, issuer=issuer, pkce_unlisted=pkce_unlisted
        )

    return run_within(converse, network, host_of(address), DISCOVERY_SECONDS)


def register(
    server: AuthorizationServer, redirect_uris: list[str], network: Network, *, home: str = ""
) -> ClientCredentials:
    """Introduce this console to an authorization server that takes whoever comes. `home` is its address, if
    it has a public one.
    """
    listed = server.lists("token_endpoint_auth_methods_supported")
    wanted = OAuthClientMetadata.model_validate(
        {
            "redirect_uris": redirect_uris,
            "token_endpoint_auth_method": _choose_registered_method(listed),
            "grant_types": GRANT_TYPES,
            "application_type": "web" if redirect_uris[0].startswith("https://") else "native",
            "client_name": CLIENT_NAME,
            "client_uri": home or None,
            "scope": " ".join(server.scopes) or None,
        }
    )
    request = sdk.create_client_registration_request(_metadata(server), wanted, server.issuer)

    async def converse(http: OAuthHttp) -> ClientCredentials:
        response = await http.send(request)
        refuse_failing(response, server.host)
        return await _read_registration(response, server.host)

    return run_within(converse, network, server.host, TOKEN_SECONDS)


def use_document(server: AuthorizationServer, address: str) -> ClientCredentials | None:
    """The console as the client that a document of its own describes; None where the server takes no such
    clients.
    """
    listed = server.lists("token_endpoint_auth_methods_supported")
    takes_public_clients = listed is None or NO_SECRET in listed
    if not sdk.is_valid_client_metadata_url(address) or not takes_public_clients:
        return None
    if not sdk.should_use_client_metadata_url(_metadata(server), address):
        return None
    return ClientCredentials(address)


def choose_method(server: AuthorizationServer, secret: str) -> str:
    """How a client of one's own proves who it is."""
    if not secret:
        return NO_SECRET
    if is_private_key(secret):
        return PRIVATE_KEY
    listed = server.lists("token_endpoint_auth_methods_supported")
    return SECRET_POST if listed and SECRET_BASIC not in listed and SECRET_POST in listed else SECRET_BASIC


def begin(server: AuthorizationServer, redirect_uri: str, scopes: tuple[str, ...]) -> SignInRequest:
    pkce = PKCEParameters.generate()
    return SignInRequest(server, secrets.token_urlsafe(32), pkce.code_verifier, redirect_uri, scopes)


def write_authorization_url(request: SignInRequest, client_id: str) -> str:
    """Where the browser goes. What the endpoint's address has of a query stays."""
    challenge = (
        base64.urlsafe_b64encode(hashlib.sha256(request.verifier.encode()).digest()).rstrip(b"=").decode()
    )
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": request.redirect_uri,
        "state": request.state,
        "code_challenge": challenge,
        "code_challenge_method": CHALLENGE_METHOD,
    }
    if request.server.resource:
        asked["resource"] = request.server.resource
    if request.scopes:
        asked["scope"] = " ".join(request.scopes)
    if "offline_access" in request.scopes:
        asked["prompt"] = "consent"  # OpenID Connect asks for it
    parts = urlsplit(str(request.server.metadata["authorization_endpoint"]))
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in asked]
    return parts._replace(query=urlencode([*query, *asked.items()])).geturl()


def is_same_issuer(one: str, other: str) -> bool:
    """Whether two names are of one issuer: the slash at the end of a host may be left out."""
    return sdk.issuers_match(one, other)


def require_issuer(server: AuthorizationServer, told: str | None) -> None:
    """Raises UpstreamFailure where the way back does not come from the server that was gone to (RFC 9207)."""
    try:
        sdk.validate_authorization_response_iss(told, _metadata(server))
    except OAuthFlowError:
        raise is_unusable(
            f"The answer does not come from the sign-in server at {server.host}: it was not used"
        ) from None


def exchange_code(request: SignInRequest, client: ClientCredentials, code: str, network: Network) -> Tokens:
    asked = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": request.redirect_uri,
        "code_verifier": request.verifier,
    }
    return _ask_for_tokens(request.server, client, asked, network)


def renew(
    server: AuthorizationServer, client: ClientCredentials, refresh_token: str, network: Network
) -> Tokens:
    """New tokens for a refresh token. Where no new refresh token comes along, this one stays good."""
    asked = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    return _ask_for_tokens(server, client, asked, network)


def request_own_token(
    server: AuthorizationServer, client: ClientCredentials, scopes: tuple[str, ...], network: Network
) -> Tokens:
    """A token for this console itself, without a person."""
    asked = {"grant_type": "client_credentials"}
    if scopes:
        asked["scope"] = " ".join(scopes)
    return _ask_for_tokens(server, client, asked, network)


def revoke(
    server: AuthorizationServer, client: ClientCredentials, token: str, *, is_refresh: bool, network: Network
) -> bool:
    """Tell the server that a token is not used any more (RFC 7009). Whether it took note; raises nothing."""
    endpoint = server.metadata.get("revocation_endpoint")
    if not endpoint:
        return False
    asked = {"token": token, "token_type_hint": "refresh_token" if is_refresh else "access_token"}

    async def converse(http: OAuthHttp) -> bool:
        request = _write_request(str(endpoint), server, client, asked)
        return (await http.send(request)).status_code == httpx2.codes.OK

    try:
        return run_within(converse, network, server.host, REVOKE_SECONDS)
    except UpstreamFailure:
        return False


def _ask_for_tokens(
    server: AuthorizationServer, client: ClientCredentials, asked: Mapping[str, str], network: Network
) -> Tokens:
    resource = {"resource": server.resource} if server.resource else {}
    endpoint = str(server.metadata["token_endpoint"])
    request = _write_request(endpoint, server, client, {**asked, **resource})

    async def converse(http: OAuthHttp) -> Tokens:
        response = await http.send(request)
        body = read_object(response)
        if body is not None and isinstance(body.get("error"), str):
            failure = _explain_error(body["error"], server.host)  # before the status: GitHub's is 200
            if failure.code is FailureCode.SIGN_IN_UNUSABLE:
                refuse_failing(response, server.host)
            raise failure
        refuse_failing(response, server.host)
        return await _read_tokens(response, server.host)

    return run_within(converse, network, server.host, TOKEN_SECONDS)


def _write_request(
    endpoint: str, server: AuthorizationServer, client: ClientCredentials, asked: Mapping[str, str]
) -> httpx2.Request:
    form = {**asked, "client_id": client.client_id}
    if client.method == PRIVATE_KEY:
        form |= {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": _sign(client, server.issuer)}
        return httpx2.Request("POST", endpoint, data=form, headers=_FORM)
    context = OAuthContext(
        server_url=server.issuer,
        client_metadata=OAuthClientMetadata(redirect_uris=None),
        storage=None,  # type: ignore[arg-type]  # nothing here stores
        redirect_handler=None,
        callback_handler=None,
        client_info=OAuthClientInformationFull(
            client_id=client.client_id,
            client_secret=client.secret or None,
            token_endpoint_auth_method=client.method,
        ),
    )
    form, headers = context.prepare_token_auth(form, dict(_FORM))
    if "Authorization" in headers:
        del form["client_id"]
    return httpx2.Request("POST", endpoint, data=form, headers=headers)


def _sign(client: ClientCredentials, issuer: str) -> str:
    """An assertion for the issuer alone, good for a minute (RFC 7523). Raises UpstreamFailure."""
    now = int(time.time())
    claims = {
        "iss": client.client_id,
        "sub": client.client_id,
        "aud": issuer,
        "iat": now,
        "exp": now + ASSERTION_SECONDS,
        "jti": secrets.token_urlsafe(16),
    }
    try:
        key = load_pem_private_key(client.secret.encode(), password=None)
        algorithm = "ES256" if isinstance(key, EllipticCurvePrivateKey) else "RS256"
        return jwt.encode(claims, client.secret, algorithm=algorithm)
    except (ValueError, TypeError, jwt.PyJWTError):
        raise UpstreamFailure(
            FailureCode.CLIENT_REFUSED,
            "The client's private key cannot be used: give an RSA key, or one of the curve P-256",
        ) from None


async def _read_registration(response: httpx2.Response, host: str) -> ClientCredentials:
    try:
        found = await sdk.handle_registration_response(response)
        method = found.token_endpoint_auth_method or (SECRET_BASIC if found.client_secret else NO_SECRET)
        found.token_endpoint_auth_method = method
        check_registration_usable(found)
        if method == NO_SECRET:
            found.client_secret = None
    except OAuthRegistrationError:
        raise is_unusable(
            f"The sign-in server at {host} does not let this console register: give a client id of your own"
        ) from None
    if not all(is_credential(text) for text in (found.client_id, found.client_secret or "-")):
        raise is_unusable(f"The sign-in server at {host} gave a client id or secret that cannot be used")
    ends = found.client_secret_expires_at
    return ClientCredentials(
        found.client_id,
        found.client_secret or "",
        method,
        datetime.fromtimestamp(ends, UTC) if ends and 0 < ends < 2**33 else None,
    )


def _choose_registered_method(listed: tuple[str, ...] | None) -> str:
    if listed is None or NO_SECRET in listed:
        return NO_SECRET
    return SECRET_POST if SECRET_BASIC not in listed and SECRET_POST in listed else SECRET_BASIC


async def _read_tokens(response: httpx2.Response, host: str) -> Tokens:
    if response.status_code not in (httpx2.codes.OK, httpx2.codes.CREATED):
        raise is_down(host, f"it answers with HTTP status {response.status_code}")
    try:
        found: OAuthToken = await sdk.handle_token_response_scopes(response)
    except (OAuthTokenError, ValueError):
        raise is_down(host, "its answer is no token") from None
    if not is_access_token(found.access_token) or not is_credential(found.refresh_token or "-"):
        raise is_unusable(f"The sign-in server at {host} gave a token that cannot be used: it was not kept")
    granted = None if found.scope is None else found.scope.split()
    if granted and not all(map(is_scope, granted)):
        raise is_unusable(f"The sign-in server at {host} names scopes that cannot be: the token was not kept")
    seconds = found.expires_in
    return Tokens(
        access_token=found.access_token,
        refresh_token=found.refresh_token or "",
        expires_in_seconds=None if seconds is None else max(0, min(seconds, _MOST_SECONDS)),
        scopes=None if granted is None else read_scopes(granted),
    )


def _explain_error(error: str, host: str) -> UpstreamFailure:
    """Of the error's own texts none is shown."""
    if error in _ENDED:
        return UpstreamFailure(
            FailureCode.RECONNECT_NEEDED,
            f"{host} ended this connection (expired, revoked or withdrawn): connect again",
        )
    if error in _CLIENT_REFUSED:
        return UpstreamFailure(
            FailureCode.CLIENT_REFUSED,
            f"{host} does not know this client: check the client id and secret, or connect again",
        )
    if error == "invalid_scope":
        return UpstreamFailure(
            FailureCode.SCOPE_NEEDED, f"{host} does not grant the scopes that were asked for"
        )
    if error in {"temporarily_unavailable", "server_error", "slow_down"}:
        return is_down(host, "it says so itself")
    return is_unusable(f"The sign-in server at {host} refused the request")


def _metadata(server: AuthorizationServer) -> OAuthMetadata:
    try:
        return OAuthMetadata.model_validate(dict(server.metadata))
    except ValidationError:
        raise is_unusable("What was kept of the sign-in server cannot be read: connect again") from None
