from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from checkout import telemetry
from checkout.adapters.queue import SqsEventQueue
from checkout.domain.ground.errors import Unavailable
from checkout.domain.webhooks.record import EventStatus
from checkout.flows.webhooks import endpoints
from checkout.ports import QueuedEvent, Receipt
from tests.support.deployment import Sqs, sqs_event
from tests.support.flows import World
from webhook_sender.app import NothingAttempted, queued

UNKNOWN = "evt_" + "0" * 22


@pytest.fixture
def world() -> World:
    world = World()
    world.listen()
    return world


def pinged(world: World, count: int) -> list[str]:
    return [endpoints.ping(world.endpoints, world.merchant.id).id for _ in range(count)]


def message(event_id: str) -> str:
    return json.dumps({"event": event_id})


def sent(world: World, *bodies: str) -> list[str]:
    """Return the failed messages that Lambda is told of."""
    answer = queued(lambda: world.deliver)(sqs_event(*bodies), None)
    assert set(answer) == {"batchItemFailures"}
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


def counts(line: dict[str, Any]) -> dict[str, float]:
    """Return the webhook metrics of a line in the embedded metric format."""
    assert line["service"] == "webhook_sender"
    assert line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "CheckoutSessions"
    return {name: sum(line[name]) for name in line if name.startswith("Webhooks")}


# --- messages ---


def test_each_message_of_a_batch_is_an_attempt(world: World) -> None:
    ids = pinged(world, 3)
    assert sent(world, *map(message, ids)) == []
    got = {headers["webhook-id"] for _, headers, _ in world.receivers.got}
    assert got == set(ids)
    assert {world.event(each).status for each in ids} == {EventStatus.DELIVERED}


def test_a_message_as_the_queues_adapter_writes_it_is_understood(world: World) -> None:
    sqs = Sqs()
    SqsEventQueue(lambda: sqs, "q").enqueue(
        [QueuedEvent(each, "mer_1") for each in pinged(world, 2)]
    )
    assert sent(world, *sqs.bodies) == []
    assert len(world.receivers.got) == 2


def test_a_message_that_comes_again_is_no_second_delivery(world: World) -> None:
    [event_id] = pinged(world, 1)
    for batch in ([message(event_id)] * 5, [message(event_id)]):
        assert sent(world, *batch) == []
        assert len(world.receivers.got) == 1
        assert world.event(event_id).attempts == 1


def test_an_attempt_that_fails_is_no_message_that_fails(world: World) -> None:
    [event_id] = pinged(world, 1)
    world.receivers.answers = [Receipt(status=500)]
    assert sent(world, message(event_id)) == []
    assert world.event(event_id).status is EventStatus.PENDING


@pytest.mark.parametrize(
    "body", ["not JSON", "", "[]", "{}", '"evt_1"', '{"cleanup":{}}', '{"event":{"id":1}}', "null"]
)
def test_a_message_that_is_not_ours_fails_alone(world: World, body: str) -> None:
    good = pinged(world, 2)
    assert sent(world, message(good[0]), body, message(good[1])) == ["1"]
    assert len(world.receivers.got) == 2
    assert set(sent(world, body, "worse")) == {"0", "1"}


def test_an_event_that_is_unknown_is_done_with(world: World) -> None:
    assert sent(world, message(UNKNOWN)) == []


def test_what_could_not_be_attempted_comes_again_alone(world: World) -> None:
    events = world.core.events
    good, bad = pinged(world, 2)

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(events, name)

        def get(self, event_id: str) -> Any:
            if event_id == bad:
                raise Unavailable("The data store is not answering.")
            return events.get(event_id)

    failing: Any = Failing()
    world.core = replace(world.core, events=failing)
    assert sent(world, message(good), message(bad)) == ["1"]
    world.core = replace(world.core, events=events)
    assert world.event(bad).attempts == 0
    assert sent(world, message(bad)) == []
    assert world.event(bad).status is EventStatus.DELIVERED


def test_a_run_fails_only_if_it_could_make_no_attempt_at_all(
    world: World,
) -> None:
    """The alarm SenderFails counts such runs: an endpoint that fails, or a message, is none."""

    def fails() -> None:
        raise RuntimeError("a bug")

    one, two, three, four, five = map(message, pinged(world, 5))
    world.receivers.meanwhile = fails
    for batch in ([one], [two, three]):
        with pytest.raises(NothingAttempted):
            sent(world, *batch)
    assert set(sent(world, four, "not ours")) == {"0", "1"}
    world.receivers.meanwhile = lambda: None
    world.receivers.answers = [Receipt(status=500)]
    assert sent(world, five) == []


def test_a_failure_says_nothing_of_the_event_or_its_secret(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise RuntimeError("no port may do this")

    [event_id] = pinged(world, 1)
    world.receivers.meanwhile = fails
    with pytest.raises(NothingAttempted) as raised:
        sent(world, message(event_id))
    assert event_id not in "".join(traceback.format_exception(raised.value))
    said = caplog.text + "".join(capsys.readouterr())
    for secret in ("whsec_", "Checkout-Signature", "v1="):
        assert secret not in said
    [line] = [each for each in caplog.records if "could not be made" in each.msg]
    assert line.__dict__["event_id"] == event_id
    assert "builtins.RuntimeError" in line.__dict__["trace"]


# --- all at once ---


def test_five_attempts_are_under_way_at_once(world: World) -> None:
    """The barrier opens only when all five are there."""
    barrier = threading.Barrier(5, timeout=10)
    world.receivers.meanwhile = barrier.wait
    ids = pinged(world, 5)
    assert sent(world, *map(message, ids)) == []
    assert len(world.receivers.got) == 5
    assert not barrier.broken


def test_a_receiver_that_hangs_holds_up_none_beside_it(world: World) -> None:
    slow, *quick = pinged(world, 5)
    done = threading.Semaphore(0)
    order: list[str] = []

    class Receivers:
        def post(
            self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime
        ) -> Receipt:
            if headers["webhook-id"] == slow:
                for _ in quick:
                    assert done.acquire(timeout=10)
            order.append(headers["webhook-id"])
            done.release()
            return Receipt(status=200)

    receivers: Any = Receivers()
    world.receivers = receivers
    assert sent(world, *map(message, [slow, *quick])) == []
    assert order[-1] == slow
    assert set(order[:-1]) == set(quick)


# --- metrics ---


def test_outcomes_are_told_as_metrics_and_what_came_to_nothing_is_not(
    world: World, told: Callable[[], list[dict[str, Any]]]
) -> None:
    telemetry.start("webhook_sender")
    world.receivers.answers = [Receipt(status=status) for status in (200, 500, 410)]
    for event_id in pinged(world, 3):
        sent(world, message(event_id), message(UNKNOWN))
    batches = [counts(line) for line in told() if "_aws" in line]
    names = ("WebhooksDelivered", "WebhooksFailed", "WebhooksGivenUp")
    outcomes = [{name: each[name] for name in names if name in each} for each in batches]
    assert outcomes == [{name: 1} for name in names]


def test_a_batch_is_counted_as_a_whole_without_zeros(
    world: World, told: Callable[[], list[dict[str, Any]]]
) -> None:
    telemetry.start("webhook_sender")
    sent(world, *map(message, pinged(world, 4)), "not ours")
    [batch_told] = [counts(line) for line in told() if "_aws" in line]
    assert batch_told == {"WebhooksDelivered": 4}
