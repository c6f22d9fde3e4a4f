"""Recognize texts that are typed in place of a wallet address: a card number, an IBAN, a name.

Pure: nothing here resolves a name or sends a byte. The customer sees what the text looks like, and
the text never leaves the server. Only forms that cannot be an address are recognized, so an address
is never mistaken for something else.

The text comes from an unauthenticated client. So its length is bounded first, before and after
normalization, and no pattern has two adjacent repeats that match the same character: the steps of
each grow with the length and not with its square.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Final

from checkout.open_payments.urls import MAX_URL


class AddressMistake(StrEnum):
    """A kind of mistake; the hosted page has a sentence for each (`fault.typed.SLIP`)."""

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


_LOOKS: Final = "A wallet address looks like https://wallet.example/alice."
SENTENCES: Final = {
    AddressMistake.NOTHING: "Please enter your wallet address.",
    AddressMistake.TOO_LONG: "This wallet address is too long.",
    AddressMistake.CARD: "This looks like a card number. Cards cannot pay here; do not enter them.",
    AddressMistake.IBAN: f"This looks like a bank account number (IBAN). {_LOOKS}",
    AddressMistake.EMAIL: f"This looks like an e-mail address; a wallet address has no @. {_LOOKS}",
    AddressMistake.PHONE: f"This looks like a phone number. {_LOOKS}",
    AddressMistake.NUMBER: f"This is a number. {_LOOKS}",
    AddressMistake.CRYPTO: f"This looks like a cryptocurrency address. {_LOOKS}",
    AddressMistake.SECRET: (
        "This looks like a recovery phrase or a private key. Never enter it on a page."
    ),
    AddressMistake.NAME: f"This looks like a name without its provider. {_LOOKS}",
    AddressMistake.SPACES: "A wallet address has no spaces and no invisible characters.",
    AddressMistake.BEGINNING: "A wallet address begins with https:// or $.",
    AddressMistake.CHARACTER: f"A wallet address has no {{character}}. {_LOOKS}",
    AddressMistake.COMMA: f"There is a comma where a dot should be. {_LOOKS}",
    AddressMistake.PORT: "A wallet address has no port.",
    AddressMistake.HOST: "The name before the first / is not a valid host name.",
}


class NotAnAddress(ValueError):
    """The text is not a wallet address. `character` is set for the mistake CHARACTER."""

    def __init__(self, mistake: AddressMistake, character: str = "") -> None:
        super().__init__(SENTENCES[mistake].replace("{character}", character))
        self.mistake = mistake
        self.character = character


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
# "http", "https" and their misspellings, and the characters between them and the name.
_SCHEME: Final = re.compile(r"(h{0,2}t{1,3}p{0,2}s{0,2})([:;.,]*[\\/]+)", re.IGNORECASE)
_OTHER_SCHEME: Final = re.compile(
    r"\$?(?:[a-z][a-z0-9+.-]*:(?://|\\\\)|(?:mailto|acct|tel|sms|data|javascript|file):)",
    re.IGNORECASE,
)
_NO_NAME: Final = re.compile(r"[./:\\%<>\[\]{}\ufffd]")
_READ: Final = ("http", "https")


def mistake_in(text: str) -> AddressMistake | None:
    """Return the mistake if `text`, without outer blanks, cannot be a wallet address."""
    if len(text) > MAX_URL:
        return AddressMistake.TOO_LONG
    plain = unicodedata.normalize("NFKC", text).replace("。", ".")
    if len(plain) > MAX_URL:  # normalization can turn one character into eighteen
        return AddressMistake.TOO_LONG
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
        or _beginning(plain)
        or (AddressMistake.NAME if _is_name(plain) else None)
    )


def _is_email(text: str) -> bool:
    """Return whether this is an e-mail address, also with a name or in angle brackets."""
    if _EMAIL.fullmatch(text):
        return True
    return "/" not in text and _EMAIL_WITHIN.search(text) is not None


def _is_name(text: str) -> bool:
    """Return whether the text consists of words, without the marks of an address."""
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
    """Return whether it can be a card number.

    A number of the usual length may have a wrong digit. More digits may follow: the date and the
    code on the card.
    """
    if len(digits) in _CARD_DIGITS:
        return len(digits) == _USUAL_CARD or _luhn(digits)
    return len(digits) > _CARD_DIGITS.stop - 1 and _luhn(digits[:_USUAL_CARD])


def _luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit (ISO/IEC 7812-1, annex B)."""
    values = [int(digit) for digit in reversed(digits)]
    doubled = [sum(divmod(2 * value, 10)) for value in values[1::2]]
    return (sum(values[0::2]) + sum(doubled)) % 10 == 0


def _beginning(text: str) -> AddressMistake | None:
    """Return BEGINNING if `text` begins with a scheme other than http:// and https://."""
    pointer = text.startswith("$")
    found = _SCHEME.match(text.removeprefix("$"))
    if found is None or len(found[1]) < len("ttp"):
        return AddressMistake.BEGINNING if _OTHER_SCHEME.match(text) else None
    as_it_should = found[1].lower() in _READ and found[2] == "://" and not pointer
    rest = text[found.end() :] if as_it_should else ""
    doubled = rest.startswith("$") or _SCHEME.match(rest) or _OTHER_SCHEME.match(rest)
    return None if as_it_should and not doubled else AddressMistake.BEGINNING
