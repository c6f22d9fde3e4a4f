"""The record of a checkout session; `transitions.py` says what may happen to one.

Times are aware UTC datetimes, amounts are integers with a scale. `grant` and `token` are sealed
(ciphertext): the domain never sees a nonce, a continuation or an access token in the clear.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from checkout.domain.payment_attempt import PaymentAttempt
from checkout.open_payments.models import Amount, Quote, WalletAddress

# The incoming payment outlives its session, so that a payment approved in the last second still
# arrives (C3, domain/transitions.py).
INCOMING_PAYMENT_GRACE: Final = timedelta(minutes=15)
# So long after its session's expiry an incoming payment counts as closed, though its provider
# neither closes it nor heeds its expiry.
NEVER_CLOSED_AFTER: Final = timedelta(hours=24)
# So long after its expiry a session that only the clock ends has certainly ended: no write that
# began in time can still land. Functions are stopped after 29 s; effects 200 s late are tested.
CLOCK_IS_FINAL_AFTER: Final = timedelta(minutes=5)
SUBMISSIONS_MAX: Final = 10
SUBMISSIONS_WINDOW: Final = timedelta(minutes=10)
# So long after it was sent, a payment without a result is in doubt. An honest wallet has answered.
IN_DOUBT_AFTER: Final = timedelta(seconds=30)
# The sweep looks once a minute. Where a session has a place in its index already, it keeps it as
# long as that is not later than needed, nor earlier by more than this: to move it costs two units.
LOOK_EARLIER: Final = timedelta(seconds=60)
# Of transitions.Event, which imports this module.
_EXPIRY_PASSED: Final = "expiry_passed"
_WALLET_SUBMITTED: Final = "wallet_submitted"
_GIVEN_UP: Final = "given_up"


class Status(StrEnum):
    """spec.md, "States and transitions"."""

    OPEN = "open"
    PREPARING = "preparing"
    AWAITING_APPROVAL = "awaiting_approval"
    PROCESSING = "processing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELED = "canceled"


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
    PAYMENT_FAILED = "payment_failed"  # accepted by the wallet; proven never to arrive


class Attention(StrEnum):
    """A case that no program can decide and the merchant has to look at."""

    PARTIAL_PAYMENT = "partial_payment"
    UNDECIDED = "undecided"  # a provider has not answered for long
    LATE_PAYMENT = "late_payment"  # money arrived after the session had ended


@dataclass(frozen=True, slots=True)
class LineItem:
    """`unit_amount` is in the currency's minor units, `image` the URL of a picture."""

    currency: str
    name: str
    description: str | None
    unit_amount: int
    quantity: int
    image: str | None = None


@dataclass(frozen=True, slots=True)
class IncomingPaymentRef:
    id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction to pay (W6). The one send of it happens before `deadline` or never.

    A payment attempt (payment_attempt.py) has at most one.
    """

    id: str
    deadline: datetime


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    at: datetime
    event: str
    note: str | None = None


@dataclass(frozen=True, kw_only=True)  # without slots: of a list, a hundred are made at once
class Session:
    """One purchase.

    `amount_total` is in minor units of `currency`; `receive` is the same in the merchant wallet's
    scale, and `received` what its incoming payment showed at the last check. `event` is the id of
    the webhook event of its end, `locale` the language tag that the merchant asked for, and
    `echo_json` what a request to /v1 gave that is only given back (domain/stripe_objects.py).
    `request_id` is the API request that created it; None at a payment link.
    `shard` is the part of its merchant's lists and sums to which it belongs (domain/shards.py).

    `link` is the payment link whose stock the session holds an item of; `restocked_at` is when it
    was given back, because nothing was sold (domain/links.py).

    `check_at` is when the wallets should be asked again: while a payment is in flight, and after
    the end until it is certain what the incoming payment received. The customer's wallet is not
    asked before `hung_until`, after it has kept a check waiting.

    `look_at` is the place that the preparation gave the session in the index `due`. It stays there
    while the customer approves and pays, until the sweep comes by (`lingers`) or the payment is
    checked.

    `payment_attempts` are read with attempts.attempts_of: of the running one little is stored.
    """

    id: str
    merchant: str
    status: Status
    version: int
    writer: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    amount_total: int
    currency: str
    receive: Amount
    line_items: tuple[LineItem, ...]
    metadata_json: str  # as submitted: keeps 1 and true apart, and the keys in their order
    success_url: str
    cancel_url: str
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
    token: str | None = field(default=None, repr=False)
    instruction: Instruction | None = None
    outgoing_payment: str | None = None
    closing_at: datetime | None = None
    closed_at: datetime | None = None
    received: int | None = None
    problem: Problem | None = None
    attention: Attention | None = None
    completed_at: datetime | None = None
    event: str | None = None
    locale: str | None = None
    client_reference_id: str | None = None
    echo_json: str | None = None
    request_id: str | None = None
    shard: int = 0
    link: str | None = None
    restocked_at: datetime | None = None
    submissions: tuple[datetime, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    payment_attempts: tuple[PaymentAttempt, ...] = ()

    @property
    def metadata(self) -> Mapping[str, Any]:
        result: dict[str, Any] = json.loads(self.metadata_json)
        return result

    @property
    def amount_received(self) -> int | None:
        """Return `received` in minor units of `currency`, rounded down; None until it is known."""
        return self.minor_units(self.received)

    def minor_units(self, received: int | None) -> int | None:
        """Return units of the merchant's wallet in minor units of `currency`, rounded down."""
        if received is None:
            return None
        return received * self.amount_total // self.receive.value

    @property
    def customer_debit(self) -> Amount | None:
        """Return the price that the customer has paid, as quoted; None until a payment is made."""
        made = self.payment_in_flight or self.status is Status.COMPLETED
        return self.quote.debit if made and self.quote is not None else None

    @property
    def terminal(self) -> bool:
        return self.status in (Status.COMPLETED, Status.EXPIRED, Status.CANCELED)

    @property
    def payment_in_flight(self) -> bool:
        """Whether money may have been instructed: then neither time nor the merchant ends it."""
        return self.phase is Phase.PAYING or self.status is Status.PROCESSING

    @property
    def incoming_payment_ends_at(self) -> datetime:
        """Return when the incoming payment takes no more money, closed or not."""
        assert self.incoming_payment is not None
        return min(self.incoming_payment.expires_at, self.expires_at + NEVER_CLOSED_AFTER)

    @property
    def partly_paid(self) -> bool:
        """Whether less than asked has arrived and the merchant may decide what follows."""
        processing = self.status is Status.PROCESSING
        return processing and self.attention is Attention.PARTIAL_PAYMENT

    @property
    def erased(self) -> bool:
        """Whether the customer's wallet was removed on request (domain/erasure.py)."""
        given = self.happened("reference_stored")
        return self.customer is None and given and self.happened("erased")

    def may_close(self, now: datetime) -> bool:
        """Whether the merchant may have the fence begin: the payment is in doubt, or partly paid.

        A payment that came from outside has no instruction, and so no send to wait for.
        """
        if not self.payment_in_flight or self.closing_at is not None:
            return False
        sent = self.instruction
        return sent is None or self.partly_paid or now >= sent.deadline + IN_DOUBT_AFTER

    def happened(self, event: str) -> bool:
        """Return whether the history has this event."""
        return any(entry.event == event for entry in self.history)

    def lease_live(self, now: datetime) -> bool:
        """Return whether a process is working on it right now."""
        return self.lease_until is not None and now < self.lease_until

    def overdue(self, now: datetime) -> bool:
        """Return whether it counts as expired: time is up and no payment is in flight."""
        if self.terminal or self.payment_in_flight or now < self.expires_at:
            return False
        return not (self.phase is Phase.CONTINUING and self.lease_live(now))

    def status_at(self, now: datetime) -> Status:
        """Return the status that a reader sees at `now` (decisions.md "Expiry")."""
        return Status.EXPIRED if self.overdue(now) else self.status

    @property
    def left_to_clock(self) -> bool:
        """Return whether time alone ends it, or has ended it: nobody ever gave it a wallet.

        No money can come of it, so nothing needs to be written at its end, unless it holds an item
        of a payment link's stock.
        """
        if self.link is not None:
            return False
        if self.status is Status.EXPIRED:
            return self.happened(_EXPIRY_PASSED) and not self.happened(_WALLET_SUBMITTED)
        return self.status is Status.OPEN and self.version == 1

    @property
    def holds_item(self) -> bool:
        """Return whether an item of a payment link's stock is held by it, or was sold with it."""
        return self.link is not None and self.restocked_at is None

    @property
    def unsold(self) -> bool:
        """Return whether it ended without a payment for certain, or was given up.

        Money that came late leaves open whether something was sold: the merchant decides.
        """
        if self.status not in (Status.EXPIRED, Status.CANCELED) or self.check_at is not None:
            return False
        nothing = not self.received and self.attention is None
        return nothing or self.happened(_GIVEN_UP)

    @property
    def over_at(self) -> datetime | None:
        """Return when it ended, or will end if nobody touches it; None if that is not known."""
        if self.left_to_clock:
            return self.expires_at
        return self.updated_at if self.terminal else None

    @property
    def urgent(self) -> bool:
        """Return whether the sweep checks it before all others: a process may have left money."""
        return self.payment_in_flight or self.lease_until is not None or self.lingers

    @property
    def lingers(self) -> bool:
        """Return whether it awaits its approval, and has not yet left the place of a lease.

        Most customers approve before the sweep comes by, and so it need not be moved twice.
        """
        awaiting = self.status is Status.AWAITING_APPROVAL and self.phase is None
        return awaiting and self.look_at is not None

    def due_at(self) -> datetime | None:
        """Return when the scheduled sweep looks at this session; None if nothing is left."""
        needed, place = self._needed_at(), self.look_at
        if self.lingers:
            return place
        if needed is None or place is None:
            return needed
        return place if needed - LOOK_EARLIER <= place <= needed else needed

    def _needed_at(self) -> datetime | None:
        """Return when it should be looked at."""
        if self.terminal or self.payment_in_flight:
            return self.check_at
        if self.lease_until is not None:
            return self.lease_until
        return None if self.left_to_clock else self.expires_at
