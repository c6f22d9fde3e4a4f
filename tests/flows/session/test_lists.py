"""Lists: newest first, without gaps between pages, filtered in a bounded number of reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Session, Status
from checkout.flows.payment.writes import move
from checkout.flows.session import lists
from checkout.flows.session.lists import ListQuery
from tests.support.basics import NOW, between
from tests.support.merchant_api import MerchantApi


def listed(api: MerchantApi, **query: Any) -> list[str]:
    return [one.id for one in lists.list_page(api.services, api.key, ListQuery(**query)).sessions]


def walk(api: MerchantApi, **query: Any) -> tuple[list[str], int]:
    """All pages' ids, and how many pages there were."""
    ids: list[str] = []
    cursor: str | None = None
    pages = 0
    while True:
        page = lists.list_page(api.services, api.key, ListQuery(cursor=cursor, **query))
        pages += 1
        assert len(page.sessions) <= query.get("limit", 10)
        ids += [session.id for session in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            return ids, pages


@pytest.mark.parametrize("limit", [1, 3, 7, 10, 100])
def test_pages_neither_skip_nor_repeat_sessions_of_one_millisecond(
    api: MerchantApi, limit: int
) -> None:
    made = sorted((api.store().id for _ in range(21)), reverse=True)
    ids, pages = walk(api, limit=limit)
    assert ids == made
    assert pages == -(-21 // limit)  # the last page knows that it is the last


def test_time_bounds_include_the_first_instant_and_exclude_the_last(api: MerchantApi) -> None:
    made = [api.store(created_at=NOW + timedelta(seconds=second)).id for second in range(4)]
    bounds = {
        "created_from": NOW + timedelta(seconds=1),
        "created_before": NOW + timedelta(seconds=3),
    }
    assert listed(api, **bounds) == [made[2], made[1]]
    assert walk(api, limit=1, **bounds)[0] == [made[2], made[1]]
    assert listed(api, created_from=NOW + timedelta(seconds=4)) == []


@pytest.mark.parametrize("limit", [1, 2, 7, 30])
def test_a_status_filter_finds_each_once_whatever_the_page_size(
    api: MerchantApi, limit: int
) -> None:
    wanted = []
    for number in range(30):
        status = Status.CANCELED if number % 4 == 0 else Status.OPEN
        session = api.store(status=status, created_at=NOW + timedelta(seconds=number // 3))
        wanted += [session] if status is Status.CANCELED else []
    wanted.sort(key=lambda session: (session.created_at, session.id), reverse=True)
    ids, _ = walk(api, limit=limit, status=Status.CANCELED)
    assert ids == [session.id for session in wanted]


def test_a_status_filter_judges_by_the_clock(api: MerchantApi) -> None:
    session = api.store(expires_at=NOW)
    assert listed(api, status=Status.OPEN) == []
    assert listed(api, status=Status.EXPIRED) == [session.id]


def test_a_rare_status_costs_a_bounded_number_of_reads_and_is_still_found(
    api: MerchantApi,
) -> None:
    rare = api.store(status=Status.CANCELED, created_at=NOW - timedelta(days=1))
    for _ in range(lists.FILTER_ROUNDS * lists.PAGE_MAX):
        api.store()
    api.dynamo.calls.clear()
    page = lists.list_page(api.services, api.key, ListQuery(status=Status.CANCELED))
    assert page.sessions == ()
    assert page.next_cursor is not None
    rounds = lists.FILTER_ROUNDS
    assert api.dynamo.calls == {"query": rounds, "batch_get_item": rounds}
    assert walk(api, status=Status.CANCELED)[0] == [rare.id]


@pytest.mark.parametrize("limit", [1, 3, 50])
@pytest.mark.parametrize(("low", "high"), [(None, 30), (30, None), (30, 60), (26, 27), (500, 520)])
def test_a_list_by_the_time_of_the_payment_finds_each_once(
    api: MerchantApi, limit: int, low: int | None, high: int | None
) -> None:
    """The index is by creation; a payment that took weeks was flagged meanwhile. In hours.

    The merchant's lists have three parts.
    """
    api.key = replace(api.key, parts=3)
    made = []
    for number in range(40):
        created = NOW + timedelta(hours=number)
        lag = timedelta(hours=(0, 1, 20, 26)[number % 4])
        paid = {"status": Status.COMPLETED, "completed_at": created + lag}
        made.append(api.store(created_at=created, part=number % 3, **paid))
    made += [decided_late(api, NOW + timedelta(hours=each), days=21) for each in (3, 21)]
    bounds = {
        "paid_from": None if low is None else NOW + timedelta(hours=low),
        "paid_before": None if high is None else NOW + timedelta(hours=high),
    }
    expected = [
        each
        for each in made
        if (low is None or each.paid_at >= NOW + timedelta(hours=low))
        and (high is None or each.paid_at < NOW + timedelta(hours=high))
    ]
    expected.sort(key=lambda each: (each.created_at, each.id), reverse=True)
    ids, _ = walk(api, limit=limit, statuses=(Status.COMPLETED,), **bounds)
    assert ids == [each.id for each in expected]
    assert ids


def decided_late(api: MerchantApi, created: datetime, *, days: int) -> Session:
    """A session of which a part came, which was accepted after so many days."""
    session = api.store(status=Status.PROCESSING, created_at=created, part=2)
    came = {"received": 1000, "attention": Attention.PARTIAL_PAYMENT}
    session = move(api.services, session, Event.PART_ARRIVED, **came)
    at = created + timedelta(days=days)
    return move(api.services, session, Event.ACCEPTED_AS_PAID, completed_at=at)


def test_while_nothing_is_found_a_list_reads_on(api: MerchantApi) -> None:
    rare = api.store(status=Status.CANCELED, created_at=NOW - timedelta(days=1))
    opened = [api.store().id for _ in range(2 * lists.PAGE_MAX)]
    patient: dict[str, Any] = {"status": Status.CANCELED, "rounds": 1}
    assert listed(api, **patient, rounds_if_empty=3) == [rare.id]
    page = lists.list_page(api.services, api.key, ListQuery(**patient, rounds_if_empty=2))
    assert (page.sessions, lists.session_at(api.key, str(page.next_cursor))) == ((), min(opened))


def test_a_list_stops_reading_after_some_seconds(api: MerchantApi) -> None:
    for _ in range(2 * lists.PAGE_MAX + 1):
        api.store()
    sessions = between(api.services.sessions, "page", lambda: api.clock.pass_time(3), times=9)
    api.services = replace(api.services, sessions=sessions)
    api.dynamo.calls.clear()
    page = lists.list_page(api.services, api.key, ListQuery(status=Status.CANCELED))
    assert (page.sessions, page.next_cursor is not None) == ((), True)
    assert api.dynamo.calls["query"] == 2
