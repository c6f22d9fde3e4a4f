"""Test the till of a payment link: it asks for an amount, and never shows "Paid" too early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.links import OpenAmount, PaymentLink
from checkout.domain.payment.in_flight import Attention, Problem
from checkout.domain.session.collect import Detail
from checkout.domain.session.record import Session, Status
from tests.support import services
from tests.support.flows import World
from tests.support.gifts import gift, rows
from tests.support.hosted_pages import LATER, STAGES, Answer, Customer, customer
from tests.support.merchant_api import PREFIX
from tests.support.refund_books import ask, fund

NOT_YET = "Do not hand over"
NOTHING = "Nothing was charged."
ELSEWHERE = {"sec-fetch-site": "cross-site"}


def asked(visitor: Customer, link: PaymentLink, amount: str = "12.50", **options: Any) -> Answer:
    """Open the keypad, and send its form."""
    page = visitor.get(f"/buy/{link.id}/till").page
    visit = page.one("input", name="visit").attributes["value"]
    return press(visitor, link, visit, amount, **options)


def press(visitor: Customer, link: PaymentLink, visit: str, amount: str, **options: Any) -> Answer:
    data = {"till": "1", "visit": visit, "amount": amount}
    return visitor.ask("POST", f"/buy/{link.id}", data=data, **options)


def begun(visitor: Customer, answer: Answer) -> Session:
    assert answer.status == 303, answer.page.main
    return visitor.world.session(answer.location.rpartition("/")[2])


def screen(visitor: Customer, link: PaymentLink, session: Session) -> Answer:
    return visitor.get(f"/buy/{link.id}/till/{session.id}")


def cancel(visitor: Customer, link: PaymentLink, session: Session, **options: Any) -> Answer:
    return visitor.ask("POST", f"/buy/{link.id}/till/{session.id}/cancel", **options)


def sale(visitor: Customer, link: PaymentLink, stage: str, **changes: Any) -> str:
    """Return the text of the screen of a sale that is stored in this stage."""
    metadata = f'{{"payment_link": "{link.id}", "order_number": "AB12CD34"}}'
    session = visitor.put_in(stage, metadata_json=metadata, **changes)
    return screen(visitor, link, session).page.main


def test_the_keypad_is_the_amount_s_field_without_script_and_writes_nothing(
    visitor: Customer,
) -> None:
    link = gift(visitor)
    before = rows(visitor)
    page = visitor.get(f"/buy/{link.id}/till").page
    assert page.one("input", id="amount").attributes["inputmode"] == "decimal"
    assert "hidden" in page.one("div", **{"class": "keys"}).attributes
    assert "From $1.00 to $5,000.00" in page.main
    assert page.one("output").attributes["data-zero"].replace("\xa0", " ") == "$0.00"
    assert rows(visitor) == before


def test_a_sale_is_asked_for_paid_and_shown_with_the_number_on_the_customer_s_slip(
    visitor: Customer,
) -> None:
    link = gift(visitor)
    session = begun(visitor, asked(visitor, link))
    assert session.amount_total == 1_250
    assert session.expires_at - session.created_at == timedelta(minutes=15)
    assert session.history[0].note == "at a till"
    main = screen(visitor, link, session).page.main
    assert main.startswith("Shop Waiting for your customer $12.50")
    assert f"/pay/{session.id}/qr" in screen(visitor, link, session).body
    paid = visitor.world.pay(session)
    page = screen(visitor, link, paid).page
    number = paid.metadata["order_number"]
    assert "Paid $12.50" in page.main
    assert number in page.main
    assert number in visitor.open(paid, "/success").page.main
    assert "Look at this screen, not at your customer’s." in page.main
    assert "data-poll" not in page.one("main").attributes
    assert f"/buy/{link.id}/till" in page.links


@pytest.mark.parametrize("stage", sorted(set(STAGES) - {"completed"}))
def test_only_a_completed_sale_is_shown_as_paid(visitor: Customer, stage: str) -> None:
    link = gift(visitor)
    main = sale(visitor, link, stage)
    assert "Paid $" not in main
    waits = stage in ("continuing", "paying", "processing")
    assert (NOT_YET in main) == waits
    assert (NOTHING in main) == (stage in ("expired", "canceled"))
    assert "Paid $20.00" in sale(visitor, link, "completed")


@pytest.mark.parametrize(
    ("stage", "changes"),
    [
        ("processing", {"received": 700, "attention": Attention.PARTIAL_PAYMENT}),
        ("processing", {"attention": Attention.UNDECIDED}),
        ("canceled", {"received": 2000, "attention": Attention.LATE_PAYMENT}),
        ("expired", {"received": 700, "attention": Attention.LATE_PAYMENT}),
    ],
)
def test_in_doubt_the_screen_names_the_sale_and_nothing_is_handed_over(
    visitor: Customer, stage: str, changes: dict[str, Any]
) -> None:
    main = sale(visitor, gift(visitor), stage, **changes)
    assert "Do not hand over $" in main
    assert "AB12CD34" in main
    assert NOTHING not in main


def test_a_sale_that_failed_can_be_tried_again_with_the_same_code(visitor: Customer) -> None:
    link = gift(visitor)
    main = sale(visitor, link, "open", problem=Problem.PAYMENT_FAILED)
    assert "Not paid yet $20.00" in main
    assert "scans this code" in main


def test_money_that_went_back_is_shown_on_the_paid_screen(visitor: Customer) -> None:
    link = gift(visitor)
    fund(visitor.world)
    session = visitor.world.pay(begun(visitor, asked(visitor, link)))
    ask(visitor.world, session, by_budget=False)
    assert "$12.50" in screen(visitor, link, session).page.main.partition("Paid $12.50")[2]


@pytest.mark.parametrize("amount", ["", "0.99", "5000.01", "1,250", "NaN", "-5", "9" * 400])
def test_an_amount_that_the_link_does_not_allow_begins_no_sale(
    visitor: Customer, amount: str
) -> None:
    link = gift(visitor)
    before = rows(visitor)
    answer = asked(visitor, link, amount)
    assert answer.status == 400
    assert answer.page.one("p", id="amount-error").text
    assert rows(visitor) == before


@pytest.mark.parametrize(
    "fields",
    [
        {"open_amount": None, "unit_amount": 500},
        {"left": 3},
        {"asked": (Detail.EMAIL,), "required": (Detail.EMAIL,)},
    ],
    ids=["a fixed price", "a stock", "details that are required"],
)
def test_other_links_have_no_till(visitor: Customer, fields: dict[str, Any]) -> None:
    link = gift(visitor, **fields)
    assert visitor.get(f"/buy/{link.id}/till").status == 404
    assert press(visitor, link, "1" * 22, "5").status == 404


def test_a_link_that_asks_for_something_optional_has_a_till(visitor: Customer) -> None:
    link = gift(visitor, asked=(Detail.EMAIL,))
    assert visitor.get(f"/buy/{link.id}/till").status == 200


def test_a_sale_of_another_link_is_not_shown(visitor: Customer) -> None:
    link, other = gift(visitor), gift(visitor)
    session = begun(visitor, asked(visitor, link))
    assert screen(visitor, other, session).status == 404
    assert cancel(visitor, other, session).status == 404
    assert screen(visitor, link, visitor.world.create()).status == 404
    assert visitor.world.session(session.id).status is Status.OPEN


def test_the_browser_that_began_a_sale_cancels_it(visitor: Customer) -> None:
    link = gift(visitor)
    session = begun(visitor, asked(visitor, link))
    assert "Cancel this sale" in screen(visitor, link, session).page.main
    assert cancel(visitor, link, session).location == f"/buy/{link.id}/till/{session.id}"
    canceled = visitor.world.session(session.id)
    assert (canceled.status, canceled.history[-1].note) == (Status.CANCELED, "at the till")
    main = screen(visitor, link, canceled).page.main
    assert "This sale has ended" in main
    assert NOTHING in main
    assert cancel(visitor, link, canceled).status == 303  # twice: nothing more to do


def test_no_other_browser_cancels_a_sale(visitor: Customer) -> None:
    link = gift(visitor)
    session = begun(visitor, asked(visitor, link))
    assert cancel(visitor, link, session, headers=ELSEWHERE).status == 403
    visitor.forget_cookies()
    answer = cancel(visitor, link, session)
    assert answer.status == 403
    assert "Nothing has been done." in answer.page.main
    assert "Cancel this sale" not in answer.page.main
    assert visitor.world.session(session.id).status is Status.OPEN


def test_a_sale_that_the_customer_has_approved_is_not_canceled(visitor: Customer) -> None:
    link = gift(visitor)
    session = begun(visitor, asked(visitor, link))
    paid = visitor.world.pay(session)
    assert cancel(visitor, link, session).status == 303
    assert visitor.world.session(session.id).status is Status.COMPLETED
    assert "Paid $12.50" in screen(visitor, link, paid).page.main


def test_a_form_of_another_site_begins_no_sale(visitor: Customer) -> None:
    link = gift(visitor)
    before = rows(visitor)
    answer = asked(visitor, link, headers=ELSEWHERE)
    assert answer.status == 403
    assert "Nothing has been done. Press the button again." in answer.page.main
    answer = press(visitor, link, "", "5")
    assert answer.status == 403  # without the page's own visit
    assert rows(visitor) == before


def test_the_same_form_begins_one_sale_until_it_has_ended(visitor: Customer) -> None:
    link = gift(visitor)
    page = visitor.get(f"/buy/{link.id}/till").page
    visit = page.one("input", name="visit").attributes["value"]

    first = press(visitor, link, visit, "2.50").location
    assert press(visitor, link, visit, "2.50").location == first
    assert press(visitor, link, visit, "3.00").location != first
    visitor.world.pay(visitor.world.session(first.rpartition("/")[2]))
    assert press(visitor, link, visit, "2.50").location not in (
        "",
        first,
    )  # the next customer takes the same


def test_a_stopped_link_sells_nothing_at_its_till(visitor: Customer) -> None:
    link = gift(visitor, stopped_at=LATER)
    page = visitor.get(f"/buy/{link.id}/till").page
    assert "This offer has ended" in page.main
    assert page.all("form") == []
    answer = press(visitor, link, "1" * 22, "5")
    assert answer.status == 409
    assert NOTHING in answer.page.main


@pytest.fixture
def limited() -> Iterator[Customer]:
    """A till and its customers behind one network address, with the limits of a deployment."""
    world = World()
    limits = services.limits(world.core.clock, world.dynamo, PREFIX, 30)
    world.services = replace(world.services, limits=limits)
    with customer(world) as found:
        yield found


def test_thirty_sales_can_begin_at_once_and_then_one_more_each_five_seconds(
    limited: Customer,
) -> None:
    link = gift(limited)
    begins = [press(limited, link, f"{number:022d}", "5").status for number in range(31)]
    assert begins == [303] * 30 + [429]
    limited.world.clock.pass_time(5)
    assert press(limited, link, "4" * 22, "5").status == 303


def test_a_stall_sells_sixty_times_in_half_an_hour_from_the_address_of_its_customers(
    limited: Customer,
) -> None:
    link = gift(limited)
    for _ in range(60):
        session = begun(limited, asked(limited, link))
        paid = limited.paid(session)
        assert "Paid $12.50" in screen(limited, link, paid).page.main
        limited.world.clock.pass_time(20)  # the wallet wants ten more


def test_a_till_of_a_yen_wallet_and_of_a_long_sum_has_its_own_zero(visitor: Customer) -> None:
    link = gift(visitor, OpenAmount(10, 90_000, ()), currency="jpy")
    zero = visitor.get(f"/buy/{link.id}/till").page.one("output").attributes["data-zero"]
    assert zero == "¥0"
