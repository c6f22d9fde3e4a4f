"""What every answer of a function with pages carries, errors, redirects and JSON included.

Each function brings its own content security policy, with a place for this answer's nonce: nothing
inline runs that does not name it (`nonce_of`).
"""

from __future__ import annotations

import base64
from typing import Final

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from checkout.ports.runtime import RandomBytes

_NONCE_BYTES: Final = 16
# Two years, and this host only: the merchant's other hosts are not ours to bind.
_TRANSPORT_SECURITY: Final = "max-age=63072000"


class PageHeaders:
    """Middleware, to be the outermost. `policy` has `{nonce}` where the nonce comes; `referrer` is
    the Referrer-Policy.
    """

    def __init__(
        self, app: ASGIApp, *, random_bytes: RandomBytes, policy: str, referrer: str
    ) -> None:
        self._app = app
        self._random_bytes = random_bytes
        self._policy = policy
        self._referrer = referrer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = base64.b64encode(self._random_bytes(_NONCE_BYTES)).decode()
        state = scope.setdefault("state", {})
        state["nonce"], state["headers"] = nonce, {}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = self._policy.format(nonce=nonce)
                headers["referrer-policy"] = self._referrer
                headers["x-robots-tag"] = "noindex"
                if scope.get("scheme") == "https":  # over http it must not be sent (RFC 6797, 7.2)
                    headers["strict-transport-security"] = _TRANSPORT_SECURITY
                if message["status"] == 200:
                    headers.update(state["headers"])
            await send(message)

        await self._app(scope, receive, send_with_headers)


def nonce_of(request: Request) -> str:
    """The nonce in this answer's policy."""
    found: str = request.scope["state"]["nonce"]
    return found


def if_it_succeeds(request: Request, header: str, value: str) -> None:
    """A 200 to this request has the header `header` with this value, in the place of the usual."""
    request.scope["state"]["headers"][header] = value
