"""Identify clients by network address, also behind an edge (a CDN in front of the service).

The gateway reports the address of the sender (`sourceIp`). Behind an edge, this is the edge's own
address, and the client's address is in X-Forwarded-For. But any client can send that header, too.
So X-Forwarded-For is used only in requests that have the edge's secret in the header Edge-Secret.
The edge adds both headers.
"""

from __future__ import annotations

import hmac
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from fastapi import Request

EDGE_HEADER: Final = "edge-secret"
_V6_PREFIX: Final = 64  # the network that a provider gives to one customer (RFC 6177)


def client_of(request: Request, edge_secret: str) -> str:
    """Return the client: its IPv4 address, or the /64 network of its IPv6 address.

    `edge_secret` is the edge's secret, or "" without an edge. While the secret is being replaced,
    `edge_secret` contains both secrets, separated by a comma.
    """
    source = request.client.host if request.client else ""
    if proven(request.headers.get(EDGE_HEADER, ""), edge_secret):
        source = _forwarded(request.headers.get("x-forwarded-for", ""), source)
    address = _address(source)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, _V6_PREFIX), strict=False))
    return source if address is None else str(address)


def proven(presented: str, edge_secret: str) -> bool:
    """Return whether `presented` is the edge's secret, compared in constant time."""
    given = presented.encode()
    matches = [hmac.compare_digest(given, each.encode()) for each in edge_secret.split(",")]
    return bool(given) and any(matches)


def _forwarded(header: str, source: str) -> str:
    """Return the address from which the client sent the request to the edge.

    In the header, this is the last address except the edge's own. The client may have invented all
    earlier addresses.
    """
    named = [part.strip() for part in header.split(",")]
    if named and named[-1] == source:
        named.pop()
    return named[-1] if named and _address(named[-1]) is not None else source


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
