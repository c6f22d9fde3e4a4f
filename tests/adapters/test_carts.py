"""Carts that are too large for their session's item lie in items of their own."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from checkout.adapters.dynamo.codec import DICTIONARIES, deflated, inflated, text
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.ports import Scan, StaleRecord, Transaction
from tests.support.basics import NOW, a_session
from tests.support.samples import LARGE_CART, a_reservation, an_event, cancel, session_id
from tests.support.stores import Store


def large(number: int = 0, **changes: Any) -> Session:
    return a_session(id=session_id(number), line_items=LARGE_CART, **changes)


def created(store: Store, session: Session) -> Session:
    assert store.sessions.create(session, None) is None
    return session


def ids(store: Store) -> list[str]:
    rows = store.client.scan(TableName=f"{store.prefix}-checkout_sessions")["Items"]
    return sorted(row["id"]["S"] for row in rows)


def stored(store: Store, row_id: str) -> dict[str, Any]:
    found = store.client.get_item(
        TableName=f"{store.prefix}-checkout_sessions", Key={"id": text(row_id)}
    )
    item: dict[str, Any] = found["Item"]
    return item


def erased(session: Session) -> Change[Session]:
    change = advance(session, Event.ERASED, now=NOW, writer="eraser")
    return replace(change, after=replace(change.after, line_items=(LARGE_CART[0],)))


def test_a_small_cart_lies_in_its_session_and_a_large_one_beside(store: Store) -> None:
    created(store, a_session(id=session_id(1)))
    assert ids(store) == [session_id(1)]
    session = created(store, large(2))
    assert ids(store) == sorted([session_id(1), session_id(2), f"cart#{session_id(2)}"])
    assert store.sessions.get(session.id) == session


def test_a_cart_is_stored_before_its_session(store: Store) -> None:
    class NoTransaction:
        def __getattr__(self, name: str) -> Any:
            return getattr(store.client, name)

        def transact_write_items(self, **request: Any) -> Any:
            answer: Any = {"Error": {"Code": "ValidationException", "Message": ""}}
            raise ClientError(answer, "TransactWriteItems")

    session = large()
    with pytest.raises(ClientError):
        store.with_client(NoTransaction()).sessions.create(session, a_reservation())
    assert ids(store) == [f"cart#{session.id}"]
    assert store.sessions.get(session.id) is None


def test_a_cart_whose_answer_was_lost_is_known_as_its_own_and_anothers_is_not(
    store: Store,
) -> None:
    store.client.lose = 1
    session = created(store, large())
    assert store.sessions.get(session.id) == session
    with pytest.raises(Unavailable):
        store.sessions.create(replace(session, amount_total=1, writer="other"), None)
    assert store.sessions.get(session.id) == session


def test_a_change_writes_no_cart_and_comes_back_with_it(store: Store) -> None:
    session = created(store, large())
    store.client.calls.clear()
    change = advance(session, Event.WALLET_SUBMITTED, now=NOW, writer="w", lease_until=NOW)
    assert (
        store.sessions.save(Transaction(change)) == change.after == store.sessions.get(session.id)
    )
    # The first wallet also lets the cart live longer.
    assert store.client.calls == {"update_item": 2, "get_item": 2}
    with pytest.raises(StaleRecord) as stale:
        store.sessions.save(Transaction(cancel(session), (an_event(),)))
    assert stale.value.current == change.after


def test_lists_figures_and_walks_read_carts_of_both_kinds(store: Store) -> None:
    later = timedelta(milliseconds=1)
    both = [
        created(store, large(1, expires_at=NOW)),
        created(store, a_session(id=session_id(2), created_at=NOW + later, expires_at=NOW)),
    ]
    store.client.calls.clear()
    page = store.sessions.page(
        Lists("mer_1"), limit=10, after=None, created_from=None, created_before=None
    )
    assert list(page.records) == both[::-1]
    assert store.client.calls == {"query": 1, "batch_get_item": 2}
    walked = [
        store.daily_totals.ahead(Scan.COUNT, n, NOW, since=None, limit=9)
        for n in store.daily_totals.shards
    ]
    assert {each for found in walked if found for each in found.sessions} == set(both)

    ended = [
        store.sessions.save(
            Transaction(advance(each, Event.CANCEL_REQUESTED, now=NOW - later, writer="canceler"))
        )
        for each in both
    ]
    walked = [
        store.daily_totals.ahead(Scan.ENDS, n, NOW, since=None, limit=9)
        for n in store.daily_totals.shards
    ]
    assert {each for found in walked if found for each in found.sessions} == set(ended)
    every = DynamoRecords(store.client, store.prefix).sessions()
    assert {each.id for each in every if each} == {each.id for each in ended}


def test_erasure_writes_the_cart_where_it_then_belongs(store: Store) -> None:
    session = created(store, large(status=Status.CANCELED, version=2))
    change = erased(session)
    assert (
        store.sessions.save(Transaction(change)) == change.after == store.sessions.get(session.id)
    )
    assert ids(store) == [session.id]

    other = created(store, large(1, status=Status.CANCELED, version=2))
    change = advance(other, Event.ERASED, now=NOW, writer="eraser")
    change = replace(change, after=replace(change.after, line_items=LARGE_CART[1:]))
    store.sessions.save(Transaction(change))
    assert ids(store) == sorted([session.id, other.id, f"cart#{other.id}"])
    assert store.sessions.get(other.id) == change.after


def test_a_session_without_its_cart_is_no_session(store: Store) -> None:
    session = created(store, large())
    store.client.put_item(
        TableName=f"{store.prefix}-checkout_sessions",
        Item={"id": text(f"cart#{session.id}"), "cart": {"B": b"\x01 no cart"}},
    )
    with pytest.raises(ValueError, match="damaged"):
        store.sessions.get(session.id)


def test_the_cart_lives_as_long_as_a_session_may(store: Store) -> None:
    session = created(store, large())
    in_time = int(stored(store, f"cart#{session.id}")["ttl"]["N"])
    assert in_time > int(stored(store, session.id)["ttl"]["N"])
    doubted = replace(session, status=Status.PROCESSING, check_at=NOW)
    created(store, replace(doubted, id=session_id(1)))
    month_later = advance(
        replace(doubted, id=session_id(1)),
        Event.CHECKED,
        now=session.expires_at + timedelta(days=8),
        writer="sweep",
    )
    store.sessions.save(Transaction(month_later))
    assert "ttl" not in stored(store, f"cart#{session_id(1)}")


def test_what_dictionary_1_packed_can_be_read_for_ever() -> None:
    plain = '{"id":"cs_1","history":[[17,"prepared",null]],"Übrig":"ä 🫖"}'
    packed = "014314f58698890fcd65c0e47c784e12b02f0bd4707889c287f9aba729d50200"
    assert inflated({"B": bytes.fromhex(packed)}) == plain
    # The whole of it: another dictionary would make every stored record unreadable.
    digest = "18da988fbee04a7f28e5b6aea8a267e7c72942a347c536208a2c3686974ea473"
    assert hashlib.sha256(DICTIONARIES[1]).hexdigest() == digest


def test_a_text_of_a_dictionary_that_is_not_known_is_refused() -> None:
    with pytest.raises(KeyError):
        inflated({"B": b"\xff" + deflated("text")["B"][1:]})


@pytest.mark.parametrize("length", range(1, 12))
def test_a_text_that_is_cut_off_is_refused(length: int) -> None:
    whole = deflated("a text of some length")["B"]
    assert len(whole) > 12
    with pytest.raises(ValueError, match="cut off"):
        inflated({"B": whole[:length]})
