"""URLs: the one splitter, the grammar of URLs that are signed and sent, and loopback.

`split` takes any text apart (RFC 3986); nothing else in the product parses URLs by hand. `target`
is the grammar of a URL to which requests are sent. It refuses what two URL libraries would print
differently, because a signature covers the printed form. The URLs for a customer's browser, and
those that a merchant can register, follow the grammar in checkout/domain/ground/grammar.py.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, NamedTuple
from urllib.parse import urljoin

MAX_URL: Final = 2048
NAME_MAX: Final = 253  # characters of a host name (RFC 1123)

# RFC 3986, appendix B, with the scheme of section 3.1.
_PARTS: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):)?(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.DOTALL,
)
_DEFAULT_PORT: Final = {"https": 443, "http": 80}
_SENT: Final = re.compile(r"[!-\[\]-~]+")  # printable ASCII without the backslash
_SIGNED: Final = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]+")  # RFC 3986 without "#"
_DOT_SEGMENT: Final = re.compile(r"/\.{1,2}(?:/|$)")
# RFC 1123 labels: no trailing dot, no underscore, no Unicode (an IDN comes in its xn-- form).
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_IPV6: Final = re.compile(r"\[[0-9a-f:.]+\]")
_LOOPBACK: Final = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))  # RFC 1122, RFC 4291
# Metadata and platform services of clouds. All of them except Azure's are in ranges that are not
# public, so transports/addresses.py refuses them, too. This list is a second protection that does
# not depend on ranges.
_CLOUD_V4: Final = (
    IPv4Network("169.254.0.0/16"),  # link local: metadata at 169.254.169.254 nearly everywhere
    IPv4Network("168.63.129.16/32"),  # Azure's platform, a public address
    IPv4Network("100.100.100.200/32"),  # Alibaba Cloud
    IPv4Network("192.0.0.192/32"),  # Oracle Cloud
)
_CLOUD_V6: Final = (
    IPv6Network("fe80::/10"),  # link local
    IPv6Network("fd00:ec2::/32"),  # AWS: metadata, resolver, clock, credentials of containers
    IPv6Network("fd20:ce::/32"),  # Google Cloud
    IPv6Network("fd00:42::/32"),  # Scaleway
)
# Each name begins with a dot, so that it matches the name, its subdomains and no other name.
_CLOUD_NAMES: Final = (
    ".metadata", ".metadata.goog", ".metadata.google.internal",  # Google Cloud
    ".instance-data", ".instance-data.ec2.internal",  # AWS
    ".metadata.azure.internal",
    ".metadata.tencentyun.com",
    ".metadata.packet.net", ".metadata.platformequinix.com",  # Equinix Metal
    ".api.metadata.cloud.ibm.com",
    ".kubernetes.default", ".kubernetes.default.svc", ".cluster.local",
)  # fmt: skip
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052: the IPv4 address is in the last 32 bits


class Parts(NamedTuple):
    """A URL taken apart.

    `scheme` is in lower case, "" if there is none. `authority` is None if there is no `//`. `query`
    and `fragment` begin with "?" and "#", or are "".
    """

    scheme: str
    authority: str | None
    path: str
    query: str
    fragment: str


@dataclass(frozen=True, slots=True)
class Target:
    """A URL to which requests are sent.

    `authority`, `path` and `query` ("" or "?…") are as written. `scheme` and `host` are in lower
    case; an IPv6 `host` is in brackets. `port` is the scheme's default if none is written.
    """

    scheme: str
    authority: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        port = "" if self.port == _DEFAULT_PORT[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


def split(url: str) -> Parts:
    """Split any text as a URL. Nothing is checked."""
    found = _PARTS.fullmatch(url)
    assert found is not None  # every part may be empty
    scheme, authority, path, query, fragment = found.groups()
    return Parts((scheme or "").lower(), authority, path, query or "", fragment or "")


def host_and_port(authority: str) -> tuple[str, str | None]:
    """Return the host, and the text after the colon of the port, or None if there is no colon."""
    end = authority.rfind("]") + 1
    host, colon, port = authority[end:].partition(":")
    return authority[:end] + host, port if colon else None


def is_name(host: str) -> bool:
    """Return whether `host` is a DNS name (RFC 1123)."""
    return len(host) <= NAME_MAX and _NAME.fullmatch(host) is not None


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine: localhost, *.localhost, 127.0.0.0/8 or ::1."""
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return f".{host.lower()}".endswith(".localhost")
    return any(address in network for network in _LOOPBACK)


def is_address(host: str) -> bool:
    """Return whether `host` is an IP address, in any notation that browsers read."""
    return _address(host.removeprefix("[").removesuffix("]").removesuffix(".")) is not None


def is_infrastructure(host: str) -> bool:
    """Return whether `host`, a name or an address in any notation, is in the lists of clouds."""
    plain = host.removeprefix("[").removesuffix("]").lower().removesuffix(".")
    address = _address(plain)
    if address is None:
        return f".{plain}".endswith(_CLOUD_NAMES)
    if isinstance(address, IPv4Address):
        return any(address in network for network in _CLOUD_V4)
    return any(address in network for network in _CLOUD_V6)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address that browsers and resolvers read in `text`, even in "2852039166"."""
    try:
        if ":" not in text:
            return IPv4Address(socket.inet_aton(text))
        found = IPv6Address(text)
    except (OSError, ValueError):
        return None
    inner = IPv4Address(int(found) & 0xFFFF_FFFF) if found in _NAT64 else None
    return found.ipv4_mapped or found.sixtofour or inner or found


def target(url: str) -> Target:
    """Parse a URL to which requests are sent. Raise ValueError, which never quotes the URL.

    Refuses the hosts for which `is_infrastructure` is true.
    """
    scheme, authority, path, query, fragment = split(url)
    if len(url) > MAX_URL or not _SENT.fullmatch(url) or fragment:
        raise ValueError("not a URL that can be sent: too long, or characters that need encoding")
    host, port = host_and_port((authority or "").lower())
    if scheme not in _DEFAULT_PORT or not (is_name(host) or _IPV6.fullmatch(host)):
        raise ValueError("not an absolute http or https URL with a plain host")
    if is_infrastructure(host):
        raise ValueError("the host belongs to a cloud's infrastructure")
    if port and not (port.isdigit() and 0 < int(port) <= 65535):
        raise ValueError("port refused")
    number = int(port) if port else _DEFAULT_PORT[scheme]
    return Target(scheme, authority or "", host, number, path, query if query != "?" else "")


def target_uri(url: str) -> str:
    """Return `url` as the server will see it and as it is signed (RFC 9421, section 2.2.2).

    Adds the root slash, writes host and scheme in lower case, drops the default port and leaves the
    rest unchanged. Raises ValueError if URL libraries could print the URL differently. The error
    never quotes the URL.
    """
    found = target(url)
    if not _SIGNED.fullmatch(url):
        raise ValueError("not a URL that can be signed: characters that need encoding")
    if _DOT_SEGMENT.search(found.path):
        raise ValueError("dot segments are removed by some libraries and kept by others")
    return f"{found.origin}{found.path or '/'}{found.query}"


def is_sent(url: str) -> bool:
    """Return whether `target_uri` accepts `url`."""
    try:
        target_uri(url)
    except ValueError:
        return False
    return True


def joined(base: str, reference: str) -> str:
    """Resolve `reference`, from an answer of `base` (RFC 3986, section 5).

    The result is in the form of `target_uri`. Raises ValueError as `target_uri` does, and for an
    empty reference.
    """
    if not _SIGNED.fullmatch(reference):  # a library would drop some of the characters
        raise ValueError("not a URL that can be sent: empty, or characters that need encoding")
    return target_uri(reference if split(reference).scheme else urljoin(base, reference))


def origin(url: str) -> str:
    """Return `scheme://host[:port]` of `target_uri(url)`. Raise ValueError as `target_uri` does."""
    return target(target_uri(url)).origin


def authority(url: str) -> str:
    """Return `host[:port]` of `url` as written, or "" if there is none."""
    return split(url).authority or ""


def under(base: str, *segments: str) -> str:
    """Return the URL of the path `segments` below `base`, with one slash between."""
    return "/".join((base.rstrip("/"), *segments))


def last_segment(url: str) -> str:
    """Return the last path segment of `url`, or "" if there is none."""
    return split(url).path.rstrip("/").rpartition("/")[2]
