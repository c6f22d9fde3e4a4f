"""The record of a checkout session; `transitions.py` lists the events that may change a session.

Times are aware UTC datetimes, amounts are integers with a scale. `grant` and `token` are sealed
(ciphertext), so the domain never has a nonce, a continuation or an access token in plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from checkout.domain.ground.money import rounding
from checkout.domain.payment.attempt import PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import IN_DOUBT_AFTER, Attention, InFlight, Phase
from checkout.domain.refund.record import RefundRef
from checkout.domain.session.collect import Collect, from_json
from open_payments.models import Amount

# A session that ends by the clock alone (`left_to_clock`) has certainly ended this long after its
# expiry. No write that began in time can still arrive then, because functions are stopped after
# 29 s. Tests cover writes that take effect 200 s late.
CLOCK_IS_FINAL_AFTER: Final = timedelta(minutes=5)
TITLE_MAX: Final = 200  # characters of an item's name on a page
SUBTITLE_MAX: Final = 1000  # characters of an item's description
METADATA_VALUE_MAX: Final = 500  # characters
SUBMISSIONS_MAX: Final = 10
SUBMISSIONS_WINDOW: Final = timedelta(minutes=10)


class Status(StrEnum):
    """The states of a session (spec.md, "States and transitions")."""

    OPEN = "open"
    PREPARING = "preparing"
    AWAITING_APPROVAL = "awaiting_approval"
    PROCESSING = "processing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class LineItem:
    """`unit_amount` is in the currency's minor units; `image` is the URL of a picture.

    Stripe's clients can send longer texts than a page shows, so `title` and `subtitle` shorten
    them.
    """

    currency: str
    name: str
    description: str | None
    unit_amount: int
    quantity: int
    image: str | None = None

    @property
    def title(self) -> str:
        return shortened(self.name, TITLE_MAX)

    @property
    def subtitle(self) -> str | None:
        return None if self.description is None else shortened(self.description, SUBTITLE_MAX)


def shortened(value: str, longest: int) -> str:
    """Return `value`, cut and ended with an ellipsis if it is longer than `longest` characters."""
    return value if len(value) <= longest else f"{value[: longest - 1].rstrip()}…"


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """The fields that a session copies unchanged from the request that creates it.

    `locale` is the language tag that the merchant chose. `echo_json` contains the parameters of a
    request to /v1 that are stored only to be returned (domain/stripe/objects.py). `collect_json`
    lists what the page asks the customer for before the wallet (domain/session/collect.py).
    """

    line_items: tuple[LineItem, ...]
    metadata_json: str  # as submitted: distinguishes 1 and true, and keeps the order of the keys
    success_url: str
    cancel_url: str
    locale: str | None = None
    client_reference_id: str | None = None
    echo_json: str | None = None
    collect_json: str | None = None


@dataclass(frozen=True, kw_only=True)  # no slots, because a list creates 100 at once
class Session(InFlight, Purchase):
    """One purchase.

    `amount_total` is in minor units of `currency`; `receive` is the same amount in the merchant
    wallet's scale. `request_id` is the id of the API request that created the session; None at a
    payment link. If the shop asks for details, `customer_details` contains the customer's name and
    contact, and `customer_further` contains addresses and answers (customer_details.py); both
    fields are sealed. For the search, `customer_mark` is a keyed hash of the e-mail address, and
    `customer_marks` are keyed hashes of the names and postal codes. `details_at` is when the
    customer last sent the details that `collect_json` lists. `collect_json` and `details_at` are
    None at a payment link, because the link's own page asks for the details. `part` is the
    session's part of the merchant's lists and sums (domain/ground/parts.py).

    `link` is the row of a payment link's stock from which the session holds items. `restocked_at`
    is when the items were returned, because nothing was sold (domain/links.py).

    `look_at` is the planned time of a check. When a wallet is given or an approval is claimed, the
    process sets `look_at` to a time by which this process has certainly ended. A check of the
    session removes `look_at`.

    `later_json` contains fields that a later release has stored. They are kept unchanged, because
    this release may write the session while both releases are deployed.

    `refunds` reserve the amounts that were or may be sent back (refund/transitions.py, R1 and R3).

    Read `payment_attempts` with attempts.attempts_of, because that function adds the evidence so
    far to a running attempt.
    """

    status: Status
    created_at: datetime
    amount_total: int
    currency: str
    completed_at: datetime | None = None
    request_id: str | None = None
    part: int = 0
    customer_details: str | None = None
    customer_further: str | None = None
    customer_mark: str | None = None
    customer_marks: tuple[str, ...] | None = None  # an empty tuple would be stored
    details_at: datetime | None = None
    link: str | None = None
    restocked_at: datetime | None = None
    submissions: tuple[datetime, ...] = ()
    payment_attempts: tuple[PaymentAttempt, ...] = ()
    refunds: tuple[RefundRef, ...] | None = None
    later_json: str | None = None

    @property
    def metadata(self) -> Mapping[str, Any]:
        result: dict[str, Any] = json.loads(self.metadata_json)
        return result

    @property
    def collect(self) -> Collect:
        """Return what the page asks the customer for before the wallet."""
        return from_json(self.collect_json)

    @property
    def asks_first(self) -> bool:
        """Return whether the page asks for details that the customer has not given yet."""
        return self.details_at is None and bool(self.collect)

    @property
    def lacks_details(self) -> bool:
        """Return whether the customer still has to give details before giving a wallet."""
        return self.details_at is None and self.collect.requires

    @property
    def amount_received(self) -> int | None:
        """Return `received` in minor units of `currency`, rounded down; None until it is known."""
        return self.minor_units(self.received)

    def minor_units(self, received: int | None) -> int | None:
        """Convert units of the merchant's wallet to minor units of `currency`, rounded down."""
        if received is None:
            return None
        return received * self.amount_total // self.receive.value

    @property
    def amount_paid(self) -> int:
        """Return the largest amount that can be refunded, in minor units of `currency`.

        This is `amount_received`, but at most `amount_total` for a completed session that is not
        `overpaid`. One unit above `amount_total` may result from the rounding of wallets, and the
        customer has not paid such a unit.
        """
        received = self.amount_received or 0
        completed = self.status is Status.COMPLETED and not self.overpaid
        return min(received, self.amount_total) if completed else received

    @property
    def paid_at(self) -> datetime:
        """Return when it was paid; if money came late or in part, when the session was created."""
        return self.completed_at or self.created_at

    @property
    def refunded(self) -> int:
        """Return the sum that refunds have sent or reserved, in minor units of `currency`."""
        return sum(each.amount for each in self.refunds or ())

    @property
    def refundable(self) -> int:
        """Return what is left to refund in minor units of `currency`: paid minus refunded."""
        if not self.terminal or self.check_at is not None:
            return 0  # it is not certain yet how much the session received
        return max(self.amount_paid - self.refunded, 0)

    @property
    def paid_as_quoted(self) -> bool:
        """Return whether our own instruction paid the quote's amount.

        If money came late or in part, or if more came than rounding explains, this is false, and
        the customer's debit is not known.
        """
        quoted = self.quote is not None and self.outgoing_payment is not None
        least = self.receive.value - max(self.receive.value // 100, rounding(self.receive.value))
        enough = (self.received or 0) >= least and not self.overpaid
        return self.status is Status.COMPLETED and quoted and enough

    @property
    def customer_debit(self) -> Amount | None:
        """Return the quoted price that the customer has paid; None until a payment is made."""
        made = self.payment_in_flight or self.status is Status.COMPLETED
        return self.quote.debit if made and self.quote is not None else None

    @property
    def terminal(self) -> bool:
        return self.status in (Status.COMPLETED, Status.EXPIRED, Status.CANCELED)

    @property
    def payment_in_flight(self) -> bool:
        """Whether a payment may have been instructed.

        While this is true, neither the expiry nor the merchant can end the session.
        """
        return self.phase is Phase.PAYING or self.status is Status.PROCESSING

    @property
    def partly_paid(self) -> bool:
        """Whether too little has arrived, so that the merchant can decide what follows."""
        processing = self.status is Status.PROCESSING
        return processing and self.attention is Attention.PARTIAL_PAYMENT

    @property
    def overpaid(self) -> bool:
        """Whether too much has arrived, so that the merchant may want to send the excess back.

        An excess of one unit of the wallet is treated as rounding. An excess below one minor unit
        of `currency` cannot be sent back.
        """
        most = self.receive.value + rounding(self.receive.value)
        more = (self.received or 0) > most and (self.amount_received or 0) > self.amount_total
        return self.status is Status.COMPLETED and more

    @property
    def needs_attention(self) -> bool:
        """Whether the merchant has to look at the session."""
        return self.attention is not None or self.overpaid

    @property
    def erased(self) -> bool:
        """Whether the customer's wallet was removed on request (domain/erasure.py)."""
        given = self.happened(Event.REFERENCE_STORED)
        return self.customer is None and given and self.happened(Event.ERASED)

    def may_close(self, now: datetime) -> bool:
        """Return whether the merchant can start the fence: the payment is in doubt or partly paid.

        The fence closes the incoming payment and waits until no more money can arrive. A payment
        from outside the page was not sent by us, so there is no send that has to be in doubt first.
        """
        if not self.payment_in_flight or self.closing_at is not None:
            return False
        sent = self.instruction
        return sent is None or self.partly_paid or now >= sent.deadline + IN_DOUBT_AFTER

    def overdue(self, now: datetime) -> bool:
        """Return whether the session is treated as expired, before that status is written.

        This is so if `expires_at` has passed, no payment is in flight, and no approval is being
        redeemed.
        """
        if self.terminal or self.payment_in_flight or now < self.expires_at:
            return False
        return not (self.phase is Phase.CONTINUING and self.lease_live(now))

    def status_at(self, now: datetime) -> Status:
        """Return the status to show at `now` (decisions.md "Expiry")."""
        return Status.EXPIRED if self.overdue(now) else self.status

    @property
    def wallet_given(self) -> bool:
        """Return whether a customer ever gave a wallet. Without a wallet no money can arrive."""
        if self.status not in (Status.OPEN, Status.EXPIRED, Status.CANCELED):
            return True
        return self.happened(Event.WALLET_SUBMITTED) or self.incoming_payment is not None

    @property
    def left_to_clock(self) -> bool:
        """Return whether the session ends, or has ended, by the clock alone, without a write.

        If no wallet was ever given, no money can arrive, so nothing needs to be written when the
        session ends. This is false for a session that holds an item of a payment link's stock,
        because such a session must return the item.
        """
        if self.wallet_given or self.link is not None:
            return False
        expired = self.status is Status.EXPIRED and self.happened(Event.EXPIRY_PASSED)
        return expired or self.status is Status.OPEN

    @property
    def quantity(self) -> int:
        """Return the number of items that are sold, and held if they come from a link's stock."""
        return sum(each.quantity for each in self.line_items)

    @property
    def holds_item(self) -> bool:
        """Return whether the session holds or has sold items of a payment link's stock."""
        return self.link is not None and self.restocked_at is None

    @property
    def unsold(self) -> bool:
        """Return whether the session certainly ended without a payment, or was given up.

        If money came late, the result is false, because the merchant decides whether something was
        sold.
        """
        if self.status not in (Status.EXPIRED, Status.CANCELED) or self.check_at is not None:
            return False
        nothing = not self.received and self.attention is None
        return nothing or self.happened(Event.GIVEN_UP)

    @property
    def over_at(self) -> datetime | None:
        """Return when the session ended, or will end by the clock alone; None if not known."""
        if self.left_to_clock:
            return self.expires_at
        return self.updated_at if self.terminal else None

    @property
    def awaits_look(self) -> bool:
        """Return whether the session awaits its approval, and the check at `look_at` is to come."""
        awaiting = self.status is Status.AWAITING_APPROVAL and self.phase is None
        return awaiting and self.look_at is not None

    @property
    def needed_at(self) -> datetime | None:
        """Return when the scheduled job must look at the session; None if nothing is left to do."""
        if self.terminal or self.payment_in_flight:
            return self.check_at
        if self.lease_until is not None:
            return self.lease_until
        return None if self.left_to_clock else self.expires_at


# The names that an order number can have in the metadata; "-", "_", blanks and case do not matter.
_NAMES: Final = ("ordernumber", "orderno", "orderid", "order", "invoicenumber", "invoice")
_PUNCTUATION: Final = re.compile(r"[-_ ]")


def order_number(session: Session) -> str | None:
    """Return `named_order_number`, or the first text or number of the metadata, or None."""
    return named_order_number(session) or next(iter(metadata_values(session)), None)


def named_order_number(session: Session) -> str | None:
    """Return the merchant's reference, otherwise a metadata value named like an order number."""
    if reference := _text(session.client_reference_id):
        return reference
    named = {_PUNCTUATION.sub("", name).lower(): each for name, each in session.metadata.items()}
    return next(filter(None, (_text(named.get(name)) for name in _NAMES)), None)


def metadata_values(session: Session) -> list[str]:
    """Return the metadata's texts and numbers in order, without booleans, nulls and blank texts."""
    return [text for each in session.metadata.values() if (text := _text(each))]


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None
