"""Read what wallets show of a payment.

The merchant's own incoming payment is the witness that money arrived. The customer's wallet is only
asked what it knows. Nothing is decided here, and no record of ours is written.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.session import NEVER_CLOSED_AFTER, Session
from checkout.flows.payment.work import Work
from checkout.open_payments import errors as op
from checkout.open_payments.client import OpenPayments
from checkout.open_payments.models import AccessToken, OutgoingPayment

LIST_PAGES_MAX: Final = 3
# How a resource server says that a resource does not exist (protocol.md section 10). A 404 may come
# from a proxy in between, so it is believed only this long after the expiry.
READ: Final = "get_incoming_payment"
GONE: Final = 401
STRAY_404: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of the merchant's incoming payment, as a read that began at `begun_at` shows it.

    `closed`: it takes no new money.
    """

    received: int
    closed: bool
    begun_at: datetime


def check(work: Work, session: Session) -> Seen:
    """Read the incoming payment.

    "Not found" after its expiry means unpaid: providers delete expired unpaid incoming payments.
    Raises open_payments errors; then nothing is known.
    """
    assert session.incoming_payment is not None
    url = session.incoming_payment.id
    begun_at = work.services.clock.now()
    try:
        payment = work.at_merchant(lambda token: work.client.get_incoming_payment(url, token))
    except op.Refused as refused:
        believed_from = session.incoming_payment_ends_at
        if refused.status != GONE:
            believed_from += STRAY_404
        # The refusal of a grant, which a read may need first, says nothing of the payment.
        gone = refused.reason is op.Reason.NOT_FOUND and refused.operation == READ
        if gone and begun_at >= believed_from:
            return Seen(received=0, closed=True, begun_at=begun_at)
        raise
    if not payment.received.same_asset(session.receive):
        raise op.UntrustedAnswer("received in another asset", operation="get_incoming_payment")
    expired = payment.expires_at is not None and payment.expires_at <= begun_at
    never_closed = begun_at >= session.expires_at + NEVER_CLOSED_AFTER
    closed = payment.completed or expired or never_closed
    return Seen(received=payment.received.value, closed=closed, begun_at=begun_at)


def check_and_close(work: Work, session: Session) -> Seen:
    """Read the incoming payment, close it unless it is closed or paid in full, and read it again.

    What is seen counts, whatever the provider answers to the close. Raises open_payments errors.
    """
    assert session.incoming_payment is not None
    url = session.incoming_payment.id
    seen = check(work, session)
    if seen.closed or seen.received >= session.receive.value:
        return seen
    with contextlib.suppress(op.OpenPaymentsError):
        work.at_merchant(lambda token: work.client.complete_incoming_payment(url, token))
    return check(work, session)


def find(client: OpenPayments, session: Session, token: AccessToken) -> OutgoingPayment | None:
    """Return the session's outgoing payment, by its stored URL if there is one, or None.

    Raises as `find_payment` does.
    """
    if session.outgoing_payment is not None:
        return client.get_outgoing_payment(session.outgoing_payment, token)
    return find_payment(client, session, token)


def find_payment(
    client: OpenPayments, session: Session, token: AccessToken
) -> OutgoingPayment | None:
    """Return the outgoing payment of the session's quote, or None if the wallet shows none.

    Asks by id (Rafiki gives the payment the quote's id) and by list. Raises open_payments errors
    where the wallet cannot be asked; then nothing is known.
    """
    assert session.customer is not None
    assert session.quote is not None
    assert session.incoming_payment is not None
    wallet, quote_id = session.customer, session.quote.id
    try:
        return client.get_outgoing_payment(client.outgoing_payment_url(wallet, quote_id), token)
    except op.Refused as refused:
        if refused.reason is not op.Reason.NOT_FOUND:
            raise
    cursor: str | None = None
    for _ in range(LIST_PAGES_MAX):
        payments, cursor = client.list_outgoing_payments(wallet, token, cursor=cursor)
        for payment in payments:
            if payment.quote_id == quote_id or payment.receiver == session.incoming_payment.id:
                return payment
        if cursor is None:
            return None
    raise op.OutcomeUnknown("the list of payments does not end", operation="list_outgoing_payments")
