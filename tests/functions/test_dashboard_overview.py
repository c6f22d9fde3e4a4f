"""Test the overview: a period beside the one before, its chart, its steps and its reasons."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.providers import parse
from checkout.domain.payment.attempt import EndedBy, Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Problem
from checkout.domain.refund.record import RefundStatus
from checkout.domain.session.record import Session, Status
from checkout.flows import reports
from checkout.ports import Scan
from dashboard import overview, texts
from open_payments.models import Amount
from tests.support.basics import NOW, a_refund, count_ends
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.hosted_pages import Page
from tests.support.merchant_api import PREFIX
from tests.support.services import store_refund
from tests.support.shop_records import paid, story

DAY = timedelta(days=1)
BANKS = parse(
    "Savings | https://cedar.example/savings/{name} | https://cedar.example/savings\n"
    "Cedar Bank | https://cedar.example/{name} | https://cedar.example/join\n"
    "Harbor | https://harbor.example/{name} | https://harbor.example/join"
)


def sold(shop: Dashboard, amount: int, *, days_ago: int = 0) -> Session:
    at = NOW - days_ago * DAY
    return paid(shop, amount_total=amount, updated_at=at, completed_at=at)


def left(shop: Dashboard, wallet: str, **ended: Any) -> Session:
    """A session that was canceled after an attempt that ended so."""
    attempt = PaymentAttempt(number=1, submitted_at=NOW, wallet=wallet, **ended)
    return shop.store(
        status=Status.CANCELED,
        payment_attempts=(attempt,),
        history=story(Event.WALLET_SUBMITTED, Event.CANCEL_REQUESTED),
    )


def bars(page: Page) -> list[str]:
    """The heights of the chart's bars."""
    marks = page.all("rect")
    return [each.attributes["height"] for each in marks if each.attributes.get("x", "")[-1:] == "%"]


def test_a_sign_in_leads_to_it(shop: Dashboard) -> None:
    page = shop.signed_in().get("/overview").page
    assert page.main.startswith("Overview Today Yesterday 7 days 30 days 90 days")
    assert "Nothing was paid today or yesterday." in page.main


def test_a_period_stands_beside_the_one_before(shop: Dashboard, browser: Browser) -> None:
    for amount, days_ago in ((123456, 0), (123456, 0), (100000, 1), (5000, 6), (100000, 7)):
        sold(shop, amount, days_ago=days_ago)
    shop.store(status=Status.CANCELED)
    count_ends(shop.services.daily_totals, shop.clock)
    today = browser.get("/overview").page
    assert "Paid 2,469.12 USD yesterday 1,000.00 USD" in today.main
    assert "Payments 2 yesterday 1; on average 1,234.56 USD" in today.main
    assert "Price seen, then paid 100 % yesterday 100 %" in today.main
    assert "Sessions that ended 3 100 % 100 % Gave a wallet 2 67 % 100 %" in today.main
    week = browser.get("/overview?period=week").page
    assert "Paid 3,519.12 USD up 252 %; the 7 days before 1,000.00 USD" in week.main
    assert (
        "2026-03-01 3 2 2 2 2 2,469.12 USD 1,000.00 USD 2026-02-28 1 1 1 1 1 1,000.00 USD 0.00 USD"
        in week.main
    )
    yesterday = browser.get("/overview?period=yesterday").page
    assert "Paid 1,000.00 USD the day before 0.00 USD" in yesterday.main
    quarter = browser.get("/overview?period=quarter").page
    assert "Paid 4,519.12 USD the 90 days before 0.00 USD" in quarter.main


def test_what_was_refunded_is_among_the_figures(shop: Dashboard, browser: Browser) -> None:
    session = sold(shop, 10000)
    assert "Refunded 0.00 USD no refunds" in browser.get("/overview").page.main
    for number, (sent, days_ago) in enumerate([(3000, 0), (1000, 0), (500, 1), (7000, 8)]):
        at = NOW - days_ago * DAY
        named = f"re_{number:022d}"
        refund = a_refund(
            RefundStatus.SUCCEEDED, id=named, session=session.id, amount=sent, sent=sent
        )
        refund = replace(refund, spent=Amount(sent + 11, "USD", 2))
        store_refund(shop.dynamo, PREFIX, replace(refund, created_at=at, ended_at=at))
    waits = a_refund(id="re_" + "9" * 22, session=session.id, amount=400)
    store_refund(shop.dynamo, PREFIX, waits)
    main = browser.get("/overview").page.main
    assert "Refunded 40.00 USD 2 refunds, which cost 40.22 USD; 59.78 USD is left" in main
    main = browser.get("/overview?period=yesterday").page.main
    assert "Refunded 5.00 USD 1 refund, which cost 5.11 USD; more than was paid" in main
    main = browser.get("/overview?period=month").page.main
    assert "Refunded 115.00 USD 4 refunds, which cost 115.44 USD; more than was paid" in main
    assert "Refunded 0.00 USD" in shop.signed_in(shop.other_secret).get("/overview").page.main


def test_very_many_refunds_are_not_added_up_for_the_overview(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "STATEMENT_PAGE", 1)
    for number in range(4):
        store_refund(shop.dynamo, PREFIX, a_refund(id=f"re_{number:022d}", created_at=NOW))
    assert "Refunded – too many refunds to add up" in browser.get("/overview").page.main


def test_less_than_before_is_said(shop: Dashboard, browser: Browser) -> None:
    sold(shop, 100, days_ago=1)
    sold(shop, 300, days_ago=2)
    shop.store(
        status=Status.CANCELED,
        updated_at=NOW - DAY,
        history=story(Event.WALLET_SUBMITTED, Event.PREPARED),
    )
    count_ends(shop.services.daily_totals, shop.clock)
    main = browser.get("/overview?period=yesterday").page.main
    assert "Paid 1.00 USD down 67 %; the day before 3.00 USD" in main
    assert "Price seen, then paid 50 % down 50 points; the day before 100 %" in main


def test_there_is_no_such_period(browser: Browser) -> None:
    assert browser.get("/overview?period=century").status == 400


def test_what_ended_and_is_not_counted_yet_is_among_it(shop: Dashboard, browser: Browser) -> None:
    sold(shop, 2000)
    assert "Payments 1 yesterday 0" in browser.get("/overview").page.main
    count_ends(shop.services.daily_totals, shop.clock)
    assert "Payments 1 yesterday 0" in browser.get("/overview").page.main
    shop.clock.pass_time(60)
    at = shop.clock.now()
    paid(shop, updated_at=at, completed_at=at)
    shop.store(expires_at=at)  # nobody gave it a wallet, and its time has come
    shop.store(expires_at=at + DAY)
    main = browser.get("/overview").page.main
    assert "Paid 40.00 USD yesterday 0.00 USD Payments 2" in main
    assert "Sessions that ended 3" in main


@pytest.mark.parametrize("first", ["the count", "the read"])
def test_a_count_while_it_reads_neither_doubles_nor_hides(
    shop: Dashboard, browser: Browser, first: str
) -> None:
    """Between the positions and the days the walks go on: then it reads once more."""
    sold(shop, 2000)
    daily_totals: Any = shop.services.daily_totals
    read = daily_totals.days

    def days(*args: Any) -> Any:
        if first == "the count":
            count_ends(daily_totals, shop.clock)
        found = read(*args)
        count_ends(daily_totals, shop.clock)
        return found

    daily_totals.days = days
    assert "Payments 1 yesterday 0" in browser.get("/overview").page.main
    assert any(walk is Scan.ENDS for walk, _ in daily_totals.positions().marks)


def test_a_count_that_goes_on_and_on_is_not_waited_for(shop: Dashboard, browser: Browser) -> None:
    daily_totals: Any = shop.services.daily_totals
    read, rounds = daily_totals.days, list[Session]()

    def days(*args: Any) -> Any:
        found = read(*args)
        shop.clock.pass_time(3600)
        at = shop.clock.now() - timedelta(minutes=30)
        rounds.append(paid(shop, updated_at=at, completed_at=at))
        count_ends(daily_totals, shop.clock)
        return found

    daily_totals.days = days
    assert browser.get("/overview").status == 200
    assert len(rounds) == 3


def test_what_just_ended_is_not_in_an_earlier_period(shop: Dashboard, browser: Browser) -> None:
    sold(shop, 2000)
    assert "Payments 0 the day before 0" in browser.get("/overview?period=yesterday").page.main


def test_it_says_where_the_reading_ended(shop: Dashboard, browser: Browser) -> None:
    for _ in range(100):
        shop.store(expires_at=NOW + DAY)
    assert "are added a little later" not in browser.get("/overview").page.main
    shop.store(expires_at=NOW + DAY)
    assert "are added a little later" in browser.get("/overview").page.main


def test_what_was_not_paid_has_its_reason_and_its_provider(
    shop: Dashboard, browser: Browser
) -> None:
    shop.services = replace(shop.services, providers=BANKS)
    refused = {"outcome": Outcome.REFUSED, "ended_by": EndedBy.CUSTOMER_WALLET}
    refused |= {"problem": Problem.PAYMENT_REFUSED}
    for wallet in ("https://cedar.example/a", "https://cedar.example/b", "https://me.example/"):
        left(shop, wallet, **refused)
    left(shop, "https://harbor.example/c", **refused)
    left(shop, "https://harbor.example/c", reported=Outcome.DECLINED)
    left(shop, "https://harbor.example/c", outcome=Outcome.FAILED, problem="of_a_later_release")
    page = browser.get("/overview").page
    assert (
        "Refused by the wallet, such as for lack of funds "
        "Cedar Bank 2, Harbor 1, other wallets 1 4 0" in page.main
    )
    assert "Declined by the customer, as the browser reported Harbor 1 1 0" in page.main
    assert "Another reason: of_a_later_release Harbor 1" in page.main


def test_nothing_unpaid_is_said(shop: Dashboard, browser: Browser) -> None:
    sold(shop, 2000)
    left(shop, "https://cedar.example/a")  # nothing is known of how its attempt ended
    assert (
        "Every session that has ended and had a wallet was paid"
        in browser.get("/overview").page.main
    )


def test_the_chart_has_an_axis_and_the_same_in_a_table(shop: Dashboard, browser: Browser) -> None:
    sold(shop, 2000)
    sold(shop, 1500, days_ago=1)
    page = browser.get("/overview").page
    assert [height for height in bars(page) if height != "0.00%"] == ["100.00%"]
    assert len(bars(page)) == 24
    assert "20 15 10 5 0" in page.main
    assert f"{NOW.hour:02}:00 20.00 USD 15.00 USD" in page.main
    week = browser.get("/overview?period=week").page
    assert [height for height in bars(week) if height != "0.00%"] == ["75.00%", "100.00%"]
    assert "23 Feb 24 Feb" in week.main
    assert "2026-02-28 1 1 1 1 1 15.00 USD 0.00 USD" in week.main


def test_the_value_on_the_highest_bar_has_no_currency_so_that_it_is_short(
    shop: Dashboard, browser: Browser
) -> None:
    sold(shop, 123456)
    [value] = browser.get("/overview").page.all("text", **{"class": "top"})
    assert value.text == ["1,234.56"]


@pytest.mark.parametrize(
    ("most", "step"),
    [
        (0, 0),
        (1, 1),
        (4, 1),
        (5, 2),
        (8, 2),
        (9, 5),
        (20, 5),
        (21, 10),
        (81, 50),
        (10**15, 5 * 10**14),
    ],
)
def test_the_axis_is_divided_roundly(most: int, step: int) -> None:
    assert overview._step(most) == step


@pytest.mark.parametrize(
    ("place", "anchor"),
    [(0, "start"), (3, "start"), (4, "middle"), (19, "middle"), (20, "end"), (23, "end")],
)
def test_the_highest_value_stays_inside_the_chart(place: int, anchor: str) -> None:
    assert overview._anchor(place, 24) == anchor


@pytest.mark.parametrize(
    ("paid", "ended", "percent"),
    [(8, 9, 89), (2, 3, 67), (999, 1000, 99), (1, 1000, 1), (0, 9, 0), (9, 9, 100), (0, 0, 0)],
)
def test_shares_are_rounded_and_all_is_only_all(paid: int, ended: int, percent: int) -> None:
    assert overview._share(paid, ended) == percent


def test_every_reason_of_this_release_has_its_words() -> None:
    reasons = {*Problem, *Outcome} - {Outcome.PAID}
    assert set(texts.REASON) == {str(each) for each in reasons}
