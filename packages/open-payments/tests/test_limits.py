"""Limits that a server would grant, and then fail at each payment, are not sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from open_payments.interaction import Interval, Limits
from open_payments.models import Amount

FIRST = datetime(2026, 12, 1, tzinfo=UTC)
EURO = Amount(1000, "EUR", 2)
EAST = timezone(timedelta(hours=5))


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(FIRST, months=1), "R/2026-12-01T00:00:00Z/P1M"),
        (Interval(FIRST, months=3), "R/2026-12-01T00:00:00Z/P3M"),
        (Interval(FIRST, days=30), "R/2026-12-01T00:00:00Z/P30D"),
        (Interval(FIRST.replace(day=28, hour=23), months=1), "R/2026-12-28T23:00:00Z/P1M"),
        (Interval(FIRST.replace(day=31), days=1), "R/2026-12-31T00:00:00Z/P1D"),
        (Interval(datetime(2026, 12, 2, tzinfo=EAST), months=1), "R/2026-12-01T19:00:00Z/P1M"),
    ],
)
def test_an_interval_is_written_with_its_start_and_never_with_a_number_of_repetitions(
    interval: Interval, text: str
) -> None:
    assert str(interval) == text


@pytest.mark.parametrize(
    ("start", "months", "days"),
    [
        (FIRST, 0, 0),
        (FIRST, 1, 1),
        (FIRST, -1, 0),
        (FIRST, 0, -1),
        (FIRST, -1, 1),
        (FIRST.replace(tzinfo=None), 1, 0),
        (FIRST.replace(microsecond=1), 1, 0),
        (FIRST.replace(day=29), 1, 0),
        (datetime(2026, 12, 1, tzinfo=EAST), 1, 0),  # the 30th of November in UTC
    ],
)
def test_an_interval_that_no_server_would_count_as_meant_is_none(
    start: datetime, months: int, days: int
) -> None:
    with pytest.raises(ValueError, match="an interval"):
        Interval(start, months=months, days=days)


@pytest.mark.parametrize(
    ("debit", "receive"),
    [
        (None, None),
        (EURO, EURO),
        (None, Amount(-1, "EUR", 2)),
        (Amount(2**64, "EUR", 2), None),
    ],
)
def test_a_grant_is_limited_by_one_unsigned_amount(
    debit: Amount | None, receive: Amount | None
) -> None:
    with pytest.raises(ValueError, match="a grant is limited by"):
        Limits(debit_amount=debit, receive_amount=receive)


def test_a_wallet_that_asks_for_nothing_is_limited_to_nothing() -> None:
    nothing = {"value": "0", "assetCode": "EUR", "assetScale": 2}
    assert Limits(debit_amount=Amount(0, "EUR", 2)).members() == {"debitAmount": nothing}


def test_limits_are_written_as_the_standard_names_them() -> None:
    interval = Interval(FIRST, months=1)
    euro = {"value": "1000", "assetCode": "EUR", "assetScale": 2}
    assert Limits("https://a.example/1", EURO).members() == {
        "receiver": "https://a.example/1",
        "debitAmount": euro,
    }
    assert Limits(receive_amount=EURO, interval=interval).members() == {
        "receiveAmount": euro,
        "interval": "R/2026-12-01T00:00:00Z/P1M",
    }
