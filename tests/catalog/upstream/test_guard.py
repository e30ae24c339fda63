"""The address that is checked is the address that is connected to."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from catalog import upstream
from catalog.domain.addresses import AddressRules
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Limits, Rules, UpstreamFailure
from catalog.upstream import guard
from catalog.upstream.guard import GuardedTransport, resolve_host, shared_tls_context

STRICT = Rules()


def block(url: str, *, rules: Rules = STRICT, addresses: list[str] | None = None) -> UpstreamFailure:
    with pytest.raises(UpstreamFailure) as failure:
        upstream.list_tools(
            Connection(Transport.HTTP, url=url),
            limits=Limits(),
            rules=rules,
            resolver=resolve_host if addresses is None else lambda host, port: addresses,
        )
    assert failure.value.code is FailureCode.BLOCKED_ADDRESS
    return failure.value


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0"),
        *("169.254.169.254", "[::1]", "10.0.0.1", "100.64.0.1"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_way_of_writing_a_private_address_gets_through(scheme: str, host: str) -> None:
    block(f"{scheme}://{host}:9/mcp")


def test_the_reason_names_the_host_and_keeps_its_address() -> None:
    failure = block("http://inside.example.org/mcp", addresses=["10.0.0.7"])
    assert failure.message == (
        "The host inside.example.org is at a private address: the settings do not allow that"
    )


def test_one_private_address_among_public_ones_is_enough() -> None:
    block("http://mixed.example.org/mcp", addresses=["93.184.215.14", "127.0.0.1"])


def test_a_name_is_looked_up_once_so_it_cannot_change_its_mind(http_port: int) -> None:
    answers = iter([["127.0.0.1"]])
    listing = upstream.list_tools(
        Connection(Transport.HTTP, url=f"http://localhost:{http_port}/mcp"),
        limits=Limits(),
        rules=Rules(addresses=AddressRules(allow_private=True)),
        resolver=lambda host, port: next(answers),
    )
    assert len(listing.definitions) == 2
    assert next(answers, None) is None


def test_the_settings_of_the_environment_are_not_used(
    http_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    listing = upstream.list_tools(
        Connection(Transport.HTTP, url=f"http://127.0.0.1:{http_port}/mcp"),
        limits=Limits(),
        rules=Rules(addresses=AddressRules(allow_private=True)),
    )
    assert len(listing.definitions) == 2


def get_twice(port: int, resolver: Callable[[str, int], list[str]]) -> None:
    """Two requests over one connection that is kept, as a lease has it."""

    async def get() -> None:
        transport = GuardedTransport(
            rules=AddressRules(allow_private=True),
            limits=Limits(),
            resolver=resolver,
            telling_methods=frozenset(),
        )
        async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            for _ in range(2):
                await client.get(f"http://localhost:{port}/mcp")

    asyncio.run(get())


def test_a_kept_connection_looks_a_name_up_again_after_a_while(
    http_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["127.0.0.1"]

    get_twice(http_port, resolver)
    assert looked_up == ["localhost"]
    monkeypatch.setattr(guard, "ADDRESS_KEPT_SECONDS", -1.0)
    looked_up.clear()
    get_twice(http_port, resolver)
    assert looked_up == ["localhost", "localhost"]


def test_all_connections_share_one_tls_context(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    make = httpx2.create_ssl_context

    def create(**options: Any) -> Any:
        made.append(options)
        return make(**options)

    monkeypatch.setattr(httpx2, "create_ssl_context", create)
    guard._tls_context.cache_clear()
    for _ in range(5):
        GuardedTransport(
            rules=AddressRules(), limits=Limits(), resolver=resolve_host, telling_methods=frozenset()
        )
    assert len(made) == 1
    assert shared_tls_context() is shared_tls_context()
