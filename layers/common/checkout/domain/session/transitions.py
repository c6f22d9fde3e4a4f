"""The state machine of a session: the table below has all its transitions.

`advance` refuses an event that has no row, and is the only way to a new version of a session.
`advance` stores nothing: flows/payment/writes.py stores the Change that it returns, on condition
that the session has not changed since it was read.

Theory of operation
===================

A payment takes several calls to two wallet providers. Each call may fail or arrive twice, and its
answer may be lost. A process may die between any two lines. So every step follows one rule:

    Write the intent, make the call, write the result.

The writes have the names W1 to W8, and the calls C1 to C9; other files use these names. `make docs`
copies this text into docs/payments.md and docs/reference/states.md.

Create (flows/session/create.py). The stored answer to the idempotency key, a large cart and the
session are written one by one, without any other call. If a replayed request finds no session, it
creates the same session again, until that session's expiry. At a payment link with a stock, one
transaction writes the answer and the session, and takes the items from the stock.

Prepare (flows/session/prepare.py). No money can move.

    W1  open, awaiting_approval -> preparing. Takes a lease, and removes the secrets and the quote
        of an earlier approval.
    C1  Read the customer's wallet address.   C2  Request a grant for an incoming payment.
    C3  Create the incoming payment at the merchant's wallet. It outlives the session by 15 minutes.
    W2  Store the incoming payment. A later preparation reads it, and uses it again while it is
        open. A closed incoming payment is replaced once it has been closed for FENCE and shows no
        money.
    C4  Request a grant for a quote.   C5  Create the quote. If the wallet rejects the incoming
        payment as receiver, the incoming payment is read again, because somebody may just have
        paid it from outside.
    W3  Store the quote.
    C6  Request the grant that the customer approves. It is limited to this receiver and this debit.
    W4  preparing -> awaiting_approval, with the nonces and the quote. After any failure instead:
        -> open.

Approve (flows/session/approve.py; flows/payment/approval.py, instruct.py). Runs when the customer
returns and the callback's hash verifies.

    W5  phase = continuing. Takes a lease, because the interact_ref can be redeemed only once.
    C7  Continue the grant. After a temporary error (no answer, 5xx, busy, or the wallet cannot read
        our keys), the wallet is asked again. This is safe, because no money can move before W6 and
        the wallet refuses an interact_ref that was already redeemed. If the error lasts until the
        request has to end, APPROVAL_KEPT releases the claim. The browser then comes back with the
        same interact_ref and starts again at W5, until three minutes after the first APPROVAL_KEPT.
        If the wallet refuses, or an error occurs after that time, the token is lost: -> open.
        If the quote is about to expire, a new one is created for the same incoming payment.
    W6  phase = paying. Stores the instruction (id and deadline), the access token and the
        quote in use.
        This is the point of no return, so it is durable before the call that moves money.
    C8  Create the outgoing payment. The call is sent once for each W6, and never after its
        deadline. It is never sent again, whatever the answer.
        201: W7.
        Certainly not sent (no connection, or the deadline has passed): -> open.
        The wallet definitely refuses and shows no payment for the quote, and the merchant's
        incoming payment shows no money: -> open.
        Anything else: the session stays in paying, and reconciliation decides. A refusal is never
        definite if it is 408, 409, 425, 429 or 400 "invalid quote" (the answer to a duplicate
        delivery), or if one of the two wallets does not answer.
        If the incoming payment is completed, the fence begins at once.
        In C8, -> open means PAYMENT_REFUSED. The same transaction writes the event PAYMENT_FAILED,
        if an endpoint has requested it.
    W7  -> processing, with the outgoing payment. If a sweep has rescheduled the session meanwhile,
        W7 loses the race, but the 201 must not be lost. So W7 is written again, over the newer
        version, as long as that version is still paying by the same instruction and not closing.

Confirm (flows/session/completion.py, reconcile.py; flows/payment/proof.py).

    C9  Read the merchant's own incoming payment. Only the money received there proves a payment,
        because a payer's wallet is not trusted.
    W8  processing -> completed. The same transaction writes the event that the webhook sends.

Reconcile. The customer's open page and the scheduled sweep check a payment in flight (paying or
processing). They first ask the merchant's wallet, then the customer's wallet, unless the customer's
wallet has timed out. The checks end with one of these:

    received >= least accepted      W8, after W7 if the session is in paying
    a payment exists for the quote  W7
    something, but too little       W7, then PART_ARRIVED, which flags the session for the merchant.
                                    The same transaction writes the event PARTIALLY_PAID, if an
                                    endpoint has requested it. PART_ARRIVED is written as soon as
                                    the callback, a check or the fence reads the money
    nothing, and the wait is over   the fence

    The least accepted is the amount. If the money may have been converted, it is the amount less
    the merchant's tolerance for rounding (money.py). For a small price, one unit may be missing
    once two looks at the customer's wallet, a second apart, show the same sum as sent and no
    failure.
    The wait ends at the first of these moments:
    - 30 s after the quote or the incoming payment expires, whichever is earlier
    - the wallet reports that the payment failed. From one second after W7 on, the callback also
      asks the wallet each second whether it failed
    - the incoming payment is completed with too little, because somebody else has closed it
    - the merchant asks to end the session
    A quote without an expiry is treated as expired 10 minutes after the send. Once a part has
    arrived, the quote's expiry does not end the wait any more, because the rest may come until the
    incoming payment expires.

The fence proves how much has arrived, so that the customer can pay again or the merchant can
decide:

    1. CLOSING_STARTED: write closing_at. From now on W7 is refused, and only money that is shown as
       received matters.
    2. Read the incoming payment. Unless it is closed or paid, complete it at the merchant's wallet
       and read it again, whatever the wallet answers. If the second read gets no answer, the result
       of the first one is used.
    3. CLOSED: once a read shows the incoming payment as completed or expired, write closed_at. If
       its provider never closes it, it is treated as closed a day after the session's expiry.
    4. A read that begins at least FENCE (35 s) later decides, because a packet that was prepared
       before the close may still be fulfilled for 30 s. Money that one read has shown stays proven,
       even if a later read shows less or "not found".
    5. Nothing received: PAYMENT_DISPROVED -> open, without quote, token and incoming payment. The
       same transaction writes the event PAYMENT_FAILED, if an endpoint has requested it.
       Too little received: there is no further check. The merchant either accepts the money as full
       payment (-> completed) or gives the session up (-> expired).

Money from outside (flows/session/unsolicited_payments.py). Anybody who has the address of an
incoming payment can pay it until it is closed. So before a stored incoming payment is used for
another submission, it is read. The customer's open page also reads it once a minute. MONEY_FOUND:
open, preparing, awaiting_approval -> processing, then as above. If a session ends and leaves an
incoming payment open, the sweep takes steps 2 to 4 of the fence. Money that arrives in an expired
or canceled session changes only the session's flag and `received`, and makes the event
LATE_PAYMENT.

Payment attempts (attempts.py). Each submitted wallet has a record, which these same transitions
write: W1 begins it, and the transition that ends the attempt copies the evidence into it.
RETURN_REPORTED stores the browser's report of a decline or a time-out at the wallet. The report is
unsigned, so it changes neither the status nor the payment.

Stock (domain/links.py). A session of a payment link with a stock holds the items that it sells. The
transaction that creates the session takes them from the stock. As soon as a write makes it certain
that nothing was sold (`Session.unsold`), it returns them in the same transaction. That write is one
of three: the end of a session without an incoming payment, the last step of the end of a
session with one, or GIVEN_UP. Every write is conditional on the version, so the items are returned
only once. If money arrived late, they are not returned.

Refunds (domain/refund/transitions.py). REFUND_REQUESTED reserves a part of the money that an ended
session has received. PAID_ELSEWHERE reserves a part because the merchant has noted that they paid
the customer back by other means. REFUND_SETTLED releases the part that was not sent. Each of these
events is written in one transaction with the refund.

Details (flows/session/details.py). DETAILS_GIVEN stores the customer's details, sealed, in one
write. Until a wallet is given, the customer can correct the details, which is another
DETAILS_GIVEN. This event does not change the payment.

Metadata (flows/session/metadata.py). METADATA_CHANGED changes only the merchant's metadata. It is
refused while a session is being prepared and while a payment is in flight, so that it never comes
between the writes of a payment.

Erasure (domain/erasure.py). ERASED removes the customer's wallet from an ended session whose money
is accounted for. It is refused for all other sessions, because a payment may still need the wallet.

A session to which no wallet was ever given (record.py, left_to_clock) ends by the clock alone:
nothing is written, unless its merchant has requested the event about the end
(flows/schedule/expiries.py). A process that reads the session writes EXPIRY_PASSED only while a
write that began in time could still arrive.

Expiry and cancellation are single conditional writes. They are refused while a payment is in
flight, and while a lease in continuing is live. If a lease in preparing or continuing has lapsed,
the process died before money could move, so the sweep sets the session to open or to expired.

A request to end a session whose payment is in flight is refused. From 30 s after the deadline of
the send on, the request also begins the fence. If an ended session has an incoming payment, the
write that ends the session also sets the time at which the incoming payment is checked.

After a lost race, a write is never repeated blindly: the loser reads the session again and decides
again. `writer` distinguishes a write whose answer was lost from a lost race. A process whose lease
has lapsed may still be running. If the session has been written meanwhile, the next write of this
process fails, because its version is old.

The invariants, and how this order was model-checked: docs/reference/design.md.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from checkout.domain.payment import machine
from checkout.domain.payment.attempt import Outcome
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import FENCE, Phase
from checkout.domain.payment.machine import ALWAYS, Change, Condition, Row, row
from checkout.domain.session.attempts import recorded
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.event_types import (
    CANCELED,
    CHARGE_REFUNDED,
    COMPLETED,
    EXPIRED,
    LATE_PAYMENT,
    PARTIALLY_PAID,
    PAYMENT_FAILED,
    PAYMENT_SUCCEEDED,
)

When = Condition[Session]
IN_TIME = When("not expired", lambda s, now: now < s.expires_at, in_time=True)
IDLE_IN_TIME = When(
    "no payment in flight, not expired",
    lambda s, now: s.phase is None and now < s.expires_at,
    in_time=True,
)
OVERDUE = When("`expires_at` passed", lambda s, now: s.overdue(now))
NOT_IN_FLIGHT = When(
    "no payment in flight, not expired",
    lambda s, now: (
        now < s.expires_at
        and s.phase is not Phase.PAYING
        and not (s.phase is Phase.CONTINUING and s.lease_live(now))
    ),
    in_time=True,
)
NOT_PAYING = When("no money instructed", lambda s, now: s.phase is not Phase.PAYING)
CONTINUING = When("approval claimed", lambda s, now: s.phase is Phase.CONTINUING)
CLAIMED = When(
    "approval claimed, lease live",
    lambda s, now: s.phase is Phase.CONTINUING and s.lease_live(now),
)
PAYING = When("intent to pay written", lambda s, now: s.phase is Phase.PAYING)
PAYING_OR_IDLE = When(
    "intent to pay written, or not expired and no approval claimed",
    lambda s, now: s.phase is Phase.PAYING or (s.phase is None and now < s.expires_at),
)
PAYING_NOT_CLOSING = When(
    "intent to pay written, not closing",
    lambda s, now: s.phase is Phase.PAYING and s.closing_at is None,
)
IN_FLIGHT_NOT_CLOSING = When(
    "payment in flight, not closing", lambda s, now: s.payment_in_flight and s.closing_at is None
)
CLOSING = When("closing", lambda s, now: s.payment_in_flight and s.closing_at is not None)
FENCED = When(
    "incoming payment closed for 35 s, nothing received",
    lambda s, now: s.payment_in_flight and s.closed_at is not None and now >= s.closed_at + FENCE,
)
IN_FLIGHT = When("payment in flight", lambda s, now: s.payment_in_flight)
PARTLY_PAID = When("flagged as partly paid", lambda s, now: s.partly_paid)
PARTLY_PAID_FOR_GOOD = When(
    "flagged as partly paid, incoming payment closed and checked for the last time",
    lambda s, now: s.partly_paid and s.check_at is None,
)
UNACCOUNTED = When("not yet certain what was received", lambda s, now: s.check_at is not None)
ACCOUNTED = When("certain what was received", lambda s, now: s.check_at is None)
WITH_MONEY = When(
    "certain what was received, and it is not nothing",
    lambda s, now: s.check_at is None and bool(s.received),
)

# The fields that a step removes. SECRETS never outlive the phase that needs them.
SECRETS: Final = ("grant", "token", "interact_url")
APPROVAL: Final = (
    *SECRETS,
    "quote",
    "phase",
    "lease_until",
    "approve_until",
    "look_at",
    "instruction",
    "check_at",
    "hung_until",
)
FENCE_MARKS: Final = ("closing_at", "closed_at")


_S, _E = Status, Event
_DONE: Final = (
    *SECRETS,
    *("phase", "lease_until", "approve_until", "look_at", "check_at", "hung_until"),
    *("problem", "attention"),
)
_PLACE: Final = ("look_at",)  # the first check removes the time that was planned for it
_FOUND: Final = (*(name for name in APPROVAL if name != "check_at"), "problem")
_DISPROVED: Final = (
    *APPROVAL,
    *FENCE_MARKS,
    "incoming_payment",
    "outgoing_payment",
    "attention",
)

# fmt: off
TRANSITIONS: Final[dict[tuple[Status, Event], Row]] = {
    # from                  event                     to                    when, and what goes
    (_S.OPEN,              _E.WALLET_SUBMITTED):   Row(_S.PREPARING,         IN_TIME, (*APPROVAL, "problem")),
    (_S.AWAITING_APPROVAL, _E.WALLET_SUBMITTED):   Row(_S.PREPARING,         IDLE_IN_TIME, (*APPROVAL, "problem")),
    (_S.PREPARING,         _E.REFERENCE_STORED):   Row(_S.PREPARING,         IN_TIME),
    (_S.PREPARING,         _E.PREPARED):           Row(_S.AWAITING_APPROVAL, IN_TIME, ("lease_until",)),
    (_S.PREPARING,         _E.PREPARATION_FAILED): Row(_S.OPEN,              ALWAYS, APPROVAL),
    (_S.AWAITING_APPROVAL, _E.RETURN_REPORTED):    Row(_S.AWAITING_APPROVAL, IDLE_IN_TIME),
    (_S.AWAITING_APPROVAL, _E.APPROVAL_CLAIMED):   Row(_S.AWAITING_APPROVAL, IDLE_IN_TIME, phase=Phase.CONTINUING),
    (_S.AWAITING_APPROVAL, _E.APPROVAL_KEPT):      Row(_S.AWAITING_APPROVAL, CONTINUING, ("phase", "lease_until")),
    (_S.AWAITING_APPROVAL, _E.APPROVAL_LOST):      Row(_S.OPEN,              NOT_PAYING, APPROVAL),
    (_S.AWAITING_APPROVAL, _E.PAYMENT_INTENDED):   Row(_S.AWAITING_APPROVAL, CLAIMED, ("grant", "interact_url", "lease_until", "approve_until"), phase=Phase.PAYING),
    (_S.AWAITING_APPROVAL, _E.PAYMENT_REFUSED):    Row(_S.OPEN,              PAYING_NOT_CLOSING, APPROVAL, PAYMENT_FAILED),
    (_S.AWAITING_APPROVAL, _E.PAYMENT_CREATED):    Row(_S.PROCESSING,        PAYING, ("phase",)),
    (_S.AWAITING_APPROVAL, _E.CHECKED):            Row(_S.AWAITING_APPROVAL, PAYING_OR_IDLE, _PLACE),
    (_S.AWAITING_APPROVAL, _E.CLOSING_STARTED):    Row(_S.AWAITING_APPROVAL, PAYING_NOT_CLOSING, _PLACE, phase=Phase.PAYING),
    (_S.AWAITING_APPROVAL, _E.CLOSED):             Row(_S.AWAITING_APPROVAL, CLOSING, phase=Phase.PAYING),
    (_S.AWAITING_APPROVAL, _E.PAYMENT_DISPROVED):  Row(_S.OPEN,              FENCED, _DISPROVED, PAYMENT_FAILED),
    (_S.PROCESSING,        _E.CHECKED):            Row(_S.PROCESSING,        IN_FLIGHT, _PLACE),
    (_S.PROCESSING,        _E.PART_ARRIVED):       Row(_S.PROCESSING,        IN_FLIGHT, _PLACE, PARTIALLY_PAID),
    (_S.PROCESSING,        _E.CLOSING_STARTED):    Row(_S.PROCESSING,        IN_FLIGHT_NOT_CLOSING, _PLACE),
    (_S.PROCESSING,        _E.CLOSED):             Row(_S.PROCESSING,        CLOSING),
    (_S.PROCESSING,        _E.PAYMENT_DISPROVED):  Row(_S.OPEN,              FENCED, _DISPROVED, PAYMENT_FAILED),
    (_S.PROCESSING,        _E.RECONCILED):         Row(_S.COMPLETED,         IN_FLIGHT, _DONE, COMPLETED, PAYMENT_SUCCEEDED),
    (_S.PROCESSING,        _E.ACCEPTED_AS_PAID):   Row(_S.COMPLETED,         PARTLY_PAID, _DONE, COMPLETED, PAYMENT_SUCCEEDED, then_check=True),
    (_S.PROCESSING,        _E.GIVEN_UP):           Row(_S.EXPIRED,           PARTLY_PAID_FOR_GOOD, _DONE, EXPIRED),
    (_S.OPEN,              _E.CHECKED):            Row(_S.OPEN,              IN_TIME),
    (_S.OPEN,              _E.MONEY_FOUND):        Row(_S.PROCESSING,        IN_TIME, _FOUND),
    (_S.PREPARING,         _E.MONEY_FOUND):        Row(_S.PROCESSING,        IN_TIME, _FOUND),
    (_S.AWAITING_APPROVAL, _E.MONEY_FOUND):        Row(_S.PROCESSING,        IDLE_IN_TIME, _FOUND),
    (_S.OPEN,              _E.EXPIRY_PASSED):      Row(_S.EXPIRED,           OVERDUE, _DONE, EXPIRED, then_check=True),
    (_S.PREPARING,         _E.EXPIRY_PASSED):      Row(_S.EXPIRED,           OVERDUE, _DONE, EXPIRED, then_check=True),
    (_S.AWAITING_APPROVAL, _E.EXPIRY_PASSED):      Row(_S.EXPIRED,           OVERDUE, _DONE, EXPIRED, then_check=True),
    (_S.OPEN,              _E.EXPIRE_REQUESTED):   Row(_S.EXPIRED,           IN_TIME, _DONE, EXPIRED, then_check=True),
    (_S.AWAITING_APPROVAL, _E.EXPIRE_REQUESTED):   Row(_S.EXPIRED,           NOT_IN_FLIGHT, _DONE, EXPIRED, then_check=True),
    (_S.OPEN,              _E.CANCEL_REQUESTED):   Row(_S.CANCELED,          IN_TIME, _DONE, CANCELED, then_check=True),
    (_S.AWAITING_APPROVAL, _E.CANCEL_REQUESTED):   Row(_S.CANCELED,          NOT_IN_FLIGHT, _DONE, CANCELED, then_check=True),
    (_S.COMPLETED,         _E.CHECKED):            Row(_S.COMPLETED,         UNACCOUNTED),
    (_S.COMPLETED,         _E.CLOSED):             Row(_S.COMPLETED,         UNACCOUNTED),
    (_S.EXPIRED,           _E.CHECKED):            Row(_S.EXPIRED,           UNACCOUNTED),
    (_S.EXPIRED,           _E.CLOSED):             Row(_S.EXPIRED,           UNACCOUNTED),
    (_S.EXPIRED,           _E.LATE_PAYMENT):       Row(_S.EXPIRED,           UNACCOUNTED, (), LATE_PAYMENT),
    (_S.CANCELED,          _E.CHECKED):            Row(_S.CANCELED,          UNACCOUNTED),
    (_S.CANCELED,          _E.CLOSED):             Row(_S.CANCELED,          UNACCOUNTED),
    (_S.CANCELED,          _E.LATE_PAYMENT):       Row(_S.CANCELED,          UNACCOUNTED, (), LATE_PAYMENT),
    (_S.COMPLETED,         _E.REFUND_REQUESTED):   Row(_S.COMPLETED,         WITH_MONEY),
    (_S.EXPIRED,           _E.REFUND_REQUESTED):   Row(_S.EXPIRED,           WITH_MONEY),
    (_S.CANCELED,          _E.REFUND_REQUESTED):   Row(_S.CANCELED,          WITH_MONEY),
    (_S.COMPLETED,         _E.PAID_ELSEWHERE):     Row(_S.COMPLETED,         WITH_MONEY, beside=CHARGE_REFUNDED),
    (_S.EXPIRED,           _E.PAID_ELSEWHERE):     Row(_S.EXPIRED,           WITH_MONEY, beside=CHARGE_REFUNDED),
    (_S.CANCELED,          _E.PAID_ELSEWHERE):     Row(_S.CANCELED,          WITH_MONEY, beside=CHARGE_REFUNDED),
    (_S.COMPLETED,         _E.REFUND_SETTLED):     Row(_S.COMPLETED),
    (_S.EXPIRED,           _E.REFUND_SETTLED):     Row(_S.EXPIRED),
    (_S.CANCELED,          _E.REFUND_SETTLED):     Row(_S.CANCELED),
    (_S.OPEN,              _E.DETAILS_GIVEN):      Row(_S.OPEN,              IN_TIME),
    (_S.OPEN,              _E.METADATA_CHANGED):   Row(_S.OPEN),
    (_S.AWAITING_APPROVAL, _E.METADATA_CHANGED):   Row(_S.AWAITING_APPROVAL, NOT_IN_FLIGHT),
    (_S.COMPLETED,         _E.METADATA_CHANGED):   Row(_S.COMPLETED),
    (_S.EXPIRED,           _E.METADATA_CHANGED):   Row(_S.EXPIRED),
    (_S.CANCELED,          _E.METADATA_CHANGED):   Row(_S.CANCELED),
    (_S.COMPLETED,         _E.ERASED):             Row(_S.COMPLETED,         ACCOUNTED),
    (_S.EXPIRED,           _E.ERASED):             Row(_S.EXPIRED,           ACCOUNTED),
    (_S.CANCELED,          _E.ERASED):             Row(_S.CANCELED,          ACCOUNTED),
}
# fmt: on


def given_back(change: Change[Session]) -> str | None:
    """Return the row of a payment link's stock to which this write returns items, or None."""
    back = change.before.restocked_at is None and change.after.restocked_at is not None
    return change.after.link if back else None


def advance(
    session: Session,
    event: Event,
    *,
    now: datetime,
    writer: str,
    note: str | None = None,
    typed: str | None = None,
    reported: Outcome | None = None,
    **changes: Any,
) -> Change[Session]:
    """Return the change that `event` makes to `session` at `now`. Raise IllegalTransition.

    The other parameters are those of machine.py. `typed` and `reported` are stored in the payment
    attempt that begins or is running. When it becomes certain that nothing was sold, the
    change also returns the items to the payment link's stock.
    """
    found = row(TRANSITIONS, session, event, now)
    if found.then_check and session.incoming_payment is not None:
        changes = {"check_at": now} | changes
    changes["payment_attempts"] = recorded(
        session, event, at=now, typed=typed, reported=reported, note=note, changes=changes
    )
    change = machine.advance(found, session, event, now=now, writer=writer, note=note, **changes)
    after = change.after
    if after.holds_item and after.unsold:
        change = replace(change, after=replace(after, restocked_at=now))
    return change
