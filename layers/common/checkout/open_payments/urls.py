"""URLs as they are signed and sent: one form, decided once.

Refuses what two URL libraries would print differently, because the signature covers the printed
form.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_DEFAULT_PORT = {"https": 443, "http": 80}
_ALLOWED = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]+")  # RFC 3986 without "#"
_DOT_SEGMENT = re.compile(r"/\.{1,2}(?:/|$)")
_HOST = re.compile(r"[a-z0-9\-._~]+|\[[0-9a-f:.]+\]")
MAX_URL = 2048


def target_uri(url: str) -> str:
    """`url` as the server will see it (RFC 9421, section 2.2.2): root slash added, host and scheme
    in lower case, default port dropped, the rest untouched. ValueError where that is not certain;
    it never quotes the URL."""
    scheme, authority, path, query = _split(url)
    return f"{scheme}://{authority}{path or '/'}{query}"


def origin(url: str) -> str:
    """`scheme://host[:port]` of `url`, in the form of `target_uri`. Raises ValueError as that
    does."""
    scheme, authority, _, _ = _split(url)
    return f"{scheme}://{authority}"


def under(base: str, *segments: str) -> str:
    """`base` and the path segments below it, with one slash between."""
    return "/".join((base.rstrip("/"), *segments))


def last_segment(url: str) -> str:
    """The last path segment of `url`, "" where there is none."""
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


def is_loopback(url: str) -> bool:
    """Whether the host of `url` is this machine by name: localhost, *.localhost, 127.0.0.0/8 or
    [::1]."""
    host = urlsplit(url).hostname or ""
    return (
        host == "localhost"
        or host.endswith(".localhost")
        or host == "::1"
        or re.fullmatch(r"127(?:\.[0-9]{1,3}){3}", host) is not None
    )


def _split(url: str) -> tuple[str, str, str, str]:
    if len(url) > MAX_URL or not _ALLOWED.fullmatch(url):
        raise ValueError("not a URL that can be signed: too long, or characters that need encoding")
    parts = urlsplit(url)  # also refuses an unclosed bracket
    authority = parts.netloc.lower()
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, ""
    if parts.scheme not in _DEFAULT_PORT or not _HOST.fullmatch(host):
        raise ValueError("not an absolute http or https URL with a plain host")
    if colon and port and not (port.isdigit() and 0 < int(port) <= 65535):
        raise ValueError("not a port")
    if _DOT_SEGMENT.search(parts.path):
        raise ValueError("dot segments are removed by some libraries and kept by others")
    if port and int(port) != _DEFAULT_PORT[parts.scheme]:
        host = f"{host}:{int(port)}"
    query = f"?{parts.query}" if parts.query else ""
    return parts.scheme, host, parts.path, query
