"""Parse the requests of customers and wallets: wallet, receipt and grant callback.

Anything ambiguous is rejected: unknown or doubled fields, an incomplete callback.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from pydantic import BaseModel, ConfigDict

from checkout.domain import grammar
from checkout.domain.errors import CallbackInvalid, EmailInvalid, ParameterInvalid
from checkout.domain.providers import Provider
from checkout.open_payments.slips import Slip, slip_in
from checkout.web import validated

_UNITS: Final = re.compile(r"[0-9]{0,20}")
_WHOLE: Final = re.compile(r"^\$|://|\..*/|@")
# A mobile money provider may call customers by their number.
_NO_NAMES: Final = frozenset({Slip.CARD, Slip.IBAN, Slip.EMAIL, Slip.CRYPTO, Slip.SECRET})
_CALLBACK_NAMES: Final = ("interact_ref", "hash", "result")


class WalletForm(BaseModel):
    """The body of a wallet submission; the flow parses the wallet address."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    wallet_address: str


class ReceiptForm(BaseModel):
    """The body of a request for the receipt by e-mail."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    email: str


@dataclass(frozen=True, slots=True)
class GrantCallback:
    """A reference and its hash (RFC 9635 section 4.2.1), or an unsigned `result` without one."""

    interact_ref: str = ""
    hash: str = ""
    result: str | None = None


def wallet_of(fields: dict[str, Any]) -> str:
    """Return the wallet address of a submission. Raise as `validated` does."""
    return validated(WalletForm, fields).wallet_address


def email_of(fields: dict[str, Any]) -> str:
    """Return the e-mail address to which a receipt goes. Raise EmailInvalid, and as `validated`."""
    found = grammar.email_of(validated(ReceiptForm, fields).email)
    if found is None:
        raise EmailInvalid("This is not an e-mail address.", param="email")
    return found


def provider_of(fields: dict[str, Any]) -> str:
    """Take out the form of addresses of the provider that was chosen; "" for none."""
    form: str = fields.pop("provider", "")
    return form


def address_of(form: str, typed: str) -> str:
    """Return the wallet address that is meant by a name typed at the provider with this `form`.

    A whole address is left as it is, and so is what is no name there, to be refused as such. No
    list is asked: a made-up `form` gives no more than typing the address would.
    """
    name = typed.strip().removeprefix("@")
    if "{name}" not in form or not name or _WHOLE.search(name) or slip_in(name) in _NO_NAMES:
        return typed
    return Provider("", form, "").address(name)


def price_of(fields: dict[str, Any]) -> str:
    """Take out the price that the form's page showed, in the wallet's units; "" for none.

    Raise ParameterInvalid.
    """
    was: str = fields.pop("was", "")
    if not _UNITS.fullmatch(was):
        raise ParameterInvalid("This is not a price.", param="was")
    return was


def callback_of(request: Request) -> GrantCallback:
    """Return the callback's parameters; a reference with its hash overrides any `result`.

    Raise CallbackInvalid for a missing or doubled parameter.
    """
    query = request.query_params
    if any(len(query.getlist(name)) > 1 for name in _CALLBACK_NAMES):
        raise CallbackInvalid("The wallet's answer has a parameter twice.")
    interact_ref, presented = query.get("interact_ref", ""), query.get("hash", "")
    if interact_ref and presented:
        return GrantCallback(interact_ref=interact_ref, hash=presented)
    if interact_ref or presented or not query.get("result"):
        raise CallbackInvalid("The wallet's answer is incomplete.")
    return GrantCallback(result=query["result"])
