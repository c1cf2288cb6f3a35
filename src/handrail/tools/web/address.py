"""Which addresses http.request may reach: public ones, and those that a person allowed.

Pure. Names are looked up and connections made in http_client.py."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

TRANSLATED: Final = IPv6Network("64:ff9b::/96")
"""NAT64 maps every IPv4 address into this network, public or not."""
COMPATIBLE: Final = IPv6Network("::/96")
"""A deprecated way to write IPv4 addresses."""

# Our own tables: those of `ipaddress` differ between versions of Python.
NOT_PUBLIC_4: Final = (
    *map(IPv4Network, ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32")),
    *map(IPv4Network, ("169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24")),
    *map(IPv4Network, ("192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15")),
    *map(IPv4Network, ("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")),
)
"""Private, reserved, for documentation or multicast; 168.63.129.16 is the inner service of a large cloud."""
UNICAST: Final = IPv6Network("2000::/3")
"""All public IPv6 addresses are in here."""
NOT_PUBLIC_6: Final = (
    *map(IPv6Network, ("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3ffe::/16", "3fff::/20")),
)


def is_public(address: str) -> bool:
    """Whether an address is public, and also the address that it may embed."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped:
            return False  # no server has such an address; it is only written to get past a guard
        if parsed in TRANSLATED:
            return is_public(str(_last_part(parsed)))
    return all(_is_global(one) for one in (parsed, *_wrapped(parsed)))


def is_allowed(host: str, port: int, addresses: Iterable[str], allow: Iterable[str]) -> bool:
    """Whether a person allowed this host, or all addresses that its name resolves to."""
    entries = {_spelled(entry) for entry in allow}
    named = (_plain(host), *(_plain(address) for address in addresses))
    allowed = [(name, None) in entries or (name, port) in entries for name in named]
    return allowed[0] or (len(allowed) > 1 and all(allowed[1:]))


def _is_global(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in NOT_PUBLIC_4)
    return address in UNICAST and not any(address in network for network in NOT_PUBLIC_6)


def _wrapped(address: Address) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address embeds."""
    if isinstance(address, IPv4Address):
        return []
    compatible = _last_part(address) if address in COMPATIBLE else None
    known = (address.sixtofour, *(address.teredo or ()), compatible)
    return [one for one in known if one is not None]


def _last_part(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


def _spelled(entry: str) -> tuple[str, int | None]:
    """An entry of the list of allowed hosts, split into host and port."""
    if entry.startswith("["):
        host, _, port = entry.removeprefix("[").partition("]")
        return _plain(host), int(port.removeprefix(":")) if port else None
    host, colon, port = entry.rpartition(":")
    if not colon or ":" in host:  # no port, or a bare IPv6 address
        return _plain(entry), None
    return _plain(host), int(port)


def _plain(host: str) -> str:
    """The canonical spelling of a host: lower case, no trailing dot, addresses in their short form."""
    plain = host.lower().removesuffix(".").strip("[]")
    try:
        return str(ip_address(plain))
    except ValueError:
        return plain
