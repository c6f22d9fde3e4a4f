"""Put records of a merchant into the tables of a `Dashboard`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from checkout.adapters.dynamo.records import flag_item, session_item
from checkout.domain.ground.ids import new_event_id
from checkout.domain.ground.providers import parse
from checkout.domain.payment.attempt import EndedBy, Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import (
    Attention,
    IncomingPaymentRef,
)
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.refund.record import Refund, RefundRef, RefundStatus
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.event_types import COMPLETED
from checkout.domain.webhooks.record import Delivery, Endpoint, EventStatus, GivenUp, WebhookEvent
from tests.support.basics import NOW, a_refund
from tests.support.dashboard_pages import Dashboard
from tests.support.hosted_pages import AWAITING
from tests.support.merchant_api import PREFIX
from tests.support.samples import an_endpoint, an_event
from tests.support.services import store_refund

HOOKS = "https://shop.example/hooks"


def story(*events: Event) -> tuple[HistoryEntry, ...]:
    """As it is stored: the creation, then a step a second."""
    told = [event.value for event in events]
    return tuple(
        HistoryEntry(NOW + timedelta(seconds=number), event)
        for number, event in enumerate(["created", *told])
    )


_PAID = PaymentAttempt(
    1,
    NOW + timedelta(seconds=1),
    resolved_at=NOW + timedelta(seconds=2),
    outcome=Outcome.PAID,
    ended_by=EndedBy.MERCHANT_WALLET,
    ended_at=NOW + timedelta(seconds=8),
    wallet=AWAITING["customer"].id,
    incoming_payment="https://wallet.example/in/1",
    quote=AWAITING["quote"],
    outgoing_payment="https://wallet.example/out/1",
    received=2000,
)


def paid(shop: Dashboard, **changes: Any) -> Session:
    fields: dict[str, Any] = {
        "status": Status.COMPLETED,
        "customer": AWAITING["customer"],
        "quote": AWAITING["quote"],
        "received": 2000,
        "completed_at": NOW,
        "incoming_payment": IncomingPaymentRef("https://wallet.example/in/1", NOW),
        "outgoing_payment": "https://wallet.example/out/1",
        "history": story(
            Event.WALLET_SUBMITTED,
            Event.REFERENCE_STORED,
            Event.REFERENCE_STORED,
            Event.PREPARED,
            Event.APPROVAL_CLAIMED,
            Event.PAYMENT_INTENDED,
            Event.PAYMENT_CREATED,
            Event.RECONCILED,
        ),
        "payment_attempts": (_PAID,),
    }
    return shop.store(**{**fields, **changes})


def stored(shop: Dashboard, **changes: Any) -> WebhookEvent:
    """An event of the first merchant's, given up after one attempt unless changed."""
    now = shop.clock.now()
    failed = Delivery(at=now, duration_ms=120, status=500, answer="out of order <b>")
    event = an_event(
        id=new_event_id(shop.services.random_bytes),
        subject=None,
        type=COMPLETED,
        body='{"id":"cs_1"}',
        created_at=now,
        next_at=now,
        status=EventStatus.EXHAUSTED,
        attempts=1,
        deliveries=(failed,),
        ended_at=now,
        given_up=GivenUp.ATTEMPTS,
    )
    event = replace(event, **changes)
    shop.services.events.add(event)
    return event


def flag(shop: Dashboard, status: Status = Status.CANCELED, **fields: Any) -> Session:
    """A session that was flagged, as a payment flags it."""
    flagged = {"attention": Attention.LATE_PAYMENT, "received": 700, **fields}
    session = shop.store(status=status, **{**AWAITING, **flagged})
    mark(shop, session)
    return session


def mark(shop: Dashboard, session: Session) -> None:
    """Store that the session is flagged."""
    shop.dynamo.put_item(TableName=f"{PREFIX}-checkout_sessions", Item=flag_item(session))


def offer_banks(shop: Dashboard, **changes: Any) -> None:
    """Let the merchant's page offer two providers at one host, and pages read the change."""
    banks = parse(
        "Other Bank | https://wallet.example/other/{name} | https://wallet.example/other\n"
        "Cedar Bank | https://wallet.example/{name} | https://wallet.example/join"
    )
    shop.services.merchants.replace(shop.merchant().changed(providers=banks, **changes))
    shop.clock.pass_time(61)  # the merchant's record is kept for a minute


def set_endpoint(shop: Dashboard, *further: Endpoint, **fields: Any) -> None:
    merchant = shop.merchant()
    endpoint = an_endpoint(url=HOOKS, **fields)
    changed = merchant.changed(endpoint=endpoint, further_endpoints=further)
    shop.services.merchants.replace(changed)


def refund_of(shop: Dashboard, session: Session, sent: int, **changes: Any) -> Refund:
    """A refund that has ended, with its part in the session."""
    number = len(session.refunds or ())
    refund = a_refund(
        RefundStatus.SUCCEEDED,
        id=f"re_{session.id.removeprefix('cs_')[:-1]}{number}",
        session=session.id,
        amount=sent,
        sent=sent,
        **{"ended_at": shop.clock.now(), "created_at": shop.clock.now(), **changes},
    )
    if sent and refund.spent is None:
        refund = replace(refund, spent=refund.quote.debit if refund.quote else refund.cost)
    store_refund(shop.dynamo, PREFIX, refund)
    refs = (*(session.refunds or ()), RefundRef(refund.id, sent))
    put(shop, replace(session, refunds=refs))
    return refund


def put(shop: Dashboard, session: Session) -> None:
    """Store a session that has ended, again and as it is."""
    table, key = f"{PREFIX}-checkout_sessions", {"id": {"S": session.id}}
    row = shop.dynamo.get_item(TableName=table, Key=key)["Item"]
    shop.dynamo.put_item(TableName=table, Item={**row, **session_item(session)})
