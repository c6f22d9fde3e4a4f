"""A merchant ends a session: from which states, in which writes, and what is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from checkout.adapters.dynamo.events import event_from
from checkout.domain.ground.errors import (
    PaymentInProgress,
    SessionBusy,
    SessionUnexpectedState,
)
from checkout.domain.merchant.record import ApiKey
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Instruction, Phase
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.domain.webhooks.event_types import CANCELED, COMPLETED, EXPIRED
from checkout.domain.webhooks.record import WebhookEvent
from checkout.flows.payment import writes
from checkout.flows.retry_on_conflict import TRIES
from checkout.flows.session import close, lookup
from checkout.flows.session.lookup import apply_clock
from checkout.ports import StaleRecord
from checkout.services import Services
from tests.support.basics import NOW, between
from tests.support.flows import NotedHints
from tests.support.merchant_api import MerchantApi
from tests.support.samples import an_endpoint

LATER = NOW + timedelta(seconds=30)
JUST_SENT = Instruction("a", NOW)
EARLIER = NOW - timedelta(seconds=30)
AWAITING = Status.AWAITING_APPROVAL
End = Callable[[Services, ApiKey, str], Session]


@pytest.mark.parametrize(
    ("action", "status"),
    [(close.expire, Status.EXPIRED), (close.cancel, Status.CANCELED)],
)
@pytest.mark.parametrize(
    "changes",
    [
        {"status": Status.OPEN},
        {"status": AWAITING, "grant": "sealed"},
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": EARLIER},
    ],
)
def test_an_open_or_awaiting_session_ends_in_one_write(
    api: MerchantApi, action: End, status: Status, changes: dict[str, Any]
) -> None:
    session = api.store(**changes)
    api.dynamo.calls.clear()
    ended = action(api.services, api.key, session.id)
    assert ended.status is status
    # The session, the merchant (who may want to be told), the write.
    assert api.dynamo.calls == {"get_item": 2, "update_item": 1}
    assert (ended.grant, ended.phase, ended.needed_at) == (None, None, None)
    assert ended == api.stored(session.id)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": LATER},
        {"status": AWAITING, "phase": Phase.PAYING, "instruction": JUST_SENT},
        {
            "status": AWAITING,
            "phase": Phase.PAYING,
            "instruction": JUST_SENT,
            "expires_at": EARLIER,
        },
        {"status": Status.PROCESSING, "instruction": JUST_SENT},
    ],
)
@pytest.mark.parametrize(
    "action", [close.expire, close.cancel, close.accept_as_paid, close.give_up]
)
def test_a_payment_in_flight_is_not_taken_back(
    api: MerchantApi, action: End, changes: dict[str, Any]
) -> None:
    session = api.store(**changes)
    with pytest.raises(PaymentInProgress):
        action(api.services, api.key, session.id)
    assert api.stored(session.id) == session


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"status": Status.PREPARING, "lease_until": LATER}, "preparing"),
        ({"status": Status.COMPLETED}, "completed"),
        ({"status": Status.CANCELED}, "canceled"),
        ({"status": Status.EXPIRED}, "expired"),
        ({"status": Status.OPEN, "expires_at": NOW}, "expired"),
        ({"status": AWAITING, "expires_at": NOW}, "expired"),
    ],
)
@pytest.mark.parametrize("action", [close.expire, close.cancel])
def test_in_another_state_the_refusal_names_it_and_the_allowed_ones(
    api: MerchantApi, action: End, changes: dict[str, Any], named: str
) -> None:
    session = api.store(**changes)
    with pytest.raises(SessionUnexpectedState) as refused:
        action(api.services, api.key, session.id)
    for word in (named, "open", "awaiting_approval"):
        assert word in refused.value.message


def interfering(api: MerchantApi, times: int, win: Callable[[], Session]) -> Services:
    """Return services in whose store somebody else is faster, `times` over."""

    def lose() -> None:
        raise StaleRecord(win())

    return replace(api.services, sessions=between(api.services.sessions, "save", lose, times=times))


def test_a_loser_decides_anew_from_what_the_winner_left(api: MerchantApi) -> None:
    session = api.store(status=AWAITING)
    winner = api.store(status=Status.COMPLETED)
    services = interfering(api, 1, lambda: winner)
    with pytest.raises(SessionUnexpectedState, match="completed"):
        close.cancel(services, api.key, session.id)
    assert api.stored(session.id).status is AWAITING


def test_a_loser_tries_again_while_that_may_help_and_then_says_busy(api: MerchantApi) -> None:
    for times in (1, TRIES - 1):
        session = api.store()
        services = interfering(api, times, partial(api.stored, session.id))
        assert close.cancel(services, api.key, session.id).status is Status.CANCELED
    session = api.store()
    services = interfering(api, 100, partial(api.stored, session.id))
    with pytest.raises(SessionBusy):
        close.cancel(services, api.key, session.id)


def test_an_end_asked_for_in_doubt_is_refused_also_where_the_fence_cannot_begin(
    api: MerchantApi,
) -> None:
    long_ago = Instruction("a", NOW - timedelta(hours=1))
    session = api.store(status=Status.PROCESSING, instruction=long_ago)
    services = interfering(api, 100, lambda: session)
    with pytest.raises(PaymentInProgress):
        close.cancel(services, api.key, session.id)
    assert api.stored(session.id) == session


def test_a_settler_that_always_loses_returns_the_last_state_it_saw(api: MerchantApi) -> None:
    session = api.store(expires_at=NOW)
    assert apply_clock(interfering(api, 100, lambda: session), session) == session


# --- what the merchant is told


def listen(api: MerchantApi, *events: str) -> None:
    merchant = api.services.merchants.get("mer_1")
    assert merchant is not None
    endpoint = an_endpoint(url="https://shop.example/hooks", events=events)
    api.services.merchants.replace(merchant.changed(endpoint=endpoint))


def told(api: MerchantApi) -> list[WebhookEvent]:
    return [event_from(row) for row in api.rows("webhook_events")]


def passed(services: Services, key: ApiKey, session_id: str) -> Session:
    """Nobody ends it: time does, and a read notices."""
    return lookup.get(services, key, session_id)


ENDS: list[tuple[End, str, timedelta]] = [
    (close.cancel, CANCELED, timedelta(0)),
    (close.expire, EXPIRED, timedelta(0)),
    (passed, EXPIRED, timedelta(days=1)),
]


@pytest.mark.parametrize(("end", "wanted", "later"), ENDS)
def test_an_end_that_was_asked_for_is_told_in_the_transaction_that_makes_it(
    api: MerchantApi, end: End, wanted: str, later: timedelta
) -> None:
    listen(api, wanted)
    queue = NotedHints()
    services = replace(api.services, queue=queue)
    session = api.store(metadata_json='{"order":"ü 🫖"}')
    api.clock.pass_time(later.total_seconds())
    api.dynamo.calls.clear()
    ended = end(services, api.key, session.id)
    assert api.dynamo.calls == {"get_item": 2, "transact_write_items": 1}
    [event] = told(api)
    assert (event.id, event.type, event.session) == (ended.event, wanted, session.id)
    assert (event.merchant, event.attempts) == ("mer_1", 0)
    assert event.created_at == event.next_at == NOW + later
    body = json.loads(event.body)
    assert list(body.items())[:5] == [
        ("id", session.id),
        ("status", ended.status.value),
        ("amount_total", 2000),
        ("currency", "usd"),
        ("metadata", {"order": "ü 🫖"}),
    ]
    assert (queue.messages, queue.delays) == ([event.id], [0])


@pytest.mark.parametrize(("end", "wanted", "later"), ENDS)
@pytest.mark.parametrize("listening", ["no merchant", "no endpoint", "no wish", "another wish"])
def test_an_end_that_nobody_asked_for_is_told_to_nobody(
    api: MerchantApi, end: End, wanted: str, later: timedelta, listening: str
) -> None:
    merchant = "mer_gone" if listening == "no merchant" else "mer_1"
    if listening == "no wish":
        listen(api)
    if listening == "another wish":
        listen(api, CANCELED if wanted == EXPIRED else EXPIRED)
    session = api.store(merchant=merchant)
    api.clock.pass_time(later.total_seconds())
    ended = end(api.services, replace(api.key, merchant=merchant), session.id)
    assert ended.terminal
    assert ended.event is None
    assert told(api) == []


def test_of_two_ends_at_once_one_is_told_of(api: MerchantApi) -> None:
    listen(api, CANCELED, EXPIRED)
    session = api.store()
    cancel = partial(close.cancel, api.services, api.key, session.id)
    services = replace(api.services, sessions=between(api.services.sessions, "save", cancel))
    with pytest.raises(SessionUnexpectedState):
        close.expire(services, api.key, session.id)
    assert [event.type for event in told(api)] == [CANCELED]


@pytest.mark.parametrize("listening", [None, (), (EXPIRED,)])
def test_a_payment_is_told_whether_anybody_listens_or_not(
    api: MerchantApi, listening: tuple[str, ...] | None
) -> None:
    if listening is not None:
        listen(api, *listening)
    paid = api.store(status=Status.PROCESSING, outgoing_payment="https://r.example/out/1")
    change = advance(paid, Event.RECONCILED, now=NOW, writer="w", received=2000)
    api.dynamo.calls.clear()
    after = writes.commit(api.services, change)
    # The merchant is read for the second event: kept for a minute where customers pay.
    assert api.dynamo.calls == {"get_item": 1, "transact_write_items": 1}
    [event] = told(api)
    assert (event.id, event.type) == (after.event, COMPLETED)
    assert json.loads(event.body)["outgoing_payment"] == "https://r.example/out/1"
