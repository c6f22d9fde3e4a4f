"""A parsed request: path segments, lower-case header names, JSON body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from open_payments.transports import Request
from sandbox.wallets import answers, javascript

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
MAX_BODY = 1024 * 1024  # bytes; the limit of the body parser under Rafiki


def is_id(text: str) -> bool:
    """Return whether `text` is a UUID. Rafiki answers 500 to some requests with any other id."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `url` is the URL that the server sees: without fragment, and always with a path.

    `origin` is the server's address: scheme, host and port, and on a test stage also the path below
    which the server is. `path` is the rest of the URL's path after the origin.
    """

    method: str
    url: str
    origin: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    raw: bytes = field(repr=False)

    @classmethod
    def of(cls, request: Request, *, servers: Iterable[str] = ()) -> Call:
        """Parse a request. Its origin is the longest of `servers` that its URL begins with.

        If there is none, the origin is scheme, host and port.
        """
        parts = urlsplit(request.url)
        host = f"{parts.scheme}://{parts.netloc}"
        path = parts.path or "/"
        query = f"?{parts.query}" if parts.query else ""
        whole = f"{host.lower()}{path}"
        below = [each for each in servers if whole == each or whole.startswith(f"{each}/")]
        origin = max(below, key=len, default=host.lower())
        return cls(
            method=request.method.upper(),
            url=f"{host}{path}{query}",
            origin=origin,
            path=whole[len(origin) :] or "/",
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in request.headers.items()},
            raw=request.body or b"",
        )

    def json(self) -> Any:
        """Parse the body, with numbers as floats; return None if there is no body.

        Raises Refusal if a JSON body parser would reject it.
        """
        if not self.raw:
            return None
        if len(self.raw) > MAX_BODY:
            raise answers.plain(413, "Payload Too Large")
        if self.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            raise answers.plain(415, "Unsupported Media Type")
        try:
            value = javascript.parse(self.raw)
        except ValueError:
            raise answers.plain(400, "Bad Request") from None
        if not isinstance(value, dict | list):
            raise answers.plain(400, "Bad Request")
        return value

    def token(self) -> str | None:
        """Return the access token of `Authorization: GNAP …`, or None for anything else."""
        kind, _, value = self.headers.get("authorization", "").partition(" ")
        return value if kind == "GNAP" and value else None

    def segments(self) -> list[str]:
        """Return the path's segments; one trailing slash is ignored."""
        return self.path.removesuffix("/").split("/")[1:]
