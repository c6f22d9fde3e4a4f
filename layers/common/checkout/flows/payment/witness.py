"""What wallets show of a payment. The merchant's own incoming payment is the witness that money
arrived; the customer's wallet is only asked what it knows.

Nothing is decided here, and nothing of ours is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from checkout.domain.merchant import Merchant
from checkout.domain.session import Session
from checkout.flows.wire import as_quote, as_wallet, to_wire
from checkout.open_payments import errors as op
from checkout.open_payments import models
from checkout.open_payments.client import Access, OpenPayments
from checkout.ports.services import PayServices

LIST_PAGES_MAX: Final = 3
# How a resource server says that a resource does not exist (protocol.md section 10). A 404 may be
# a page of something in between; it is believed only this long after the expiry.
GONE: Final = 401
STRAY_404: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the merchant's incoming payment shows. `closed`: no new money can be sent to it."""

    received: int
    closed: bool


def look(services: PayServices, session: Session, client: OpenPayments, merchant: Merchant) -> Seen:
    """Read the incoming payment; where it is gone after its expiry, nothing came: an unpaid one
    vanishes then. Raises open_payments errors: then nothing is known.
    """
    assert session.incoming_payment is not None
    url = session.incoming_payment.id
    begun_at = services.clock.now()
    try:
        payment = services.wallets.tokens.use(
            client,
            merchant.auth_server,
            Access.INCOMING_PAYMENT,
            lambda token: client.get_incoming_payment(url, token),
        )
    except op.Refused as refused:
        believed_from = session.incoming_payment.expires_at
        if refused.status != GONE:
            believed_from += STRAY_404
        if refused.reason is op.Reason.NOT_FOUND and begun_at >= believed_from:
            return Seen(received=0, closed=True)
        raise
    if not payment.received.same_asset(to_wire(session.receive)):
        raise op.UntrustedAnswer("received in another asset", operation="get_incoming_payment")
    expired = payment.expires_at is not None and payment.expires_at <= begun_at
    return Seen(received=payment.received.value, closed=payment.completed or expired)


def close(
    services: PayServices, session: Session, client: OpenPayments, merchant: Merchant
) -> None:
    """Complete the incoming payment, so that it takes no new money. Closed already or gone is as
    good.
    """
    assert session.incoming_payment is not None
    url = session.incoming_payment.id
    try:
        services.wallets.tokens.use(
            client,
            merchant.auth_server,
            Access.INCOMING_PAYMENT,
            lambda token: client.complete_incoming_payment(url, token),
        )
    except op.Refused as refused:
        if refused.reason not in (op.Reason.WRONG_STATE, op.Reason.NOT_FOUND):
            raise


def find(
    client: OpenPayments, session: Session, token: models.AccessToken
) -> models.OutgoingPayment | None:
    """The outgoing payment of `session`, whether or not it is known by name; None: the wallet shows
    none. Raises as `find_payment` does.
    """
    if session.outgoing_payment is not None:
        return client.get_outgoing_payment(session.outgoing_payment, token)
    return find_payment(client, session, token, as_quote(session))


def find_payment(
    client: OpenPayments, session: Session, token: models.AccessToken, quote: models.Quote
) -> models.OutgoingPayment | None:
    """The outgoing payment of `quote`, by id (Rafiki gives it the quote's) and by list; None: the
    wallet shows none.

    Raises open_payments errors where the wallet cannot be asked: then nothing is known.
    """
    assert session.customer is not None
    wallet = as_wallet(session.customer)
    try:
        return client.get_outgoing_payment(client.outgoing_payment_url(wallet, quote.id), token)
    except op.Refused as refused:
        if refused.reason is not op.Reason.NOT_FOUND:
            raise
    cursor: str | None = None
    for _ in range(LIST_PAGES_MAX):
        payments, cursor = client.list_outgoing_payments(wallet, token, cursor=cursor)
        for payment in payments:
            if payment.quote_id == quote.id or payment.receiver == quote.receiver:
                return payment
        if cursor is None:
            return None
    raise op.OutcomeUnknown("the list of payments does not end", operation="list_outgoing_payments")
