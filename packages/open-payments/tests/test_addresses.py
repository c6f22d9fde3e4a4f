from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from open_payments.transports.addresses import is_host, is_permitted


@pytest.mark.parametrize(
    "address",
    [
        "1.0.0.0", "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255",
        "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0",
        "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
        "198.17.255.255", "198.20.0.0",
        "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888",
        "2001:200::1", "::ffff:8.8.8.8",
    ],
)  # fmt: skip
def test_public_unicast_addresses_are_permitted(address: str) -> None:
    assert is_permitted(address)
    assert is_permitted(address, allow_loopback=True)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",  # noqa: S104 - refused, not bound to
        "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255",
        "100.100.100.200", "168.63.129.16", "::ffff:168.63.129.16", "169.254.0.0",
        "169.254.169.254", "169.254.255.255", "172.16.0.0",
        "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.31.196.1", "192.52.193.1",
        "192.88.99.1", "192.168.0.0", "192.168.255.255", "192.175.48.1", "198.18.0.0",
        "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
        "240.0.0.1", "255.255.255.255",
        "::", "::8.8.8.8", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:8.8.8.8",
        "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:808:808::1", "2002:a00:1::1",
        "2620:4f:8000::1", "3ffe::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254",
        "fe80::1", "fe80::1%eth0", "2606:4700::1111%eth0", "fec0::1", "ff02::1", "ff0e::1",
    ],
)  # fmt: skip
def test_every_other_block_is_refused_also_where_loopback_is_allowed(address: str) -> None:
    assert not is_permitted(address)
    assert not is_permitted(address, allow_loopback=True)


@pytest.mark.parametrize(
    "address", ["127.0.0.0", "127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"]
)
def test_loopback_is_permitted_only_where_it_is_allowed(address: str) -> None:
    assert not is_permitted(address)
    assert is_permitted(address, allow_loopback=True)


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f.0.0.1", "010.0.0.1", "8.8.8.8:443"]
)
def test_what_is_not_an_address_is_refused(text: str) -> None:
    assert not is_permitted(text, allow_loopback=True)


@given(st.ip_addresses())
def test_no_address_is_permitted_that_the_standard_library_knows_as_special(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_permitted(str(address)):
        judged = getattr(address, "ipv4_mapped", None) or address
        assert judged.is_global
        assert not judged.is_multicast
        assert not judged.is_reserved


@pytest.mark.parametrize(
    "host",
    [
        "example.com", "WALLET.example", "a", "localhost", "xn--mnchen-3ya.example", "3com.example",
        "1.2.3.4", "a-b.c--d.example", "0x7f.example", "::1", "2606:4700::1111",
        "a" * 63 + ".example",
        ".".join(["a" * 61] * 4) + ".aaaaa",
    ],
)  # fmt: skip
def test_names_and_whole_addresses_are_hosts(host: str) -> None:
    assert is_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "", ".", "example.com.", ".example.com", "a..b", "-a.example", "a-.example", "a_b.example",
        "münchen.example", "ｅxample.com", "127。0。0。1", "exa mple.com", "a%2eb", "user@a", "a/b",
        "a\n",
        "2130706433", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "1.2.3.4.5",
        "1.2.3.256",
        "example.123", "example.0x", "1.2.3.0x4", "fe80::1%eth0", "[::1]", "1::2::3", ":",
        "a" * 64 + ".example", ".".join(["a" * 61] * 4) + ".aaaaaaa",
    ],
)  # fmt: skip
def test_what_readers_could_understand_differently_is_no_host(host: str) -> None:
    assert not is_host(host)
