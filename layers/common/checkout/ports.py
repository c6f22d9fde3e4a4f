"""What the flows need of the outside world, as protocols. `wiring.py` decides what stands behind
each.

A store that does not answer raises `errors.Unavailable`. A conditional write that lost raises
`StaleSession` with the winner on it; the loser decides anew from that, and never repeats its write
blindly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from checkout.domain.audit import AuditEntry
from checkout.domain.merchant import ApiKey, Merchant
from checkout.domain.session import Session
from checkout.domain.sign_in import SignIn
from checkout.domain.tally import DayTally
from checkout.domain.transitions import Change
from checkout.domain.webhooks import WebhookEvent

if TYPE_CHECKING:  # not loaded by functions that speak to no wallet
    from checkout.open_payments.client import OpenPayments
    from checkout.open_payments.tokens import TokenKeeper


class CompletionPolicy(StrEnum):
    """What completes a session: money seen at the merchant, or the wallet's word (decisions.md
    "completed means paid").
    """

    RECEIVED = "received"
    INSTRUCTED = "instructed"


class Clock(Protocol):
    """The only clock. `now` is aware UTC in whole milliseconds, as it is stored."""

    def now(self) -> datetime: ...

    def sleep(self, seconds: float) -> None: ...


class RandomBytes(Protocol):
    """Cryptographically strong random bytes."""

    def __call__(self, size: int, /) -> bytes: ...


class StaleSession(Exception):  # noqa: N818 - says what happened
    """The session is no longer as it was read; `current` is the winner's version."""

    def __init__(self, current: Session) -> None:
        super().__init__(f"session is at version {current.version}")
        self.current = current


class StaleMerchant(Exception):  # noqa: N818 - says what happened
    """The merchant is no longer as it was read; `current` is the winner's version."""

    def __init__(self, current: Merchant) -> None:
        super().__init__(f"merchant is at version {current.version}")
        self.current = current


class StaleEvent(Exception):  # noqa: N818 - says what happened
    """The event is no longer as it was read; `current` is the winner's version."""

    def __init__(self, current: WebhookEvent) -> None:
        super().__init__(f"event is at version {current.version}")
        self.current = current


@dataclass(frozen=True, slots=True)
class Reservation:
    """A request's idempotency record: the answer to give again. `key` is a hash over merchant and
    header value.

    `writer` marks the write. `expires_at` is 24 h after first use; from then on the key is free.
    """

    key: str
    fingerprint: str
    status: int
    body: str
    writer: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SessionPage:
    """`next_key` continues after the last session looked at, or None at the end."""

    sessions: tuple[Session, ...]
    next_key: str | None


class Sessions(Protocol):
    """checkout_sessions, with the idempotency keys and events that are written in the same
    transactions.
    """

    def create(self, session: Session, reservation: Reservation | None) -> Reservation | None:
        """Write both or neither. None: written by us. A Reservation: the live record that holds the
        key already (then nothing was written). An expired record is replaced.
        """
        ...

    def get(self, session_id: str) -> Session | None:
        """A strongly consistent read."""
        ...

    def save(self, change: Change, event: WebhookEvent | None = None) -> Session:
        """Write the change, with the event in the same transaction, on the change's condition.

        Returns the session as written. A write of ours whose answer was lost counts as written.
        Raises StaleSession.
        """
        ...

    def page(
        self,
        merchant: str,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None,
        created_before: datetime | None,
        search: str | None = None,
    ) -> SessionPage:
        """A merchant's sessions, newest first by (created_at, id). `after` is a `next_key` from
        before. With `search` only those with that wallet, or that value in their metadata
        (domain/search.py), from an index that lags a little behind.
        """
        ...

    def due(self, now: datetime, *, limit: int) -> tuple[str, ...]:
        """The ids of up to `limit` sessions that owe something since `now` or before, the longest
        due first.

        From an index that lags a little behind: read each session before acting on it.
        """
        ...


@dataclass(frozen=True, slots=True)
class MerchantPage:
    """`next_key` continues after the last merchant looked at, or None at the end."""

    merchants: tuple[Merchant, ...]
    next_key: str | None


class Merchants(Protocol):
    """merchants and api_keys."""

    def add(self, merchant: Merchant, key: ApiKey) -> Merchant | None:
        """Write both. None: written. A Merchant: the one that has this wallet address already;
        nothing written.
        """
        ...

    def replace(self, merchant: Merchant) -> None:
        """Write a merchant's record anew, on condition that the one before it is stored (`version`
        less one). Raises StaleMerchant.
        """
        ...

    def get(self, merchant_id: str) -> Merchant | None: ...

    def find_by_wallet(self, wallet_address: str) -> Merchant | None: ...

    def page(self, *, limit: int, after: str | None = None) -> MerchantPage:
        """All merchants, in no order that means anything; one that comes or changes meanwhile may
        be missed. `after` is a `next_key` from before. For the operator's commands: it reads the
        table.
        """
        ...

    def add_key(self, key: ApiKey) -> None: ...

    def find_key(self, key_hash: str) -> ApiKey | None: ...

    def touch_key(self, key: ApiKey, now: datetime) -> None:
        """Note the key's use, at most once a minute, best effort: it never fails a request."""
        ...


class ApiKeys(Protocol):
    """api_keys as their merchant looks after them. `merchant` is as it was read: with another
    version in the store nothing is written. False: something has changed meanwhile.
    """

    def of(self, merchant_id: str) -> tuple[ApiKey, ...]:
        """All of them in no order, from an index that lags a little behind."""
        ...

    def add(self, key: ApiKey, merchant: Merchant) -> bool: ...

    def roll(self, ended: ApiKey, new: ApiKey, merchant: Merchant) -> bool:
        """Write both: `ended` was lasting."""
        ...

    def revoke(self, revoked: ApiKey, kept: ApiKey) -> bool:
        """Write `revoked`, which was not, provided that `kept` is lasting."""
        ...

    def settle(self, merchant: Merchant, keys: Sequence[ApiKey]) -> None:
        """`Merchants.replace`, and its return hosts written to these keys, or nothing. Raises
        StaleMerchant.
        """
        ...


@dataclass(frozen=True, slots=True)
class DueEvent:
    """An event that is owed an attempt since `since`, as the due index has it. `at` is its place
    there, which putting off moves.
    """

    id: str
    merchant: str
    at: datetime
    since: datetime


@dataclass(frozen=True, slots=True)
class EventPage:
    """`next_key` continues after the last event looked at, or None at the end."""

    events: tuple[WebhookEvent, ...]
    next_key: str | None


class Events(Protocol):
    """webhook_events; those of sessions come into it with `Sessions.save`."""

    def add(self, event: WebhookEvent) -> None:
        """A new event that belongs to no session."""
        ...

    def get(self, event_id: str) -> WebhookEvent | None:
        """A strongly consistent read."""
        ...

    def save(self, event: WebhookEvent) -> None:
        """Write the event anew, on condition that the one before it is stored (`version` less one).
        Raises StaleEvent.
        """
        ...

    def due(self, until: datetime, *, limit: int) -> tuple[DueEvent, ...]:
        """Up to `limit` events that are owed an attempt by `until`, the longest due first. From an
        index that lags a little behind.
        """
        ...

    def put_off(self, event: DueEvent, until: datetime) -> bool:
        """Have the due index name the event only from `until` on. False where it was dealt with or
        put off meanwhile.
        """
        ...

    def page(
        self,
        merchant: str,
        *,
        limit: int,
        after: str | None = None,
        created_from: datetime | None = None,
    ) -> EventPage:
        """A merchant's events, newest first. `after` is a `next_key` from before."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a receiver said: a status with the first bytes of its answer, or why there is none."""

    status: int | None = None
    error: str | None = None
    answer: str | None = None
    retry_after: timedelta | None = None


class Receivers(Protocol):
    """Merchants' webhook endpoints."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Receipt:
        """Send once, within `domain.webhooks.TIMEOUT`; never raises for what the receiver does."""
        ...


class Hosts(Protocol):
    """Where names lead, asked before an address is saved."""

    def permitted(self, host: str) -> bool:
        """Whether the name leads to public addresses alone; False also where it leads nowhere."""
        ...


class Database(Protocol):
    """What health asks."""

    def ping(self) -> bool:
        """True when the data store answers within a second or so; never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Hint:
    """Attempt this event in `delay` seconds (0..900). `merchant` is for the queue's fairness."""

    event: str
    merchant: str
    delay: int = 0


class EventQueue(Protocol):
    """The queue is a hint, the record is the truth: a lost hint is swept up later."""

    def hint(self, hints: Sequence[Hint]) -> None:
        """Best effort; never raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What a session held at its wallets and needs no more, from its record as it was before.

    `grant` stays sealed under the session's id; it is the customer's, at `auth_server`.
    `incoming_payment` is the merchant's, and nothing may be paid to it any more.
    """

    session: str
    merchant: str
    auth_server: str | None = None
    grant: str | None = field(default=None, repr=False)
    incoming_payment: str | None = None


class TaskQueue(Protocol):
    """What is done outside of a request, by the function that speaks to wallets. What is lost of it
    runs out at the wallets by itself.
    """

    def tidy(self, leftovers: Leftovers) -> None:
        """Best effort, and quickly; never raises."""
        ...


class Vault(Protocol):
    """Seals secrets for storage. `place` names table, record and field: a ciphertext opens nowhere
    else.
    """

    def seal(self, plain: str, *, place: tuple[str, str, str]) -> str: ...

    def open(self, sealed: str, *, place: tuple[str, str, str]) -> str:
        """Raises `errors.Unavailable` when the key cannot be had, ValueError when the ciphertext is
        not of this place.
        """
        ...

    def is_current(self, sealed: str) -> bool:
        """Whether it was sealed under the key that `seal` uses now. Raises `errors.Unavailable`."""
        ...


class Wallets(Protocol):
    """Open Payments clients, each within one deadline for all its calls together."""

    @property
    def tokens(self) -> TokenKeeper:
        """The non-interactive grants, kept per merchant and authorization server."""
        ...

    def client(self, merchant: Merchant, *, deadline: datetime) -> OpenPayments:
        """Signs as `merchant`. Raises `errors.Unavailable` when the key cannot be had."""
        ...

    def anonymous(self, *, deadline: datetime) -> OpenPayments:
        """For what needs no signature: wallet addresses and their keys."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What every flow may use. `base_url` has no trailing slash."""

    clock: Clock
    random_bytes: RandomBytes
    sessions: Sessions
    merchants: Merchants
    database: Database
    base_url: str
    queue: EventQueue
    tasks: TaskQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class PayServices(Services):
    """What the flows that speak to wallets use besides."""

    vault: Vault
    wallets: Wallets
    events: Events
    tallies: Tallies
    completion_policy: CompletionPolicy
    allow_loopback: bool = False


class Tallies(Protocol):
    """What a merchant's days came to, counted after the fact."""

    def uncounted(self, until: datetime, *, limit: int) -> tuple[Session, ...]:
        """Up to `limit` sessions that ended by `until` and are not counted yet, the longest ended
        first.
        """
        ...

    def count(self, tallies: Sequence[DayTally], sessions: Sequence[Session]) -> bool:
        """Add to the days and mark the sessions as counted, or neither. False: another round has
        counted one of them.
        """
        ...

    def days(self, merchant: str, currency: str, days: Sequence[date]) -> tuple[DayTally, ...]:
        """What these days, at most 100, have come to so far, in their order."""
        ...


class SignIns(Protocol):
    """Browsers that are signed in to the dashboard, and how often that was tried. All of it is
    short-lived.
    """

    def add(self, sign_in: SignIn) -> None: ...

    def get(self, sign_in_id: str) -> SignIn | None:
        """A strongly consistent read."""
        ...

    def seen(self, sign_in: SignIn, now: datetime) -> None:
        """Note that it is in use, best effort: it never fails a request."""
        ...

    def end(self, sign_in_id: str) -> None:
        """From the next request on, it is none any more."""
        ...

    def attempt(self, counter: str, *, limit: int, until: datetime) -> bool:
        """Count one more attempt. False, and not counted: there were `limit` already. `counter`
        names also the time that it counts, which is over at `until`.
        """
        ...


@dataclass(frozen=True, slots=True)
class AuditPage:
    """`next_key` continues after the last entry, or None at the end."""

    entries: tuple[AuditEntry, ...]
    next_key: str | None


class Audit(Protocol):
    """Who did what in the dashboard."""

    def add(self, entry: AuditEntry) -> None: ...

    def page(self, merchant: str, *, limit: int, after: str | None) -> AuditPage:
        """A merchant's entries, newest first. `after` is a `next_key` from before."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardServices(Services):
    """What the dashboard's flows use besides."""

    events: Events
    tallies: Tallies
    sign_ins: SignIns
    audit: Audit
    api_keys: ApiKeys
    endpoints: EndpointServices


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderServices:
    """What the flow that delivers events uses."""

    clock: Clock
    random_bytes: RandomBytes
    merchants: Merchants
    events: Events
    queue: EventQueue
    vault: Vault
    receivers: Receivers


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointServices:
    """What the flows use by which a merchant looks after its webhooks. `allow_loopback` is for
    development.
    """

    clock: Clock
    random_bytes: RandomBytes
    merchants: Merchants
    events: Events
    queue: EventQueue
    vault: Vault
    hosts: Hosts
    allow_loopback: bool = False
