"""Servers that behave, over every transport: what is listed is what the SDK's own client lists."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, Limits, ServerListing
from tests.catalog.upstream.conftest import AT_HOME, ListOdd, list_with_sdk, sdk_connection


def list_at(transport: Transport, url: str) -> ServerListing:
    return upstream.list_tools(Connection(transport, url=url), limits=Limits(), rules=AT_HOME)


@pytest.fixture(scope="module")
def expected() -> list[dict[str, Any]]:
    given = sdk_connection()
    return list_with_sdk(StdioServerParameters(command=given.command, args=list(given.args)))


def test_stdio_lists_what_the_sdk_lists(expected: list[dict[str, Any]]) -> None:
    listing = upstream.list_tools(sdk_connection(), limits=Limits(), rules=AT_HOME)
    assert list(listing.definitions) == expected
    assert {"title", "icons", "annotations", "outputSchema", "_meta"} <= expected[0].keys()


def test_streamable_http_lists_what_the_sdk_lists(http_port: int, expected: list[dict[str, Any]]) -> None:
    listing = list_at(Transport.HTTP, f"http://127.0.0.1:{http_port}/mcp")
    assert list(listing.definitions) == expected


def test_sse_lists_what_the_sdk_lists(sse_port: int, expected: list[dict[str, Any]]) -> None:
    listing = list_at(Transport.SSE, f"http://127.0.0.1:{sse_port}/sse")
    assert list(listing.definitions) == expected


def test_a_name_with_several_addresses_reaches_the_one_that_listens(http_port: int) -> None:
    listing = upstream.list_tools(
        Connection(Transport.HTTP, url=f"http://localhost:{http_port}/mcp"),
        limits=Limits(),
        rules=AT_HOME,
        resolver=lambda host, port: ["::1", "127.0.0.2", "127.0.0.1"],
    )
    assert len(listing.definitions) == 2


def test_the_server_introduces_itself() -> None:
    listing = upstream.list_tools(sdk_connection(), limits=Limits(), rules=AT_HOME)
    assert (listing.server_name, listing.server_title, listing.server_version) == (
        "library",
        "The Library",
        "2.1",
    )
    assert listing.instructions == "Ask for books."
    assert listing.protocol_version == "2026-07-28"


def test_every_page_is_read_in_order(list_odd: ListOdd) -> None:
    listing = list_odd("has_three_pages")
    assert [tool["name"] for tool in listing.definitions] == ["fine", "finer", "finest"]


def test_a_banner_on_stdout_does_no_harm(list_odd: ListOdd) -> None:
    assert len(list_odd("greets_with_a_banner").definitions) == 1


def test_a_server_that_ends_on_the_newest_greeting_is_asked_the_old_way(list_odd: ListOdd) -> None:
    assert len(list_odd("ends_on_an_unknown_question").definitions) == 1


def test_several_servers_can_be_listed_side_by_side(list_odd: ListOdd) -> None:
    with ThreadPoolExecutor(4) as pool:
        listings = list(pool.map(list_odd, ["is_fine", "has_three_pages"] * 4))
    assert [len(listing.definitions) for listing in listings] == [1, 3] * 4
