"""What a customer types as a wallet address, turned into the URL to ask.

Refuses, with a sentence for the customer, everything that a wallet address cannot be. Whether the
address may be connected to is the transport's business.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote, urlsplit

import idna

from checkout.open_payments.urls import MAX_URL, target_uri

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_LDH = re.compile(r"(?!-)[a-z0-9\-]{1,63}(?<!-)")
_PATH_SAFE = "/:@!$&'()*+,;=-._~%"


def parse(typed: str, *, allow_ports: bool) -> str:
    """The https URL of the wallet address document that `typed` names.

    Takes `https://host/path`, `host/path`, and the payment pointers `$host/path` and `$host`.
    `allow_ports` is a development setting: other ports than 443 and names without a dot. Raises
    ValueError with a human sentence.
    """
    text = typed.strip()
    if not text:
        raise ValueError("Please enter your wallet address.")
    if len(text) > MAX_URL:
        raise ValueError("This wallet address is too long.")
    if "\\" in text or any(unicodedata.category(character)[0] in "CZ" for character in text):
        raise ValueError("A wallet address has no spaces, backslashes or invisible characters.")
    pointer = text.startswith("$")
    text = text.removeprefix("$")
    if _SCHEME.match(text) and (pointer or not text.lower().startswith("https://")):
        raise ValueError("A wallet address begins with https:// or $.")
    try:
        parts = urlsplit(text if _SCHEME.match(text) else f"https://{text}")
    except ValueError:
        raise ValueError("This is not a wallet address.") from None
    if "@" in parts.netloc:
        raise ValueError("A wallet address has no @. It looks like https://wallet.example/alice.")
    if "?" in text or "#" in text:
        raise ValueError(
            "A wallet address has no ? or #. It looks like https://wallet.example/alice."
        )
    authority = _host(parts.netloc, allow_ports=allow_ports)
    path = quote(parts.path, safe=_PATH_SAFE)
    if pointer and path in ("", "/"):
        path = "/.well-known/pay"
    try:
        return target_uri(f"https://{authority}{path}")
    except ValueError:
        raise ValueError("This is not a wallet address.") from None


def _host(netloc: str, *, allow_ports: bool) -> str:
    """`netloc` in lower case and ASCII, without the default port."""
    host, colon, port = netloc.partition(":")
    if colon and port != "443" and not (allow_ports and re.fullmatch(r"[0-9]{1,5}", port)):
        raise ValueError("A wallet address has no port.")
    name = host.lower().removesuffix(".")
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode()
        except idna.IDNAError:
            raise ValueError("The name before the first / is not a valid host name.") from None
    if len(name) > 253 or not all(_LDH.fullmatch(label) for label in name.split(".")):
        raise ValueError("The name before the first / is not a valid host name.")
    if "." not in name and not allow_ports:
        raise ValueError("A wallet address looks like https://wallet.example/alice.")
    return f"{name}:{port}" if colon and port != "443" else name
