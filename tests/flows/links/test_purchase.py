"""Test purchases at payment links: what they make, and that a stock is never sold twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from checkout.adapters.limits import Allowances
from checkout.domain.ground.errors import (
    CheckoutError,
    Conflict,
    ParameterInvalid,
    RateLimited,
    UrlInvalid,
)
from checkout.domain.ground.parts import part_of
from checkout.domain.links import LASTS, OpenAmount, PaymentLink, order_of
from checkout.domain.session.customer_details import CustomerDetails, Detail
from checkout.domain.session.record import Session, Status
from checkout.flows.links import purchase
from checkout.flows.links.purchase import Begun
from checkout.flows.session import close, details
from checkout.flows.session.approve import finish
from checkout.flows.session.lookup import write_clock
from tests.support import services
from tests.support.basics import at_once, between, seeded
from tests.support.flows import BASE_URL, CEDAR, PREFIX, World
from tests.support.protected import HELD_FOR

CLIENT = "203.0.113.7"


def calls(number: int = 1) -> str:
    return f"{number:022d}"


def begin(world: World, link: PaymentLink, number: int = 1, client: str = CLIENT) -> Begun:
    return purchase.begin(
        world.services, purchase.load_link(world.services, link.id), calls(number), client
    )


def begun(world: World, link: PaymentLink, number: int = 1) -> Session:
    return world.session(begin(world, link, number).session_id)


def bought_at_once(
    world: World, link: PaymentLink, quantities: Sequence[int], amounts: Sequence[int] = ()
) -> list[Begun | CheckoutError]:
    """Let a buyer for each quantity begin, in a process with randomness of its own."""

    def buy(number: int, quantity: int) -> Begun | CheckoutError:
        process = replace(world.services, random_bytes=seeded(1000 + number))
        try:
            return purchase.begin(
                process,
                link,
                calls(number),
                f"client {number}",
                quantity=quantity,
                amount=amounts[number] if amounts else None,
            )
        except CheckoutError as refused:
            return refused

    return at_once([partial(buy, *each) for each in enumerate(quantities)])


class TestBegin:
    def test_makes_an_ordinary_session_of_one_item(self, world: World) -> None:
        link = world.link()
        session = begun(world, link)
        assert (session.status, session.merchant) == (Status.OPEN, world.merchant.id)
        assert (session.amount_total, session.currency) == (2000, "usd")
        assert [(each.name, each.quantity) for each in session.line_items] == [("Tea", 1)]
        assert session.metadata == {
            "payment_link": link.id,
            "order_number": order_of(session.id),
        }
        assert session.expires_at == world.clock.now() + LASTS
        assert session.cancel_url == f"{BASE_URL}/buy/{link.id}"
        assert session.success_url == f"{BASE_URL}/pay/{session.id}/success"
        assert session.link is None
        assert session.left_to_clock  # it holds nothing
        assert world.pay(session).status is Status.COMPLETED

    def test_leads_to_the_success_url_of_the_link(self, world: World) -> None:
        link = world.link(success_url="https://shop.example/thanks?s={CHECKOUT_SESSION_ID}")
        session = begun(world, link)
        assert session.success_url == f"https://shop.example/thanks?s={session.id}"

    def test_belongs_to_a_shard_of_its_merchants_lists(self, world: World) -> None:
        world.merchant = world.merchant.changed(parts=4)
        world.services.merchants.replace(world.merchant)
        link = world.link()
        made = [begun(world, link, number) for number in range(8)]
        assert [each.part for each in made] == [part_of(each.id, 4) for each in made]
        assert len({each.part for each in made}) > 1

    def test_keeps_to_the_return_hosts_of_today(self, world: World) -> None:
        link = world.link(success_url="https://old.example/thanks", left=1)
        world.merchant = world.merchant.changed(return_hosts=("shop.example",))
        world.services.merchants.replace(world.merchant)
        with pytest.raises(UrlInvalid):
            begin(world, link)
        assert world.left(link) == 1

    def test_the_same_visit_is_the_same_session_and_item(self, world: World) -> None:
        link = world.link(left=1)
        first = begin(world, link)
        assert begin(world, link) == first  # also where nothing is left for others
        assert not first.ended
        assert world.left(link) == 0

    def test_a_visit_whose_session_has_ended_is_told_so(self, world: World) -> None:
        link = world.link(left=2)
        session = begun(world, link)
        assert world.pay(session).status is Status.COMPLETED
        assert begin(world, link) == Begun(session.id, ended=True, visit=calls())
        assert world.left(link) == 1

    @pytest.mark.parametrize("wrong", ["", "short", "x" * 23, "ä" * 22, "a" * 21 + "\n"])
    def test_needs_a_visit(self, world: World, wrong: str) -> None:
        link = world.link(left=1)
        with pytest.raises(ParameterInvalid):
            purchase.begin(world.services, link, wrong, CLIENT)
        assert world.left(link) == 1

    def test_a_stopped_link_without_a_stock_sells_nothing(self, world: World) -> None:
        link = world.link()
        world.services.links.set_stopped(link, world.clock.now())
        with pytest.raises(Conflict):
            begin(world, link)

    def test_a_link_that_stops_after_it_was_read_sells_nothing(self, world: World) -> None:
        read = world.link(left=3)
        world.services.links.set_stopped(read, world.clock.now())
        with pytest.raises(Conflict):
            purchase.begin(world.services, read, calls(), CLIENT)
        assert world.left(read) == 3


class TestStock:
    def test_an_item_is_held_while_the_session_lives(self, world: World) -> None:
        link = world.link(left=1)
        session = begun(world, link)
        assert session.expires_at == world.clock.now() + HELD_FOR
        assert not session.left_to_clock
        with pytest.raises(Conflict):
            begin(world, link, 2)
        assert world.left(link) == 0

    def test_nobody_who_never_gave_a_wallet_keeps_an_item(self, world: World) -> None:
        link = world.link(left=1)
        session = begun(world, link)
        world.sweep(rounds=31)
        assert world.session(session.id).status is Status.EXPIRED
        assert world.left(link) == 1
        assert not begin(world, link, 2).ended

    def test_it_comes_back_only_when_the_incoming_payment_is_closed(self, world: World) -> None:
        link = world.link(left=1)
        awaiting = world.submit(begun(world, link))
        close.cancel(world.services, world.key(), awaiting.id)
        assert world.left(link) == 0  # somebody may still pay the incoming payment
        world.sweep(rounds=3)
        ended = world.session(awaiting.id)
        assert (ended.status, ended.check_at) == (Status.CANCELED, None)
        assert ended.restocked_at is not None
        assert world.left(link) == 1

    def test_it_comes_back_once_though_the_session_is_checked_and_told_again(
        self, world: World
    ) -> None:
        link = world.link(left=1)
        session = world.submit(begun(world, link))
        world.sweep(rounds=40)
        assert world.session(session.id).status is Status.EXPIRED
        for _ in range(3):
            world.sweep(rounds=10)
            write_clock(world.services, world.session(session.id))
        assert world.left(link) == 1

    def test_a_paid_item_is_sold(self, world: World) -> None:
        link = world.link(left=1)
        assert world.pay(begun(world, link)).status is Status.COMPLETED
        world.clock.pass_time(timedelta(days=2).total_seconds())
        assert world.left(link) == 0

    def test_money_that_comes_late_keeps_the_item_for_the_merchant_to_decide(
        self, world: World
    ) -> None:
        link = world.link(left=1)
        session = world.submit(begun(world, link))
        close.cancel(world.services, world.key(), session.id)
        world.pay_from_outside(session, 2000)
        world.sweep(rounds=3)
        ended = world.session(session.id)
        assert (ended.status, ended.received) == (Status.CANCELED, 2000)
        assert ended.restocked_at is None
        assert world.left(link) == 0

    def test_a_lost_answer_neither_takes_nor_gives_back_twice(self, world: World) -> None:
        link = world.link(left=2)
        real = world.services.sessions
        done = []

        def twice(session: Any, reservation: Any) -> Any:
            done.append(real.create(session, reservation))
            return real.create(session, reservation)  # the same request, as a retry sends it

        class Repeating:
            def __getattr__(self, name: str) -> Any:
                return twice if name == "create" else getattr(real, name)

        repeating: Any = Repeating()
        world.services = replace(world.services, sessions=repeating)
        session = begun(world, link)
        world.services = replace(world.services, sessions=real)
        assert done == [None]
        assert world.left(link) == 1
        world.sweep(rounds=31)
        assert world.session(session.id).status is Status.EXPIRED
        assert world.left(link) == 2

    def test_two_who_end_a_session_give_one_item_back(self, world: World) -> None:
        link = world.link(left=1)
        session = begun(world, link)
        world.clock.pass_time(HELD_FOR.total_seconds())
        read = world.session(session.id)
        real = world.services.sessions

        def other_ends_it() -> None:
            write_clock(replace(world.services, sessions=real), read)

        world.services = replace(world.services, sessions=between(real, "save", other_ends_it))
        assert write_clock(world.services, read).status is Status.EXPIRED
        assert world.left(link) == 1

    def test_a_wallet_given_while_the_session_expires_has_one_winner(self, world: World) -> None:
        link = world.link(left=1)
        session = begun(world, link)
        real = world.services.sessions

        def expire() -> None:
            close.expire(replace(world.services, sessions=real), world.key(), session.id)

        world.services = replace(world.services, sessions=between(real, "save", expire))
        with pytest.raises(CheckoutError):
            world.submit(session)
        assert world.session(session.id).status is Status.EXPIRED
        assert world.left(link) == 1
        assert world.received() == 0


def test_of_200_buyers_of_the_last_item_one_pays_and_199_are_told_before(
    world: World,
) -> None:
    link = world.link(left=1)
    read = purchase.load_link(world.services, link.id)  # all have seen that one is left
    before = len(world.transport.sent)
    results = bought_at_once(world, read, [1] * 200)
    assert Counter(type(each) for each in results) == {Begun: 1, Conflict: 199}
    (winner,) = (each for each in results if isinstance(each, Begun))
    assert len(world.transport.sent) == before  # nobody was asked for a wallet yet
    rows = world.dynamo.rows(f"{PREFIX}-checkout_sessions")
    assert [row["id"]["S"] for row in rows if row["id"]["S"].startswith("cs_")] == [
        winner.session_id
    ]
    paid = world.pay(world.session(winner.session_id), f"{CEDAR}/alice")
    assert paid.status is Status.COMPLETED
    assert world.received() == 2000
    assert world.left(link) == 0


def test_of_200_buyers_who_choose_different_amounts_one_gets_the_last_item(world: World) -> None:
    bounds = OpenAmount(100, 1_000_000, ())
    link = world.link(left=1, open_amount=bounds, unit_amount=100)
    read = purchase.load_link(world.services, link.id)
    amounts = [100 + 7 * number for number in range(200)]
    results = bought_at_once(world, read, [1] * 200, amounts)
    assert Counter(type(each) for each in results) == {Begun: 1, Conflict: 199}
    [(amount, winner)] = (
        (amount, each)
        for amount, each in zip(amounts, results, strict=True)
        if isinstance(each, Begun)
    )
    paid = world.pay(world.session(winner.session_id), f"{CEDAR}/alice")
    assert (paid.status, paid.received, world.received()) == (Status.COMPLETED, amount, amount)
    assert world.left(link) == 0


def test_as_many_are_sold_as_there_were_however_they_end(world: World) -> None:
    link = world.link(left=3)
    ends: Counter[str] = Counter()
    for number in range(12):
        if world.left(link) == 0:
            break
        session = begun(world, link, number)
        if number % 3 == 0:
            world.pay(session)
        elif number % 3 == 1:
            world.submit(session)
        world.sweep(rounds=35)
        ends[world.session(session.id).status] += 1
    assert ends[Status.COMPLETED] == 3
    assert world.received() == 3 * 2000


class TestRows:
    """A stock of 16 items and more lies in eight rows."""

    def test_all_of_it_is_sold_from_wherever_it_lies(self, world: World) -> None:
        link = world.link(left=19, rows=8)
        sold = [begun(world, link, number) for number in range(19)]
        assert len({each.link for each in sold}) == 8
        assert world.left(link) == 0
        with pytest.raises(Conflict, match="Not enough items are left"):
            begin(world, link, 20)

    def test_buyers_begin_at_different_rows(self, world: World) -> None:
        link = world.link(left=800, rows=8)
        found = Counter(begun(world, link, number).link for number in range(80))
        assert len(found) == 8
        assert max(found.values()) < 30

    def test_an_item_comes_back_to_its_row_and_is_sold_again(self, world: World) -> None:
        link = world.link(left=8, rows=8)
        first, *_ = [begun(world, link, number) for number in range(8)]
        close.expire(world.services, world.key(), first.id)
        assert world.left(link) == 1
        assert begun(world, link, 9).link == first.link
        assert world.left(link) == 0

    def test_a_form_that_is_sent_twice_takes_one_item(self, world: World) -> None:
        link = world.link(left=40, rows=8)
        assert begin(world, link).session_id == begin(world, link).session_id
        assert world.left(link) == 39

    def test_200_buyers_of_20_items_at_once_take_20(self, world: World) -> None:
        link = world.link(left=20, rows=8)
        read = purchase.load_link(world.services, link.id)
        results = bought_at_once(world, read, [1] * 200)
        assert Counter(type(each) for each in results) == {Begun: 20, Conflict: 180}
        assert world.left(link) == 0


class TestQuantity:
    """A customer may take several items of a stock at once."""

    def test_they_are_held_together_and_come_back_together(self, world: World) -> None:
        link = world.link(left=5, most=4)
        session = world.session(several(world, link, 3).session_id)
        assert (session.amount_total, world.left(link)) == (6000, 2)
        close.expire(world.services, world.key(), session.id)
        assert world.left(link) == 5

    def test_a_form_that_is_sent_twice_takes_them_once(self, world: World) -> None:
        link = world.link(left=5, most=4)
        first = several(world, link, 3)
        assert several(world, link, 3).session_id == first.session_id
        assert world.left(link) == 2

    def test_what_is_paid_is_sold(self, world: World) -> None:
        link = world.link(left=5, most=4)
        session = world.session(several(world, link, 3).session_id)
        assert world.pay(session).status is Status.COMPLETED
        assert world.left(link) == 2
        assert world.received() == 3 * 2000

    def test_100_buyers_of_1_to_3_at_once_take_no_more_than_there_are(self, world: World) -> None:
        link = world.link(left=20, most=3)
        read = purchase.load_link(world.services, link.id)
        wanted = [1 + number % 3 for number in range(100)]
        results = bought_at_once(world, read, wanted)
        sold = [n for n, each in zip(wanted, results, strict=True) if isinstance(each, Begun)]
        assert sum(sold) == 20
        assert world.left(link) == 0


def several(world: World, link: PaymentLink, quantity: int, number: int = 1) -> Begun:
    read = purchase.load_link(world.services, link.id)
    return purchase.begin(world.services, read, calls(number), CLIENT, quantity=quantity)


@pytest.fixture
def limited(world: World) -> World:
    limits: Allowances = services.limits(world.core.clock, world.dynamo, PREFIX, 30)
    world.services = replace(world.services, limits=limits)
    return world


def test_a_few_clients_leave_something_for_the_others(limited: World) -> None:
    link = limited.link(left=40)
    for number in range(50):
        with suppress(RateLimited):
            begin(limited, link, number, client=f"198.51.100.{number // 10}")
        limited.clock.pass_time(0.1)
    assert limited.left(link) == 14


def test_an_item_that_was_paid_does_not_count(limited: World) -> None:
    """A hall behind one address: each buyer pays before the next one comes."""
    link = limited.link(left=40)
    for number in range(25):
        try:
            session = begun(limited, link, number)
        except RateLimited:
            break
        reference, presented = limited.approve(limited.submit(session))
        limited.clock.pass_time(10)  # as the wallet asks
        finish(
            limited.services,
            session.id,
            interact_ref=reference,
            presented_hash=presented,
            client=CLIENT,
        )
        assert limited.session(session.id).status is Status.COMPLETED
        limited.clock.pass_time(31)
    assert limited.left(link) == 15


class TestLimits:
    def test_one_client_cannot_take_a_whole_stock(self, limited: World) -> None:
        link = limited.link(left=100)
        for number in range(10):
            begin(limited, link, number)
            limited.clock.pass_time(31)
        with pytest.raises(RateLimited) as refused:
            begin(limited, link, 11)
        assert 0 < refused.value.retry_after <= HELD_FOR.total_seconds()
        assert limited.left(link) == 90
        begin(limited, link, 12, client="198.51.100.9")  # others still can
        assert not begin(limited, limited.link(left=1), 13).ended  # and other stocks
        limited.clock.pass_time(HELD_FOR.total_seconds())
        begin(limited, link, 14)

    def test_purchases_come_at_a_rate(self, limited: World) -> None:
        link = limited.link()
        for number in range(10):
            begin(limited, link, number)
        with pytest.raises(RateLimited):
            begin(limited, link, 10)
        begin(limited, link, 11, client="198.51.100.9")
        limited.clock.pass_time(30)
        begin(limited, link, 12)


class TestDetails:
    GIVEN = CustomerDetails(email="ana@example.com", name="Ana")

    def buy(self, world: World, link: PaymentLink, given: CustomerDetails = GIVEN) -> Begun:
        return purchase.begin(world.services, link, calls(), CLIENT, given)

    def test_are_sealed_in_the_session_and_stand_in_no_table(self, world: World) -> None:
        link = world.link(asked=(Detail.EMAIL, Detail.NAME))
        session = world.session(self.buy(world, link).session_id)
        assert details.opened(world.services.vault, world.stored(), session) == self.GIVEN
        for table in ("checkout_sessions", "idempotency_keys", "merchants"):
            assert "ana@example" not in repr(world.dynamo.rows(f"{PREFIX}-{table}")).lower()

    def test_the_same_form_again_is_the_same_purchase(self, world: World) -> None:
        link = world.link(asked=(Detail.EMAIL,))
        assert self.buy(world, link) == self.buy(world, link)

    def test_a_corrected_form_is_a_purchase_of_its_own(self, world: World) -> None:
        link = world.link(asked=(Detail.EMAIL,), left=2)
        first = self.buy(world, link)
        corrected = replace(self.GIVEN, name="Anna")
        second = self.buy(world, purchase.load_link(world.services, link.id), corrected)
        assert (first.session_id, first.visit) != (second.session_id, second.visit)
        session = world.session(second.session_id)
        assert details.opened(world.services.vault, world.stored(), session) == corrected
        assert first.visit == calls()
        assert world.left(link) == 0
