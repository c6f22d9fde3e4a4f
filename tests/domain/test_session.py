from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from checkout.domain.payment import Attention, Instruction, Phase
from checkout.domain.session import Session, Status
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
