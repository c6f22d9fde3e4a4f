"""The months of a mandate, and what is left of one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from checkout.domain.payment.mandate import (
    Mandate,
    MandateStatus,
    Terms,
    again_after,
    first_period,
    period_of,
    plus_months,
)
from open_payments.models import Amount, WalletAddress

PAYER = WalletAddress("https://w.example/shop", "USD", 2, "https://a.example", "https://r.example")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def a_mandate(start: str, *, spent: int = 0, period: str | None = None) -> Mandate:
    return Mandate(
        id="man_x",
        merchant="mer_x",
        status=MandateStatus.ACTIVE,
        version=1,
        writer="w",
        updated_at=at(start),
        created_at=at(start),
        terms=Terms(PAYER, Amount(800, "USD", 2), at(start)),
        spent=spent,
        period=at(period) if period else None,
    )


@pytest.mark.parametrize(
    ("asked", "begins"),
    [
        ("2026-05-12 10:00", "2026-05-12 09:00"),
        ("2026-01-31 10:00", "2026-01-28 09:00"),
        ("2026-01-31 00:30", "2026-01-27 23:30"),
        ("2026-03-01 00:30", "2026-02-28 23:30"),
        ("2026-02-01 00:30", "2026-01-28 23:30"),
        ("2028-02-29 12:00", "2028-02-28 11:00"),
    ],
)
def test_months_never_begin_after_the_28th_nor_after_they_are_asked_for(
    asked: str, begins: str
) -> None:
    assert first_period(at(asked)) == at(begins)


@pytest.mark.parametrize(
    ("now", "begins"),
    [
        ("2026-01-28 08:59", "2026-01-28 09:00"),  # before the first one
        ("2026-01-28 09:00", "2026-01-28 09:00"),
        ("2026-02-28 08:59", "2026-01-28 09:00"),
        ("2026-02-28 09:00", "2026-02-28 09:00"),
        ("2026-12-31 00:00", "2026-12-28 09:00"),
        ("2027-01-28 08:59", "2026-12-28 09:00"),
        ("2029-05-01 00:00", "2029-04-28 09:00"),
    ],
)
def test_each_month_begins_on_the_same_day(now: str, begins: str) -> None:
    assert period_of(at("2026-01-28 09:00"), at(now)) == at(begins)


def test_a_month_after_the_31st_ends_with_its_last_day() -> None:
    assert plus_months(at("2026-01-31 00:00"), 1) == at("2026-02-28 00:00")
    assert plus_months(at("2026-01-31 00:00"), -2) == at("2025-11-30 00:00")


def test_the_count_of_a_month_ends_with_it() -> None:
    mandate = a_mandate("2026-01-28 09:00", spent=300, period="2026-01-28 09:00")
    assert mandate.left(at("2026-02-28 08:59")) == 500
    assert mandate.renews_at(at("2026-02-28 08:59")) == at("2026-02-28 09:00")
    assert mandate.left(at("2026-02-28 09:00")) == 800


def test_a_clock_that_is_behind_does_not_count_in_the_month_before() -> None:
    mandate = a_mandate("2026-01-28 09:00", spent=300, period="2026-02-28 09:00")
    assert mandate.left(at("2026-02-28 08:59")) == 500


def test_a_smaller_budget_may_be_spent_already() -> None:
    assert a_mandate("2026-01-28 09:00", spent=900, period="2026-01-28 09:00").left(
        at("2026-02-01 00:00")
    ) == (0)


def test_the_pauses_after_rotations_without_an_answer_end_at_an_hour() -> None:
    assert [again_after(each) for each in (1, 2, 5, 6, 60)] == [
        timedelta(minutes=2),
        timedelta(minutes=4),
        timedelta(minutes=32),
        timedelta(hours=1),
        timedelta(hours=1),
    ]
