"""What a server offers beside its tools is listed with them, within limits, and never at their cost."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from pydantic import BaseModel

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, Features, Limits, ServerListing
from tests.catalog.upstream.conftest import AT_HOME, SERVERS, ListOdd, sdk_connection

TOKEN = "t0ken-9f8e7d6c5b4a"


def whys(listing: ServerListing) -> dict[str, str]:
    return {one.name: one.why for one in listing.rejected}


def list_features_with_sdk(server: Any) -> Features:
    """What the SDK's own client lists, in wire form."""

    def dump(listed: Sequence[BaseModel]) -> tuple[dict[str, Any], ...]:
        return tuple(each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in listed)

    async def ask() -> Features:
        async with Client(server, cache=None) as client:
            return Features(
                resources=dump((await client.list_resources()).resources),
                templates=dump((await client.list_resource_templates()).resource_templates),
                prompts=dump((await client.list_prompts()).prompts),
                completions=client.server_capabilities.completions is not None,
            )

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def expected() -> Features:
    given = sdk_connection()
    return list_features_with_sdk(StdioServerParameters(command=given.command, args=list(given.args)))


def test_stdio_lists_what_the_sdk_lists(expected: Features) -> None:
    listing = upstream.list_tools(sdk_connection(), limits=Limits(), rules=AT_HOME)
    assert listing.features == expected
    assert (len(expected.resources), len(expected.templates), len(expected.prompts)) == (1, 1, 1)
    assert expected.completions
    assert listing.rejected == ()


def test_http_and_sse_list_the_same(http_port: int, sse_port: int, expected: Features) -> None:
    for transport, url in (
        (Transport.HTTP, f"http://127.0.0.1:{http_port}/mcp"),
        (Transport.SSE, f"http://127.0.0.1:{sse_port}/sse"),
    ):
        listing = upstream.list_tools(Connection(transport, url=url), limits=Limits(), rules=AT_HOME)
        assert listing.features == expected


def test_bad_definitions_are_left_out_alone_and_secrets_masked(list_odd: ListOdd) -> None:
    listing = list_odd("offers_more", env={"API_TOKEN": TOKEN})
    assert listing.features == Features(
        resources=({"uri": "memo://1", "name": "one", "description": "With •••."},),
        prompts=({"name": "greet", "arguments": [{"name": "who", "required": True}]},),
        completions=True,
    )
    assert whys(listing) == {
        "resource #2": "it has no name",
        "resource #3": "it is not an object",
        "resource again": "another resource of this server has the same uri",
        "resource secret": "what it is asked for by holds a secret of its server",
        "prompt #2": "it has no name",
        "prompt leak": "what it is asked for by holds a secret of its server",
    }
    assert TOKEN not in repr(listing)


def test_a_server_without_any_offers_nothing(list_odd: ListOdd) -> None:
    assert list_odd("is_fine").features == Features()


def test_past_their_number_no_more_pages_are_asked_for(list_odd: ListOdd) -> None:
    listing = list_odd("offers_very_much", max_features=30)
    assert listing.features is not None
    assert len(listing.features.prompts) == 30
    assert whys(listing) == {"prompts": "only the first 30 are kept"}


def test_they_are_bounded_in_bytes_together(list_odd: ListOdd) -> None:
    listing = list_odd("offers_very_much", max_features=39, max_features_bytes=10_000)
    assert listing.features is not None
    assert 20 < len(listing.features.prompts) < 25
    assert "more than the 10,000 bytes allowed" in whys(listing)["prompt p38"]


def test_they_are_not_asked_for_where_none_are_wanted(list_odd: ListOdd) -> None:
    assert list_odd("hangs_on_prompts", max_features=0).features is None


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("hangs_on_prompts", "The server did not answer prompts/list in time"),
        ("fails_on_prompts", "•••"),
        ("dies_on_prompts", ""),
        ("turns_in_a_circle_of_prompts", "lead in a circle"),
        ("lists_no_list_of_prompts", "prompts/list holds no list of prompts"),
    ],
)
def test_a_server_that_fails_at_them_still_lists_its_tools(
    list_odd: ListOdd, behaviour: str, why: str
) -> None:
    listing = list_odd(behaviour, env={"API_TOKEN": TOKEN}, list_timeout_seconds=3)
    assert [tool["name"] for tool in listing.definitions] == ["fine"]
    assert listing.features is None
    told = whys(listing)["resources and prompts"]
    assert told.startswith("could not be listed, and what was listed before stays: ")
    assert why in told
    assert TOKEN not in told


class TestToolsThatAsk:
    """Servers list by capability. Of the newest protocol alone questions pass through the gateway."""

    def test_are_listed_where_they_can_work(self) -> None:
        connection = Connection(
            Transport.STDIO, command=sys.executable, args=(str(SERVERS / "asking_server.py"),)
        )
        listing = upstream.list_tools(connection, limits=Limits(), rules=AT_HOME)
        assert [tool["name"] for tool in listing.definitions] == ["plain", "elicitation", "sampling", "roots"]

    def test_are_not_listed_where_questions_come_the_old_way(self, list_odd: ListOdd) -> None:
        listing = list_odd("asks_the_old_way")
        assert [tool["name"] for tool in listing.definitions] == ["plain"]
