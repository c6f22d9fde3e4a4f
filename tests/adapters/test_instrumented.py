from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from checkout import telemetry
from checkout.adapters.instrumented import (
    InstrumentedReceivers,
    InstrumentedSessions,
    InstrumentedTransport,
)
from checkout.domain.payment.events import Event
from checkout.domain.session.transitions import advance
from checkout.domain.webhooks.signature import signed_headers
from checkout.flows.session import prepare
from checkout.flows.session.create import create_session
from checkout.ports import Receipt, StaleRecord, Transaction
from open_payments import errors as op
from open_payments.transports import Request, Response
from tests.support.basics import NOW, HandClock, words
from tests.support.flows import CEDAR, PREFIX, World

Told = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _started(told: Told) -> None:
    telemetry.start("pay")


def metrics(told: Told) -> dict[str, list[float]]:
    """Return what was counted since the last call, by name, with the reason if it has one."""
    telemetry.observed(lambda event, context: None)(None, None)
    found: dict[str, list[float]] = {}
    for line in told():
        if "_aws" in line:
            for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
                reason = f" {line['reason']}" if "reason" in line else ""
                found.setdefault(metric["Name"] + reason, []).extend(line[metric["Name"]])
    return found


@pytest.fixture
def world() -> World:
    """Return a world whose sessions are instrumented."""
    world = World()
    instrumented = InstrumentedSessions(
        world.dynamo,
        PREFIX,
        sleep=world.clock.sleep,
        random_bytes=world.services.random_bytes,
    )
    world.services = replace(world.services, sessions=instrumented)
    return world


def test_a_purchase_is_one_line_a_step_and_one_count_a_milestone(world: World, told: Told) -> None:
    world.pay(world.create())
    telemetry.observed(lambda event, context: None)(None, None)
    printed = told()
    events = [line["event"] for line in printed if line.get("message") == "session"]
    assert events == words("""created wallet_submitted prepared approval_claimed payment_intended
        payment_created reconciled""")
    [counts] = [line for line in printed if "_aws" in line]
    milestones = ("SessionsCreated", "SessionsPrepared", "SessionsApproved", "SessionsCompleted")
    assert [sum(counts[name]) for name in milestones] == [1] * 4
    # With a zero for each that begins, the averages are shares.
    assert counts["SessionsCompleted"] == [0, 1]
    assert counts["FailedOnOurSide"] == [0]
    assert "SessionsFailed" not in counts


@pytest.mark.parametrize(
    ("wallet", "reason"),
    [
        (f"{CEDAR}/nobody", "wallet_invalid"),
        ("https://localhost:4999/alice", "wallet_unreachable"),
        (f"{CEDAR}/unpeered", "wallet_unavailable"),
    ],
)
def test_a_failure_is_counted_by_its_reason(
    world: World, told: Told, wallet: str, reason: str
) -> None:
    session = world.create()
    with pytest.raises(Exception, match=r".") as failed:
        prepare.submit_wallet(world.services, session.id, wallet)
    assert failed.value.code == reason  # type: ignore[attr-defined]
    found = metrics(told)
    assert found["SessionsFailed"] == [1]
    assert found[f"SessionsFailed {reason}"] == [1]


def test_each_check_of_a_flagged_payment_names_the_session_and_its_flag(
    world: World, told: Told
) -> None:
    session = world.in_doubt()
    world.transport.before = lambda request: (_ for _ in ()).throw(op.OutcomeUnknown("no"))
    world.settle(session, seconds=4_000, every=60)
    lines = [line for line in told() if line.get("attention")]
    assert {line["attention"] for line in lines} == {"undecided"}
    assert {line["level"] for line in lines} == {"INFO"}
    assert {line["session"] for line in lines} == {
        hashlib.sha256(session.id.encode()).hexdigest()[:12]
    }


def test_what_was_not_written_is_not_told(world: World, told: Told) -> None:
    key, new = world.key(), world.new()
    create_session(world.services, key, new, "order-1")
    create_session(world.services, key, new, "order-1")
    assert metrics(told) == {"SessionsCreated": [1], "SessionsCompleted": [0]}

    session = world.create()
    metrics(told)
    one, other = (
        advance(session, Event.CANCEL_REQUESTED, now=world.clock.now(), writer=writer)
        for writer in ("one", "other")
    )
    world.services.sessions.save(Transaction(one))
    told()
    with pytest.raises(StaleRecord):
        world.services.sessions.save(Transaction(other))
    assert told() == []


# --- webhooks ---


def slow(clock: HandClock, seconds: float, answer: object) -> Any:
    """Return a wallet or receiver that answers, or fails, after `seconds`."""

    def answered(*_: object, **__: object) -> object:
        clock.pass_time(seconds)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Mock(send=answered, post=answered)


@pytest.mark.parametrize(
    ("receipt", "outcome"),
    [(Receipt(status=200), "200"), (Receipt(status=500), "500"), (Receipt(error="late"), "late")],
    ids=["taken", "refused", "late"],
)
def test_an_attempt_is_told_with_its_event_its_host_and_what_came_of_it(
    told: Told, receipt: Receipt, outcome: str
) -> None:
    clock = HandClock()
    receivers = InstrumentedReceivers(slow(clock, 0.4, receipt), clock.now)
    headers = signed_headers("evt_1", "ping", "{}", secrets=["whsec_AAAA"], now=NOW)
    assert receivers.post("https://shop.example/hook?k=1", headers, b"{}", now=NOW) is receipt
    telemetry.observed(lambda event, context: None)(None, None)
    line, counts = told()
    assert (line["event_id"], line["host"], line["outcome"]) == ("evt_1", "shop.example", outcome)
    assert "k=1" not in str(line)
    assert counts["WebhookAttempts"] == [1]
    assert counts["WebhookLatency"] == [400]


# --- providers ---


REQUEST = Request("POST", "https://wallet.example/quotes?secret=1", {"Authorization": "GNAP t"})


@pytest.mark.parametrize(
    ("answer", "failures"),
    [
        *((Response(200, {}, b""), None), (Response(404, {}, b""), None)),
        *(
            (Response(503, {}, b""), [1]),
            (Response(429, {}, b""), [1]),
            (op.NotSent("no"), [1]),
            (op.OutcomeUnknown("no"), [1]),
        ),
    ],
    ids=["200", "404", "503", "429", "not sent", "unknown"],
)
def test_a_providers_time_is_measured_however_it_answers(
    told: Told, answer: Response | Exception, failures: list[float] | None
) -> None:
    clock = HandClock()
    transport = InstrumentedTransport(slow(clock, 1.25, answer), clock.now)
    try:
        assert transport.send(REQUEST, timeout=5) is answer
    except op.OpenPaymentsError as error:
        assert error is answer  # noqa: PT017 - one test for both
    found = metrics(told)
    assert found["ProviderLatency"] == [1250]
    assert found.get("ProviderFailures") == failures


@pytest.mark.parametrize(
    ("known", "counted"), [(["wallet.example"], "wallet.example"), (["ilp.example"], "other")]
)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_answer_that_is_a_failure_is_told_with_its_host_and_counted_by_known_provider(
    told: Told, status: int, known: list[str], counted: str
) -> None:
    clock = HandClock()
    transport = InstrumentedTransport(
        slow(clock, 1, Response(status, {}, b"")), clock.now, known=known
    )
    transport.send(REQUEST, timeout=5)
    [by_reason, line] = told()
    assert (by_reason["reason"], by_reason["ProviderFailures"]) == (counted, [1])
    assert (line["level"], line["host"], line["outcome"]) == ("INFO", "wallet.example", str(status))
