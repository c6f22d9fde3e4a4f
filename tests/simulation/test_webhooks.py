"""Show each check on deliveries, by hand, what no seeded bug shows it, and what is no violation."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.adapters.dynamo.events import event_item
from checkout.domain.webhooks import record as webhooks
from checkout.domain.webhooks.event_types import CANCELED
from checkout.domain.webhooks.record import (
    Delivery,
    Endpoint,
    EventStatus,
    WebhookEvent,
    copies,
    ended,
    noted_late,
    sent_again,
)
from tests.simulation.boundaries import BEGINNING, moment
from tests.simulation.scheduler import Scheduler
from tests.simulation.webhooks import FAIR, Deliveries
from tests.support.samples import an_endpoint, an_event

SECOND = timedelta(seconds=1)
URL = "https://shop.example/hooks"
FURTHER = (
    an_endpoint(url="https://books.example/hooks", id="we_1", events=(CANCELED,)),
    an_endpoint(url="https://till.example/hooks", id="we_2"),
)


class Host:
    """Notes what is caught; no message ever arrives."""

    rng = random.Random(1)
    weather = FAIR

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.caught: list[str] = []

    def note(self, what: str) -> None: ...

    def fail(self, check: str, detail: str) -> None:
        self.caught.append(check)

    def endpoints_of(self, merchant: str) -> tuple[Endpoint, ...]:
        return (an_endpoint(url=URL), *FURTHER)

    def send_event(self, event_id: str) -> bool:
        return True


class Process:
    """One that is served at once, and lives."""

    dead = False

    def pass_turn(self, milliseconds: int) -> None: ...


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def deliveries(host: Host) -> Deliveries:
    made = Deliveries(host)
    made.written(None, event_item(new()))
    for each in copies(new(), FURTHER):
        made.written(None, event_item(each))
    return made


def leased(event: WebhookEvent, now: datetime) -> WebhookEvent:
    return webhooks.leased(event, now, writer="w")


def new() -> WebhookEvent:
    return an_event(created_at=BEGINNING, next_at=BEGINNING)


def step(deliveries: Deliveries, before: WebhookEvent, after: WebhookEvent) -> WebhookEvent:
    deliveries.written(event_item(before), event_item(after))
    return after


def post(deliveries: Deliveries, body: str | None = None) -> None:
    process: Any = Process()
    deliveries.post(process, URL, new().id, (body or new().body).encode())


def finished(event: WebhookEvent, status: int, seconds: int = 1) -> WebhookEvent:
    at = event.deliveries[-1].at
    outcome = Delivery(at=at, duration_ms=1, status=status)
    return ended(event, outcome, now=at + seconds * SECOND, spread=0.0)


def test_a_delivery_as_it_should_be_is_not_caught(host: Host, deliveries: Deliveries) -> None:
    tried = step(deliveries, new(), leased(new(), BEGINNING))
    post(deliveries)
    done = step(deliveries, tried, finished(tried, 200))
    again = step(deliveries, done, sent_again(done, BEGINNING))
    step(deliveries, again, leased(again, BEGINNING))
    post(deliveries)
    assert host.caught == []


def test_what_is_sent_to_another_endpoint_is_caught(host: Host, deliveries: Deliveries) -> None:
    process: Any = Process()
    deliveries.post(process, FURTHER[1].url, new().id, new().body.encode())
    assert host.caught == ["each_endpoint_gets_its_own"]


def test_other_bytes_are_caught_where_sent_and_where_stored(
    host: Host, deliveries: Deliveries
) -> None:
    post(deliveries, body="{}")
    step(deliveries, new(), replace(leased(new(), BEGINNING), body="{}"))
    assert host.caught == ["event_bytes_are_frozen"] * 2


def test_an_attempt_that_froze_before_another_succeeded_is_not_caught(
    host: Host, deliveries: Deliveries
) -> None:
    one = step(deliveries, new(), leased(new(), BEGINNING))
    frozen = step(deliveries, one, leased(one, BEGINNING + 60 * SECOND))
    first = Delivery(at=BEGINNING, duration_ms=67_000, status=200)
    post(deliveries)
    step(deliveries, frozen, noted_late(frozen, first, now=BEGINNING + 67 * SECOND))
    post(deliveries)
    assert "nothing_is_sent_after_success" not in host.caught


def test_a_second_success_within_one_lease_is_caught(host: Host, deliveries: Deliveries) -> None:
    step(deliveries, new(), leased(new(), moment(host.scheduler.now)))
    post(deliveries)
    post(deliveries)
    assert host.caught == ["duplicates_are_explained"]


def test_the_success_of_an_attempt_that_froze_for_two_others_is_explained(
    host: Host, deliveries: Deliveries
) -> None:
    one = step(deliveries, new(), leased(new(), BEGINNING - 60 * SECOND))
    two = step(deliveries, one, leased(one, BEGINNING - 31 * SECOND))
    three = step(deliveries, two, leased(two, BEGINNING))
    failed = step(deliveries, three, finished(three, 500))
    first = Delivery(at=BEGINNING - 60 * SECOND, duration_ms=61_000, status=200)
    post(deliveries)
    step(deliveries, failed, noted_late(failed, first, now=BEGINNING + SECOND))
    post(deliveries)
    assert "duplicates_are_explained" not in host.caught


@pytest.mark.parametrize(("seconds", "caught"), [(31, False), (20, True)])
def test_a_success_is_explained_if_it_began_after_the_lease_of_one_that_is_noted_meanwhile(
    host: Host, deliveries: Deliveries, seconds: int, caught: bool
) -> None:
    first = BEGINNING - seconds * SECOND
    one = step(deliveries, new(), leased(new(), first))
    post(deliveries)
    two = step(deliveries, one, leased(one, BEGINNING))
    noted = Delivery(at=first, duration_ms=400, status=200)
    step(deliveries, two, noted_late(two, noted, now=BEGINNING))
    post(deliveries)
    assert ("duplicates_are_explained" in host.caught) is caught


def test_an_ended_event_that_is_pending_without_a_new_round_is_caught(
    host: Host, deliveries: Deliveries
) -> None:
    tried = step(deliveries, new(), leased(new(), BEGINNING))
    post(deliveries)
    done = step(deliveries, tried, finished(tried, 200))
    step(deliveries, done, replace(done, version=9, status=EventStatus.EXHAUSTED))
    assert host.caught == ["event_version_grows", "ended_events_stay_so"]


def test_twelve_attempts_are_too_many(host: Host, deliveries: Deliveries) -> None:
    step(deliveries, new(), replace(leased(new(), BEGINNING), attempts=12))
    assert "attempts_are_bounded" in host.caught


def test_the_spacing_is_measured_from_failure_to_next_attempt(
    host: Host, deliveries: Deliveries
) -> None:
    tried = step(deliveries, new(), leased(new(), BEGINNING))
    failed = step(deliveries, tried, finished(tried, 500))
    host.scheduler.run(until=1_000)
    step(deliveries, failed, leased(failed, BEGINNING + 2 * SECOND))
    assert deliveries.worst == {1: 1000}  # two seconds where one was due: 100 %
