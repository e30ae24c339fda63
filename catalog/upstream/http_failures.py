"""Messages for HTTP failures and refusals. Of a URL, they show only the host."""

import ssl
from collections.abc import Iterator

import httpx2

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.oauth import Challenge, read_challenge

_ADVICE = {
    404: "Nothing is at this address (404): check the path, which often ends in /mcp or /sse",
    405: "The server takes no MCP messages at this path (405): check it, or try the other of http and sse",
    429: "The server asks for fewer requests (429): call or refresh it less often",
}


def explain_network_error(error: httpx2.TransportError, host: str) -> UpstreamFailure:
    if broken := next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLError)), None):
        return _explain_tls(broken, host)
    if isinstance(error, httpx2.ConnectTimeout):
        return UpstreamFailure(
            FailureCode.CONNECT_TIMEOUT, f"The host {host} does not answer: check the address"
        )
    if isinstance(error, httpx2.ConnectError):
        return UpstreamFailure(
            FailureCode.REFUSED,
            f"The host {host} refused the connection: is the server running?",
        )
    if isinstance(error, httpx2.RemoteProtocolError):
        return UpstreamFailure(FailureCode.NOT_MCP, f"What answers at {host} does not speak HTTP")
    if isinstance(error, httpx2.LocalProtocolError):
        return UpstreamFailure(
            FailureCode.INVALID_ADDRESS, "A header has a name or value that HTTP does not allow"
        )
    return UpstreamFailure(FailureCode.DISCONNECTED, f"The host {host} broke off the connection")


def explain_broken_call(error: httpx2.TransportError, host: str) -> UpstreamFailure:
    """The same for a request to a server that has spoken MCP before."""
    explained = explain_network_error(error, host)
    if explained.code not in {FailureCode.NOT_MCP, FailureCode.DISCONNECTED}:
        return explained
    return UpstreamFailure(
        FailureCode.DISCONNECTED,
        f"The host {host} broke off before it answered: it may have done what it was asked",
    )


def explain_status(answer: httpx2.Response, *, has_own_token: bool) -> UpstreamFailure | None:
    """The meaning of an error status; None where the body says more.

    `has_own_token` is that the server's settings have a token as a header, so that nobody signs in to it.
    """
    status = answer.status_code
    challenge = read_challenge(answer.headers.get("www-authenticate", ""))
    if status == 401:
        return _explain_missing_token(challenge, has_own_token=has_own_token)
    if status == 403:
        return _explain_forbidden(challenge, has_own_token=has_own_token)
    if 300 <= status < 400:
        return _explain_redirect(answer)
    if status in _ADVICE:
        return UpstreamFailure(FailureCode.HTTP_STATUS, _ADVICE[status])
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    if status < 400 or (is_json and status < 500):
        return None
    blame = "has an error of its own" if status >= 500 else "refuses the request"
    return UpstreamFailure(FailureCode.HTTP_STATUS, f"The server {blame} (HTTP status {status})")


def asks_for_sign_in(answer: httpx2.Response) -> bool:
    """Whether the request lacks a token, or one with more rights."""
    if answer.status_code == 401:
        return True
    challenge = read_challenge(answer.headers.get("www-authenticate", ""))
    return answer.status_code == 403 and challenge.asks_for_scopes


def explain_refusal(answer: httpx2.Response, *, has_own_token: bool) -> UpstreamFailure:
    """The meaning of an error status to a request, whose body said nothing that MCP knows."""
    return explain_status(answer, has_own_token=has_own_token) or UpstreamFailure(
        FailureCode.HTTP_STATUS, f"The server refuses the request (HTTP status {answer.status_code})"
    )


def _explain_missing_token(challenge: Challenge, *, has_own_token: bool) -> UpstreamFailure:
    if has_own_token:
        return UpstreamFailure(
            FailureCode.UNAUTHORIZED, "The server refused the token (401): paste a valid one as a header"
        )
    return UpstreamFailure(
        FailureCode.SIGN_IN_NEEDED,
        "The server needs a sign-in: connect it, or paste a token as a header, as in Authorization: Bearer …",
        challenge=challenge,
    )


def _explain_forbidden(challenge: Challenge, *, has_own_token: bool) -> UpstreamFailure:
    if has_own_token or not challenge.asks_for_scopes:
        return UpstreamFailure(
            FailureCode.UNAUTHORIZED, "The server refuses access (403): the token may lack a right"
        )
    named = f" ({' '.join(challenge.scopes)[:200]})" if challenge.scopes else ""
    message = f"The server asks for more rights than its sign-in has{named}: grant more"
    return UpstreamFailure(FailureCode.SCOPE_NEEDED, message, challenge=challenge)


def _explain_redirect(answer: httpx2.Response) -> UpstreamFailure:
    try:
        host = httpx2.URL(answer.headers.get("location", "")).host
    except httpx2.InvalidURL:
        host = ""
    where = f"to {host}" if host else "elsewhere"
    return UpstreamFailure(
        FailureCode.REDIRECTED, f"The server redirects {where}, which is not followed: give the final address"
    )


def _explain_tls(error: ssl.SSLError, host: str) -> UpstreamFailure:
    if isinstance(error, ssl.SSLCertVerificationError):
        return UpstreamFailure(
            FailureCode.TLS, f"The certificate of {host} is not trusted: {error.verify_message}"
        )
    return UpstreamFailure(
        FailureCode.TLS,
        f"No secure connection to {host} ({error.reason or 'TLS failed'}): should the URL begin with http?",
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
