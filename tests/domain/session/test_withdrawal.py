"""Test how long customers can withdraw, and when a withdrawal waits for the shop."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.refund.record import RefundRef
from checkout.domain.session.record import Status
from checkout.domain.session.withdrawal import last_moment, waits
from tests.support.basics import NOW, a_session
from tests.support.samples import a_withdrawal


def test_the_days_begin_with_the_payment() -> None:
    paid = a_session(Status.COMPLETED, completed_at=NOW)
    assert last_moment(paid, 14) == NOW + timedelta(days=14)
    assert last_moment(paid, 0) is None


@pytest.mark.parametrize("status", [each for each in Status if each is not Status.COMPLETED])
def test_nobody_withdraws_from_what_was_not_paid(status: Status) -> None:
    assert last_moment(a_session(status), 14) is None


@pytest.mark.parametrize(
    ("fields", "refunded", "waiting"),
    [
        ({}, 0, True),
        ({}, 1999, True),
        ({}, 2000, False),
        ({"answered_by": "Ada"}, 0, False),
    ],
)
@pytest.mark.parametrize("received", [None, 2000])
def test_it_waits_until_all_is_refunded_or_somebody_has_answered(
    fields: dict[str, Any], refunded: int, waiting: bool, received: int | None
) -> None:
    held = (RefundRef("re_1", refunded, 0),) if refunded else None
    session = a_session(Status.COMPLETED, received=received, refunds=held)
    assert waits(session, a_withdrawal(**fields)) == waiting
    assert not waits(session, None)


def test_what_the_customer_said_shows_in_no_log() -> None:
    assert "SEALED" not in f"{a_withdrawal()}"
