"""A payment in flight: the fields of every record that the payment engine moves, and its times."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from checkout.domain.payment.machine import Record
from open_payments.models import Amount, Quote, WalletAddress

# A packet prepared before the incoming payment was closed may still be fulfilled for 30 s
# (transitions.py, the fence).
FENCE: Final = timedelta(seconds=35)
# The incoming payment outlives its record, so that a payment approved in the last second still
# arrives (C3, domain/session/transitions.py).
INCOMING_PAYMENT_GRACE: Final = timedelta(minutes=15)
# An incoming payment counts as closed this long after its record expires, even if its provider
# ignores its expiry and its closing.
NEVER_CLOSED_AFTER: Final = timedelta(hours=24)
# A payment without a result is in doubt this long after it was sent. Honest wallets answer sooner.
IN_DOUBT_AFTER: Final = timedelta(seconds=30)


class Phase(StrEnum):
    """The step of an awaiting session after the customer's return (W5, W6: transitions.py)."""

    CONTINUING = "continuing"  # the interact_ref is being redeemed; no money can move yet
    PAYING = "paying"  # the instruction to pay may have been sent


class Problem(StrEnum):
    """The reason why a session is open again, for the customer and the merchant."""

    WALLET_UNREACHABLE = "wallet_unreachable"
    WALLET_INVALID = "wallet_invalid"
    WALLET_UNAVAILABLE = "wallet_unavailable"
    AMOUNT_TOO_SMALL_FOR_WALLET = "amount_too_small_for_wallet"
    MERCHANT_WALLET_ERROR = "merchant_wallet_error"
    PREPARATION_INTERRUPTED = "preparation_interrupted"
    APPROVAL_UNUSABLE = "approval_unusable"  # the approval was declined, lost or came too late
    PRICE_CHANGED = "price_changed"  # a new quote would cost more than was approved
    PAYMENT_REFUSED = "payment_refused"  # the wallet refused the payment, certainly
    PAYMENT_FAILED = "payment_failed"  # accepted by the wallet, but proven never to arrive


class Attention(StrEnum):
    """A case that no program can decide, so the merchant has to."""

    PARTIAL_PAYMENT = "partial_payment"
    UNDECIDED = "undecided"  # a provider has not answered for long
    LATE_PAYMENT = "late_payment"  # money arrived after the session had ended


@dataclass(frozen=True, slots=True)
class IncomingPaymentRef:
    id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction to pay (W6). It is sent once before `deadline`, or never.

    A payment attempt (attempt.py) has at most one instruction.
    """

    id: str
    deadline: datetime


@dataclass(frozen=True, kw_only=True)
class InFlight(Record):
    """The fields of a payment in flight.

    `receive` is the amount of its incoming payment, and `received` the amount received at the last
    check. `check_at` is the time of the next check of the wallets: while a payment is in flight,
    and after its end until it is certain what the incoming payment received. The payer's wallet is
    not asked before `hung_until` after a check timed out there. `approve_until` is set if the
    payer's wallet could not accept an approval temporarily; until then the approval is tried again.
    `event` is the id of the webhook event of its end. `identity` is the number of the merchant's
    identity at the wallets (Merchant.as_of); None is the first.
    """

    expires_at: datetime
    receive: Amount
    phase: Phase | None = None
    lease_until: datetime | None = None
    look_at: datetime | None = None
    check_at: datetime | None = None
    checks: int = 0
    hung_until: datetime | None = None
    customer: WalletAddress | None = None
    incoming_payment: IncomingPaymentRef | None = None
    quote: Quote | None = None
    interact_url: str | None = field(default=None, repr=False)
    grant: str | None = field(default=None, repr=False)
    approve_until: datetime | None = None
    token: str | None = field(default=None, repr=False)
    instruction: Instruction | None = None
    outgoing_payment: str | None = None
    closing_at: datetime | None = None
    closed_at: datetime | None = None
    received: int | None = None
    problem: Problem | None = None
    attention: Attention | None = None
    event: str | None = None
    identity: int | None = None

    @property
    @abstractmethod
    def payment_in_flight(self) -> bool: ...

    @property
    def payer(self) -> WalletAddress | None:
        """Return the wallet that pays."""
        return self.customer

    @property
    def fixed(self) -> tuple[Amount | None, Amount | None]:
        """Return the side that its quote fixes: the amount to arrive, or the debit."""
        return self.receive, None

    @property
    def incoming_payment_ends_at(self) -> datetime:
        """Return when the incoming payment accepts no more money, even if it was not closed."""
        assert self.incoming_payment is not None
        return min(self.incoming_payment.expires_at, self.expires_at + NEVER_CLOSED_AFTER)

    def lease_live(self, now: datetime) -> bool:
        """Return whether a process is working on it right now."""
        return self.lease_until is not None and now < self.lease_until
