"""The hosts and network addresses that `PublicTransport` connects to: public unicast only.

This is an allow-list, because a customer who types a wallet address chooses the target of our
requests, and the target could be in our own network. `ipaddress.is_global` is not used, because its
table differs between Python releases, and because it allows multicast and address blocks that
contain an IPv4 address.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

from open_payments.urls import is_infrastructure, is_loopback, is_name

Resolve = Callable[[str, int, int, int], Iterable[tuple[Any, ...]]]

# IPv4 has no prefix for public addresses: every unicast address is public unless it is in one of
# these networks (IANA's registry of special-purpose addresses, RFC 6890).
_NOT_PUBLIC_V4: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network, RFC 791
            "10.0.0.0/8",  # private, RFC 1918
            "100.64.0.0/10",  # carrier-grade NAT, RFC 6598
            "127.0.0.0/8",  # loopback, RFC 1122
            "169.254.0.0/16",  # link local, RFC 3927: the clouds' metadata services
            "172.16.0.0/12",  # private, RFC 1918
            "192.0.0.0/24",  # protocol assignments, RFC 6890
            "192.0.2.0/24",  # documentation, RFC 5737
            "192.31.196.0/24",  # AS112, RFC 7535
            "192.52.193.0/24",  # multicast tunnels, RFC 7450
            "192.88.99.0/24",  # 6to4 relays, RFC 7526
            "192.168.0.0/16",  # private, RFC 1918
            "192.175.48.0/24",  # AS112, RFC 7534
            "198.18.0.0/15",  # benchmarks, RFC 2544
            "198.51.100.0/24",  # documentation, RFC 5737
            "203.0.113.0/24",  # documentation, RFC 5737
            "224.0.0.0/4",  # multicast, RFC 5771
            "240.0.0.0/4",  # reserved and broadcast, RFC 1112 and 919
        ),
    )
)

# All public unicast addresses of IPv6 are in this network (RFC 4291, 3587). Loopback, local and
# multicast addresses and NAT64 (64:ff9b::/96, RFC 6052) are not.
_GLOBAL_UNICAST_V6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_V6: Final = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, RFC 2928: Teredo (RFC 4380), ORCHID, benchmarks
            "2001:db8::/32",  # documentation, RFC 3849
            "2002::/16",  # 6to4, RFC 3056: leads to the IPv4 address inside
            "2620:4f:8000::/48",  # AS112, RFC 7534
            "3ffe::/16",  # 6bone, returned, RFC 3701
            "3fff::/20",  # documentation, RFC 9637
        ),
    )
)

# A name that "ends in a number" (URL standard). Resolvers read it as IPv4 (2130706433, 0x7f.1).
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


def look_up(resolve: Resolve, host: str, port: int, within: float) -> list[str]:
    """Return the host's addresses, each once.

    Run the resolver in a thread, because getaddrinfo has no timeout. It is a daemon thread, so that
    it does not delay the end of the process. Raises the resolver's errors, and TimeoutError.
    """
    found: Future[Iterable[tuple[Any, ...]]] = Future()

    def ask() -> None:
        try:
            found.set_result(resolve(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001 - raised in the waiting thread
            found.set_exception(error)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    return list(dict.fromkeys(entry[4][0] for entry in found.result(within)))


def is_permitted(address: str, *, allow_loopback: bool = False) -> bool:
    """Return whether a connection to `address`, which a resolver returned, is permitted.

    `allow_loopback` adds only 127.0.0.0/8 and ::1.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if is_infrastructure(address):
        return False
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id is not None:
            return False
        if parsed.ipv4_mapped is None:
            if is_loopback(address):
                return allow_loopback
            return parsed in _GLOBAL_UNICAST_V6 and not any(parsed in net for net in _NOT_PUBLIC_V6)
        parsed = parsed.ipv4_mapped  # RFC 4291: connections go to the IPv4 address inside
    if is_loopback(str(parsed)):
        return allow_loopback
    return not any(parsed in net for net in _NOT_PUBLIC_V4)


def is_host(host: str) -> bool:
    """Return whether every program reads `host`, without brackets or port, in the same way.

    A DNS name, a dotted quad and an IPv6 address are allowed, but not the names that
    `is_infrastructure` recognizes. After resolution, `is_permitted` checks the host's addresses.
    """
    if is_infrastructure(host):
        return False
    if ":" in host:
        try:
            return IPv6Address(host).scope_id is None
        except ValueError:
            return False
    if not is_name(host):
        return False
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        try:
            IPv4Address(host)
        except ValueError:
            return False
    return True
