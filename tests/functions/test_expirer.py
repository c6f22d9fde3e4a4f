from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkout import telemetry
from checkout.adapters.queue import SqsTaskQueue
from checkout.domain.session import Status
from checkout.flows.payment import sessions
from checkout.ports.services import PayServices
from expirer.app import LAST_CHECK, scheduled
from expirer.cleanup import queued
from tests.product import World

REPOSITORY = Path(__file__).parent.parent.parent


class Left:
    """Lambda's context with so many seconds left."""

    def __init__(self, seconds: float) -> None:
        self._milliseconds = round(seconds * 1000)

    def get_remaining_time_in_millis(self) -> int:
        return self._milliseconds


def metrics(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The one line of the embedded metric format."""
    [line] = [each for each in lines if "_aws" in each]
    return line


# --- the schedule ---


def test_a_round_answers_with_its_counts_and_tells_them_as_metrics(
    told: Callable[[], list[dict[str, Any]]],
) -> None:
    telemetry.start("expirer")
    world = World()
    expired = [world.create(expires_in_seconds=1800) for _ in range(2)]
    world.clock.pass_time(1800)
    answer = scheduled(lambda: world.services)({}, Left(75))
    counts = {"SessionsChecked": 2, "Moved": 2, "Failed": 0, "NeedsAttention": 0, "NotReached": 0}
    counts["EventsDue"] = 0
    assert answer == {**counts, "MovedBy": {"expiry_passed": 2}, "Counted": 2}
    line = metrics(told())
    assert {name: line[name] for name in counts} == {name: [n] for name, n in counts.items()}
    assert line["service"] == "expirer"
    assert line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "CheckoutSessions"
    assert {world.session(session.id).status for session in expired} == {Status.EXPIRED}


def test_a_round_with_nothing_to_do_still_counts_zero(
    told: Callable[[], list[dict[str, Any]]],
) -> None:
    telemetry.start("expirer")
    world = World()
    assert not any(scheduled(lambda: world.services)({}, Left(75)).values())
    assert metrics(told())["SessionsChecked"] == [0]


def test_a_round_leaves_the_last_look_its_time() -> None:
    world = World()
    session = world.create(expires_in_seconds=1800)
    world.clock.pass_time(1800)
    round_ = scheduled(lambda: world.services)
    assert round_({}, Left(LAST_CHECK.total_seconds()))["NotReached"] == 1
    assert world.session(session.id).status is Status.OPEN
    assert round_({}, Left(LAST_CHECK.total_seconds() + 1))["SessionsChecked"] == 1


# --- the task queue ---


class Sqs:
    """An SQS client that keeps the messages."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def send_message(self, **request: Any) -> dict[str, Any]:
        self.bodies.append(request["MessageBody"])
        return {}

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        raise AssertionError("not for tasks")


def event(*bodies: str) -> dict[str, Any]:
    """As the event source mapping makes it."""
    records = [
        {"messageId": str(index), "body": body, "eventSource": "aws:sqs"}
        for index, body in enumerate(bodies)
    ]
    return {"Records": records}


def canceled(world: World, count: int) -> list[str]:
    """The messages of `count` sessions that were canceled while they awaited approval."""
    sqs = Sqs()
    world.services = replace(world.services, tasks=SqsTaskQueue(lambda: sqs, "q"))
    for _ in range(count):
        session = world.submit(world.create())
        sessions.cancel(world.services, world.key(), session.id)
    world.forget()
    return sqs.bodies


def test_each_message_is_tidied_up() -> None:
    world = World()
    bodies = canceled(world, 2)
    answer = queued(lambda: world.services)(event(*bodies), None)
    assert answer == {"batchItemFailures": []}
    assert world.transport.count("DELETE", "/continue/") == 2
    assert world.transport.count("POST", "/complete") == 2


def test_what_fails_comes_again_alone() -> None:
    world = World()
    [good] = canceled(world, 1)
    gone = good.replace("v1.", "v0.")
    bad = ["not JSON", '{"other":{}}', '{"cleanup":{"session":"s"}}', gone]
    answer = queued(lambda: world.services)(event(bad[0], good, *bad[1:]), None)
    failed = [item["itemIdentifier"] for item in answer["batchItemFailures"]]
    assert failed == ["0", "2", "3", "4"]
    assert world.transport.count("DELETE", "/continue/") == 1


def test_a_batch_that_fails_as_a_whole_is_answered_too() -> None:
    world = World()
    answer = queued(lambda: world.services)(event("bad", "worse"), None)
    assert len(answer["batchItemFailures"]) == 2


def test_no_secret_is_in_a_message_in_the_clear() -> None:
    world = World()
    seen: list[str] = []
    send = world.transport.before

    def note(request: Any) -> None:
        send(request)
        seen.append(request.headers.get("Authorization", ""))

    bodies = canceled(world, 1)
    world.transport.before = note
    queued(lambda: world.services)(event(*bodies), None)
    tokens = [value.removeprefix("GNAP ") for value in seen if value]
    assert len(tokens) == 2
    assert not any(token in body for token in tokens for body in bodies)


# --- both ---


@pytest.mark.parametrize("module", ["expirer.app", "expirer.cleanup"])
def test_neither_pages_nor_a_web_framework_are_loaded(module: str) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    paths = f"{REPOSITORY / 'layers/common'}:{REPOSITORY / 'functions'}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"fastapi", "jinja2", "starlette", "mangum", "pydantic"}


def test_services_are_made_when_a_function_is_called_not_when_it_is_imported() -> None:
    made: list[PayServices] = []

    def make() -> PayServices:
        made.append(World().services)
        return made[-1]

    round_ = scheduled(make)
    assert made == []
    round_({}, Left(75))
    assert len(made) == 1
