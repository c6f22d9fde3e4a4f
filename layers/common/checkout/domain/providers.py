"""The directory of wallet providers that the hosted page offers, and the form of their addresses.

A provider is written on one line: name | form of its addresses | where to get a wallet | countries
| logo, of which the last two may be left out. A logo is a small picture in base64, which the page
carries in itself: a request for each would be too many, and elsewhere would learn of the customer.
The operator's list is the setting WALLET_PROVIDERS, and a merchant may have a list of their own.
Both are only an offer: customers may always type a wallet address of any provider.
"""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from checkout.domain.grammar import link_host
from checkout.domain.pictures import picture_type
from checkout.open_payments.urls import split

PROVIDERS_MAX: Final = 12
_NAME_MAX: Final = 40  # characters
_LINE_MAX: Final = 2000
LOGO_MAX: Final = 600  # bytes
_PLACE: Final = "{name}"
_COUNTRIES: Final = re.compile(r"(?:[A-Z]{2}(?: [A-Z]{2}){0,29})?")

# Known on 2026-08-20 (openpayments.dev and webmonetization.org, lists of wallets): GateHub is the
# only one with real money. An address there has a number and a currency.
KNOWN: Final = "GateHub | https://ilp.gatehub.net/{name} | https://gatehub.net/ | US EU"


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider; `form` is a wallet address with {name} in its path, `website` a page.

    `countries` are ISO 3166-1 codes (and EU) for the merchant's eyes: nobody is turned away. `logo`
    is a picture in base64, "" for none.
    """

    name: str
    form: str
    website: str
    countries: str = ""
    logo: str = ""

    @property
    def logo_url(self) -> str | None:
        """Return the logo as a data URL; None without one."""
        kind = _logo_type(self.logo)
        return f"data:{kind};base64,{self.logo}" if kind else None

    @property
    def stem(self) -> str:
        """Return the text before the customer's name, without the scheme."""
        return self.form.partition(_PLACE)[0].removeprefix("https://")

    @property
    def rest(self) -> str:
        """Return the text after the customer's name."""
        return self.form.partition(_PLACE)[2]

    def address(self, name: str) -> str:
        """Return the wallet address of the customer who is called `name` there."""
        return self.form.replace(_PLACE, quote(name, safe="/~"))

    def has(self, wallet: str) -> bool:
        """Return whether the wallet address `wallet` is at this provider's host."""
        return split(wallet).authority == split(self.form).authority


def parse(text: str) -> tuple[Provider, ...]:
    """Return the providers in `text`, one a line or separated by ";".

    Raise ValueError with a sentence that names the line.
    """
    lines = [line.strip() for line in re.split(r"[\n;]", text) if line.strip()]
    if len(lines) > PROVIDERS_MAX:
        raise ValueError(f"There may be at most {PROVIDERS_MAX} providers.")
    return tuple(_provider(line) for line in lines)


def written(providers: tuple[Provider, ...]) -> str:
    """Return `providers` as `parse` reads them."""
    return "\n".join(
        " | ".join((each.name, each.form, each.website, each.countries, each.logo)).rstrip("| ")
        for each in providers
    )


def _provider(line: str) -> Provider:
    if len(line) > _LINE_MAX:
        raise ValueError(f"“{line[:60]}” has more than {_LINE_MAX} characters.")
    parts = [part.strip() for part in line.split("|")]
    shown = line[:60]
    if len(parts) not in (3, 4, 5):
        raise ValueError(
            f"“{shown}” is not of the form: name | https://wallet.example/{_PLACE} | "
            "https://wallet.example/join | countries | logo."
        )
    name, form, website, countries, logo = (*parts, "", "")[:5]
    if not (0 < len(name) <= _NAME_MAX and name.isprintable()):
        raise ValueError(f"“{shown}”: the name must have 1 to {_NAME_MAX} printable characters.")
    path = split(form).path
    if form.count(_PLACE) != 1 or path.count(_PLACE) != 1 or not _is_form(form):
        raise ValueError(f"“{shown}”: the address must be https with {_PLACE} once in its path.")
    if link_host(website, base_is_http=True) is None or not website.isascii():
        raise ValueError(f"“{shown}”: the website must be an https address.")
    if not _COUNTRIES.fullmatch(countries):
        raise ValueError(f"“{shown}”: countries are two capital letters each, such as “DE KE”.")
    if logo and _logo_type(logo) is None:
        raise ValueError(
            f"“{shown}”: the logo must be an SVG, PNG or WebP picture of at most {LOGO_MAX} bytes, "
            "in base64."
        )
    return Provider(name, form, website, countries, logo)


def _logo_type(logo: str) -> str | None:
    """Return the media type; a browser runs no script of an SVG that is an image."""
    try:
        data = b64decode(logo, validate=True)
    except ValueError:
        return None
    if len(data) > LOGO_MAX:
        return None
    if data.startswith(b"<svg ") and data.rstrip().endswith(b"</svg>"):
        return "image/svg+xml"
    return picture_type(data)


def _is_form(url: str) -> bool:
    plain = url.replace(_PLACE, "name")
    return url.isascii() and link_host(plain, base_is_http=False) is not None
