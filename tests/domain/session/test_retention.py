from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.payment.in_flight import Attention, IncomingPaymentRef, Instruction, Phase
from checkout.domain.session.record import Session, Status
from checkout.domain.session.retention import rows_kept_until, session_kept_until
from tests.support.basics import GAVE_A_WALLET, NOW, a_session

KEPT = timedelta(days=400)
DAY = timedelta(days=1)
EXPIRY = NOW + DAY  # of `a_session`


def given(status: Status, **changes: Any) -> Session:
    """Return a session that a customer gave a wallet."""
    return a_session(status, history=GAVE_A_WALLET, **changes)


ATTEMPT = Instruction("a", NOW)
FLAGGED = a_session(
    Status.PROCESSING, attention=Attention.PARTIAL_PAYMENT, received=5, updated_at=NOW + 90 * DAY
)


@pytest.mark.parametrize(
    ("session", "kept_until"),
    [
        (a_session(), EXPIRY + 30 * DAY),
        (a_session(link="plink_1"), EXPIRY + 30 * DAY),
        (a_session(history=GAVE_A_WALLET), EXPIRY + KEPT),
        (a_session(Status.PREPARING, lease_until=NOW), EXPIRY + KEPT),
        (a_session(Status.AWAITING_APPROVAL, check_at=NOW), EXPIRY + KEPT),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.CONTINUING), EXPIRY + KEPT),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.PAYING, instruction=ATTEMPT), None),
        (a_session(Status.PROCESSING, check_at=NOW), None),
        (a_session(Status.PROCESSING, attention=Attention.UNDECIDED), None),
        (FLAGGED, None),
        (a_session(Status.COMPLETED, updated_at=NOW + DAY), NOW + DAY + KEPT),
        (a_session(Status.EXPIRED, updated_at=NOW + DAY), NOW + 31 * DAY),
        (given(Status.EXPIRED, updated_at=NOW + DAY), NOW + DAY + KEPT),
        (a_session(Status.CANCELED), NOW + 30 * DAY),
        (given(Status.CANCELED), NOW + KEPT),
        (given(Status.CANCELED, attention=Attention.LATE_PAYMENT), NOW + KEPT),
        (given(Status.EXPIRED, check_at=NOW + 3 * DAY), NOW + 3 * DAY + KEPT),
        (a_session(Status.COMPLETED, check_at=NOW - DAY), NOW + KEPT),
    ],
)
def test_how_long_a_session_is_kept(session: Session, kept_until: object) -> None:
    assert session_kept_until(session, KEPT) == kept_until


def test_a_cart_is_kept_no_longer_than_what_is_sold() -> None:
    assert session_kept_until(a_session(), 9 * DAY) == EXPIRY + 9 * DAY


def test_an_incoming_payment_alone_shows_that_money_may_come() -> None:
    incoming = IncomingPaymentRef("https://r.example/in/1", EXPIRY)
    assert session_kept_until(a_session(incoming_payment=incoming), KEPT) == EXPIRY + KEPT


LONGER = EXPIRY + 30 * DAY + KEPT  # as they are written with the first wallet
CART = EXPIRY + 32 * DAY  # as they are written with the session


@pytest.mark.parametrize(
    ("session", "kept_until"),
    [
        (a_session(), CART),
        (a_session(Status.CANCELED), CART),
        (a_session(Status.EXPIRED, updated_at=EXPIRY + 2 * DAY), CART),
        (a_session(Status.EXPIRED, updated_at=EXPIRY + 3 * DAY), CART + 3 * DAY),
        (given(Status.OPEN), LONGER),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.PAYING, instruction=ATTEMPT), LONGER),
        (a_session(Status.PROCESSING), LONGER),
        (FLAGGED, None),
        (a_session(Status.COMPLETED, updated_at=EXPIRY + 30 * DAY), LONGER),
        (given(Status.EXPIRED, updated_at=EXPIRY + 31 * DAY), LONGER + 31 * DAY),
    ],
)
def test_search_rows_are_kept_at_least_as_long_as_their_session(
    session: Session, kept_until: object
) -> None:
    assert rows_kept_until(session, KEPT) == kept_until
    own = session_kept_until(session, KEPT)
    rows = rows_kept_until(session, KEPT)
    assert rows is None or own is None or rows >= own
