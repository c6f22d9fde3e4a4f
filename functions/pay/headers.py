"""What every answer of this function carries, errors, redirects and JSON included.

The policy allows nothing but this answer's own inline style and script, told by a nonce, and
requests and pictures of this origin. `form-action 'self'` also stops a form's redirect to another
origin (Chromium), so forms lead to pages of ours, and a plain link leaves.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from checkout.ports import RandomBytes

_NONCE_BYTES: Final = 16
_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# Two years, and this host only: the merchant's other hosts are not ours to bind.
_TRANSPORT_SECURITY: Final = "max-age=63072000"
_KEPT: Final = "private, max-age=86400"
_AHEAD_OF_TIME: Final = {
    "sec-purpose": "prefetch",
    "purpose": "prefetch",
    "x-purpose": "preview",
    "x-moz": "prefetch",
}


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
                headers["content-security-policy"] = _POLICY.format(nonce=nonce)
                headers["referrer-policy"] = "no-referrer"  # a session's address is a secret
                headers["x-robots-tag"] = "noindex"
                if scope["state"].get("kept") and message["status"] == 200:
                    headers["cache-control"] = _KEPT
                if scope.get("scheme") == "https":  # over http it must not be sent (RFC 6797, 7.2)
                    headers["strict-transport-security"] = _TRANSPORT_SECURITY
            await send(message)

        await self._app(scope, receive, send_with_headers)


def nonce_of(request: Request) -> str:
    """The nonce in this answer's policy."""
    found: str = request.scope["state"]["nonce"]
    return found


def may_be_kept(request: Request) -> None:
    """This answer holds nothing of the session: the browser may keep it for a day."""
    request.scope["state"]["kept"] = True


class CustomersOnly(APIRoute):
    """A route that acts for a customer who looks at it: HEAD, and what a browser or a link preview
    fetches ahead of time, are answered with nothing and do nothing.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            if request.method == "HEAD":
                return Response(media_type="text/html")
            if request.method == "GET" and _is_ahead_of_time(request):
                return Response(status_code=204)
            return await handle(request)

        return answer


def _is_ahead_of_time(request: Request) -> bool:
    return any(
        request.headers.get(name, "").strip().lower().startswith(word)
        for name, word in _AHEAD_OF_TIME.items()
    )
