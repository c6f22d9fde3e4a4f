"""A note that the customer was paid back by other means: it sends nothing, and holds its amount.

The expected amounts are written out, or come from the wallets' books.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

import pytest

from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.erasure import Customer
from checkout.domain.ground.errors import (
    AmountTooLarge,
    CheckoutError,
    ParameterInvalid,
    PermissionMissing,
    RefundUnexpectedState,
    SessionUnexpectedState,
)
from checkout.domain.refund.public import public_refund
from checkout.domain.refund.record import AmountMode, Refund, RefundStatus
from checkout.domain.session.record import Session
from checkout.domain.stripe.objects import charge
from checkout.domain.stripe.refunds import refund_object
from checkout.flows import erase
from checkout.flows.idempotency import Posted, answer
from checkout.flows.refund import alternative_wallet, approve, budget, request
from checkout.flows.refund.request import NewRefund
from tests.support.basics import at_once
from tests.support.flows import PREFIX, World
from tests.support.refund_books import (
    ALICE,
    BOB,
    again,
    allow,
    ask,
    balance,
    come_back,
    consent,
    leaked,
    paid,
    payments,
    prepare,
    send,
    stripe_listens,
)

HOW: Final = "Bank transfer of 3 May"
BASE: Final = "https://pay.example"


def note(world: World, session: Session, amount: int | None = None, **how: Any) -> Refund:
    asked = NewRefund(session=session.id, amount=amount, elsewhere=HOW, **how)
    return request.create(world.services, world.key(), asked)


def erased(world: World) -> None:
    records = DynamoRecords(world.dynamo, PREFIX)
    erase.erase(world.endpoints, records, Customer((ALICE,)), on_progress=lambda report: None)


def kinds(world: World) -> list[str]:
    """The types of the events that tell of refunds."""
    return sorted(each["type"] for each in world.events() if "refund" in each["type"])


def test_a_note_holds_its_amount_and_moves_nothing(world: World) -> None:
    allow(world, 1000_00)
    session = paid(world)
    before, sales = balance(world, ALICE), payments(world)
    noted = note(world, session, 500)
    for _ in range(30):
        world.sweep()
        world.clock.pass_time(60)
    assert again(world, noted).status is RefundStatus.PAID_ELSEWHERE
    assert (noted.sent, noted.amount, noted.elsewhere) == (0, 500, HOW)
    assert (payments(world), balance(world, ALICE)) == (sales, before)
    left = world.session(session.id)
    assert (left.refunded, left.refundable) == (500, 1500)


def test_refunds_and_notes_together_are_at_most_what_was_received(world: World) -> None:
    session = paid(world)
    ask(world, session, 1200)
    with pytest.raises(AmountTooLarge, match="800 USD"):
        note(world, session, 801)
    assert note(world, session).amount == 800
    with pytest.raises(RefundUnexpectedState, match="already refunded"):
        ask(world, session, 1)


def test_of_many_at_once_exactly_what_was_received_is_taken(world: World) -> None:
    """A hundred notes and a hundred refunds of 1.00, of a session of 20.00."""
    session = paid(world)

    def one(number: int) -> int:
        asked = NewRefund(
            session=session.id, amount=100, elsewhere=HOW if number % 2 else None, by_budget=False
        )
        try:
            return request.create(world.services, world.key(), asked).amount
        except CheckoutError:
            return 0

    taken = 0
    while world.session(session.id).refundable:  # a busy answer asks to try again
        taken += sum(at_once([partial(one, number) for number in range(200)]))
    assert taken == 2000
    assert len(world.session(session.id).refunds or ()) == 20


def test_a_session_without_certain_money_takes_no_note(world: World) -> None:
    with pytest.raises(SessionUnexpectedState):
        note(world, world.create(2000))


def test_the_customer_is_not_given_again_what_was_paid_elsewhere(world: World) -> None:
    """Of 20.00 the half was paid elsewhere: the other half gives the half of what they paid."""
    session = paid(world)
    assert session.quote is not None
    whole = session.quote.debit.value
    note(world, session, 1000)
    rest = ask(world, session, 1000, mode=AmountMode.AS_PAID)
    assert rest.give is not None
    assert rest.give.value == whole - whole // 2


def test_nor_what_was_refunded_at_cost(world: World) -> None:
    session = paid(world)
    assert session.quote is not None
    whole = session.quote.debit.value
    send(world, ask(world, session, 500, mode=AmountMode.AT_COST))
    rest = ask(world, session, mode=AmountMode.AS_PAID)
    assert rest.give is not None
    assert rest.give.value == whole - whole // 4


def test_a_mistaken_note_is_taken_back_once(world: World) -> None:
    session = paid(world)
    noted = note(world, session)
    request.cancel(world.services, world.key(), noted.id)
    assert again(world, noted).status is RefundStatus.CANCELED
    assert world.session(session.id).refundable == 2000
    with pytest.raises(RefundUnexpectedState):
        request.cancel(world.services, world.key(), noted.id)
    assert world.session(session.id).refundable == 2000


def test_no_way_to_a_payment_leads_from_a_note(world: World) -> None:
    allow(world, 1000_00)
    noted = note(world, paid(world))
    for way in (approve.prepare, budget.choose, alternative_wallet.offer):
        with pytest.raises(CheckoutError):
            way(world.services, world.key(), noted.id)
    assert again(world, noted) == noted


@pytest.mark.parametrize(
    ("how", "named"),
    [({"wallet": BOB}, "customer_wallet"), ({"mode": AmountMode.AT_COST}, "amount_mode")],
)
def test_a_note_says_nothing_of_a_wallet(world: World, how: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterInvalid, match=named) as refused:
        note(world, paid(world), **how)
    assert refused.value.param == named


def test_money_from_a_wallet_that_is_not_known_can_be_noted(world: World) -> None:
    """A refund would have to name a wallet."""
    session = paid(world)
    erased(world)
    assert note(world, session).amount == 2000


def test_an_erasure_takes_the_words_too(world: World) -> None:
    session = paid(world)
    noted = note(world, session)
    erased(world)
    assert again(world, noted).elsewhere == ""
    assert again(world, noted).amount == 2000


def test_a_repeated_request_makes_one_note(world: World) -> None:
    session = paid(world)
    posted: Posted[Refund] = Posted(
        merchant=world.merchant.id, key="k", fingerprint="f", render=lambda each: each.id
    )
    asked = NewRefund(session=session.id, amount=100, elsewhere=HOW)
    made = {
        answer(
            world.services,
            posted,
            lambda reserve: request.create(world.services, world.key(), asked, reserve),
        ).body
        for _ in range(3)
    }
    assert len(made) == 1
    assert world.session(session.id).refunded == 100


def test_notes_count_towards_a_cap(world: World) -> None:
    """So that a key that has leaked stops no more refunds than it could have paid."""
    session, key = paid(world), leaked(world, day=15_00)
    asked = NewRefund(session=session.id, amount=10_00, elsewhere=HOW)
    made = request.create(world.services, key, asked)
    with pytest.raises(PermissionMissing):
        request.create(world.services, key, asked)
    request.cancel(world.services, key, made.id)
    with pytest.raises(PermissionMissing):
        request.create(world.services, key, asked)
    assert world.session(session.id).refundable == 20_00


def test_it_is_shown_as_a_refund_that_has_succeeded_and_sent_nothing(world: World) -> None:
    session = paid(world)
    noted = note(world, session)
    shown = public_refund(noted, base_url=BASE)
    assert (shown["status"], shown["amount"], shown["amount_sent"]) == ("succeeded", 2000, 0)
    assert (shown["paid_elsewhere"], shown["amount_mode"]) == (HOW, None)
    assert (shown["customer_wallet"], shown["approval_url"]) == (ALICE, None)
    stripes = refund_object(noted, base_url=BASE)
    assert (stripes["status"], stripes["open_payments"]["paid_elsewhere"]) == ("succeeded", HOW)
    charged = charge(world.session(session.id), base_url=BASE)
    assert (charged["amount_refunded"], charged["refunded"]) == (2000, True)


def test_what_is_noted_is_told_to_those_who_ask(world: World) -> None:
    stripe_listens(world, "refund.created", "refund.updated", "charge.refunded")
    session = paid(world)
    noted = note(world, session, 500)
    told = [each for each in world.events() if each["type"] == "charge.refunded"]
    [charge] = [json.loads(each["stripe_body"])["data"]["object"] for each in told]
    assert charge["amount_refunded"] == 500
    assert kinds(world) == ["charge.refunded", "refund.created"]
    request.cancel(world.services, world.key(), noted.id)
    assert kinds(world) == ["charge.refunded", "refund.created", "refund.updated"]


def test_a_late_approval_cannot_pay_what_a_note_has_taken(world: World) -> None:
    """A refund is asked for, canceled, and noted as paid by other means."""
    session, before = paid(world), balance(world, ALICE)
    refund = prepare(world, ask(world, session))
    callback = consent(world, refund)
    request.cancel(world.services, world.key(), refund.id)
    note(world, session)
    come_back(world, refund, callback)
    assert balance(world, ALICE) == before
    assert again(world, refund).status is RefundStatus.CANCELED
