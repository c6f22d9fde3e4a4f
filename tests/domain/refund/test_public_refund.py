"""The refund budget as webhooks and the API show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from checkout.domain.payment.mandate import Mandate, MandateStatus
from checkout.domain.refund.public import public_budget
from open_payments.models import Amount
from tests.support.basics import NOW, a_mandate

BASE = "https://checkout.example"


def shown(mandate: Mandate, *, now: datetime = NOW) -> Mapping[str, object]:
    return public_budget(mandate, base_url=BASE, now=now)


def test_it_shows_what_is_spent_and_left_of_the_month() -> None:
    assert shown(a_mandate()) == {
        "id": "man_1",
        "object": "refund_budget",
        "status": "active",
        "amount": 10000,
        "currency": "usd",
        "spent": 3000,
        "left": 7000,
        "interval": "month",
        "renews_at": "2026-04-01T12:00:00.000Z",
        "requested_amount": None,
        "approval_url": None,
        "created_at": "2026-03-01T12:00:00.000Z",
        "ended_at": None,
    }


def test_the_next_month_has_spent_nothing() -> None:
    found = shown(a_mandate(), now=NOW + timedelta(days=31))
    assert (found["spent"], found["left"]) == (0, 10000)


@pytest.mark.parametrize(
    ("limit", "spent", "told"),
    [
        (Amount(100_000000, "USD", 6), 12_345678, (10000, 1235, 8765)),
        (Amount(500, "JPY", 0), 1, (500, 1, 499)),
        (Amount(7, "USD", 0), 2, (700, 200, 500)),
    ],
    ids=["a finer scale", "no digits", "a coarser scale"],
)
def test_amounts_are_in_minor_units_whatever_the_wallets_scale(
    limit: Amount, spent: int, told: tuple[int, int, int]
) -> None:
    """Never less is shown as spent than was."""
    mandate = a_mandate(spent=spent)
    assert mandate.terms is not None
    mandate = replace(mandate, terms=replace(mandate.terms, limit=limit))
    found = shown(mandate)
    assert (found["amount"], found["spent"], found["left"]) == told


def test_one_that_was_ended_says_when_and_renews_never() -> None:
    found = shown(a_mandate(MandateStatus.ENDED, over_at=NOW))
    assert (found["status"], found["renews_at"]) == ("ended", None)
    assert (found["ended_at"], found["approval_url"]) == ("2026-03-01T12:00:00.000Z", None)


@pytest.mark.parametrize(
    "mandate",
    [
        a_mandate(wanted=Amount(50_00, "USD", 2)),
        a_mandate(MandateStatus.LOST),
        a_mandate(MandateStatus.REVOKED),
        a_mandate(MandateStatus.PENDING, terms=None),
    ],
    ids=["another amount", "lost", "revoked", "the first time"],
)
def test_one_that_has_to_be_approved_names_the_page(mandate: Mandate) -> None:
    found = shown(mandate)
    assert found["approval_url"] == f"{BASE}/dashboard/budget"
    assert found["requested_amount"] == (5000 if mandate.wanted else None)
