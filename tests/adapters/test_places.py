"""Places of sessions in the index `due`: an entry is not moved without need."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from checkout.adapters.dynamo import index_keys
from checkout.domain.payment.in_flight import Phase
from checkout.domain.session.record import Status
from tests.support.basics import NOW, a_session


def test_a_place_that_is_far_too_early_or_too_late_is_not_kept() -> None:
    paying = a_session(Status.AWAITING_APPROVAL, phase=Phase.PAYING, check_at=NOW)
    for seconds, kept in ((-61, False), (-60, True), (0, True), (1, False)):
        place = NOW + timedelta(seconds=seconds)
        assert (index_keys.due_at(replace(paying, look_at=place)) == place) is kept


def test_a_session_that_awaits_its_customer_stays_where_its_preparation_put_it() -> None:
    """Also if the customer takes longer than that; the sweep's check then moves it, once."""
    planned = NOW + timedelta(seconds=40)
    waiting = a_session(Status.AWAITING_APPROVAL, look_at=planned)
    assert (index_keys.due_at(waiting), index_keys.urgent(waiting)) == (planned, True)
    checked = replace(waiting, look_at=None)
    assert (index_keys.due_at(checked), index_keys.urgent(checked)) == (waiting.expires_at, False)


def test_a_payment_is_urgent_and_an_open_session_can_wait() -> None:
    paying = a_session(Status.PROCESSING, check_at=NOW)
    preparing = a_session(Status.PREPARING, lease_until=NOW)
    assert index_keys.urgent(paying)
    assert index_keys.urgent(preparing)
    assert not index_keys.urgent(a_session(Status.OPEN))
