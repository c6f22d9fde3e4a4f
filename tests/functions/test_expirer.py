from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from checkout import telemetry
from checkout.domain.session.record import Status
from checkout.domain.webhooks.event_types import EXPIRED
from expirer.app import scheduled
from expirer.cleanup import queued
from open_payments.transports import Request, Response
from tests.support.basics import Left
from tests.support.deployment import canceled, sqs_event
from tests.support.flows import World
from tests.support.protected import LAST_CHECK


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
    carts = [world.abandoned(expires_in_seconds=1800) for _ in range(2)]
    world.create(expires_in_seconds=1800)
    world.listen(EXPIRED)
    doubtful = world.in_doubt()
    world.clock.pass_time(1800 + 600)
    answer = scheduled(lambda: world.services)({}, Left(75))
    sent = {"SessionsChecked": 3, "Moved": 4, "OldestDuePayment": 2390.0}
    zero = {"Failed": 0, "NeedsAttention": 0, "SweepBacklog": 0, "EventsDue": 0}
    by = {"expiry_passed": 2, "reconciled": 1}
    counted = 1  # what this round has ended is counted in ten minutes
    assert answer == {**sent, **zero, "OldestDueEvent": 0.0, "MovedBy": by, "Counted": counted}
    line = metrics(told())
    assert {name: line[name] for name in sent} == {name: [n] for name, n in sent.items()}
    assert not {*zero, "OldestDueEvent"} & set(line)  # what is 0 costs nothing
    assert line["service"] == "expirer"
    assert line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "CheckoutSessions"
    assert {world.session(session.id).status for session in carts} == {Status.EXPIRED}
    assert world.session(doubtful.id).status is Status.COMPLETED


def test_a_round_with_nothing_to_do_sends_no_metric(
    told: Callable[[], list[dict[str, Any]]],
) -> None:
    telemetry.start("expirer")
    world = World()
    assert not any(scheduled(lambda: world.services)({}, Left(75)).values())
    assert not [line for line in told() if "_aws" in line]


def test_a_round_leaves_the_last_look_its_time() -> None:
    world = World()
    session = world.abandoned(expires_in_seconds=1800)
    world.clock.pass_time(1800)
    round_ = scheduled(lambda: world.services)
    assert round_({}, Left(LAST_CHECK.total_seconds()))["SweepBacklog"] == 1
    assert world.session(session.id).status is Status.OPEN
    assert round_({}, Left(LAST_CHECK.total_seconds() + 1))["SessionsChecked"] == 1


def test_several_rounds_for_parts_of_the_shards_do_together_what_one_does() -> None:
    world = World()
    carts = [world.abandoned(expires_in_seconds=1800) for _ in range(24)]
    untouched = world.create(expires_in_seconds=1800)
    world.clock.pass_time(1800 + 600)
    round_ = scheduled(lambda: world.services)
    answers = [round_({"part": part, "of": 8}, Left(75)) for part in range(8)[::-1]]
    checked = [answer["SessionsChecked"] for answer in answers]
    assert sum(checked) == len(carts)
    assert max(checked) < len(carts) / 2
    assert {world.session(session.id).status for session in carts} == {Status.EXPIRED}
    # Only the first part counts.
    assert [answer["Counted"] for answer in answers] == [0] * 7 + [len([untouched])]
    world.clock.pass_time(600)
    answers = [round_({"part": part, "of": 8}, Left(75)) for part in range(8)[::-1]]
    assert [answer["Counted"] for answer in answers] == [0] * 7 + [len(carts)]


# --- the task queue ---


def test_a_cleanup_that_fails_names_its_session_and_the_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    [good] = canceled(world, 1)
    session = json.loads(good)["cleanup"]["session"]
    queued(lambda: world.services)(sqs_event(good.replace("v1.", "v0.")), None)
    [line] = [each for each in caplog.records if each.msg == "a cleanup failed, will retry"]
    assert line.__dict__["session"] == hashlib.sha256(session.encode()).hexdigest()[:12]
    assert "vault.py" in str(line.__dict__["trace"])


def test_what_fails_comes_again_alone() -> None:
    world = World()
    good, other = canceled(world, 2)
    gone = good.replace("v1.", "v0.")
    bad = ["not JSON", '{"other":{}}', '{"cleanup":{"session":"s"}}', gone]
    for batch, failed in (
        ((bad[0], good, *bad[1:], other), ["0", "2", "3", "4"]),
        (bad[:2], ["0", "1"]),
    ):
        answer = queued(lambda: world.services)(sqs_event(*batch), None)
        assert [item["itemIdentifier"] for item in answer["batchItemFailures"]] == failed
    assert world.transport.count("DELETE", "/continue/") == 2


def test_no_secret_is_in_a_message_in_the_clear() -> None:
    world = World()
    seen: list[str] = []
    send = world.transport.before

    def note(request: Any) -> None:
        send(request)
        seen.append(request.headers.get("Authorization", ""))

    bodies = canceled(world, 1)
    world.transport.before = note
    queued(lambda: world.services)(sqs_event(*bodies), None)
    tokens = [value.removeprefix("GNAP ") for value in seen if value]
    assert len(tokens) == 1
    assert not any(token in body for token in tokens for body in bodies)


def test_a_round_stores_what_finds_a_payment_with_an_id_of_its_own() -> None:
    world = World()
    session = world.in_doubt()
    assert session.quote is not None
    network, quoted = world.network, session.quote.id.rsplit("/", 1)[-1]
    renamed = str(UUID(int=7))

    def handle(request: Request) -> Response:
        if request.url.endswith(f"/outgoing-payments/{quoted}"):
            return Response(404, {}, b"{}")
        url = request.url.replace(renamed, quoted)
        response = network.handle(replace(request, url=url))
        own = f"/outgoing-payments/{renamed}".encode()
        body = response.body.replace(f"/outgoing-payments/{quoted}".encode(), own)
        return replace(response, body=body)

    world.transport.network = cast(Any, SimpleNamespace(handle=handle))
    world.clock.pass_time(60)
    scheduled(lambda: world.services)({}, Left(75))
    assert str(world.session(session.id).outgoing_payment).endswith(renamed)
    for held in (renamed, quoted):
        assert world.services.sessions.holder(session.merchant, held) == session.id
