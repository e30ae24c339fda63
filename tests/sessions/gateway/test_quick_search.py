"""A search of the newest revision is answered ahead of the library's dispatch, with the same words."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY

from catalog.search.request import MatchedBy
from sessions.gateway import application
from sessions.models import SearchEvent
from sessions.services import write_behind
from tests.harness.gateway import MODERN, Answer, RunningGateway
from tests.harness.searches import watch_searches
from tests.sessions.gateway.catalog import ON_THREADS, Catalog

pytestmark = ON_THREADS

SEARCH = "search_tools"
META: dict[str, Any] = {
    PROTOCOL_VERSION_META_KEY: MODERN,
    CLIENT_CAPABILITIES_META_KEY: {},
    CLIENT_INFO_META_KEY: {"name": "raw", "version": "1"},
}
HEADERS = {
    "MCP-Protocol-Version": MODERN,
    "Mcp-Method": "tools/call",
    "Mcp-Name": SEARCH,
    "Content-Type": "application/json",
}


def write(arguments: object = None, *, params: Mapping[str, Any] | None = None, **fields: Any) -> bytes:
    """A sound search, but for what is changed."""
    given = {"name": SEARCH, "arguments": arguments or {"query": "echo"}, "_meta": META, **(params or {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given, **fields}
    return json.dumps(message).encode()


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in META.items() if key != name}


def ask(gateway: RunningGateway, catalog: Catalog, body: bytes, **headers: str) -> Answer:
    return gateway.send(key=catalog.key, content=body, headers={**HEADERS, **headers})


def ask_both(
    gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, body: bytes, **headers: str
) -> tuple[Answer, Answer]:
    """The gateway's answer, and that of the library alone."""
    ours = ask(gateway, catalog, body, **headers)
    with monkeypatch.context() as patched:
        patched.setattr(application, "answer_search", lambda *_: None)
        return ours, ask(gateway, catalog, body, **headers)


SOUND = {
    "query": write({"query": "echo"}),
    "no match": write({"query": "zebra"}),
    "by name": write({"query": "select:mcp__fixture__echo"}),
    "by pattern": write({"pattern": "ec.o"}),
    "of one": write({"query": "echo", "max_results": 1}),
    "not ASCII": write({"query": "ひらがな é \u2028 \x7f"}),
    "text as id": write(id='a"b\u2028é'),
    "empty id": write(id=""),
    "number below zero as id": write(id=-5),
    "no client's name": write(params={"_meta": without(CLIENT_INFO_META_KEY)}),
    "progress wanted": write(params={"_meta": {**META, "progressToken": 7}}),
    "more fields": write(params={"unknown": {"a": 1}}, also=True),
}


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_sound_one_has_the_library_s_answer_and_record(
    gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    ours, theirs = ask_both(gateway, catalog, monkeypatch, body)
    assert (ours.status, ours.messages) == (theirs.status, theirs.messages)
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    write_behind.flush()
    recorded = SearchEvent.objects.values_list("session__external_id", "query", "outcome", "hits")
    assert len(recorded) == 2
    assert recorded[0] == recorded[1]


UNSOUND = {
    "half of a character": write({"query": "\ud800 echo"}),
    "NUL": write({"pattern": "echo\0"}),
    "no arguments": write(params={"arguments": None}),
    "arguments left out": json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": SEARCH, "_meta": META}}
    ).encode(),
    "no JSON": b"hello",
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "batch": b"[" + write() + b"]",
    "nested": b'{"jsonrpc":"2.0","id":1,"params":' + b"[" * 100_000,
    "large number": write(id=1).replace(b'"id": 1', b'"id": ' + b"9" * 5000),
    "other version of JSON-RPC": write(jsonrpc="1.0"),
    "id of another type": write(id={}),
    "id that is true": write(id=True),
    "id with a fraction": write(id=1.5),
    "null as id": write(id=None),
    "other method": write(method="tools/list"),
    "other tool": write(params={"name": "describe_tools"}),
    "no tool": write(params={"name": None}),
    "params of another type": write(params={}).replace(b'"params": {', b'"params": [{', 1)[:-1] + b"]}",
    "arguments of another type": write(params={"arguments": [1]}),
    "no meta": write(params={"_meta": None}),
    "no revision": write(params={"_meta": without(PROTOCOL_VERSION_META_KEY)}),
    "no capabilities": write(params={"_meta": without(CLIENT_CAPABILITIES_META_KEY)}),
    "other revision": write(params={"_meta": {**META, PROTOCOL_VERSION_META_KEY: "2025-11-25"}}),
    "client of another type": write(params={"_meta": {**META, CLIENT_INFO_META_KEY: {"name": 1}}}),
    "capabilities of another type": write(params={"_meta": {**META, CLIENT_CAPABILITIES_META_KEY: 1}}),
    "query of another type": write({"query": 5}),
    "pattern that cannot be read": write({"pattern": "("}),
    "too many results": write({"query": "echo", "max_results": 10_000}),
}


@pytest.mark.parametrize("body", UNSOUND.values(), ids=UNSOUND)
def test_unsound_one_has_the_library_s_error(
    gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    ours, theirs = ask_both(gateway, catalog, monkeypatch, body)
    assert (ours.status, ours.messages) == (theirs.status, theirs.messages)
    assert ours.status >= 400 or ours.is_tool_error
    write_behind.flush()
    assert not SearchEvent.objects.exists()


@pytest.mark.parametrize(
    "headers", [{"Accept": "text/event-stream"}, {"Accept": "text/html"}, {"Accept": "application/*"}]
)
def test_what_the_client_takes_is_heard(
    gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    ours, theirs = ask_both(gateway, catalog, monkeypatch, write(), **headers)
    assert (ours.status, ours.messages) == (theirs.status, theirs.messages)


def test_header_given_twice_is_refused(gateway: RunningGateway, catalog: Catalog) -> None:
    answer = gateway.send(
        key=catalog.key, content=write(), headers=HEADERS, more_headers=[("Mcp-Name", SEARCH)]
    )
    assert answer.status == 400
    assert "more than once" in answer.error["message"]


def test_what_only_meaning_found_is_told_as_that(
    gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.change(meaning_floor=0.6)
    searches = watch_searches(monkeypatch, by=MatchedBy.MEANING)
    found = ask(gateway, catalog, write({"query": "echo"})).result["structuredContent"]
    assert found["matches"]
    assert "by meaning, none by words" in found["message"]
    assert searches.floors == [0.6]
