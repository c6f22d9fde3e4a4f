"""Test the stores of notes and withdrawals, and the row by which a flagged session is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from checkout.adapters.dynamo.index_keys import ttl
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention
from checkout.domain.reports.search_terms import NEEDS_SOMEBODY
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.ports import Transaction
from tests.support.basics import NOW, a_session
from tests.support.hosted_pages import AWAITING
from tests.support.samples import a_note, a_withdrawal
from tests.support.stores import Store


def test_a_note_is_read_as_it_was_written_and_is_no_session(store: Store) -> None:
    note = a_note()
    assert store.notes.get(note.session) is None
    assert store.notes.put(note)
    assert store.notes.get(note.session) == note
    assert store.notes.of([note.session, "cs_none"]) == {note.session: note}
    found = store.sessions.page(
        Lists("mer_1"), limit=9, after=None, created_from=None, created_before=None
    )
    assert found.records == ()
    assert store.sessions.get(note.session) is None


def test_of_two_who_write_at_once_one_is_told(store: Store) -> None:
    note = a_note()
    assert store.notes.put(note)
    assert not store.notes.put(replace(note, text="another first"))
    assert store.notes.put(replace(note, text="second", version=2))
    assert not store.notes.put(replace(note, text="another second", version=2))
    found = store.notes.get(note.session)
    assert found is not None
    assert found.text == "second"


def test_a_note_goes_some_time_after_its_session(store: Store) -> None:
    store.notes.put(a_note())
    [row] = store.client.scan(TableName=f"{store.prefix}-checkout_sessions")["Items"]
    assert row["ttl"] == ttl(NOW + timedelta(days=430))


def flagged(store: Store) -> list[str]:
    page = store.sessions.page(
        Lists("mer_1"),
        limit=9,
        after=None,
        created_from=None,
        created_before=None,
        search=NEEDS_SOMEBODY,
    )
    return [each.id for each in page.records]


def test_a_session_is_found_once_it_is_flagged(store: Store) -> None:
    session: Session = a_session(Status.PROCESSING, **AWAITING)
    store.sessions.create(session, None)
    assert flagged(store) == []
    change = advance(session, Event.CHECKED, now=NOW, writer="second", updated_at=NOW, check_at=NOW)
    change = replace(change, after=replace(change.after, attention=Attention.UNDECIDED))
    saved = store.sessions.save(Transaction(change))
    assert flagged(store) == [session.id]
    change = advance(saved, Event.CHECKED, now=NOW, writer="third", updated_at=NOW, check_at=NOW)
    store.sessions.save(Transaction(change))
    assert flagged(store) == [session.id]


def test_a_withdrawal_is_read_as_it_was_written_and_finds_its_session(store: Store) -> None:
    session, filed = a_session(Status.COMPLETED), a_withdrawal()
    store.sessions.create(session, None)
    assert store.withdrawals.get(session.id) is None
    assert store.withdrawals.put(filed, session)
    assert store.withdrawals.get(session.id) == filed
    assert store.withdrawals.of([session.id, "cs_none"]) == {session.id: filed}
    assert flagged(store) == [session.id]
    found = store.sessions.page(
        Lists("mer_1"), limit=9, after=None, created_from=None, created_before=None
    )
    assert [each.id for each in found.records] == [session.id]


def test_a_withdrawal_is_filed_once_and_changed_by_its_version(store: Store) -> None:
    session, filed = a_session(Status.COMPLETED), a_withdrawal()
    assert store.withdrawals.put(filed, session)
    assert not store.withdrawals.put(replace(filed, said="another"), session)
    answered = replace(filed, answered_by="Ada", version=2)
    assert store.withdrawals.put(answered, session)
    assert not store.withdrawals.put(answered, session)
    assert store.withdrawals.get(session.id) == answered
    rows = store.client.scan(TableName=f"{store.prefix}-checkout_sessions")["Items"]
    assert [each["ttl"] for each in rows] == [ttl(NOW + timedelta(days=430))]
