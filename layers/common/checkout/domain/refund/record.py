"""The record of a refund, whose transitions are in `transitions.py`.

`amount` is in minor units of the session's `currency`. Times are aware UTC datetimes. `grant` and
`token` are sealed (ciphertext).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from checkout.domain.payment.in_flight import Attention, IncomingPaymentRef, Instruction
from checkout.domain.payment.machine import Record
from open_payments.models import Amount, Quote, WalletAddress

# A refund that nobody approves is canceled after this time.
APPROVAL_AWAITED: Final = timedelta(days=30)
# If a refund's payment still has no result this long after its quote's end, the shop is notified.
UNDECIDED_AFTER: Final = timedelta(hours=1)
# If wallets prevent a payment from the refund budget (payment/mandate.py), the payment is tried
# again after these times. After the last try, the refund waits for an approval.
AGAIN_AFTER: Final = tuple(timedelta(minutes=each) for each in (1, 5, 15, 60, 240, 720, 1440))
# The most characters of a merchant's text about how a customer was paid back by other means.
ELSEWHERE_MAX: Final = 200


class RefundStatus(StrEnum):
    """The states of a refund. The API shows the first two as `pending`."""

    NEEDS_APPROVAL = (
        "needs_approval"  # nothing was instructed, because the merchant's wallet has to allow it
    )
    SENDING = "sending"  # the payment may have been sent
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    PAID_ELSEWHERE = "paid_elsewhere"  # only a note by the merchant; no wallet was called


class RefundEvent(StrEnum):
    """The events that can happen to a refund."""

    REQUESTED = "requested"
    NOTED = "noted"
    APPROVAL_ASKED = "approval_asked"
    APPROVAL_CLAIMED = "approval_claimed"
    APPROVAL_KEPT = "approval_kept"
    APPROVAL_LOST = "approval_lost"
    CLAIM_OFFERED = "claim_offered"
    CLAIMED = "claimed"
    BUDGET_CHOSEN = "budget_chosen"
    BUDGET_WAITS = "budget_waits"
    BUDGET_PASSED = "budget_passed"
    BUDGET_INTENDED = "budget_intended"
    PAYMENT_INTENDED = "payment_intended"
    PAYMENT_CREATED = "payment_created"
    CHECKED = "checked"
    ROTATION_STARTED = "rotation_started"
    TOKEN_RENEWED = "token_renewed"
    TOKEN_LOST = "token_lost"
    NOTHING_SENT = "nothing_sent"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCEL_REQUESTED = "cancel_requested"
    EXPIRY_PASSED = "expiry_passed"
    HELD = "held"
    METADATA_CHANGED = "metadata_changed"
    ERASED = "erased"


class AmountMode(StrEnum):
    """The side whose amount is fixed. The other side's amount depends on fees and the rate."""

    AS_PAID = "as_paid"  # the customer gets back what they paid, in their own currency
    AT_COST = "at_cost"  # the refund costs the merchant exactly the amount


class Reason(StrEnum):
    """The merchant's reason, in Stripe's words."""

    DUPLICATE = "duplicate"
    FRAUDULENT = "fraudulent"
    REQUESTED_BY_CUSTOMER = "requested_by_customer"


class RefundProblem(StrEnum):
    """The reason why the last approval or payment failed, or why the refund needs an approval."""

    CUSTOMER_WALLET_UNREACHABLE = "customer_wallet_unreachable"
    CUSTOMER_WALLET_REFUSED = "customer_wallet_refused"
    MERCHANT_WALLET_ERROR = "merchant_wallet_error"
    APPROVAL_UNUSABLE = "approval_unusable"  # the approval was declined, lost, or came too late
    PRICE_CHANGED = "price_changed"
    OVER_BUDGET = "over_budget"  # the refund costs more than is left of the month's budget
    TOO_DEAR = "too_dear"  # the cost exceeds the budget's margin, so a person has to approve it
    NO_BUDGET = "no_budget"  # the budget was ended, or has to be approved again
    OTHER_WALLET = "other_wallet"  # the budget pays only to the wallet that paid
    NOT_SENT = "not_sent"  # the merchant's wallet shows that nothing was or will be sent
    SENT_IN_PART = "sent_in_part"
    NOT_APPROVED = "not_approved"  # nobody approved the refund in time


# The reasons why a refund is not paid from the budget and needs its own approval.
NOT_BY_BUDGET: Final = (
    RefundProblem.OVER_BUDGET,
    RefundProblem.TOO_DEAR,
    RefundProblem.NO_BUDGET,
    RefundProblem.OTHER_WALLET,
)


@dataclass(frozen=True, slots=True)
class RefundRef:
    """A refund as its session stores it, with the amount that is reserved for the refund.

    `amount` is in minor units of the session's currency. When the refund ends, `amount` is reduced
    to what was sent. Exception: if the refund only notes that the customer was paid back by other
    means, `amount` stays the same.
    `give` is the amount in the payer's asset, or 0 if the customer's side is not fixed.
    """

    id: str
    amount: int
    give: int = 0


@dataclass(frozen=True, kw_only=True)
class Refund(Record):
    """Money that goes back from the merchant's wallet to a customer's.

    `give` is the amount for the customer's wallet if `mode` is AS_PAID, otherwise None. `cost` is
    `amount` in the scale of the merchant's wallet; if `mode` is AT_COST, exactly `cost` is debited.
    `wallet` is the id of the customer's wallet address, or "" after an erasure. `by` is the label
    of the requesting actor, and `asked_by` is the actor's id (people.counted_as).

    Five fields belong to the last requested approval: `payer`, the merchant's wallet, whose server
    shows what was sent; `customer`, the customer's wallet as it was read; `incoming_payment`, at
    that wallet; `quote`, the price; and `grant`. `approve_until` is when that approval ends.
    `identity` is the number of the merchant's identity that requested the approval
    (Merchant.as_of); None means the first. `token` is used to read the payment at the merchant's
    wallet; `rotating` shows that the token may have been replaced. `failed_at` is when the
    merchant's wallet first reported the payment as failed.

    `budget_at` is when the refund will be paid from the refund budget (payment/mandate.py), without
    an approval of its own. `budget_tries` is how often wallets have prevented such a payment. If
    the requesting actor has limits, such a payment can cost at most `budget_most` units of the
    merchant's wallet. If it costs more than the amount, the difference is added to the actor's sum
    of the day. This sum has the id `allowance`, and can be at most `allowance_most` minor units. A
    payment from the budget adds `counted` units of the merchant's wallet to the budget's month that
    began at `period`. `by_budget` is set if the payment is read with the budget's token.

    `sent` is the part of `amount` that was sent. `confirmed` is 1 if the customer's wallet has
    shown that all of `amount` arrived. `spent` is what the merchant's wallet paid for the part that
    was sent. `spent` is written when the refund ends, and stays None if nothing was sent.

    If the refund is a note that the customer was paid back by other means, `elsewhere` is the
    merchant's text about these means; otherwise it is None. Such a note sends nothing. Its `wallet`
    is the wallet that paid for the purchase, or "" if that is unknown.

    `claim` is the hash of the token in the link by which the customer can name another wallet.
    `claim_open` is 1 until the customer has named one. `claimed` is 1 if the customer has named
    `wallet`.

    `held_at` is when the refund was held after a restore of the database tables to an earlier
    moment, because the refund may have been paid after that moment; None if it was not held.
    `held_at` stays set until the refund ends.

    `later_json` is what a later release has stored with the refund, unchanged.
    """

    status: RefundStatus
    created_at: datetime
    session: str
    part: int = 0
    amount: int
    currency: str
    mode: AmountMode
    give: Amount | None = None
    cost: Amount
    wallet: str
    reason: Reason | None = None
    elsewhere: str | None = field(default=None, repr=False)
    metadata_json: str = "{}"
    by: str = ""
    asked_by: str = ""
    payer: WalletAddress | None = None
    customer: WalletAddress | None = None
    incoming_payment: IncomingPaymentRef | None = None
    quote: Quote | None = None
    approve_until: datetime | None = None
    interact_url: str | None = field(default=None, repr=False)
    grant: str | None = field(default=None, repr=False)
    claim: str | None = field(default=None, repr=False)
    claim_open: int | None = None  # 1 until the customer has named a wallet by the link
    claimed: int | None = None  # 1 if the customer named the wallet
    budget_at: datetime | None = None
    budget_tries: int = 0
    budget_most: int | None = None
    allowance: str | None = None
    allowance_most: int | None = None
    by_budget: int | None = None  # 1 while the budget's token reads the payment
    period: datetime | None = None
    counted: int | None = None
    lease_until: datetime | None = None
    token: str | None = field(default=None, repr=False)
    rotating: int | None = None  # 1 while a rotation may be under way
    instruction: Instruction | None = None
    outgoing_payment: str | None = None
    payments: int = 0
    failed_at: datetime | None = None
    check_at: datetime | None = None
    checks: int = 0
    problem: RefundProblem | None = None
    attention: Attention | None = None
    sent: int = 0
    confirmed: int = 0  # 1 if the customer's wallet has shown that all arrived
    spent: Amount | None = None
    ended_at: datetime | None = None
    identity: int | None = None
    held_at: datetime | None = None
    later_json: str | None = None

    @property
    def metadata(self) -> Mapping[str, Any]:
        result: dict[str, Any] = json.loads(self.metadata_json)
        return result

    @property
    def claim_by(self) -> str | None:
        """Return who made the link that the customer has used to name the wallet, if known."""
        offered: str | None = None
        named: str | None = None
        for each in self.history:
            if each.event == RefundEvent.CLAIM_OFFERED:
                offered = each.note
            elif each.event == RefundEvent.CLAIMED:
                named = offered
        return named.removeprefix("by ") if self.claimed and named else None

    @property
    def terminal(self) -> bool:
        return self.status not in (RefundStatus.NEEDS_APPROVAL, RefundStatus.SENDING)

    @property
    def noted(self) -> bool:
        """Whether this record only notes that the customer was paid back elsewhere."""
        return self.status is RefundStatus.PAID_ELSEWHERE

    @property
    def fixed(self) -> tuple[Amount | None, Amount | None]:
        """Return (amount that has to arrive, debit), with None for the one set by the quote."""
        return self.give, None if self.give is not None else self.cost

    @property
    def payment_in_flight(self) -> bool:
        """Whether money may have been sent, so that the refund cannot be canceled."""
        return self.status is RefundStatus.SENDING

    @property
    def approval_waits(self) -> bool:
        """Whether the merchant has to approve the payment, or the reading of its result."""
        if self.payment_in_flight:
            return self.token is None and not self.by_budget
        return self.status is RefundStatus.NEEDS_APPROVAL and self.budget_at is None

    @property
    def ends_at(self) -> datetime:
        """Return when the refund is canceled and its links end, if nobody approves it."""
        return self.created_at + APPROVAL_AWAITED

    @property
    def quote_ends_at(self) -> datetime:
        """Return the time after which the merchant's wallet starts no payment of this quote."""
        assert self.quote is not None
        assert self.instruction is not None
        # A quote without an expiry is treated as valid for 10 minutes (flows/payment/schedule.py).
        return self.quote.expires_at or self.instruction.deadline + timedelta(minutes=10)

    @property
    def needed_at(self) -> datetime | None:
        """Return when the scheduled job must look at the refund; None if nothing is left to do."""
        if self.terminal:
            return None
        if self.payment_in_flight:
            return self.check_at
        return self.ends_at if self.budget_at is None else min(self.budget_at, self.ends_at)

    def lease_live(self, now: datetime) -> bool:
        """Return whether a process is redeeming the approval right now."""
        return self.lease_until is not None and now < self.lease_until
