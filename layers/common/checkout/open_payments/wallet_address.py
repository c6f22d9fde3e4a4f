"""Wallet addresses as customers type them.

Refuses, with a sentence for the customer, everything that a wallet address cannot be. Whether the
address may be connected to is the transport's business.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote

import idna

from checkout.open_payments.urls import MAX_URL, Parts, host_and_port, is_name, split, target_uri

_PATH_SAFE: Final = "/:@!$&'()*+,;=-._~%"
_PORT: Final = re.compile(r"[0-9]{1,5}")
_MALFORMED: Final = "This is not a wallet address."
_NO_HOST: Final = "The name before the first / is not a valid host name."


def parse(typed: str, *, allow_ports: bool) -> str:
    """Return the https URL of the wallet address document that `typed` names.

    Takes `https://host/path`, `host/path`, and the payment pointers `$host/path` and `$host`.
    `allow_ports` is a development setting: other ports than 443 and names without a dot. Raises
    ValueError with a sentence for the customer.
    """
    text = typed.strip()
    _check_characters(text)
    pointer = text.startswith("$")
    parts = _parts(text.removeprefix("$"), pointer=pointer)
    authority = _authority(parts.authority or "", allow_ports=allow_ports)
    path = quote(parts.path, safe=_PATH_SAFE)
    if pointer and path in ("", "/"):
        path = "/.well-known/pay"
    try:
        return target_uri(f"https://{authority}{path}")
    except ValueError:
        raise ValueError(_MALFORMED) from None


def _check_characters(text: str) -> None:
    if not text:
        raise ValueError("Please enter your wallet address.")
    if len(text) > MAX_URL:
        raise ValueError("This wallet address is too long.")
    if "\\" in text or any(unicodedata.category(character)[0] in "CZ" for character in text):
        raise ValueError("A wallet address has no spaces, backslashes or invisible characters.")


def _parts(text: str, *, pointer: bool) -> Parts:
    """Split `text`, in which the scheme may be left out."""
    parts = split(text)
    if parts.scheme and parts.authority is not None:
        if pointer or parts.scheme != "https":
            raise ValueError("A wallet address begins with https:// or $.")
    else:
        parts = split(f"https://{text}")
    authority = parts.authority or ""
    if ("[" in authority) != ("]" in authority):
        raise ValueError(_MALFORMED)
    for character, found in (("@", "@" in authority), ("? or #", parts.query or parts.fragment)):
        if found:
            raise ValueError(
                f"A wallet address has no {character}. It looks like https://wallet.example/alice."
            )
    return parts


def _authority(typed: str, *, allow_ports: bool) -> str:
    """Return `typed` in lower case and ASCII, without the default port."""
    host, port = host_and_port(typed)
    port = None if port == "443" else port
    if port is not None and not (allow_ports and _PORT.fullmatch(port)):
        raise ValueError("A wallet address has no port.")
    name = _ascii(host.lower().removesuffix("."))
    if not is_name(name):
        raise ValueError(_NO_HOST)
    if "." not in name and not allow_ports:
        raise ValueError("A wallet address looks like https://wallet.example/alice.")
    return name if port is None else f"{name}:{port}"


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    try:
        return idna.encode(name, uts46=True).decode()
    except idna.IDNAError:
        raise ValueError(_NO_HOST) from None
