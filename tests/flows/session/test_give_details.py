"""A customer gives what a session asks for: before the wallet, and never during a payment."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from checkout.domain.ground.errors import (
    CheckoutError,
    PaymentInProgress,
    SessionBusy,
    SessionUnexpectedState,
)
from checkout.domain.payment.in_flight import Phase
from checkout.domain.session.collect import Collect, Detail, Question, QuestionKind
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.flows.session import details, metadata
from tests.support.basics import a_session
from tests.support.flows import CEDAR, World, interrupt

ANA = CustomerDetails(email="ana@example.com", name="Ana Muster")
EVA = CustomerDetails(email="eva@example.com", name="Eva Muster")
MUST = Collect(asked=frozenset({Detail.EMAIL}), required=frozenset({Detail.EMAIL}))
MAY = Collect(asked=frozenset({Detail.EMAIL, Detail.NAME}))
QUESTION = Collect(questions=(Question("size", "Size", QuestionKind.TEXT, required=True),))


def asking(world: World, collect: Collect = MUST) -> Session:
    return world.create(collect_json=collect.to_json())


def given(world: World, session: Session) -> CustomerDetails:
    return details.opened(world.services.vault, world.stored(), world.session(session.id))


def test_what_is_given_is_sealed_and_the_session_is_paid(world: World) -> None:
    session = asking(world)
    assert session.asks_first
    stored = details.give(world.services, session, ANA)
    assert stored == world.session(session.id)
    assert (stored.status, stored.asks_first, stored.lacks_details) == (Status.OPEN, False, False)
    assert "ana@example.com" not in f"{stored.customer_details}"
    assert given(world, session) == ANA
    assert world.pay(stored).status is Status.COMPLETED
    assert given(world, session) == ANA
    assert world.received() == 2000


@pytest.mark.parametrize("collect", [MUST, QUESTION])
def test_no_wallet_is_taken_while_something_required_is_missing(
    world: World, collect: Collect
) -> None:
    session = asking(world, collect)
    asked = len(world.transport.sent)
    with pytest.raises(SessionUnexpectedState):
        world.submit(session)
    assert world.session(session.id) == session
    assert len(world.transport.sent) == asked


def test_what_is_optional_may_be_left_out(world: World) -> None:
    session = asking(world, MAY)
    assert session.asks_first
    assert world.pay(session).status is Status.COMPLETED
    assert given(world, session) == NONE_GIVEN


def test_who_was_too_late_is_told_that_the_session_has_expired(world: World) -> None:
    session = asking(world)
    world.clock.pass_time(30 * 3600)
    with pytest.raises(SessionUnexpectedState, match="expired"):
        details.give(world.services, session, ANA)
    with pytest.raises(SessionUnexpectedState, match="expired"):
        world.submit(session)


def test_they_are_corrected_until_a_wallet_is_given(world: World) -> None:
    session = details.give(world.services, asking(world), ANA)
    assert details.may_give(world.services, session)
    details.give(world.services, session, EVA)
    priced = world.submit(world.session(session.id))
    assert not details.may_give(world.services, priced)
    with pytest.raises(SessionUnexpectedState):
        details.give(world.services, priced, ANA)
    assert given(world, session) == EVA
    assert world.finish(priced, world.approve(priced)).record.status is Status.COMPLETED


def test_a_wallet_that_failed_ends_the_corrections_too(world: World) -> None:
    session = details.give(world.services, asking(world), ANA)
    with pytest.raises(CheckoutError):
        world.submit(session, f"{CEDAR}/nobody")
    tried = world.session(session.id)
    assert tried.status is Status.OPEN
    with pytest.raises(SessionUnexpectedState):
        details.give(world.services, tried, EVA)
    assert world.session(session.id) == tried


def test_a_session_that_asks_for_nothing_takes_none(world: World) -> None:
    with pytest.raises(SessionUnexpectedState, match="asks for no details"):
        details.give(world.services, world.create(), ANA)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"status": Status.PREPARING}, SessionBusy),
        ({"status": Status.PROCESSING}, PaymentInProgress),
        ({"status": Status.AWAITING_APPROVAL, "phase": Phase.PAYING}, PaymentInProgress),
        ({"status": Status.COMPLETED}, SessionUnexpectedState),
        ({"status": Status.CANCELED}, SessionUnexpectedState),
    ],
)
def test_what_is_under_way_or_has_ended_is_left_alone(
    world: World, changes: Any, refusal: type[Exception]
) -> None:
    now = world.clock.now()
    fields = {"check_at": now, "lease_until": now + timedelta(minutes=1), **changes}
    session = a_session(merchant=world.merchant.id, collect_json=MUST.to_json(), **fields)
    world.services.sessions.create(session, None)
    assert not details.may_give(world.services, session)
    with pytest.raises(refusal):
        details.give(world.services, session, ANA)
    assert world.session(session.id) == session


def test_a_change_meanwhile_is_not_undone(world: World) -> None:
    session, left = asking(world), [1]

    def meanwhile() -> None:
        if left[0]:
            left[0] -= 1
            metadata.update(world.services, world.key(), session.id, lambda before: {"a": "1"})

    for operation in ("update_item", "transact_write_items"):
        interrupt(world, operation, meanwhile, times=99)
    details.give(world.services, session, ANA)
    assert world.session(session.id).metadata == {"a": "1"}
    assert given(world, session) == ANA


def test_a_session_that_always_changes_is_told_to_try_again(world: World) -> None:
    session, inside, numbers = asking(world), [False], count()

    def meanwhile() -> None:
        if not inside[0]:
            inside[0] = True
            values = {"a": str(next(numbers))}
            metadata.update(world.services, world.key(), session.id, lambda before: values)
            inside[0] = False

    for operation in ("update_item", "transact_write_items"):
        interrupt(world, operation, meanwhile, times=99)
    with pytest.raises(SessionBusy):
        details.give(world.services, session, ANA)
    assert world.session(session.id).details_at is None


def test_a_wallet_and_details_at_the_same_time_lose_nothing(world: World) -> None:
    session = details.give(world.services, asking(world), ANA)
    said: list[bool] = []

    def meanwhile() -> None:
        if said:
            return
        said.append(False)
        try:
            details.give(world.services, world.session(session.id), EVA)
        except (PaymentInProgress, SessionBusy, SessionUnexpectedState):
            return
        said[0] = True

    for operation in ("update_item", "transact_write_items"):
        interrupt(world, operation, meanwhile, times=99)
    try:
        paid = world.pay(session, f"{CEDAR}/alice")
    except SessionBusy:  # the customer's page tries again
        paid = world.pay(world.session(session.id), f"{CEDAR}/alice")
    assert world.settle(paid).status is Status.COMPLETED
    assert given(world, session) == (EVA if said == [True] else ANA)
    assert world.received() == 2000
