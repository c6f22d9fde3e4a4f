"""Wallet addresses as people write them: URLs, payment pointers, hosts with a path.

A text that cannot be a wallet address is refused with an error that says what is wrong. The
transport decides whether a connection to the address is permitted. Source: paymentpointers.org,
specification of Open Payments "Wallet Address Server".

The text may come from anybody. So its length is limited, before and after normalization, and the
time for a match grows with the length of the text and not with its square.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Final
from urllib.parse import quote

import idna

from open_payments.urls import (
    MAX_URL,
    NAME_MAX,
    Parts,
    host_and_port,
    is_loopback,
    is_name,
    split,
    target_uri,
)

_PATH_SAFE: Final = "/:@!$&'()*+,;=-._~%"
_PORT: Final = re.compile(r"[0-9]{1,5}")
_DOTS: Final = re.compile(r"/\.{1,2}(?:/|$)")
_QUOTES: Final = "\"'“”„‘’«»<>"
_AROUND: Final = _QUOTES + "()[]"
_STOPS: Final = ".,;"
# "http" and "https" with misspellings, and the characters between the scheme and the name.
_SCHEME: Final = re.compile(r"(h{0,2}t{1,3}p{0,2}s{0,2})([:;.,]*[\\/]+)", re.IGNORECASE)
_OTHER_SCHEME: Final = re.compile(
    r"\$?(?:[a-z][a-z0-9+.-]*:(?://|\\\\)|(?:mailto|acct|tel|sms|data|javascript|file):)",
    re.IGNORECASE,
)
_READ: Final = ("http", "https")


class Mistake(StrEnum):
    """What is wrong with a text that is not a wallet address."""

    NOTHING = "nothing"
    TOO_LONG = "too_long"
    SPACES = "spaces"
    BEGINNING = "beginning"  # https:// mistyped, or another scheme
    CHARACTER = "character"
    COMMA = "comma"
    PORT = "port"
    HOST = "host"


LOOKS: Final = "A wallet address looks like https://wallet.example/alice."
_SENTENCES: Final = {
    Mistake.NOTHING: "Please enter your wallet address.",
    Mistake.TOO_LONG: "This wallet address is too long.",
    Mistake.SPACES: "A wallet address has no spaces and no invisible characters.",
    Mistake.BEGINNING: "A wallet address begins with https:// or $.",
    Mistake.CHARACTER: f"A wallet address has no {{character}}. {LOOKS}",
    Mistake.COMMA: f"There is a comma where a dot should be. {LOOKS}",
    Mistake.PORT: "A wallet address has no port.",
    Mistake.HOST: "The name before the first / is not a valid host name.",
}


class InvalidWalletAddress(ValueError):
    """The text is not a wallet address. `character` is set for the mistake CHARACTER."""

    def __init__(self, mistake: Mistake, character: str = "") -> None:
        super().__init__(_SENTENCES[mistake].replace("{character}", character))
        self.mistake = mistake
        self.character = character


def unquoted(typed: str) -> str:
    """Return the text without the blanks, marks, quotes, brackets and full stop around it."""
    gaps = "".join({each for each in typed if each.isspace() or unicodedata.category(each) == "Cf"})
    text = typed.strip(gaps).rstrip(gaps + _STOPS)
    if text[:1] in _QUOTES or text[:1] + text[-1:] in ("()", "[]"):
        return text.lstrip(gaps + _AROUND).rstrip(gaps + _AROUND + _STOPS)
    return text if "(" in text else text.rstrip(gaps + _STOPS + ")")


def normalized(text: str) -> str | None:
    """Return the text in the form NFKC, with the ideographic full stop as a dot.

    Returns None if the text is too long for an address, before or after the normalization, in which
    one character can become eighteen.
    """
    if len(text) > MAX_URL:
        return None
    plain = unicodedata.normalize("NFKC", text).replace("。", ".")
    return plain if len(plain) <= MAX_URL else None


def parse(typed: str, *, allow_ports: bool) -> str:
    """Return the https URL of the wallet address document for `typed`.

    Accepts `https://host/path`, `host/path`, and the payment pointers `$host/path` and `$host`.
    Reads `http://` as https, and drops what `unquoted` drops. `allow_ports`, for development,
    allows ports other than 443, IP addresses, and localhost. Raises InvalidWalletAddress.
    """
    text = unquoted(typed)
    _check_text(text, allow_ports=allow_ports)
    pointer = text.startswith("$")
    parts = _parts(text.removeprefix("$"))
    authority = _authority(parts.authority or "", allow_ports=allow_ports)
    path = quote(parts.path, safe=_PATH_SAFE)
    if pointer and path in ("", "/"):
        path = "/.well-known/pay"
    url = f"https://{authority}{path}"
    if len(url) > MAX_URL:
        raise InvalidWalletAddress(Mistake.TOO_LONG)
    if _DOTS.search(path):
        raise InvalidWalletAddress(Mistake.CHARACTER, "..")
    try:
        return target_uri(url)
    except ValueError:
        raise InvalidWalletAddress(Mistake.HOST) from None


def _check_text(text: str, *, allow_ports: bool) -> None:
    if not text:
        raise InvalidWalletAddress(Mistake.NOTHING)
    plain = normalized(text)
    if plain is None:
        raise InvalidWalletAddress(Mistake.TOO_LONG)
    if not _begins_well(plain, any_name=allow_ports) and not (allow_ports and is_loopback(text)):
        raise InvalidWalletAddress(Mistake.BEGINNING)
    if any(unicodedata.category(character)[0] in "CZ" for character in text):
        raise InvalidWalletAddress(Mistake.SPACES)
    if "\\" in text:
        raise InvalidWalletAddress(Mistake.CHARACTER, "\\")


def _begins_well(text: str, *, any_name: bool) -> bool:
    """Return whether `text` begins with http://, https:// or $, or has no scheme.

    With `any_name`, the name after the scheme may look like a second scheme, such as `t`.
    """
    pointer = text.startswith("$")
    found = _SCHEME.match(text.removeprefix("$"))
    if found is None or len(found[1]) < len("ttp"):
        return not _OTHER_SCHEME.match(text)
    if found[1].lower() not in _READ or found[2] != "://" or pointer:
        return False
    rest = text[found.end() :]
    doubled = rest.startswith("$") or _SCHEME.match(rest) or _OTHER_SCHEME.match(rest)
    return any_name or not doubled


def _parts(text: str) -> Parts:
    """Split `text`, in which the scheme may be left out."""
    parts = split(text)
    if parts.authority is None:
        parts = split(f"https://{text}")
    authority = parts.authority or ""
    if ("[" in authority) != ("]" in authority):
        raise InvalidWalletAddress(Mistake.HOST)
    for character, found in (("@", "@" in authority), ("?", parts.query), ("#", parts.fragment)):
        if found:
            raise InvalidWalletAddress(Mistake.CHARACTER, character)
    return parts


def _authority(typed: str, *, allow_ports: bool) -> str:
    """Return `typed` in lower case and ASCII, without the default port."""
    host, port = host_and_port(typed)
    port = None if port == "443" else port
    if port is not None and not (allow_ports and _PORT.fullmatch(port) and 0 < int(port) <= 65535):
        raise InvalidWalletAddress(Mistake.PORT)
    if "," in host:
        raise InvalidWalletAddress(Mistake.COMMA)
    name = _ascii(host.lower().removesuffix("."))
    if not is_name(name):
        raise InvalidWalletAddress(Mistake.HOST)
    if not allow_ports and ("." not in name or name.rpartition(".")[2].isdigit()):
        raise InvalidWalletAddress(Mistake.HOST)
    return name if port is None else f"{name}:{port}"


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    if len(name) > NAME_MAX:  # its xn-- form is longer, and takes quadratic time
        raise InvalidWalletAddress(Mistake.HOST)
    try:
        return idna.encode(name, uts46=True).decode()
    except idna.IDNAError:
        raise InvalidWalletAddress(Mistake.HOST) from None
