"""The metadata of a session is changed, and never between the writes of a payment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.errors import PaymentInProgress, SessionBusy
from checkout.domain.payment.in_flight import Phase
from checkout.domain.session.record import Session, Status
from checkout.flows.retry_on_conflict import TRIES
from checkout.flows.session import close, metadata
from tests.support.basics import NOW
from tests.support.flows import CEDAR, World, interrupt
from tests.support.merchant_api import MerchantApi

LONG = '{"order":"' + "1" * 400 + '"}'  # a cart that is an item of its own


def change(world: World, session: Session, **values: str) -> Session:
    return metadata.update(
        world.services, world.key(), session.id, lambda before: dict(before) | values
    )


@pytest.mark.parametrize("text", ['{"order":"1"}', LONG])
def test_nothing_else_of_the_session_changes(world: World, text: str) -> None:
    session = world.create(metadata_json=text)
    changed = change(world, session, more="ü")
    stored = world.session(session.id)
    assert stored == changed
    assert stored.metadata == {**session.metadata, "more": "ü"}
    assert (stored.status, stored.amount_total, stored.line_items) == (
        session.status,
        session.amount_total,
        session.line_items,
    )
    assert world.pay(stored).status is Status.COMPLETED
    assert change(world, stored, paid="yes").metadata["paid"] == "yes"
    assert world.session(session.id).metadata == {**session.metadata, "more": "ü", "paid": "yes"}
    assert world.received() == 2000


@pytest.mark.parametrize("end", [close.expire, close.cancel])
def test_an_ended_session_is_annotated(world: World, end: Any) -> None:
    session = world.submit(world.create())
    end(world.services, world.key(), session.id)
    assert change(world, session, why="stock").terminal
    assert world.session(session.id).metadata["why"] == "stock"


def test_a_cart_that_ran_out_is_annotated_and_stays_so(world: World) -> None:
    session = world.create()
    world.clock.pass_time(30 * 3600)
    change(world, session, why="late")
    stored = world.session(session.id)
    assert stored.metadata["why"] == "late"
    assert stored.status_at(world.clock.now()) is Status.EXPIRED


def test_a_session_that_ran_out_at_the_wallet_is_annotated_too(world: World) -> None:
    session = world.submit(world.create())
    world.clock.pass_time(30 * 3600)
    assert change(world, session, why="late").status is Status.EXPIRED


def test_a_session_that_waits_for_an_approval_is_changed_and_paid(world: World) -> None:
    session, callback = world.awaiting()
    change(world, session, more="1")
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert world.session(session.id).metadata["more"] == "1"


@pytest.mark.parametrize("text", ["{}", LONG])
@pytest.mark.parametrize("number", range(12))
def test_between_the_writes_of_a_payment_nothing_is_lost(
    world: World, text: str, number: int
) -> None:
    """The shop changes metadata before any one write of a purchase; it is refused, or both are."""
    said: list[bool] = []
    left = [number]

    def meanwhile() -> None:
        left[0] -= 1
        if left[0] != -1:
            return
        try:
            change(world, session, more="1")
        except (PaymentInProgress, SessionBusy):
            said.append(False)
        else:
            said.append(True)

    session = world.create(metadata_json=text)
    for operation in ("update_item", "transact_write_items"):
        interrupt(world, operation, meanwhile, times=99)
    try:
        paid = world.pay(session, f"{CEDAR}/alice")
    except SessionBusy:  # the first write: the customer's page tries again
        paid = world.pay(session, f"{CEDAR}/alice")
    paid = world.settle(paid)
    assert paid.status is Status.COMPLETED
    assert world.received() == 2000
    stored = world.session(session.id)
    assert (stored.metadata.get("more") == "1") == (said == [True])
    before = session.metadata
    assert {name: stored.metadata[name] for name in before} == before


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"status": Status.PREPARING}, SessionBusy),
        ({"status": Status.PROCESSING}, PaymentInProgress),
        ({"status": Status.AWAITING_APPROVAL, "phase": Phase.PAYING}, PaymentInProgress),
    ],
)
def test_what_is_under_way_is_left_alone(changes: Any, refusal: type[Exception]) -> None:
    api = MerchantApi()
    session = api.store(check_at=NOW, lease_until=NOW + timedelta(minutes=1), **changes)
    with pytest.raises(refusal):
        metadata.update(api.services, api.key, session.id, lambda before: {"a": "1"})
    assert api.stored(session.id) == session


def test_a_session_that_always_changes_is_told_to_try_again(world: World) -> None:
    session, left = world.create(), [TRIES]

    def merge(before: Any) -> Any:
        if left[0]:
            left[0] -= 1
            change(world, session, more=str(left[0]))
        return dict(before) | {"mine": "1"}

    with pytest.raises(SessionBusy):
        metadata.update(world.services, world.key(), session.id, merge)
    assert "mine" not in world.session(session.id).metadata
    metadata.update(world.services, world.key(), session.id, merge)
    assert world.session(session.id).metadata == {"more": "0", "mine": "1"}
