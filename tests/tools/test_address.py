"""Which addresses are public, and what a person's list of allowed hosts means."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.web.address import is_allowed, is_public

PRIVATE = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 169.254.169.254
172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1
240.0.0.1 255.255.255.255
:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:8.8.8.8
::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
64:ff9b:1::1 2001:db8::1 2002:7f00:1:: 2002:a00:1:: 2001:0:a00:1:: fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0
fec0::1 ff02::1 ff0e::1
192.0.0.9 192.0.0.10 192.0.0.170 192.0.0.255 168.63.129.16 192.88.99.1 192.88.99.2 192.31.196.1 192.52.193.1
192.175.48.1 3fff::1 3fff:fff:ffff::1 2001::1 2001:20::1 2001:1::1 4000::1 5f00::1 100::1
2002:a83f:8110:: 2002:c058:6301::
64:ff9b::a83f:8110 64:ff9b::c058:6301 1::1 ::8.8.8.8
"""


@pytest.mark.parametrize("address", PRIVATE.split())
def test_an_address_that_is_not_foreverybody_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "8.8.8.8",
        "2606:2800:220:1::1",
        "64:ff9b::5db8:d822",
        "168.63.129.15",
        "192.0.1.1",
        "192.88.98.1",
        "2002:808:808::",
        "3fff:1000::1",
        "2a00:1450::1",
    ],
)
def test_an_address_foreverybody_is_public(address: str) -> None:
    assert is_public(address)


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_an_address_wrapped_in_another_is_never_more_public_than_itself(number: int) -> None:
    plain = is_public(str(IPv4Address(number)))
    for wrapped in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80, number):
        assert plain or not is_public(str(IPv6Address(wrapped)))


@pytest.mark.parametrize(
    ("allow", "is_it"),
    [
        (["ci.internal"], True),
        (["ci.internal:8080"], True),
        (["ci.internal:80"], False),
        (["internal"], False),
        (["10.0.0.1"], False),  # the name leads to another address, too
        (["10.0.0.1", "fd00::1"], True),
        (["10.0.0.1:8080", "[fd00::1]:8080"], True),
        (["10.0.0.1:8080", "[FD00:0::1]"], True),
        ([], False),
    ],
)
def test_a_host_is_allowed_by_its_name_or_by_all_its_addresses(allow: list[str], is_it: bool) -> None:
    assert is_allowed("CI.internal.", 8080, ["10.0.0.1", "fd00::1"], allow) is is_it


def test_a_name_without_addresses_is_allowed_by_its_name_alone() -> None:
    assert not is_allowed("nowhere", 80, [], ["elsewhere"])
