"""The record of a refund, whose transitions are in `transitions.py`.

`amount` is in minor units of the session's `currency`, times are aware UTC datetimes. `grant` and
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

# A refund without an approval is canceled after this time.
APPROVAL_AWAITED: Final = timedelta(days=30)
# The shop is notified of a refund whose payment shows nothing this long after its quote's end.
UNDECIDED_AFTER: Final = timedelta(hours=1)
# A refund that fails at wallets is tried from the budget again after these times, then it waits
# for an approval.
AGAIN_AFTER: Final = tuple(timedelta(minutes=each) for each in (1, 5, 15, 60, 240, 720, 1440))
# The merchant's text on how they have paid a customer back by other means, in characters.
ELSEWHERE_MAX: Final = 200


class RefundStatus(StrEnum):
    """The states of a refund. The API shows the first two as `pending`."""

    NEEDS_APPROVAL = (
        "needs_approval"  # nothing was instructed: the merchant's wallet has to allow it
    )
    SENDING = "sending"  # the payment may have been sent
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    PAID_ELSEWHERE = "paid_elsewhere"  # a note by the merchant: no wallet was asked


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
    METADATA_CHANGED = "metadata_changed"
    ERASED = "erased"


class AmountMode(StrEnum):
    """The side whose amount is fixed; the other side's amount depends on fees and the rate."""

    AS_PAID = "as_paid"  # the customer gets back what they paid, in their own currency
    AT_COST = "at_cost"  # it costs the merchant exactly the amount


class Reason(StrEnum):
    """The merchant's reason, in Stripe's words."""

    DUPLICATE = "duplicate"
    FRAUDULENT = "fraudulent"
    REQUESTED_BY_CUSTOMER = "requested_by_customer"


class RefundProblem(StrEnum):
    """The reason why the last approval or payment came to nothing."""

    CUSTOMER_WALLET_UNREACHABLE = "customer_wallet_unreachable"
    CUSTOMER_WALLET_REFUSED = "customer_wallet_refused"
    MERCHANT_WALLET_ERROR = "merchant_wallet_error"
    APPROVAL_UNUSABLE = "approval_unusable"  # it was declined, lost, or came too late
    PRICE_CHANGED = "price_changed"
    OVER_BUDGET = "over_budget"  # the month's budget has less left than it costs
    TOO_DEAR = "too_dear"  # it costs more than the budget's margin: a person has to approve it
    NO_BUDGET = "no_budget"  # the budget was ended, or has to be approved again
    OTHER_WALLET = "other_wallet"  # the budget pays only the wallet that paid
    NOT_SENT = "not_sent"  # the merchant's wallet shows that nothing was or will be sent
    SENT_IN_PART = "sent_in_part"
    NOT_APPROVED = "not_approved"  # nobody approved it in time


# The reasons why the budget does not pay a refund, which then needs its own approval.
NOT_BY_BUDGET: Final = (
    RefundProblem.OVER_BUDGET,
    RefundProblem.TOO_DEAR,
    RefundProblem.NO_BUDGET,
    RefundProblem.OTHER_WALLET,
)


@dataclass(frozen=True, slots=True)
class RefundRef:
    """A refund in its session: the amount that it holds, and the amount in the payer's asset.

    `amount` is in minor units of the session's currency. It is reduced to the sent amount when the
    refund ends; for a note that the customer was paid back elsewhere it stays. `give` is 0 if the
    customer's side is not fixed.
    """

    id: str
    amount: int
    give: int = 0


@dataclass(frozen=True, kw_only=True)
class Refund(Record):
    """Money that goes back from the merchant's wallet to a customer's.

    `give` is the amount for the customer's wallet if `mode` is AS_PAID, otherwise None; `cost` is
    `amount` in the merchant's wallet's scale, which AT_COST debits. `wallet` is the id of the
    customer's wallet address, "" once it is erased. `by` is the label of the requesting actor, and
    `asked_by` the actor's id (people.counted_as).

    `payer`, `customer`, `incoming_payment`, `quote` and `grant` belong to the last requested
    approval: the merchant's wallet, whose server decides what was sent, the customer's wallet as it
    was read, its incoming payment, and the price. `approve_until` is when that approval ends.
    `identity` is the number of the merchant's identity that requested it (Merchant.as_of); None is
    the first. `token` reads the payment at the merchant's wallet; `rotating` shows that it may have
    been replaced. `failed_at` is when that wallet first reported the payment as failed. `budget_at`
    is when the budget is to pay it without an approval, and `budget_tries` how often wallets have
    prevented that. If the requesting actor has limits, it may cost `budget_most` units of the
    merchant's wallet then, and its cost beyond its amount is counted in the `allowance` of the day,
    up to `allowance_most` minor units. A payment from the budget counts `counted` units of the
    merchant's wallet in the budget's month that began at `period`; with `by_budget` the budget's
    token reads it. `sent` is the part of `amount` that was sent; `confirmed` is 1 if the customer's
    wallet has shown all of it. `spent` is what the merchant's wallet paid for that, written with
    the end; None if nothing was sent.

    `elsewhere` is the merchant's text on how they have paid the customer back by other means; None
    for all other refunds. Such a note sends nothing; its `wallet` is the wallet that paid, "" if
    unknown.

    `claim` is the hash of the link by which the customer can name another wallet; `claim_open` is 1
    until then. `claimed` is 1 if the customer has named `wallet`.

    `later_json` is what a later release has stored with it, unchanged.
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
    confirmed: int = 0  # 1 if the customer's wallet has shown all of it
    spent: Amount | None = None
    ended_at: datetime | None = None
    identity: int | None = None
    later_json: str | None = None

    @property
    def metadata(self) -> Mapping[str, Any]:
        result: dict[str, Any] = json.loads(self.metadata_json)
        return result

    @property
    def claim_by(self) -> str | None:
        """Return who made the link by which the customer has named the wallet, if known."""
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
        """Whether it only notes that the customer was paid back elsewhere."""
        return self.status is RefundStatus.PAID_ELSEWHERE

    @property
    def fixed(self) -> tuple[Amount | None, Amount | None]:
        """Return the side that its quote fixes: the amount to arrive, or the debit."""
        return self.give, None if self.give is not None else self.cost

    @property
    def payment_in_flight(self) -> bool:
        """Whether money may have been sent: then it cannot be canceled."""
        return self.status is RefundStatus.SENDING

    @property
    def approval_waits(self) -> bool:
        """Whether the merchant has to approve: the payment, or that its result is read."""
        if self.payment_in_flight:
            return self.token is None and not self.by_budget
        return self.status is RefundStatus.NEEDS_APPROVAL and self.budget_at is None

    @property
    def ends_at(self) -> datetime:
        """Return when a refund without an approval is canceled. Its links also end then."""
        return self.created_at + APPROVAL_AWAITED

    @property
    def quote_ends_at(self) -> datetime:
        """Return when the merchant's wallet begins no payment of this quote any more."""
        assert self.quote is not None
        assert self.instruction is not None
        # A quote without an expiry counts for ten minutes (flows/payment/schedule.py).
        return self.quote.expires_at or self.instruction.deadline + timedelta(minutes=10)

    @property
    def needed_at(self) -> datetime | None:
        """Return when the sweep must look at it at the latest; None if nothing is left to do."""
        if self.terminal:
            return None
        if self.payment_in_flight:
            return self.check_at
        return self.ends_at if self.budget_at is None else min(self.budget_at, self.ends_at)

    def lease_live(self, now: datetime) -> bool:
        """Return whether a process is redeeming the approval right now."""
        return self.lease_until is not None and now < self.lease_until
