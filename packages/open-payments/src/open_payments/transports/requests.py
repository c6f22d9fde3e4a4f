"""The httpx request that has exactly the bytes of a signed request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from open_payments.transport import Request
from open_payments.urls import Target


class Stopped(Exception):
    """The exchange was ended here. The message contains nothing that was sent or received."""


def built(
    request: Request, to: Target, *, usual: Mapping[str, str], extensions: dict[str, Any]
) -> httpx.Request:
    """Return `request` for httpx, with each header of `usual` that `request` does not have.

    `to` is the request's parsed URL. httpx rewrites some URLs, and a signature covers the URL.
    Raises Stopped if the result differs from `request`.
    """
    given = {name.lower() for name in request.headers}
    if "host" in given or "transfer-encoding" in given:
        raise Stopped("headers refused")
    path = f"{to.path or '/'}{to.query}"  # RFC 9112 3.2.1: an empty path is sent as "/"
    made = httpx.Request(
        request.method,
        f"{to.origin}{path}",
        headers=[
            *((name, value) for name, value in usual.items() if name.lower() not in given),
            *request.headers.items(),
        ],
        content=request.body,
        extensions=extensions,
    )
    url = made.url
    if url.raw_path != path.encode() or url.raw_host != to.host.strip("[]").encode():
        raise Stopped("not a URL that can be sent as it is")
    if made.headers.get("content-length", "0") != str(len(request.body or b"")):
        raise Stopped("content-length is not the body's")
    return made
