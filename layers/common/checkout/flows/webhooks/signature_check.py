"""Explain to a merchant why their server rejects a webhook.

The headers and body that the merchant's server received are compared with the stored event, and the
signature is checked with the merchant's secrets. The secrets never leave this module. Another
merchant's events are treated as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.ground.errors import ParameterInvalid, WebhookUnexpectedState
from checkout.domain.ground.grammar import EVENT_ID, SESSION_ID
from checkout.domain.merchant.record import Merchant
from checkout.domain.webhooks.record import Endpoint, WebhookEvent, copy_id
from checkout.domain.webhooks.signature import (
    Finding,
    PastedHeaders,
    Secret,
    check,
    id_in,
    presented,
)
from checkout.services import DashboardServices

HEADERS_MAX: Final = 4_096  # characters
BODY_MAX: Final = 64 * 1024  # bytes
_STRANGE: Final = ("secret", "unknown")  # no secret of the endpoint made the signature


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings. `event` is the id of the stored event that was compared, or None."""

    findings: tuple[Finding, ...]
    event: str | None


def explain(services: DashboardServices, merchant_id: str, *, headers: str, body: str) -> Diagnosis:
    """Compare the message that the server received with the message that was sent.

    Raises ParameterInvalid, WebhookUnexpectedState, Unavailable.
    """
    if len(headers) > HEADERS_MAX or len(body.encode("utf-8", "surrogatepass")) > BODY_MAX:
        raise ParameterInvalid(
            f"At most {HEADERS_MAX} characters of headers and {BODY_MAX} bytes of body are checked."
        )
    given = presented(headers)
    if given is None:
        raise ParameterInvalid(
            "The headers contain no signature. Paste the line that begins with Checkout-Signature, "
            "or the three lines that begin with webhook-.",
            param="headers",
        )
    merchant = services.merchants.get(merchant_id)
    if merchant is None or not merchant.endpoints:
        raise WebhookUnexpectedState("No webhook endpoint is set, so there is no secret.")
    event = _event(services, merchant, given, body)
    each = [_compared(services, merchant, end, event, given, body) for end in merchant.endpoints]
    # If the secret of an endpoint made the signature, only that endpoint is compared.
    found = next((one for one in each if one[0].code not in _STRANGE), each[0])
    return Diagnosis(found, event.id if event else None)


def _compared(
    services: DashboardServices,
    merchant: Merchant,
    endpoint: Endpoint,
    event: WebhookEvent | None,
    given: PastedHeaders,
    body: str,
) -> tuple[Finding, ...]:
    """Compare with the message that this endpoint was sent, and with its secrets."""
    now = services.clock.now()
    secrets = _secrets(services, merchant, endpoint, now)
    sent = event.body_for(endpoint) if event else None
    return check(given, body, secrets=secrets, sent=sent, now=now)


def _secrets(
    services: DashboardServices, merchant: Merchant, endpoint: Endpoint, now: datetime
) -> tuple[Secret, ...]:
    """Decrypt all secrets, including an expired one, because the receiver may still use it."""
    place, signing = merchant.secret_place(endpoint), endpoint.signing(now)

    def name(number: int) -> str:
        if number == 0:
            return "current"
        return "before" if endpoint.secrets[number] in signing else "ended"

    return tuple(
        Secret(name(number), services.vault.open(secret.sealed, place=place))
        for number, secret in enumerate(endpoint.secrets)
    )


def _event(
    services: DashboardServices, merchant: Merchant, given: PastedHeaders, body: str
) -> WebhookEvent | None:
    """Find the event by the event id in the headers, or by the session or test id in the body."""
    named = given.event_id or id_in(body) or ""
    if SESSION_ID.fullmatch(named):
        session = services.sessions.get(named)
        named = session.event or "" if session and session.merchant == merchant.id else ""
    if not EVENT_ID.fullmatch(named):
        return None
    further = (copy_id(named, each.id or "") for each in merchant.further_endpoints)
    found = (services.events.get(each) for each in (named, *further))
    return next((each for each in found if each and each.merchant == merchant.id), None)
