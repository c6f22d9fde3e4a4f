"""Security headers of the hosted page, and the check that a customer has opened the page.

The Content-Security-Policy allows only the inline style and script that a response itself contains;
requests, pictures and frames from this origin; and pictures from the hosts of the items' pictures.
In Chromium, `form-action 'self'` also blocks a redirect to another origin after a form was sent. So
no form leads to the wallet: the customer goes there by a plain link.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from checkout.pages import on_success_header

POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "img-src 'self' data:{pictures}; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# The policy for the status line that our own pages show in a frame (templates/watch.html).
LINE_POLICY: Final = (
    "default-src 'none'; style-src 'nonce-{nonce}'; form-action 'none'; frame-ancestors 'self'; "
    "base-uri 'none'"
)
# Other hosts get no referrer, because a session's URL is a secret. With `no-referrer`, browsers
# would send our own forms with `Origin: null`, and other sites can send forms with that header,
# too. In older browsers, only the header Origin shows whether our own page sent a form.
REFERRER: Final = "same-origin"
_KEPT: Final = "private, max-age=86400"
_AHEAD_OF_TIME: Final = {
    "sec-purpose": "prefetch",
    "purpose": "prefetch",
    "x-purpose": "preview",
    "x-moz": "prefetch",
}


def may_be_kept(request: Request) -> None:
    """Allow the browser to cache the response, which must have no session data, for a day."""
    on_success_header(request, "cache-control", _KEPT)


READ: Final = ["GET", "HEAD"]  # the methods with which a page is read


class CustomersOnly(APIRoute):
    """A route that acts only when a customer opens it.

    HEAD requests, prefetches and link previews get an empty response.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that answers these requests itself, and passes other requests on."""
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
