"""The two pictures of the pages, each from an address of its own so that no page waits for them:
the way on to a phone as a QR code, and the merchant's logo.

Refuses to serve a logo as anything but a picture.
"""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from typing import Final

from fastapi import Request, Response

from checkout.domain.errors import ResourceMissing
from checkout.domain.merchant import Logo, Merchant
from checkout.domain.pictures import KINDS
from checkout.domain.session import Session
from pay.headers import may_be_kept

_MODULE: Final = 4  # units of the drawing; the page sets the size


def logo_mark(logo: Logo | None) -> str | None:
    """What changes with the picture, for its address; None: there is none to show."""
    if logo is None or logo.media_type not in KINDS:
        return None
    return sha256(logo.data).hexdigest()[:16]


def logo(request: Request, merchant: Merchant | None) -> Response:
    """Raises ResourceMissing."""
    if merchant is None or merchant.logo is None or logo_mark(merchant.logo) is None:
        raise ResourceMissing("This shop has no logo.")
    may_be_kept(request)
    return Response(merchant.logo.data, media_type=merchant.logo.media_type)


def qr_code(session: Session, base_url: str) -> Response:
    """The session's address. The library is loaded here, because few customers ask for it."""
    import segno

    drawn = BytesIO()
    code = segno.make_qr(f"{base_url}/pay/{session.id}", error="m")
    code.save(drawn, kind="svg", scale=_MODULE, light="#fff", xmldecl=False, omitsize=True)
    return Response(drawn.getvalue(), media_type="image/svg+xml")
