"""Finds who signs people in for a server: its own description, then that of the authorization server.

Both are documents by somebody else. Who says that another address is theirs is not believed, and no endpoint
is made up where a description exists.
"""

from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import utils as sdk
from mcp.client.auth.oauth2 import _origin_issuer
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import ValidationError

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.oauth import AuthorizationServer, Challenge, host_of, is_address, read_scopes
from catalog.upstream.oauth_http import OAuthHttp, is_unusable, read_object, refuse_failing

GRANT_TYPES = ["authorization_code", "refresh_token"]
CHALLENGE_METHOD = "S256"
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint")
SHOWN_CHARS = 200  # in messages, of an address that somebody else names
# What is kept of an authorization server's metadata.
_KEPT = (
    *("issuer", *_ENDPOINTS, "scopes_supported", "token_endpoint_auth_methods_supported"),
    *("code_challenge_methods_supported", "client_id_metadata_document_supported"),
    *("authorization_response_iss_parameter_supported", "revocation_endpoint_auth_methods_supported"),
)


def plain_address(url: str) -> str:
    """A server's address as others write it: without a user, a default port and letters beyond ASCII.

    Raises UpstreamFailure.
    """
    try:
        given = httpx2.URL(url)
        plain = httpx2.URL(
            scheme=given.scheme, host=given.raw_host.decode(), port=given.port, raw_path=given.raw_path
        )
    except (httpx2.InvalidURL, UnicodeError):
        plain = httpx2.URL()
    if not is_address(str(plain)):
        raise UpstreamFailure(FailureCode.INVALID_ADDRESS, "The server's address cannot be used: correct it")
    return str(plain)


async def find_authorization_server(
    http: OAuthHttp, server_url: str, challenge: Challenge, *, issuer: str = "", pkce_unlisted: bool = False
) -> AuthorizationServer:
    """`issuer` is the one that an admin has named, if any: then no other will do. `pkce_unlisted` is that an
    admin has said that the server takes PKCE although its metadata does not list it.

    Raises UpstreamFailure.
    """
    resource = await _read_resource(http, server_url, challenge)
    expected = _choose_issuer(resource, issuer, host_of(server_url))
    found = await _read_metadata(http, expected, server_url, is_exact=resource is not None)
    if found is None and expected:
        raise is_unusable(f"The sign-in server {expected} has no description of itself (RFC 8414)")
    metadata = found or _made_up(server_url)
    if found is not None:
        _require_pkce(metadata, may_be_unlisted=pkce_unlisted)
    kept = metadata.model_dump(mode="json", exclude_none=True, include=set(_KEPT))
    for name in _ENDPOINTS:
        if name in kept:
            await _require_usable(http, name, kept[name])
    scopes = sdk.get_client_metadata_scopes(
        " ".join(challenge.scopes) or None, resource, metadata, GRANT_TYPES
    )
    return AuthorizationServer(
        issuer=str(metadata.issuer),
        metadata=kept,
        resource=_name_resource(server_url, resource) if resource else "",
        scopes=read_scopes(scopes),
    )


async def _read_resource(
    http: OAuthHttp, server_url: str, challenge: Challenge
) -> ProtectedResourceMetadata | None:
    """The server's own description; None where it has none. One of another server is refused, and one that
    cannot be read, unless there is another.
    """
    unsound = ""
    urls = sdk.build_protected_resource_metadata_discovery_urls(
        challenge.resource_metadata or None, server_url
    )
    for url in urls:
        response = await http.send(sdk.create_oauth_metadata_request(url))
        refuse_failing(response, host_of(url))
        found = await sdk.handle_protected_resource_response(response)
        if found is None:
            is_there = response.status_code == httpx2.codes.OK and read_object(response) is not None
            unsound = unsound or (host_of(url) if is_there else "")
            continue
        wanted, told = resource_url_from_server_url(server_url), str(found.resource)
        if not check_resource_allowed(requested_resource=wanted, configured_resource=told):
            raise is_unusable(
                f"The description at {host_of(url)} is of another server, {host_of(told)}: it was not used"
            )
        if not is_address(told):
            raise _is_unsound(host_of(url))
        return found
    if unsound:
        raise _is_unsound(unsound)
    return None


def _is_unsound(host: str) -> UpstreamFailure:
    return is_unusable(f"The description of the server at {host} is not sound")


def _name_resource(server_url: str, resource: ProtectedResourceMetadata) -> str:
    """For which server a token is asked for: as it calls itself."""
    return str(resource.resource) or resource_url_from_server_url(server_url)


def _choose_issuer(resource: ProtectedResourceMetadata | None, named: str, host: str) -> str:
    """Empty where nobody names one: an old server that is its own authorization server."""
    if resource is None:
        return named
    listed = [str(url) for url in resource.authorization_servers]
    if not named:
        if not is_address(listed[0]):
            raise is_unusable(f"{host} names a sign-in server that cannot be: {listed[0][:SHOWN_CHARS]}")
        return listed[0]
    for url in listed:
        if sdk.issuers_match(url, named):
            return url
    shown = ", ".join(url[:SHOWN_CHARS] for url in listed[:3])
    raise is_unusable(f"{host} does not name the issuer {named} as its sign-in server: it names {shown}")


async def _read_metadata(
    http: OAuthHttp, issuer: str, server_url: str, *, is_exact: bool
) -> OAuthMetadata | None:
    """What the issuer says of itself, if it is that issuer; None where nothing is there. `is_exact` is that
    its name comes from a description: a person may leave out the slash at its end.
    """
    expected = issuer or _origin_issuer(server_url)
    for url in sdk.build_oauth_authorization_server_metadata_discovery_urls(issuer or None, server_url):
        response = await http.send(sdk.create_oauth_metadata_request(url))
        refuse_failing(response, host_of(url))
        _, found = await sdk.handle_auth_metadata_response(response)
        if found is None:
            if response.status_code == 200 and read_object(response) is not None:
                raise is_unusable(f"The description of the sign-in server at {host_of(url)} is not sound")
            continue
        told = str(found.issuer)
        is_same = told == expected if is_exact else sdk.issuers_match(told, expected)
        if not is_same:
            raise is_unusable(
                f"The sign-in server at {host_of(url)} says that it is another issuer: sign-in was refused"
            )
        return found
    return None


def _made_up(server_url: str) -> OAuthMetadata:
    """The addresses that the 2025-03-26 revision gives a server which describes nothing."""
    origin = _origin_issuer(server_url).rstrip("/")
    try:
        return OAuthMetadata.model_validate(
            {
                "issuer": origin,
                "authorization_endpoint": f"{origin}/authorize",
                "token_endpoint": f"{origin}/token",
                "registration_endpoint": f"{origin}/register",
            }
        )
    except ValidationError:
        raise is_unusable(f"There is no sign-in at {host_of(server_url)}") from None


def _require_pkce(metadata: OAuthMetadata, *, may_be_unlisted: bool) -> None:
    listed = metadata.code_challenge_methods_supported
    host = host_of(str(metadata.authorization_endpoint))
    if listed is None:
        if may_be_unlisted:
            return
        raise is_unusable(
            f"The sign-in server at {host} does not say that it takes PKCE, without which a sign-in can be "
            "stolen. If its maker says that it does, allow it in the settings of the client"
        )
    if CHALLENGE_METHOD not in listed:
        raise is_unusable(f"The sign-in server at {host} does not take PKCE with S256: sign-in was refused")


async def _require_usable(http: OAuthHttp, name: str, address: str) -> None:
    if not is_address(address) or urlsplit(address).fragment:
        raise is_unusable(f"The sign-in server's {name} is no address of the web")
    await http.require_private_or_https(address)
