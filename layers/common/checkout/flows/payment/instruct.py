"""Instruct one payment at the payer's wallet: write the intent (W6), send once (C8), record (W7).

Sales and refunds share the functions for the price, for the intent and for the one call that moves
money. `send` and the functions after it are only for sales. After W6 a session is opened again only
if it is certain that no payment was made. If the outcome is unknown, the session stays in `paying`.
Reconciliation, which asks the wallets later, then finds the payment by its quote. The writes (W)
and calls (C) with numbers are those of domain/session/transitions.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from checkout.domain.ground.ids import new_nonce
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import InFlight, Instruction, Phase, Problem
from checkout.domain.payment.machine import Change
from checkout.domain.record_kinds import subject_of
from checkout.flows.payment import proof, schedule, sealed
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import change, move, write_decided
from checkout.ports import StaleRecord
from checkout.services import PayServices, Services
from open_payments import errors as op
from open_payments.models import (
    AccessToken,
    Amount,
    OutgoingPayment,
    Quote,
    WalletAddress,
)
from open_payments.protocol import Access, OpenPayments

if TYPE_CHECKING:
    from checkout.domain.refund.record import Refund
    from checkout.domain.session.record import Session

R = TypeVar("R", bound=InFlight)
P = TypeVar("P", "Session", "Refund")  # the kinds of records that are paid

# The time after W6 in which the payment may be sent. A process that continues later must not send.
SEND_WITHIN: Final = timedelta(seconds=5)
# Reconciliation starts this long after the deadline for sending. Until it starts, the process that
# sent the payment reads whether money has arrived.
CHECK_AFTER: Final = timedelta(seconds=5)
# A quote that expires within this time is replaced, because a payment fails if its quote expires
# before the wallet sends the money.
QUOTE_MARGIN: Final = timedelta(seconds=10)
LIST_PAGES_MAX: Final = 3
RECEIVER_AGAIN: Final = 0.5  # seconds until a rejected receiver is tried again


@dataclass(frozen=True, slots=True)
class Sent(Generic[R]):
    """A session after its payment was sent once.

    `payment` is the payment that the wallet returned with a 201. `seen` is set if money has arrived
    although the wallet refused the payment. If neither is set, the session is open again, or it is
    not known whether a payment was made.
    """

    session: R
    payment: OutgoingPayment | None = None
    seen: proof.IncomingPaymentState | None = None


def request_quote(
    calls: WalletCalls,
    payer: WalletAddress,
    *,
    receiver: str,
    receive: Amount | None = None,
    debit: Amount | None = None,
) -> Quote:
    """Ask the payer's wallet for the price of paying `receive` to the receiver (C4, C5).

    With `debit` instead of `receive`, the quote shows the amount that this debit delivers. If the
    wallet answers "invalid receiver", the wallet is asked once more, because a real provider also
    gives this answer while it cannot read the incoming payment. Raises open_payments errors.
    """
    try:
        return _request_quote(calls, payer, receiver=receiver, receive=receive, debit=debit)
    except op.Refused as refused:
        if refused.reason is not op.Reason.INVALID_RECEIVER:
            raise
    calls.services.clock.sleep(RECEIVER_AGAIN)
    return _request_quote(calls, payer, receiver=receiver, receive=receive, debit=debit)


def _request_quote(
    calls: WalletCalls,
    payer: WalletAddress,
    *,
    receiver: str,
    receive: Amount | None,
    debit: Amount | None,
) -> Quote:
    return calls.services.wallets.tokens.use(
        calls.client,
        payer.auth_server,
        payer.resource_server,
        Access.QUOTE,
        lambda token: calls.client.create_quote(
            payer, token, receiver=receiver, receive=receive, debit=debit
        ),
    )


def usable_quote(
    calls: WalletCalls,
    quote: Quote,
    payer: WalletAddress,
    *,
    receiver: str,
    receive: Amount | None = None,
    debit: Amount | None = None,
) -> Quote | None:
    """Return the quote or, if it ends soon, a new one for the same incoming payment.

    Returns None if the new quote costs more than the payer approved. Raises open_payments errors.
    """
    if quote.expires_at is None or calls.services.clock.now() + QUOTE_MARGIN < quote.expires_at:
        return quote
    renewed = request_quote(calls, payer, receiver=receiver, receive=receive, debit=debit)
    within = renewed.debit.value <= quote.debit.value and renewed.debit.same_asset(quote.debit)
    return renewed if within else None


def instruction(services: PayServices) -> dict[str, Any]:
    """Return the fields of a new instruction: its deadline for sending, and its first check."""
    now = services.clock.now()
    new = Instruction(id=new_nonce(services.random_bytes), deadline=now + SEND_WITHIN)
    return {"instruction": new, "check_at": new.deadline + CHECK_AFTER, "checks": 0}


def intend(services: PayServices, record: P, quote: Quote, token: AccessToken, **changes: Any) -> P:
    """Write the intent to pay by this quote (W6), the point of no return.

    `changes` are further fields. Raises StaleRecord, IllegalTransition.
    """
    fields = instruction(services) | changes
    fields |= {"quote": quote, "token": sealed.seal_token(services.vault, record.id, token)}
    return move(services, record, subject_of(record.id).events.PAYMENT_INTENDED, **fields)


class NothingSent(Exception):
    """Report that this instruction has certainly paid nothing and never will.

    `why` is the note for the record's history. If `late`, the deadline for sending had passed;
    otherwise, no byte of the request reached the wallet.
    """

    def __init__(self, why: str, *, late: bool = False) -> None:
        super().__init__(why)
        self.why, self.late = why, late


def send_once(calls: WalletCalls, record: InFlight | Refund, token: AccessToken) -> OutgoingPayment:
    """Make the one call that moves money (C8), never after the instruction's deadline.

    Returns the payment that the payer's wallet has accepted. Raises NothingSent, and open_payments
    errors. After an open_payments error, a payment may have been made.
    """
    assert record.instruction is not None
    assert record.quote is not None
    assert record.payer is not None
    assert record.incoming_payment is not None
    if calls.services.clock.now() >= record.instruction.deadline:
        raise NothingSent("not sent in time", late=True)
    try:
        return calls.client.create_outgoing_payment(
            record.payer, token, quote=record.quote, receiver=record.incoming_payment.id
        )
    except op.NotSent as error:
        raise NothingSent(type(error).__name__) from None


def send(calls: WalletCalls, record: R, token: AccessToken, time_budget: timedelta) -> Sent[R]:
    """Send the payment of a sale, and record it (W7).

    Reconciliation starts after `time_budget`. Raises StaleRecord, IllegalTransition.
    """
    services = calls.services
    try:
        payment = send_once(calls, record, token)
    except NothingSent as nothing:
        late = Problem.APPROVAL_UNUSABLE if nothing.late else Problem.WALLET_UNREACHABLE
        return _certain(calls, record, token, late, nothing.why)
    except op.Refused as refused:
        return _refused(calls, record, token, refused)
    except op.OpenPaymentsError:
        return Sent(record)  # `paying`: the page shows "confirming" until a check decides
    after_us = services.clock.now() + time_budget
    try:
        record = note_created(
            services,
            record,
            payment.id,
            # The time that W6 set is kept if it is late enough, because that saves a write of the
            # index.
            check_at=lambda current: max(current.check_at or after_us, after_us),
        )
    except StaleRecord as stale:  # the sweep has changed the record meanwhile
        record = stale.current
    return Sent(record, payment)


def _certain(
    calls: WalletCalls, record: R, token: AccessToken, problem: Problem, why: str
) -> Sent[R]:
    """Open the session again, because this instruction certainly paid nothing and never will.

    The access token is revoked, so that the approval can no longer be used; errors are ignored.
    """
    assert record.customer is not None
    payer, note = record.customer, f"{problem.value}: {why}"
    record = move(calls.services, record, Event.PAYMENT_REFUSED, note=note, problem=problem)
    with contextlib.suppress(op.OpenPaymentsError):
        calls.client.revoke_token(payer.auth_server, token)
    return Sent(record)


def _refused(calls: WalletCalls, record: R, token: AccessToken, refused: op.Refused) -> Sent[R]:
    """Open the session again if the 4xx certainly means that no payment was made.

    It is certain only under three conditions (C8). The reason of the refusal is neither BUSY nor
    INVALID_QUOTE. The wallet shows no payment for this quote, by id and by list. The incoming
    payment shows no money. (A hostile wallet could pay and hide the payment.) Money that has
    arrived is returned as `seen`. If the outcome is in doubt and the incoming payment is completed,
    the fence, which is the wait until it is certain how much has arrived, begins at once.
    """
    assert record.quote is not None
    assert record.customer is not None
    assert record.incoming_payment is not None
    payer, receiver, completed = record.customer, record.incoming_payment.id, False
    try:
        seen = proof.read(calls, record)
        if seen.received > 0:
            return Sent(record, seen=seen)
        completed = seen.completed
        certain = refused.reason not in (op.Reason.BUSY, op.Reason.INVALID_QUOTE)
        if certain:
            quote = record.quote.id
            found = find_payment(calls.client, token, payer=payer, quote=quote, receiver=receiver)
            certain = found is None
    except op.OpenPaymentsError:
        certain = False  # a wallet cannot be asked
    if certain:
        if refused.of_key:  # not caused by the customer or their money
            why = f"{refused.reason.value} ({refused.answered})"
            return _certain(calls, record, token, Problem.MERCHANT_WALLET_ERROR, why)
        return _certain(calls, record, token, Problem.PAYMENT_REFUSED, refused.reason.value)
    if completed:  # closed by others, which explains the refusal; the fence can begin
        record = schedule.start_closing(calls.services, record)
    return Sent(record)


def note_created(
    services: Services,
    record: R,
    payment: str | None,
    *,
    check_at: Callable[[R], datetime],
) -> R:
    """Write that the instructed payment exists (W7); `payment` is its id, if known.

    If another process has written the record first, W7 is applied to the stored record, so no
    change is lost. Exception: if the stored record no longer pays by this instruction, or its
    incoming payment is being closed, raises StaleRecord, which contains that record. `check_at`
    returns the time of the record's next check.
    """

    def created(current: R) -> Change[R]:
        ours = current.phase is Phase.PAYING and current.instruction == record.instruction
        if not ours or current.closing_at is not None:
            raise StaleRecord(current)
        return change(
            services,
            current,
            Event.PAYMENT_CREATED,
            outgoing_payment=payment,
            check_at=check_at(current),
            checks=0,
        )

    return write_decided(services, record, created)


def find_payment(
    client: OpenPayments, token: AccessToken, *, payer: WalletAddress, quote: str, receiver: str
) -> OutgoingPayment | None:
    """Return the outgoing payment of this quote, or None if the wallet shows none.

    The payment is first read by the quote's id, because Rafiki gives both the same id, and is then
    searched for in the list of payments. Raises open_payments errors if the wallet cannot be asked.
    In that case, it is not known whether the payment exists.
    """
    try:
        return client.get_outgoing_payment(client.outgoing_payment_url(payer, quote), token)
    except op.Refused as refused:
        if refused.reason not in proof.NONE:
            raise
    cursor: str | None = None
    for _ in range(LIST_PAGES_MAX):
        payments, cursor = client.list_outgoing_payments(payer, token, cursor=cursor)
        for payment in payments:
            if payment.quote_id == quote or payment.receiver == receiver:
                return payment
        if cursor is None:
            return None
    raise op.OutcomeUnknown("the list of payments does not end", operation="list_outgoing_payments")
