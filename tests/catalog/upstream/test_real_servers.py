"""Servers this project did not write: name by name and schema by schema what the SDK's own client lists."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, Limits, ServerListing
from tests.catalog.upstream.conftest import AT_HOME, list_with_sdk
from tests.catalog.upstream.test_features import list_features_with_sdk
from tests.harness.workers import find_free_port
from tests.servers.installed import EVERYTHING, STDIO_SERVERS, RealServer, require_installed

pytestmark = [pytest.mark.servers, pytest.mark.slow]


@pytest.fixture(autouse=True)
def installed() -> None:
    require_installed()


def list_ours(connection: Connection) -> ServerListing:
    return upstream.list_tools(connection, limits=Limits(), rules=AT_HOME)


def assert_same(listing: ServerListing, expected: list[dict[str, Any]]) -> None:
    assert expected
    assert [tool["name"] for tool in listing.definitions] == [tool["name"] for tool in expected]
    for ours, theirs in zip(listing.definitions, expected, strict=True):
        assert ours == theirs
    assert listing.rejected == ()


@pytest.mark.parametrize("server", STDIO_SERVERS, ids=lambda server: server.name)
def test_stdio_lists_what_the_sdk_lists(server: RealServer) -> None:
    expected = list_with_sdk(StdioServerParameters(command=server.command, args=list(server.args)))
    listing = list_ours(Connection(Transport.STDIO, command=server.command, args=server.args))
    assert_same(listing, expected)
    assert listing.server_name
    assert listing.protocol_version in {"2025-11-25", "2026-07-28"}


@contextmanager
def run_everything(transport: str) -> Iterator[int]:
    """The everything server over HTTP; gives its port."""
    port = find_free_port()
    command = [EVERYTHING.command, *EVERYTHING.args, transport]
    environment = {**os.environ, "PORT": str(port)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr
            assert any(re.search(rf"\b{port}\b", line) for line in process.stderr)
            yield port
        finally:
            process.kill()


def test_everything_is_listed_with_what_it_offers_beside_tools() -> None:
    server = StdioServerParameters(command=EVERYTHING.command, args=list(EVERYTHING.args))
    connection = Connection(Transport.STDIO, command=EVERYTHING.command, args=EVERYTHING.args)
    features = list_ours(connection).features
    assert features == list_features_with_sdk(server)
    assert features.resources
    assert features.templates
    assert features.prompts
    assert features.completions


def test_streamable_http_lists_what_the_sdk_lists() -> None:
    with run_everything("streamableHttp") as port:
        url = f"http://127.0.0.1:{port}/mcp"
        assert_same(list_ours(Connection(Transport.HTTP, url=url)), list_with_sdk(url))


def test_sse_lists_what_the_sdk_lists() -> None:
    with run_everything("sse") as port:
        url = f"http://127.0.0.1:{port}/sse"
        assert_same(list_ours(Connection(Transport.SSE, url=url)), list_with_sdk(sse_client(url)))
