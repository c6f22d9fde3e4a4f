"""Decide when wallets are asked about a payment in flight, and when the wait for its money ends.

A payment is in flight after it was instructed and before it is decided. After the wait comes the
fence: the incoming payment is closed and, after the time FENCE, read once more, so that it is
certain how much has arrived (domain/session/transitions.py).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import FENCE, Attention, InFlight
from checkout.flows.payment.writes import move
from checkout.services import Services

R = TypeVar("R", bound=InFlight)

# A wallet that keeps a check waiting for this long is treated as hanging.
HUNG: Final = timedelta(seconds=3)
# After a time-out, the pause before the wallet is asked again is as long as the payment has been in
# doubt so far, within these bounds.
HUNG_LEAST: Final = timedelta(minutes=1)
HUNG_MOST: Final = timedelta(hours=1)
# The wait ends this long after an expiry. This covers differences between the clocks of the servers
# that check the expiry, and packets of money that are still under way.
WAIT_MARGIN: Final = timedelta(seconds=30)
# A quote without an expiry holds a session for this long after the payment was sent.
ENDLESS_QUOTE: Final = timedelta(minutes=10)
# Seconds between checks of one payment, by the number of checks so far; the last value repeats. It
# is below a minute, because the scheduled sweep runs each minute, and shall find the payment due.
BACKOFF: Final = (2, 2, 2, 3, 5, 8, 13, 20, 30, 50)
# A payment that is undecided for this long is shown to the merchant, and checked only at this
# interval.
UNDECIDED_AFTER: Final = timedelta(hours=1)
# About the number of checks in one hour. If no payment was sent, the number of checks so far shows
# how long the outcome has been in doubt.
CHECKS_AN_HOUR: Final = 80


def due(record: InFlight, now: datetime) -> bool:
    """Return whether to ask the wallets now, about a payment in flight or for an ended record."""
    owes = record.payment_in_flight or record.terminal
    return owes and record.check_at is not None and record.check_at <= now


def may_ask(record: InFlight, now: datetime, within: timedelta) -> bool:
    """Return whether the payer's wallet may be asked now.

    The pause after a time-out must be over, and the time `within` must be positive.
    """
    rested = record.hung_until is None or now >= record.hung_until
    return rested and within > timedelta(0)


def note_if_hung(services: Services, record: R, begun: datetime) -> R:
    """Store that the payer's wallet hung, if the calls since `begun` took at least HUNG."""
    now = services.clock.now()
    if now < begun + HUNG:
        return record
    sent = record.instruction.deadline if record.instruction is not None else now
    pause = min(max(now - sent, HUNG_LEAST), HUNG_MOST)
    return move(services, record, Event.CHECKED, hung_until=now + pause)


def close_when_waited(services: Services, record: R, *, completed: bool) -> R:
    """Begin the fence if the wait is over, never before.

    The wait ends early if the incoming payment is `completed` with too little money, because then
    no further payment can begin to arrive, even if the quote has not expired.
    """
    if not completed and services.clock.now() < wait_until(record):
        return record
    return start_closing(services, record)


def start_closing(services: Services, record: R) -> R:
    """Begin the fence; the next check is due at once."""
    now = services.clock.now()
    return move(services, record, Event.CLOSING_STARTED, closing_at=now, check_at=now)


def wait_until(record: InFlight) -> datetime:
    """Return the time from which no payment of this instruction can begin any more.

    The time is WAIT_MARGIN after the quote or the incoming payment expires, whichever is first.
    Exception: once a part of the money has arrived, only the expiry of the incoming payment counts,
    because the rest can arrive until then.
    """
    ends = [record.incoming_payment_ends_at]
    if not record.received:
        if record.quote is not None and record.quote.expires_at is not None:
            ends.append(record.quote.expires_at)
        elif record.instruction is not None:
            ends.append(record.instruction.deadline + ENDLESS_QUOTE)
    return min(ends) + WAIT_MARGIN


def certain_by(record: InFlight) -> datetime:
    """Return when it is certain how much has arrived, provided that the wallets answer.

    The fence follows the wait. A minute is added for the checks, and the sum is rounded up to whole
    minutes.
    """
    ends = wait_until(record) + FENCE + timedelta(minutes=2)
    return ends.replace(second=0, microsecond=0)


def next_check(record: InFlight, now: datetime) -> dict[str, Any]:
    """Return the fields that schedule a payment's next check, if the present one decides nothing.

    The intervals grow, but a check is always due when the wait ends and when the fence ends.
    """
    attention = record.attention
    pause = timedelta(seconds=BACKOFF[min(record.checks, len(BACKOFF) - 1)])
    if record.instruction is not None and now >= record.instruction.deadline + UNDECIDED_AFTER:
        pause = UNDECIDED_AFTER
        attention = attention or Attention.UNDECIDED
    elif record.instruction is None and record.checks >= CHECKS_AN_HOUR:
        pause = UNDECIDED_AFTER
    check_at = now + pause
    if record.closed_at is not None:
        check_at = max(check_at, record.closed_at + FENCE)
    elif record.closing_at is None and now < wait_until(record):
        check_at = min(check_at, wait_until(record))
    return {"check_at": check_at, "checks": record.checks + 1, "attention": attention}
