"""Refunds, of pretix or of the checkout's dashboard, approved in the merchant's wallet."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django_scopes import scope
from pretix.base.models import OrderPayment
from pretix_checkout_sessions.booking import book_refunds
from shop import Bought, Shop
from world import World


@pytest.fixture(scope="module")
def all_paid(shop: Shop) -> list[Bought]:
    """Paid orders, one for each test. They are paid at once, because each wallet lets wait."""
    orders = [shop.order() for _ in range(7)]
    with ThreadPoolExecutor(len(orders)) as pool:
        list(pool.map(shop.world.pay, [each.page for each in orders]))
    for each in orders:
        each.has(("confirmed", "20.00"), status="p")
    return orders


@pytest.fixture
def paid(all_paid: list[Bought]) -> Bought:
    return all_paid.pop()


def test_a_refund_of_all_is_in_transit_until_the_wallet_has_paid_it(
    paid: Bought, shop: Shop, world: World
) -> None:
    shop.refund(paid, "20.00", keep=False)
    assert paid.refunds() == [("transit", Decimal("20.00"))]
    assert paid.refund_ids()[0] in paid.seen_by_organizer()
    assert "in transit" in paid.seen_by_organizer()
    before = world.balance()
    world.approve_refund(paid.refund_ids()[0])
    paid.has_refunds(("done", "20.00"))
    paid.has(("refunded", "20.00"), status="c")
    told = world.api("GET", f"/api/checkout/refunds/{paid.refund_ids()[0]}")
    cost = told["cost"]  # the fees of the way back are the organizer's
    spent = before - world.balance()
    assert spent == Decimal(cost["value"]).scaleb(-cost["asset_scale"])
    assert f"Paid by your wallet: {spent} USD" in paid.seen_by_organizer()
    session = world.session(paid.session)
    assert session["amount_refunded"] == 2000
    assert paid.booked() == 0
    assert "will be sent" not in paid.seen_by_customer().text


def test_refunds_of_parts_add_up(paid: Bought, shop: Shop, world: World) -> None:
    for number, amount in enumerate(("5.00", "7.50")):
        shop.refund(paid, amount)
        assert paid.refunds()[number] == ("transit", Decimal(amount))
        world.approve_refund(paid.refund_ids()[number])
        paid.has_refunds(*[("done", each) for each in ("5.00", "7.50")[: number + 1]])
    assert paid.booked() == Decimal("7.50")
    assert world.session(paid.session)["amount_refunded"] == 1250
    assert "7.50" in paid.seen_by_organizer()
    assert paid.payments() == [("confirmed", Decimal("20.00"))]


def test_a_refund_that_is_canceled_in_the_dashboard_is_canceled_in_pretix(
    paid: Bought, shop: Shop, world: World
) -> None:
    shop.refund(paid, "5.00")
    world.cancel_refund(paid.refund_ids()[0])
    paid.has_refunds(("canceled", "5.00"))
    assert paid.booked() == Decimal("20.00")
    assert world.session(paid.session)["amount_refunded"] == 0


def test_a_refund_from_the_dashboard_is_shown_as_begun_elsewhere(
    paid: Bought, world: World
) -> None:
    world.approve_refund(world.refund(paid.session, 500))
    paid.has_refunds(("external", "5.00"))
    assert "started externally" in paid.seen_by_organizer()
    assert "Paid by your wallet: 5.00 USD" in paid.seen_by_organizer()


def test_a_refund_that_pretix_forgot_is_booked_when_it_is_paid(
    paid: Bought, shop: Shop, world: World
) -> None:
    shop.refund(paid, "5.00")
    identity = paid.refund_ids()[0]
    shop.cancel_refund(paid)
    assert paid.refunds() == [("canceled", Decimal("5.00"))]
    world.approve_refund(identity)
    paid.has_refunds(("done", "5.00"))
    assert paid.booked() == Decimal("15.00")


def test_more_than_is_left_is_refused_with_the_reason(
    paid: Bought, shop: Shop, world: World
) -> None:
    world.refund(paid.session, 1500)
    said = shop.refund(paid, "10.00")
    assert "The refund was not requested" in said.text
    assert paid.refunds() == [("failed", Decimal("10.00"))]
    assert paid.booked() == Decimal("20.00")


def test_a_refund_that_failed_after_a_part_keeps_the_part(paid: Bought, shop: Shop) -> None:
    """The wallets of the local world send all or nothing, so what the checkout tells is made up."""
    shop.refund(paid, "5.00")
    with scope(organizer=shop.organizer):
        payment = OrderPayment.objects.get(order__code=paid.code)
        told = {
            "id": paid.refund_ids()[0],
            "status": "failed",
            "amount_sent": 300,
            "cost": {"value": "311", "asset_code": "USD", "asset_scale": 2},
            "ended_at": "2026-11-25T12:00:00Z",
            "metadata": {},
        }
        for _ in range(2):
            book_refunds(payment, [told])
    assert paid.refunds() == [("done", Decimal("3.00"))]
    assert "Paid by your wallet: 3.11 USD" in paid.seen_by_organizer()
    assert paid.booked() == Decimal("17.00")
