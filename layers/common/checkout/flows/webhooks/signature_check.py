"""Explain to a merchant why their server rejects a webhook.

The headers and body they received are compared with the stored event and with their own secrets.
The secrets are opened here and go no further. Another merchant's events are refused like unknown
ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.errors import ParameterInvalid, WebhookUnexpectedState
from checkout.domain.grammar import EVENT_ID, SESSION_ID
from checkout.domain.signature_check import Finding, Presented, Secret, check, id_in, presented
from checkout.domain.webhooks import Endpoint, WebhookEvent, secret_place
from checkout.ports.services import DashboardServices

HEADERS_MAX: Final = 4_096  # characters
BODY_MAX: Final = 64 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings; `event` is the id of the stored event that was compared."""

    findings: tuple[Finding, ...]
    event: str | None


def explain(services: DashboardServices, merchant_id: str, *, headers: str, body: str) -> Checked:
    """Compare what was received with what was sent.

    Raises ParameterInvalid, WebhookUnexpectedState, Unavailable.
    """
    if len(headers) > HEADERS_MAX or len(body.encode("utf-8", "surrogatepass")) > BODY_MAX:
        raise ParameterInvalid(
            f"At most {HEADERS_MAX} characters of headers and {BODY_MAX} bytes of body are checked."
        )
    given = presented(headers)
    if given is None:
        raise ParameterInvalid(
            "There is no signature in the headers. Paste the line that begins with "
            "Checkout-Signature, or the three that begin with webhook-.",
            param="headers",
        )
    merchant = services.merchants.get(merchant_id)
    if merchant is None or merchant.endpoint is None:
        raise WebhookUnexpectedState("No webhook endpoint is set, so there is no secret.")
    now = services.clock.now()
    event = _event(services, merchant_id, given, body)
    secrets = _secrets(services, merchant_id, merchant.endpoint, now)
    sent = event.body_for(merchant.endpoint) if event else None
    found = check(given, body, secrets=secrets, sent=sent, now=now)
    return Checked(found, event.id if event else None)


def _secrets(
    services: DashboardServices, merchant_id: str, endpoint: Endpoint, now: datetime
) -> tuple[Secret, ...]:
    """Open all secrets, also one that has ended: it may still be in use at the receiver."""
    place, signing = secret_place(merchant_id), endpoint.signing(now)

    def name(number: int) -> str:
        if number == 0:
            return "current"
        return "before" if endpoint.secrets[number] in signing else "ended"

    return tuple(
        Secret(name(number), services.vault.open(secret.sealed, place=place))
        for number, secret in enumerate(endpoint.secrets)
    )


def _event(
    services: DashboardServices, merchant_id: str, given: Presented, body: str
) -> WebhookEvent | None:
    """Find the event by the header's event id, else by the session or test id in the body."""
    named = given.event_id or id_in(body) or ""
    if SESSION_ID.fullmatch(named):
        session = services.sessions.get(named)
        named = session.event or "" if session and session.merchant == merchant_id else ""
    event = services.events.get(named) if EVENT_ID.fullmatch(named) else None
    return event if event is not None and event.merchant == merchant_id else None
