"""Refunds on the page and in the receipt by e-mail: what was paid back, and what is on its way."""

from __future__ import annotations

import pytest

from checkout.domain.refund.record import AmountMode
from checkout.domain.session.record import Session
from checkout.flows.refund import request
from checkout.flows.session import close
from tests.support.flows import CEDAR
from tests.support.hosted_pages import Customer
from tests.support.outbox import Outbox
from tests.support.refund_books import ALICE, BOB, ask, balance, fund, send, wait


@pytest.fixture(autouse=True)
def _can_refund(buyer: Customer) -> None:
    fund(buyer.world)


def paid(buyer: Customer) -> Session:
    return buyer.world.pay(buyer.world.create(2000), f"{CEDAR}/alice")


def shown(buyer: Customer, session: Session) -> str:
    return " ".join(buyer.open(session, "/success").page.main.split())


def test_a_payment_without_a_refund_says_nothing_of_refunds(buyer: Customer) -> None:
    session = paid(buyer)
    buyer.world.dynamo.calls.clear()
    assert "Refund" not in shown(buyer, session)
    assert "batch_get_item" not in buyer.world.dynamo.calls


def test_a_refund_is_under_way_until_the_shops_wallet_has_sent_it(buyer: Customer) -> None:
    """The sums stand under what was paid, first in the currency of the customer."""
    session = paid(buyer)
    asked = ask(buyer.world, session, 500)
    before = balance(buyer.world, ALICE)
    assert "received $20.00 Refund under way €4.63 ($5.00) Your order" in shown(buyer, session)
    wait(buyer.world, send(buyer.world, asked))
    assert balance(buyer.world, ALICE) - before == 463
    ask(buyer.world, session, 700)
    words = shown(buyer, session)
    assert "Refunded €4.63 ($5.00) Refund under way €6.49 ($7.00) Your order" in words


def test_a_sum_that_is_not_known_in_the_customers_currency_is_told_in_the_shops(
    buyer: Customer,
) -> None:
    session = paid(buyer)
    asked = ask(buyer.world, session, 500, mode=AmountMode.AT_COST)
    assert "Refund under way $5.00 Your order" in shown(buyer, session), "before it has a price"
    before = balance(buyer.world, ALICE)
    wait(buyer.world, send(buyer.world, asked))
    got = balance(buyer.world, ALICE) - before
    assert f"Refunded €{got // 100}.{got % 100:02} ($5.00)" in shown(buyer, session)
    neighbour = buyer.world.pay(buyer.world.create(2000), BOB)
    wait(buyer.world, send(buyer.world, ask(buyer.world, neighbour, 500)))
    assert "Refunded $5.00 Your order" in shown(buyer, neighbour), "one currency, one sum"


def test_a_refund_that_was_sent_in_part_is_told_in_the_shops_currency(buyer: Customer) -> None:
    session = buyer.world.pay(buyer.world.create(2000), f"{CEDAR}/refund-partial")
    refund = wait(buyer.world, send(buyer.world, ask(buyer.world, session, 500)))
    assert 0 < refund.sent < 500
    sent = f"{refund.sent // 100}.{refund.sent % 100:02}"
    assert f"Refunded ${sent} Your order" in shown(buyer, session)


def test_a_refund_that_was_canceled_is_not_shown(buyer: Customer) -> None:
    session = paid(buyer)
    asked = ask(buyer.world, session, 500)
    request.cancel(buyer.world.services, buyer.world.key(), asked.id)
    assert "Refund" not in shown(buyer, session)


def test_the_receipt_by_email_tells_it_too(buyer: Customer, outbox: Outbox) -> None:
    session = paid(buyer)
    wait(buyer.world, send(buyer.world, ask(buyer.world, session)))
    buyer.ask("POST", f"/pay/{session.id}/receipt", data={"email": "eva@customer.example"})
    [letter] = outbox.letters
    assert "Refunded: €18.54 ($20.00)" in letter.text.splitlines()


def test_late_money_that_was_sent_back_is_told_on_the_page_of_the_end(buyer: Customer) -> None:
    world = buyer.world
    session = close.cancel(world.services, world.key(), world.submit(world.create()).id)
    world.pay_from_outside(session, 2000)
    world.sweep(rounds=3)
    assert "Refund" not in buyer.open(session).page.main
    wait(world, send(world, ask(world, session, wallet=f"{CEDAR}/alice")))
    assert "Refunded" in buyer.open(session).page.main


def test_what_the_shop_has_paid_back_in_another_way_is_its_own_word(
    buyer: Customer, outbox: Outbox
) -> None:
    """The amount is shown, as the shop says it, and not how."""
    session = paid(buyer)
    note = ask(buyer.world, session, 500, elsewhere="To the account of Eva")
    words = shown(buyer, session)
    assert "Paid back in another way, says the shop $5.00" in words
    assert "Refund" not in words
    assert "Eva" not in words
    buyer.ask("POST", f"/pay/{session.id}/receipt", data={"email": "eva@customer.example"})
    [letter] = outbox.letters
    assert "Paid back in another way, says the shop: $5.00" in letter.text.splitlines()
    request.cancel(buyer.world.services, buyer.world.key(), note.id)
    assert "another way" not in shown(buyer, session)
