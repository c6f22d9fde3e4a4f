"""What every answer of the dashboard carries, errors and files included.

The policy allows nothing but this answer's own inline style and script, told by a nonce, and
requests to this origin. A preview of the customers' page may stand in a frame of ours, and its form
leads nowhere. The referrer stays within this origin: with `no-referrer`, browsers would
send forms with `Origin: null`, which could be anybody's.
"""

from __future__ import annotations

import base64
from typing import Final

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from checkout.ports import RandomBytes

_NONCE_BYTES: Final = 16
_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_PREVIEW: Final = (
    "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; form-action 'none'; "
    "frame-ancestors 'self'; base-uri 'none'"
)
# Two years, and this host only: the merchant's other hosts are not ours to bind.
_TRANSPORT_SECURITY: Final = "max-age=63072000"


class PageHeaders:
    """Middleware: the security headers, and the nonce for the pages (`nonce_of`)."""

    def __init__(self, app: ASGIApp, *, random_bytes: RandomBytes) -> None:
        self._app = app
        self._random_bytes = random_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = base64.b64encode(self._random_bytes(_NONCE_BYTES)).decode()
        scope.setdefault("state", {})["nonce"] = nonce

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                policy = _PREVIEW if scope["state"].get("preview") else _POLICY
                headers["content-security-policy"] = policy.format(nonce=nonce)
                headers["referrer-policy"] = "same-origin"
                headers["x-robots-tag"] = "noindex"
                if scope.get("scheme") == "https":  # over http it must not be sent (RFC 6797, 7.2)
                    headers["strict-transport-security"] = _TRANSPORT_SECURITY
            await send(message)

        await self._app(scope, receive, send_with_headers)


def nonce_of(request: Request) -> str:
    """The nonce in this answer's policy."""
    found: str = request.scope["state"]["nonce"]
    return found


def is_preview(request: Request) -> None:
    """This answer is a preview of the customers' page."""
    request.scope["state"]["preview"] = True
