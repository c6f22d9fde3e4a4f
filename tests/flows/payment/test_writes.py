"""Every row of the transition table is written by one path, which stores the event it names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.erasure import Customer
from checkout.domain.ground.errors import MerchantWalletError, SessionUnexpectedState, WalletInvalid
from checkout.domain.payment.events import Event
from checkout.domain.session import transitions
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.flows import erase
from checkout.flows.refund import request
from checkout.flows.refund.request import NewRefund
from checkout.flows.session import close, details, metadata, reconcile
from tests.support.flows import CEDAR, PREFIX, World, on
from tests.support.protected import LEASE
from tests.support.sources import nodes

TESTED = "ping"  # which no flow of a session makes
DAY = 24 * 3600


ASKED = '{"asked":["email"],"required":["email"]}'


def submit(world: World) -> Session:
    return world.submit(world.create())


def submit_again(world: World) -> None:
    world.submit(submit(world))


def submit_what_is_no_wallet(world: World) -> None:
    with pytest.raises(WalletInvalid):
        world.submit(world.create(), f"{CEDAR}/nobody")


def submit_too_late(world: World) -> None:
    session = world.create()
    world.transport.after = on("POST", "/quotes", lambda: expire_by_clock(world, session))
    with pytest.raises(SessionUnexpectedState, match="expired"):
        world.submit(session)
    assert world.session(session.id).grant is None
    world.transport.after = lambda *request: None
    failing = world.create()
    world.transport.before = on("GET", "/alice", lambda: expire_by_clock(world, failing))
    with pytest.raises(MerchantWalletError):
        world.submit(failing)
    assert world.session(failing.id).status is Status.EXPIRED


def pay(world: World) -> None:
    world.pay(world.create())


def lose_the_approval(world: World) -> None:
    """The process dies after its claim; the next visit finds the lease lapsed."""
    session, callback = world.awaiting()

    def slow() -> None:
        world.clock.pass_time(LEASE.total_seconds())
        reconcile.view(world.services, session.id)

    world.transport.before = on("POST", "/continue/", slow)
    assert world.finish(session, callback).record.status is Status.OPEN
    assert world.transport.count("POST", "/outgoing-payments") == 0


def decline(world: World) -> None:
    """The wallet's redirect says so, unsigned."""
    world.report(submit(world))


def be_refused(world: World) -> None:
    world.transport.before = on("POST", "/outgoing-payments", world.raise_prices)
    world.pay(world.create())


def lose_the_payment(world: World) -> None:
    """The request to pay gets lost, and is disproved behind the fence."""
    assert world.settle(world.unsent()).status is Status.OPEN


def fail_to_pay(world: World) -> None:
    """The wallet accepts the payment, and never sends it."""
    processing = world.pay(world.create(), f"{CEDAR}/never-credits")
    assert processing.status is Status.PROCESSING
    assert world.settle(processing, seconds=2 * DAY, every=60).status is Status.OPEN


def find_money(world: World, session: Session) -> None:
    world.pay_from_outside(session, 2000)
    world.clock.pass_time(60)
    done = reconcile.advance_pending(world.services, session.id)
    assert done.status is Status.COMPLETED


def find_money_at_submission(world: World) -> None:
    session = submit(world)
    world.pay_from_outside(session, 2000)
    assert world.submit(session).status is Status.COMPLETED


def opened_again(world: World) -> Session:
    session = submit(world)
    with pytest.raises(WalletInvalid):
        world.submit(session, f"{CEDAR}/nobody")
    return world.session(session.id)


def pay_late(how: Callable[..., Session]) -> Callable[[World], None]:
    def drive(world: World) -> None:
        session = how(world.services, world.key(), submit(world).id)
        world.pay_from_outside(session, 2000)
        world.sweep(rounds=3)
        assert world.session(session.id).received == 2000

    return drive


def end_unpaid(how: Callable[..., Session]) -> Callable[[World], None]:
    def drive(world: World) -> None:
        session = how(world.services, world.key(), submit(world).id)
        world.sweep(rounds=3)
        assert world.session(session.id).needed_at is None
        assert world.incoming(session).completed

    return drive


def pay_short(world: World) -> None:
    """One unit less arrives: the incoming payment is closed after the end."""
    session = world.unsent()
    world.pay_from_outside(session, 1999)
    world.settle(session)
    world.sweep(rounds=3)
    assert world.session(session.id).closed_at is not None


def erase_after(drive: Callable[[World], object]) -> Callable[[World], None]:
    """The customer asks to be erased once it is certain what the session received."""

    def erased(world: World) -> None:
        drive(world)
        records, wallet = DynamoRecords(world.dynamo, PREFIX), Customer((f"{CEDAR}/alice",))
        done = erase.erase(world.endpoints, records, wallet, on_progress=lambda report: None)
        assert done.erased["sessions"] == 1

    return erased


def refund_after(drive: Callable[[World], object], **asked: Any) -> Callable[[World], None]:
    def refunded(world: World) -> None:
        drive(world)
        rows = world.dynamo.rows(f"{PREFIX}-checkout_sessions")
        [found] = [row["id"]["S"] for row in rows if row["id"]["S"].startswith("cs_")]
        given = asked or {"wallet": f"{CEDAR}/alice"}
        request.create(world.services, world.key(), NewRefund(session=found, **given))

    return refunded


def note_after(drive: Callable[[World], object]) -> Callable[[World], None]:
    return refund_after(drive, elsewhere="in cash")


def annotate(world: World, session: Session) -> None:
    metadata.update(world.services, world.key(), session.id, lambda before: {"a": "1"})


def say(world: World, session: Session) -> None:
    details.give(world.services, session, CustomerDetails(email="ana@customer.example"))


def annotate_after(how: Callable[..., Session]) -> Callable[[World], None]:
    return lambda world: annotate(world, how(world.services, world.key(), submit(world).id))


def expire_by_clock(world: World, session: Session) -> None:
    world.clock.pass_time(DAY)
    reconcile.view(world.services, session.id)


def end(
    how: Callable[..., Session], start: Callable[[World], Session]
) -> Callable[[World], object]:
    return lambda world: how(world.services, world.key(), start(world).id)


S, E = Status, Event
DRIVEN: dict[tuple[Status, Event], Callable[[World], object]] = {
    (S.OPEN, E.WALLET_SUBMITTED): submit,
    (S.AWAITING_APPROVAL, E.WALLET_SUBMITTED): submit_again,
    (S.PREPARING, E.REFERENCE_STORED): submit,
    (S.PREPARING, E.PREPARED): submit,
    (S.PREPARING, E.PREPARATION_FAILED): submit_what_is_no_wallet,
    (S.AWAITING_APPROVAL, E.RETURN_REPORTED): decline,
    (S.AWAITING_APPROVAL, E.APPROVAL_CLAIMED): pay,
    (S.AWAITING_APPROVAL, E.APPROVAL_KEPT): lambda world: world.pay(
        world.create(), f"{CEDAR}/stumbles"
    ),
    (S.AWAITING_APPROVAL, E.APPROVAL_LOST): lose_the_approval,
    (S.AWAITING_APPROVAL, E.PAYMENT_INTENDED): pay,
    (S.AWAITING_APPROVAL, E.PAYMENT_REFUSED): be_refused,
    (S.AWAITING_APPROVAL, E.PAYMENT_CREATED): pay,
    (S.AWAITING_APPROVAL, E.CHECKED): lose_the_payment,
    (S.AWAITING_APPROVAL, E.CLOSING_STARTED): lose_the_payment,
    (S.AWAITING_APPROVAL, E.CLOSED): lose_the_payment,
    (S.AWAITING_APPROVAL, E.PAYMENT_DISPROVED): lose_the_payment,
    (S.PROCESSING, E.CHECKED): fail_to_pay,
    (S.PROCESSING, E.PART_ARRIVED): World.partly_paid,
    (S.PROCESSING, E.CLOSING_STARTED): fail_to_pay,
    (S.PROCESSING, E.CLOSED): fail_to_pay,
    (S.PROCESSING, E.PAYMENT_DISPROVED): fail_to_pay,
    (S.PROCESSING, E.RECONCILED): pay,
    (S.PROCESSING, E.ACCEPTED_AS_PAID): end(close.accept_as_paid, World.partly_paid),
    (S.PROCESSING, E.GIVEN_UP): end(close.give_up, World.partly_paid),
    (S.OPEN, E.CHECKED): lambda world: find_money(world, opened_again(world)),
    (S.OPEN, E.MONEY_FOUND): lambda world: find_money(world, opened_again(world)),
    (S.PREPARING, E.MONEY_FOUND): find_money_at_submission,
    (S.AWAITING_APPROVAL, E.MONEY_FOUND): lambda world: find_money(world, submit(world)),
    (S.COMPLETED, E.CHECKED): pay_short,
    (S.COMPLETED, E.CLOSED): pay_short,
    (S.EXPIRED, E.CHECKED): pay_late(close.expire),
    (S.EXPIRED, E.CLOSED): end_unpaid(close.expire),
    (S.EXPIRED, E.LATE_PAYMENT): pay_late(close.expire),
    (S.CANCELED, E.CHECKED): pay_late(close.cancel),
    (S.CANCELED, E.CLOSED): end_unpaid(close.cancel),
    (S.CANCELED, E.LATE_PAYMENT): pay_late(close.cancel),
    (S.COMPLETED, E.REFUND_REQUESTED): refund_after(pay),
    (S.EXPIRED, E.REFUND_REQUESTED): refund_after(pay_late(close.expire)),
    (S.CANCELED, E.REFUND_REQUESTED): refund_after(pay_late(close.cancel)),
    (S.COMPLETED, E.PAID_ELSEWHERE): note_after(pay),
    (S.EXPIRED, E.PAID_ELSEWHERE): note_after(pay_late(close.expire)),
    (S.CANCELED, E.PAID_ELSEWHERE): note_after(pay_late(close.cancel)),
    (S.OPEN, E.DETAILS_GIVEN): lambda world: say(world, world.create(collect_json=ASKED)),
    (S.OPEN, E.METADATA_CHANGED): lambda world: annotate(world, world.create()),
    (S.AWAITING_APPROVAL, E.METADATA_CHANGED): lambda world: annotate(world, submit(world)),
    (S.COMPLETED, E.METADATA_CHANGED): lambda world: annotate(world, world.pay(world.create())),
    (S.EXPIRED, E.METADATA_CHANGED): annotate_after(close.expire),
    (S.CANCELED, E.METADATA_CHANGED): annotate_after(close.cancel),
    (S.COMPLETED, E.ERASED): erase_after(pay),
    (S.EXPIRED, E.ERASED): erase_after(end_unpaid(close.expire)),
    (S.CANCELED, E.ERASED): erase_after(end_unpaid(close.cancel)),
    (S.OPEN, E.EXPIRY_PASSED): lambda world: expire_by_clock(world, world.create()),
    (S.PREPARING, E.EXPIRY_PASSED): submit_too_late,
    (S.AWAITING_APPROVAL, E.EXPIRY_PASSED): lambda world: expire_by_clock(world, submit(world)),
    (S.OPEN, E.EXPIRE_REQUESTED): end(close.expire, World.create),
    (S.AWAITING_APPROVAL, E.EXPIRE_REQUESTED): end(close.expire, submit),
    (S.OPEN, E.CANCEL_REQUESTED): end(close.cancel, World.create),
    (S.AWAITING_APPROVAL, E.CANCEL_REQUESTED): end(close.cancel, submit),
}


def test_a_flow_is_known_for_every_row_of_the_table() -> None:
    # These are written beside a refund's own change, which has the event.
    beside = {cell for cell in transitions.TRANSITIONS if cell[1] is Event.REFUND_SETTLED}
    assert not any(transitions.TRANSITIONS[cell].webhook for cell in beside)
    assert set(DRIVEN) | beside == set(transitions.TRANSITIONS)


@pytest.mark.parametrize("row", DRIVEN, ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_webhook_in_any_row_of_the_table_is_stored_by_its_flow(
    row: tuple[Status, Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = replace(transitions.TRANSITIONS[row], webhook=TESTED)
    monkeypatch.setitem(transitions.TRANSITIONS, row, told)
    world = World()
    DRIVEN[row](world)
    events = [event for event in world.events() if event["type"] == TESTED]
    assert events
    assert {event["status"] for event in events} == {"pending"}
    assert {event["id"] for event in events} <= set(world.queue.messages)


def test_an_event_that_does_not_end_a_session_is_not_its_ends_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = (Status.OPEN, Event.WALLET_SUBMITTED)
    told = replace(transitions.TRANSITIONS[row], webhook=TESTED)
    monkeypatch.setitem(transitions.TRANSITIONS, row, told)
    world = World()
    assert submit(world).event is None


def test_the_session_store_is_written_to_from_one_place() -> None:
    callers = {
        path
        for path, node in nodes("layers", "functions")
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("sessions.save")
    }
    assert callers == {"layers/common/checkout/flows/payment/writes.py"}
