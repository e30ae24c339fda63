"""What is refused before MCP is spoken: keys, hosts, methods, sizes, addresses."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import anyio
import pytest
from django.db import OperationalError
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE
from catalog.domain.limits import GATEWAY_BODY_BYTES
from catalog.models import ApiKey
from catalog.services import keys
from sessions.gateway import callers
from tests.harness.gateway import ADDRESS, ERAS, MODERN, RunningGateway, run_gateway
from tests.sessions.gateway.catalog import ON_THREADS, Catalog, make_key

pytestmark = ON_THREADS


class TestKeys:
    @pytest.mark.parametrize("era", ERAS)
    @pytest.mark.parametrize("key", ["", "nonsense", "tk_aaaaaaaa_" + "b" * 43, "tk_\x7f", "a" * 10_000])
    def test_none_or_unknown_is_401_that_says_what_to_do(
        self, gateway: RunningGateway, key: str, era: str
    ) -> None:
        answer = gateway.ask(key, "tools/list", era=era)
        assert answer.status == 401
        assert answer.problem["detail"] == "Send a key that is in force: Authorization: Bearer <key>."
        assert answer.headers["www-authenticate"] == "Bearer"

    def test_another_with_the_prefix_of_a_key_in_force_is_401(
        self, gateway: RunningGateway, catalog: Catalog
    ) -> None:
        forged = catalog.key[:-4] + "AAAA"
        assert gateway.ask(forged, "tools/list").status == 401

    def test_revoked_is_401_at_once(self, gateway: RunningGateway, catalog: Catalog) -> None:
        key, text = make_key(catalog.policy)
        assert gateway.ask(text, "tools/list").status == 200
        keys.revoke_key(key=key, actor=COMMAND_LINE)
        assert gateway.ask(text, "tools/list").status == 401

    def test_expired_is_401(self, gateway: RunningGateway, catalog: Catalog) -> None:
        key, text = make_key(catalog.policy, expires_at=timezone.now() + timedelta(hours=1))
        assert gateway.ask(text, "tools/list").status == 200
        ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())
        assert gateway.ask(text, "tools/list").status == 401

    def test_scheme_is_read_in_any_case(self, gateway: RunningGateway, catalog: Catalog) -> None:
        answer = gateway.ask("", "tools/list", headers={"Authorization": f"bEaReR   {catalog.key} "})
        assert answer.status == 200

    def test_past_its_rate_is_429_and_says_when_to_come_back(
        self, gateway: RunningGateway, catalog: Catalog
    ) -> None:
        text = make_key(catalog.policy, rate_limit_per_minute=2)[1]
        statuses = [gateway.ask(text, "tools/list").status for _ in range(2)]
        refused = gateway.ask(text, "tools/list")
        assert (statuses, refused.status) == ([200, 200], 429)
        assert 1 <= int(refused.headers["retry-after"]) <= 60


class TestHosts:
    @pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "localhost@evil.example"])
    def test_foreign_is_421(self, gateway: RunningGateway, catalog: Catalog, host: str) -> None:
        answer = gateway.ask(catalog.key, "tools/list", headers={"Host": host})
        assert answer.status == 421
        assert "ALLOWED_HOSTS" in answer.problem["detail"]

    @pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1:8001", "LOCALHOST:1"])
    def test_allowed_whatever_the_port(self, gateway: RunningGateway, catalog: Catalog, host: str) -> None:
        assert gateway.ask(catalog.key, "tools/list", headers={"Host": host}).status == 200

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://[", "file://"])
    def test_foreign_origin_is_403(self, gateway: RunningGateway, catalog: Catalog, origin: str) -> None:
        assert gateway.ask(catalog.key, "tools/list", headers={"Origin": origin}).status == 403

    def test_own_origin_is_let_in(self, gateway: RunningGateway, catalog: Catalog) -> None:
        answer = gateway.ask(catalog.key, "tools/list", headers={"Origin": "http://localhost:8000"})
        assert answer.status == 200


class TestRequests:
    @pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
    def test_other_methods_are_405(self, gateway: RunningGateway, catalog: Catalog, method: str) -> None:
        answer = gateway.send(method, key=catalog.key)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")

    def test_other_paths_are_404(self, gateway: RunningGateway, catalog: Catalog) -> None:
        assert gateway.send(key=catalog.key, url=f"{ADDRESS}/x").status == 404

    def test_whether_it_lives_anybody_may_ask(self, gateway: RunningGateway) -> None:
        url = ADDRESS.replace("/mcp", "/healthz")
        answer = gateway.send("GET", url=url, headers={"Host": "10.0.0.1"})
        assert (answer.status, answer.text) == (200, "ok\n")

    @pytest.mark.parametrize(
        ("query", "known"),
        [
            ("?expose=all", "search, native"),
            ("?expose=", "search, native"),
            ("?expose=search&expose=native", "search, native"),
            ("?names=short", "qualified, own"),
        ],
    )
    def test_other_words_in_the_address_are_400_that_names_the_known(
        self, gateway: RunningGateway, catalog: Catalog, query: str, known: str
    ) -> None:
        answer = gateway.ask(catalog.key, "tools/list", query=query)
        assert answer.status == 400
        assert known in answer.problem["detail"]

    def test_without_the_database_it_is_503(
        self, gateway: RunningGateway, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(prefix: str) -> None:
            raise OperationalError("the server closed the connection: password=secret")

        monkeypatch.setattr(callers, "_read", fail)
        answer = gateway.ask(catalog.key, "tools/list")
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert "secret" not in answer.text


def write_nested(levels: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + b"[" * levels + b"]" * levels + b"}"


GARBAGE = {
    "empty": b"",
    "no JSON": b"hello",
    "broken": b'{"jsonrpc":"2.0","id":1,"method":',
    "text": b'"tools/list"',
    "number": b"1",
    "large number": b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"tools/list"}',
    "null": b"null",
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "surrogate": b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    "batch": b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
    "empty batch": b"[]",
    "nested": write_nested(100_000),
    "no method": b'{"jsonrpc":"2.0","id":1}',
    "answer": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "method of another type": b'{"jsonrpc":"2.0","id":1,"method":5}',
    "params of another type": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}',
    "id of another type": b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
}


NO_CALLS: list[dict[str, Any]] = [
    {"name": 5},
    {"name": ""},
    {"name": "x" * 100_000},
    {},
    {"name": "fixture__echo", "arguments": []},
    {"name": "fixture__echo", "arguments": "text"},
    {"name": "call_tool", "arguments": {"name": {}}},
    {"name": "call_tool", "arguments": {"name": "fixture__echo", "arguments": "text"}},
]


class TestBodies:
    @pytest.mark.parametrize("era", ERAS)
    def test_garbage_is_a_clear_error(self, gateway: RunningGateway, catalog: Catalog, era: str) -> None:
        headers = {
            "Content-Type": "application/json",
            "MCP-Protocol-Version": era,
            "Mcp-Method": "tools/list",
        }
        for name, body in GARBAGE.items():
            answer = gateway.send(key=catalog.key, content=body, headers=headers)
            if answer.status != 202:  # what has no id is told nothing
                assert answer.status == 400, name
                assert answer.messages[-1]["error"]["message"], name

    @pytest.mark.parametrize("era", ERAS)
    def test_calls_that_are_none_are_no_internal_error(
        self, gateway: RunningGateway, catalog: Catalog, era: str
    ) -> None:
        for params in NO_CALLS:
            answer = gateway.ask(catalog.key, "tools/call", params, era=era)
            assert answer.status in {200, 400}, params
            message = answer.messages[-1]
            is_told = message["result"]["isError"] if "result" in message else "error" in message
            assert is_told, params
            assert "error" not in message or message["error"]["code"] != -32603, message
            assert len(answer.text) < 2_000

    def test_over_a_mebibyte_is_413(self, gateway: RunningGateway, catalog: Catalog) -> None:
        body = b" " * (GATEWAY_BODY_BYTES + 1)
        assert gateway.send(key=catalog.key, content=body).status == 413

    @pytest.mark.parametrize("era", ERAS)
    def test_over_a_mebibyte_in_chunks_is_413(
        self, gateway: RunningGateway, catalog: Catalog, era: str
    ) -> None:
        async def write() -> AsyncIterator[bytes]:
            for _ in range(GATEWAY_BODY_BYTES // 65_536 + 1):
                yield b" " * 65_536

        headers = {"MCP-Protocol-Version": era, "Content-Type": "application/json"}
        assert gateway.send(key=catalog.key, content=write(), headers=headers).status == 413

    def test_of_just_a_mebibyte_is_read(self, gateway: RunningGateway, catalog: Catalog) -> None:
        text = "x" * (GATEWAY_BODY_BYTES - 2_000)
        answer = gateway.call(catalog.key, "fixture__count", {"text": text})
        assert answer.said.isdigit()


class TestSlowBodies:
    @pytest.fixture
    def gateway(self, catalog: Catalog) -> Iterator[RunningGateway]:
        with run_gateway(body_seconds=0.2) as running:
            yield running

    @pytest.mark.parametrize("era", ERAS)
    def test_one_that_never_comes_is_given_up(
        self, gateway: RunningGateway, catalog: Catalog, era: str
    ) -> None:
        async def write() -> AsyncIterator[bytes]:
            yield b'{"jsonrpc":'
            await anyio.sleep_forever()

        headers = {"MCP-Protocol-Version": era, "Content-Type": "application/json"}
        answer = gateway.send(key=catalog.key, content=write(), headers=headers)
        assert answer.status == 408

    @pytest.mark.parametrize("era", ERAS)
    def test_the_time_is_the_bodys_and_not_the_calls(
        self, gateway: RunningGateway, catalog: Catalog, era: str
    ) -> None:
        assert gateway.call(catalog.key, "fixture__slow", {"seconds": 0.6}, era=era).said == "done"


def test_an_admins_key_acts_under_its_own_policy(gateway: RunningGateway, catalog: Catalog) -> None:
    catalog.change(visible=["echo"])
    text = make_key(catalog.policy, scope="admin")[1]
    assert gateway.call(text, "fixture__echo", {"text": "x"}).said == "x"
    assert gateway.call(text, "fixture__slow").error["code"] == -32602


def test_a_client_without_a_version_is_served_as_an_old_one(
    gateway: RunningGateway, catalog: Catalog
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = gateway.send(key=catalog.key, json=body)
    assert answer.result["tools"]
    assert MODERN not in answer.text
