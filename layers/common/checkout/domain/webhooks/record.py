"""Webhook events: bodies, delivery attempts, retry schedule.

This module has only the rules; `flows/webhooks/deliver.py` makes the attempts.
Source: spec.md "Events", decisions.md "Webhooks". Times are aware UTC datetimes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from checkout.domain.ground.ids import SESSION, kind_of
from checkout.domain.ground.json_values import compact
from checkout.domain.webhooks.event_types import BESIDE, OPTIONAL, PING, stripe_name

if TYPE_CHECKING:
    from checkout import answers

ENDPOINTS_MAX: Final = 8  # of a merchant

# The delays after failed attempts (decisions.md "Webhooks").
DELAYS: Final = (
    timedelta(seconds=1),
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
ATTEMPTS_MAX: Final = len(DELAYS) + 1
TIMEOUT: Final = timedelta(seconds=10)
# A process holds this lease while it sends an event. No attempt can take longer, so an older lease
# belongs to a process that has died.
LEASE: Final = timedelta(seconds=30)
RETRY_AFTER_MAX: Final = timedelta(hours=24)
# The sweep (the scheduled job) does not enqueue an event that is younger than this, because the
# message for its first attempt is already in the queue.
FIRST_MESSAGE: Final = timedelta(minutes=1)
KEPT: Final = timedelta(days=30)  # after the last attempt; until then the event can be sent again
ANSWER_MAX: Final = 1024  # bytes of each answer in the delivery log
DELIVERIES_MAX: Final = 50
COPY_MARK: Final = "~"  # between the ids of the event and of the endpoint, in a copy's id
_MILLISECOND: Final = timedelta(milliseconds=1)
_JITTER_FROM: Final = timedelta(minutes=1)  # shorter delays are not varied
_JITTER: Final = 0.09  # below the documented 10 %, which leaves room for delays of the queue


class Format(StrEnum):
    """The form of the bodies that an endpoint gets."""

    NATIVE = "native"  # seven fields of the session
    STRIPE = "stripe"  # an event as Stripe's libraries read it (domain/stripe/objects.py)


class EventStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    EXHAUSTED = "exhausted"


class GivenUp(StrEnum):
    """The reason why no more attempts are made."""

    ATTEMPTS = "attempts"  # all attempts were made
    GONE = "gone"  # the endpoint returned 410, which also disabled it
    DISABLED = "disabled"  # the endpoint was already disabled
    NO_ENDPOINT = "no_endpoint"  # the merchant has set no endpoint, or has removed it
    NOT_WANTED = "not_wanted"  # another endpoint requested the event, but the first one did not


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to deliver an event.

    `duration_ms` is None until the attempt has ended. If the process dies, it stays None, and the
    outcome is unknown. `answer` is the beginning of the response body, as text. `error` is the
    reason why there is no status, or the URL to which a redirect leads.
    """

    at: datetime
    duration_ms: int | None = None
    status: int | None = None
    error: str | None = None
    answer: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """A message to one endpoint of the merchant, and the state of its delivery.

    An event is for the merchant's first endpoint. Each further endpoint that requested the event
    gets a copy (`copies`), which has that endpoint's id in `endpoint`. An event that was resent by
    hand has the id of the endpoint that was the first one at the resending. If `endpoint` is None,
    the event is for the first endpoint, provided that this endpoint existed when the event was
    made.

    `body` and `stripe_body`, one for each `Format`, are written when the session changes and then
    stay the same, so every attempt sends the same bytes. `attempts` is the number of attempts in
    this round; resending begins a new round. While the event is pending, no attempt is made before
    `next_at`. `subject` is the id of the record that the event is about (None for a test event),
    and `part` is that record's part of the merchant's lists. If `details_of` is the id of a
    session, the details of that session's customer are added to `stripe_body` when the body is sent
    or read (record_kinds.with_details), unless the details were erased. `writer` is a nonce that
    distinguishes two leases that were taken at the same instant.
    """

    id: str
    merchant: str
    subject: str | None
    type: str
    body: str
    stripe_body: str
    created_at: datetime
    next_at: datetime
    status: EventStatus = EventStatus.PENDING
    version: int = 1
    attempts: int = 0
    deliveries: tuple[Delivery, ...] = ()
    ended_at: datetime | None = None
    given_up: GivenUp | None = None
    writer: str = ""
    part: int = 0
    endpoint: str | None = None
    details_of: str | None = None

    @property
    def event(self) -> str:
        """The id that the receiver gets, which for a copy is the id of the original event."""
        return self.id.partition(COPY_MARK)[0]

    @property
    def session(self) -> str | None:
        """The id of the session that the event is about, if any."""
        about = self.subject
        return about if about and kind_of(about) == SESSION else None

    @property
    def is_copy(self) -> bool:
        return COPY_MARK in self.id

    @property
    def in_vain(self) -> bool:
        """Whether the delivery was given up although an endpoint requested the event."""
        return self.given_up not in (None, GivenUp.NO_ENDPOINT, GivenUp.NOT_WANTED)

    @property
    def undelivered(self) -> bool:
        """Whether an endpoint that requested the event has not received it."""
        return self.status is EventStatus.PENDING or self.in_vain

    @property
    def due_at(self) -> datetime:
        """Return when the sweep should enqueue the event, if it is pending."""
        return max(self.next_at, self.created_at + FIRST_MESSAGE)

    def body_for(self, endpoint: Endpoint) -> str:
        """Return the bytes that this endpoint gets."""
        if endpoint.format is not Format.STRIPE:
            return self.body
        if endpoint.api_version is None:
            return self.stripe_body
        return compact(json.loads(self.stripe_body) | {"api_version": endpoint.api_version})

    def for_endpoints(self, number: int) -> WebhookEvent:
        """Return the event with the number of receiving endpoints in the body of Stripe's form."""
        if number < 2:
            return self
        told = json.loads(self.stripe_body) | {"pending_webhooks": number}
        return replace(self, stripe_body=compact(told))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecret:
    """A signing secret.

    `sealed` is ciphertext. Events are signed with the secret until `expires_at`; the newest secret
    has no end.
    """

    sealed: str = field(repr=False)
    created_at: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A URL of the merchant, the optional events (`events`) sent to it, and its secrets.

    The secrets are sorted, newest first. If `asked` lists types, by their names in the endpoint's
    form, the endpoint gets only these types; `*` means every type. Bodies in Stripe's form have the
    `api_version` that the endpoint's client expects. `set_by` is the id of the key or member who
    has set the URL, and `set_at` is the time; both are None if the operator has set the URL. If the
    URL was set by a key without the right to read, `withheld` is set, and the endpoint's events
    contain no customers' details.
    """

    id: str
    url: str
    created_at: datetime
    events: tuple[str, ...] = ()
    secrets: tuple[WebhookSecret, ...] = ()
    disabled_at: datetime | None = None
    format: Format = Format.NATIVE
    description: str | None = None
    metadata_json: str = "{}"
    asked: tuple[str, ...] | None = None
    api_version: str | None = None
    set_by: str | None = None
    set_at: datetime | None = None
    withheld: int | None = None  # 1 if customers' details are withheld

    def wants(self, event_type: str) -> bool:
        if event_type in BESIDE and self.format is not Format.STRIPE:
            return False
        if self.asked:
            # The endpoint may have had another form when the types were chosen. `events` contains
            # the types that the names in `asked` meant at that time.
            names = {"*", event_type}
            if self.format is Format.STRIPE:
                names.add(stripe_name(event_type))
            return event_type in self.events or not names.isdisjoint(self.asked)
        return event_type not in OPTIONAL or event_type in self.events

    def was_there(self, at: datetime) -> bool:
        """Return whether the endpoint existed at that time."""
        return self.created_at <= at

    def signing(self, now: datetime) -> tuple[WebhookSecret, ...]:
        """Return the secrets in use at `now`, the newest first."""
        return tuple(s for s in self.secrets if s.expires_at is None or now < s.expires_at)


def secret_place(merchant_id: str, further: str | None = None) -> tuple[str, str, str]:
    """Return the place (table, record, field) to which the encryption of the secrets is bound.

    `further` is the id of an endpoint that is not the merchant's first one.
    """
    return ("merchants", merchant_id, f"webhook_secret {further}" if further else "webhook_secret")


def copy_id(event_id: str, endpoint_id: str) -> str:
    """Return the id of the event's copy for an endpoint that is not the first."""
    return f"{event_id}{COPY_MARK}{endpoint_id}"


def copies(event: WebhookEvent, further: Iterable[Endpoint]) -> tuple[WebhookEvent, ...]:
    """Return the copies of a new event, one for each of these endpoints that requested its type.

    A repeated call returns the same copies, so that each copy is stored only once.
    """
    return tuple(
        replace(event, id=copy_id(event.id, endpoint.id), endpoint=endpoint.id)
        for endpoint in further
        if endpoint.wants(event.type) and endpoint.was_there(event.created_at)
    )


def ping_body(event_id: str, *, currency: str) -> str:
    """Return the body of a test event: the seven fields, without a session and a payment."""
    body: answers.Event = {
        "id": event_id,
        "status": PING,
        "amount_total": 0,
        "currency": currency.lower(),
        "metadata": {"test": True},
        "outgoing_payment": None,
        "customer_wallet": None,
    }
    return compact(body)


def may_attempt(event: WebhookEvent, now: datetime) -> bool:
    return event.status is EventStatus.PENDING and now >= event.next_at


def waiting(event: WebhookEvent, now: datetime) -> bool:
    """Return whether the last attempt has failed and the next attempt is not due yet."""
    ended = bool(event.deliveries) and event.deliveries[-1].duration_ms is not None
    return event.status is EventStatus.PENDING and ended and now < event.next_at


def leased(event: WebhookEvent, now: datetime, *, writer: str) -> WebhookEvent:
    """Return the event with one more attempt, which begins at `now`.

    If the attempt's process dies, the next attempt can begin after the lease or the usual delay,
    whichever is longer.
    """
    attempts = event.attempts + 1
    return replace(
        event,
        version=event.version + 1,
        attempts=attempts,
        next_at=now + max(LEASE, _delay(attempts)),
        deliveries=(*event.deliveries, Delivery(at=now))[-DELIVERIES_MAX:],
        writer=writer,
    )


def noted_late(event: WebhookEvent, delivery: Delivery, *, now: datetime) -> WebhookEvent:
    """Record the result of an attempt whose lease has expired.

    A success marks the event as delivered, even if it was given up meanwhile.
    """
    entries = tuple(
        delivery if each.at == delivery.at and each.duration_ms is None else each
        for each in event.deliveries
    )
    noted = replace(event, version=event.version + 1, deliveries=entries)
    if delivery.succeeded and event.status is not EventStatus.DELIVERED:
        return replace(noted, status=EventStatus.DELIVERED, ended_at=now, given_up=None)
    return noted


def ended(
    event: WebhookEvent,
    delivery: Delivery,
    *,
    now: datetime,
    spread: float,
    retry_after: timedelta | None = None,
    gone: bool = False,
) -> WebhookEvent:
    """Record the result of the leased attempt.

    `spread`, from -1 to 1, varies the delay of the next attempt within ±10 %. `retry_after` and
    `gone` (send no more) come from the receiver's response.
    """
    entries = (*event.deliveries[:-1], delivery)
    noted = replace(event, version=event.version + 1, deliveries=entries)
    if delivery.succeeded:
        return replace(noted, status=EventStatus.DELIVERED, ended_at=now)
    if gone or event.attempts >= ATTEMPTS_MAX:
        reason = GivenUp.GONE if gone else GivenUp.ATTEMPTS
        return replace(noted, status=EventStatus.EXHAUSTED, ended_at=now, given_up=reason)
    pause = _delay(event.attempts)
    if pause >= _JITTER_FROM:
        pause += pause * _JITTER * spread // _MILLISECOND * _MILLISECOND  # whole ms, as stored
    if retry_after is not None:
        pause = max(pause, min(retry_after, RETRY_AFTER_MAX))
    return replace(noted, next_at=now + pause)


def given_up(event: WebhookEvent, reason: GivenUp, *, now: datetime) -> WebhookEvent:
    """Return the event with `reason`, after which no more attempts are made."""
    return replace(
        event,
        version=event.version + 1,
        status=EventStatus.EXHAUSTED,
        ended_at=now,
        given_up=reason,
    )


def sent_again(event: WebhookEvent, now: datetime, *, endpoint: str | None = None) -> WebhookEvent:
    """Return the event with a new round of attempts from now on, to `endpoint` if it is given."""
    return replace(
        event,
        version=event.version + 1,
        status=EventStatus.PENDING,
        attempts=0,
        next_at=now,
        ended_at=None,
        given_up=None,
        endpoint=endpoint or event.endpoint,
    )


def _delay(attempts: int) -> timedelta:
    """Return the delay after `attempts` failed attempts."""
    return DELAYS[min(attempts, len(DELAYS)) - 1]
