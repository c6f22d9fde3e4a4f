"""A process that dies between the stored answer and its session: the answer's replay makes it."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from checkout.adapters.dynamo import DynamoSessions
from checkout.domain.ground.errors import CurrencyNotSupported, IdempotencyKeyReused
from checkout.domain.session.record import Session, Status
from checkout.flows.idempotency import Answer, Posted, answer, fingerprint_of
from checkout.flows.session.create import create_session, native_answer
from tests.flows.deadly import Killed
from tests.support.basics import NOW
from tests.support.flows import World

KEY = "order-1"


def create(world: World, amount: int = 2000, request_id: str | None = None) -> Answer:
    new = world.new(amount, expires_in_seconds=1800)
    return create_session(world.services, world.key(), new, KEY, request_id)


def cut_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a process store the answer, and die before the session."""

    def dies(self: DynamoSessions, session: Session) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(DynamoSessions, "_put_cart", dies)
        with pytest.raises(Killed):
            create(world)
    assert [len(world.dynamo.rows(f"test-{name}")) for name in TABLES] == [1, 0]


TABLES = ("idempotency_keys", "checkout_sessions")


def test_the_replay_of_an_answer_makes_its_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(world, monkeypatch)
    world.clock.pass_time(60)
    answers = [create(world, request_id=f"req_{number}") for number in range(2)]
    assert answers[0] == answers[1]
    assert answers[0].replayed
    told = json.loads(answers[0].body)
    made = world.session(told["id"])
    assert (made.status, made.created_at, made.version) == (Status.OPEN, NOW, 1)
    assert made.request_id == "req_0"
    assert told == json.loads(native_answer(world.services, made))
    assert world.pay(made).status is Status.COMPLETED


def test_a_process_that_was_only_slow_finds_its_session_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DynamoSessions._put_cart
    bodies = []

    def slow(self: DynamoSessions, session: Session) -> None:
        monkeypatch.setattr(DynamoSessions, "_put_cart", real)
        bodies.append(create(world).body)
        real(self, session)

    monkeypatch.setattr(DynamoSessions, "_put_cart", slow)
    assert [create(world).body] == bodies
    assert len(world.dynamo.rows("test-checkout_sessions")) == 1


def test_a_process_that_took_longer_than_the_session_lives_answers_what_it_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DynamoSessions._put_cart

    def slow(self: DynamoSessions, session: Session) -> None:
        world.clock.pass_time(1801)
        real(self, session)

    monkeypatch.setattr(DynamoSessions, "_put_cart", slow)
    first, again = create(world), create(world)
    assert json.loads(first.body)["status"] == "open"
    assert (again.status, again.body, again.replayed) == (201, first.body, True)


def test_other_parameters_make_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_off(world, monkeypatch)
    with pytest.raises(IdempotencyKeyReused, match="other parameters"):
        create(world, 2500)
    assert world.dynamo.rows("test-checkout_sessions") == []


def test_an_answer_whose_session_would_be_over_is_given_to_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(world, monkeypatch)
    world.clock.pass_time(1800)
    with pytest.raises(IdempotencyKeyReused, match="was interrupted"):
        create(world)
    assert world.dynamo.rows("test-checkout_sessions") == []
    world.clock.pass_time(timedelta(days=1).total_seconds())
    assert world.session(json.loads(create(world).body)["id"]).status is Status.OPEN


def test_a_refusal_is_told_where_the_first_request_made_no_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(world, monkeypatch)
    posted: Posted[Session] = Posted(
        merchant=world.merchant.id,
        key=KEY,
        fingerprint=fingerprint_of("create", {}),
        render=lambda session: session.id,
    )

    def refused(_: object) -> Session:
        raise CurrencyNotSupported("no")

    with pytest.raises(CurrencyNotSupported):
        answer(world.services, posted, refused)
