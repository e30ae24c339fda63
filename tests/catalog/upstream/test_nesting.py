"""Messages nested deeper than the client's parser goes: only what is deep is lost."""

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import jsonrpc_message_adapter

from catalog.domain.addresses import AddressRules
from catalog.domain.connection import Limits
from catalog.domain.limits import MESSAGE_LEVELS, SCHEMA_LEVELS
from catalog.upstream import nesting
from catalog.upstream.definitions import judge_definitions
from catalog.upstream.guard import GuardedTransport, _CountedStream
from catalog.upstream.nesting import cut_nesting
from tests.catalog.upstream.conftest import ListOdd

# Far more than the slowest of these takes, and far less than anything that is not linear would.
MOST_CPU_SECONDS = 5


def listing(levels: int) -> bytes:
    schema = '{"type":"object","properties":{"a[{\\"":' * levels + "{}" + "}}" * levels
    tools = f'[{{"name":"deep","inputSchema":{schema}}},{{"name":"flat","inputSchema":{{"type":"object"}}}}]'
    return f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":{tools}}}}}'.encode()


@pytest.mark.parametrize("levels", [100, 150, 5_000])
def test_a_deep_schema_costs_its_own_tool_alone(levels: int) -> None:
    message: Any = jsonrpc_message_adapter.validate_json(cut_nesting(listing(levels)))
    kept, rejected = judge_definitions(message.result["tools"])
    assert [tool["name"] for tool in kept] == ["flat"]
    assert [(one.name, one.why) for one in rejected] == [
        ("deep", f"it is nested too deeply: more than {SCHEMA_LEVELS} levels")
    ]


def test_a_server_with_one_deep_schema_lists_the_others(list_odd: ListOdd) -> None:
    listed = list_odd("nests_one_deep")
    assert [tool["name"] for tool in listed.definitions][-1] == "last"
    assert [one.name for one in listed.rejected] == ["deep"]


signs = st.text('[]{}"\\a')
values = st.recursive(st.none() | signs, lambda inner: st.lists(inner) | st.dictionaries(signs, inner))


@given(values)
def test_other_messages_pass_as_they_are(value: object) -> None:
    message = json.dumps(value).encode()
    assert cut_nesting(message) == message


def test_the_cut_is_where_the_bound_is() -> None:
    for levels, inside in ((MESSAGE_LEVELS, ""), (MESSAGE_LEVELS + 1, "null"), (MESSAGE_LEVELS + 9, "null")):
        cut = cut_nesting(b"[" * levels + b"]" * levels)
        assert cut.decode().strip("[]") == inside
        assert cut.count(b"[") == cut.count(b"]") == MESSAGE_LEVELS


@pytest.mark.parametrize("message", [b"[" * 1_000, b"]" * 1_000, b'{"a":"' + b"[" * 1_000, b"[}" * 1_000])
def test_what_is_no_json_stays_as_it_is(message: bytes) -> None:
    assert cut_nesting(message) == message


@pytest.mark.parametrize("more", [0, 2])
def test_a_message_of_too_many_brackets_is_left_to_the_parser(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nesting, "MESSAGE_BRACKETS", 4 * MESSAGE_LEVELS)
    levels = 2 * MESSAGE_LEVELS
    message = b"[" * levels + b"]" * levels + b"[]" * (more // 2)
    assert (cut_nesting(message) == message) == bool(more)


@pytest.mark.parametrize(
    "message",
    [
        b"[" * 8_000_000 + b"]" * 8_000_000,
        b"[" * 400_000 + b"]" * 400_000,
        b"[" + b"[]," * 400_000 + b"]",
        b"[" * 200 + b'"",' * 5_000_000 + b"]" * 200,
        b"[" * 200 + b'"' + rb"\"" * 4_000_000,
        b"[" * 200 + b"a" * 8_000_000 + b'"' + b"b" * 8_000_000,
        b"[" * 200 + b'"' * 15_000_001,
    ],
    ids=range(7),
)
def test_hostile_messages_take_time_in_proportion(message: bytes) -> None:
    started = time.process_time()
    cut_nesting(message)
    assert time.process_time() - started < MOST_CPU_SECONDS


@pytest.mark.parametrize(("kind", "before"), [("application/json", b""), ("text/event-stream", b"data: ")])
def test_messages_over_http_are_cut_however_they_are_sent(kind: str, before: bytes) -> None:
    sent = before + listing(150) + b"\r\n\r\n"

    class Pieces(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for at in range(0, len(sent), 1_000):
                yield sent[at : at + 1_000]

    async def read() -> bytes:
        guard = GuardedTransport(
            rules=AddressRules(), limits=Limits(), resolver=lambda *_: (), telling_methods=frozenset()
        )
        response = httpx2.Response(200, headers={"content-type": kind}, stream=Pieces())
        return b"".join([chunk async for chunk in _CountedStream(response, "host", guard)])

    received = anyio.run(read)
    assert received.startswith(before)
    assert received.endswith(b"\r\n\r\n")
    assert jsonrpc_message_adapter.validate_json(received.removeprefix(b"data: "))
