"""The changes that the clock has decided are written once, and no others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.payment.in_flight import Phase, Problem
from checkout.domain.session.record import Session, Status
from checkout.flows.session import close
from checkout.flows.session.lookup import apply_clock
from tests.support.basics import NOW
from tests.support.merchant_api import MerchantApi

LATER = NOW + timedelta(seconds=30)
EARLIER = NOW - timedelta(seconds=30)
AWAITING = Status.AWAITING_APPROVAL


def applied(api: MerchantApi, **changes: Any) -> Session:
    session = api.store(**changes)
    result = apply_clock(api.services, session)
    assert result == api.stored(session.id)
    return result


def test_a_preparation_whose_lease_lapsed_is_open_again_with_the_reason(api: MerchantApi) -> None:
    for lease in (EARLIER, NOW, None):
        session = applied(api, status=Status.PREPARING, lease_until=lease)
        assert session.status is Status.OPEN
        assert session.problem is Problem.PREPARATION_INTERRUPTED
        assert session.lease_until is None


def test_a_continuation_whose_lease_lapsed_is_open_again_without_its_secrets(
    api: MerchantApi,
) -> None:
    session = applied(
        api,
        status=AWAITING,
        phase=Phase.CONTINUING,
        lease_until=EARLIER,
        grant="sealed",
        interact_url="https://w.example/i",
    )
    assert session.status is Status.OPEN
    assert session.problem is Problem.APPROVAL_UNUSABLE
    assert (session.phase, session.grant, session.interact_url) == (None, None, None)


def test_past_expiry_a_lapsed_lease_leads_to_expired(api: MerchantApi) -> None:
    for changes in (
        {"status": Status.PREPARING, "lease_until": EARLIER},
        {"status": Status.PREPARING, "lease_until": LATER},
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": EARLIER},
        {"status": AWAITING},
        {"status": Status.OPEN},
    ):
        assert applied(api, expires_at=NOW, **changes).status is Status.EXPIRED


@pytest.mark.parametrize(
    "changes",
    [
        {"status": Status.OPEN},
        {"status": AWAITING},
        {"status": Status.PREPARING, "lease_until": LATER},
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": LATER},
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": LATER, "expires_at": NOW},
        {"status": AWAITING, "phase": Phase.PAYING, "expires_at": EARLIER},
        {"status": Status.PROCESSING, "expires_at": EARLIER},
        {"status": Status.COMPLETED, "expires_at": EARLIER},
        {"status": Status.CANCELED, "expires_at": EARLIER},
        {"status": Status.EXPIRED, "expires_at": EARLIER},
    ],
)
def test_what_the_clock_has_not_decided_is_not_written(
    api: MerchantApi, changes: dict[str, Any]
) -> None:
    session = api.store(**changes)
    api.dynamo.calls.clear()
    assert apply_clock(api.services, session) == session
    assert not api.dynamo.calls


def test_a_dead_preparation_can_be_ended_and_a_settler_that_lost_takes_that(
    api: MerchantApi,
) -> None:
    session = api.store(status=Status.PREPARING, lease_until=EARLIER)
    winner = close.cancel(api.services, api.key, session.id)
    assert winner.status is Status.CANCELED
    assert apply_clock(api.services, session) == winner
