"""The look of a merchant's pages: a readable color, the logo, and the page's link as a QR code.

A button has exactly the color that the merchant chose, with black or white text on it. Links and
lines have a darker or lighter shade of this color. In the light and in the dark color scheme, all
contrasts are at least 4.5:1, as WCAG 2.2 requires.

Each picture has its own URL, so that no page waits for a picture. A logo is served only if its data
is a picture of a type that domain/ground/pictures.py allows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from typing import Final

from fastapi import Request, Response

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.pictures import picture_type
from checkout.domain.merchant.record import Logo, Merchant
from pay.headers import may_be_kept

CONTRAST: Final = 4.6  # 4.5, and a margin for rounding
# The colors --ground and --sheet in page.css, for each scheme.
LIGHT: Final = ("#f6f7f9", "#ffffff")
DARK: Final = ("#10151b", "#19212a")
_HEX: Final = re.compile(r"#[0-9A-Fa-f]{6}")
_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class Accent:
    """The shades for both schemes, the chosen color, and the color of text on it, as #rrggbb."""

    light: str
    dark: str
    brand: str
    ink: str


@lru_cache(maxsize=256)
def accent(chosen: str | None) -> Accent | None:
    """Return readable colors for `chosen`, or None (the default colors) if it is not #rrggbb."""
    if chosen is None or not _HEX.fullmatch(chosen):
        return None
    return Accent(
        light=_readable(chosen, "#000000", (*LIGHT, tint(chosen))),
        dark=_readable(chosen, "#ffffff", DARK),
        brand=chosen,
        # Black or white always has a contrast of 4.58:1 or more.
        ink=max(("#ffffff", "#000000"), key=lambda ink: contrast(chosen, ink)),
    )


def tint(chosen: str) -> str:
    """Return the light background of the shop's half of the page: 5 % `chosen`, as in page.css."""
    return _mixed(LIGHT[0], chosen, _STEPS // 20)


def contrast(one: str, other: str) -> float:
    """Return WCAG 2.2's contrast ratio, 1 to 21."""
    brighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def _readable(color: str, towards: str, beside: tuple[str, ...]) -> str:
    """Mix `color` with just enough of the color `towards` to contrast with all in `beside`."""
    mixtures = (_mixed(color, towards, step) for step in range(_STEPS + 1))
    return next(
        mixed for mixed in mixtures if all(contrast(mixed, each) >= CONTRAST for each in beside)
    )


def _mixed(color: str, towards: str, step: int) -> str:
    pairs = zip(_channels(color), _channels(towards), strict=True)
    return "#" + "".join(f"{(a * (_STEPS - step) + b * step) // _STEPS:02x}" for a, b in pairs)


def _luminance(color: str) -> float:
    red, green, blue = (_linear(channel / 255) for channel in _channels(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _channels(color: str) -> tuple[int, ...]:
    return tuple(int(color[start : start + 2], 16) for start in (1, 3, 5))


_MODULE: Final = 4  # the size of a QR code's square, in units of the drawing, not of the screen


def logo_mark(logo: Logo | None) -> str | None:
    """Return a version mark for the logo's URL, or None if there is no logo to show."""
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
    """Return `url` as a QR code. Load segno only here, because few customers need the code."""
    import segno

    drawn = BytesIO()
    code = segno.make_qr(url, error="m")
    code.save(drawn, kind="svg", scale=_MODULE, light="#fff", xmldecl=False, omitsize=True)
    return Response(drawn.getvalue(), media_type="image/svg+xml")
