"""A payment in flight: the fields and times of every record that the payment engine works on."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from checkout.domain.payment.machine import Record
from open_payments.models import Amount, Quote, WalletAddress

# The fence: how long to wait after the incoming payment is closed before "nothing was received" is
# final. For 30 s after the closing, money that was already on its way may still arrive, because an
# Interledger packet that was prepared before may still be fulfilled (session/transitions.py).
FENCE: Final = timedelta(seconds=35)
# The incoming payment outlives its record by this time, so that a payment that is approved in the
# last second still arrives (C3, domain/session/transitions.py).
INCOMING_PAYMENT_GRACE: Final = timedelta(minutes=15)
# An incoming payment is treated as closed this long after its record expires, even if its provider
# ignores both its expiry and the request to close it.
NEVER_CLOSED_AFTER: Final = timedelta(hours=24)
# A payment that has no result this long after its send is in doubt. Working wallets answer sooner.
IN_DOUBT_AFTER: Final = timedelta(seconds=30)


class Phase(StrEnum):
    """The step that a session has reached since its customer returned from the wallet.

    Only a session in awaiting_approval has a phase. It has none while it waits for the customer's
    return. The writes W5 and W6 (session/transitions.py) set the phase.
    """

    CONTINUING = "continuing"  # the interact_ref is being redeemed; no money can move yet
    PAYING = "paying"  # the instruction to pay may have been sent


class Problem(StrEnum):
    """The reason why a session is open again, shown to the customer and the merchant."""

    WALLET_UNREACHABLE = "wallet_unreachable"
    WALLET_INVALID = "wallet_invalid"
    WALLET_UNAVAILABLE = "wallet_unavailable"
    AMOUNT_TOO_SMALL_FOR_WALLET = "amount_too_small_for_wallet"
    MERCHANT_WALLET_ERROR = "merchant_wallet_error"
    PREPARATION_INTERRUPTED = "preparation_interrupted"
    APPROVAL_UNUSABLE = "approval_unusable"  # the approval was declined, lost or came too late
    PRICE_CHANGED = "price_changed"  # a new quote would cost more than was approved
    PAYMENT_REFUSED = "payment_refused"  # the wallet has certainly refused the payment
    PAYMENT_FAILED = "payment_failed"  # accepted by the wallet, but proven never to arrive


class Attention(StrEnum):
    """A case that no program can decide, so the merchant has to decide it."""

    PARTIAL_PAYMENT = "partial_payment"
    UNDECIDED = "undecided"  # a provider has not answered for a long time
    LATE_PAYMENT = "late_payment"  # money arrived after the session had ended


@dataclass(frozen=True, slots=True)
class IncomingPaymentRef:
    id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction to pay, stored by the write W6 (session/transitions.py).

    It is sent at most once, and never after `deadline`. A payment attempt (attempt.py) has at most
    one instruction.
    """

    id: str
    deadline: datetime


@dataclass(frozen=True, kw_only=True)
class InFlight(Record):
    """The fields of a payment in flight.

    `receive` is the amount of the incoming payment, and `received` is the amount that had arrived
    at the last check. `check_at` is the time of the next check of the wallets. `check_at` is set
    while a payment is in flight, and after the record's end until it is certain how much the
    incoming payment has received. If a check timed out at the payer's wallet, no request goes to
    that wallet before `hung_until`. If the payer's wallet temporarily could not accept an approval,
    the approval is tried again until `approve_until`. `event` is the id of the webhook event about
    the record's end. `identity` is the number of the merchant's identity (client and wallet) with
    which the payment was prepared (Merchant.as_of); None means the first.
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
        """Return (amount that has to arrive, debit), with None for the one set by the quote."""
        return self.receive, None

    @property
    def incoming_payment_ends_at(self) -> datetime:
        """Return when the incoming payment stops accepting money, even if nobody closes it."""
        assert self.incoming_payment is not None
        return min(self.incoming_payment.expires_at, self.expires_at + NEVER_CLOSED_AFTER)

    def lease_live(self, now: datetime) -> bool:
        """Return whether a process is working on the record right now."""
        return self.lease_until is not None and now < self.lease_until
