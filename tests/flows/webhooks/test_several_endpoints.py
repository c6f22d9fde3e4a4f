"""Several endpoints of one merchant: each gets its own events, whatever becomes of the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import stripe

from checkout.domain.ground.errors import ResourceMissing, WebhookUnexpectedState
from checkout.domain.session.record import Session
from checkout.domain.webhooks.event_types import EXPIRED, PARTIALLY_PAID, PAYMENT_FAILED
from checkout.domain.webhooks.record import (
    Endpoint,
    EventStatus,
    Format,
    GivenUp,
    WebhookEvent,
    given_up,
)
from checkout.flows.merchant import rotation
from checkout.flows.session import close
from checkout.flows.webhooks import endpoints, event_log
from checkout.flows.webhooks.deliver import MessageResult, due_events
from checkout.flows.webhooks.endpoints import Failed, Resent
from checkout.flows.webhooks.event_log import EventQuery
from checkout.ports import Receipt
from tests.flows.deadly import Killed
from tests.support.basics import NOW
from tests.support.flows import CEDAR, PREFIX, World, on, raising

SHOP, BOOKS, TILL = (f"https://{name}.example/hooks" for name in ("shop", "books", "till"))
MINUTE = timedelta(minutes=1)


@pytest.fixture
def world() -> World:
    world = World()
    world.listen(url=SHOP)
    return world


def add(world: World, url: str = BOOKS, *events: str, **more: Any) -> Endpoint:
    done = endpoints.configure(
        world.endpoints, world.merchant.id, url=url, events=events, add=True, more=more
    )
    return done.endpoint


def paid(world: World) -> WebhookEvent:
    """Return the event of a session that was just paid."""
    session = world.pay(world.create())
    assert session.event is not None
    return world.event(session.event)


def all_delivered(world: World) -> list[str]:
    """Deliver until nothing is in the queue; return where to."""
    while world.queue.messages:
        world.deliver_hinted()
    return [url for url, _, _ in world.receivers.got]


def copy_of(world: World, event: WebhookEvent, endpoint: Endpoint) -> WebhookEvent:
    return world.event(f"{event.id}~{endpoint.id}")


def test_each_endpoint_gets_the_same_event_with_its_own_signature(world: World) -> None:
    add(world)
    add(world, TILL, format=Format.STRIPE)
    event = paid(world)
    assert sorted(all_delivered(world)) == [BOOKS, SHOP, TILL]
    got = {url: (headers, body) for url, headers, body in world.receivers.got}
    assert {headers["Checkout-Event-Id"] for headers, _ in got.values()} == {event.id}
    assert got[SHOP][1] == got[BOOKS][1] == event.body.encode()
    assert got[TILL][1] == (event.stripe_body or "").encode()
    assert len({headers["Checkout-Signature"] for headers, _ in got.values()}) == 3
    merchant = world.services.merchants.get(world.merchant.id)
    assert merchant is not None
    for endpoint in merchant.endpoints:
        place, sealed = merchant.secret_place(endpoint), endpoint.secrets[0].sealed
        secret = world.endpoints.vault.open(sealed, place=place)
        headers, body = got[endpoint.url]
        given = headers["Checkout-Signature"]
        assert stripe.WebhookSignature.verify_header(body.decode(), given, secret, tolerance=None)


def test_an_ordinary_merchant_pays_not_one_write_more(world: World) -> None:
    event = paid(world)
    world.forget()
    world.deliver(event.id)
    assert world.aws_calls() == ["get_item", "get_item", "put_item", "put_item"]
    assert event.endpoint is None


def test_each_endpoint_has_its_own_retries_and_given_up_ones(world: World) -> None:
    books = add(world)
    world.receivers.answers = [Receipt(status=500), Receipt(status=200)]
    event = paid(world)
    assert world.deliver_hinted() == [MessageResult.FAILED]
    assert world.deliver(f"{event.id}~{books.id}") is MessageResult.DELIVERED
    assert world.event(event.id).status is EventStatus.PENDING
    assert copy_of(world, event, books).status is EventStatus.DELIVERED


@pytest.mark.parametrize("fails", [SHOP, BOOKS])
def test_what_one_of_two_endpoints_missed_for_an_hour_is_found_and_nothing_else(
    world: World, fails: str
) -> None:
    add(world)
    down = False

    def answers() -> None:
        refused = down and world.receivers.got[-1][0] == fails
        world.receivers.answers = [Receipt(status=500 if refused else 200)]

    world.receivers.meanwhile = answers

    def sold() -> str:
        event = paid(world)
        for each in (event.id, f"{event.id}~{endpoint_of(world, BOOKS)}"):
            world.deliver(each)
        world.clock.pass_time(10)
        return event.id

    def listed(*, delivered: bool) -> list[str]:
        query = EventQuery(limit=100, rounds=1, delivered=delivered)
        return [each.id for each in event_log.events_page(world.services, world.key(), query)[0]]

    before = sold()
    down = True
    missed = [sold() for _ in range(3)]
    down = False
    after = sold()
    assert listed(delivered=False) == missed[::-1]
    assert listed(delivered=True) == [after, before]
    some = [world.event(each) for each in (before, *missed)]
    assert event_log.undelivered(world.services, world.key(), some) == {
        before: 0,
        **dict.fromkeys(missed, 1),
    }
    world.clock.pass_time(3600)
    for each in missed:
        for copy in (each, f"{each}~{endpoint_of(world, BOOKS)}"):
            world.deliver(copy)
    assert listed(delivered=False) == []


def endpoint_of(world: World, url: str) -> str:
    [found] = [each.id for each in world.stored().endpoints if each.url == url]
    assert found is not None
    return found


def test_an_event_that_nobody_asked_for_is_not_missed(world: World) -> None:
    first = endpoint_of(world, SHOP)
    endpoints.update(
        world.endpoints, world.merchant.id, {"asked": ("charge.refunded",)}, endpoint=first
    )
    event = paid(world)
    all_delivered(world)
    assert world.event(event.id).given_up is GivenUp.NOT_WANTED
    query = EventQuery(limit=9, rounds=1, delivered=False)
    assert event_log.events_page(world.services, world.key(), query) == ((), None)


def test_one_that_is_gone_is_disabled_alone(world: World) -> None:
    books = add(world)
    world.receivers.answers = [Receipt(status=200), Receipt(status=410)]
    event = paid(world)
    all_delivered(world)
    assert copy_of(world, event, books).given_up is GivenUp.GONE
    first, second = world.stored().endpoints
    assert (first.disabled_at, second.disabled_at) == (None, world.clock.now())
    again = paid(world)
    all_delivered(world)
    assert world.event(again.id).status is EventStatus.DELIVERED
    assert copy_of(world, again, books).given_up is GivenUp.DISABLED
    with pytest.raises(WebhookUnexpectedState, match="disabled"):
        endpoints.ping(world.endpoints, world.merchant.id, endpoint=books.id)
    endpoints.enable(world.endpoints, world.merchant.id, endpoint=books.id)
    done = endpoints.resend_failed(world.endpoints, world.merchant.id, since=NOW, endpoint=books.id)
    assert done == Resent(2, None)
    all_delivered(world)
    assert copy_of(world, event, books).status is EventStatus.DELIVERED


def test_an_endpoint_gets_only_what_it_has_asked_for(world: World) -> None:
    books = add(world, BOOKS, EXPIRED)
    session = close.expire(world.core, world.key(), world.create().id)
    event = world.event(session.event)
    assert all_delivered(world) == [BOOKS]
    first = world.event(event.id)
    assert (first.status, first.given_up) == (EventStatus.EXHAUSTED, GivenUp.NOT_WANTED)
    assert not first.in_vain
    assert copy_of(world, event, books).status is EventStatus.DELIVERED
    failed = endpoints.count_failed(world.endpoints, world.merchant.id, since=NOW)
    assert failed == Failed(0, more=False)
    other = close.cancel(world.core, world.key(), world.create().id)
    assert other.event is None, "nobody asked for it, so nothing is written"


def failed(world: World) -> Session:
    processing = world.pay(world.create(), f"{CEDAR}/no-funds")
    return world.settle(processing)


def refused(world: World) -> Session:
    world.transport.before = on("POST", "/outgoing-payments", world.raise_prices)
    return world.pay(world.create())


@pytest.mark.parametrize(
    ("event_type", "happens", "status"),
    [
        (PARTIALLY_PAID, World.partly_paid, "processing"),
        (PAYMENT_FAILED, failed, "open"),
        (PAYMENT_FAILED, refused, "open"),
    ],
)
def test_partial_payments_and_failures_are_sent_to_who_asks(
    event_type: str, happens: Callable[[World], Session], status: str
) -> None:
    quiet = World()
    quiet.listen()
    happens(quiet)
    assert quiet.events() == []
    world = World()
    world.listen(event_type)
    session = happens(world)
    assert session.event is None, "it is not the event of the session's end"
    event = world.event()
    body = json.loads(event.body)
    assert (event.type, body["status"], body["id"]) == (event_type, status, session.id)
    assert len(body) == 7 + (event_type == PARTIALLY_PAID)
    if event_type == PARTIALLY_PAID:
        assert body["amount_received"] == session.amount_received
    all_delivered(world)
    assert world.event().status is EventStatus.DELIVERED


def test_an_endpoint_gets_nothing_from_before_it_existed(world: World) -> None:
    event = paid(world)
    world.clock.pass_time(1)
    add(world)
    assert all_delivered(world) == [SHOP]
    assert [row["id"] for row in world.events()] == [event.id]


def test_an_event_of_a_removed_endpoint_is_not_sent_to_the_next_one(world: World) -> None:
    books = add(world)
    event = paid(world)
    world.deliver_hinted()
    merchant = world.merchant.id
    endpoints.remove(world.endpoints, merchant, endpoint=books.id)
    assert all_delivered(world) == [SHOP]
    assert copy_of(world, event, books).given_up is GivenUp.NO_ENDPOINT
    late = paid(world)
    endpoints.remove(world.endpoints, merchant)
    world.clock.pass_time(1)
    world.listen(url=TILL)
    all_delivered(world)
    assert world.event(late.id).given_up is GivenUp.NO_ENDPOINT
    done = endpoints.resend_failed(world.endpoints, merchant, since=NOW)
    assert done.count == 0
    endpoints.resend(world.endpoints, merchant, late.id)
    assert all_delivered(world) == [SHOP, TILL], "who asks for one event gets it"


@pytest.mark.parametrize("stage", ["add_copy", "save"])
def test_a_process_that_dies_in_between_loses_and_doubles_nothing(
    world: World, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(world)
    add(world, TILL)
    event = paid(world)
    world.queue.messages.clear()
    with monkeypatch.context() as dying:
        dying.setattr(type(world.core.events), stage, raising(Killed()))
        with pytest.raises(Killed):
            world.deliver(event.id)
    world.queue.messages.clear()
    due = due_events(world.core.events, world.clock.now(), lambda f, s: [f(e) for e in s])
    assert {each.merchant for each in due} == {world.merchant.id}
    for each in due:
        world.deliver(each.id)
    assert sorted(all_delivered(world)) == [BOOKS, SHOP, TILL]
    assert len(world.events()) == 3


def test_a_test_event_goes_to_one_endpoint(world: World) -> None:
    books = add(world)
    event = endpoints.ping(world.endpoints, world.merchant.id, endpoint=books.id)
    assert all_delivered(world) == [BOOKS]
    [(_, headers, body)] = world.receivers.got
    assert headers["Checkout-Event-Id"] == json.loads(body)["id"] == event.event
    listed = event_log.page(
        world.endpoints, world.key(), status=None, after=None, endpoint=books.id
    )
    assert [each.id for each in listed.records] == [event.id]
    assert world.event(event.id).status is EventStatus.DELIVERED
    endpoints.ping(world.endpoints, world.merchant.id)
    assert all_delivered(world) == [BOOKS, SHOP]


def test_each_endpoint_has_its_own_secret_that_serves_nowhere_else(world: World) -> None:
    books = add(world)
    merchant = world.stored()
    first, second = (merchant.secret_place(each) for each in merchant.endpoints)
    assert first != second
    opened = {
        world.vault.open(each.secrets[0].sealed, place=merchant.secret_place(each))
        for each in merchant.endpoints
    }
    assert len(opened) == 2
    rolled = endpoints.roll_secret(world.endpoints, merchant.id, overlap=MINUTE, endpoint=books.id)
    assert [len(each.secrets) for each in world.stored().endpoints] == [1, 2]
    assert rolled.endpoint == world.stored().endpoints[1]
    world.encryption_key = f"{'22' * 32},{'11' * 32}"
    world.clock.pass_time(600)  # processes read the key anew
    before = world.stored()
    done = rotation.re_encrypt(world.services, on_progress=lambda _: None)
    assert done.complete
    assert before.further_endpoints != world.stored().further_endpoints


def test_an_endpoint_is_changed_by_its_id(world: World) -> None:
    books, merchant = add(world), world.merchant.id
    endpoints.configure(world.endpoints, merchant, url=TILL, events=(EXPIRED,), endpoint=books.id)
    assert [each.url for each in world.stored().endpoints] == [SHOP, TILL]
    with pytest.raises(ResourceMissing):
        endpoints.configure(world.endpoints, merchant, url=TILL, events=(), endpoint="we_none")
    endpoints.remove(world.endpoints, merchant, endpoint="we_none")
    assert len(world.stored().endpoints) == 2


def test_the_failed_ones_are_counted_before_they_are_sent_again(world: World) -> None:
    books = add(world)
    for _ in range(3):
        event = paid(world)
        world.deliver(event.id)
    world.queue.messages.clear()
    for row in world.events():
        if "~" in row["id"]:
            copy = world.event(row["id"])
            world.core.events.save(given_up(copy, GivenUp.ATTEMPTS, now=NOW))
    counted = endpoints.count_failed(
        world.endpoints, world.merchant.id, since=NOW, endpoint=books.id
    )
    assert counted == Failed(3, more=False)
    assert world.queue.messages == []


def test_only_so_many_pages_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkout.flows.webhooks.endpoints.RESEND_PAGE", 1)
    monkeypatch.setattr("checkout.flows.webhooks.endpoints.COUNTED_PAGES", 2)
    for _ in range(3):
        paid(world)
    assert endpoints.count_failed(world.endpoints, world.merchant.id, since=NOW).more


def test_a_copy_and_its_endpoint_are_in_one_attribute_of_the_index(world: World) -> None:
    books = add(world)
    event = paid(world)
    world.deliver_hinted()
    rows = {row["id"]["S"]: row for row in world.dynamo.rows(f"{PREFIX}-webhook_events")}
    assert rows[event.id]["merchant"]["S"] == world.merchant.id
    copy = rows[f"{event.id}~{books.id}"]
    assert copy["merchant"]["S"] == f"{world.merchant.id}/{books.id}"
