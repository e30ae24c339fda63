"""Network addresses that servers may have. Checks IP addresses; names are resolved before."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Addresses of the well-known NAT64 prefix end in an IPv4 address that the gateway will connect to.
_NAT64 = IPv6Network("64:ff9b::/96")
# Not on the public internet, by IANA's registries of special-purpose addresses (October 2025), whatever the
# tables of the running Python know; and hosts of clouds that answer every machine in them.
_PRIVATE = tuple(
    ip_network(network)
    for network in ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")
)
_SPECIAL = _PRIVATE + tuple(
    ip_network(network)
    for network in (
        *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"),
        *("::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32"),
        *("3fff::/20", "5f00::/16", "fe80::/10"),
        "168.63.129.16/32",  # Azure; those of the others are in the ranges above
    )
)


@dataclass(frozen=True, slots=True)
class AddressRules:
    allow_private: bool = False


def why_address_refused(address: str, rules: AddressRules) -> str | None:
    """Say why nothing may connect to this IP address; None when it may."""
    try:
        given = ip_address(address)
    except ValueError:
        return "not an IP address"
    target = _innermost(given)
    if target.is_multicast:
        return "a multicast address"
    if rules.allow_private or (target.is_global and not _is_within((given, target), _SPECIAL)):
        return None
    return _name_range(target)


def _innermost(address: Address) -> Address:
    """The IPv4 address embedded in an IPv6 one, where there is one: that is where packets go."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_within(addresses: Iterable[Address], networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks for address in addresses)


def _name_range(address: Address) -> str:
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_unspecified:
        return "the unspecified address"
    return "a private address" if _is_within((address,), _PRIVATE) else "a reserved address"
