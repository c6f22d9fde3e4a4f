"""The record of a checkout session; `transitions.py` lists the events that may change one.

Times are aware UTC datetimes, amounts are integers with a scale. `grant` and `token` are sealed
(ciphertext): the domain never has a nonce, a continuation or an access token in plain text.
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

# This long after its expiry, a session that only the clock ends has certainly ended: no write that
# began in time can still arrive. Functions are stopped after 29 s; effects 200 s late are tested.
CLOCK_IS_FINAL_AFTER: Final = timedelta(minutes=5)
TITLE_MAX: Final = 200  # characters of an item's name on a page
SUBTITLE_MAX: Final = 1000  # characters of its description
METADATA_VALUE_MAX: Final = 500  # characters
SUBMISSIONS_MAX: Final = 10
SUBMISSIONS_WINDOW: Final = timedelta(minutes=10)


class Status(StrEnum):
    """spec.md, "States and transitions"."""

    OPEN = "open"
    PREPARING = "preparing"
    AWAITING_APPROVAL = "awaiting_approval"
    PROCESSING = "processing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class LineItem:
    """`unit_amount` is in the currency's minor units, `image` the URL of a picture.

    Stripe's clients may send longer texts than a page shows; `title` and `subtitle` shorten them.
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
    """Return the text, or its beginning with an ellipsis if it has more characters than that."""
    return value if len(value) <= longest else f"{value[: longest - 1].rstrip()}…"


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """The fields that a session keeps as the request for it gives them.

    `locale` is the language tag that the merchant asked for, and `echo_json` what a request to /v1
    gave that is only given back (domain/stripe/objects.py). `collect_json` is what the page asks of
    the customer before the wallet (domain/session/collect.py).
    """

    line_items: tuple[LineItem, ...]
    metadata_json: str  # as submitted: distinguishes 1 and true, and keeps the order of the keys
    success_url: str
    cancel_url: str
    locale: str | None = None
    client_reference_id: str | None = None
    echo_json: str | None = None
    collect_json: str | None = None


@dataclass(frozen=True, kw_only=True)  # without slots: of a list, a hundred are made at once
class Session(InFlight, Purchase):
    """One purchase.

    `amount_total` is in minor units of `currency`; `receive` is the same in the merchant wallet's
    scale. `request_id` is the API request that created it; None at a payment link.
    `customer_details` has the customer's name and contact, and `customer_further` addresses and
    answers, if the shop has asked (domain/session/customer_details.py). Both are sealed.
    `customer_mark` is a keyed hash of the e-mail address, for the search. `details_at` is the time
    of the last answer to `collect_json`. At a payment link both are None, because its own page
    asks. `part` is the session's part of the merchant's lists and sums (domain/ground/parts.py).

    `link` is the row of a payment link's stock from which the session holds items; `restocked_at`
    is when they were returned, because nothing was sold (domain/links.py).

    `look_at` is the planned time of a check, set when the wallet is given or the approval claimed:
    by then that process has ended. A check of the session removes it.

    `later_json` is what a later release has stored with the payment, unchanged: this release may
    write the session while both are deployed.

    `refunds` hold the amounts that were or may be sent back (refund/transitions.py, R1 and R3).

    `payment_attempts` are read with attempts.attempts_of: the running one is stored in part only.
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
        """Return what the page asks the customer before the wallet."""
        return from_json(self.collect_json)

    @property
    def asks_first(self) -> bool:
        """Return whether the page asks for details that the customer has not given yet."""
        return self.details_at is None and bool(self.collect)

    @property
    def lacks_details(self) -> bool:
        """Return whether details are missing that are required before a wallet."""
        return self.details_at is None and self.collect.requires

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
    def amount_paid(self) -> int:
        """Return the amount that can be refunded at most, in minor units of `currency`.

        It is `amount_received`, but at most `amount_total` unless `overpaid`: a unit more may be
        the rounding of wallets, which the customer has not paid.
        """
        received = self.amount_received or 0
        completed = self.status is Status.COMPLETED and not self.overpaid
        return min(received, self.amount_total) if completed else received

    @property
    def paid_at(self) -> datetime:
        """Return when it was paid; if money came late or in part, when it was created."""
        return self.completed_at or self.created_at

    @property
    def refunded(self) -> int:
        """Return the sum that refunds have sent or hold, in minor units of `currency`."""
        return sum(each.amount for each in self.refunds or ())

    @property
    def refundable(self) -> int:
        """Return the amount left to refund, in minor units of `currency`: paid, less refunded."""
        if not self.terminal or self.check_at is not None:
            return 0  # it is not certain yet what it received
        return max(self.amount_paid - self.refunded, 0)

    @property
    def paid_as_quoted(self) -> bool:
        """Return whether the customer paid, by our own instruction, the quote's amount.

        Only then is the customer's debit known: not for late money, for a part, or for more than
        rounding explains.
        """
        quoted = self.quote is not None and self.outgoing_payment is not None
        least = self.receive.value - max(self.receive.value // 100, rounding(self.receive.value))
        enough = (self.received or 0) >= least and not self.overpaid
        return self.status is Status.COMPLETED and quoted and enough

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
    def partly_paid(self) -> bool:
        """Whether less than asked has arrived and the merchant may decide what follows."""
        processing = self.status is Status.PROCESSING
        return processing and self.attention is Attention.PARTIAL_PAYMENT

    @property
    def overpaid(self) -> bool:
        """Whether more has arrived than was asked for, which the merchant may want to send back.

        One unit of the wallet is rounding, and less than one unit of `currency` cannot be sent.
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
        """Whether the merchant may start the fence: the payment is in doubt, or partly paid.

        A payment from outside has no instruction, so there is no send to wait for.
        """
        if not self.payment_in_flight or self.closing_at is not None:
            return False
        sent = self.instruction
        return sent is None or self.partly_paid or now >= sent.deadline + IN_DOUBT_AFTER

    def overdue(self, now: datetime) -> bool:
        """Return whether it counts as expired: time is up and no payment is in flight."""
        if self.terminal or self.payment_in_flight or now < self.expires_at:
            return False
        return not (self.phase is Phase.CONTINUING and self.lease_live(now))

    def status_at(self, now: datetime) -> Status:
        """Return the status for readers at `now` (decisions.md "Expiry")."""
        return Status.EXPIRED if self.overdue(now) else self.status

    @property
    def wallet_given(self) -> bool:
        """Return whether a customer ever gave a wallet. Without a wallet no money can arrive."""
        if self.status not in (Status.OPEN, Status.EXPIRED, Status.CANCELED):
            return True
        return self.happened(Event.WALLET_SUBMITTED) or self.incoming_payment is not None

    @property
    def left_to_clock(self) -> bool:
        """Return whether the clock alone ends it, or has ended it: no wallet was ever given.

        No money can arrive, so nothing needs to be written at its end, unless it holds an item of a
        payment link's stock.
        """
        if self.wallet_given or self.link is not None:
            return False
        expired = self.status is Status.EXPIRED and self.happened(Event.EXPIRY_PASSED)
        return expired or self.status is Status.OPEN

    @property
    def quantity(self) -> int:
        """Return how many items it sells, and holds from a payment link's stock."""
        return sum(each.quantity for each in self.line_items)

    @property
    def holds_item(self) -> bool:
        """Return whether it holds or has sold items of a payment link's stock."""
        return self.link is not None and self.restocked_at is None

    @property
    def unsold(self) -> bool:
        """Return whether it ended without a payment for certain, or was given up.

        If money came late, the merchant decides whether something was sold.
        """
        if self.status not in (Status.EXPIRED, Status.CANCELED) or self.check_at is not None:
            return False
        nothing = not self.received and self.attention is None
        return nothing or self.happened(Event.GIVEN_UP)

    @property
    def over_at(self) -> datetime | None:
        """Return when it ended, or will end without a further event; None if not known."""
        if self.left_to_clock:
            return self.expires_at
        return self.updated_at if self.terminal else None

    @property
    def awaits_look(self) -> bool:
        """Return whether it awaits its approval, and the planned check is still to come."""
        awaiting = self.status is Status.AWAITING_APPROVAL and self.phase is None
        return awaiting and self.look_at is not None

    @property
    def needed_at(self) -> datetime | None:
        """Return when the sweep must look at it at the latest; None if nothing is left to do."""
        if self.terminal or self.payment_in_flight:
            return self.check_at
        if self.lease_until is not None:
            return self.lease_until
        return None if self.left_to_clock else self.expires_at


# Names of an order number in the metadata, without "-", "_", blanks and case.
_NAMES: Final = ("ordernumber", "orderno", "orderid", "order", "invoicenumber", "invoice")
_PUNCTUATION: Final = re.compile(r"[-_ ]")


def order_number(session: Session) -> str | None:
    """Return the named order number, or the metadata's first text or number, or None."""
    return named_order_number(session) or next(iter(metadata_values(session)), None)


def named_order_number(session: Session) -> str | None:
    """Return the merchant's reference, or the metadata's value with the name of an order number."""
    if reference := _text(session.client_reference_id):
        return reference
    named = {_PUNCTUATION.sub("", name).lower(): each for name, each in session.metadata.items()}
    return next(filter(None, (_text(named.get(name)) for name in _NAMES)), None)


def metadata_values(session: Session) -> list[str]:
    """Return the metadata's texts and numbers, in their order: no boolean, null or blank text."""
    return [text for each in session.metadata.values() if (text := _text(each))]


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None
