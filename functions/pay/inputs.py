"""Parse the requests of customers and wallets: wallet and receipt.

Unknown and doubled fields are rejected. The client is not authenticated, so the length of each text
is checked before it is parsed.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from checkout.domain.ground import grammar
from checkout.domain.ground.errors import EmailInvalid, ParameterInvalid
from checkout.domain.ground.providers import Provider, has_fields
from checkout.open_payments.slips import Slip, slip_in
from checkout.open_payments.urls import MAX_URL
from checkout.web import validated

BODY_MAX: Final = 32 * 1024  # bytes: a wallet address in its longest encoding, and a margin
_UNITS: Final = re.compile(r"[0-9]{0,20}")
# A mobile money provider may use phone numbers as names.
_NO_NAMES: Final = frozenset({Slip.CARD, Slip.IBAN, Slip.EMAIL, Slip.CRYPTO, Slip.SECRET})


class WalletForm(BaseModel):
    """The body of a wallet submission; the flow parses the wallet address."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    wallet_address: str


class ReceiptForm(BaseModel):
    """The body of a request for the receipt by e-mail."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    email: str


def wallet_of(fields: dict[str, Any]) -> str:
    """Return the wallet address of a submission. Raise as `validated` does."""
    return validated(WalletForm, fields).wallet_address


def email_of(fields: dict[str, Any]) -> str:
    """Return the e-mail address to which a receipt goes. Raise EmailInvalid, and as `validated`."""
    found = grammar.email_of(validated(ReceiptForm, fields).email)
    if found is None:
        raise EmailInvalid("This is not an e-mail address.", param="email")
    return found


def name_of(fields: dict[str, Any]) -> str | None:
    """Remove and return the random name with which the form was rendered, or None without one."""
    name: str = fields.pop("form_name", "")
    return name if grammar.NONCE.fullmatch(name) else None


def provider_of(fields: dict[str, Any]) -> str:
    """Remove and return the chosen provider's form of addresses, or "" without one.

    Put the text of the second field behind that of the first. A text that cannot be a part of an
    address is left as it is, and refused later.
    """
    form: str = fields.pop("provider", "")
    second: str = fields.pop("second", "")
    if len(form) > MAX_URL:
        return ""
    first = fields.get("wallet_address", "")
    if second and isinstance(first, str) and len(first) + len(second) <= MAX_URL:
        wrong = [each for each in (first, second) if slip_in(each) in _NO_NAMES]
        if not _is_whole(first) or wrong:
            joined = f"{first.strip()}{Provider('', form, '').between or '/'}{second.strip()}"
            fields["wallet_address"] = wrong[0] if wrong else joined
    return form


def address_of(form: str, typed: str) -> str:
    """Return the wallet address for a name that was typed at the provider with this `form`.

    A whole address is left as it is, and so is a text that cannot be a name, which is refused
    later. `form` is not compared with the list: a made-up one is as harmless as a typed address.
    """
    if len(typed) > MAX_URL or not has_fields(form):
        return typed
    provider = Provider("", form, "")
    name = typed.strip().removeprefix("@").removeprefix(provider.stem)
    if not name or _is_whole(name) or slip_in(name) in _NO_NAMES:
        return typed
    return provider.address(name)


def _is_whole(name: str) -> bool:
    """Return whether a whole address was typed in place of a name."""
    host = name.rpartition("/")[0]
    return name.startswith("$") or "://" in name or "@" in name or "." in host


def price_of(fields: dict[str, Any]) -> str:
    """Remove and return the price on the form's page, in the wallet's units, or "" without one.

    Raise ParameterInvalid.
    """
    was: str = fields.pop("was", "")
    if not _UNITS.fullmatch(was):
        raise ParameterInvalid("This is not a price.", param="was")
    return was
