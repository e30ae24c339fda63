"""Which addresses may be connected to, whatever way they are written."""

import pytest

from catalog.domain.addresses import AddressRules, why_address_refused

STRICT = AddressRules()
AT_HOME = AddressRules(allow_private=True)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("::1", "a loopback address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("::ffff:7f00:1", "a loopback address"),
        ("2002:7f00:1::", "a loopback address"),
        ("64:ff9b::7f00:1", "a loopback address"),
        ("0.0.0.0", "the unspecified address"),
        ("::", "the unspecified address"),
        ("169.254.169.254", "a link-local address"),
        ("fe80::1%eth0", "a link-local address"),
        ("10.1.2.3", "a private address"),
        ("172.16.0.1", "a private address"),
        ("192.168.1.1", "a private address"),
        ("100.64.0.1", "a private address"),
        ("fd00::1", "a private address"),
        ("168.63.129.16", "a reserved address"),
        ("::ffff:168.63.129.16", "a reserved address"),
        ("64:ff9b::a83f:8110", "a reserved address"),
        ("192.0.0.192", "a reserved address"),
        ("192.88.99.1", "a reserved address"),
        ("64:ff9b:1::1", "a reserved address"),
        ("fec0::1", "a private address"),
        ("5f00::1", "a reserved address"),
        ("3fff::1", "a reserved address"),
        ("::127.0.0.1", "a reserved address"),
        ("2001:db8::1", "a reserved address"),
        ("2001:0:7f00:1::", "a reserved address"),
        ("224.0.0.1", "a multicast address"),
        ("ff02::1", "a multicast address"),
        ("2130706433", "not an IP address"),
        ("0x7f.1", "not an IP address"),
        ("localhost", "not an IP address"),
    ],
)
def test_what_is_not_public_is_refused(address: str, reason: str) -> None:
    assert why_address_refused(address, STRICT) == reason


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:4700::1111", "::ffff:93.184.215.14"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert why_address_refused(address, STRICT) is None


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "0.0.0.0"]
)
def test_at_home_private_addresses_are_allowed(address: str) -> None:
    assert why_address_refused(address, AT_HOME) is None


def test_even_at_home_multicast_is_refused() -> None:
    assert why_address_refused("224.0.0.1", AT_HOME) == "a multicast address"
