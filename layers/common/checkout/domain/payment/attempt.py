"""The record of a payment attempt, one for each wallet that the customer gave.

session/attempts.py creates, completes and reads these records. They are stored inside the session's
own record, so each attempt is written together with the transition that changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from open_payments.models import Quote


class Outcome(StrEnum):
    """The way in which an attempt ended."""

    DECLINED = "declined"
    TIMED_OUT = "timed_out"
    PRICE_CHANGED = "price_changed"
    REFUSED = "refused"  # the customer's wallet refused the payment when it was sent
    FAILED = "failed"
    REPLACED = "replaced"  # by another wallet, or by money from outside the page
    CANCELED = "canceled"  # the merchant ended the session
    PAID = "paid"
    PAID_IN_PART = "paid_in_part"


class EndedBy(StrEnum):
    """The party or cause that ended an attempt."""

    CUSTOMER = "customer"
    CUSTOMER_WALLET = "customer_wallet"
    MERCHANT = "merchant"
    MERCHANT_WALLET = "merchant_wallet"
    CHECKOUT = "checkout"  # this service was interrupted, or has proven that no money arrived
    EXPIRY = "expiry"
    OUTSIDE_PAYMENT = "outside_payment"  # money that was not paid through the checkout page


@dataclass(frozen=True, slots=True)
class PaymentAttempt:
    """One wallet submission and its result.

    `typed` is the text that the customer typed; None after an erasure. While the attempt runs, only
    the fields up to `reported_at` are stored. The other fields are stored with the `outcome`; after
    that, only an erasure changes the attempt. `resolved_at` is when the wallet address was resolved
    and the incoming payment existed. `reported` is DECLINED or TIMED_OUT, an unsigned report by the
    customer's browser. `problem` is the name of a Problem; `detail` is a text about the problem,
    from the provider or from this service. `received` is in the merchant wallet's scale, or None if
    it is not known.
    """

    number: int
    submitted_at: datetime
    typed: str | None = None
    resolved_at: datetime | None = None
    reported: Outcome | None = None
    reported_at: datetime | None = None
    outcome: Outcome | None = None
    ended_by: EndedBy | None = None
    ended_at: datetime | None = None
    problem: str | None = None
    detail: str | None = None
    wallet: str | None = None
    incoming_payment: str | None = None
    quote: Quote | None = None
    outgoing_payment: str | None = None
    prepared_at: datetime | None = None
    approved_at: datetime | None = None
    sent_at: datetime | None = None
    accepted_at: datetime | None = None
    received: int | None = None

    @property
    def characters(self) -> int:
        """Return the total length of the attempt's texts, most of which wallet providers choose."""
        quote = self.quote.id if self.quote else None
        texts = (self.typed, self.detail, self.wallet, self.incoming_payment, quote)
        return sum(len(text) for text in (*texts, self.outgoing_payment) if text)
