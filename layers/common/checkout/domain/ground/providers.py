"""The directory of wallet providers that the hosted page offers, and the form of their addresses.

A provider is written on one line: name | form of its addresses | where to get a wallet | countries
| logo. The last two can be left out. The form has one or two fields to fill in, such as {name},
{name: alice} or {Wallet number: 123456789}/{Currency: USD}. A field has the provider's own name for
its content, and can have an example. A logo is a small picture in base64. The page embeds logos,
because separate requests for them would be numerous and would reveal the customer to other hosts.
The operator's list is the setting WALLET_PROVIDERS; a merchant can have their own list. These lists
are only suggestions: customers can always type a wallet address of any provider.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from checkout.domain.ground import names
from checkout.domain.ground.grammar import link_host
from checkout.domain.ground.pictures import SIDE_MAX, picture_size, picture_type
from open_payments.urls import split

# The statuses with which a provider's server reports that it has no such wallet address. Other
# refusals can come from a firewall that blocks cloud servers.
NO_SUCH_WALLET: Final = frozenset({404, 410})
PROVIDERS_MAX: Final = 12
_NAME_MAX: Final = 40  # characters
_LINE_MAX: Final = 2000
LOGO_MAX: Final = 600  # bytes
_PLACE: Final = "{name}"
# A field of a form. `split` returns the text before, the label, the example and the text after.
_FIELD: Final = re.compile(r"\{([^{}:]{1,40})(?::([^{}]{1,40}))?\}")
_COUNTRIES: Final = re.compile(r"(?:[A-Z]{2}(?: [A-Z]{2}){0,29})?")

# The providers known on 2026-08-20, from the lists of wallets on openpayments.dev and
# webmonetization.org.
# GateHub is the only one with real money. Its addresses contain a number and a currency.
KNOWN: Final = (
    "GateHub | https://ilp.gatehub.net/{Wallet number: 123456789}/{Currency: USD} "
    "| https://gatehub.net/ | US EU"
)


def of_test_stage(test_wallets: str) -> str:
    """Return the providers of a test stage's wallets, in the form of KNOWN."""
    return "; ".join(
        f"{name} | {test_wallets}/{path}/{{name: {example}}} | {test_wallets}"
        for name, path, example in (
            ("Cedar Bank", "cedar", "alice"),
            ("Harbor Wallet", "harbor", "bob"),
        )
    )


@dataclass(frozen=True, slots=True)
class Field:
    """A field to fill in; `label` is "" for the customer's name, `example` is "" if missing."""

    label: str
    example: str


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider; `form` is a wallet address with fields in its path, `website` is a page's URL.

    `countries` are ISO 3166-1 codes (and EU) that only inform the merchant: no customer is refused
    because of the country. `logo` is a picture in base64, or "".
    """

    name: str
    form: str
    website: str
    countries: str = ""
    logo: str = ""

    @property
    def logo_url(self) -> str | None:
        """Return the logo as a data URL; None if there is no logo."""
        kind = _logo_type(self.logo)
        return f"data:{kind};base64,{self.logo}" if kind else None

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the one or two fields of the form."""
        return tuple(
            Field("" if label == "name" else label.strip(), example.strip())
            for label, example in _FIELD.findall(self.form)
        )

    @property
    def example(self) -> str:
        """Return an example of what to type, or "" if there is none."""
        examples = [each.example for each in self.fields]
        return self.between.join(examples) if all(examples) else ""

    @property
    def stem(self) -> str:
        """Return the text before the fields, without the scheme."""
        return self.form.partition("{")[0].removeprefix("https://")

    @property
    def between(self) -> str:
        """Return the text between two fields, or "" if there is only one field."""
        pieces = _FIELD.split(self.form)
        return pieces[3] if len(pieces) > 4 else ""

    @property
    def rest(self) -> str:
        """Return the text after the fields."""
        return self.form.rpartition("}")[2]

    def parts(self, typed: str) -> tuple[str, str]:
        """Return the parts of `typed` for the first and the second field ("" without a second)."""
        if not self.between:
            return typed, ""
        first, _, second = typed.partition(self.between)
        return first, second

    def address(self, name: str) -> str:
        """Return the wallet address of the customer `name` at this provider.

        If the form has two fields, `name` has the contents of both, with `between` between them.
        """
        return f"{self.form.partition('{')[0]}{quote(name, safe='/~')}{self.rest}"

    def typed(self, wallet: str) -> str:
        """Return the name that `address` turns into `wallet`; "" if no name fits the form."""
        before, after = self.form.partition("{")[0], self.rest
        inside = wallet.removeprefix(before).removesuffix(after)
        if not inside or wallet != f"{before}{inside}{after}":
            return ""
        name = unquote(inside)
        return name if all(self.parts(name)[: len(self.fields)]) else ""

    def has(self, wallet: str) -> bool:
        """Return whether the wallet address `wallet` is at this provider's host."""
        return split(wallet).authority == split(self.address("name")).authority


def name_of(wallet: str, offered: Iterable[Provider]) -> str | None:
    """Return the name of the offered provider to which the address `wallet` belongs, or None.

    If several providers share a host, the form of their addresses distinguishes them. An address at
    that host that has none of these forms gets None.
    """
    at_host = [each for each in offered if each.has(wallet)]
    for each in at_host:
        if each.typed(wallet):
            return each.name
    names = {each.name for each in at_host}
    return names.pop() if len(names) == 1 else None


def has_fields(form: str) -> bool:
    """Return whether `form` has one field, or two different fields with a text between them."""
    pieces = _FIELD.split(form)
    if len(pieces) not in (4, 7) or any("{" in each or "}" in each for each in pieces[::3]):
        return False
    return len(pieces) == 4 or (pieces[3] != "" and pieces[1] != pieces[4])


def parse(text: str) -> tuple[Provider, ...]:
    """Return the providers in `text`, which are one per line or separated by ";".

    Raises ValueError with a sentence that names the line.
    """
    lines = [line.strip() for line in re.split(r"[\n;]", text) if line.strip()]
    if len(lines) > PROVIDERS_MAX:
        raise ValueError(f"There may be at most {PROVIDERS_MAX} providers.")
    return tuple(_provider(line) for line in lines)


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
    if not names.is_name(name, _NAME_MAX):
        raise ValueError(f"“{shown}”: the name must have 1 to {_NAME_MAX} printable characters.")
    if not _is_form(form):
        raise ValueError(
            f"“{shown}”: the address must be https with {_PLACE} once in its path, or with two "
            "fields such as {Number: 12}/{Currency: USD}."
        )
    if link_host(website, base_is_http=True) is None or not website.isascii():
        raise ValueError(f"“{shown}”: the website must be an https address.")
    if not _COUNTRIES.fullmatch(countries):
        raise ValueError(f"“{shown}”: countries are two capital letters each, such as “DE KE”.")
    if logo and _logo_type(logo) is None:
        raise ValueError(
            f"“{shown}”: the logo must be an SVG, PNG or WebP picture of at most {LOGO_MAX} bytes "
            f"and {SIDE_MAX} pixels a side, in base64."
        )
    return Provider(name, form, website, countries, logo)


def _logo_type(logo: str) -> str | None:
    """Return the media type of a logo; None if it is not an accepted picture in base64.

    SVG is allowed, because browsers do not run the scripts of an SVG that is shown as an image.
    """
    try:
        data = b64decode(logo, validate=True)
    except ValueError:
        return None
    if len(data) > LOGO_MAX:
        return None
    if data.startswith(b"<svg ") and data.rstrip().endswith(b"</svg>"):
        return "image/svg+xml"
    size = picture_size(data)
    return picture_type(data) if size and max(size) <= SIDE_MAX else None


def _is_form(form: str) -> bool:
    if not has_fields(form) or not names.shown(form):
        return False
    around = _FIELD.split(form)[::3]
    in_path = around[0].count("/") > 2 and not any("?" in each or "#" in each for each in around)
    plain = "name".join(around)
    return in_path and plain.isascii() and link_host(plain, base_is_http=False) is not None
