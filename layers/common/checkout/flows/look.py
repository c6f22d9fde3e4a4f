"""What a session's page shows besides the session."""

from __future__ import annotations

from checkout.domain.session import Session
from checkout.domain.webhooks import WebhookEvent
from checkout.ports.services import DashboardServices


def event_of(services: DashboardServices, session: Session) -> WebhookEvent | None:
    """The webhook event of the session's end, where there is one."""
    event = services.events.get(session.event) if session.event else None
    return event if event is not None and event.merchant == session.merchant else None
