"""Declare the protocols through which the flows use the outside world.

A protocol is here if it has two implementations, between which `wiring.py` chooses. The stores have
only one implementation, `adapters/dynamo`, which the tests use too, with tables in memory. So this
module has no protocols for the stores, only their results and errors.

A store that does not answer raises `errors.Unavailable`. If another process has changed a record
since it was read, a write fails and raises `StaleRecord`, `StaleMerchant` or `StaleEvent`. Each of
these errors carries the stored record. The caller must decide anew from this record, and must not
repeat the failed write unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeVar

from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.machine import Change, Record
from checkout.domain.refund.record import Refund
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session
from checkout.domain.session.withdrawal import Withdrawal
from checkout.domain.webhooks.record import WebhookEvent

T = TypeVar("T")
Result = TypeVar("Result")


class Clock(Protocol):
    """The clock: read the time, and wait."""

    def now(self) -> datetime:
        """Return the time in UTC, time-zone aware, in whole milliseconds as the stores keep it."""
        ...

    def sleep(self, seconds: float) -> None: ...


class Concurrency(Protocol):
    """Call a function for many items, several at a time."""

    def __call__(self, do: Callable[[T], Result], items: Iterable[T], /) -> list[Result]:
        """Return the results of `do` for each item, in order.

        An item is taken from `items` only when a thread is free, so an iterator can end the work
        early. Raises the error that `do` raised, after all calls that have begun have ended.
        """
        ...


@dataclass(frozen=True, slots=True)
class ShardRange:
    """Some shards (parts) of an index: every `of`-th shard, beginning with shard `number`.

    Several rounds of the sweep (the scheduled job) can run in parallel, each for its own range.
    """

    number: int = 0
    of: int = 1

    def among(self, shards: int) -> range:
        """Return the numbers of the shards in this range if there are `shards` shards."""
        return range(self.number, shards, self.of)


WHOLE: Final = ShardRange()


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of records. A query with `next_key` gets the next page; None means the end.

    In lists by time, `next_key` is the position of the last record read. `unreadable` has the ids
    of damaged records, which are left out of the page.
    """

    records: tuple[T, ...]
    next_key: str | None
    unreadable: tuple[str, ...] = ()


class SecretUnreadable(ValueError):
    """Report a ciphertext that is damaged, or was made with another key or for another place.

    The place is the table, record and field. The message contains no secret.
    """


class PasskeyRefused(Exception):
    """Report that a browser's passkey response is not valid. The message is for logs."""


R = TypeVar("R", bound=Record)


class Stale(Exception):
    """Report that a record changed since it was read; `current` is the stored record."""

    def __init__(self, current: Any) -> None:
        super().__init__(f"the record is at version {current.version}")
        self.current = current


class StaleRecord(Stale, Generic[R]):
    """Report that a session, refund or mandate (refund budget) changed since it was read."""

    current: R


@dataclass(frozen=True, slots=True)
class Reservation:
    """An idempotency record: the response to repeat for a request with the same key.

    `key` is a hash of the merchant and the key that the request gave. `writer` is a random text by
    which a process recognizes its own write. From `expires_at` on, 24 hours after its first use,
    the key can be used for another request.

    If `session` is set, the response is about that session, which was created at `created_at`. The
    response is stored before the session, so a repeated request creates the session if the session
    is missing.
    """

    key: str
    fingerprint: str
    status: int
    body: str = field(repr=False)  # it may contain a webhook endpoint's new secret
    writer: str
    created_at: datetime
    expires_at: datetime
    session: str | None = None


class KeyHeld(Exception):
    """Report that an unexpired `reservation` already has this key. Nothing was written."""

    def __init__(self, reservation: Reservation) -> None:
        super().__init__("the idempotency key is in use")
        self.reservation = reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A limit on a change: the change's transaction adds `amount` to the counter `id`.

    If the counter would exceed `most`, the transaction fails. The counter is kept at least until
    `until`.
    """

    id: str
    amount: int
    most: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Transaction(Generic[R]):
    """A change of a record, and the writes in the same transaction."""

    change: Change[R]
    events: tuple[WebhookEvent, ...] = ()
    refund: Refund | None = None  # a new refund to store
    reservation: Reservation | None = None
    allowance: Allowance | None = None  # a limit that the change uses up
    also: Change[Any] | None = None  # a change of another record, with its own condition


class AllowanceUsed(Exception):
    """Report that too little of an allowance is left. Nothing was written.

    `used` is the total that the counter has now.
    """

    def __init__(self, used: int) -> None:
        super().__init__("the allowance is used up")
        self.used = used


class OutOfStock(Exception):
    """Report that a payment link has no item left, or is stopped. Nothing was written."""


@dataclass(frozen=True, slots=True)
class DueSessions:
    """The ids of sessions that are due for a check, the longest overdue first.

    `oldest` is the earliest due time, and `total` the number of all due sessions.
    """

    ids: tuple[str, ...]
    total: int
    oldest: datetime | None


class Scan(StrEnum):
    """A walk over sessions, in the order in which they end, that passes each session once.

    A session without a wallet and without items of a stock ends "by the clock": at `expires_at`,
    without a write. To count a session is to add it to the merchant's daily totals.
    """

    TELL = "tell"  # passes sessions that end by the clock, and writes their events if requested
    COUNT = "count"  # passes the same sessions, and counts them
    ENDS = "ends"  # passes sessions whose end was written, and counts them


@dataclass(frozen=True, slots=True)
class ScanPositions:
    """How far each walk has come in each shard (`marks`), and each shard's `unreported` sessions.

    A mark is the end time of the last session passed. A walk that never began has no mark. A
    session is unreported if TELL has passed it, but its end could not be written.
    """

    marks: Mapping[tuple[Scan, int], datetime]
    unreported: Mapping[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Batch:
    """The sessions of one shard that a walk passes next, in the order of their ends.

    `since` is the walk's position (None before its first batch), and `to` is its next position.
    `unreadable` has the ids of damaged records. `more` means that further sessions may have ended
    by the time up to which this batch was read.
    """

    walk: Scan
    shard: int
    since: datetime | None
    to: datetime
    sessions: tuple[Session, ...]
    unreadable: tuple[str, ...] = ()
    more: bool = False


class StaleMerchant(Stale):
    """Report that the merchant changed since it was read; `current` is the stored merchant."""

    current: Merchant


class StaleEvent(Stale):
    """Report that the event changed since it was read; `current` is the stored event."""

    current: WebhookEvent


@dataclass(frozen=True, slots=True)
class DueEvent:
    """An entry of the index `due`: an event whose delivery should have been enqueued at `since`.

    `at` is the entry's sort key, which changes when the event is postponed.
    """

    id: str
    merchant: str
    at: datetime
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A webhook receiver's response: status and beginning of the body, or otherwise the error.

    If the response is a redirect, `error` is the URL to which it leads.
    """

    status: int | None = None
    error: str | None = None
    answer: str | None = None
    retry_after: timedelta | None = None


class Receivers(Protocol):
    """Send to merchants' webhook endpoints."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Receipt:
        """Send one request, within TIMEOUT (webhooks/record.py). Report failures in the Receipt."""
        ...


class Hosts(Protocol):
    """Resolve host names before an address is saved."""

    def permitted(self, host: str) -> bool:
        """Return whether the name resolves, and only to public addresses."""
        ...


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """A message: attempt to deliver this event in `delay` seconds (0 to 900).

    `merchant` is the queue's message group, so that a merchant with many events does not delay the
    events of other merchants.
    """

    event: str
    merchant: str
    delay: int = 0


class EventQueue(Protocol):
    """Queue due events for the webhook sender. If a message is lost, the sweep finds its event."""

    def enqueue(self, messages: Sequence[QueuedEvent]) -> None:
        """Send the messages, best effort; never raises."""
        ...


class CompletionPolicy(StrEnum):
    """The evidence that completes a session (decisions.md "completed means paid")."""

    RECEIVED = "received"  # the merchant's own incoming payment shows the money
    INSTRUCTED = "instructed"  # the customer's wallet accepted the payment


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """A task: cancel a grant that a session no longer needs, at the customer's wallet.

    `identity` is the number of the merchant's client identity (`Merchant.as_of`) to which
    `auth_server` issued the grant. `grant` is encrypted, and can be decrypted only for this
    session.
    """

    session: str
    merchant: str
    auth_server: str
    grant: str = field(repr=False)
    identity: int | None = None


class TaskQueue(Protocol):
    """Send tasks to the function that calls wallets.

    A lost message does no harm, because grants expire.
    """

    def clean_up(self, cleanup: Cleanup) -> None:
        """Send the task, best effort and quickly; never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Email:
    """An e-mail with a text part and an HTML part. Replies go to `reply_to`."""

    to: str
    subject: str
    text: str
    html: str
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """The content of an e-mail to a member: how many cases of each kind need a person.

    `needs` and `settings` are the URLs of pages of the dashboard. The notice names no order,
    customer, key or server address, because e-mail passes many machines that can read it.
    """

    to: str
    language: str
    shop: str
    counts: tuple[tuple[str, int], ...]
    needs: str
    settings: str


WriteNotice = Callable[[Notice], Email]
WriteAcknowledgement = Callable[[Session, Merchant, Withdrawal, CustomerDetails], Email]


class Mail(Protocol):
    """Send e-mails from the address that the operator has set."""

    def send(self, letter: Email) -> None:
        """Send the e-mail, once. Raises MailRefused."""
        ...
