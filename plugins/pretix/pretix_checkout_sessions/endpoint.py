"""The webhook endpoint that the plugin makes for itself, one for an organizer and a merchant.

All events of an organizer share it, because a merchant has at most eight endpoints. Its secret is
in the organizer's settings, which the events do not show and copies of events do not take along.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from pretix.base.models import Organizer
from pretix.multidomain.urlreverse import eventreverse_absolute

from pretix_checkout_sessions.checkout import Checkout, genuine

_KEPT: Final = "checkoutsessions_endpoints"


def address(organizer: Organizer) -> str:
    """Return the URL of the organizer's webhook endpoint."""
    name = "plugins:pretix_checkout_sessions:webhook"
    return str(eventreverse_absolute(False, name, kwargs={"organizer": organizer.slug}))


def ensure(organizer: Organizer, base_url: str, api_key: str) -> None:
    """Make the endpoint, unless it is there. Raises CheckoutError."""
    kept, whose = _kept(organizer), _whose(base_url, api_key)
    checkout = Checkout(base_url, api_key)
    found, url = kept.get(whose), address(organizer)
    if found and found["url"] == url and checkout.has_endpoint(found["id"]):
        return
    made = checkout.install_endpoint(url)
    kept[whose] = {"id": made["id"], "secret": made["secret"], "url": url}
    organizer.settings.set(_KEPT, json.dumps(kept))


def is_genuine(organizer: Organizer, body: bytes, signature: str) -> bool:
    """Return whether a delivery was signed with the secret of one of the organizer's endpoints."""
    return any(genuine(body, signature, each["secret"]) for each in _kept(organizer).values())


def _kept(organizer: Organizer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(organizer.settings.get(_KEPT) or "{}")
    return found


def _whose(base_url: str, api_key: str) -> str:
    return hashlib.sha256(f"{base_url} {api_key}".encode()).hexdigest()
