"""Test the statement and the file for accounting; figures, list, statement and export agree."""

from __future__ import annotations

import csv
import io
import random
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from checkout.adapters.runtime import run_in_turn
from checkout.domain.ground.ids import new_session_id
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.refund.record import AmountMode, RefundStatus
from checkout.domain.session.record import Session, Status
from checkout.flows import reports
from checkout.flows.refund import request
from checkout.flows.schedule import expiries
from checkout.flows.session import close
from checkout.ports import Scan
from open_payments.models import Amount
from tests.support.basics import NOW, a_refund
from tests.support.dashboard_pages import Browser, Dashboard, dashboard_of, of_api, rows
from tests.support.flows import CEDAR, World
from tests.support.merchant_api import PREFIX
from tests.support.refund_books import BOB, ask, balance, fund, send, wait
from tests.support.refund_books import paid as paid_by
from tests.support.services import store_refund
from tests.support.shop_records import paid, put, refund_of, story

DAY = timedelta(days=1)


def days_of(browser: Browser, query: str = "") -> list[dict[str, str]]:
    answer = browser.get(f"/statement.csv?{query}")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    return list(csv.DictReader(io.StringIO(answer.body, newline=""), strict=True))


def test_a_day_has_what_was_paid_received_and_sent_back(shop: Dashboard, browser: Browser) -> None:
    paid(shop)
    over = paid(shop, received=2350)
    paid(shop, received=1200, updated_at=NOW - DAY)
    late = story(Event.WALLET_SUBMITTED, Event.CANCEL_REQUESTED, Event.LATE_PAYMENT)
    shop.store(status=Status.CANCELED, received=700, history=late, attention=Attention.LATE_PAYMENT)
    shop.store(status=Status.CANCELED)
    refund_of(shop, over, 350, spent=Amount(371, "USD", 2))
    in_euros = Amount(300, "EUR", 2)  # before the wallet changed
    refund_of(shop, shop.stored(over.id), 300, currency="eur", spent=in_euros, cost=in_euros)
    page = browser.get("/statement?from=2026-02-28").page
    assert (
        "2026-02-28 1 12.00 0.00 12.00 0 0.00 0.00 12.00 "
        "2026-03-01 2 40.00 10.50 50.50 1 3.50 3.71 46.79 "
        "All 3 52.00 10.50 62.50 1 3.50 3.71 58.79" in page.main
    )
    sums = {"paid": "40.00", "difference": "10.50", "received": "50.50", "refunded": "3.50"}
    sums |= {"net": "46.79", "refund_cost": "3.71"}
    decimals = {f"{name}_decimal": value for name, value in sums.items()}
    counts = {"day": "2026-03-01", "currency": "usd", "payments": "2", "refunds": "1"}
    assert days_of(browser, "from=2026-03-01") == [counts | decimals]


def test_the_file_for_accounting_has_each_sum(shop: Dashboard, browser: Browser) -> None:
    session = paid(shop, received=2350, client_reference_id="A-7")
    refund = refund_of(shop, session, 350, spent=Amount(371, "USD", 2))
    refund_of(shop, shop.stored(session.id), 0)
    note = refund_of(shop, shop.stored(session.id), 0)
    noted = replace(note, status=RefundStatus.PAID_ELSEWHERE, amount=125, elsewhere="in cash")
    store_refund(shop.dynamo, PREFIX, noted)
    shop.store(status=Status.CANCELED, received=700, updated_at=NOW - DAY, created_at=NOW - DAY)
    found = rows(browser, "/export/accounting.csv")
    lately = "2026-03-01T12:00:00.000Z"
    of_it = (session.id, "A-7", "A-7")
    without = ("2026-02-28T12:00:00.000Z", "without_payment", found[3]["session"], "", "", "")
    assert [tuple(each.values()) for each in found] == [
        (lately, "payment", *of_it, "", "usd", "20.00", "3.50", "23.50", "", "", "", ""),
        (lately, "refund", *of_it, refund.id, "usd", "", "", "", "3.50", "", "3.71", "usd"),
        (lately, "paid_elsewhere", *of_it, note.id, "usd", "", "", "", "", "1.25", "", ""),
        (*without, "usd", "0.00", "7.00", "7.00", "", "", "", ""),
    ]
    [of_one] = rows(browser, f"/export/transactions.csv?q={session.id}")
    assert (of_one["refunded_decimal"], of_one["refund_cost_decimal"]) == ("3.50", "3.71")


def test_what_is_not_received_yet_is_a_difference(shop: Dashboard, browser: Browser) -> None:
    """A merchant who trusts the customer's wallet: the own wallet has not shown the money."""
    paid(shop, received=None)
    for file in ("/export/accounting.csv", "/statement.csv?from=2026-03-01"):
        difference = rows(browser, file)[0]["difference_decimal"]
        assert difference == "-20.00", "a number, not a text"
    assert "1 20.00 -20.00 0.00 0" in browser.get("/statement").page.main


def test_units_below_a_cent_are_not_lost(shop: Dashboard, browser: Browser) -> None:
    paid(shop, receive=Amount(20_000_000, "USD", 6), received=20_004_200)
    paid(shop)
    paid(shop, receive=Amount(2_000, "EUR", 2), currency="eur")  # before the wallet changed
    refund_of(shop, paid(shop), 100, spent=Amount(1_010_300, "USD", 6))
    main = browser.get("/statement").page.main
    assert "3 60.00 0.0042 60.0042 1 1.00 1.0103 58.9939" in main


def test_days_that_are_none_are_said(browser: Browser) -> None:
    for query, sentence in (
        ("from=x", "must be a day"),
        ("from=2026-02-02&to=2026-02-01", "The first day is after the last day."),
        ("from=2026-01-01&to=2026-02-01", "A statement has at most 31 days."),
    ):
        answer = browser.get(f"/statement?{query}")
        assert (answer.status, sentence in answer.body) == (400, True)
    assert (
        "2026-01-01 to 2026-01-31" in browser.get("/statement?from=2026-01-01&to=2026-01-31").body
    )


def test_a_statement_that_is_not_whole_says_so(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "STATEMENT_ROUNDS", 1)
    for number in range(101):
        refund_of(shop, paid(shop, created_at=NOW - number * timedelta(seconds=1)), 1)
    assert "these sums are not complete" in browser.get("/statement").page.main
    assert browser.get("/statement.csv").status == 400


@pytest.mark.parametrize("slow", ["sessions", "refunds"])
def test_a_slow_store_is_not_asked_for_long(shop: Dashboard, browser: Browser, slow: str) -> None:
    for number in range(201):
        refund_of(shop, paid(shop, created_at=NOW - number * timedelta(seconds=1)), 1)
    store: Any = getattr(shop.services, slow)
    read, pages = store.page, list[Any]()

    def page(*args: Any, **options: Any) -> Any:
        if options.get("created_from") or slow == "refunds":
            shop.clock.pass_time(6)
            pages.append(options)
        return read(*args, **options)

    store.page = page
    assert "these sums are not complete" in browser.get("/statement").page.main
    assert len(pages) == 1


def test_refunds_of_long_ago_are_not_read(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "STATEMENT_ROUNDS", 1)
    session = paid(shop, created_at=NOW - 90 * DAY, updated_at=NOW - 90 * DAY)
    for number in range(101):
        refund = a_refund(id=f"re_{number:022d}", session=session.id, created_at=NOW - 80 * DAY)
        store_refund(shop.dynamo, PREFIX, refund)
    assert "All 0" in browser.get("/statement").page.main


def test_what_ended_long_after_it_began_is_in_the_sums_of_its_day(
    shop: Dashboard, browser: Browser
) -> None:
    """More than a page of refunds was requested after the one, all long before the first day."""
    paid(shop, created_at=NOW - 20 * DAY)
    session = paid(shop, created_at=NOW - 60 * DAY, updated_at=NOW - 60 * DAY)
    refund_of(shop, session, 350, created_at=NOW - 20 * DAY)
    for number in range(101):
        refund = a_refund(id=f"re_{number:022d}", session=session.id, created_at=NOW - 10 * DAY)
        store_refund(shop.dynamo, PREFIX, refund)
    [today] = days_of(browser, "from=2026-03-01")
    assert (today["received_decimal"], today["refunded_decimal"]) == ("20.00", "3.50")
    assert "Refunded 3.50 USD" in browser.get("/overview").page.main


# --- files and the wallet's own ledger agree


def part_that_came_and_was_accepted(world: World) -> Session:
    """Half of the price arrives, and the merchant accepts it as paid."""
    session = world.settle(world.pay(world.create(), f"{CEDAR}/partial"))
    ended = close.accept_as_paid(world.services, world.key(), session.id)
    world.sweep(rounds=4)
    return ended


def late_money(world: World) -> Session:
    session = close.cancel(world.services, world.key(), world.submit(world.create()).id)
    world.pay_from_outside(session, 2000)
    world.sweep(rounds=3)
    return session


def test_what_was_received_less_what_refunds_cost_is_the_change_of_the_wallets_balance() -> None:
    """Each end of a refund, in each kind of money; the sandbox's wallet keeps the books."""
    world = World()
    fund(world)
    opening = balance(world, world.shop)
    sold = [paid_by(world, wallet=f"{CEDAR}/{name}") for name in ("alice", "alice", "alice")]
    wait(world, send(world, ask(world, sold[0], 700)))
    wait(world, send(world, ask(world, sold[0])))
    wait(world, send(world, ask(world, sold[1], 500, mode=AmountMode.AT_COST)))
    request.cancel(world.services, world.key(), ask(world, sold[2], 300).id)
    ask(world, sold[2], 400, elsewhere="In cash")
    ask(world, sold[2], 100)  # nobody approves it
    for name in ("refund-partial", "refund-unseen", "refund-fails"):
        wait(world, send(world, ask(world, paid_by(world, wallet=f"{CEDAR}/{name}"))))
    for name in ("one-over", "one-short"):
        rounded = paid_by(world, wallet=f"{CEDAR}/{name}")
        for _ in range(3):  # until it is certain that the last unit does not come
            world.clock.pass_time(60)
            world.sweep()
        wait(world, send(world, ask(world, rounded)))
    wait(world, send(world, ask(world, part_that_came_and_was_accepted(world))))
    wait(world, send(world, ask(world, late_money(world), 1500, wallet=BOB)))
    ended = Counter(
        each.status
        for each in world.services.refunds.page(world.key().lists, limit=100, after=None).records
    )
    assert ended == {
        RefundStatus.SUCCEEDED: 8,
        RefundStatus.FAILED: 1,
        RefundStatus.CANCELED: 1,
        RefundStatus.PAID_ELSEWHERE: 1,
        RefundStatus.NEEDS_APPROVAL: 2,
    }
    changed = balance(world, world.shop) - opening
    with dashboard_of(world) as browser:
        for file in (
            "/statement.csv?from=2026-03-01",
            "/export/accounting.csv",
            "/export/transactions.csv",
        ):
            found = rows(browser, file)
            received, cost, refunded = (
                sum(cents(each[f"{name}_decimal"]) for each in found)
                for name in ("received", "refund_cost", "refunded")
            )
            assert received - cost == changed, file
            assert cost != refunded, "the nominal sum is another one"
        [day] = days_of(browser, "from=2026-03-01")
        assert cents(day["net_decimal"]) == changed
        assert f"which cost {cost / 100:,.2f} USD" in browser.get("/overview").page.main


# --- figures, list, statement and export agree


@dataclass
class Books:
    """The sales, written down a second time: sums in cents by day."""

    paid: Counter[date] = field(default_factory=Counter)
    payments: Counter[date] = field(default_factory=Counter)
    received: Counter[date] = field(default_factory=Counter)
    refunded: Counter[date] = field(default_factory=Counter)
    cost: Counter[date] = field(default_factory=Counter)


def counted(asked: int, received: int) -> int:
    """Return what counts as paid: what arrived, but of more than a rounding what was asked."""
    return received if received <= asked + int(asked >= 10) else asked


class Shop:
    """A shop that sells at random, and keeps its own books."""

    def __init__(self, shop: Dashboard, seed: int) -> None:
        self.shop = shop
        self.random = random.Random(seed)
        self.books = Books()
        self.sold: list[str] = []
        self.unsold: list[str] = []

    def sell(self) -> None:
        at, asked = self.shop.clock.now(), self.random.randint(1, 99_999)
        fields: dict[str, Any] = {
            "id": new_session_id(self.shop.services.random_bytes),
            "amount_total": asked,
            "receive": Amount(asked, "USD", 2),
            "created_at": at - timedelta(seconds=self.random.randint(1, 50)),
        }
        if self.random.random() < 0.6:
            received = self.random.choice(
                [asked] * 5 + [asked + self.random.randint(1, 500), (asked + 1) // 2]
            )
            paid(self.shop, **fields, received=received, updated_at=at, completed_at=at)
            self.books.paid[at.date()] += counted(asked, received)
            self.books.payments[at.date()] += 1
            self.books.received[at.date()] += received
            self.sold.append(fields["id"])
        else:
            status = self.random.choice([Status.CANCELED, Status.EXPIRED])
            history = story(Event.WALLET_SUBMITTED)
            self.shop.store(**fields, status=status, updated_at=at, history=history)
            self.unsold.append(fields["id"])

    def refund(self) -> None:
        session = self.shop.stored(self.random.choice(self.sold))
        sent = min(session.refundable, self.random.randint(0, 2000))
        cost = sent + self.random.randint(0, 100) * (sent > 0)
        refund_of(self.shop, session, sent, spent=Amount(cost, "USD", 2))
        self.books.refunded[self.shop.clock.now().date()] += sent
        self.books.cost[self.shop.clock.now().date()] += cost

    def money_comes_late(self) -> None:
        session = self.shop.stored(self.unsold.pop(self.random.randrange(len(self.unsold))))
        late, at = self.random.randint(1, 5000), self.shop.clock.now()
        history = (*session.history, HistoryEntry(at, Event.LATE_PAYMENT))
        put(self.shop, replace(session, received=late, history=history))
        self.books.received[at.date()] += late

    def count(self) -> None:
        """A round of the walks, as the schedule begins one."""
        services: Any = SimpleNamespace(
            daily_totals=self.shop.services.daily_totals,
            clock=self.shop.clock,
            run_concurrently=run_in_turn,
            merchants=self.shop.services.merchants,
            providers=(),
        )
        until = self.shop.clock.now() + timedelta(seconds=50)
        expiries.run(services, until=until, walks=[Scan.COUNT, Scan.ENDS])

    def compare(self, browser: Browser) -> None:
        paid_sum, payments = self.books.paid.total(), self.books.payments.total()
        overview = browser.get("/overview?period=quarter").page.main
        figures = re.search(r"Paid ([\d,.]+) USD .*? Payments ([\d,]+) ", overview)
        assert figures
        assert (cents(figures[1]), int(figures[2].replace(",", ""))) == (paid_sum, payments)
        listed = of_api(self.shop, status="completed")
        sums = [counted(each["amount_total"], each["amount_received"]) for each in listed]
        assert (sum(sums), len(sums)) == (paid_sum, payments)
        for each in days_of(browser, "from=2026-03-01"):
            day = date.fromisoformat(each["day"])
            received, cost = self.books.received[day], self.books.cost[day]
            assert {name: cents(value) for name, value in each.items() if "decimal" in name} == {
                "paid_decimal": self.books.paid[day],
                "difference_decimal": received - self.books.paid[day],
                "received_decimal": received,
                "refunded_decimal": self.books.refunded[day],
                "refund_cost_decimal": cost,
                "net_decimal": received - cost,
            }
            assert int(each["payments"]) == self.books.payments[day]
        exported = rows(browser, "/export/accounting.csv")
        for name, books in (
            ("paid_decimal", self.books.paid),
            ("received_decimal", self.books.received),
            ("refunded_decimal", self.books.refunded),
            ("refund_cost_decimal", self.books.cost),
        ):
            assert sum(cents(each[name]) for each in exported) == books.total()
        by_session = rows(browser, "/export/transactions.csv?status=completed")
        exact = [
            counted(int(each["amount_total"]), cents(each["received_decimal"]))
            for each in by_session
        ]
        assert sum(exact) == paid_sum
        for name, books in (
            ("refunded_decimal", self.books.refunded),
            ("refund_cost_decimal", self.books.cost),
        ):
            assert sum(cents(each[name]) for each in by_session) == books.total()


def cents(shown: str) -> int:
    sign = -1 if shown.startswith("-") else 1
    whole, _, fraction = shown.lstrip("-").replace(",", "").partition(".")
    return sign * int((whole or "0") + fraction.ljust(2, "0"))


@pytest.mark.parametrize(
    ("sessions", "seed"), [(120, 1), (120, 2), pytest.param(10_000, 3, marks=pytest.mark.endurance)]
)
def test_figures_list_statement_and_export_agree_to_the_cent_at_any_moment(
    shop: Dashboard, sessions: int, seed: int
) -> None:
    """Ten minutes of sales are not counted yet at any time, and the round is late at random."""
    sale = Shop(shop, seed)
    for number in range(sessions):
        sale.sell()
        shop.clock.pass_time(sale.random.randint(5, 30))
        if sale.random.random() < 0.05 and sale.sold:
            sale.refund()
        if sale.random.random() < 0.03 and sale.unsold:
            sale.money_comes_late()
        if sale.random.random() < 0.2:
            sale.count()
        if number == sessions - 1 or sale.random.random() < 12 / sessions:
            sale.compare(shop.signed_in())
