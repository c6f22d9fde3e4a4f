"""Serve the pictures of the pages: the merchant's logo, and the page's link as a QR code.

Each has a URL of its own, so that no page waits for it. A logo is served only if its bytes are one
of the picture types that domain/ground/pictures.py allows.
"""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from typing import Final

from fastapi import Request, Response

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.pictures import picture_type
from checkout.domain.merchant.record import Logo, Merchant
from pay.headers import may_be_kept

_MODULE: Final = 4  # units of the drawing; the page sets the size


def logo_mark(logo: Logo | None) -> str | None:
    """Return a version mark for the logo's URL, or None without a logo to show."""
    if logo is None or picture_type(logo.data) != logo.media_type:
        return None
    return sha256(logo.data).hexdigest()[:16]


def logo(request: Request, merchant: Merchant | None) -> Response:
    """Return the logo. Raise ResourceMissing."""
    if merchant is None or merchant.logo is None or logo_mark(merchant.logo) is None:
        raise ResourceMissing("This shop has no logo.")
    may_be_kept(request)
    return Response(merchant.logo.data, media_type=merchant.logo.media_type)


def qr_code(url: str) -> Response:
    """Return `url` as a QR code; segno is loaded here, because few customers ask."""
    import segno

    drawn = BytesIO()
    code = segno.make_qr(url, error="m")
    code.save(drawn, kind="svg", scale=_MODULE, light="#fff", xmldecl=False, omitsize=True)
    return Response(drawn.getvalue(), media_type="image/svg+xml")
