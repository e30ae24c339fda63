"""Whatever a server does with its secrets, they are in no message, no stderr tail and no log."""

import base64
import logging
from collections.abc import Iterator

import pytest

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Limits, UpstreamFailure
from catalog.upstream.masking import present, secrets_of
from tests.catalog.upstream.conftest import AT_HOME, odd_connection
from tests.catalog.upstream.web import Web, run_web

CANARY = "canary-0123456789"
HASTY = Limits(connect_timeout_seconds=2, list_timeout_seconds=2)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with run_web() as running:
        yield running


def fail(connection: Connection, caplog: pytest.LogCaptureFixture) -> UpstreamFailure:
    with caplog.at_level(logging.DEBUG), pytest.raises(UpstreamFailure) as failure:
        upstream.list_tools(connection, limits=HASTY, rules=AT_HOME)
    shown = (failure.value.message, failure.value.stderr_tail, repr(failure.value), caplog.text)
    assert not [text for text in shown if CANARY in text]
    assert failure.value.__context__ is None, "what it came from may hold the secret"
    return failure.value


@pytest.mark.parametrize(
    "behaviour",
    [
        *("exits_at_once", "hangs_on_connect", "hangs_on_list", "talks_of_other_things", "spoils_its_json"),
        *("speaks_another_protocol", "goes_in_a_circle", "tells_its_secrets", "fails_with_its_secret"),
    ],
)
def test_no_failure_of_a_command_tells_a_secret(behaviour: str, caplog: pytest.LogCaptureFixture) -> None:
    fail(odd_connection(behaviour, f"--token={CANARY}", env={"API_TOKEN": CANARY}), caplog)


def test_stderr_shows_where_a_secret_was(caplog: pytest.LogCaptureFixture) -> None:
    connection = odd_connection("tells_its_secrets", f"--token={CANARY}", env={"API_TOKEN": CANARY})
    assert fail(connection, caplog).stderr_tail == "args ['•••'] env •••\n"


def test_an_error_of_the_server_shows_where_a_secret_was(caplog: pytest.LogCaptureFixture) -> None:
    failure = fail(odd_connection("fails_with_its_secret", env={"API_TOKEN": CANARY}), caplog)
    assert failure.code is FailureCode.LIST_REFUSED
    assert failure.message.endswith("bad token •••")


@pytest.mark.parametrize(
    "path", ["leaky", "401", "404", "503", "away", "page", "spoilt", "packed", "endless", "never"]
)
@pytest.mark.parametrize("transport", [Transport.HTTP, Transport.SSE])
def test_no_failure_over_http_tells_a_secret(
    web: Web, path: str, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"http://user:{CANARY}@127.0.0.1:{web.port}/{path}?key={CANARY}"
    headers = {"Authorization": f"Bearer {CANARY}", "X-Api-Key": CANARY}
    fail(Connection(transport, url=url, headers=headers), caplog)


def test_a_leaky_server_was_really_told_the_secrets(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    url = f"http://127.0.0.1:{web.port}/leaky?key={CANARY}"
    failure = fail(Connection(Transport.HTTP, url=url), caplog)
    assert "/leaky?•••" in failure.message


@pytest.mark.parametrize(
    "connection",
    [
        Connection(Transport.STDIO, args=(f"--token={CANARY}",)),
        Connection(Transport.STDIO, env={"A": CANARY}),
        Connection(Transport.HTTP, headers={"Authorization": f"Bearer {CANARY}"}),
        Connection(
            Transport.HTTP,
            headers={"Authorization": f"Basic {base64.b64encode(f'me:{CANARY}'.encode()).decode()}"},
        ),
        Connection(Transport.HTTP, url=f"http://me:{CANARY}@example.org/"),
        Connection(Transport.HTTP, url=f"http://example.org/?a=1&key={CANARY}"),
        Connection(Transport.HTTP, url="http://example.org/?key=canary%2D0123456789"),
        Connection(Transport.HTTP, url=f"http://example.org/s/{CANARY}-and-more-of-it/mcp#x"),
    ],
)
def test_a_secret_is_known_in_every_place(connection: Connection) -> None:
    told = f"it said {CANARY}-and-more-of-it twice: {CANARY}-and-more-of-it"
    hidden = present(told, secrets=secrets_of(connection))
    assert CANARY not in hidden


def test_short_values_are_not_masked() -> None:
    connection = Connection(Transport.STDIO, args=("-y", "run"), env={"DEBUG": "1"})
    assert present("run -y 1", secrets=secrets_of(connection)) == "run -y 1"


def test_a_server_may_be_called_like_its_argument_but_tell_no_secret() -> None:
    connection = odd_connection("is_fine", env={"API_TOKEN": CANARY})
    listing = upstream.list_tools(connection, limits=Limits(), rules=AT_HOME)
    assert listing.server_name == "is_fine"
    assert listing.instructions == "My token is •••."


def test_a_secret_cut_by_the_end_of_the_tail_does_not_show_its_rest() -> None:
    long = CANARY * 40
    connection = odd_connection("tells_its_secrets", env={"API_TOKEN": long})
    with pytest.raises(UpstreamFailure) as failure:
        upstream.list_tools(connection, limits=Limits(stderr_tail_bytes=600), rules=AT_HOME)
    assert CANARY not in failure.value.stderr_tail
