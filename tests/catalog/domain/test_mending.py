"""Each failure leads to the setting that mends it."""

import pytest

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, UpstreamFailure, field_that_mends, resolve

REMOTE = Connection(Transport.HTTP, url="https://mcp.test/", headers={"X-Key": "Bearer ${API_KEY}"})
LOCAL = Connection(Transport.STDIO, command="npx", args=("--root", "${ROOT}"), env={"TOKEN": "${API_KEY}"})


@pytest.mark.parametrize(
    ("code", "message", "connection", "field"),
    [
        (FailureCode.UNAUTHORIZED, "", REMOTE, "headers"),
        (FailureCode.UNKNOWN_HOST, "", REMOTE, "url"),
        (FailureCode.NOT_MCP, "", REMOTE, "url"),
        (FailureCode.NOT_MCP, "", LOCAL, "command"),
        (FailureCode.INVALID_ADDRESS, "The header Host is set by HTTP itself", REMOTE, "headers"),
        (FailureCode.COMMAND_NOT_FOUND, "", LOCAL, "command"),
        (FailureCode.FOLDER_NOT_FOUND, "", LOCAL, "cwd"),
        (FailureCode.EXITED, "", LOCAL, "args"),
        (FailureCode.LIST_TIMEOUT, "", LOCAL, "timeout_seconds"),
        (FailureCode.SECRETS_UNREADABLE, "", REMOTE, "headers"),
        (FailureCode.UNEXPECTED, "", LOCAL, ""),
        ("of a later version", "", LOCAL, ""),
    ],
)
def test_failure_leads_to_a_field(code: str, message: str, connection: Connection, field: str) -> None:
    assert field_that_mends(code, message, connection) == field


@pytest.mark.parametrize(
    ("connection", "environment", "field"),
    [(REMOTE, {}, "headers"), (LOCAL, {"ROOT": "/srv"}, "env"), (LOCAL, {"API_KEY": "x"}, "args")],
)
def test_unset_variable_leads_to_where_it_is_referred_to(
    connection: Connection, environment: dict[str, str], field: str
) -> None:
    with pytest.raises(UpstreamFailure) as failure:
        resolve(connection, environment)
    assert field_that_mends(failure.value.code, failure.value.message, connection) == field
