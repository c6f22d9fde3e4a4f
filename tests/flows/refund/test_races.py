"""Refunds where somebody else writes in between, or a wallet answers oddly."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.erasure import Customer
from checkout.domain.ground.errors import (
    AmountTooSmallForWallet,
    CheckoutError,
    MerchantWalletError,
    RefundUnexpectedState,
    SessionBusy,
    WalletInvalid,
    WalletUnavailable,
)
from checkout.domain.refund.record import AmountMode, Refund, RefundEvent, RefundStatus
from checkout.domain.session.record import Session
from checkout.flows import erase
from checkout.flows.payment import writes
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.refund import approve, reconcile, request
from checkout.flows.refund.request import NewRefund
from checkout.flows.refund.settle import settle
from checkout.ports import StaleRecord, Transaction
from open_payments.errors import NotSent, OutcomeUnknown
from open_payments.transports import Response
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, answering, on, raising
from tests.support.refund_books import (
    ALICE,
    again,
    ask,
    balance,
    come_back,
    consent,
    payments,
    prepare,
    refusal,
    send,
    wait,
)


@pytest.fixture
def sold(world: World) -> Session:
    return world.pay(world.create(2000))


def overtaken(world: World, act: Callable[[], object], *, times: int = 1, of: str = "") -> Any:
    """Return the world's services, with whose next writes `act` comes first; `of` is their kind."""
    sessions, left = world.services.sessions, [times]

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(sessions, name)

        def save(self, transaction: Transaction[Any]) -> Any:
            if left[0] and transaction.change.after.id.startswith(of):
                left[0] -= 1
                act()
            return sessions.save(transaction)

    slow: Any = Slow()
    return replace(world.services, sessions=slow)


def touch(world: World, refund: Refund) -> None:
    """Another writer comes first: the refund has a new version, and is else as it was."""
    current = again(world, refund)
    writes.move(world.services, current, RefundEvent.APPROVAL_ASKED)


# --- races


def test_a_request_that_always_loses_is_told_to_try_again(world: World, sold: Session) -> None:
    services = overtaken(world, lambda: ask(world, sold, 20), times=30)
    with pytest.raises(SessionBusy):
        request.create(services, world.key(), NewRefund(session=sold.id, amount=20))


def test_a_cancellation_beside_a_request_releases_its_own_amount(
    world: World, sold: Session
) -> None:
    refund = ask(world, sold, 500)
    services = overtaken(world, lambda: ask(world, sold, 700))
    assert request.cancel(services, world.key(), refund.id).status is RefundStatus.CANCELED
    assert world.session(sold.id).refunded == 700


def test_a_cancellation_whose_session_always_changes_is_told_to_try_again(
    world: World, sold: Session
) -> None:
    refund = ask(world, sold, 500)
    services = overtaken(world, lambda: ask(world, sold, 20), times=30)
    with pytest.raises(SessionBusy):
        request.cancel(services, world.key(), refund.id)
    assert again(world, refund).status is RefundStatus.NEEDS_APPROVAL


def test_a_settlement_gives_way_to_another_write_of_the_refund(world: World, sold: Session) -> None:
    refund = ask(world, sold, 500)
    services = overtaken(world, lambda: touch(world, refund))
    with pytest.raises(StaleRecord):
        settle(services, refund, RefundEvent.CANCEL_REQUESTED, kept=0)
    assert world.session(sold.id).refunded == 500


def test_a_refund_whose_session_is_deleted_still_ends(world: World, sold: Session) -> None:
    refund = ask(world, sold, 500)
    gone = {"TableName": f"{PREFIX}-checkout_sessions", "Key": {"id": {"S": sold.id}}}
    world.dynamo.transact_write_items(TransactItems=[{"Delete": gone}])
    assert request.cancel(world.services, world.key(), refund.id).status is RefundStatus.CANCELED


def test_a_refund_is_not_canceled_while_its_approval_is_redeemed(
    world: World, sold: Session
) -> None:
    prepared = prepare(world, ask(world, sold))
    callback, told = consent(world, prepared), []

    def cancel(asked: Any) -> None:
        with pytest.raises(RefundUnexpectedState) as refused:
            request.cancel(world.services, world.key(), prepared.id)
        with pytest.raises(RefundUnexpectedState):
            prepare(world, prepared)
        told.append(str(refused.value))

    world.transport.before = on("POST", "/continue/", lambda: cancel(None))
    assert come_back(world, prepared, callback).status is RefundStatus.SUCCEEDED
    assert "being approved right now" in told[0]


def test_a_refund_that_was_sent_is_not_canceled(world: World, sold: Session) -> None:
    refund = doubtful(world, sold)
    with pytest.raises(RefundUnexpectedState, match="was sent, or may have been"):
        request.cancel(world.services, world.key(), refund.id)


def test_a_preparation_gives_way_to_another_write(world: World, sold: Session) -> None:
    refund = ask(world, sold)
    services = overtaken(world, lambda: touch(world, refund))
    with pytest.raises(RefundUnexpectedState, match="changed meanwhile"):
        approve.prepare(services, world.key(), refund.id)


def test_of_two_callbacks_at_once_one_pays(world: World, sold: Session) -> None:
    prepared = prepare(world, ask(world, sold))
    callback, made = consent(world, prepared), payments(world)
    world.clock.pass_time(10)
    services = overtaken(world, lambda: come_back(world, prepared, callback))
    lost = approve.finish(
        services,
        world.key(),
        prepared.id,
        interact_ref=callback[0],
        presented_hash=callback[1],
    )
    assert lost.record.status is RefundStatus.SUCCEEDED
    assert payments(world) == made + 1


def test_a_callback_beside_a_change_of_metadata_pays_all_the_same(
    world: World, sold: Session
) -> None:
    prepared = prepare(world, ask(world, sold))
    callback = consent(world, prepared)
    world.clock.pass_time(10)
    services = overtaken(world, lambda: touch(world, again(world, prepared)))
    paid = approve.finish(
        services,
        world.key(),
        prepared.id,
        interact_ref=callback[0],
        presented_hash=callback[1],
    )
    assert paid.record.status is RefundStatus.SUCCEEDED


def test_a_look_gives_way_to_the_one_that_decided(world: World, sold: Session) -> None:
    refund = doubtful(world, sold, paid=True)
    world.clock.pass_time(60)
    services = overtaken(world, lambda: reconcile.step(world.services, again(world, refund)))
    with pytest.raises(StaleRecord):
        reconcile.step(services, refund)
    assert again(world, refund).status is RefundStatus.SUCCEEDED


def test_a_look_at_what_has_ended_gives_way(world: World, sold: Session) -> None:
    refund = doubtful(world, sold, paid=True)
    world.clock.pass_time(60)
    ended = replace(refund, status=RefundStatus.SUCCEEDED)
    assert reconcile.step(world.services, ended) == ended
    calls = WalletCalls.begin(world.services, world.merchant, within=reconcile.DEADLINE)
    with pytest.raises(StaleRecord):
        reconcile.look(calls, ended)


def test_a_busy_record_is_erased_later(world: World, sold: Session) -> None:
    done = send(world, ask(world, sold))
    records, wallet = DynamoRecords(world.dynamo, PREFIX), Customer((ALICE,))
    erasing = writes.change(world.services, done, RefundEvent.ERASED)
    services = replace(
        world.endpoints,
        sessions=overtaken(
            world, lambda: writes.commit(world.services, erasing), of="re_"
        ).sessions,
    )
    report = erase.erase(services, records, wallet, on_progress=lambda report: None)
    assert report.kept[erase.Kept.BUSY] == 1


def test_a_refund_that_waits_is_left_alone_by_a_step(world: World, sold: Session) -> None:
    refund = ask(world, sold)
    assert reconcile.step(world.services, refund) == refund


# --- odd answers


def doubtful(world: World, sold: Session, *, paid: bool = False) -> Refund:
    """Return a refund whose request to pay was lost, or, if it is `paid`, only its answer."""
    prepared = prepare(world, ask(world, sold))
    callback, lost = consent(world, prepared), raising(OutcomeUnknown("lost"))
    if paid:
        world.transport.after = on("", "/outgoing-payments", lost)
    else:
        world.transport.before = on("POST", "/outgoing-payments", lost)
    refund = come_back(world, prepared, callback)
    world.transport.before = lambda request: None
    world.transport.after = lambda request, response: None
    assert refund.status is RefundStatus.SENDING
    return again(world, refund)


@pytest.mark.parametrize(
    ("part", "answer", "error"),
    [
        ("/incoming-payments", refusal(403, "Insufficient Grant"), WalletUnavailable),
        ("/incoming-payments", lambda request: Response(201, {}, b"{}"), WalletInvalid),
        ("/quotes", refusal(400, "non-positive receive amount"), AmountTooSmallForWallet),
        ("/quotes", refusal(400, "invalid receiver"), WalletUnavailable),
        ("/quotes", refusal(400, "something else"), MerchantWalletError),
    ],
)
def test_a_refusal_is_told_in_the_merchants_words(
    world: World,
    sold: Session,
    part: str,
    answer: Callable[[Any], Response],
    error: type[CheckoutError],
) -> None:
    refund = ask(world, sold)
    answering(world, "POST", part, answer)
    with pytest.raises(error):
        prepare(world, refund)


def test_a_wallet_that_takes_no_request_for_approval_is_told(world: World, sold: Session) -> None:
    refund = ask(world, sold)

    def refusing(asked: Any) -> None:
        if b'"interact"' in (asked.body or b""):
            raise NotSent("down")

    world.transport.before = refusing
    with pytest.raises(MerchantWalletError, match="does not answer"):
        prepare(world, refund)


def test_a_process_that_sleeps_after_r2_sends_nothing(world: World, sold: Session) -> None:
    prepared = prepare(world, ask(world, sold))
    callback, made = consent(world, prepared), payments(world)
    world.clock.pass_time(10)
    sessions = world.services.sessions

    class Sleepy:
        def __getattr__(self, name: str) -> Any:
            return getattr(sessions, name)

        def save(self, transaction: Transaction[Any]) -> Any:
            saved = sessions.save(transaction)
            if transaction.change.event == RefundEvent.PAYMENT_INTENDED:
                world.clock.pass_time(5)
            return saved

    sleepy: Any = Sleepy()
    late = approve.finish(
        replace(world.services, sessions=sleepy),
        world.key(),
        prepared.id,
        interact_ref=callback[0],
        presented_hash=callback[1],
    ).record
    assert (late.status, payments(world)) == (RefundStatus.NEEDS_APPROVAL, made)


def test_a_refund_at_cost_is_priced_anew_when_its_quote_has_ended(
    world: World, sold: Session
) -> None:
    prepared = prepare(world, ask(world, sold, 500, mode=AmountMode.AT_COST))
    callback = consent(world, prepared)
    world.clock.pass_time(301)
    had = world.received()
    assert come_back(world, prepared, callback).status is RefundStatus.SUCCEEDED
    assert had - world.received() == 500


def test_a_token_that_the_wallet_calls_inactive_is_renewed(world: World, sold: Session) -> None:
    refund, handle, first = doubtful(world, sold, paid=True), world.network.handle, [True]

    def inactive(asked: Any) -> Any:
        if asked.method == "GET" and "/outgoing-payments/" in asked.url and first[0]:
            first[0] = False
            return refusal(403, "Inactive Token")(asked)
        return handle(asked)

    world.transport.network = type("Odd", (), {"handle": staticmethod(inactive)})()
    done = wait(world, refund)
    assert done.status is RefundStatus.SUCCEEDED
    assert "token_renewed" in [each.event for each in done.history]


def test_a_busy_rotation_loses_nothing(world: World, sold: Session) -> None:
    refund = doubtful(world, sold)
    world.clock.pass_time(700)
    body = json.dumps({"error": {"code": "invalid_rotation", "description": "busy"}}).encode()
    answering(world, "POST", "/token/", lambda asked: Response(404, {}, body))
    world.sweep()
    assert (again(world, refund).token, again(world, refund).rotating) == (refund.token, 1)
    world.transport.network = world.network
    assert wait(world, refund).status is RefundStatus.NEEDS_APPROVAL


def test_a_new_token_of_a_refund_that_has_ended_meanwhile_is_not_stored(
    world: World, sold: Session
) -> None:
    refund = doubtful(world, sold, paid=True)
    world.clock.pass_time(700)
    handle = world.network.handle

    def ended(asked: Any) -> Any:
        answered = handle(asked)
        if "/token/" in asked.url:
            current = again(world, refund)
            settle(world.services, current, RefundEvent.SUCCEEDED, kept=2000, sent=2000)
        return answered

    world.transport.network = type("Odd", (), {"handle": staticmethod(ended)})()
    world.sweep()
    done = again(world, refund)
    assert (done.status, done.token) == (RefundStatus.SUCCEEDED, None)


def test_a_token_is_not_called_lost_after_the_end(world: World, sold: Session) -> None:
    refund = doubtful(world, sold, paid=True)
    world.clock.pass_time(700)
    body = json.dumps(
        {"error": {"code": "invalid_client", "description": "invalid access token"}}
    ).encode()

    def gone(asked: Any) -> Response:
        current = again(world, refund)
        settle(world.services, current, RefundEvent.SUCCEEDED, kept=2000, sent=2000)
        return Response(401, {}, body)

    answering(world, "POST", "/token/", gone)
    world.sweep()
    assert again(world, refund).status is RefundStatus.SUCCEEDED


def listing(world: World, *, pages: int, hit: int | None = None) -> None:
    """Let the merchant's wallet know no payment by id, and list others; at `hit` the own one."""
    handle, shown = world.network.handle, list[Any]()

    def answer(asked: Any) -> Any:
        if asked.method != "GET" or "/outgoing-payments" not in asked.url:
            return handle(asked)
        if "/outgoing-payments/" in asked.url:
            return refusal(401, "Unauthorized")(asked)
        if "cursor=" not in asked.url:
            shown[:] = [handle(asked)]  # the cursors that follow are not the network's
        number = len(shown)
        shown.append(number)
        body = json.loads(shown[0].body)
        for payment in body["result"]:
            if number != hit:
                payment["receiver"], payment["quoteId"] = f"{CEDAR}/incoming-payments/x", "other"
        body["pagination"] = {
            "hasNextPage": number < pages,
            "hasPreviousPage": False,
            "endCursor": f"c{number}",
        }
        return replace(shown[0], body=json.dumps(body).encode())

    world.transport.network = type("Listed", (), {"handle": staticmethod(answer)})()


def test_a_payment_that_only_the_list_shows_is_found(world: World, sold: Session) -> None:
    refund = doubtful(world, sold, paid=True)
    listing(world, pages=3, hit=2)
    done = wait(world, refund)
    assert (done.status, done.outgoing_payment is not None) == (RefundStatus.SUCCEEDED, True)


def test_a_list_that_does_not_end_has_not_shown_that_there_is_none(
    world: World, sold: Session
) -> None:
    refund = doubtful(world, sold, paid=True)
    answered, theirs = world.network.handle, raising(OutcomeUnknown("down"))
    world.network.handle = lambda asked: (  # type: ignore[method-assign, assignment]
        theirs(asked) if "4101" in asked.url and asked.method == "GET" else answered(asked)
    )
    listing(world, pages=10**6)
    for _ in range(30):
        world.sweep()
    assert again(world, refund).status is RefundStatus.SENDING


def test_a_payment_that_was_seen_is_never_missing(world: World, sold: Session) -> None:
    refund = doubtful(world, sold)
    seen = writes.move(
        world.services, refund, RefundEvent.PAYMENT_CREATED, outgoing_payment=f"{HARBOR}/x/1"
    )
    answering(world, "GET", "/x/1", refusal(401, "Unauthorized"))
    for _ in range(30):
        world.sweep()
    assert again(world, seen).status is RefundStatus.SENDING


def test_a_payment_to_somebody_else_under_its_address_decides_nothing(
    world: World, sold: Session
) -> None:
    refund, handle = doubtful(world, sold, paid=True), world.network.handle

    def another(asked: Any) -> Any:
        answered = handle(asked)
        if asked.method == "GET" and "/outgoing-payments/" in asked.url:
            body = json.loads(answered.body)
            body["receiver"] = f"{CEDAR}/incoming-payments/other"
            return replace(answered, body=json.dumps(body).encode())
        return answered

    world.transport.network = type("Odd", (), {"handle": staticmethod(another)})()
    for _ in range(30):
        world.sweep()
    assert again(world, refund).status is RefundStatus.SENDING


@pytest.mark.parametrize(
    ("answer", "minutes"),
    [
        (refusal(401, "Unauthorized"), 66),  # as if it were not there
        (refusal(403, "Insufficient Grant"), 66),
        (raising(OutcomeUnknown("down")), 66),
    ],
)
def test_a_customers_wallet_that_cannot_be_read_delays_and_decides_nothing(
    world: World, sold: Session, answer: Callable[[Any], Response], minutes: int
) -> None:
    before = balance(world, ALICE)
    refund = doubtful(world, sold, paid=True)
    begun, handle = world.clock.now(), world.network.handle

    def unreadable(asked: Any) -> Any:
        theirs = "4101" in asked.url and "/incoming-payments/" in asked.url
        return answer(asked) if asked.method == "GET" and theirs else handle(asked)

    world.transport.network = type("Odd", (), {"handle": staticmethod(unreadable)})()
    done = wait(world, refund)
    assert (done.status, done.confirmed) == (RefundStatus.SUCCEEDED, 0)
    assert balance(world, ALICE) > before
    assert (world.clock.now() - begun).total_seconds() / 60 == pytest.approx(minutes, abs=2)


def test_an_amount_of_another_currency_is_not_believed(world: World, sold: Session) -> None:
    refund, handle = doubtful(world, sold), world.network.handle

    def other(asked: Any) -> Any:
        answered = handle(asked)
        theirs = "4101" in asked.url and "/incoming-payments/" in asked.url
        if asked.method == "GET" and theirs:
            body = json.loads(answered.body)
            body["receivedAmount"] = {"value": "999999", "assetCode": "USD", "assetScale": 2}
            body.pop("incomingAmount", None)
            return replace(answered, body=json.dumps(body).encode())
        return answered

    world.transport.network = type("Odd", (), {"handle": staticmethod(other)})()
    assert wait(world, refund).status is RefundStatus.NEEDS_APPROVAL
