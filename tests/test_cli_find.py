"""`checkout find`: from the reference in a log line to the session, its merchant, the next step."""

from __future__ import annotations

import hashlib
import logging

import pytest

from checkout import cli
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.session.record import Session
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request
from tests.support.flows import PREFIX, World


@pytest.fixture
def world() -> World:
    return World()


def reference(session: Session) -> str:
    return hashlib.sha256(session.id.encode()).hexdigest()[:12]


def find(world: World, ref: str) -> int:
    records = DynamoRecords(world.dynamo, PREFIX)
    return cli.main(["find", ref], lambda: world.endpoints, lambda: records)


def no_answer(request: Request) -> None:
    raise OutcomeUnknown("no answer")


def test_the_reference_leads_to_the_session_its_merchant_and_what_is_next(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    session = world.create()
    assert find(world, reference(session)) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"session   {session.id}",
        f"merchant  {world.merchant.id} ({world.merchant.name})",
        "status    open",
        "next      Nothing: the session has ended, or ends when its time runs out.",
    ]


def test_a_session_that_waits_for_the_sweep_says_when(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    session = world.submit(world.create(expires_in_seconds=1800))
    assert find(world, reference(session)) == 0
    assert "next      The sweep checks it at 2026-03-01T12:30:00+00:00." in capsys.readouterr().out


def test_a_payment_in_doubt_names_the_providers_that_are_asked(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    session = world.in_doubt()
    assert find(world, reference(session)) == 0
    told = capsys.readouterr().out
    assert "The payment is in doubt. The sweep asks localhost:4201 and localhost:4101 at" in told
    world.transport.before = no_answer
    for _ in range(70):
        world.clock.pass_time(60)
        world.sweep()
    assert find(world, reference(session)) == 0
    assert "A provider does not answer. The sweep goes on asking" in capsys.readouterr().out


def test_a_record_that_cannot_be_read_is_found_from_the_line_of_its_failure(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    session = world.abandoned(expires_in_seconds=1800)
    world.dynamo.update_item(
        TableName=f"{PREFIX}-checkout_sessions",
        Key={"id": {"S": session.id}},
        UpdateExpression="REMOVE #status",
        ExpressionAttributeNames={"#status": "status"},
    )
    world.clock.pass_time(1800)
    with caplog.at_level(logging.WARNING):
        world.sweep()
    [line] = [each for each in caplog.records if "reconciling a due session" in each.msg]
    assert find(world, line.__dict__["session"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == [
        f"session   {session.id}",
        f"merchant  {world.merchant.id} ({world.merchant.name})",
    ]
    assert told[2:] == [
        "status    its record cannot be read",
        "next      docs/operating.md, A record that cannot be read",
    ]


def test_an_unknown_reference_is_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.create()
    assert find(world, "0" * 12) == 1
    assert capsys.readouterr().err == "No session has this reference.\n"
