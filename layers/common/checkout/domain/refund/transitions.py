"""The state machine of a refund, and the order of its writes, R1 to R3.

A refund is not a reversed sale. In a sale the payer's wallet is not trusted, and the merchant's own
incoming payment shows what has arrived. In a refund the receiver is not trusted, because a
customer's wallet could report "nothing arrived" for ever, and be paid again. So the outgoing
payment at the merchant's own wallet is the evidence. The customer's wallet is believed only against
its own interest, that is, if it reports that money has arrived.

Request (flows/refund/request.py). No wallet is called.

    R1  One transaction writes the stored answer to the idempotency key, the refund (new), and the
        session (version), which holds the refund's amount from now on. R1 is refused unless the
        session has ended, it is certain how much the session received, and enough of that is left.

Or note that the customer was paid back elsewhere (flows/refund/request.py). No wallet is ever
called.

    R1  The same transaction on the same conditions writes a refund in the final state
        paid_elsewhere. So the sum of refunds and notes never exceeds the amount received. No row
        leads from paid_elsewhere to a payment. CANCEL_REQUESTED removes a mistaken note; in the
        same transaction, the session releases the note's amount.

Approve (flows/refund/approve.py). No money can move before R2.

    C1  Read the customer's wallet address.   C2  Create the incoming payment there.
    C3  Create the quote at the merchant's wallet.
    C4  Request the grant that the merchant approves in their own wallet. The grant is limited to
        this receiver and this debit. APPROVAL_ASKED stores the results of C1 to C4. An incoming
        payment that is never paid ends by itself.
    The merchant returns, and the callback's hash verifies.
    APPROVAL_CLAIMED takes a lease, because the interact_ref can be redeemed only once.
    C5  Continue the grant. After a temporary error of the wallet, as in a sale (transitions.py,
        C7), APPROVAL_KEPT releases the claim, and the approval ends three minutes later at the
        latest. If the wallet refuses, or an error occurs after that time, no money can move:
        APPROVAL_LOST.
    R2  needs_approval -> sending. Stores the instruction, the quote in use and the token. It is
        durable before the call that moves money, and conditional on the version and the lease.
    C6  Create the outgoing payment. The call is sent once for each R2, and never after its
        deadline. Its answer is used in two cases only: the call was certainly not sent, or a 201
        has the payment's URL. A refusal decides nothing.

Or let the customer name another wallet (flows/refund/alternative_wallet.py). No wallet is paid.

    CLAIM_OFFERED makes a link, while nothing is instructed and no approval is being redeemed. So
    either nothing was instructed for the old wallet, or R3 has proven that nothing was sent to it.
    CLAIMED stores the wallet that the customer names by the link; this is possible once. It deletes
    a requested approval, because that approval pays the old wallet. It also deletes a plan to pay
    from the budget, so that the merchant sees the customer's new wallet before approving the
    refund.

Or pay from the budget (flows/refund/budget.py), planned by BUDGET_CHOSEN or by the request.

    C1 to C3 as above, unless a person has seen and confirmed the price, which is then used. If
    nobody has, the refund may cost its amount plus the margin that the owner has approved with the
    budget, within the limits of the requesting actor. The mandate's token must be valid for the
    next minute; otherwise it is rotated first. Until R2 the merchant can also approve the refund in
    their own wallet, or cancel it; the first write decides.
    R2  BUDGET_INTENDED -> sending. The same transaction writes SPENT at the mandate (version),
        which holds the debit from now on. If the actor has limits, the transaction also adds the
        part of the debit beyond the amount to the actor's sum of the day. Then C6, once.
    A refund that the budget cannot pay waits for an approval again: BUDGET_PASSED.

Decide (flows/refund/reconcile.py, domain/refund/verdict.py).

    R3  The merchant's own wallet is read by the quote's id and by list. The customer's incoming
        payment is read, too. The result is written in one transaction with the session, which keeps
        only what was sent, and with the events. A success also makes `charge.refunded`, for
        endpoints that request it in Stripe's form.
            the customer's wallet shows the amount           succeeded, at once
            failed, or the waiting is over, and nothing sent needs_approval again; the mandate gets
                                                             its debit back in this transaction
            failed, or the waiting is over, and a part sent  failed; the part is kept
            the waiting is over and all was sent             succeeded, "arrival not confirmed"
        If a part was sent, the greater of the two wallets' amounts is used. "Not found" is believed
        30 s after the quote's end, "failed" 35 s after it was first seen, and anything else ten
        minutes after the quote's end. If a wallet does not answer, nothing is decided or released.
        The same applies if a wallet reports that another client made the payment, which happens
        when the merchant's identity has changed. "Not found" from the customer's wallet is treated
        as no answer, because that wallet may have received more than the merchant's wallet shows.
        The same write stores what the merchant's wallet has paid.
    M   When the token that reads the payment has ended, it is renewed: ROTATION_STARTED is written
        before the call, TOKEN_RENEWED after it. Only "no such token" leads to TOKEN_LOST. Then the
        merchant approves once more, and the new token can only read. A payment from the budget is
        read with the mandate's token, which only the mandate's own rotation renews.

Hold (flows/refund/hold.py), after a restore of the tables to an earlier moment. No wallet is called.

    H   HELD marks each refund that has not ended: the tables lack what was written after that
        moment, so the refund may have been paid by a payment that they do not show. In
        needs_approval it also deletes a requested approval and a plan to pay from the budget. So
        from now on the refund is paid only if a person approves it again, and the dashboard shows
        this person why. In sending, R3 decides about the payment that the tables show; if nothing
        of it was sent, the refund waits, and is still marked.

METADATA_CHANGED changes only the merchant's metadata. It is refused while an approval is being
redeemed and while the payment is under way.

A refund is canceled only before R2. After 30 days without an approval the sweep cancels it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from checkout.domain.payment import machine
from checkout.domain.payment.machine import ALWAYS, Change, Condition, Row, row
from checkout.domain.refund.record import APPROVAL_AWAITED, Refund, RefundEvent, RefundStatus
from checkout.domain.webhooks.event_types import CHARGE_REFUNDED, REFUND_FAILED, REFUND_UPDATED

When = Condition[Refund]
IDLE = When("no approval is being redeemed", lambda r, now: not r.lease_live(now))
ASKED = When(
    "an approval waits, and is not being redeemed",
    lambda r, now: (
        r.grant is not None
        and not r.lease_live(now)
        and r.approve_until is not None
        and now < r.approve_until
    ),
)
WAITS = When(
    "it waits for the merchant, and no approval is being redeemed",
    lambda r, now: r.approval_waits and not r.lease_live(now) and now < r.ends_at,
)
OFFERED = When(
    "a link is open, and no approval is being redeemed",
    lambda r, now: bool(r.claim_open) and not r.lease_live(now) and now < r.ends_at,
)
NOT_CLAIMED = When(
    "the customer named no other wallet, and no approval is being redeemed",
    lambda r, now: not r.claimed and not r.lease_live(now),
)
PLANNED = When("the budget is to pay it", lambda r, now: r.budget_at is not None)
REDEEMED = When("an approval was claimed", lambda r, now: r.lease_until is not None)
CLAIMED = When("approval claimed, lease live", lambda r, now: r.lease_live(now))
TOKENLESS = When("the token is lost", lambda r, now: r.approval_waits)
TOKENLESS_ASKED = When(
    "the token is lost, and an approval waits",
    lambda r, now: r.approval_waits and ASKED.holds(r, now),
)
UNAPPROVED = When(
    "not approved for 30 days, and not being redeemed",
    lambda r, now: now >= r.created_at + APPROVAL_AWAITED and not r.lease_live(now),
)
WITH_TOKEN = When("it has a token", lambda r, now: r.token is not None)
READ = When("a token reads it", lambda r, now: r.token is not None or bool(r.by_budget))

APPROVAL: Final = ("grant", "interact_url", "lease_until", "approve_until")
_ATTEMPT: Final = (
    *APPROVAL,
    *("payer", "customer", "incoming_payment", "quote", "token", "rotating", "instruction"),
    *("outgoing_payment", "failed_at", "check_at", "attention"),
    *("budget_at", "by_budget", "period", "counted"),
)
_ENDED: Final = (*APPROVAL, "token", "rotating", "check_at", "attention", "budget_at", "by_budget")

_S, _E = RefundStatus, RefundEvent
# fmt: off
REFUND_TRANSITIONS: Final[dict[tuple[RefundStatus, RefundEvent], Row]] = {
    # from               event                     to                 when, and what goes
    (_S.NEEDS_APPROVAL, _E.APPROVAL_ASKED):   Row(_S.NEEDS_APPROVAL, IDLE, ("lease_until", "budget_at", "problem")),
    (_S.NEEDS_APPROVAL, _E.APPROVAL_CLAIMED): Row(_S.NEEDS_APPROVAL, ASKED, ("interact_url",)),
    (_S.NEEDS_APPROVAL, _E.APPROVAL_KEPT):    Row(_S.NEEDS_APPROVAL, REDEEMED, ("lease_until",)),
    (_S.NEEDS_APPROVAL, _E.APPROVAL_LOST):    Row(_S.NEEDS_APPROVAL, ALWAYS, _ATTEMPT),
    (_S.NEEDS_APPROVAL, _E.CLAIM_OFFERED):    Row(_S.NEEDS_APPROVAL, WAITS),
    (_S.NEEDS_APPROVAL, _E.CLAIMED):          Row(_S.NEEDS_APPROVAL, OFFERED, (*_ATTEMPT, "claim_open", "problem"), REFUND_UPDATED),
    (_S.NEEDS_APPROVAL, _E.BUDGET_CHOSEN):    Row(_S.NEEDS_APPROVAL, NOT_CLAIMED, (*APPROVAL, "problem")),
    (_S.NEEDS_APPROVAL, _E.BUDGET_WAITS):     Row(_S.NEEDS_APPROVAL, PLANNED, quiet=True),
    (_S.NEEDS_APPROVAL, _E.BUDGET_PASSED):    Row(_S.NEEDS_APPROVAL, PLANNED, ("budget_at",), REFUND_UPDATED),
    (_S.NEEDS_APPROVAL, _E.BUDGET_INTENDED):  Row(_S.SENDING,        PLANNED, ("budget_at", "problem")),
    (_S.NEEDS_APPROVAL, _E.PAYMENT_INTENDED): Row(_S.SENDING,        CLAIMED, (*APPROVAL, "problem")),
    (_S.NEEDS_APPROVAL, _E.CANCEL_REQUESTED): Row(_S.CANCELED,       IDLE, _ATTEMPT, REFUND_UPDATED),
    (_S.NEEDS_APPROVAL, _E.EXPIRY_PASSED):    Row(_S.CANCELED,       UNAPPROVED, _ATTEMPT, REFUND_UPDATED),
    (_S.SENDING,        _E.PAYMENT_CREATED):  Row(_S.SENDING),
    (_S.SENDING,        _E.CHECKED):          Row(_S.SENDING),
    (_S.SENDING,        _E.ROTATION_STARTED): Row(_S.SENDING,        WITH_TOKEN),
    (_S.SENDING,        _E.TOKEN_RENEWED):    Row(_S.SENDING,        ALWAYS, (*APPROVAL, "rotating")),
    (_S.SENDING,        _E.TOKEN_LOST):       Row(_S.SENDING,        READ, ("token", "rotating", "by_budget")),
    (_S.SENDING,        _E.APPROVAL_ASKED):   Row(_S.SENDING,        TOKENLESS, ("lease_until",)),
    (_S.SENDING,        _E.APPROVAL_CLAIMED): Row(_S.SENDING,        TOKENLESS_ASKED, ("interact_url",)),
    (_S.SENDING,        _E.APPROVAL_KEPT):    Row(_S.SENDING,        REDEEMED, ("lease_until",)),
    (_S.SENDING,        _E.APPROVAL_LOST):    Row(_S.SENDING,        ALWAYS, APPROVAL),
    (_S.SENDING,        _E.NOTHING_SENT):     Row(_S.NEEDS_APPROVAL, ALWAYS, _ATTEMPT, REFUND_UPDATED),
    (_S.SENDING,        _E.SUCCEEDED):        Row(_S.SUCCEEDED,      ALWAYS, (*_ENDED, "problem"), REFUND_UPDATED, CHARGE_REFUNDED),
    (_S.SENDING,        _E.FAILED):           Row(_S.FAILED,         ALWAYS, _ENDED, REFUND_FAILED),
    (_S.PAID_ELSEWHERE, _E.CANCEL_REQUESTED): Row(_S.CANCELED,       ALWAYS, (), REFUND_UPDATED),
    (_S.NEEDS_APPROVAL, _E.HELD):             Row(_S.NEEDS_APPROVAL, IDLE, (*_ATTEMPT, "problem"), REFUND_UPDATED),
    (_S.SENDING,        _E.HELD):             Row(_S.SENDING),
    (_S.NEEDS_APPROVAL, _E.METADATA_CHANGED): Row(_S.NEEDS_APPROVAL, IDLE),
    (_S.SUCCEEDED,      _E.METADATA_CHANGED): Row(_S.SUCCEEDED),
    (_S.FAILED,         _E.METADATA_CHANGED): Row(_S.FAILED),
    (_S.CANCELED,       _E.METADATA_CHANGED): Row(_S.CANCELED),
    (_S.PAID_ELSEWHERE, _E.METADATA_CHANGED): Row(_S.PAID_ELSEWHERE),
    (_S.SUCCEEDED,      _E.ERASED):           Row(_S.SUCCEEDED),
    (_S.FAILED,         _E.ERASED):           Row(_S.FAILED),
    (_S.CANCELED,       _E.ERASED):           Row(_S.CANCELED),
    (_S.PAID_ELSEWHERE, _E.ERASED):           Row(_S.PAID_ELSEWHERE),
}
# fmt: on


def advance(
    refund: Refund,
    event: RefundEvent,
    *,
    now: datetime,
    writer: str,
    note: str | None = None,
    **changes: Any,
) -> Change[Refund]:
    """Return the change that `event` makes to `refund` at `now`. Raise IllegalTransition."""
    found = row(REFUND_TRANSITIONS, refund, event, now)
    if found.to in (_S.SUCCEEDED, _S.FAILED, _S.CANCELED) and not refund.terminal:
        changes = {"ended_at": now} | changes
    return machine.advance(found, refund, event, now=now, writer=writer, note=note, **changes)
