"""Do the actions of the dashboard, and write each to the audit log.

The webhook endpoints of /v1 are set here too. The native API and the command line call the flows
underneath, without an audit entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from checkout.domain.audit import Action
from checkout.domain.errors import PaymentInProgress
from checkout.domain.mandate import Margin
from checkout.domain.merchant import ApiKey
from checkout.domain.people import Actor, Scope
from checkout.domain.refund import Refund
from checkout.domain.session import Session
from checkout.domain.webhooks import Endpoint, WebhookEvent
from checkout.flows import audit, merchants
from checkout.flows.checkout import ends, lookup
from checkout.flows.checkout.lists import ListQuery
from checkout.flows.idempotency import Reserve
from checkout.flows.merchant import export
from checkout.flows.merchant.export import Part
from checkout.flows.refund import budget_request
from checkout.flows.refund import request as refunds
from checkout.flows.refund.request import NewRefund
from checkout.flows.webhooks import delivery_log, endpoints
from checkout.flows.webhooks.endpoints import Configured, Resent
from checkout.ports.services import DashboardServices

if TYPE_CHECKING:
    from checkout.flows.refund.budget import Finish
    from checkout.flows.refund.claim import Offer


def expire_session(services: DashboardServices, key: Actor, session_id: str) -> Session:
    """Expire a session. Raise as `ends.expire` does."""
    return _end(services, key, session_id, ends.expire, Action.SESSION_EXPIRED)


def cancel_session(services: DashboardServices, key: Actor, session_id: str) -> Session:
    """Cancel a session, or begin to close its payment in doubt. Raise as `ends.cancel` does."""
    return _end(services, key, session_id, ends.cancel, Action.SESSION_CANCELED)


def accept_session(services: DashboardServices, key: Actor, session_id: str) -> Session:
    """Accept a part of the money as payment. Raise as `ends.accept_as_paid` does."""
    return _end(services, key, session_id, ends.accept_as_paid, Action.SESSION_ACCEPTED)


def give_up_session(services: DashboardServices, key: Actor, session_id: str) -> Session:
    """Give a partly paid session up, or begin to close its payment. Raise as `give_up` does."""
    return _end(services, key, session_id, ends.give_up, Action.SESSION_GIVEN_UP)


def request_refund(
    services: DashboardServices,
    key: Actor,
    asked: NewRefund,
    reserve: Reserve[Refund] | None = None,
) -> Refund:
    """Request a refund, or note one. Raise as `refund.request.create` does."""
    refund = refunds.create(services, key, asked, reserve)
    action = Action.PAID_ELSEWHERE if refund.noted else Action.REFUND_REQUESTED
    audit.note(services, key, action, refund.id)
    return refund


def cancel_refund(services: DashboardServices, key: Actor, refund_id: str) -> Refund:
    """Cancel a refund. Raise as `refund.request.cancel` does."""
    refund = refunds.cancel(services, key, refund_id)
    audit.note(services, key, Action.REFUND_CANCELED, refund.id)
    return refund


def offer_claim(services: DashboardServices, key: Actor, refund_id: str) -> Offer:
    """Make the link by which a customer names another wallet. Raise as `claim.offer` does."""
    from checkout.flows.refund import claim  # it loads the wallets' client

    offer = claim.offer(services, key, refund_id)
    audit.note(services, key, Action.CLAIM_OFFERED, refund_id)
    return offer


def ask_budget(services: DashboardServices, key: Actor, amount: int, margin: Margin) -> None:
    """Ask the wallet for the approval of a refund budget. Raise as `budget.ask` does."""
    from checkout.flows.refund import budget  # it loads the wallets' client

    asked = budget.ask(services.paying(), key, amount, margin).asked
    audit.note(services, key, Action.BUDGET_ASKED, str(asked.limit) if asked else None)


def approve_budget(
    services: DashboardServices, key: Actor, *, interact_ref: str, presented_hash: str
) -> Finish:
    """Act on the wallet's callback. Raise as `budget.finish` does."""
    from checkout.flows.refund import budget

    before = budget_request.find(services, key)
    done = budget.finish(
        services.paying(), key, interact_ref=interact_ref, presented_hash=presented_hash
    )
    after, older = done.mandate, before.handle if before else None
    if after and after.active and after.terms and after.handle != older:
        audit.note(services, key, Action.BUDGET_APPROVED, str(after.terms.limit))
    return done


def end_budget(services: DashboardServices, key: Actor) -> None:
    """End the refund budget. Raise as `budget_request.end` does."""
    budget_request.end(services, key)
    audit.note(services, key, Action.BUDGET_ENDED)


def download(
    services: DashboardServices, key: Actor, text: str, query: ListQuery, *, file: str
) -> Part:
    """Return a part of an export. The first part is noted in the audit log as a copy of `file`."""
    part = export.part(services, key, text, query)
    if query.cursor is None:
        audit.note(services, key, Action.EXPORTED, file)
    return part


def set_webhook(
    services: DashboardServices,
    key: Actor,
    *,
    url: str,
    events: tuple[str, ...],
    more: Mapping[str, Any] | None = None,
    **options: Any,
) -> Configured:
    """Set the webhook address and its options. Raise as `endpoints.configure` does."""
    fields = {**(more or {}), **_set_by(services, key)}
    done = endpoints.configure(
        services, key.merchant, url=url, events=events, more=fields, **options
    )
    audit.note(services, key, Action.WEBHOOK_SET, url.partition("?")[0])
    return done


def update_webhook(
    services: DashboardServices, key: Actor, fields: Mapping[str, Any], **options: Any
) -> Configured:
    """Change fields of the webhook endpoint. Raise as `endpoints.update` does."""
    set_by = _set_by(services, key) if "url" in fields else {}
    done = endpoints.update(services, key.merchant, {**fields, **set_by}, **options)
    audit.note(services, key, Action.WEBHOOK_SET, _without_query(done.endpoint))
    return done


def _set_by(services: DashboardServices, key: Actor) -> dict[str, Any]:
    """Return the fields of an endpoint that say who has set its address.

    A key that may not read learns nothing of customers by the address that it chooses.
    """
    blind = isinstance(key, ApiKey) and Scope.READ not in key.scopes
    return {
        "set_by": key.id,
        "set_at": services.clock.now(),
        "withheld": 1 if blind else None,
    }


def _without_query(endpoint: Endpoint | None) -> str | None:
    """Return the address as the audit log has it: a query may hold a secret."""
    return None if endpoint is None else endpoint.url.partition("?")[0]


def remove_webhook(services: DashboardServices, key: Actor, *, endpoint: str | None = None) -> None:
    """Remove a webhook address. Raise as `endpoints.remove` does."""
    removed = merchants.get(services.merchants, key.merchant).endpoint_of(endpoint)
    endpoints.remove(services, key.merchant, endpoint=endpoint)
    audit.note(services, key, Action.WEBHOOK_REMOVED, _without_query(removed))


def enable_webhook(services: DashboardServices, key: Actor, *, endpoint: str | None = None) -> None:
    """Enable a webhook address after a 410. Raise as `endpoints.enable` does."""
    merchant = endpoints.enable(services, key.merchant, endpoint=endpoint)
    audit.note(
        services, key, Action.WEBHOOK_ENABLED, _without_query(merchant.endpoint_of(endpoint))
    )


def roll_webhook_secret(
    services: DashboardServices,
    key: Actor,
    *,
    overlap: timedelta,
    endpoint: str | None = None,
    reserve: Reserve[Configured] | None = None,
) -> Configured:
    """Replace a signing secret. Raise as `endpoints.roll_secret` does."""
    done = endpoints.roll_secret(
        services, key.merchant, overlap=overlap, endpoint=endpoint, reserve=reserve
    )
    audit.note(services, key, Action.WEBHOOK_SECRET_ROLLED, _without_query(done.endpoint))
    return done


def send_test_event(
    services: DashboardServices,
    key: Actor,
    *,
    endpoint: str | None = None,
    reserve: Reserve[WebhookEvent] | None = None,
) -> WebhookEvent:
    """Send a test event. Raise as `endpoints.ping` does."""
    event = endpoints.ping(services, key.merchant, endpoint=endpoint, reserve=reserve)
    audit.note(services, key, Action.TEST_EVENT_SENT, event.id)
    return event


def resend_event(services: DashboardServices, key: Actor, event_id: str) -> WebhookEvent:
    """Send one event again. Raise as `endpoints.resend` does."""
    event = endpoints.resend(services, key.merchant, event_id)
    audit.note(services, key, Action.EVENT_RESENT, event.id)
    return event


def resend_failed_events(
    services: DashboardServices,
    key: Actor,
    *,
    since: datetime,
    after: str | None,
    endpoint: str | None = None,
) -> Resent:
    """Send the failed events since then again. Raise as `delivery_log.resend_failed` does."""
    done = delivery_log.resend_failed(services, key, since=since, after=after, endpoint=endpoint)
    audit.note(services, key, Action.EVENTS_RESENT, f"{done.count}, since {since.date()}")
    return done


def _end(
    services: DashboardServices,
    key: Actor,
    session_id: str,
    end: Callable[[DashboardServices, Actor, str], Session],
    action: Action,
) -> Session:
    """End a session, or return it as it is if this began to close its incoming payment."""
    before = lookup.get(services, key, session_id)
    try:
        session = end(services, key, session_id)
    except PaymentInProgress:
        session = lookup.get(services, key, session_id)
        if before.closing_at is not None or session.closing_at is None:
            raise
        action = Action.CLOSING_STARTED
    audit.note(services, key, action, session.id)
    return session
