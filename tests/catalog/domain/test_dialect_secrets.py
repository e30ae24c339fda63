import json
from typing import Any

import pytest

from catalog.domain.choices import Transport
from catalog.domain.dialects import Dialect, ServerEntry, is_reference, render_config
from catalog.domain.dialects.secrets import hide_secrets
from catalog.domain.policy import Policy


def hide(**fields: Any) -> ServerEntry:
    transport = Transport.HTTP if "url" in fields else Transport.STDIO
    return hide_secrets(ServerEntry(name="my-hub", transport=transport, **fields))


def test_variables_become_references_to_themselves() -> None:
    hidden = hide(command="x", env={"GITHUB_TOKEN": "ghp_abc", "EMPTY": "", "OTHER": "${OTHER}"})
    assert hidden.env == {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "EMPTY": "", "OTHER": "${OTHER}"}


def test_headers_keep_their_scheme_and_name_the_server() -> None:
    hidden = hide(url="https://a.b", headers={"Authorization": "Bearer abc", "X-Api-Key": "abc"})
    assert hidden.headers == {
        "Authorization": "Bearer ${MY_HUB_AUTHORIZATION}",
        "X-Api-Key": "${MY_HUB_X_API_KEY}",
    }


@pytest.mark.parametrize(
    ("args", "hidden"),
    [
        (["-y", "@scope/server-github@1.2.3"], ["-y", "@scope/server-github@1.2.3"]),
        (["--token", "abc", "dir"], ["--token", "${MY_HUB_TOKEN}", "dir"]),
        (["--api-key=abc"], ["--api-key=${MY_HUB_API_KEY}"]),
        (["API_KEY=abc"], ["API_KEY=${MY_HUB_API_KEY}"]),
        (["--port=8080", "--verbose"], ["--port=8080", "--verbose"]),
        (["--token", "--verbose"], ["--token", "--verbose"]),
        (["ghp_abcdefgh12345678"], ["${MY_HUB_ARG_1}"]),
        (["-e", "X=ghp_abcdefgh12345678"], ["-e", "X=${MY_HUB_X}"]),
        (["-e", "MODE=fast", "--env", "A=b"], ["-e", "MODE=${MY_HUB_MODE}", "--env", "A=${MY_HUB_A}"]),
        (["--env=MODE=fast"], ["--env=MODE=${MY_HUB_MODE}"]),
        (["run", "-e", "TOKEN", "image"], ["run", "-e", "TOKEN", "image"]),
        (["--header", "X-Team: tools"], ["--header", "X-Team: ${MY_HUB_X_TEAM}"]),
        (["0123456789abcdef0123456789abcdef"], ["${MY_HUB_ARG_1}"]),
        (["postgres://me:pw@db/x"], ["postgres://${MY_HUB_CREDENTIALS}@db/x"]),
        (
            ["--header", "Authorization: Bearer abc"],
            ["--header", "Authorization: Bearer ${MY_HUB_AUTHORIZATION}"],
        ),
        (["http_proxy=http://me:pw@proxy"], ["http_proxy=http://${MY_HUB_CREDENTIALS}@proxy"]),
        (["--url", "http://[me:pw"], ["--url", "${MY_HUB_URL}"]),
        (["/home/me/projects", "src-tauri"], ["/home/me/projects", "src-tauri"]),
    ],
)
def test_arguments_that_look_secret_are_left_out(args: list[str], hidden: list[str]) -> None:
    assert hide(command="npx", args=tuple(args)).args == tuple(hidden)


@pytest.mark.parametrize(
    ("url", "hidden"),
    [
        ("https://a.example/mcp", "https://a.example/mcp"),
        ("https://a.example/mcp?key=abc&x", "https://a.example/mcp?key=${MY_HUB_KEY}&x"),
        ("https://me:pw@a.example/mcp", "https://${MY_HUB_CREDENTIALS}@a.example/mcp"),
        ("https://a.example/s/Zm9vYmFy0123456789AB/mcp", "https://a.example/s/${MY_HUB_PATH}/mcp"),
        ("${BASE}/mcp", "${BASE}/mcp"),
    ],
)
def test_addresses_lose_credentials_and_parameters(url: str, hidden: str) -> None:
    assert hide(url=url).url == hidden


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${A}", True),
        ("Bearer ${A_1}", True),
        ("${A:-secret}", False),
        ("x${A}", False),
        ("hunter2 ${A}", False),
        ("", False),
    ],
)
def test_a_reference_names_a_secret_and_holds_none(value: str, expected: bool) -> None:
    assert is_reference(value) is expected


def test_secrets_are_written_only_when_asked_for() -> None:
    server = ServerEntry(name="a", transport=Transport.STDIO, command="x", env={"TOKEN": "hunter2"})
    without = render_config(Dialect.CLAUDE, [server], Policy()).document
    assert "hunter2" not in json.dumps(without)
    assert "hunter2" in json.dumps(render_config(Dialect.CLAUDE, [server], Policy(), secrets=True).document)
