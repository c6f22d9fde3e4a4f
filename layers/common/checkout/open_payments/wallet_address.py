"""Wallet addresses as customers type them.

A text that cannot be a wallet address is refused, with the mistake in it. The transport decides
whether a connection to the address is permitted.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote

import idna

from checkout.open_payments.address_mistakes import AddressMistake, NotAnAddress, mistake_in
from checkout.open_payments.urls import (
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
_QUOTES: Final = "\"'“”„‘’«»<>"  # often copied along with it


def parse(typed: str, *, allow_ports: bool) -> str:
    """Return the https URL of the wallet address document for `typed`.

    Takes `https://host/path`, `host/path`, and the payment pointers `$host/path` and `$host`; reads
    `http://` as https, and drops quotation marks around all of it. `allow_ports` is a development
    setting: other ports than 443, addresses in digits, and localhost. Raises NotAnAddress.
    """
    text = typed.strip()
    if text[:1] in _QUOTES:
        text = text.strip(_QUOTES).strip()
    _check_text(text, allow_ports=allow_ports)
    pointer = text.startswith("$")
    parts = _parts(text.removeprefix("$"))
    authority = _authority(parts.authority or "", allow_ports=allow_ports)
    path = quote(parts.path, safe=_PATH_SAFE)
    if pointer and path in ("", "/"):
        path = "/.well-known/pay"
    url = f"https://{authority}{path}"
    if len(url) > MAX_URL:
        raise NotAnAddress(AddressMistake.TOO_LONG)
    if _DOTS.search(path):
        raise NotAnAddress(AddressMistake.CHARACTER, "..")
    try:
        return target_uri(url)
    except ValueError:
        raise NotAnAddress(AddressMistake.HOST) from None


def _check_text(text: str, *, allow_ports: bool) -> None:
    if not text:
        raise NotAnAddress(AddressMistake.NOTHING)
    mistake = mistake_in(text)
    if mistake is not None and not (allow_ports and is_loopback(text[:MAX_URL])):
        raise NotAnAddress(mistake)
    if any(unicodedata.category(character)[0] in "CZ" for character in text):
        raise NotAnAddress(AddressMistake.SPACES)
    if "\\" in text:
        raise NotAnAddress(AddressMistake.CHARACTER, "\\")


def _parts(text: str) -> Parts:
    """Split `text`, in which the scheme may be left out."""
    parts = split(text)
    if parts.authority is None:
        parts = split(f"https://{text}")
    authority = parts.authority or ""
    if ("[" in authority) != ("]" in authority):
        raise NotAnAddress(AddressMistake.HOST)
    for character, found in (("@", "@" in authority), ("?", parts.query), ("#", parts.fragment)):
        if found:
            raise NotAnAddress(AddressMistake.CHARACTER, character)
    return parts


def _authority(typed: str, *, allow_ports: bool) -> str:
    """Return `typed` in lower case and ASCII, without the default port."""
    host, port = host_and_port(typed)
    port = None if port == "443" else port
    if port is not None and not (allow_ports and _PORT.fullmatch(port) and 0 < int(port) <= 65535):
        raise NotAnAddress(AddressMistake.PORT)
    if "," in host:
        raise NotAnAddress(AddressMistake.COMMA)
    name = _ascii(host.lower().removesuffix("."))
    if not is_name(name):
        raise NotAnAddress(AddressMistake.HOST)
    if not allow_ports and ("." not in name or name.rpartition(".")[2].isdigit()):
        raise NotAnAddress(AddressMistake.HOST)
    return name if port is None else f"{name}:{port}"


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    if len(name) > NAME_MAX:  # its xn-- form is longer; the library's time grows with the square
        raise NotAnAddress(AddressMistake.HOST)
    try:
        return idna.encode(name, uts46=True).decode()
    except idna.IDNAError:
        raise NotAnAddress(AddressMistake.HOST) from None
