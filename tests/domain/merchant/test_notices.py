"""When the next e-mail may come, and what is remembered of those before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from checkout.domain.merchant.notices import TOLD_MAX, Pace, Subscriber, Told, Topic, remembered
from tests.support.basics import NOW

HOUR = timedelta(hours=1)


def a_subscriber(**fields: object) -> Subscriber:
    usual = {
        "id": "ntc_1",
        "merchant": "mer_1",
        "member": "mbr_1",
        "topics": tuple(Topic),
        "pace": Pace.AT_ONCE,
        "language": "en",
        "writer": "w",
        "address": "ada@shop.example",
        "look_at": NOW,
    }
    return Subscriber(**{**usual, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("2026-03-01T06:59:59", "2026-03-01T07:00:00"),
        ("2026-03-01T07:00:00", "2026-03-02T07:00:00"),
        ("2026-03-01T23:30:00", "2026-03-02T07:00:00"),
        ("2026-12-31T08:00:00", "2027-01-01T07:00:00"),
    ],
)
def test_a_day_has_one_e_mail_at_seven(now: str, then: str) -> None:
    daily = a_subscriber(pace=Pace.DAILY)
    at, expected = (datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (now, then))
    assert daily.next_look(at) == expected


def test_at_once_is_within_five_minutes() -> None:
    assert a_subscriber().next_look(NOW) == NOW + timedelta(minutes=5)


def test_what_still_needs_somebody_is_remembered() -> None:
    told = (Told("a", NOW - 100 * HOUR),)
    assert remembered(told, ["a"], NOW, all_read=True) == (Told("a", NOW),)


def test_what_was_solved_is_forgotten_after_a_day_and_can_be_told_again() -> None:
    assert remembered((Told("a", NOW - 23 * HOUR),), [], NOW, all_read=True) != ()
    assert remembered((Told("a", NOW - 24 * HOUR),), [], NOW, all_read=True) == ()


def test_what_could_not_be_read_is_not_forgotten() -> None:
    assert remembered((Told("a", NOW - 99 * HOUR),), [], NOW, all_read=False) == (Told("a", NOW),)


def test_the_oldest_are_forgotten_first() -> None:
    told = tuple(Told(str(each), NOW - timedelta(seconds=each)) for each in range(TOLD_MAX + 5))
    kept = remembered(told, [], NOW, all_read=True)
    assert len(kept) == TOLD_MAX
    assert [each.mark for each in kept[-2:]] == ["1", "0"]


def test_one_who_stops_leaves_no_address() -> None:
    asked = {"asked": "new@shop.example", "asked_hash": "h", "asked_until": NOW}
    stopped = a_subscriber(**asked, told=(Told("a", NOW),)).stopped(writer="x")
    assert "shop.example" not in repr([getattr(stopped, name) for name in stopped.__slots__])
    assert (stopped.look_at, stopped.told, stopped.version) == (None, (), 2)


def test_an_address_is_not_in_what_a_log_could_print() -> None:
    assert "shop.example" not in repr(a_subscriber(asked="b@shop.example"))
