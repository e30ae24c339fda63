"""Whatever a server does with its secrets, they are in no message, no stderr tail and no log."""

import base64
import logging
from collections.abc import Iterator

import pytest

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Limits, UpstreamFailure
from catalog.domain.definitions import Definition
from catalog.domain.marking import mark_definition
from catalog.upstream.masking import mask_within, present, secrets_in_texts, secrets_of
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
    assert fail(connection, caplog).stderr_tail == "args ['--token=•••'] env •••\n"


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


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        (
            Connection(Transport.STDIO, command="npx", args=("-y", "@acme/nothing")),
            "404 '@acme/nothing@*' could not be found",
        ),
        (Connection(Transport.STDIO, args=("-c", "exit 3; echo done")), "ended with exit code 3: done"),
        (Connection(Transport.STDIO, args=("/srv/app/server.py",)), 'File "/srv/app/server.py", line 2'),
        (Connection(Transport.HTTP, headers={"Authorization": f"Bearer {CANARY}"}), "a Bearer token"),
        (Connection(Transport.STDIO, env={"DEBUG": "true"}), "is it true?"),
        (Connection(Transport.HTTP, url="https://a.b/model-context-protocol/mcp"), "model-context-protocol"),
    ],
)
def test_what_is_no_secret_is_not_masked(connection: Connection, said: str) -> None:
    assert present(said, secrets=secrets_of(connection)) == said


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (("-e", f"NAME={CANARY}"), "NAME"),
        (("--env", f"NAME={CANARY}"), "NAME"),
        ((f"--env=NAME={CANARY}",), "--env=NAME"),
        (("--header", f"X-Team: {CANARY}"), "X-Team"),
        (("--token", CANARY), "--token"),
    ],
)
def test_variable_or_header_in_an_argument_is_a_secret_whatever_its_name(
    args: tuple[str, ...], name: str
) -> None:
    hidden = present(" ".join(args), secrets=secrets_of(Connection(Transport.STDIO, args=args)))
    assert CANARY not in hidden
    assert name in hidden


def test_argument_that_an_admin_has_marked_is_a_secret() -> None:
    connection = Connection(Transport.STDIO, args=("serve", "harmless-word"), secret_args=(1,))
    assert present("serve harmless-word", secrets=secrets_of(connection)) == "serve •••"
    assert "harmless-word" in secrets_in_texts(connection)


def test_value_of_a_variable_that_is_referred_to_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    connection = odd_connection("tells_its_secrets", "${WORD}", env={"API_TOKEN": "x"})
    with pytest.raises(UpstreamFailure) as failure:
        upstream.list_tools(
            connection, limits=HASTY, rules=AT_HOME, environment={"WORD": "pa55-of-the-house"}
        )
    assert "pa55" not in failure.value.stderr_tail
    assert "args ['•••']" in failure.value.stderr_tail


def test_a_server_may_be_called_like_its_argument_but_tell_no_secret() -> None:
    connection = odd_connection("is_fine", env={"API_TOKEN": CANARY})
    listing = upstream.list_tools(connection, limits=Limits(), rules=AT_HOME)
    assert listing.server_name == "is_fine"
    assert listing.instructions == "My token is •••."


@pytest.mark.parametrize("token", [CANARY, 'canary "\\n1234'])
def test_a_secret_in_a_definition_is_masked_and_marked(token: str) -> None:
    connection = odd_connection("lists_its_secret", env={"API_TOKEN": token, "MODE": "production"})
    listing = upstream.list_tools(connection, limits=Limits(), rules=AT_HOME)
    assert "canary" not in str(listing)
    wire, fine = listing.definitions
    assert (wire["name"], wire["title"]) == ("use", "Use •••")
    assert wire["description"] == "Sends ••• at production from []."
    assert wire["inputSchema"]["properties"] == {
        "a": {"type": "string", "description": "not •••", "enum": ["•••", 1]}
    }
    assert listing.masked == {"use"}
    marks = mark_definition(Definition.from_wire(wire), is_masked=True)
    fields = {mark.field for mark in marks if mark.kind == "secret"}
    assert {"description", "title", "_meta.note"} <= fields
    assert mark_definition(Definition.from_wire(fine)) == ()


def test_a_tool_whose_name_or_keys_hold_a_secret_is_kept_out() -> None:
    connection = odd_connection("lists_its_secret", env={"API_TOKEN": CANARY})
    listing = upstream.list_tools(connection, limits=Limits(), rules=AT_HOME)
    rejected = {one.name: one.why for one in listing.rejected}
    assert list(rejected) == ["bad-•••", "named-•••", "keyed", "requiring"]
    for name in ("named-•••", "keyed", "requiring"):
        assert rejected[name] == "its name or the name of a parameter holds a secret of its server"


@pytest.mark.parametrize(
    ("connection", "is_masked"),
    [
        (Connection(Transport.STDIO, env={"MODE": "production"}), False),
        (Connection(Transport.STDIO, env={"BASE": "https://api.example.com/v1"}), False),
        (Connection(Transport.STDIO, env={"ROOT": "/srv/files"}), False),
        (Connection(Transport.STDIO, args=("--mode", "production"), env={"X": "1234567"}), False),
        (Connection(Transport.HTTP, headers={"Accept": "application/json"}), False),
        (Connection(Transport.HTTP, headers={"X-MCP-Tools": "create_issue"}), False),
        (Connection(Transport.HTTP, headers={"X-MCP-Tools": "create_issue,Get-Issue"}), False),
        (Connection(Transport.STDIO, env={"ENABLED_TOOLS": "create_issue"}), False),
        (Connection(Transport.STDIO, env={"ENABLED_TOOLS": "get_s3_object"}), False),
        (Connection(Transport.HTTP, headers={"X-Api-Version": "2022-11-28"}), False),
        (Connection(Transport.STDIO, env={"GITHUB_TOOLSETS": "issues repository pull_requests"}), False),
        (Connection(Transport.STDIO, env={"OPTIONS": "mode=production --region=eu-west-1"}), False),
        (Connection(Transport.STDIO, args=("--api-key=pr1vate-key",)), False),
        (Connection(Transport.STDIO, args=("mcp-remote", "https://a.b/?tools=create_issue")), False),
        (Connection(Transport.HTTP, url="https://a.b/mcp?tools=create_issue&mode=production"), False),
        (Connection(Transport.HTTP, url="https://a.b/repository_pull_requests#production"), False),
        (Connection(Transport.STDIO, env={"POSTGRES_PASSWORD": "postgres"}), False),
        (Connection(Transport.STDIO, env={"DATABASE_URL": "postgres://postgres:postgres@db/app"}), False),
        (Connection(Transport.STDIO, env={"DATABASE_URL": "postgres://postgres:pr0duction@db/app"}), True),
        (Connection(Transport.HTTP, url="https://a.b/?token=production"), True),
        (Connection(Transport.HTTP, url="https://a.b/?mode=pr0duction"), True),
        (Connection(Transport.HTTP, url="https://production:a@a.b/"), True),
        (Connection(Transport.STDIO, args=("https://a.b/?token=production",)), True),
        (Connection(Transport.STDIO, env={"OPTIONS": "--password=production"}), True),
        (Connection(Transport.STDIO, env={"OPTIONS": "--password production"}), True),
        (Connection(Transport.STDIO, env={"GIVEN": "ghp_abcdefghijklmnop"}), True),
        (Connection(Transport.STDIO, env={"LICENSE": "ABCD123_EFGH456"}), True),
        (Connection(Transport.HTTP, headers={"X-Upstream": "Bearer production"}), True),
        (Connection(Transport.STDIO, env={"PASSWORD": "production"}), True),
        (Connection(Transport.STDIO, env={"MODE": "pr0duction"}), True),
        (Connection(Transport.STDIO, args=("--token", "production")), True),
        (Connection(Transport.HTTP, headers={"Authorization": "Bearer production"}), True),
    ],
)
def test_plain_words_stay_in_definitions(connection: Connection, is_masked: bool) -> None:
    text = (
        "production pr0duction https://api.example.com/v1 /srv/files application/json 1234567 create_issue "
        "Get-Issue issues repository pull_requests eu-west-1 --api-key ghp_abcdefghijklmnop "
        "get_s3_object 2022-11-28 ABCD123_EFGH456 postgres_query"
    )
    assert (mask_within([text], secrets=secrets_in_texts(connection)) != [text]) == is_masked


def test_a_secret_cut_by_the_end_of_the_tail_does_not_show_its_rest() -> None:
    long = CANARY * 40
    connection = odd_connection("tells_its_secrets", env={"API_TOKEN": long})
    with pytest.raises(UpstreamFailure) as failure:
        upstream.list_tools(connection, limits=Limits(stderr_tail_bytes=600), rules=AT_HOME)
    assert CANARY not in failure.value.stderr_tail
