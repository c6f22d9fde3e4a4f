from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.session.public import event_body
from checkout.domain.session.record import Status
from checkout.domain.webhooks.event_types import CANCELED, COMPLETED, EXPIRED, PING
from checkout.domain.webhooks.record import (
    Delivery,
    EventStatus,
    GivenUp,
    WebhookEvent,
    WebhookSecret,
    ended,
    given_up,
    leased,
    may_attempt,
    noted_late,
    ping_body,
    sent_again,
)
from open_payments.models import WalletAddress
from tests.support.basics import NOW, a_session
from tests.support.protected import (
    DELIVERIES_KEPT,
    DELIVERY_ATTEMPTS,
    DELIVERY_LEASE,
    DELIVERY_TIMEOUT,
)
from tests.support.samples import an_endpoint, an_event

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)

# decisions.md "Webhooks", written a second time: after which attempt, how long until the next.
PAUSES = {1: 1 * SECOND, 2: 5 * SECOND, 3: 5 * MINUTE, 4: 30 * MINUTE}
PAUSES |= {5: 2 * HOUR, 6: 5 * HOUR, 7: 10 * HOUR, 8: 14 * HOUR, 9: 20 * HOUR, 10: 24 * HOUR}

spreads = st.floats(-1, 1, allow_nan=False)
attempts = st.integers(1, 10)


def began(attempt: int = 1, **changes: Any) -> WebhookEvent:
    """An event whose attempt of that number has begun NOW."""
    return leased(an_event(attempts=attempt - 1, **changes), NOW, writer="w")


def answered(status: int | None = 500, **changes: Any) -> Delivery:
    return replace(Delivery(NOW, 12, status), **changes)


def failed(attempt: int, *, spread: float = 0.0, **wishes: Any) -> WebhookEvent:
    """Return the event after its attempt of that number has failed at once."""
    return ended(began(attempt), answered(), now=NOW, spread=spread, **wishes)


# --- the schedule ---


@pytest.mark.parametrize("attempt", PAUSES)
def test_the_pause_after_each_attempt_is_the_tables(attempt: int) -> None:
    after = failed(attempt)
    assert after.next_at - NOW == PAUSES[attempt]
    assert after.status is EventStatus.PENDING
    assert after.attempts == attempt


def test_eleven_attempts_take_about_three_days() -> None:
    assert set(PAUSES) == set(range(1, DELIVERY_ATTEMPTS))
    assert sum(PAUSES.values(), timedelta(0)) == timedelta(days=3, hours=3, minutes=35, seconds=6)


@pytest.mark.parametrize("wishes", [{}, {"retry_after": HOUR}], ids=["no wish", "a wish to wait"])
def test_the_eleventh_failure_is_the_last(wishes: dict[str, Any]) -> None:
    after = failed(11, **wishes)
    assert (after.status, after.given_up) == (EventStatus.EXHAUSTED, GivenUp.ATTEMPTS)
    assert after.ended_at == NOW
    assert not may_attempt(after, NOW + 1000 * HOUR)


@given(attempt=st.integers(3, 10), spread=spreads)
def test_a_long_pause_is_within_ten_percent_and_in_whole_milliseconds(
    attempt: int, spread: float
) -> None:
    pause = failed(attempt, spread=spread).next_at - NOW
    assert PAUSES[attempt] * 9 <= pause * 10 <= PAUSES[attempt] * 11
    assert pause % MS == timedelta(0)


@pytest.mark.parametrize("attempt", [3, 10])
def test_the_ends_of_the_jitter_are_reached(attempt: int) -> None:
    pauses = [failed(attempt, spread=spread).next_at - NOW for spread in (-1, 1)]
    # A hundredth is left to what the queue is late by: within ±10 % in all.
    assert [pause * 100 for pause in pauses] == [PAUSES[attempt] * 91, PAUSES[attempt] * 109]


@given(spread=spreads)
def test_the_immediate_attempts_are_not_spread(spread: float) -> None:
    assert [failed(n, spread=spread).next_at - NOW for n in (1, 2)] == [SECOND, 5 * SECOND]


@given(attempt=attempts, spread=spreads, seconds=st.integers(0, 10**9))
def test_a_wish_to_wait_prolongs_a_pause_up_to_a_day_and_never_shortens_it(
    attempt: int, spread: float, seconds: int
) -> None:
    usual = failed(attempt, spread=spread).next_at
    wished = failed(attempt, spread=spread, retry_after=timedelta(seconds=seconds)).next_at
    assert wished == max(usual, NOW + min(timedelta(seconds=seconds), 24 * HOUR))


# --- the lease ---


@pytest.mark.parametrize("attempt", range(1, 12))
def test_an_attempt_whose_process_dies_is_followed_after_lease_and_usual_pause(
    attempt: int,
) -> None:
    event = began(attempt)
    expected = max(30 * SECOND, PAUSES.get(attempt, 24 * HOUR))
    assert event.next_at - NOW == expected
    assert not may_attempt(event, event.next_at - MS)
    assert may_attempt(event, event.next_at)


def test_a_lease_is_a_version_an_attempt_and_an_entry_without_an_end() -> None:
    before = an_event(attempts=2, deliveries=(answered(),))
    after = leased(before, NOW + MINUTE, writer="w")
    assert (after.version, after.attempts) == (before.version + 1, 3)
    assert after.deliveries == (answered(), Delivery(NOW + MINUTE))
    assert (after.body, after.id, after.type) == (before.body, before.id, before.type)
    assert after != leased(before, NOW + MINUTE, writer="of the same moment")
    assert DELIVERY_LEASE >= 2 * DELIVERY_TIMEOUT


def test_the_log_keeps_the_latest_entries() -> None:
    event = an_event()
    for number in range(DELIVERIES_KEPT + 5):
        event = leased(replace(event, attempts=0), NOW + number * HOUR, writer="w")
    assert len(event.deliveries) == DELIVERIES_KEPT
    assert event.deliveries[-1].at == NOW + (DELIVERIES_KEPT + 4) * HOUR
    assert event.deliveries[0].at == NOW + 5 * HOUR


def test_a_pending_event_is_attempted_from_its_time_on_and_an_ended_one_no_more() -> None:
    assert may_attempt(an_event(), NOW)
    assert not may_attempt(an_event(), NOW - MS)
    for ended_as in (EventStatus.DELIVERED, EventStatus.EXHAUSTED):
        assert not may_attempt(an_event(status=ended_as), NOW + 1000 * HOUR)


# --- outcomes ---


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
@pytest.mark.parametrize("attempt", [1, 11])
def test_every_2xx_is_a_success_at_any_attempt(attempt: int, status: int) -> None:
    after = ended(began(attempt), answered(status), now=NOW + SECOND, spread=0)
    assert (after.status, after.ended_at) == (EventStatus.DELIVERED, NOW + SECOND)
    assert after.given_up is None
    assert after.deliveries == (answered(status),)


@pytest.mark.parametrize("status", [None, 100, 101, 199, 300, 301, 304, 307, 400, 404, 500, 599])
def test_everything_else_is_a_failure(status: int | None) -> None:
    after = ended(began(), answered(status), now=NOW, spread=0)
    assert after.status is EventStatus.PENDING
    assert after.deliveries == (answered(status),)


@pytest.mark.parametrize("attempt", [1, 5, 11])
def test_gone_is_the_end_at_any_attempt(attempt: int) -> None:
    after = ended(began(attempt), answered(410), now=NOW, spread=0, gone=True)
    assert (after.status, after.given_up) == (EventStatus.EXHAUSTED, GivenUp.GONE)


@given(attempt=st.integers(1, 11), status=st.sampled_from([None, 200, 410, 500]), spread=spreads)
def test_whatever_an_attempt_comes_to_only_its_own_entry_and_the_version_move(
    attempt: int, status: int | None, spread: float
) -> None:
    earlier = tuple(answered(at=NOW - number * HOUR) for number in range(attempt - 1, 0, -1))
    before = began(attempt, deliveries=earlier)
    after = ended(before, answered(status), now=NOW, spread=spread, gone=status == 410)
    assert after.version == before.version + 1
    assert after.deliveries == (*earlier, answered(status))
    assert (after.body, after.attempts) == (before.body, attempt)
    assert (after.status is EventStatus.PENDING) == (after.ended_at is None)
    assert (after.status is EventStatus.EXHAUSTED) == (after.given_up is not None)


@pytest.mark.parametrize("reason", GivenUp)
def test_giving_up_says_why_and_when_and_makes_no_entry(reason: GivenUp) -> None:
    before = an_event(deliveries=(answered(),))
    after = given_up(before, reason, now=NOW + HOUR)
    assert (after.status, after.given_up) == (EventStatus.EXHAUSTED, reason)
    assert after.ended_at == NOW + HOUR
    assert (after.version, after.deliveries) == (before.version + 1, before.deliveries)


# --- late notes ---


OVERTAKEN = leased(began(), NOW + MINUTE, writer="other")


def test_a_late_success_ends_a_pending_event_and_fills_in_its_own_entry() -> None:
    after = noted_late(OVERTAKEN, answered(200), now=NOW + MINUTE)
    assert (after.status, after.ended_at) == (EventStatus.DELIVERED, NOW + MINUTE)
    assert after.deliveries == (answered(200), Delivery(NOW + MINUTE))
    assert after.version == OVERTAKEN.version + 1


def test_a_late_failure_is_noted_and_changes_nothing_else() -> None:
    after = noted_late(OVERTAKEN, answered(500), now=NOW + MINUTE)
    assert after.deliveries[1:] == OVERTAKEN.deliveries[1:]
    assert replace(after, version=OVERTAKEN.version, deliveries=OVERTAKEN.deliveries) == OVERTAKEN
    assert after.deliveries[0] == answered(500)


def test_a_late_success_corrects_an_event_that_was_given_up() -> None:
    current = given_up(began(), GivenUp.DISABLED, now=NOW + MINUTE)
    after = noted_late(current, answered(200), now=NOW + 2 * MINUTE)
    assert (after.status, after.given_up) == (EventStatus.DELIVERED, None)
    assert after.ended_at == NOW + 2 * MINUTE


def test_a_late_success_of_a_delivered_event_keeps_its_end() -> None:
    current = ended(OVERTAKEN, answered(200, at=NOW + MINUTE), now=NOW + MINUTE, spread=0)
    after = noted_late(current, answered(200), now=NOW + HOUR)
    assert after.ended_at == NOW + MINUTE
    assert [entry.status for entry in after.deliveries] == [200, 200]


def test_an_entry_that_is_filled_in_is_never_overwritten() -> None:
    current = ended(began(), answered(500), now=NOW, spread=0)
    assert noted_late(current, answered(503), now=NOW).deliveries == (answered(500),)


# --- sending again ---


@pytest.mark.parametrize("reason", GivenUp)
def test_sending_again_is_a_new_round_of_eleven_with_the_old_log(reason: GivenUp) -> None:
    before = replace(failed(4), status=EventStatus.EXHAUSTED, given_up=reason, ended_at=NOW)
    again = sent_again(before, NOW + HOUR)
    assert (again.status, again.attempts, again.next_at) == (EventStatus.PENDING, 0, NOW + HOUR)
    assert (again.given_up, again.ended_at) == (None, None)
    assert (again.deliveries, again.body, again.id) == (before.deliveries, before.body, before.id)
    made = 0
    while may_attempt(again, again.next_at):
        at, made = again.next_at, made + 1
        again = leased(again, at, writer="w")
        again = ended(again, answered(at=at), now=at, spread=0)
    assert made == 11
    assert again.given_up is GivenUp.ATTEMPTS


# --- what is said ---


def test_the_body_is_the_seven_fields_in_their_order_and_compact() -> None:
    session = a_session(
        Status.COMPLETED,
        metadata_json='{"order":"ü 🫖","n":1,"t":true}',
        customer=WalletAddress("https://w.example/a", "EUR", 2, "https://a", "https://r"),
        outgoing_payment="https://r.example/out/1",
    )
    assert event_body(session) == (
        '{"id":"cs_0123456789abcdefABCDEF","status":"completed","amount_total":2000,'
        '"currency":"usd","metadata":{"order":"ü 🫖","n":1,"t":true},'
        '"outgoing_payment":"https://r.example/out/1","customer_wallet":"https://w.example/a"}'
    )


@pytest.mark.parametrize("status", [Status.EXPIRED, Status.CANCELED])
def test_the_body_of_an_end_without_a_payment_has_nulls(status: Status) -> None:
    body = json.loads(event_body(a_session(status)))
    assert body["status"] == status
    assert body["outgoing_payment"] is body["customer_wallet"] is None


def test_a_test_event_has_the_same_fields_says_that_it_is_one_and_is_worth_nothing() -> None:
    body = json.loads(ping_body("evt_1", currency="USD"))
    assert list(body) == list(json.loads(event_body(a_session())))
    assert body["id"] == "evt_1"
    assert body["status"] == PING
    assert body["status"] not in set(Status)
    assert body["metadata"] == {"test": True}
    assert (body["amount_total"], body["currency"]) == (0, "usd")


# --- endpoints ---


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ((), {COMPLETED, PING}),
        ((EXPIRED,), {COMPLETED, PING, EXPIRED}),
        ((EXPIRED, CANCELED), {COMPLETED, PING, EXPIRED, CANCELED}),
    ],
)
def test_optional_events_are_sent_where_they_are_asked_for(
    asked: tuple[str, ...], wanted: set[str]
) -> None:
    endpoint = an_endpoint(url="https://shop.example", events=asked)
    assert {each for each in (COMPLETED, EXPIRED, CANCELED, PING) if endpoint.wants(each)} == wanted


def test_a_rolled_secret_signs_until_its_end_and_not_at_it() -> None:
    new = WebhookSecret(sealed="new", created_at=NOW)
    old = WebhookSecret(sealed="old", created_at=NOW, expires_at=NOW + HOUR)
    endpoint = an_endpoint(url="https://shop.example", secrets=(new, old))
    assert endpoint.signing(NOW + HOUR - MS) == (new, old)
    assert endpoint.signing(NOW + HOUR) == (new,)


def test_a_sealed_secret_is_in_no_representation() -> None:
    secret = WebhookSecret(sealed="v1.ciphertext", created_at=NOW)
    assert "ciphertext" not in repr(an_endpoint(url="https://shop.example", secrets=(secret,)))
