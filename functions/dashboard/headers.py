"""The headers of the dashboard's answers.

The policy allows nothing but this answer's own inline style and script, told by a nonce, and
requests to this origin. A preview of the customers' page may stand in a frame of ours, and its form
leads nowhere. The referrer stays within this origin: with `no-referrer`, browsers would
send forms with `Origin: null`, which could be anybody's.
"""

from __future__ import annotations

from typing import Final

from fastapi import Request

from checkout.page_headers import if_it_succeeds, nonce_of

POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
REFERRER: Final = "same-origin"
_PREVIEW: Final = (
    "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; form-action 'none'; "
    "frame-ancestors 'self'; base-uri 'none'"
)


def is_preview(request: Request) -> None:
    """This answer is a preview of the customers' page."""
    policy = _PREVIEW.format(nonce=nonce_of(request))
    if_it_succeeds(request, "content-security-policy", policy)
