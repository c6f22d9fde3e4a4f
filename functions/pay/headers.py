"""The headers of the hosted page's answers, and which requests are a customer's.

The policy allows nothing but this answer's own inline style and script, told by a nonce, and
requests and pictures of this origin. `form-action 'self'` also stops a form's redirect to another
origin (Chromium), so forms lead to pages of ours, and a plain link leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from checkout.page_headers import if_it_succeeds

POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
REFERRER: Final = "no-referrer"  # a session's address is a secret
_KEPT: Final = "private, max-age=86400"
_AHEAD_OF_TIME: Final = {
    "sec-purpose": "prefetch",
    "purpose": "prefetch",
    "x-purpose": "preview",
    "x-moz": "prefetch",
}


def may_be_kept(request: Request) -> None:
    """This answer holds nothing of the session: the browser may keep it for a day."""
    if_it_succeeds(request, "cache-control", _KEPT)


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
