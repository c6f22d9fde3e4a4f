"""Attempts at delivery, one at a time, and everything that can come between."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from checkout.adapters.runtime import Threads, run_in_turn
from checkout.domain.ground.errors import Unavailable
from checkout.domain.webhooks.record import FIRST_MESSAGE, Delivery, EventStatus, GivenUp
from checkout.flows.retry_on_conflict import TRIES
from checkout.flows.webhooks import deliver as flow
from checkout.flows.webhooks import endpoints
from checkout.flows.webhooks.deliver import (
    Enqueued,
    MessageResult,
    deliver,
    due_events,
    enqueue_due,
)
from checkout.ports import Receipt
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.flows.deadly import Killed
from tests.support.basics import NOW, between
from tests.support.flows import PREFIX, World, raising
from tests.support.protected import DELIVERY_ATTEMPTS, DELIVERY_LEASE
from tests.support.samples import an_event
from tests.support.stores import Watched

URL = "https://shop.example/hooks"
MS = timedelta(milliseconds=1)
FAILED = Receipt(status=500, answer="oops")
PENDING, DELIVERED, EXHAUSTED = EventStatus
DOWN = raising(ClientError({"Error": {"Code": "InternalServerError", "Message": ""}}, "PutItem"))


@pytest.fixture
def world() -> World:
    """A merchant that listens."""
    world = World(client=Watched(InMemoryDynamoDb(table_definitions(PREFIX))))
    world.listen()
    return world


def pinged(world: World) -> str:
    """An event that is owed its first attempt now, with its hint in the queue."""
    return endpoints.ping(world.endpoints, world.merchant.id).id


def wait(world: World, event_id: str) -> None:
    """Until the next attempt is owed."""
    left = world.event(event_id).next_at - world.clock.now()
    world.clock.pass_time(left / timedelta(seconds=1))


def dies(world: World, event_id: str) -> None:
    """An attempt whose process ends while the receiver is being asked."""
    world.receivers.meanwhile = raising(Killed())
    with pytest.raises(Killed):
        world.deliver(event_id)
    world.receivers.meanwhile = lambda: None


def v1s(headers: dict[str, str]) -> list[str]:
    _, *signatures = headers["Checkout-Signature"].split(",")
    return [each.removeprefix("v1=") for each in signatures]


def signed(secret: str, headers: dict[str, str], body: bytes) -> str:
    at = headers["Checkout-Signature"].partition(",")[0].removeprefix("t=")
    return hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()


# --- outcomes ---


def test_a_success_ends_the_event_and_the_log_says_what_was_answered(world: World) -> None:
    event_id = pinged(world)
    world.receivers.meanwhile = lambda: world.clock.pass_time(0.25)
    assert world.deliver(event_id) is MessageResult.DELIVERED
    event = world.event(event_id)
    assert (event.status, event.attempts, event.ended_at) == (DELIVERED, 1, NOW + 250 * MS)
    assert event.deliveries == (Delivery(NOW, 250, 200, None, "thanks"),)
    assert world.deliver(event_id) is MessageResult.NOTHING
    assert len(world.receivers.got) == 1


@pytest.mark.parametrize(
    "receipt",
    [
        Receipt(status=302, answer=""),
        Receipt(status=404, answer="no"),
        FAILED,
        Receipt(error="not sent: shop.example: address refused"),
        Receipt(error="no answer: shop.example: out of time"),
    ],
)
def test_a_failure_is_noted_and_tried_again_after_the_pause(world: World, receipt: Receipt) -> None:
    event_id = pinged(world)
    world.receivers.answers = [receipt]
    world.forget()
    assert world.deliver(event_id) is MessageResult.FAILED
    event = world.event(event_id)
    assert (event.status, event.next_at) == (PENDING, NOW + timedelta(seconds=1))
    assert event.deliveries == (Delivery(NOW, 0, receipt.status, receipt.error, receipt.answer),)
    assert (world.queue.messages, world.queue.delays) == ([event_id], [1])


def test_a_pause_that_the_queue_cannot_keep_is_left_to_the_sweep(world: World) -> None:
    event_id = pinged(world)
    enqueued = []
    for _ in range(5):
        world.receivers.answers = [FAILED]
        world.queue.messages.clear()
        world.deliver(event_id)
        enqueued.append(bool(world.queue.messages))
        wait(world, event_id)
    assert enqueued == [True, True, True, False, False]


@pytest.mark.parametrize(("seconds", "messages"), [(900, 1), (901, 0), (10**9, 0)])
def test_a_wish_to_wait_is_kept_and_never_hinted_beyond_the_queues_limit(
    world: World, seconds: int, messages: int
) -> None:
    event_id = pinged(world)
    world.forget()
    world.receivers.answers = [replace(FAILED, retry_after=timedelta(seconds=seconds))]
    world.deliver(event_id)
    assert world.event(event_id).next_at == NOW + timedelta(seconds=min(seconds, 86_400))
    assert len(world.queue.messages) == messages
    assert all(delay <= 900 for delay in world.queue.delays)


def test_eleven_failures_are_the_end_each_at_its_time_and_of_the_same_bytes(world: World) -> None:
    session = world.pay(world.create(metadata_json='{"order":"ü 🫖"}'))
    event_id = session.event
    assert event_id is not None
    outcomes = []
    for _ in range(DELIVERY_ATTEMPTS):
        world.receivers.answers = [FAILED]
        wait(world, event_id)
        outcomes.append(world.deliver(event_id))
    assert outcomes == [MessageResult.FAILED] * 10 + [MessageResult.GIVEN_UP]
    event = world.event(event_id)
    assert (event.status, event.given_up) == (EXHAUSTED, GivenUp.ATTEMPTS)
    assert world.deliver(event_id) is MessageResult.NOTHING
    bodies = {body for _, _, body in world.receivers.got}
    assert bodies == {event.body.encode()}
    assert len(world.receivers.got) == 11
    times = [int(headers["webhook-timestamp"]) for _, headers, _ in world.receivers.got]
    assert times == sorted(set(times))  # fresh for each attempt
    assert {headers["webhook-id"] for _, headers, _ in world.receivers.got} == {event_id}


def test_without_an_endpoint_nothing_is_sent_and_the_event_can_be_sent_later(world: World) -> None:
    event_id = pinged(world)
    endpoints.remove(world.endpoints, world.merchant.id)
    assert world.deliver(event_id) is MessageResult.GIVEN_UP
    event = world.event(event_id)
    assert (event.status, event.given_up, event.attempts) == (EXHAUSTED, GivenUp.NO_ENDPOINT, 0)
    endpoints.resend(world.endpoints, world.merchant.id, event_id)
    assert world.deliver(event_id) is MessageResult.GIVEN_UP, "there is still none"
    world.listen(url="https://new.example/hooks")
    endpoints.resend(world.endpoints, world.merchant.id, event_id)
    assert world.deliver(event_id) is MessageResult.DELIVERED
    assert [url for url, _, _ in world.receivers.got] == ["https://new.example/hooks"]


def test_a_merchant_that_is_unknown_has_no_endpoint(world: World) -> None:
    world.services.events.add(an_event(id="evt_lone", merchant="mer_unknown"))
    assert world.deliver("evt_lone") is MessageResult.GIVEN_UP
    assert world.event("evt_lone").given_up is GivenUp.NO_ENDPOINT


# --- the endpoint changes ---


def test_410_does_not_disable_an_endpoint_that_was_set_meanwhile(world: World) -> None:
    event_id = pinged(world)
    world.receivers.answers = [Receipt(status=410, answer="")]
    world.receivers.meanwhile = lambda: endpoints.configure(
        world.endpoints, world.merchant.id, url="https://new.example/", events=()
    )
    assert world.deliver(event_id) is MessageResult.GIVEN_UP
    stored = world.endpoint()
    assert (stored.url, stored.disabled_at) == ("https://new.example/", None)


@pytest.mark.parametrize("change", ["removed", "disabled"])
def test_410_of_an_endpoint_that_is_gone_already_changes_no_merchant(
    world: World, change: str
) -> None:
    event_id = pinged(world)
    world.receivers.answers = [Receipt(status=410, answer="")]

    def meanwhile() -> None:
        merchant = world.stored()
        if change == "removed":
            endpoints.remove(world.endpoints, merchant.id)
        else:
            world.core.merchants.replace(merchant.disabled(NOW - 5 * MS))

    world.receivers.meanwhile = meanwhile
    before = world.stored().version
    assert world.deliver(event_id) is MessageResult.GIVEN_UP
    assert world.stored().version == before + 1


@pytest.mark.parametrize(("races", "disabled"), [(TRIES - 1, True), (TRIES, False)])
def test_disabling_gives_way_to_other_changes_and_undoes_none(
    world: World, races: int, disabled: bool
) -> None:
    event_id = pinged(world)
    merchants, names = world.core.merchants, iter(range(races))

    def renamed() -> None:
        merchants.replace(world.stored().changed(name=f"Shop {next(names)}"))

    contended = between(merchants, "replace", renamed, times=races)
    world.core = replace(world.core, merchants=contended)
    world.receivers.answers = [Receipt(status=410, answer="")]
    assert world.deliver(event_id) is MessageResult.GIVEN_UP
    assert (world.endpoint().disabled_at is not None) is disabled
    assert world.stored().name == f"Shop {races - 1}"


def test_an_address_that_was_changed_between_two_attempts_gets_the_second(world: World) -> None:
    event_id = pinged(world)
    world.receivers.answers = [FAILED]
    world.deliver(event_id)
    endpoints.configure(
        world.endpoints, world.merchant.id, url="https://new.example/hooks", events=()
    )
    wait(world, event_id)
    assert world.deliver(event_id) is MessageResult.DELIVERED
    assert [url for url, _, _ in world.receivers.got] == [URL, "https://new.example/hooks"]


# --- secrets ---


def test_while_a_secret_is_rolled_both_sign_and_after_the_overlap_the_new_one_alone() -> None:
    world = World()
    old = world.listen()
    rolled = endpoints.roll_secret(
        world.endpoints, world.merchant.id, overlap=timedelta(hours=1)
    ).secret
    assert rolled is not None
    both = pinged(world)
    world.clock.pass_time(3599.999)
    world.deliver(both)
    world.clock.pass_time(0.001)
    alone = pinged(world)
    world.deliver(alone)
    found = [
        [secret for secret in (rolled, old) if signed(secret, headers, body) in v1s(headers)]
        for _, headers, body in world.receivers.got
    ]
    assert found == [[rolled, old], [rolled]]
    assert [len(v1s(headers)) for _, headers, _ in world.receivers.got] == [2, 1]
    _, headers, body = world.receivers.got[0]
    content = f"{both}.{headers['webhook-timestamp']}.".encode() + body
    standard = [
        base64.b64encode(
            hmac.new(base64.b64decode(secret[6:]), content, hashlib.sha256).digest()
        ).decode()
        for secret in (rolled, old)
    ]
    assert headers["webhook-signature"] == " ".join(f"v1,{each}" for each in standard)


def test_where_the_key_cannot_be_had_no_attempt_is_spent(world: World) -> None:
    event_id = pinged(world)
    before = world.event(event_id)
    down = between(world.vault, "open", raising(Unavailable("The key service is not answering.")))
    with pytest.raises(Unavailable):
        deliver(world.core, down, world.receivers, event_id)
    assert world.event(event_id) == before
    assert world.deliver(event_id) is MessageResult.DELIVERED


def test_no_secret_is_in_what_is_logged_or_sent(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    secret = world.listen()
    with caplog.at_level(logging.DEBUG):
        world.deliver(pinged(world))
    assert secret.removeprefix("whsec_") not in caplog.text
    assert secret.removeprefix("whsec_") not in repr(world.receivers.got)


# --- hints ---


def test_a_hint_that_comes_a_little_early_is_sent_again_and_no_attempt_made(world: World) -> None:
    event_id = pinged(world)
    world.receivers.answers = [FAILED]
    world.deliver(event_id)
    world.clock.pass_time(0.2)
    world.forget()
    assert world.deliver(event_id) is MessageResult.NOTHING
    assert (world.queue.messages, world.queue.delays) == ([event_id], [1])  # never early again
    assert len(world.receivers.got) == 1


def test_a_hint_that_comes_far_too_early_is_dropped(world: World) -> None:
    event_id = pinged(world)
    dies(world, event_id)
    world.queue.messages.clear()
    world.clock.pass_time((DELIVERY_LEASE - flow.EARLY) / timedelta(seconds=1) - 0.001)
    assert world.deliver(event_id) is MessageResult.NOTHING
    assert world.queue.messages == []
    world.clock.pass_time(0.001)
    world.deliver(event_id)
    assert world.queue.messages == [event_id]


# --- processes that die, and two at once ---


def test_after_a_death_the_next_attempt_is_made_when_the_lease_is_over(world: World) -> None:
    event_id = pinged(world)
    dies(world, event_id)
    assert world.event(event_id).deliveries == (Delivery(NOW),)
    world.clock.pass_time(29.999)
    assert world.deliver(event_id) is MessageResult.NOTHING
    world.clock.pass_time(0.001)
    assert world.deliver(event_id) is MessageResult.DELIVERED
    event = world.event(event_id)
    assert [entry.status for entry in event.deliveries] == [None, 200]
    assert event.deliveries[0].duration_ms is None  # nobody knows how it ended
    assert event.attempts == 2


def test_deaths_alone_lead_to_the_end_too(world: World) -> None:
    event_id = pinged(world)
    for _ in range(DELIVERY_ATTEMPTS):
        dies(world, event_id)
        wait(world, event_id)
    assert world.event(event_id).status is PENDING
    assert world.deliver(event_id) is MessageResult.GIVEN_UP
    event = world.event(event_id)
    assert (event.given_up, event.attempts) == (GivenUp.ATTEMPTS, DELIVERY_ATTEMPTS)
    assert len(world.receivers.got) == DELIVERY_ATTEMPTS


def before_the_lease(world: World, meanwhile: Callable[[], object]) -> Any:
    """Sender services in which `meanwhile` happens after the event was read."""

    return replace(world.core, merchants=between(world.core.merchants, "get", meanwhile))


def test_of_two_senders_one_makes_the_attempt(world: World) -> None:
    event_id = pinged(world)
    outcomes: list[MessageResult] = []
    late = before_the_lease(world, lambda: outcomes.append(world.deliver(event_id)))
    assert deliver(late, world.vault, world.receivers, event_id) is MessageResult.NOTHING
    assert outcomes == [MessageResult.DELIVERED]
    assert len(world.receivers.got) == 1


def test_who_has_slept_through_its_lease_sends_nothing(world: World) -> None:
    event_id = pinged(world)
    asleep = between(world.vault, "open", lambda: world.clock.pass_time(29))
    assert deliver(world.core, asleep, world.receivers, event_id) is MessageResult.NOTHING
    assert world.receivers.got == []
    world.clock.pass_time(1)
    assert world.deliver(event_id) is MessageResult.DELIVERED


def test_of_two_senders_in_the_same_millisecond_one_makes_the_attempt(world: World) -> None:
    event_id = pinged(world)
    late = before_the_lease(world, lambda: dies(world, event_id))
    assert deliver(late, world.vault, world.receivers, event_id) is MessageResult.NOTHING
    assert len(world.receivers.got) == 1
    assert world.event(event_id).attempts == 1


def test_who_would_give_up_an_event_that_has_moved_leaves_it(world: World) -> None:
    event_id = pinged(world)

    def meanwhile() -> None:
        world.deliver(event_id)
        endpoints.remove(world.endpoints, world.merchant.id)

    late = before_the_lease(world, meanwhile)
    assert deliver(late, world.vault, world.receivers, event_id) is MessageResult.NOTHING
    assert world.event(event_id).status is DELIVERED


# --- outcomes that come after the lease ---


def overtaken(world: World, event_id: str, first: Receipt, second: Receipt) -> list[MessageResult]:
    """An attempt takes longer than its lease, and another one is made in the meantime."""
    outcomes: list[MessageResult] = []

    def meanwhile() -> None:
        world.receivers.meanwhile = lambda: None
        world.clock.pass_time(30)
        world.receivers.answers = [second, first]
        outcomes.append(world.deliver(event_id))

    world.receivers.meanwhile = meanwhile
    return [world.deliver(event_id), *outcomes]


def test_a_late_success_ends_an_event_whose_next_attempt_has_failed(world: World) -> None:
    event_id = pinged(world)
    said = overtaken(world, event_id, Receipt(status=200), FAILED)
    assert said == [MessageResult.DELIVERED, MessageResult.FAILED]
    event = world.event(event_id)
    assert (event.status, event.attempts) == (DELIVERED, 2)
    assert [entry.status for entry in event.deliveries] == [200, 500]
    assert [entry.duration_ms for entry in event.deliveries] == [30_000, 0]
    world.clock.pass_time(60)
    assert world.deliver(event_id) is MessageResult.NOTHING


@pytest.mark.parametrize(("late", "meanwhile"), [(500, 200), (200, 410)])
def test_a_success_stands_whatever_else_comes_late_or_meanwhile(
    world: World, late: int, meanwhile: int
) -> None:
    event_id = pinged(world)
    overtaken(world, event_id, Receipt(status=late), Receipt(status=meanwhile))
    event = world.event(event_id)
    assert (event.status, event.given_up) == (DELIVERED, None)
    assert event.ended_at == NOW + timedelta(seconds=30)
    assert [entry.status for entry in event.deliveries] == [late, meanwhile]


@pytest.mark.parametrize(("races", "noted"), [(TRIES, True), (TRIES + 1, False)])
def test_a_late_note_gives_way_to_other_writers_and_undoes_none(
    world: World, races: int, noted: bool
) -> None:
    event_id = pinged(world)
    events = world.services.events

    def meanwhile() -> None:
        if world.receivers.got:  # the outcome's own write, then the notes
            current = world.event(event_id)
            events.save(replace(current, version=current.version + 1, attempts=9))

    contended = between(events, "save", meanwhile, times=1 + races)  # the lease comes first
    world.core = replace(world.core, events=contended)
    assert world.deliver(event_id) is MessageResult.DELIVERED
    event = world.event(event_id)
    assert (event.status is DELIVERED) is noted
    assert event.attempts == 9


# --- answers of the store that get lost ---


def lost(world: World, write: int) -> None:
    """The answer to this write of the next attempt gets lost; it is tried again."""
    client: Any = world.dynamo
    done = client.client.put_item
    count = [0]

    def put_item(**request: Any) -> Any:
        count[0] += 1
        answer = done(**request)
        if count[0] == write:
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
        return answer

    client.client.put_item = put_item


@pytest.mark.parametrize("receipt", [Receipt(status=200), FAILED])
@pytest.mark.parametrize("write", [1, 2])
def test_a_lost_answer_of_either_write_changes_nothing(
    world: World, write: int, receipt: Receipt
) -> None:
    event_id = pinged(world)
    lost(world, write)
    world.receivers.answers = [replace(receipt, answer="said")]
    world.queue.messages.clear()
    expected = MessageResult.DELIVERED if receipt.status == 200 else MessageResult.FAILED
    assert world.deliver(event_id) is expected
    event = world.event(event_id)
    assert (event.version, event.attempts) == (3, 1)
    assert [entry.status for entry in event.deliveries] == [receipt.status]
    assert len(world.receivers.got) == 1
    assert world.queue.messages == ([event_id] if event.status is PENDING else [])


def test_a_lost_answer_of_a_jittered_pause_counts_as_written(world: World) -> None:
    event_id = pinged(world)
    for _ in range(2):
        world.receivers.answers = [FAILED]
        world.deliver(event_id)
        wait(world, event_id)
    lost(world, 2)
    world.receivers.answers = [FAILED]
    before = world.event(event_id).version
    world.deliver(event_id)
    assert world.event(event_id).version == before + 2


@pytest.mark.parametrize("endpoint", ["none", "disabled"])
def test_a_lost_answer_of_giving_up_changes_nothing(world: World, endpoint: str) -> None:
    event_id = pinged(world)
    if endpoint == "none":
        endpoints.remove(world.endpoints, world.merchant.id)
    else:
        world.core.merchants.replace(world.stored().disabled(NOW))
    lost(world, 1)
    assert world.deliver(event_id) is MessageResult.GIVEN_UP
    assert world.event(event_id).version == 2


def test_a_store_that_fails_before_the_lease_costs_no_attempt(world: World) -> None:
    event_id = pinged(world)
    client: Any = world.dynamo
    client.put_item = DOWN
    with pytest.raises(Unavailable):
        world.deliver(event_id)
    assert world.receivers.got == []
    del client.put_item
    assert world.deliver(event_id) is MessageResult.DELIVERED


def test_a_store_that_fails_after_a_success_lets_it_be_sent_once_more(world: World) -> None:
    event_id = pinged(world)
    client: Any = world.dynamo
    world.receivers.meanwhile = lambda: setattr(client, "put_item", DOWN)
    with pytest.raises(Unavailable):
        world.deliver(event_id)
    del client.put_item
    world.receivers.meanwhile = lambda: None
    assert world.deliver(event_id) is MessageResult.NOTHING
    world.clock.pass_time(30)
    assert world.deliver(event_id) is MessageResult.DELIVERED
    assert len({body for _, _, body in world.receivers.got}) == 1
    assert len(world.receivers.got) == 2


# --- what the sweep hints at ---


def enqueue(world: World, events: Any = None, *, seconds: float = 10) -> Enqueued:
    events, clock = events or world.services.events, world.clock
    found = due_events(events, clock.now(), run_in_turn)
    until = clock.now() + timedelta(seconds=seconds)
    return enqueue_due(events, world.queue, clock, run_in_turn, found, until=until)


def swept(world: World) -> list[str]:
    world.forget()
    enqueue(world)
    return world.queue.messages


def test_what_nothing_came_of_is_hinted_at_again_five_minutes_later(world: World) -> None:
    event_id = pinged(world)
    enqueued = []
    for minute in range(10):
        if swept(world):
            assert world.queue.messages == [event_id]
            enqueued.append(60 * minute + world.queue.delays[0])
        world.clock.pass_time(60)
    assert enqueued == [60, 360, 660]  # before, there is the message of its creation


def test_putting_off_makes_what_is_due_no_younger(world: World) -> None:
    pinged(world)
    ages = []
    world.clock.pass_time(60)
    for _ in range(3):
        found = enqueue(world)
        ages.append(found.longest.total_seconds())
        world.clock.pass_time(300)
    assert ages == [0, 300, 600]


def test_what_falls_due_before_the_next_round_is_hinted_at_with_its_delay(world: World) -> None:
    event_id = pinged(world)
    world.clock.pass_time(60)
    dies(world, event_id)  # due in 30 s
    assert (swept(world), world.queue.delays) == ([event_id], [30])


def owe(world: World, merchant: str, count: int, *, age: float) -> list[str]:
    """Add events of a merchant that have been due for `age` seconds, the oldest first."""
    since = world.clock.now() - timedelta(seconds=age)
    ids = [f"evt_{merchant}_{number:04d}" for number in range(count)]
    for number, each in enumerate(ids):
        at = since + timedelta(milliseconds=number)
        created = at - FIRST_MESSAGE
        event = an_event(id=each, merchant=merchant, created_at=created, next_at=at)
        world.services.events.add(event)
    return ids


def test_merchants_take_turns_however_much_one_of_them_owes(world: World) -> None:
    flood = owe(world, "mer_flood", 100, age=3600)
    one, few = owe(world, "mer_one", 1, age=5), owe(world, "mer_few", 3, age=1)
    enqueued = swept(world)
    assert set(enqueued[:7]) == {*flood[:3], *one, *few}
    assert enqueued[7:] == flood[3:]


def test_a_round_ends_in_time_and_the_next_one_goes_on(world: World) -> None:
    flood, one = owe(world, "mer_flood", 50, age=3600), owe(world, "mer_one", 1, age=5)
    slow = between(world.services.events, "put_off", lambda: world.clock.pass_time(0.1), times=99)
    found = enqueue(world, slow, seconds=1.5)
    assert found.enqueued == len(world.queue.messages) == 20  # a batch that has begun is finished
    assert found.longest == timedelta(hours=1)
    assert one[0] in world.queue.messages
    first, again = world.queue.messages.copy(), swept(world)
    now = [each for each, delay in zip(again, world.queue.delays, strict=True) if not delay]
    assert sorted([*first, *now]) == sorted([*flood, *one])


def test_side_by_side_every_event_is_enqueued_once(world: World) -> None:
    ids = owe(world, "mer_flood", 95, age=60)
    events, clock, threads = world.services.events, world.clock, Threads(4)
    found = due_events(events, clock.now(), threads)
    until = clock.now() + timedelta(seconds=10)
    enqueue_due(events, world.queue, clock, threads, found, until=until)
    assert sorted(world.queue.messages) == ids
    swept(world)
    assert set(world.queue.delays) == {300}  # none is due now


def test_being_hinted_at_costs_an_event_neither_version_nor_attempt(world: World) -> None:
    event_id = pinged(world)
    before = world.event(event_id)
    swept(world)
    assert world.event(event_id) == before
    assert world.deliver(event_id) is MessageResult.DELIVERED
    world.clock.pass_time(3600)
    assert swept(world) == []


def test_two_rounds_at_once_hint_twice_and_one_attempt_is_made(world: World) -> None:
    event_id = pinged(world)
    events, enqueued = world.services.events, world.queue.messages
    enqueued.clear()

    def meanwhile() -> None:
        world.clock.pass_time(0.001)
        enqueue(world)

    late = between(events, "put_off", meanwhile)
    assert enqueue(world, late).enqueued == 1
    assert enqueued == [event_id] * 2
    assert world.deliver_hinted() == [MessageResult.DELIVERED, MessageResult.NOTHING]


def test_a_put_off_whose_answer_was_lost_is_still_hinted_at(world: World) -> None:
    event_id = pinged(world)
    client: Any = world.dynamo
    client.lose = 1
    assert swept(world) == [event_id]


def test_a_round_that_dies_in_the_middle_keeps_no_hint_back(world: World) -> None:
    first = pinged(world)
    world.clock.pass_time(0.001)
    second = pinged(world)
    world.queue.messages.clear()
    turns = iter([lambda: None, raising(Killed())])
    dying = between(world.services.events, "put_off", lambda: next(turns)(), times=2)
    with pytest.raises(Killed):
        enqueue(world, dying)
    assert world.queue.messages == [first, second]
    world.clock.pass_time(60)
    assert (swept(world), world.queue.delays) == ([second, first], [0, 300])
