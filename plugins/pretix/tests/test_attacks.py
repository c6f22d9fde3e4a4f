"""Deliveries that are forged, repeated, out of order or about others: nothing wrong is booked."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
import requests
from shop import Bought, Shop
from world import World

FULL = Decimal("20.00")


def told_of(world: World, identity: str, **changes: Any) -> dict[str, Any]:
    """The body of an event about this session, with something changed."""
    session = world.session(identity)
    names = ("id", "status", "amount_total", "currency", "metadata")
    return {**{name: session[name] for name in names}, **changes}


@pytest.fixture(scope="module")
def unpaid(shop: Shop) -> Bought:
    return shop.order()


@pytest.fixture(scope="module")
def paid(shop: Shop) -> Bought:
    bought = shop.order()
    shop.world.pay(bought.page)
    bought.has(("confirmed", "20.00"), status="p")
    return bought


def test_a_forged_delivery_is_refused(unpaid: Bought, shop: Shop, world: World) -> None:
    told = told_of(world, unpaid.session, status="completed")
    assert shop.deliver(told, secret="whsec_guessed") == 400
    assert shop.deliver(told, at=time.time() - 301) == 400
    assert shop.deliver(told, at=time.time() + 360) == 400  # a busy machine delivers late
    url = f"{shop.url}/_checkoutsessions/webhook/band/"
    for signature in ("", "t=,v1=", "v1=00", "t=x,v1=y", f"t={'9' * 40},v1=é"):
        headers = {"Checkout-Signature": signature.encode()}
        assert requests.post(url, json=told, headers=headers, timeout=60).status_code == 400
    assert requests.post(url, json=told, timeout=60).status_code == 400
    assert requests.get(url, timeout=60).status_code == 405
    unknown = f"{shop.url}/_checkoutsessions/webhook/nobody/"
    assert requests.post(unknown, json=told, timeout=60).status_code == 404
    assert unpaid.payments() == [("pending", FULL)]


@pytest.mark.parametrize("status", ["completed", "expired", "processing", "no such status"])
def test_a_signed_delivery_that_says_what_is_not_so_books_nothing(
    unpaid: Bought, shop: Shop, world: World, status: str
) -> None:
    told = told_of(world, unpaid.session, status=status, amount_received=2000)
    assert shop.deliver(told) == 200
    assert unpaid.payments() == [("pending", FULL)]
    assert unpaid.order.status == "n"


def test_repeated_deliveries_book_once(paid: Bought, shop: Shop, world: World) -> None:
    told = told_of(world, paid.session)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: shop.deliver(told), range(8)))
    assert answers == [200] * 8
    assert paid.payments() == [("confirmed", FULL)]
    assert world.received(paid.session) == paid.booked()


def test_deliveries_that_race_for_a_new_payment_book_once(shop: Shop, world: World) -> None:
    bought = shop.order()
    told = told_of(world, bought.session)
    with ThreadPoolExecutor(3) as pool:
        begun = [pool.submit(world.pay, bought.page)]
        while not begun[0].done():
            begun.append(pool.submit(shop.deliver, told))
            begun.append(pool.submit(shop.deliver, told))
            time.sleep(0.2)
        assert {each.result() for each in begun[1:]} == {200}
    bought.has(("confirmed", "20.00"), status="p")
    assert world.received(bought.session) == bought.booked() == FULL


def test_old_deliveries_change_nothing(paid: Bought, shop: Shop, world: World) -> None:
    for status, received in (("processing", 1000), ("expired", 0), ("open", None)):
        told = told_of(world, paid.session, status=status, amount_received=received)
        assert shop.deliver(told) == 200
    assert paid.payments() == [("confirmed", FULL)]
    assert paid.order.status == "p"


def test_sessions_of_others_are_answered_and_left_alone(
    unpaid: Bought, shop: Shop, world: World
) -> None:
    body = {
        "mode": "payment",
        "line_items": [
            {
                "price_data": {
                    "currency": "usd",
                    "unit_amount": 2000,
                    "product_data": {"name": "Tea"},
                },
                "quantity": 1,
            }
        ],
        "success_url": "https://tea.example/thanks",
        "cancel_url": "https://tea.example/basket",
    }
    own = world.session(unpaid.session)["metadata"]
    no_tag = {name: value for name, value in own.items() if name != "pretix_tag"}
    for metadata in ({"order": "42"}, no_tag, {**own, "pretix_tag": "0" * 32}):
        session = world.api("POST", "/api/checkout/sessions", {**body, "metadata": metadata})
        if metadata != no_tag:
            world.pay(session["url"])
        assert shop.deliver(told_of(world, session["id"])) == 200
    # The word of the delivery itself is not taken for the tag either.
    assert shop.deliver(told_of(world, session["id"], metadata=own)) == 200
    # A session of another merchant cannot be read with the key of this one.
    stranger = "cs_" + "1" * 22
    assert shop.deliver(told_of(world, unpaid.session, id=stranger)) == 200
    assert unpaid.payments() == [("pending", FULL)]


@pytest.mark.parametrize(
    "told",
    [
        {"id": "evt_1", "status": "ping", "metadata": {"test": True}},
        {"object": "refund", "id": "re_1", "session": "cs_1", "metadata": {}},
        {"object": "refund"},
        {"metadata": {"pretix_event": 7, "pretix_payment": [1]}},
        {"metadata": {"pretix_event": "band/concert", "pretix_payment": "X-P-99999999999"}},
        {},
        [],
        "text",
        None,
    ],
)
def test_what_names_no_payment_is_answered(shop: Shop, told: Any) -> None:
    assert shop.deliver(told) == 200


def test_what_is_not_json_is_answered(shop: Shop) -> None:
    assert shop.deliver(b"\xff{") == 200


def test_nobody_guesses_the_way_to_a_payment(unpaid: Bought, shop: Shop) -> None:
    path = shop.pay_path(unpaid)
    tag = path.split("/")[-3]
    for other in (path.replace(tag, "0" * 32), path.replace("/pay/", "/return/").replace(tag, "1")):
        assert unpaid.customer.get(other).status == 404
    assert json.dumps(unpaid.order.secret) not in path
