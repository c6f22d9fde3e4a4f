"""Clients: public keys and display names, fetched from the client's URL at each request.

As in Rafiki, a client can be at any URL. To request grants and to pay, the client needs only keys
at this URL. To request a customer's approval, it also needs a document with all six fields of a
wallet address.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from sandbox.wallets.state import Account, Grant

_FIELDS: Final = frozenset(
    {"id", "publicName", "assetCode", "assetScale", "authServer", "resourceServer"}
)
_PATIENCE: Final = 5.0  # seconds, as in Rafiki


def fetch_on_loopback(url: str) -> bytes:
    """Return the document at `url` on this machine. Raises OSError if it cannot be read."""
    import httpx2  # imported here, because the function of a test stage's wallets does not have it

    host = urlsplit(url).hostname
    if host not in ("localhost", "127.0.0.1"):
        raise OSError(f"{url} is outside this machine")
    try:
        answer = httpx2.get(
            url,
            headers={"accept": "application/json"},
            timeout=_PATIENCE,
            trust_env=False,
            verify=_trust(),
        )
        answer.raise_for_status()
    except httpx2.HTTPError as error:
        raise OSError(str(error)) from None
    return bytes(answer.content)


@cache
def _trust() -> ssl.SSLContext:
    """Return the TLS context. It is cached, because creating it takes longer than a request."""
    return ssl.create_default_context()


def no_fetch(url: str) -> NoReturn:
    """Raise OSError. This is the `fetch` of networks that connect to no other host."""
    raise OSError(f"{url} is outside this network")


class Clients:
    """Client look-up: `account` finds addresses of this network, `fetch` gets other documents."""

    def __init__(
        self, account: Callable[[str], Account | None], fetch: Callable[[str], bytes]
    ) -> None:
        self._account = account
        self._fetch = fetch

    def keys(self, wallet_address: str) -> list[dict[str, str]] | None:
        """Return the keys at the wallet address, or None if they are unavailable."""
        account = self._account(wallet_address)
        if account is not None:
            return account.keys
        document = self._document(f"{wallet_address}/jwks.json")
        keys = document.get("keys") if document else None
        if not isinstance(keys, list):
            return None
        return [key for key in keys if isinstance(key, dict) and "kid" in key and "x" in key]

    def display(self, wallet_address: str) -> tuple[str, str] | None:
        """Return the public name and address to show the customer.

        Return None if the client's document is incomplete, so that it cannot request consent.
        """
        account = self._account(wallet_address)
        if account is not None:
            return account.public_name, account.id
        document = self._document(wallet_address) or {}
        if not document.keys() >= _FIELDS:
            return None
        name = document["publicName"]
        return (name, wallet_address) if isinstance(name, str) and name else None

    def key_of(self, grant: Grant, kid: str) -> dict[str, str] | None:
        """Return the key `kid` of the client that holds `grant`, or None."""
        if grant.jwk is not None:
            return grant.jwk if grant.jwk["kid"] == kid else None
        assert grant.client is not None
        return find(self.keys(grant.client), kid)

    def _document(self, url: str) -> dict[str, Any] | None:
        try:
            document = json.loads(self._fetch(url))
        except (OSError, ValueError):
            return None
        return document if isinstance(document, dict) else None


def find(keys: list[dict[str, str]] | None, kid: str) -> dict[str, str] | None:
    """Return the key with the id `kid`, or None."""
    return next((key for key in keys or () if key["kid"] == kid), None)
