"""Random histories of a session, in which each thing says to which payment attempt it belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from checkout.domain.session import (
    Attention,
    IncomingPaymentRef,
    Instruction,
    Problem,
    Session,
    Status,
)
from checkout.domain.transitions import TRANSITIONS, Event, advance
from checkout.open_payments.models import Amount, Quote, WalletAddress
from tests.support import NOW, a_session

PROBLEMS = {
    Event.PREPARATION_FAILED: (
        Problem.WALLET_INVALID,
        Problem.WALLET_UNREACHABLE,
        Problem.MERCHANT_WALLET_ERROR,
        Problem.PREPARATION_INTERRUPTED,
    ),
    Event.APPROVAL_LOST: (Problem.APPROVAL_UNUSABLE, Problem.PRICE_CHANGED),
    Event.PAYMENT_REFUSED: (Problem.PAYMENT_REFUSED, Problem.WALLET_UNREACHABLE),
    Event.PAYMENT_DISPROVED: (Problem.PAYMENT_FAILED,),
}


# Most steps lead on, so that attempts come to have something of their own.
_OFTEN = Counter(dict.fromkeys(Event, 1)) + Counter(
    {
        Event.WALLET_SUBMITTED: 3,
        Event.REFERENCE_STORED: 5,
        Event.PREPARED: 5,
        Event.APPROVAL_CLAIMED: 5,
        Event.PAYMENT_INTENDED: 5,
        Event.PAYMENT_CREATED: 3,
        Event.PAYMENT_REFUSED: 3,
        Event.PAYMENT_DISPROVED: 3,
    }
)


def of(attempt: int, what: str) -> str:
    """Return the URL of something that belongs to this attempt."""
    return f"https://wallet.example/{what}/of-{attempt}-"


def histories(most: int = 40) -> st.SearchStrategy[list[Session]]:
    """Return the strategy of a session's versions, oldest first."""
    return st.composite(lambda draw: list(_versions(draw, most)))()


def _versions(draw: Any, most: int) -> Iterator[Session]:
    session, now, given = a_session(), NOW, 0
    yield session
    for _ in range(draw(st.integers(0, most))):
        now += timedelta(seconds=draw(st.sampled_from([1, 1, 1, 5, 40, 40_000])))
        possible = [
            event
            for event in Event
            if (row := TRANSITIONS.get((session.status, event))) and row.when.holds(session, now)
            if event is not Event.PREPARED or session.quote is not None
        ]
        if not possible:
            return
        event = draw(st.sampled_from([each for each in possible for _ in range(_OFTEN[each])]))
        given += event is Event.WALLET_SUBMITTED
        fields = _fields(draw, session, event, now, given)
        session = advance(session, event, now=now, writer=f"w{session.version}", **fields).after
        yield session


def _fields(draw: Any, session: Session, event: Event, now: datetime, given: int) -> dict[str, Any]:
    later = now + timedelta(seconds=45)
    if event in PROBLEMS:
        problem = draw(st.sampled_from(PROBLEMS[event]))
        # The wallet's attempt ends when money from elsewhere is found: what follows is not its own.
        open_attempts = [each for each in session.payment_attempts if each.ended_at is None]
        attempt = given if open_attempts else 0
        return {"problem": problem, "note": f"{problem}: of-{attempt}-"}
    if event is Event.WALLET_SUBMITTED:
        return {"lease_until": later, "typed": of(given, "typed")}
    if event is Event.REFERENCE_STORED:
        return _stored(draw, session, now, given)
    if event is Event.PAYMENT_INTENDED:
        sent = Instruction(str(given), later)
        return {"instruction": sent, "token": "T", "quote": _quote(given), "check_at": now}
    made = of(given, "outgoing-payments") if draw(st.booleans()) else None
    part = {"received": 5, "attention": Attention.PARTIAL_PAYMENT, "check_at": None}
    by_event: dict[Event, dict[str, Any]] = {
        Event.PREPARED: {"grant": "G"},
        Event.APPROVAL_CLAIMED: {"lease_until": later},
        Event.RETURN_REPORTED: {"reported": "declined", "note": "declined"},
        Event.PAYMENT_CREATED: {"outgoing_payment": made, "check_at": now},
        Event.CLOSING_STARTED: {"closing_at": now},
        Event.CLOSED: {"closed_at": now},
        Event.MONEY_FOUND: {"check_at": now},
        Event.RECONCILED: {"received": session.receive.value, "completed_at": now},
        Event.CHECKED: part if session.status is Status.PROCESSING and draw(st.booleans()) else {},
    }
    return by_event.get(event, {})


def _stored(draw: Any, session: Session, now: datetime, given: int) -> dict[str, Any]:
    """Return what a preparation stores next: its own incoming payment, or one used before."""
    mine = WalletAddress(of(given, "wallets"), "EUR", 2, "https://a.example", "https://r.example")
    if session.customer == mine:
        return {"quote": _quote(given)}
    if session.incoming_payment is not None and draw(st.booleans()):
        return {"incoming_payment": None, "closed_at": None}
    held = session.incoming_payment
    new = IncomingPaymentRef(of(given, "incoming-payments"), now + timedelta(days=2))
    return {"customer": mine, "incoming_payment": held or new}


def _quote(given: int) -> Quote:
    return Quote(of(given, "quotes"), Amount(100 + given, "EUR", 2), Amount(2000, "USD", 2), None)
