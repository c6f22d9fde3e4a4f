"""Test the store of payment links, and the stock that sessions take from and give back to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from checkout.domain.ground.grammar import position
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.events import Event
from checkout.domain.session.record import LineItem, Session
from checkout.domain.session.transitions import advance
from checkout.ports import OutOfStock, Reservation, StaleRecord, Transaction
from tests.support.basics import NOW, a_link, a_session
from tests.support.stores import Store

SOLD_OUT = a_link(left=0)


def selling(items: int = 1, **changes: Any) -> Session:
    """A session that sells this number of items of the link."""
    tea = LineItem("usd", "Tea", None, 1000, items)
    return a_session(**{"link": a_link().id, "line_items": (tea,)} | changes)


def held(store: Store, number: int = 1, items: int = 1) -> Session:
    """Store a session that holds items of the link."""
    session = selling(items, id=f"cs_{number:022d}")
    assert store.sessions.create(session, None) is None
    return session


def left(store: Store) -> int | None:
    found = store.links.get(a_link().id)
    assert found is not None
    return found.left


def a_reservation(writer: str = "first") -> Reservation:
    return Reservation("key", "print", 303, "cs_1", writer, NOW, NOW + timedelta(hours=24))


@pytest.mark.parametrize(
    "link",
    [
        a_link(),
        SOLD_OUT,
        a_link(left=7, stopped_at=NOW, success_url="https://shop.example/thanks"),
    ],
)
def test_a_link_is_read_as_it_was_written(store: Store, link: object) -> None:
    store.links.add(link)  # type: ignore[arg-type]
    assert store.links.get(a_link().id) == link
    assert store.links.get("plink_none") is None


def test_a_merchants_links_are_listed_newest_first_and_are_no_sessions(store: Store) -> None:
    links = [a_link(id=f"plink_{n:022d}", created_at=NOW + timedelta(seconds=n)) for n in range(5)]
    for link in links:
        store.links.add(link)
    store.links.add(a_link(merchant="mer_2"))
    first = store.links.page("mer_1", limit=3, after=None)
    assert first.records == tuple(reversed(links[2:]))
    assert first.next_key == position(links[2].created_at, links[2].id)
    rest = store.links.page("mer_1", limit=3, after=first.next_key)
    assert (rest.records, rest.next_key) == (tuple(reversed(links[:2])), None)
    assert store.links.page("mer_3", limit=3, after=None).records == ()
    found = store.sessions.page(
        Lists("mer_1"), limit=9, after=None, created_from=None, created_before=None
    )
    assert found.records == ()


def test_a_stock_is_set_only_from_what_was_read(store: Store) -> None:
    link = a_link(left=5)
    store.links.add(link)
    assert store.links.set_left(link, 9)
    assert not store.links.set_left(link, 2)
    assert left(store) == 9


def test_what_is_wrong_with_a_request_is_not_taken_for_a_lost_race(store: Store) -> None:
    elsewhere = store.with_client(store.client)
    elsewhere.links._sessions = "no-such-table"
    with pytest.raises(ClientError):
        elsewhere.links.set_left(a_link(left=5), 4)


def test_a_link_is_stopped_and_started(store: Store) -> None:
    link = a_link(left=5)
    store.links.add(link)
    store.links.set_stopped(link, NOW)
    assert store.links.get(link.id) == replace(link, stopped_at=NOW)
    store.links.set_stopped(link, None)
    assert store.links.get(link.id) == link


class TestTake:
    @pytest.mark.parametrize("link", [SOLD_OUT, a_link(left=3, stopped_at=NOW)])
    @pytest.mark.parametrize("reservation", [None, a_reservation()])
    def test_nothing_is_written_without_an_item(
        self, store: Store, link: object, reservation: Reservation | None
    ) -> None:
        store.links.add(link)  # type: ignore[arg-type]
        session = selling()
        with pytest.raises(OutOfStock):
            store.sessions.create(session, reservation)
        assert store.sessions.get(session.id) is None
        assert store.sessions.reservation("key") is None
        assert store.links.get(a_link().id) == link

    def test_the_holder_of_the_key_is_told_also_where_nothing_is_left(self, store: Store) -> None:
        store.links.add(a_link(left=1))
        first = a_reservation()
        assert store.sessions.create(selling(), first) is None
        other = selling(id="cs_other")
        assert store.sessions.create(other, a_reservation("second")) == first
        assert left(store) == 0

    @pytest.mark.parametrize("reservation", [None, a_reservation()])
    def test_a_lost_answer_takes_no_second_item(
        self, store: Store, reservation: Reservation | None
    ) -> None:
        store.links.add(a_link(left=2))
        store.client.lose = 1
        assert store.sessions.create(selling(), reservation) is None
        assert left(store) == 1

    def test_a_session_takes_as_many_as_it_sells(self, store: Store) -> None:
        store.links.add(a_link(left=5, most=5))
        held(store, items=3)
        assert left(store) == 2

    def test_all_that_it_sells_or_none(self, store: Store) -> None:
        store.links.add(a_link(left=2, most=5))
        session = selling(3)
        with pytest.raises(OutOfStock):
            store.sessions.create(session, None)
        assert store.sessions.get(session.id) is None
        assert left(store) == 2


class TestGiveBack:
    def test_as_many_come_back_as_were_taken(self, store: Store) -> None:
        store.links.add(a_link(left=5, most=5))
        change = advance(held(store, items=3), Event.CANCEL_REQUESTED, now=NOW, writer="end")
        store.client.lose = 1
        assert store.sessions.save(Transaction(change)) == change.after
        assert left(store) == 5

    def test_the_write_of_an_unpaid_end_gives_the_item_back(self, store: Store) -> None:
        store.links.add(a_link(left=1))
        session = held(store)
        change = advance(session, Event.CANCEL_REQUESTED, now=NOW, writer="end")
        assert store.sessions.save(Transaction(change)).restocked_at == NOW
        assert left(store) == 1

    def test_the_loser_of_the_end_gives_nothing_back(self, store: Store) -> None:
        store.links.add(a_link(left=1))
        session = held(store)
        store.sessions.save(
            Transaction(advance(session, Event.CANCEL_REQUESTED, now=NOW, writer="end"))
        )
        late = advance(session, Event.EXPIRE_REQUESTED, now=NOW, writer="late")
        with pytest.raises(StaleRecord):
            store.sessions.save(Transaction(late))
        assert left(store) == 1

    def test_a_stopped_link_takes_its_items_back(self, store: Store) -> None:
        store.links.add(a_link(left=1))
        session = held(store)
        store.links.set_stopped(a_link(), NOW)
        store.sessions.save(
            Transaction(advance(session, Event.CANCEL_REQUESTED, now=NOW, writer="end"))
        )
        assert left(store) == 1


class TestRows:
    """A large stock lies in eight rows."""

    LINK = a_link(left=20, rows=8)

    @staticmethod
    def parts(store: Store) -> list[int]:
        """Return what each of the eight rows has, by the names that are stored."""
        names = [a_link().id, *(f"{a_link().id}#{number}" for number in range(1, 8))]
        read = [
            store.client.get_item(TableName=store.links._sessions, Key={"id": {"S": name}})
            for name in names
        ]
        return [int(each["Item"]["left"]["N"]) for each in read]

    def test_each_row_has_an_equal_part_and_the_link_has_them_all(self, store: Store) -> None:
        store.links.add(self.LINK)
        assert self.parts(store) == [3, 3, 3, 3, 2, 2, 2, 2]
        assert store.links.get(a_link().id) == self.LINK
        assert store.links.page("mer_1", limit=9, after=None).records == (self.LINK,)

    def test_a_page_of_links_reads_the_rows_of_all(self, store: Store) -> None:
        """In batches of a hundred rows."""
        many = [a_link(id=f"plink_{number:022d}", left=17 + number, rows=8) for number in range(20)]
        for link in (*many, a_link(id="plink_plain"), a_link(id="plink_small", left=3)):
            store.links.add(link)
        found = store.links.page("mer_1", limit=30, after=None).records
        assert {each.id: each.left for each in found} == {
            **{f"plink_{number:022d}": 17 + number for number in range(20)},
            "plink_plain": None,
            "plink_small": 3,
        }

    def test_a_session_takes_from_its_row_and_gives_back_to_it(self, store: Store) -> None:
        store.links.add(self.LINK)
        session = selling(link=f"{a_link().id}#4")
        assert store.sessions.create(session, None) is None
        assert self.parts(store) == [3, 3, 3, 3, 1, 2, 2, 2]
        store.sessions.save(
            Transaction(advance(session, Event.CANCEL_REQUESTED, now=NOW, writer="end"))
        )
        assert self.parts(store) == [3, 3, 3, 3, 2, 2, 2, 2]

    def test_an_empty_row_sells_nothing_of_the_others(self, store: Store) -> None:
        store.links.add(replace(self.LINK, left=4))
        with pytest.raises(OutOfStock):
            store.sessions.create(selling(link=f"{a_link().id}#4"), None)
        assert self.parts(store) == [1, 1, 1, 1, 0, 0, 0, 0]

    def test_a_stock_is_set_only_from_what_was_read(self, store: Store) -> None:
        store.links.add(self.LINK)
        assert store.links.set_left(self.LINK, 9)
        assert self.parts(store) == [2, 1, 1, 1, 1, 1, 1, 1]
        assert not store.links.set_left(self.LINK, 2)
        assert self.parts(store) == [2, 1, 1, 1, 1, 1, 1, 1]

    def test_the_same_change_is_made_again_after_another_one(self, store: Store) -> None:
        store.links.add(self.LINK)
        for left in (40, 20, 40, 20):
            read = store.links.get(a_link().id)
            assert read is not None
            assert store.links.set_left(read, left)
        assert sum(self.parts(store)) == 20

    def test_a_stock_is_not_set_if_an_item_was_taken_between_read_and_write(
        self, store: Store
    ) -> None:
        store.links.add(self.LINK)
        sell = store.links._persistent.batch_get

        def and_a_sale(*asked: object) -> object:
            found = sell(*asked)  # type: ignore[arg-type]
            store.sessions.create(selling(link=f"{a_link().id}#6"), None)
            return found

        store.links._persistent.batch_get = and_a_sale  # type: ignore[assignment, method-assign]
        assert not store.links.set_left(self.LINK, 100)
        assert self.parts(store) == [3, 3, 3, 3, 2, 2, 1, 2]

    def test_a_refusal_of_another_kind_is_raised(self, store: Store) -> None:
        store.links.add(self.LINK)
        store.links._left_in = lambda rows: dict(  # type: ignore[method-assign]
            zip(rows, [3, 3, 3, 3, 2, 2, 2, 2], strict=True)
        )
        store.links._sessions = "no-such-table"
        with pytest.raises(ClientError):
            store.links.set_left(self.LINK, 4)

    def test_all_rows_are_stopped_and_started(self, store: Store) -> None:
        store.links.add(self.LINK)
        store.links.set_stopped(self.LINK, NOW)
        assert store.links.get(a_link().id) == replace(self.LINK, stopped_at=NOW)
        for row in self.LINK.row_ids:
            with pytest.raises(OutOfStock):
                store.sessions.create(selling(link=row), None)
        store.links.set_stopped(self.LINK, None)
        assert store.links.get(a_link().id) == self.LINK
        for number, row in enumerate(self.LINK.row_ids):
            assert store.sessions.create(selling(id=f"cs_{number}", link=row), None) is None
        assert sum(self.parts(store)) == 12

    def test_a_stop_that_was_interrupted_sells_nothing_and_can_be_repeated(
        self, store: Store
    ) -> None:
        store.links.add(self.LINK)
        real = store.client.update_item
        done: list[str] = []

        def dies(**request: object) -> object:
            if len(done) == 3:
                raise RuntimeError
            done.append(request["Key"]["id"]["S"])  # type: ignore[index]
            return real(**request)

        store.client.update_item = dies
        with pytest.raises(RuntimeError):
            store.links.set_stopped(self.LINK, NOW)
        stopped = store.links.get(a_link().id)
        assert stopped is not None
        assert not stopped.sells
        done.clear()
        with pytest.raises(RuntimeError):  # nor does a start that stops half way let it sell
            store.links.set_stopped(self.LINK, None)
        assert store.links.get(a_link().id) == stopped
        store.client.update_item = real
        store.links.set_stopped(self.LINK, None)
        assert store.links.get(a_link().id) == self.LINK
