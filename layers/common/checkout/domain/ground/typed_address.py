"""Recognize typed wallet addresses, and what customers type in their place, such as a card number.

This module resolves no name and sends nothing, so the text never leaves the server. The customer
sees what the text looks like. Only forms that cannot be an address are recognized, so an address is
never mistaken for something else.

The text comes from an unauthenticated client. So its length is limited first, before and after
normalization. No pattern has two adjacent repeats that match the same character, so the time for a
match grows in proportion to the length of the text, not to its square.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from open_payments.urls import is_loopback
from open_payments.wallet_address import LOOKS, InvalidWalletAddress, normalized, parse, unquoted


class AddressMistake(StrEnum):
    """A kind of mistake. The hosted page shows a sentence for each (`fault.typed.SLIP`)."""

    NOTHING = "nothing"
    TOO_LONG = "too_long"
    CARD = "card"
    IBAN = "iban"
    EMAIL = "email"
    PHONE = "phone"
    NUMBER = "number"
    CRYPTO = "crypto"
    SECRET = "secret"  # a recovery phrase or a private key
    NAME = "name"
    SPACES = "spaces"
    BEGINNING = "beginning"  # https:// mistyped, or another scheme
    CHARACTER = "character"
    COMMA = "comma"
    PORT = "port"
    HOST = "host"

    @property
    def confidential(self) -> bool:
        """Whether the text must not be repeated on a page."""
        return self in (AddressMistake.CARD, AddressMistake.SECRET)


# The sentences for the mistakes that this module recognizes. `parse` has the other sentences.
_SENTENCES: Final = {
    AddressMistake.CARD: "This looks like a card number. Cards cannot pay here; do not enter them.",
    AddressMistake.IBAN: f"This looks like a bank account number (IBAN). {LOOKS}",
    AddressMistake.EMAIL: f"This looks like an e-mail address; a wallet address has no @. {LOOKS}",
    AddressMistake.PHONE: f"This looks like a phone number. {LOOKS}",
    AddressMistake.NUMBER: f"This is a number. {LOOKS}",
    AddressMistake.CRYPTO: f"This looks like a cryptocurrency address. {LOOKS}",
    AddressMistake.SECRET: (
        "This looks like a recovery phrase or a private key. Never type it into a web page."
    ),
    AddressMistake.NAME: f"This looks like a name without its provider. {LOOKS}",
}


class NotAnAddress(ValueError):
    """The text is not a wallet address. `character` is set for the mistake CHARACTER."""

    def __init__(self, sentence: str, mistake: AddressMistake, character: str = "") -> None:
        super().__init__(sentence)
        self.mistake = mistake
        self.character = character


def wallet_url(typed: str, *, allow_ports: bool) -> str:
    """Return the https URL of the wallet address document for `typed`, as `parse` does.

    Raises NotAnAddress.
    """
    text = unquoted(typed)
    mistake = mistake_in(text)
    if mistake is not None and not (allow_ports and is_loopback(text)):
        raise NotAnAddress(_SENTENCES[mistake], mistake)
    try:
        return parse(text, allow_ports=allow_ports)
    except InvalidWalletAddress as wrong:
        raise NotAnAddress(str(wrong), AddressMistake(wrong.mistake), wrong.character) from None


_BETWEEN_DIGITS: Final = re.compile(r"[\s.\-–()/]+")
_PHONE: Final = re.compile(r"(?:\+|00)[\d]{7,15}|0\d{8,11}")
_CARD_DIGITS: Final = range(13, 20)
_USUAL_CARD: Final = 16
_IBAN: Final = re.compile(r"(?:IBAN:?)?[A-Z]{2}\d{2}[A-Z0-9]{11,30}")
_EMAIL: Final = re.compile(r"[^\s@/:]+@[^\s@/:]+")
_EMAIL_WITHIN: Final = re.compile(r"[^\s@<]@[^\s@>][^\s@>.]*\..", re.DOTALL)
_PHRASE: Final = re.compile(r"(?:[a-z]{3,8}[\s,]+){11,23}[a-z]{3,8}", re.IGNORECASE)
_PRIVATE_KEY: Final = re.compile(r"(?:0x)?[0-9a-f]{64}|s[1-9A-HJ-NP-Za-km-z]{28}|S[A-Z2-7]{55}")
_CRYPTO: Final = re.compile(
    r"(?:bitcoin|ethereum|xrp|solana):.+|0x[0-9A-Fa-f]{40}|bc1[0-9a-z]{11,71}|G[A-Z2-7]{55}"
    r"|(?=\D*\d)(?=[^A-Z]*[A-Z])[1-9A-HJ-NP-Za-km-z]{26,44}"
)
_NO_NAME: Final = re.compile(r"[./:\\%<>\[\]{}\ufffd]")


def mistake_in(text: str) -> AddressMistake | None:
    """Return the mistake if `text`, without outer blanks, is something other than an address.

    Otherwise, returns None. This function does not find texts that are too long, or mistakes within
    an address; `parse` does.
    """
    plain = normalized(text)
    if plain is None:
        return None
    compact = "".join(plain.split())
    return (
        _numbers(plain)
        or (
            AddressMistake.SECRET
            if _PHRASE.fullmatch(plain) or _PRIVATE_KEY.fullmatch(compact)
            else None
        )
        or (AddressMistake.IBAN if _IBAN.fullmatch(compact.replace("-", "").upper()) else None)
        or (AddressMistake.CRYPTO if _CRYPTO.fullmatch(compact) else None)
        or (AddressMistake.EMAIL if _is_email(plain.removeprefix("mailto:")) else None)
        or (AddressMistake.NAME if _is_name(plain) else None)
    )


def _is_email(text: str) -> bool:
    """Return whether the text is an e-mail address, perhaps with a name or in angle brackets."""
    if _EMAIL.fullmatch(text):
        return True
    return "/" not in text and _EMAIL_WITHIN.search(text) is not None


def _is_name(text: str) -> bool:
    """Return whether the text consists of words, without characters such as "/" and ":"."""
    letters = text.isprintable() and any(map(str.isalpha, text))
    return letters and not _NO_NAME.search(text.rstrip(".!?"))


def _numbers(text: str) -> AddressMistake | None:
    number = _BETWEEN_DIGITS.sub("", text)
    digits = number.removeprefix("+")
    if not digits.isdecimal():
        return None
    if number == digits and _is_card(digits):
        return AddressMistake.CARD
    return AddressMistake.PHONE if _PHONE.fullmatch(number) else AddressMistake.NUMBER


def _is_card(digits: str) -> bool:
    """Return whether `digits` can be a card number.

    A number of the usual length may contain a typing mistake, so its check digit is not tested.
    A text that is longer than any card number also counts if it begins with a number whose check
    digit is right, because the card's date and code may follow.
    """
    if len(digits) in _CARD_DIGITS:
        return len(digits) == _USUAL_CARD or _luhn(digits)
    return len(digits) > _CARD_DIGITS.stop - 1 and _luhn(digits[:_USUAL_CARD])


def _luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit (ISO/IEC 7812-1, annex B)."""
    values = [int(digit) for digit in reversed(digits)]
    doubled = [sum(divmod(2 * value, 10)) for value in values[1::2]]
    return (sum(values[0::2]) + sum(doubled)) % 10 == 0
