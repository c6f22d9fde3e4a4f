"""Webhook signature headers in two schemes, from the same secrets over the same bytes.

There are two schemes so that merchants can verify with libraries that they already have.
`Checkout-Signature: t=<Unix seconds>,v1=<hex>[,v1=<hex>]` is HMAC-SHA256 of `t.body`, keyed with
the whole secret string (spec.md "Events"; as Stripe's SDKs verify it). `webhook-signature:
v1,<base64>[ v1,<base64>]` is HMAC-SHA256 of `id.timestamp.body`, keyed with the bytes after
`whsec_` (Standard Webhooks). While a secret is being rolled (replaced), each header has one
signature for the old secret and one for the new secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

_PREFIX: Final = "whsec_"
_BYTES: Final = 32


def new_webhook_secret(random_bytes: Callable[[int], bytes]) -> str:
    return _PREFIX + base64.b64encode(random_bytes(_BYTES)).decode()


def signed_headers(
    event_id: str, event_type: str, body: str, *, secrets: Sequence[str], now: datetime
) -> dict[str, str]:
    """Return all headers of an attempt at `now`. `secrets` are in plain text, newest first."""
    at = str(int(now.timestamp()))
    by_stripe = [hex_signature(at, body, secret) for secret in secrets]
    by_standard = [standard_signature(event_id, at, body, secret) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "Checkout-Signature": ",".join([f"t={at}", *(f"v1={each}" for each in by_stripe)]),
        "Checkout-Event-Id": event_id,
        "Checkout-Event-Type": event_type,
        "webhook-id": event_id,
        "webhook-timestamp": at,
        "webhook-signature": " ".join(f"v1,{each}" for each in by_standard),
    }


def stripe_header(body: str, *, secrets: Sequence[str], now: datetime) -> dict[str, str]:
    """Return `Stripe-Signature` of an attempt at `now`; `secrets` as in `signed_headers`.

    The `v1` of the newest secret is last. Stripe's libraries try every `v1`, but some handlers keep
    only the last one, and a merchant who replaces a secret changes the handler to the new secret.
    """
    at = str(int(now.timestamp()))
    signatures = [f"v1={hex_signature(at, body, secret)}" for secret in reversed(secrets)]
    return {"Stripe-Signature": ",".join([f"t={at}", *signatures])}


def hex_signature(at: str, body: str, secret: str) -> str:
    """Return a `v1` of Checkout-Signature; `at` is the time as it is written in the header."""
    return _hmac(secret.encode(), f"{at}.{body}").hex()


def standard_signature(event_id: str, at: str, body: str, secret: str) -> str:
    """Return a `v1` of webhook-signature."""
    return base64.b64encode(_hmac(_key(secret), f"{event_id}.{at}.{body}")).decode()


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), hashlib.sha256)
