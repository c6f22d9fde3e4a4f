"""Test the time to live that each kind of row gets."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.adapters.dynamo.codec import milliseconds
from checkout.adapters.dynamo.people import DynamoAudit
from checkout.domain.ground.parts import Lists
from checkout.domain.merchant.audit import Action, AuditEntry
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, IncomingPaymentRef
from checkout.domain.session.record import Session, Status
from checkout.domain.session.retention import RETENTION
from checkout.domain.session.transitions import advance
from checkout.domain.webhooks.record import KEPT
from checkout.ports import StaleRecord, Transaction
from tests.support.basics import GAVE_A_WALLET, NOW, a_session
from tests.support.samples import (
    DAY,
    LARGE_CART,
    a_key,
    a_merchant,
    an_event,
    cancel,
    paying,
    payment_created,
)
from tests.support.stores import Store

EXPIRY = NOW + DAY  # of `a_session`
FOUND_BY = '{"order":"A-1"}'
IN_TIME = EXPIRY + 30 * DAY + RETENTION  # of the search rows of a session with a wallet
CART = EXPIRY + 30 * DAY  # of a session that nobody gave a wallet, and two days longer of its rows


def seconds(at: datetime) -> str:
    """Return the time to live of what is of no use from `at` on: it is deleted a day later."""
    return str(milliseconds(at + DAY) // 1000)


def rows(store: Store, table: str) -> dict[str, Any]:
    """Return the time to live of each row of a table, None without one."""
    found = store.client.scan(TableName=f"{store.prefix}-{table}")["Items"]
    key = "hash" if table == "api_keys" else "id"
    return {
        row[key]["S"].partition("#")[0]: row["ttl"]["N"] if "ttl" in row else None for row in found
    }


def move(store: Store, session: Session, event: Event, at: datetime, **changes: Any) -> Session:
    return store.sessions.save(
        Transaction(advance(session, event, now=at, writer=event.value, **changes))
    )


def test_a_session_that_nothing_is_written_for_any_more_ages_out(store: Store) -> None:
    session = a_session(metadata_json=FOUND_BY)
    store.sessions.create(session, None)
    kept = {session.id: seconds(CART), "search": seconds(CART + 2 * DAY)}
    assert rows(store, "checkout_sessions") == kept


def test_the_first_wallet_keeps_a_session_and_its_rows_for_the_whole_time(store: Store) -> None:
    session = a_session(metadata_json=FOUND_BY, line_items=LARGE_CART)
    store.sessions.create(session, None)
    short = seconds(CART + 2 * DAY)
    kept = {session.id: seconds(CART), "search": short, "cart": short}
    assert rows(store, "checkout_sessions") == kept

    session = move(store, session, Event.WALLET_SUBMITTED, NOW, lease_until=NOW + DAY / 24)
    kept = {session.id: seconds(EXPIRY + RETENTION), "search": seconds(IN_TIME)}
    assert rows(store, "checkout_sessions") == kept | {"cart": seconds(IN_TIME)}
    assert store.client.calls["transact_write_items"] == 0
    assert store.sessions.get(session.id) == session


def test_rows_are_kept_longer_before_the_wallet_is_written_and_nothing_else_of_them_is(
    store: Store,
) -> None:
    """Otherwise a process that dies in between leaves a session whose cart ages out first."""
    session = a_session(line_items=LARGE_CART)
    store.sessions.create(session, None)
    table = f"{store.prefix}-checkout_sessions"
    key = {"id": {"S": f"cart#{session.id}"}}
    before = store.client.get_item(TableName=table, Key=key)["Item"]
    canceled = store.sessions.save(Transaction(cancel(session)))
    with pytest.raises(StaleRecord):
        move(store, session, Event.WALLET_SUBMITTED, NOW, lease_until=NOW + DAY / 24)
    after = store.client.get_item(TableName=table, Key=key)["Item"]
    assert after == before | {"ttl": {"N": seconds(IN_TIME)}}
    assert store.sessions.get(session.id) == canceled


def test_a_cart_that_is_not_there_is_not_made(store: Store) -> None:
    session = a_session(line_items=LARGE_CART)
    table = f"{store.prefix}-checkout_sessions"
    store.sessions.create(session, None)
    delete = {"TableName": table, "Key": {"id": {"S": f"cart#{session.id}"}}}
    store.client.transact_write_items(TransactItems=[{"Delete": delete}])
    move(store, session, Event.WALLET_SUBMITTED, NOW, lease_until=NOW + DAY / 24)
    assert list(rows(store, "checkout_sessions")) == [session.id]


def test_an_ended_session_ages_out_and_its_search_rows_are_not_written_again(store: Store) -> None:
    session = paying(metadata_json=FOUND_BY, history=GAVE_A_WALLET)
    store.sessions.create(session, None)
    session = store.sessions.save(Transaction(payment_created(session)))
    at = EXPIRY + 5 * DAY
    session = move(store, session, Event.RECONCILED, at, completed_at=at)
    kept = {session.id: seconds(at + RETENTION), "search": seconds(IN_TIME)}
    assert rows(store, "checkout_sessions") == kept
    assert store.client.calls["batch_write_item"] == 1  # the creation
    assert store.client.calls["transact_write_items"] == 0


def test_a_payment_in_flight_and_a_partial_one_have_no_end(store: Store) -> None:
    session = a_session(Status.PROCESSING, metadata_json=FOUND_BY, check_at=NOW)
    store.sessions.create(session, None)
    assert rows(store, "checkout_sessions") == {session.id: None, "search": seconds(IN_TIME)}

    flagged = {"received": 5, "attention": Attention.PARTIAL_PAYMENT}
    session = move(store, session, Event.CHECKED, NOW, **flagged)
    flag = seconds(EXPIRY + 3650 * DAY + RETENTION)  # it may wait for years
    assert rows(store, "checkout_sessions") == {session.id: None, "search": None, "flag": flag}
    assert store.sessions.get(session.id) == session

    at = EXPIRY + 500 * DAY  # when its merchant decides at last
    session = move(store, session, Event.ACCEPTED_AS_PAID, at, completed_at=at)
    kept = {
        session.id: seconds(at + RETENTION),
        "search": seconds(at + 30 * DAY + RETENTION),
        "flag": flag,
    }
    assert rows(store, "checkout_sessions") == kept
    assert store.sessions.ordered(Lists("mer_1"), "A-1", limit=9) == (session,)


def test_a_payment_that_is_disproved_gives_the_session_its_end_back(store: Store) -> None:
    closed = NOW - timedelta(minutes=1)
    session = paying(closing_at=closed, closed_at=closed, history=GAVE_A_WALLET)
    store.sessions.create(session, None)
    assert rows(store, "checkout_sessions") == {session.id: None}
    session = move(store, session, Event.PAYMENT_DISPROVED, NOW)
    assert rows(store, "checkout_sessions") == {session.id: seconds(EXPIRY + RETENTION)}


def test_a_session_that_is_still_checked_is_kept_long_after_its_next_check(store: Store) -> None:
    incoming = IncomingPaymentRef("https://r.example/in/1", EXPIRY)
    session = a_session(incoming_payment=incoming)
    store.sessions.create(session, None)
    session = move(store, session, Event.CANCEL_REQUESTED, NOW)
    assert session.check_at == NOW
    session = move(store, session, Event.CHECKED, NOW, check_at=NOW + 7 * DAY)
    assert rows(store, "checkout_sessions") == {session.id: seconds(NOW + 7 * DAY + RETENTION)}
    session = move(store, session, Event.CHECKED, NOW + 7 * DAY, check_at=None)
    assert rows(store, "checkout_sessions") == {session.id: seconds(NOW + RETENTION)}


def test_an_event_ages_out_once_it_was_delivered_and_an_entry_of_the_audit_log_from_the_start(
    store: Store,
) -> None:
    event = an_event()
    store.events.add(event)
    assert rows(store, "webhook_events") == {event.id: None}
    store.events.save(replace(event, version=event.version + 1, ended_at=NOW))
    assert rows(store, "webhook_events") == {event.id: seconds(NOW + KEPT)}

    merchant, key = a_merchant(), a_key()
    store.merchants.add(merchant, key)
    entry = AuditEntry(
        id="aud_1",
        merchant=merchant.id,
        at=NOW,
        action=Action.SIGNED_IN,
        actor_id=key.id,
        actor_name=key.name,
        key_last_four=key.last_four,
    )
    DynamoAudit(store.client, store.prefix, retention=90 * DAY).add(entry)
    assert rows(store, "api_keys") == {key.hash: None, "audit": seconds(NOW + 90 * DAY)}
