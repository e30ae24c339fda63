"""Messages for admins when a server over HTTP cannot be listed."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Limits, UpstreamFailure
from catalog.domain.oauth import Challenge
from tests.catalog.upstream.conftest import AT_HOME
from tests.catalog.upstream.web import METADATA_URL, Web, run_web, write_own_certificate

HASTY = Limits(connect_timeout_seconds=2, list_timeout_seconds=2)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with run_web() as running:
        yield running


def fail_at(
    url: str,
    *,
    transport: Transport = Transport.HTTP,
    headers: dict[str, str] | None = None,
    limits: Limits | None = None,
) -> UpstreamFailure:
    with pytest.raises(UpstreamFailure) as failure:
        upstream.list_tools(
            Connection(transport, url=url, headers=headers or {}), limits=limits or Limits(), rules=AT_HOME
        )
    return failure.value


@pytest.mark.parametrize("name", ["Host", "hOST", ":authority", "Transfer-Encoding", "Content-Length"])
def test_a_stored_header_that_would_lead_elsewhere_is_never_sent(web: Web, name: str) -> None:
    failure = fail_at(f"http://127.0.0.1:{web.port}/mcp", headers={name: "evil.test"})
    assert failure.code is FailureCode.INVALID_ADDRESS
    assert f"The header {name} is set by HTTP itself" in failure.message


@pytest.mark.parametrize("transport", [Transport.HTTP, Transport.SSE])
@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("401", FailureCode.SIGN_IN_NEEDED, "needs a sign-in: connect it, or paste a token as a header"),
        ("403", FailureCode.UNAUTHORIZED, "refuses access (403)"),
        ("404", FailureCode.HTTP_STATUS, "check the path"),
        ("missing", FailureCode.HTTP_STATUS, "check the path"),
        ("405", FailureCode.HTTP_STATUS, "try the other of http and sse"),
        ("429", FailureCode.HTTP_STATUS, "refresh it less often"),
        ("503", FailureCode.HTTP_STATUS, "has an error of its own (HTTP status 503)"),
        ("away", FailureCode.REDIRECTED, "redirects to 169.254.169.254, which is not followed"),
        ("nearby", FailureCode.SIGN_IN_NEEDED, "needs a sign-in"),
        ("packed", FailureCode.NOT_MCP, "compresses its answers"),
    ],
)
def test_a_refusal_has_its_own_words(
    web: Web, transport: Transport, path: str, code: FailureCode, words: str
) -> None:
    failure = fail_at(f"http://127.0.0.1:{web.port}/{path}", transport=transport)
    assert failure.code is code
    assert words in failure.message


def test_a_token_that_is_refused_is_told_from_one_that_is_missing(web: Web) -> None:
    failure = fail_at(f"http://127.0.0.1:{web.port}/401", headers={"authorization": "Bearer old"})
    assert failure.message == "The server refused the token (401): paste a valid one as a header"


def test_a_refused_older_greeting_does_not_hide_that_a_sign_in_is_needed(web: Web) -> None:
    failure = fail_at(f"http://127.0.0.1:{web.port}/newest")
    assert failure.code is FailureCode.SIGN_IN_NEEDED
    assert failure.challenge == Challenge(scopes=("read",))


def test_what_is_no_event_stream_is_told_so(web: Web) -> None:
    failure = fail_at(f"http://127.0.0.1:{web.port}/page", transport=Transport.SSE)
    assert failure.code is FailureCode.NOT_MCP
    assert failure.message == "What answers there is no stream of events"


@pytest.mark.parametrize(
    ("path", "words"),
    [("page", "Unexpected content type: text/html"), ("spoilt", "Failed to parse JSON response")],
)
def test_what_is_no_mcp_server_is_told_so(web: Web, path: str, words: str) -> None:
    failure = fail_at(f"http://127.0.0.1:{web.port}/{path}")
    assert failure.code is FailureCode.NOT_MCP
    assert words in failure.message


@pytest.mark.parametrize(
    ("path", "transport"),
    [
        ("endless", Transport.HTTP),
        ("endless_events", Transport.HTTP),
        pytest.param("endless_events", Transport.SSE, marks=pytest.mark.slow),  # its client looks at the end
    ],
)
def test_an_endless_answer_is_cut_off(web: Web, path: str, transport: Transport) -> None:
    """By size, whatever the time: the limit on time is there for a client that looks only when it is over."""
    limits = Limits(connect_timeout_seconds=8)
    failure = fail_at(f"http://127.0.0.1:{web.port}/{path}", transport=transport, limits=limits)
    assert failure.code is FailureCode.TOO_LARGE


@pytest.mark.parametrize("transport", [Transport.HTTP, Transport.SSE])
def test_a_server_that_never_answers_is_given_up(web: Web, transport: Transport) -> None:
    failure = fail_at(f"http://127.0.0.1:{web.port}/never", transport=transport, limits=HASTY)
    assert failure.code is FailureCode.CONNECT_TIMEOUT


def test_a_closed_port_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    failure = fail_at(f"http://127.0.0.1:{port}/mcp")
    assert failure.code is FailureCode.REFUSED
    assert failure.message == "The host 127.0.0.1 refused the connection: is the server running?"


def test_a_server_that_does_not_speak_tls_is_told_so(web: Web) -> None:
    failure = fail_at(f"https://127.0.0.1:{web.port}/mcp")
    assert failure.code is FailureCode.TLS
    assert "should the URL begin with http?" in failure.message


def test_a_certificate_nobody_vouches_for_is_not_trusted(tmp_path: Path) -> None:
    with run_web(write_own_certificate(tmp_path / "own.pem")) as secure:
        failure = fail_at(f"https://localhost:{secure.port}/mcp")
    assert failure.code is FailureCode.TLS
    assert "certificate of localhost is not trusted" in failure.message


def test_a_trusted_certificate_is_checked_against_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_own_certificate(tmp_path / "own.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with run_web(certificate) as secure:
        assert fail_at(f"https://localhost:{secure.port}/401").code is FailureCode.SIGN_IN_NEEDED
        assert fail_at(f"https://127.0.0.1:{secure.port}/401").code is FailureCode.TLS


def test_a_host_that_is_not_known_is_named() -> None:
    def find_nothing(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(UpstreamFailure, match=r"The host nowhere\.invalid is not known") as failure:
        upstream.list_tools(
            Connection(Transport.HTTP, url="http://nowhere.invalid/mcp"),
            limits=Limits(),
            rules=AT_HOME,
            resolver=find_nothing,
        )
    assert failure.value.code is FailureCode.UNKNOWN_HOST


@pytest.mark.parametrize(
    "url", ["", "ftp://example.org/", "file:///etc/passwd", "http://", "example.org/mcp"]
)
def test_only_whole_http_addresses_are_taken(url: str) -> None:
    assert fail_at(url).code is FailureCode.INVALID_ADDRESS


@pytest.mark.parametrize("value", ["Bearer tök", "line\r\nX-Other: 1"])
def test_a_header_that_http_does_not_allow_is_named_without_its_value(value: str) -> None:
    failure = fail_at("http://127.0.0.1/", headers={"X-Key": value})
    assert failure.message == "X-Key: a header may hold printable ASCII characters only"


def test_the_redirect_to_another_host_was_never_followed(web: Web) -> None:
    web.seen.clear()
    fail_at(f"http://127.0.0.1:{web.port}/away")
    assert set(web.seen) == {"/away"}
    assert METADATA_URL.startswith("http://169.254.169.254")
