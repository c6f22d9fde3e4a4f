"""A refund from the request to the customer's wallet, over the sandbox's wallets.

The expected amounts come from both wallets' books, never from the refund itself.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.erasure import Customer
from checkout.domain.ground.errors import (
    AmountTooLarge,
    AmountTooSmall,
    CallbackInvalid,
    CheckoutError,
    MerchantWalletError,
    ParameterInvalid,
    ParameterMissing,
    PaymentInProgress,
    RefundUnexpectedState,
    ResourceMissing,
    SessionBusy,
    SessionUnexpectedState,
    WalletInvalid,
    WalletUnavailable,
    WalletUnreachable,
)
from checkout.domain.payment.in_flight import Attention
from checkout.domain.refund.record import AmountMode, Refund, RefundProblem, RefundStatus
from checkout.domain.session.record import Status
from checkout.flows import erase
from checkout.flows.idempotency import Posted, answer, fingerprint_of
from checkout.flows.merchant import setup
from checkout.flows.payment import writes
from checkout.flows.refund import approve, request
from checkout.flows.refund.request import NewRefund
from checkout.flows.session import close
from checkout.ports import StaleRecord
from open_payments.errors import NotSent, OutcomeUnknown
from open_payments.models import Amount
from sandbox.wallets.state import Account
from tests.support.basics import at_once
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, lose_answers, on, raising
from tests.support.refund_books import (
    ALICE,
    BOB,
    again,
    ask,
    balance,
    come_back,
    consent,
    fund,
    paid,
    payments,
    prepare,
    send,
    stored,
    stripe_listens,
    wait,
)

ENDED = {RefundStatus.SUCCEEDED, RefundStatus.FAILED, RefundStatus.CANCELED}


# --- amounts


def test_the_customer_gets_back_exactly_what_they_paid(world: World) -> None:
    before = balance(world, ALICE)
    session = paid(world)
    refund = send(world, ask(world, session))
    assert (refund.status, refund.sent, refund.confirmed) == (RefundStatus.SUCCEEDED, 2000, 1)
    assert balance(world, ALICE) == before
    assert world.session(session.id).refundable == 0


def test_parts_add_up_to_the_whole(world: World) -> None:
    before = balance(world, ALICE)
    session = paid(world)
    for amount in (333, 333, 1, 1333):
        refund = wait(world, send(world, ask(world, session, amount)))
        assert refund.status is RefundStatus.SUCCEEDED
    assert balance(world, ALICE) == before
    assert world.session(session.id).refunded == 2000


def test_at_cost_debits_the_amount(world: World) -> None:
    session = paid(world, wallet=BOB)
    had = world.received()
    refund = send(world, ask(world, session, 500, mode=AmountMode.AT_COST))
    assert refund.status is RefundStatus.SUCCEEDED
    assert had - world.received() == 500


def test_no_more_than_is_left_is_refunded(world: World) -> None:
    session = paid(world)
    first = ask(world, session, 1500)
    with pytest.raises(AmountTooLarge, match="500 USD"):
        ask(world, session, 501)
    ask(world, session, 500)
    with pytest.raises(RefundUnexpectedState, match="already refunded"):
        ask(world, session)
    request.cancel(world.services, world.key(), first.id)
    assert ask(world, session).amount == 1500


def test_two_hundred_requests_at_once_of_one_dollar_make_twenty_refunds(world: World) -> None:
    session = paid(world, 2000)

    def one() -> Refund | None:
        with suppress(CheckoutError):
            return ask(world, session, 100)
        return None

    made: list[Refund] = []
    while world.session(session.id).refundable:  # a busy answer asks to try again
        made += [each for each in at_once([one] * 200) if each is not None]
    assert len({each.id for each in made}) == len(made) == 20
    assert [each.amount for each in made] == [100] * 20
    with pytest.raises((AmountTooLarge, RefundUnexpectedState)):
        ask(world, session, 100)


def test_requests_that_race_never_hold_more_than_was_received(world: World) -> None:
    """Each save of the first is overtaken by another request of the same amount."""
    session = paid(world)
    save, overtaking = world.services.sessions.save, [3]

    def overtaken(*given: Any, **named: Any) -> Any:
        if overtaking[0]:
            overtaking[0] -= 1
            before, overtaking[0] = overtaking[0], 0
            ask(world, session, 600)
            overtaking[0] = before
        return save(*given, **named)

    slow = type("Slow", (), {"save": staticmethod(overtaken)})()
    slow.get = world.services.sessions.get
    racing = replace(world.services, sessions=slow)
    with pytest.raises(AmountTooLarge):
        request.create(racing, world.key(), NewRefund(session=session.id, amount=600))
    assert world.session(session.id).refunded == 1800


@pytest.mark.parametrize("amount", [0, -1])
def test_nothing_is_not_refunded(world: World, amount: int) -> None:
    with pytest.raises(AmountTooSmall):
        ask(world, paid(world), amount)


def test_less_than_a_unit_of_the_customers_currency_is_refused(world: World) -> None:
    """0.01 USD is 0.0092 EUR."""
    with pytest.raises(AmountTooSmall, match="EUR"):
        ask(world, paid(world), 1)


# --- sessions


def test_a_session_that_has_not_ended_is_not_refunded(world: World) -> None:
    with pytest.raises(SessionUnexpectedState, match="is open"):
        ask(world, world.create(), 1)


def test_an_end_without_money_is_not_refunded(world: World) -> None:
    session = close.cancel(world.services, world.key(), world.create().id)
    with pytest.raises(SessionUnexpectedState, match="received nothing"):
        ask(world, session)


def test_a_part_is_decided_first_and_then_sent_back_at_cost(world: World) -> None:
    session = world.settle(world.pay(world.create(), f"{CEDAR}/partial"))
    assert session.partly_paid
    with pytest.raises(PaymentInProgress, match="Accept it as paid"):
        ask(world, session)
    ended = close.accept_as_paid(world.services, world.key(), session.id)
    with pytest.raises(PaymentInProgress, match="about a minute"):
        ask(world, ended)
    world.sweep(rounds=4)
    with pytest.raises(ParameterInvalid, match="at_cost"):
        ask(world, session, 1, mode=AmountMode.AS_PAID)
    refund = ask(world, session)
    assert (refund.mode, refund.amount) == (AmountMode.AT_COST, 1000)


def test_late_money_goes_to_the_wallet_that_the_shop_names(world: World) -> None:
    session = close.cancel(world.services, world.key(), world.submit(world.create()).id)
    world.pay_from_outside(session, 2000)
    world.sweep(rounds=3)
    with pytest.raises(ParameterMissing, match="came from outside"):
        ask(world, session)
    with pytest.raises(ParameterInvalid, match="wallet address"):
        ask(world, session, wallet="no wallet")
    before = balance(world, BOB)
    refund = wait(world, send(world, ask(world, session, wallet=BOB)))
    assert refund.status is RefundStatus.SUCCEEDED
    assert balance(world, BOB) == before + 2000


def test_nobody_elses_session_is_refunded_nor_its_refunds_seen(world: World) -> None:
    session, other = paid(world), World(seed=4)
    refund = ask(world, session)
    stranger = replace(world.key(), merchant=other.merchant.id + "x")
    for attempt in (
        lambda: request.create(world.services, stranger, NewRefund(session=session.id)),
        lambda: request.get(world.services, stranger, refund.id),
        lambda: request.cancel(world.services, stranger, refund.id),
        lambda: request.of_session(world.services, stranger, session.id),
        lambda: approve.prepare(world.services, stranger, refund.id),
        lambda: request.get(world.services, world.key(), "re_none"),
    ):
        with pytest.raises(ResourceMissing):
            attempt()


def test_the_same_idempotency_key_makes_one_refund(world: World) -> None:
    session = paid(world)

    def post(amount: int) -> Any:
        posted: Posted[Any] = Posted(
            merchant=world.merchant.id,
            key="refund-1",
            fingerprint=fingerprint_of("refund", amount),
            render=lambda refund: json.dumps(refund.id),
            status=201,
        )
        asked = NewRefund(session=session.id, amount=amount)
        return answer(
            world.services,
            posted,
            lambda reserve: request.create(world.services, world.key(), asked, reserve),
        )

    first, second = post(500), post(500)
    assert (first.body, first.replayed) == (second.body, False)
    assert second.replayed
    assert world.session(session.id).refunded == 500


def test_refunds_are_listed_by_session_and_by_merchant(world: World) -> None:
    session = paid(world)
    refunds = [ask(world, session, amount) for amount in (100, 200, 300)]
    world.clock.pass_time(1)
    newest = ask(world, session, 400)
    found = request.of_session(world.services, world.key(), session.id)
    assert [each.amount for each in found] == [400, 300, 200, 100]
    page = request.list_page(world.services, world.key(), limit=3, after=None)
    rest = request.list_page(world.services, world.key(), limit=3, after=page.next_cursor)
    assert page.records[0].id == newest.id
    listed = [each.id for each in (*page.records, *rest.records)]
    assert sorted(listed) == sorted([newest.id, *(each.id for each in refunds)])
    assert rest.next_cursor is None
    assert request.of_session(world.services, world.key(), paid(world).id) == ()


# --- approval


def test_nothing_is_sent_before_the_approval(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    sold = payments(world)
    assert prepared.status is RefundStatus.NEEDS_APPROVAL
    world.sweep(rounds=90)
    assert payments(world) == sold


def test_a_callback_that_does_not_verify_does_nothing(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    reference, _ = consent(world, prepared)
    with pytest.raises(CallbackInvalid):
        come_back(world, prepared, (reference, "forged"))
    assert again(world, prepared) == prepared


def test_a_callback_that_comes_twice_pays_once(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    callback, sold = consent(world, prepared), payments(world)
    first = come_back(world, prepared, callback)
    assert come_back(world, prepared, callback).id == first.id
    assert payments(world) == sold + 1


def test_an_approval_that_is_an_hour_old_is_not_used(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    callback, sold = consent(world, prepared), payments(world)
    world.clock.pass_time(3601)
    assert come_back(world, prepared, callback).status is RefundStatus.NEEDS_APPROVAL
    assert payments(world) == sold


def test_a_lost_answer_of_the_approval_loses_it_and_the_next_one_pays(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    callback = consent(world, prepared)
    world.transport.after = lose_answers("/continue/", OutcomeUnknown("lost"))
    lost = come_back(world, prepared, callback)
    assert (lost.status, lost.problem) == (
        RefundStatus.NEEDS_APPROVAL,
        RefundProblem.APPROVAL_UNUSABLE,
    )
    assert lost.grant is None
    assert send(world, lost).status is RefundStatus.SUCCEEDED


@pytest.mark.parametrize("wallet", ["stumbles", "reads-no-keys"])
def test_a_wallet_that_stumbles_pays_a_refund_with_one_approval(wallet: str) -> None:
    world = World(shop=f"{CEDAR}/{wallet}")
    fund(world)
    prepared = prepare(world, ask(world, world.pay(world.create(currency="eur"), BOB)))
    callback, sold = consent(world, prepared), payments(world)
    done = come_back(world, prepared, callback)
    assert done.status is RefundStatus.SUCCEEDED
    assert payments(world) == sold + 1
    assert "approval_kept" in [entry.event for entry in done.history]


def test_a_refunds_approval_that_no_wallet_takes_is_lost_after_three_minutes(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    callback, sold = consent(world, prepared), payments(world)
    world.transport.before = on("POST", "/continue/", raising(NotSent("down")))
    began = world.clock.now()
    lost = come_back(world, prepared, callback)
    assert (lost.problem, lost.grant) == (RefundProblem.APPROVAL_UNUSABLE, None)
    assert 170 < (world.clock.now() - began).total_seconds() < 200
    assert payments(world) == sold


def test_a_price_that_has_risen_since_the_approval_is_not_paid() -> None:
    world = World(shop=f"{CEDAR}/expensive-renewal")
    fund(world)
    refund = ask(world, world.pay(world.create(currency="eur"), BOB))
    prepared = prepare(world, refund)
    callback, sold = consent(world, prepared), payments(world)
    world.clock.pass_time(301)
    dearer = come_back(world, prepared, callback)
    assert dearer.problem is RefundProblem.PRICE_CHANGED
    assert payments(world) == sold


def test_a_new_quote_of_the_same_price_is_paid(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    callback = consent(world, prepared)
    world.clock.pass_time(301)
    assert come_back(world, prepared, callback).status is RefundStatus.SUCCEEDED


def test_an_approval_whose_price_cannot_be_asked_for_again_is_lost(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    callback, sold = consent(world, prepared), payments(world)
    world.clock.pass_time(301)  # the quote has ended
    world.transport.before = on("POST", "/quotes", raising(NotSent("down")))
    lost = come_back(world, prepared, callback)
    assert (lost.problem, lost.grant) == (RefundProblem.APPROVAL_UNUSABLE, None)
    assert payments(world) == sold


@pytest.mark.parametrize(
    ("part", "error", "found"),
    [
        ("alice", NotSent("down"), WalletUnreachable),
        ("/incoming-payments", OutcomeUnknown("lost"), WalletUnreachable),
        ("/quotes", OutcomeUnknown("lost"), MerchantWalletError),
    ],
)
def test_a_wallet_that_cannot_be_asked_is_told_and_nothing_changes(
    world: World, part: str, error: Exception, found: type[Exception]
) -> None:
    refund = ask(world, paid(world))
    world.transport.before = on("", part, raising(error))
    with pytest.raises(found):
        prepare(world, refund)
    assert again(world, refund) == refund


def test_a_customers_wallet_of_another_currency_is_refused(world: World) -> None:
    session = paid(world)
    with pytest.raises(WalletInvalid, match="at cost"):
        prepare(world, ask(world, session, 100, wallet=BOB))
    before = balance(world, BOB)
    send(world, ask(world, session, 100, wallet=BOB, mode=AmountMode.AT_COST))
    assert balance(world, BOB) == before + 100


def test_a_shop_whose_wallet_cannot_pay_there_is_told() -> None:
    world = World(shop=f"{CEDAR}/unpeered")
    fund(world)
    refund = ask(world, world.pay(world.create(currency="eur"), BOB))
    with pytest.raises((WalletUnavailable, MerchantWalletError)):
        prepare(world, refund)


def test_a_refund_that_waits_for_no_approval_is_not_prepared(world: World) -> None:
    done = send(world, ask(world, paid(world)))
    with pytest.raises(RefundUnexpectedState, match="is not waiting"):
        prepare(world, done)


def test_a_refund_is_canceled_until_it_is_sent(world: World) -> None:
    session = paid(world)
    refund = prepare(world, ask(world, session))
    callback = consent(world, refund)
    gone = request.cancel(world.services, world.key(), refund.id)
    assert (gone.status, gone.grant) == (RefundStatus.CANCELED, None)
    sold = payments(world)
    assert come_back(world, refund, callback).status is RefundStatus.CANCELED
    assert payments(world) == sold
    with pytest.raises(RefundUnexpectedState, match="is canceled"):
        request.cancel(world.services, world.key(), refund.id)
    assert world.session(session.id).refundable == 2000


def test_a_refund_that_nobody_approves_is_canceled_after_thirty_days(world: World) -> None:
    session = paid(world)
    refund = ask(world, session)
    world.clock.pass_time(29 * 86_400)
    world.sweep()
    assert again(world, refund).status is RefundStatus.NEEDS_APPROVAL
    world.clock.pass_time(86_400)
    world.sweep()
    gone = again(world, refund)
    assert (gone.status, gone.problem) == (RefundStatus.CANCELED, RefundProblem.NOT_APPROVED)
    assert world.session(session.id).refundable == 2000


# --- what became of it


def test_a_201_that_is_lost_is_found_and_never_sent_again(world: World) -> None:
    before = balance(world, ALICE)
    prepared = prepare(world, ask(world, paid(world)))
    callback, sold = consent(world, prepared), payments(world)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"))
    refund = wait(world, come_back(world, prepared, callback))
    assert refund.status is RefundStatus.SUCCEEDED
    assert payments(world) == sold + 1
    assert balance(world, ALICE) == before


def test_a_request_that_is_lost_is_found_missing_and_asks_again(world: World) -> None:
    """It may have arrived, so nothing is decided before the quote has ended by any clock."""
    session = paid(world)
    prepared = prepare(world, ask(world, session))
    callback = consent(world, prepared)
    world.transport.before = on("POST", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    refund = come_back(world, prepared, callback)
    world.transport.before = lambda request: None
    assert refund.quote is not None
    assert refund.quote.expires_at is not None
    while again(world, refund).payment_in_flight:
        assert world.session(session.id).refundable == 0
        world.sweep()
    decided = world.clock.now()
    assert decided >= refund.quote.expires_at + timedelta(seconds=30)
    assert decided <= refund.quote.expires_at + timedelta(seconds=120)
    waiting = again(world, refund)
    assert (waiting.status, waiting.problem) == (
        RefundStatus.NEEDS_APPROVAL,
        RefundProblem.NOT_SENT,
    )
    assert waiting.token is None
    assert send(world, waiting).status is RefundStatus.SUCCEEDED


def test_a_connection_that_was_never_made_asks_again_at_once(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    callback = consent(world, prepared)
    world.transport.before = on("POST", "/outgoing-payments", raising(NotSent("refused")))
    refund = come_back(world, prepared, callback)
    assert (refund.status, refund.problem) == (
        RefundStatus.NEEDS_APPROVAL,
        RefundProblem.NOT_SENT,
    )


def test_a_shop_without_money_is_told_and_can_try_again() -> None:
    world = World()
    session = paid(world)
    refund = wait(world, send(world, ask(world, session)))
    assert (refund.status, refund.problem) == (
        RefundStatus.NEEDS_APPROVAL,
        RefundProblem.NOT_SENT,
    )
    assert world.session(session.id).refundable == 0, "it is still held"
    fund(world)
    assert send(world, refund).status is RefundStatus.SUCCEEDED


def test_a_customers_wallet_that_shows_nothing_for_ever_is_paid_once(world: World) -> None:
    """The stranger says 0, and hopes to be paid again."""
    session = paid(world)
    before, had = balance(world, ALICE), world.received()
    prepared = prepare(world, ask(world, session))
    callback, sold = consent(world, prepared), payments(world)
    network = world.network

    def says_nothing(request: Any) -> Any:
        found = network.handle(request)
        if (
            request.method == "GET"
            and "4101" in request.url
            and "/incoming-payments/" in request.url
        ):
            body = json.loads(found.body)
            body["receivedAmount"]["value"] = "0"
            body["completed"] = False
            return replace(found, body=json.dumps(body).encode())
        return found

    world.transport.network = type("Liar", (), {"handle": staticmethod(says_nothing)})()
    refund = wait(world, come_back(world, prepared, callback))
    assert (refund.status, refund.confirmed) == (RefundStatus.SUCCEEDED, 0)
    assert payments(world) == sold + 1
    assert balance(world, ALICE) > before
    assert world.received() < had
    assert world.session(session.id).refundable == 0


@pytest.mark.parametrize("shop", ["stops-midway", "partial"])
def test_a_part_is_kept_and_the_rest_can_be_refunded(shop: str) -> None:
    world = World(shop=f"{CEDAR}/{shop}")
    fund(world)
    before = balance(world, BOB)
    session = world.pay(world.create(currency="eur"), BOB)
    assert session.status is Status.COMPLETED
    lost = before - balance(world, BOB)
    refund = wait(world, send(world, ask(world, session)))
    assert (refund.status, refund.problem) == (RefundStatus.FAILED, RefundProblem.SENT_IN_PART)
    got = lost - (before - balance(world, BOB))
    assert 0 < got < lost
    # No less than what arrived counts as sent.
    assert refund.sent * lost >= got * 2000
    assert world.session(session.id).refundable == 2000 - refund.sent


def test_a_receiver_that_is_away_at_the_moment_of_sending_gets_nothing() -> None:
    """The merchant's wallet calls the payment complete, and not failed."""
    world = World(shop=f"{CEDAR}/receiver-away")
    fund(world)
    session = world.pay(world.create(currency="eur"), BOB)
    sent = send(world, ask(world, session))
    assert sent.status is RefundStatus.SENDING
    ended = sent.quote_ends_at
    refund = wait(world, sent)
    assert (refund.status, refund.problem) == (
        RefundStatus.NEEDS_APPROVAL,
        RefundProblem.NOT_SENT,
    )
    assert world.clock.now() >= ended + timedelta(minutes=10)


def test_a_payment_of_another_client_is_not_called_missing(world: World) -> None:
    """404 "does not exist" says that it exists, and that somebody else of ours made it."""
    refund = doubtful(world)
    other = "/outgoing-payments/"

    def another(request: Any) -> Any:
        answered = world.network.handle(request)
        if request.method == "GET" and other in request.url:
            body = {"error": {"description": "Outgoing payment does not exist"}}
            return replace(answered, status=404, body=json.dumps(body).encode())
        return answered

    world.transport.network = type("Another", (), {"handle": staticmethod(another)})()
    for _ in range(90):
        world.sweep()
    stuck = again(world, refund)
    assert (stuck.status, stuck.attention) == (RefundStatus.SENDING, Attention.UNDECIDED)


def doubtful(world: World) -> Any:
    """Return a refund whose request to pay was lost."""
    prepared = prepare(world, ask(world, paid(world)))
    callback = consent(world, prepared)
    world.transport.before = on("POST", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    refund = come_back(world, prepared, callback)
    world.transport.before = lambda request: None
    assert refund.status is RefundStatus.SENDING
    return refund


def test_a_wallet_that_does_not_answer_decides_nothing(world: World) -> None:
    refund = doubtful(world)
    world.transport.before = on("GET", "outgoing-payments", raising(OutcomeUnknown("down")))
    for _ in range(60):
        world.sweep()
    assert again(world, refund).status is RefundStatus.SENDING
    world.transport.before = lambda request: None
    assert wait(world, refund, minutes=200).status is RefundStatus.NEEDS_APPROVAL


def test_the_identity_that_made_it_is_the_only_one_that_is_believed(world: World) -> None:
    refund = doubtful(world)
    moved = replace(world.stored(), wallet_address=BOB, version=world.stored().version + 1)
    world.core.merchants.replace(moved)
    world.restart()
    world.clock.pass_time(60)
    for _ in range(30):
        world.sweep()
    assert again(world, refund).status is RefundStatus.SENDING


# --- the token that reads the payment


def test_a_token_that_has_ended_is_renewed(world: World) -> None:
    refund = doubtful(world)
    world.clock.pass_time(700)
    assert wait(world, refund).status is RefundStatus.NEEDS_APPROVAL
    assert "token_renewed" in [each.event for each in again(world, refund).history]


def test_a_rotation_whose_request_is_lost_is_made_again_with_the_same_token(world: World) -> None:
    refund = doubtful(world)
    world.clock.pass_time(700)
    world.transport.before = on("POST", "/token/", raising(OutcomeUnknown("lost")))
    world.sweep()
    assert again(world, refund).rotating == 1
    world.transport.before = lambda request: None
    assert wait(world, refund).status is RefundStatus.NEEDS_APPROVAL


def test_a_rotation_whose_answer_is_lost_asks_for_an_approval_that_can_only_read(
    world: World,
) -> None:
    before = balance(world, ALICE)
    prepared = prepare(world, ask(world, paid(world)))
    callback, sold = consent(world, prepared), payments(world)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"), times=9)
    refund = come_back(world, prepared, callback)
    world.clock.pass_time(700)
    world.transport.after = lose_answers("/token/", OutcomeUnknown("lost"))
    refund = wait(world, refund)
    assert (refund.status, refund.token) == (RefundStatus.SENDING, None)
    assert refund.approval_waits
    with pytest.raises(RefundUnexpectedState, match="may have been"):
        request.cancel(world.services, world.key(), refund.id)
    world.sweep()
    assert again(world, refund).approval_waits, "there is nothing to ask with"
    done = send(world, refund)
    assert done.status is RefundStatus.SUCCEEDED
    assert payments(world) == sold + 1
    assert balance(world, ALICE) == before


def test_an_approval_for_reading_that_is_lost_is_asked_for_again(world: World) -> None:
    refund = doubtful(world)
    world.clock.pass_time(700)
    world.transport.after = lose_answers("/token/", OutcomeUnknown("lost"))
    refund = prepare(world, wait(world, refund))
    callback = consent(world, refund)
    world.transport.after = lose_answers("/continue/", OutcomeUnknown("lost"))
    lost = come_back(world, refund, callback)
    assert (lost.status, lost.token, lost.grant) == (RefundStatus.SENDING, None, None)
    assert wait(world, send(world, lost)).status is RefundStatus.NEEDS_APPROVAL


def test_a_slow_rotation_heals_what_another_visit_has_called_lost(world: World) -> None:
    """The other visit rotates while the first one's new token is not stored yet."""
    refund = doubtful(world)
    world.clock.pass_time(700)
    handle, slow = world.network.handle, [True]

    def overtaken(request: Any) -> Any:
        answered = handle(request)
        if "/token/" in request.url and slow.pop() if slow else False:
            world.sweep()  # it sends the same token, which is gone by now
            assert again(world, refund).token is None
        return answered

    world.transport.network = type("Slow", (), {"handle": staticmethod(overtaken)})()
    world.sweep()
    assert again(world, refund).token is not None
    assert wait(world, refund).status is RefundStatus.NEEDS_APPROVAL


# --- events, secrets, erasure


def test_events_are_sent_to_endpoints_that_ask_for_them(world: World) -> None:
    world.listen("refund.created", "refund.updated", "refund.failed")
    session = paid(world)
    refund = send(world, ask(world, session, 500))
    request.cancel(world.services, world.key(), ask(world, session, 1).id)
    told = [each for each in world.events() if each["type"].startswith("refund.")]
    assert sorted(each["type"] for each in told) == [
        "refund.created",
        "refund.created",
        "refund.updated",
        "refund.updated",
    ]
    bodies = [json.loads(each["body"]) for each in told]
    assert {"succeeded", "canceled", "pending"} == {each["status"] for each in bodies}
    assert {each["session"] for each in bodies} == {session.id}
    mine = next(each for each in bodies if each["status"] == "succeeded")
    assert (mine["id"], mine["amount"], mine["amount_sent"]) == (refund.id, 500, 500)


def charges(world: World) -> list[dict[str, Any]]:
    """Return the charges of the events that are stored, by what they had refunded."""
    told = [each for each in world.events() if each["type"] == "charge.refunded"]
    shown = [json.loads(each["stripe_body"])["data"]["object"] for each in told]
    return sorted(shown, key=lambda each: each["amount_refunded"])


def test_each_refund_that_succeeds_is_told_of_its_charge(world: World) -> None:
    stripe_listens(world, "charge.refunded")
    session = paid(world)
    send(world, ask(world, session, 500))
    request.cancel(world.services, world.key(), ask(world, session, 1).id)
    [first] = charges(world)
    assert (first["object"], first["id"]) == ("charge", session.id.replace("cs_", "ch_"))
    assert (first["amount"], first["amount_refunded"], first["refunded"]) == (2000, 500, False)
    assert first["payment_intent"] == session.id.replace("cs_", "pi_")
    send(world, ask(world, session))
    _, second = charges(world)
    assert (second["amount_refunded"], second["refunded"]) == (2000, True)
    assert not [each for each in world.events() if each["type"].startswith("refund.")]


def test_a_refund_that_succeeds_after_its_session_was_deleted_has_no_charge_to_tell_of(
    world: World,
) -> None:
    stripe_listens(world, "*")
    session = paid(world)
    prepared = prepare(world, ask(world, session, 500))
    callback = consent(world, prepared)
    gone = {"TableName": f"{PREFIX}-checkout_sessions", "Key": {"id": {"S": session.id}}}
    world.dynamo.transact_write_items(TransactItems=[{"Delete": gone}])
    assert come_back(world, prepared, callback).status is RefundStatus.SUCCEEDED
    assert charges(world) == []
    assert [each["type"] for each in world.events()].count("refund.updated") == 1


def test_a_charge_is_not_told_to_those_who_do_not_ask(world: World) -> None:
    stripe_listens(world, "refund.updated")
    send(world, ask(world, paid(world), 500))
    assert charges(world) == []
    assert [each["type"] for each in world.events()].count("refund.updated") == 1


def test_endpoints_that_do_not_ask_are_told_nothing(world: World) -> None:
    world.listen()
    send(world, ask(world, paid(world), 500))
    assert not [each for each in world.events() if each["type"].startswith("refund.")]


def test_no_secret_is_stored_in_the_clear_nor_kept_after_the_end(world: World) -> None:
    prepared = prepare(world, ask(world, paid(world)))
    callback = consent(world, prepared)
    assert callback[0] not in str(stored(world, prepared))
    done = come_back(world, prepared, callback)
    assert done.status in ENDED
    assert (done.token, done.grant, done.interact_url) == (None, None, None)


def test_an_erased_customer_leaves_no_trace_in_a_refund(world: World) -> None:
    session, had = paid(world), world.received()
    done = send(world, ask(world, session, 500))
    pending = ask(world, session, 500)
    records, wallet = DynamoRecords(world.dynamo, PREFIX), Customer((ALICE,))
    first = erase.erase(world.endpoints, records, wallet, on_progress=lambda report: None)
    assert first.kept[erase.Kept.REFUNDING] == 1
    assert again(world, done).wallet == ""
    assert again(world, done).spent == Amount(had - world.received(), "USD", 2), "a sum of the shop"
    request.cancel(world.services, world.key(), pending.id)
    second = erase.erase(world.endpoints, records, wallet, on_progress=lambda report: None)
    assert (second.erased["refunds"], second.kept[erase.Kept.REFUNDING]) == (1, 0)
    for refund in (done, pending):
        found = again(world, refund)
        assert (found.wallet, found.customer, found.quote) == ("", None, None)
        assert "alice" not in repr(found)


# --- a merchant that changes its client or its wallet


@pytest.mark.parametrize("moves", [False, True])
def test_a_refund_in_doubt_is_read_by_the_client_that_sent_it(world: World, moves: bool) -> None:
    session = paid(world)
    refund = ask(world, session)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"))
    before = balance(world, ALICE)
    send(world, refund)
    world.transport.after = lambda request, response: None
    if moves:
        world.network.add_account(Account(f"{HARBOR}/new-shop", "New", "USD", 2, 0))
        other = setup.NewMerchant("", f"{HARBOR}/new-shop")
        setup.move_wallet(world.services, world.shop, other)
    else:
        setup.replace_key(world.services, setup.NewMerchant("", world.shop))
    world.restart()
    ended = wait(world, again(world, refund))
    assert ended.status is RefundStatus.SUCCEEDED
    assert payments(world) == 2  # the sale and one refund
    assert balance(world, ALICE) > before


def test_a_refund_that_is_approved_after_a_change_is_sent_by_the_new_client(world: World) -> None:
    session = paid(world)
    refund = ask(world, session)
    setup.replace_key(world.services, setup.NewMerchant("", world.shop))
    sent = send(world, refund)
    assert sent.status is RefundStatus.SUCCEEDED
    assert sent.identity == 1


def test_metadata_that_others_change_at_the_same_time_is_to_be_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refund = ask(world, paid(world))

    def lost(*_: Any) -> Any:
        raise StaleRecord(world.session(refund.session))

    monkeypatch.setattr(writes, "write_decided", lost)
    with pytest.raises(SessionBusy, match="try again"):
        request.update_metadata(world.services, world.key(), refund.id, dict)
