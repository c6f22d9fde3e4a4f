"""Run one round of the sweep: check each due session, payments in doubt before all others.

A round runs once a minute. The index of due sessions is divided into parts, the shards, so that
rounds can run in parallel, each for a range of them. All writes are conditional, so a round can run
at the same time as another round, any handler and the customer's open page. If two of them write
the same session at the same time, only the first write succeeds, and the other process leaves the
session alone. Checks run in parallel, and a failing record or a hanging provider does not stop the
other checks. This module itself decides nothing about sessions: `write_clock` writes what follows
from the time alone, such as an expiry, and `reconcile` decides about payments in doubt.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from checkout.domain.ground.errors import cause
from checkout.domain.ground.ids import (
    MANDATE,
    REFUND,
    SESSION,
    SUBSCRIBER,
    WITHDRAWAL,
    kind_of,
    session_ref,
)
from checkout.domain.payment.events import Event
from checkout.domain.refund.record import Refund, RefundStatus
from checkout.domain.session.record import Session
from checkout.flows import notices
from checkout.flows.payment import mandates
from checkout.flows.payment import schedule as payment_schedule
from checkout.flows.payment.writes import move
from checkout.flows.refund import budget
from checkout.flows.refund import reconcile as refunds
from checkout.flows.session import reconcile, withdrawals
from checkout.flows.session.lookup import write_clock
from checkout.flows.session.reconcile import Checked
from checkout.flows.webhooks import deliver
from checkout.ports import WHOLE, Clock, DueEvent, DueSessions, ShardRange, StaleRecord
from checkout.services import PayServices
from open_payments.urls import authority

T = TypeVar("T")

NAMED_MAX: Final = 2_000  # due sessions read of each shard, more than a round has time to check
MERCHANT_WITHIN: Final = timedelta(seconds=10)  # for all calls to a merchant's wallet in one check
CUSTOMER_WITHIN: Final = timedelta(seconds=5)
PAYER_WITHIN: Final = timedelta(seconds=2)  # for reading the payment's URL after the money arrived
SLOW: Final = timedelta(seconds=5)  # a check that takes longer means that a provider hangs
AT_ONE_PROVIDER: Final = 12  # checks at a time, so that threads are left for other providers
# The shares of the remaining time that the steps of a round may take. The final step gets the rest.
PAYMENTS: Final = 0.6
EVENTS: Final = 0.25
CUSTOMERS: Final = 0.5
NO_TIME: Final = timedelta(0)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """The counts of one round.

    `moved` counts, by event, the sessions that changed; a session with several events is counted
    once, by the newest. `failed` counts the checks that raised an error and will be retried.
    `not_reached` counts the due sessions that this round did not reach. Among payments in doubt,
    `oldest_payment` is the longest time for which a check has been due. `enqueued` counts the
    webhook events that were due, and `longest_due` is how long the oldest of them was due.
    """

    checked: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    needs_attention: int = 0
    not_reached: int = 0
    oldest_payment: timedelta = timedelta(0)
    enqueued: int = 0
    longest_due: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class SweepKind:
    """The functions that read and check the records of one kind. A check has two halves.

    `begin` asks the merchant's wallet. `finish` asks the customer's wallet, within the given time.
    """

    get: Callable[[PayServices, str], Any]
    begin: Callable[[PayServices, Any], Checked]
    finish: Callable[[PayServices, Checked, timedelta], Any] = lambda _, checked, __: (
        checked.session
    )


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one record, and its result so far."""

    kind: SweepKind
    before: Any
    checked: Checked


def run(services: PayServices, *, until: datetime, part: ShardRange = WHOLE) -> Counts:
    """Check the due sessions of some shards, longest due first. Begin no check after `until`.

    1. The merchants' wallets are asked about all payments in doubt, because only the answers of
       these wallets complete a session.
    2. Due webhook events are enqueued.
    3. The customers' wallets, which strangers choose, are asked.
    4. The other sessions are checked: expired ones, and ended ones that are still to be closed.

    Each of these steps ends early enough to leave time for the next one.

    Raises Unavailable if the index cannot be read.
    """
    counts = Counts()
    now = services.clock.now()
    round_ = _Round(services, counts)
    events = _due_events(services, now, part, counts)  # before this round creates new ones
    try:
        first = _due(services, now, part, urgent=True)
        if first.oldest is not None:
            counts.oldest_payment = now - first.oldest
        in_doubt = round_.check(first.ids, _part(services.clock, until, PAYMENTS))
    finally:
        _enqueue(services, events, _part(services.clock, until, EVENTS), counts)
    round_.finish(in_doubt, _part(services.clock, until, CUSTOMERS))
    later = _due(services, now, part, urgent=False)
    others = round_.check(later.ids, until)
    round_.finish(others, until)
    counts.not_reached = first.total + later.total - round_.reached
    return counts


def in_time(clock: Clock, until: datetime, items: Iterable[T]) -> Iterator[T]:
    """Yield the items, but none after the time `until`."""
    for item in items:
        if clock.now() >= until:
            return
        yield item


class _Round:
    """The checks of a round, which run in parallel, and the state of the providers."""

    def __init__(self, services: PayServices, counts: Counts) -> None:
        self._services = services
        self._counts = counts
        self._lock = threading.Lock()
        self._hanging: set[str] = set()
        self._busy: Counter[str] = Counter()
        self.reached = 0

    def check(self, ids: Sequence[str], until: datetime) -> list[Check]:
        """Check these records, and ask the merchants' wallets about them.

        Records at a hanging or busy provider are checked last.
        """
        put_off: list[tuple[str, str]] = []
        found = self._all(lambda each: self._check(each, put_off), ids, until)
        put_off.sort(key=lambda each: each[0] in self._hanging)
        found += self._all(lambda each: self._check(each[1], None), put_off, until)
        return [each for each in found if each is not None]

    def finish(self, checks: Sequence[Check], until: datetime) -> None:
        """Ask the customers' wallets that are still to be asked, and count the results.

        If no time is left for a customer's wallet, the answer of the merchant's wallet decides.
        """
        self._services.run_concurrently(lambda check: self._finish(check, until), checks)

    def _all(
        self, do: Callable[[T], Check | None], items: Iterable[T], until: datetime
    ) -> list[Check | None]:
        return self._services.run_concurrently(do, in_time(self._services.clock, until, items))

    def _check(self, record_id: str, put_off: list[tuple[str, str]] | None) -> Check | None:
        """Check one record. Return None if nothing is left to do, or if the check was `put_off`."""
        services = self._services
        try:
            kind = _KINDS[kind_of(record_id)]
            before = kind.get(services, record_id)
            place = ""  # the provider that will be asked
            if before is not None and payment_schedule.due(before, services.clock.now()):
                place = authority(before.incoming_payment.id) if before.incoming_payment else ""
            if not self._enter(place, wait=put_off is None):
                assert put_off is not None
                put_off.append((place, record_id))
                return None
            with self._lock:
                self.reached += 1
            if before is None:  # deleted, but still in the index
                return None
            return Check(kind, before, self._begin(kind, before, place))
        except Exception as error:  # noqa: BLE001 - a damaged record must not stop the others
            self._failed(error, record_id)
            return None

    def _begin(self, kind: SweepKind, record: Any, place: str) -> Checked:
        begun = self._services.clock.now()
        try:
            return kind.begin(self._services, record)
        except StaleRecord as stale:
            return Checked(stale.current)
        finally:
            self._leave(place, begun)

    def _finish(self, check: Check, until: datetime) -> None:
        services, before, after = self._services, check.before, check.checked.session
        asked = after.customer if check.checked.seen is not None else None
        place = authority(asked.resource_server) if asked else ""
        begun = services.clock.now()
        time_left = begun < until and place not in self._hanging
        try:
            within = CUSTOMER_WITHIN if time_left else NO_TIME
            after = check.kind.finish(services, check.checked, within)
        except StaleRecord as stale:
            after = stale.current
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error, before.id)
            return
        finally:
            self._leave(place, begun)
        with self._lock:
            self._counts.checked += 1
            self._counts.needs_attention += after.attention is not None
            if after.history != before.history:
                self._counts.moved[after.history[-1].event] += 1

    def _enter(self, place: str, *, wait: bool) -> bool:
        """Note that a check begins at a provider. Return False if the check should be put off."""
        with self._lock:
            full = self._busy[place] >= AT_ONE_PROVIDER or place in self._hanging
            if place and full and not wait:
                return False
            self._busy[place] += 1
            return True

    def _leave(self, place: str, begun: datetime) -> None:
        """Note that a check has ended, and whether its provider hangs."""
        with self._lock:
            self._busy[place] -= 1
            if place and self._services.clock.now() - begun >= SLOW:
                self._hanging.add(place)

    def _failed(self, error: Exception, record_id: str) -> None:
        # Neither the error's text nor the id is logged, because anyone with a session's id can open
        # its page and pay.
        logger.warning(
            "reconciling a due session failed, will retry: %s",
            place_of(error),
            extra={"session": session_ref(record_id)},
        )
        with self._lock:
            self._counts.failed += 1


def _begin_session(services: PayServices, session: Session) -> Checked:
    """Write what follows from the time (`write_clock`), and ask the merchant's wallet if due."""
    session = write_clock(services, session)
    if session.awaits_look:  # no process works on the session, which waits for customer or expiry
        looked = session.updated_at  # unchanged: the customer's page looks again a minute after it
        return Checked(move(services, session, Event.CHECKED, updated_at=looked))
    if not payment_schedule.due(session, services.clock.now()):
        return Checked(session)
    checked = reconcile.ask_merchant(services, session, within=MERCHANT_WITHIN)
    # If the money has arrived, the payer's wallet is asked here and not in `finish`. In `finish`, a
    # slow answer would mark the payer's provider as hanging.
    if checked.paid:
        return Checked(reconcile.ask_customer(services, checked, within=PAYER_WITHIN))
    return checked


def _begin_refund(services: PayServices, refund: Refund) -> Checked:
    """Check a sent refund at both wallets, or pay a refund from the budget.

    This function does both halves of the check.
    """
    after: Any = refunds.step(services, refund, within=MERCHANT_WITHIN)
    if after.status is RefundStatus.NEEDS_APPROVAL:
        after = budget.pay(services, after, within=MERCHANT_WITHIN)
    return Checked(after)


def _whole(step: Callable[[PayServices, Any], Any]) -> Callable[[PayServices, Any], Checked]:
    """Return `step` as the first half of a check that has no second half."""
    return lambda services, record: Checked(step(services, record))


_KINDS: Final[Mapping[str, SweepKind]] = {
    SESSION: SweepKind(
        get=lambda services, session_id: services.sessions.get(session_id),
        begin=_begin_session,
        finish=lambda services, checked, within: reconcile.ask_customer(
            services, checked, within=within
        ),
    ),
    REFUND: SweepKind(
        get=lambda services, refund_id: services.refunds.get(refund_id),
        begin=_begin_refund,
    ),
    MANDATE: SweepKind(
        get=lambda services, mandate_id: services.mandates.get(mandate_id),
        # renews the token of a mandate, long before the provider deletes the token
        begin=_whole(partial(mandates.step, within=MERCHANT_WITHIN)),
    ),
    SUBSCRIBER: SweepKind(
        get=lambda services, subscriber_id: services.subscribers.get(subscriber_id),
        begin=_whole(notices.look),  # sends a member the new cases
    ),
    WITHDRAWAL: SweepKind(
        get=lambda services, row_id: services.withdrawals.get(row_id.partition("#")[2]),
        # sends the acknowledgement of a withdrawal, if an earlier try has failed
        begin=_whole(withdrawals.acknowledge_if_due),
    ),
}


def _due(services: PayServices, now: datetime, part: ShardRange, *, urgent: bool) -> DueSessions:
    return services.sessions.due(
        now, urgent=urgent, limit=NAMED_MAX, run_concurrently=services.run_concurrently, part=part
    )


def _part(clock: Clock, until: datetime, share: float) -> datetime:
    """Return when this share of the time from now to `until` ends."""
    now = clock.now()
    return now + max(until - now, NO_TIME) * share


def _due_events(
    services: PayServices, now: datetime, part: ShardRange, counts: Counts
) -> Sequence[DueEvent]:
    """Return the webhook events that are due, or none if they cannot be read."""
    try:
        return deliver.due_events(services.events, now, services.run_concurrently, part)
    except Exception as error:  # noqa: BLE001 - the sessions are still checked
        logger.warning("reading due webhook events failed, will retry: %s", place_of(error))
        counts.failed += 1
        return ()


def _enqueue(
    services: PayServices, events: Sequence[DueEvent], until: datetime, counts: Counts
) -> None:
    try:
        due = deliver.enqueue_due(
            services.events,
            services.queue,
            services.clock,
            services.run_concurrently,
            events,
            until=until,
        )
        counts.enqueued, counts.longest_due = due.enqueued, due.longest
    except Exception as error:  # noqa: BLE001 - as above
        logger.warning("enqueueing due webhook events failed, will retry: %s", place_of(error))
        counts.failed += 1


def place_of(error: Exception) -> str:
    """Return the error's type, the function and line that raised it, and its cause."""
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}"
    return f"{type(error).__name__} at {place} ({cause(error)})"
