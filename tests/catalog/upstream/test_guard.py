"""The address that is checked is the address that is connected to."""

import pytest

from catalog import upstream
from catalog.domain.addresses import AddressRules
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Limits, Rules, UpstreamFailure
from catalog.upstream.guard import resolve_host

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
