from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from checkout.domain.payment.in_flight import Attention, Instruction, Phase
from checkout.domain.session.record import Session, Status
from open_payments.models import Amount, Quote
from tests.support.basics import NOW, a_session
from tests.support.protected import IN_DOUBT_AFTER

SENT = Instruction("a", NOW)
DOUBT = NOW + IN_DOUBT_AFTER
SOON = DOUBT - timedelta(milliseconds=1)


def in_flight(**changes: object) -> Session:
    return a_session(Status.PROCESSING, **changes)


@pytest.mark.parametrize(
    ("session", "now", "may"),
    [
        (a_session(), DOUBT, False),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.CONTINUING), DOUBT, False),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.PAYING, instruction=SENT), SOON, False),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.PAYING, instruction=SENT), DOUBT, True),
        (in_flight(instruction=SENT), SOON, False),
        (in_flight(instruction=SENT), DOUBT, True),
        (in_flight(), NOW, True),
        (in_flight(instruction=SENT, attention=Attention.PARTIAL_PAYMENT), SOON, True),
        (in_flight(instruction=SENT, attention=Attention.UNDECIDED), SOON, False),
        (in_flight(instruction=SENT, closing_at=NOW), DOUBT, False),
        (a_session(Status.COMPLETED, instruction=SENT), DOUBT, False),
    ],
)
def test_a_merchant_may_close_a_payment_in_doubt_or_partly_paid(
    session: Session, now: datetime, may: bool
) -> None:
    assert session.may_close(now) is may


@pytest.mark.parametrize(
    ("received", "scale", "as_quoted", "case", "refundable"),
    [
        (1979, 2, False, False, 1979),
        (1980, 2, True, False, 1980),
        (1999, 2, True, False, 1999),
        (2000, 2, True, False, 2000),
        (2001, 2, True, False, 2000),  # the unit that wallets have added is nobody's
        (2002, 2, False, True, 2002),
        (20_009_999, 6, True, False, 2000),  # less than a cent cannot be sent back
        (20_010_000, 6, False, True, 2001),
    ],
)
def test_what_arrived_is_what_was_paid_but_for_a_rounding(
    received: int, scale: int, as_quoted: bool, case: bool, refundable: int
) -> None:
    """Of 20.00 USD: a hundredth may be missing, as the tolerance allows, and a unit be too much."""
    debit = Amount(1854, "EUR", 2)
    session = a_session(
        Status.COMPLETED,
        receive=Amount(20 * 10**scale, "USD", scale),
        received=received,
        quote=Quote("https://w.example/quotes/q", debit, Amount(2000, "USD", 2), NOW),
        outgoing_payment="https://w.example/outgoing-payments/q",
    )
    assert (session.paid_as_quoted, session.needs_attention) == (as_quoted, case)
    assert session.refundable == refundable


@pytest.mark.parametrize(("received", "case"), [(9, False), (10, True), (11, True)])
def test_of_fewer_than_ten_units_one_is_no_rounding(received: int, case: bool) -> None:
    receive = Amount(9, "USD", 2)
    session = a_session(Status.COMPLETED, receive=receive, amount_total=9, received=received)
    assert session.overpaid is case
