"""Calls of the checkout's API.

Each has a time limit, and ends in an answer or in CheckoutError. No error holds the API key.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Any, Final
from urllib.parse import quote

import requests
from urllib3.exceptions import HTTPError

_TIMES_OUT: Final = (5, 15)  # seconds to connect, and to wait for each answer
_CLOCKS_DIFFER: Final = 300  # seconds that a delivery's time may be away
_EVENTS: Final = (
    "checkout.session.completed",
    "checkout.session.expired",
    "checkout.session.partially_paid",
    "checkout.session.late_payment",
    "refund.updated",
    "refund.failed",
)

Answer = dict[str, Any]


class CheckoutError(Exception):
    """The checkout refused, or with the code "unreachable" gave no answer: all is possible."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Checkout:
    """The API of the checkout at `base_url`, on behalf of the merchant of `api_key`."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base = base_url.rstrip("/")
        self._api_key = api_key

    def create_session(self, body: Answer, *, key: str) -> Answer:
        """Create a session, or return the one that was created with this idempotency key."""
        return self._call("POST", "/api/checkout/sessions", body, key=key)

    def session(self, identity: str) -> Answer:
        """Return a session. Raises CheckoutError "resource_missing" for another merchant's."""
        return self._call("GET", f"/api/checkout/sessions/{quote(identity, safe='')}")

    def cancel(self, identity: str) -> Answer:
        """End a session as canceled. Raises CheckoutError if money may be under way."""
        return self._call("POST", f"/api/checkout/sessions/{quote(identity, safe='')}/cancel")

    def create_refund(self, body: Answer, *, key: str) -> Answer:
        """Request a refund, or return the one that was requested with this idempotency key."""
        return self._call("POST", "/api/checkout/refunds", body, key=key)

    def refunds(self, session: str) -> list[Answer]:
        """Return all refunds of a session."""
        found = self._call("GET", "/api/checkout/refunds", query={"session": session})
        refunds: list[Answer] = found["data"]
        return refunds

    def currency(self) -> str:
        """Return the currency of the merchant's wallet, in upper case."""
        found = self._call("GET", "/v1/balance")
        return str(found["available"][0]["currency"]).upper()

    def install_endpoint(self, url: str) -> Answer:
        """Make the webhook endpoint of this URL, in place of an older one.

        Return it with its secret.
        """
        for each in self._call("GET", "/v1/webhook_endpoints", query={"limit": "100"})["data"]:
            if each["url"] == url:
                self._call("DELETE", f"/v1/webhook_endpoints/{quote(each['id'], safe='')}")
        body = {"url": url, "enabled_events": list(_EVENTS), "format": "native"}
        return self._call("POST", "/v1/webhook_endpoints", body)

    def has_endpoint(self, identity: str) -> bool:
        """Return whether the merchant still has this webhook endpoint, and it is enabled."""
        try:
            found = self._call("GET", f"/v1/webhook_endpoints/{quote(identity, safe='')}")
        except CheckoutError as error:
            if error.code == "resource_missing":
                return False
            raise
        return bool(found["status"] == "enabled")

    def _call(
        self,
        method: str,
        path: str,
        body: Answer | None = None,
        *,
        query: dict[str, str] | None = None,
        key: str | None = None,
    ) -> Answer:
        headers = {"Authorization": f"Bearer {self._api_key}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            said = requests.request(
                method,
                f"{self._base}{path}",
                params=query,
                json=body,
                headers=headers,
                timeout=_TIMES_OUT,
                allow_redirects=False,
            )
            found = said.json()
        # pretix refuses private addresses with an error of urllib3, which is not one of requests.
        except (requests.RequestException, HTTPError, ValueError):
            raise CheckoutError("The checkout gave no answer.", "unreachable") from None
        if not isinstance(found, dict):
            raise CheckoutError("The checkout's answer cannot be read.", "unreachable")
        if said.ok and not said.is_redirect:
            return found
        error = found.get("error")
        told = error if isinstance(error, dict) else {}
        code = str(told.get("code") or "unreachable")
        raise CheckoutError(str(told.get("message") or "The checkout refused.")[:300], code)


def genuine(body: bytes, signature: str, secret: str, now: float | None = None) -> bool:
    """Return whether the header Checkout-Signature is of this body, secret and time."""
    parts = [part.partition("=")[::2] for part in signature.split(",")]
    sent_at = dict(parts).get("t", "")
    if not (sent_at.isascii() and sent_at.isdecimal() and len(sent_at) < 16):
        return False
    if abs((time.time() if now is None else now) - int(sent_at)) > _CLOCKS_DIFFER:
        return False
    made = hmac.new(secret.encode(), f"{sent_at}.".encode() + body, hashlib.sha256).hexdigest()
    given = [value for name, value in parts if name == "v1"]
    return any(hmac.compare_digest(made.encode(), each.encode()) for each in given)
