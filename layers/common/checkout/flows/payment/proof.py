"""Prove how much has arrived: read and close the merchant's own incoming payment.

Only the incoming payment proves that money has arrived, because a payer's wallet is not trusted.
The fence makes the amount certain: it closes the incoming payment, and reads it once more after the
time FENCE (domain/session/transitions.py).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from checkout.domain.ground.money import least_accepted, may_be_converted
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import FENCE, NEVER_CLOSED_AFTER, InFlight, Problem
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import move
from open_payments import errors as op

R = TypeVar("R", bound=InFlight)

READ: Final = "get_incoming_payment"
# NOT_OURS means that another client has made the payment, so it is not the session's payment.
NONE: Final = (op.Reason.NOT_FOUND, op.Reason.NOT_OURS)
# A resource server answers 401 for a resource that does not exist (protocol.md section 7). A 404
# can also come from a proxy in between, so a 404 is believed only when the time STRAY_404 has
# passed since the expiry.
GONE: Final = 401
STRAY_404: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class IncomingPaymentState:
    """The state of the merchant's incoming payment, as a read that began at `begun_at` shows it.

    `closed` means that the incoming payment accepts no new money. `completed` means that it was
    paid in full or closed by somebody, and did not just expire.
    """

    received: int
    closed: bool
    begun_at: datetime
    completed: bool = False


def read(calls: WalletCalls, record: InFlight) -> IncomingPaymentState:
    """Read the incoming payment. Money that an earlier read has shown is included in any case.

    "Not found" after the expiry means that the incoming payment is unpaid, because providers delete
    expired unpaid incoming payments. Exception: if an earlier read has shown money, "not found" is
    an error until the time NEVER_CLOSED_AFTER has passed since the session's expiry, and then means
    "closed". Raises open_payments errors, after which the state is not known.
    """
    assert record.incoming_payment is not None
    url = record.incoming_payment.id
    known = record.received or 0
    begun_at = calls.services.clock.now()
    never_closed = begun_at >= record.expires_at + NEVER_CLOSED_AFTER
    try:
        payment = calls.at_merchant(lambda token: calls.client.get_incoming_payment(url, token))
    except op.Refused as refused:
        believed_from = record.incoming_payment_ends_at
        if refused.status != GONE:
            believed_from += STRAY_404
        # A read may need a grant first. The refusal of a grant proves nothing about the payment.
        gone = refused.reason in NONE and refused.operation == READ
        if gone and begun_at >= believed_from and (known == 0 or never_closed):
            return IncomingPaymentState(received=known, closed=True, begun_at=begun_at)
        raise
    if not payment.received.same_asset(record.receive):
        raise op.UntrustedAnswer("received in another asset", operation="get_incoming_payment")
    expired = payment.expires_at is not None and payment.expires_at <= begun_at
    closed = payment.completed or expired or never_closed
    return IncomingPaymentState(
        max(payment.received.value, known), closed, begun_at, payment.completed
    )


def read_and_close(calls: WalletCalls, record: InFlight) -> IncomingPaymentState:
    """Read the incoming payment; if it is neither closed nor paid in full, close it and read again.

    The provider's answer to the close is ignored, because only the reads are evidence. If the
    second read fails, returns the result of the first, because the money that it shows has arrived
    in any case. Raises open_payments errors if the first read fails.
    """
    assert record.incoming_payment is not None
    url = record.incoming_payment.id
    seen = read(calls, record)
    if seen.closed or seen.received >= record.receive.value:
        return seen
    with contextlib.suppress(op.OpenPaymentsError):
        calls.at_merchant(lambda token: calls.client.complete_incoming_payment(url, token))
    with contextlib.suppress(op.OpenPaymentsError):
        seen = read(calls, record)
    return seen


def enough(calls: WalletCalls, record: InFlight, received: int, *, ended: bool = False) -> bool:
    """Return whether `received`, in the merchant's wallet's scale, is accepted as payment in full.

    `ended` means that the customer's wallet reports that the payment has ended without a failure.
    """
    quote, receiver = record.quote, record.incoming_payment
    # Without a quote, the money came from outside of the payment flow.
    converted = quote is not None and receiver is not None and may_be_converted(quote, receiver.id)
    return received >= least_accepted(
        record.receive.value,
        tolerance=calls.merchant.tolerance,
        converted=converted,
        ended=ended,
    )


def fence(calls: WalletCalls, record: R) -> tuple[R, IncomingPaymentState, bool]:
    """Take one step of the fence: close the incoming payment, or read it after the wait.

    Returns the record, the state of its incoming payment, and whether this state decides about the
    record. The state decides if it shows enough money, or if the read began at least the time FENCE
    after the close. If a deciding state shows no money, the returned record is open for another
    payment (PAYMENT_DISPROVED). Raises open_payments errors, StaleRecord, IllegalTransition.
    """
    services = calls.services
    seen = read_and_close(calls, record) if record.closed_at is None else read(calls, record)
    if not enough(calls, record, seen.received):
        if record.closed_at is None:
            if not seen.closed:
                return record, seen, False
            now = services.clock.now()
            record = move(services, record, Event.CLOSED, closed_at=now, check_at=now + FENCE)
            return record, seen, False
        if seen.begun_at < record.closed_at + FENCE:
            return record, seen, False  # this read began too early to decide
    if seen.received == 0:
        problem = Problem.PAYMENT_FAILED
        note = "nothing was received, and nothing can arrive any more"
        record = move(services, record, Event.PAYMENT_DISPROVED, note=note, problem=problem)
    return record, seen, True
