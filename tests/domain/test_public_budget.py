"""The refund budget as webhooks and the API show it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.mandate import MandateStatus
from checkout.domain.public_budget import public_budget
from checkout.open_payments.models import Amount
from tests.support import NOW, a_mandate


def test_it_shows_what_is_spent_and_left_of_the_month() -> None:
    assert public_budget(a_mandate(), now=NOW) == {
        "id": "man_1",
        "object": "refund_budget",
        "status": "active",
        "amount": 10000,
        "currency": "usd",
        "spent": 3000,
        "left": 7000,
        "interval": "month",
        "renews_at": "2026-04-01T12:00:00.000Z",
        "created_at": "2026-03-01T12:00:00.000Z",
        "ended_at": None,
    }


def test_the_next_month_has_spent_nothing() -> None:
    shown = public_budget(a_mandate(), now=NOW + timedelta(days=31))
    assert (shown["spent"], shown["left"]) == (0, 10000)


@pytest.mark.parametrize(
    ("limit", "spent", "shown"),
    [
        (Amount(100_000000, "USD", 6), 12_345678, (10000, 1235, 8765)),
        (Amount(500, "JPY", 0), 1, (500, 1, 499)),
        (Amount(7, "USD", 0), 2, (700, 200, 500)),
    ],
    ids=["a finer scale", "no digits", "a coarser scale"],
)
def test_amounts_are_in_minor_units_whatever_the_wallets_scale(
    limit: Amount, spent: int, shown: tuple[int, int, int]
) -> None:
    """Never less is shown as spent than was."""
    mandate = a_mandate(spent=spent)
    assert mandate.terms is not None
    mandate = replace(mandate, terms=replace(mandate.terms, limit=limit))
    found = public_budget(mandate, now=NOW)
    assert (found["amount"], found["spent"], found["left"]) == shown


def test_one_that_was_ended_says_when_and_renews_never() -> None:
    shown = public_budget(a_mandate(MandateStatus.ENDED, over_at=NOW), now=NOW)
    found = (shown["status"], shown["renews_at"], shown["ended_at"])
    assert found == ("ended", None, "2026-03-01T12:00:00.000Z")
