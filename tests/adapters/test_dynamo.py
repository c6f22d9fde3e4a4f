"""Test the stores on every DynamoDB. Several writers at once: test_dynamo_races."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from checkout.adapters.dynamo import (
    DatabaseUrl,
    DynamoDatabase,
    codec,
    index_keys,
    parse_database_url,
)
from checkout.adapters.dynamo.people import DynamoSubscribers
from checkout.adapters.runtime import Threads, run_in_turn
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.grammar import position
from checkout.domain.ground.parts import Lists
from checkout.domain.merchant.notices import Pace, Subscriber, Topic
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Phase
from checkout.domain.payment.machine import Change
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.domain.webhooks.record import WebhookEvent
from checkout.ports import (
    WHOLE,
    Batch,
    DueSessions,
    KeyHeld,
    Reservation,
    Scan,
    ShardRange,
    StaleMerchant,
    StaleRecord,
    Transaction,
)
from tests.support.basics import GAVE_A_WALLET, NOW, HandClock, a_link, a_session, words
from tests.support.samples import (
    DAY,
    MS,
    a_key,
    a_merchant,
    a_reservation,
    an_event,
    an_invitation,
    cancel,
    checked,
    full_session,
    paying,
    payment_created,
    session_id,
)
from tests.support.services import put_key
from tests.support.stores import ON_MOTO_TOO, Store, Watched


def saved(store: Store, session: Session) -> Session:
    store.sessions.create(session, None)
    return session


def saved_many(store: Store, count: int, **changes: Any) -> list[str]:
    """Save sessions of the same moment; return their ids in that order."""
    return [saved(store, a_session(id=session_id(n), **changes)).id for n in range(count)]


# A session to which something has happened, so that it owes a check at its expiry.
touched = partial(a_session, history=GAVE_A_WALLET)


class ShortPages:
    """A client whose queries give one row a page, as DynamoDB may at any time."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def query(self, **request: Any) -> Any:
        return self._client.query(**{**request, "Limit": 1})


# --- create and get ---


@ON_MOTO_TOO
def test_a_created_session_is_read_back_whole(store: Store) -> None:
    session = saved(store, full_session())
    assert store.sessions.get(session.id) == session
    assert store.sessions.get(session_id(404)) is None


def test_a_held_key_answers_with_its_record_and_nothing_is_written(store: Store) -> None:
    first, second = a_reservation(), a_reservation("second", body="another", fingerprint="other")
    store.sessions.create(a_session(), first)
    held = store.sessions.create(a_session(id=session_id(2), writer="second"), second)
    assert held == first
    assert store.sessions.get(session_id(2)) is None


@ON_MOTO_TOO
def test_a_reservation_takes_one_call_and_another_key_is_not_affected(store: Store) -> None:
    assert store.sessions.create(a_session(), a_reservation()) is None
    assert store.client.calls == {"transact_write_items": 1}
    assert store.sessions.get(a_session().id) == a_session()
    other = a_reservation("second", key="99" * 32)
    assert store.sessions.create(a_session(id=session_id(2), writer="second"), other) is None


@pytest.mark.parametrize(("early", "free"), [(1 * MS, False), (0 * MS, True), (-1 * MS, True)])
def test_a_key_is_free_after_24_hours_and_not_a_millisecond_before(
    store: Store, early: timedelta, free: bool
) -> None:
    start = datetime(2026, 3, 28, 23, 59, 59, 999_000, tzinfo=UTC)  # across a midnight
    first = a_reservation(created_at=start, expires_at=start + DAY)
    store.sessions.create(a_session(), first)
    later = start + DAY - early
    second = a_reservation("second", created_at=later, expires_at=later + DAY)
    held = store.sessions.create(a_session(id=session_id(2), writer="second"), second)
    assert held == (None if free else first)
    assert (store.sessions.get(session_id(2)) is not None) == free


def test_a_taken_session_id_is_refused_and_its_session_left_alone(store: Store) -> None:
    session = saved(store, a_session())
    foreign = replace(session, writer="second", merchant="mer_2")
    with pytest.raises(Unavailable):
        store.sessions.create(foreign, None)
    with pytest.raises(Unavailable):
        store.sessions.create(foreign, a_reservation("second"))
    assert store.sessions.get(session.id) == session
    assert store.sessions.create(a_session(id=session_id(2)), a_reservation()) is None


# --- save ---


def test_a_change_is_written_and_returned_as_stored(store: Store) -> None:
    before = saved(store, paying(closing_at=NOW, quote=full_session().quote))
    change = advance(
        before, Event.CLOSED, now=NOW + MS, writer="w", closed_at=NOW + 2 * MS, note="nötig"
    )
    store.client.calls.clear()
    assert store.sessions.save(Transaction(change)) == change.after
    assert store.client.calls == {"update_item": 1}
    assert store.sessions.get(before.id) == change.after


@ON_MOTO_TOO
def test_a_change_and_its_answer_are_written_together_or_not_at_all(store: Store) -> None:
    before, reservation = saved(store, a_session()), a_reservation()
    assert store.sessions.reservation(reservation.key) is None
    change = cancel(before)
    assert (
        store.sessions.save(Transaction(change, (an_event(),), reservation=reservation))
        == change.after
    )
    assert store.sessions.reservation(reservation.key) == reservation
    other = saved(store, a_session(id=session_id(2)))
    with pytest.raises(KeyHeld) as held:
        store.sessions.save(
            Transaction(cancel(other), (an_event(id="evt_2"),), reservation=a_reservation("second"))
        )
    assert held.value.reservation == reservation
    assert store.sessions.get(other.id) == other
    assert store.events.get("evt_2") is None


CHOICE = Subscriber(
    id="ntc_1",
    merchant="mer_1",
    member="mbr_1",
    topics=(Topic.WALLET,),
    pace=Pace.DAILY,
    language="en",
    writer="first",
    version=1,
)


def choices(store: Store) -> DynamoSubscribers:
    return DynamoSubscribers(store.client, store.prefix, HandClock())


# What a form makes: the new record's write, and what is stored of it.
MADE: dict[str, tuple[Callable[[Store, Reservation], object], Callable[[Store], object]]] = {
    "a link": (
        lambda store, of: store.links.add(a_link(left=40, rows=8), of),
        lambda store: store.links.get(a_link().id),
    ),
    "an event": (
        lambda store, of: store.events.add(an_event(), of),
        lambda store: store.events.get(an_event().id),
    ),
    "an invitation": (
        lambda store, of: store.people.invite(an_invitation(), of),
        lambda store: store.people.invitation(an_invitation().hash),
    ),
    "a key": (
        lambda store, of: store.api_keys.add(a_key(hash="2" * 64), a_merchant(), of),
        lambda store: store.api_keys.find("2" * 64),
    ),
    "a choice of notices": (
        lambda store, of: choices(store).put(CHOICE, of),
        lambda store: choices(store).get(CHOICE.id),
    ),
}


@pytest.mark.parametrize("what", MADE)
@ON_MOTO_TOO
def test_a_new_record_and_its_answer_are_written_together_or_not_at_all(
    store: Store, what: str
) -> None:
    make, found = MADE[what]
    store.merchants.add(a_merchant(), a_key())
    other = a_reservation("other")
    store.sessions.create(a_session(), other)
    with pytest.raises(KeyHeld) as held:
        make(store, a_reservation())
    assert held.value.reservation == other
    assert found(store) is None
    mine = a_reservation(key="99" * 32)
    make(store, mine)
    assert found(store) is not None
    assert store.sessions.reservation(mine.key) == mine


def test_the_loser_of_a_race_with_the_same_key_learns_the_answer(store: Store) -> None:
    before, first = saved(store, a_session()), a_reservation()
    store.sessions.save(Transaction(cancel(before), reservation=first))
    with pytest.raises(KeyHeld) as held:
        store.sessions.save(
            Transaction(cancel(before, "second"), reservation=a_reservation("second"))
        )
    assert held.value.reservation == first
    other = a_reservation("second", key="99" * 32)
    with pytest.raises(StaleRecord):
        store.sessions.save(Transaction(cancel(before, "second"), reservation=other))
    assert store.sessions.reservation("99" * 32) is None


def test_a_change_with_an_answer_that_got_lost_is_our_own(store: Store) -> None:
    before, reservation = saved(store, a_session()), a_reservation("canceler")
    losing = store.with_client(Watched(store.client, lose=1))
    change = cancel(before)
    assert losing.sessions.save(Transaction(change, reservation=reservation)) == change.after
    assert store.sessions.reservation(reservation.key) == reservation


@ON_MOTO_TOO
def test_what_a_change_drops_is_gone_from_the_table(store: Store) -> None:
    before = saved(store, full_session(phase=None, lease_until=None))
    store.sessions.save(Transaction(cancel(before)))
    key = {"id": codec.text(before.id)}
    item = store.client.get_item(TableName=f"{store.prefix}-checkout_sessions", Key=key)["Item"]
    assert not {"grant", "token", "interact_url", "phase", "lease_until"} & set(item)
    assert item["status"] == {"S": "canceled"}


def due_ids(
    store: Store, now: datetime, *, urgent: bool = False, limit: int = 100
) -> tuple[str, ...]:
    return store.sessions.due(now, urgent=urgent, limit=limit, run_concurrently=run_in_turn).ids


def test_the_due_index_follows_the_session(store: Store) -> None:
    before = saved(store, paying())
    processing = payment_created(before).after
    assert before.check_at is not None
    assert processing.check_at is not None
    for last, at in ((before, before.check_at), (processing, processing.check_at)):
        if last is processing:
            assert store.sessions.save(Transaction(payment_created(before))) == processing
        assert due_ids(store, at - MS, urgent=True) == ()
        assert due_ids(store, at, urgent=True) == (before.id,)
        assert due_ids(store, at) == ()
    done = advance(processing, Event.RECONCILED, now=NOW, writer="last", received=2000)
    store.sessions.save(Transaction(done, (an_event(),)))
    assert due_ids(store, NOW + timedelta(days=30), urgent=True) == ()
    assert due_ids(store, NOW + timedelta(days=30)) == ()


@ON_MOTO_TOO
@pytest.mark.parametrize("events", [(), (an_event(),)], ids=["alone", "with an event"])
def test_a_writer_with_an_old_version_changes_nothing_and_learns_the_winner(
    store: Store, events: tuple[WebhookEvent, ...]
) -> None:
    before = saved(store, a_session())
    winner = store.sessions.save(Transaction(cancel(before, "winner")))
    with pytest.raises(StaleRecord) as lost:
        store.sessions.save(Transaction(cancel(before, "loser"), events))
    assert lost.value.current == winner == store.sessions.get(before.id)
    assert event_ids(store) == set()


def test_the_stored_expiry_itself_is_too_late_and_a_millisecond_before_is_in_time(
    store: Store,
) -> None:
    late = saved(store, a_session(id=session_id(1), expires_at=NOW))
    with pytest.raises(StaleRecord) as lost:
        store.sessions.save(Transaction(cancel(a_session(id=late.id))))
    assert lost.value.current == late
    in_time = saved(store, a_session(id=session_id(2), expires_at=NOW + MS))
    assert (
        store.sessions.save(Transaction(cancel(a_session(id=in_time.id)))).status is Status.CANCELED
    )


def test_a_change_of_a_session_that_does_not_exist_is_a_mistake(store: Store) -> None:
    with pytest.raises(LookupError):
        store.sessions.save(Transaction(cancel(a_session())))
    with pytest.raises(LookupError):
        store.sessions.save(Transaction(cancel(a_session()), (an_event(),)))


@ON_MOTO_TOO
def test_an_event_is_written_in_one_call_and_a_taken_id_lets_nothing_be_written(
    store: Store,
) -> None:
    first = saved(store, a_session())
    store.client.calls.clear()
    store.sessions.save(Transaction(cancel(first), (an_event(),)))
    assert store.client.calls == {"transact_write_items": 1}
    assert event_ids(store) == {"evt_1"}
    second = saved(store, a_session(id=session_id(2)))
    with pytest.raises(Unavailable):
        store.sessions.save(Transaction(cancel(second, "other"), (an_event(),)))
    assert store.sessions.get(second.id) == second


def event_ids(store: Store) -> set[str]:
    """The merchant's events, as the index has them."""
    answer = store.client.query(
        TableName=f"{store.prefix}-webhook_events",
        IndexName="by_merchant",
        KeyConditionExpression="#merchant = :merchant",
        ExpressionAttributeNames={"#merchant": "merchant"},
        ExpressionAttributeValues={":merchant": codec.text("mer_1")},
    )
    return {row["id"]["S"] for row in answer["Items"]}


# --- answers that got lost ---


@pytest.mark.parametrize("with_key", [False, True])
def test_a_creation_whose_answer_was_lost_counts_as_written(store: Store, with_key: bool) -> None:
    store.client.lose = 1
    assert store.sessions.create(a_session(), a_reservation() if with_key else None) is None
    assert store.sessions.get(a_session().id) == a_session()


@pytest.mark.parametrize(
    "change", [cancel(a_session()), payment_created(paying())], ids=["a cancel", "a 201"]
)
@pytest.mark.parametrize("events", [(), (an_event(),)], ids=["alone", "with an event"])
def test_a_change_whose_answer_was_lost_counts_as_written_once(
    store: Store, change: Change[Session], events: tuple[WebhookEvent, ...]
) -> None:
    before = saved(store, change.before)
    store.client.lose = 1
    after = store.sessions.save(Transaction(change, events))
    assert after == change.after == store.sessions.get(before.id)
    assert event_ids(store) == ({"evt_1"} if events else set())


def test_who_lost_its_answer_and_then_the_session_learns_the_winner(store: Store) -> None:
    first = checked(saved(store, paying()), "first")
    other = store.with_client(store.client.client)
    store.client.meanwhile = lambda: other.sessions.save(
        Transaction(checked(first.after, "winner"))
    )
    store.client.lose = 1
    with pytest.raises(StaleRecord) as lost:
        store.sessions.save(Transaction(first))
    assert lost.value.current.writer == "winner"
    assert lost.value.current.phase is Phase.PAYING


# --- pages ---


def page_ids(store: Store, **wanted: Any) -> tuple[list[str], str | None]:
    bounds = dict.fromkeys(("after", "created_from", "created_before"))
    page = store.sessions.page(Lists("mer_1"), **{"limit": 100, **bounds, **wanted})
    return [session.id for session in page.records], page.next_key


@ON_MOTO_TOO
def test_a_page_can_be_bounded_in_time(store: Store) -> None:
    for number in range(5):
        saved(store, a_session(id=session_id(number), created_at=NOW + number * MS))
    middle = {"created_from": NOW + 1 * MS, "created_before": NOW + 4 * MS}
    ids, after = page_ids(store, limit=2, **middle)
    assert ids == [session_id(3), session_id(2)]
    assert page_ids(store, limit=2, after=after, **middle) == ([session_id(1)], None)
    assert page_ids(store, created_from=NOW + 5 * MS) == ([], None)
    assert page_ids(store, created_before=NOW) == ([], None)
    assert page_ids(store, created_from=NOW + 3 * MS, created_before=NOW) == ([], None)
    ancient, distant = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
    assert len(page_ids(store, created_from=ancient, created_before=distant)[0]) == 5
    assert len(page_ids(store, created_before=datetime(2300, 1, 1, tzinfo=UTC))[0]) == 5
    assert page_ids(store, created_from=distant) == ([], None)


def test_a_position_outside_of_the_bounds_is_no_error(store: Store) -> None:
    for number in range(3):
        saved(store, a_session(id=session_id(number), created_at=NOW + number * MS))
    before = position(NOW - DAY, session_id(1))
    behind = position(NOW + DAY, session_id(1))
    assert page_ids(store, after=before, created_from=NOW) == ([], None)
    assert len(page_ids(store, after=behind, created_before=NOW + 2 * MS)[0]) == 2


# --- due ---


@ON_MOTO_TOO
def test_due_sessions_come_the_longest_due_first_whatever_their_shard(store: Store) -> None:
    ages = [7, 3, 11, 0, 5, 9, 1, 12, 4, 8, 2, 10, 6]
    for number, age in enumerate(ages):
        saved(store, touched(id=session_id(number), expires_at=NOW - age * MS))
    ordered = [session_id(ages.index(age)) for age in range(12, -1, -1)]
    assert len({index_keys.due_shard(session_id(number)) for number in range(len(ages))}) > 4
    found = store.sessions.due(NOW, urgent=False, limit=100, run_concurrently=Threads(3))
    assert found == DueSessions(tuple(ordered), 13, NOW - 12 * MS)
    assert due_ids(store, NOW - 10 * MS) == tuple(ordered[:3])
    assert due_ids(store, NOW, urgent=True) == ()


def test_of_each_shard_the_oldest_are_named_and_all_are_counted(store: Store) -> None:
    ids = [session_id(number) for number in range(40)]
    for age, each in enumerate(reversed(ids)):
        saved(store, touched(id=each, expires_at=NOW - age * MS))
    found = store.sessions.due(NOW, urgent=False, limit=1, run_concurrently=run_in_turn)
    oldest = {index_keys.due_shard(each): each for each in reversed(ids)}
    assert set(found.ids) == set(oldest.values())
    assert (found.ids[0], found.total, found.oldest) == (ids[0], 40, NOW - 39 * MS)


def test_what_owes_nothing_or_nothing_yet_is_not_due(store: Store) -> None:
    saved(store, touched(id=session_id(1), expires_at=NOW + MS))
    unpaid = {"phase": None, "incoming_payment": None, "expires_at": NOW + DAY}
    ended = saved(store, full_session(id=session_id(2), **unpaid))
    store.sessions.save(Transaction(cancel(ended)))
    leased = Status.PREPARING
    saved(store, a_session(leased, id=session_id(3), lease_until=NOW + MS, expires_at=NOW))
    saved(store, a_session(leased, id=session_id(4), lease_until=NOW, expires_at=NOW + DAY))
    assert due_ids(store, NOW, urgent=True) == (session_id(4),)
    assert due_ids(store, NOW) == ()


def test_a_session_that_the_clock_ends_is_not_due_and_waits_to_be_counted(store: Store) -> None:
    session = saved(store, a_session(expires_at=NOW))
    assert session.left_to_clock
    assert due_ids(store, NOW) == due_ids(store, NOW, urgent=True) == ()
    shard = int(index_keys.due_shard(session.id))
    batch = store.daily_totals.ahead(Scan.COUNT, shard, NOW, since=None, limit=9)
    assert batch == Batch(Scan.COUNT, shard, None, NOW, (session,))
    ended = store.sessions.save(
        Transaction(advance(session, Event.EXPIRY_PASSED, now=NOW, writer="late"))
    )
    assert ended.left_to_clock  # it is counted once, written or not
    assert store.daily_totals.ahead(Scan.COUNT, shard, NOW, since=None, limit=9) == replace(
        batch, sessions=(ended,)
    )
    assert store.daily_totals.ahead(Scan.ENDS, shard, NOW + DAY, since=None, limit=9) is None


def test_a_session_that_is_given_a_wallet_leaves_the_clock(store: Store) -> None:
    session = saved(store, a_session(expires_at=NOW + MS))
    lease = NOW + timedelta(seconds=45)
    store.sessions.save(
        Transaction(
            advance(session, Event.WALLET_SUBMITTED, now=NOW, writer="w", lease_until=lease)
        )
    )
    shard = int(index_keys.due_shard(session.id))
    assert store.daily_totals.ahead(Scan.COUNT, shard, NOW + DAY, since=None, limit=9) is None
    assert due_ids(store, lease, urgent=True) == (session.id,)


def test_a_due_entry_of_an_older_release_goes_with_the_end(store: Store) -> None:
    session = saved(store, a_session(expires_at=NOW))
    store.client.update_item(
        TableName=f"{store.prefix}-checkout_sessions",
        Key={"id": codec.text(session.id)},
        UpdateExpression="SET #shard = :shard, #at = :at",
        ExpressionAttributeNames={"#shard": "due_shard", "#at": "due_at"},
        ExpressionAttributeValues={":shard": codec.text("3"), ":at": codec.instant(NOW)},
    )
    assert due_ids(store, NOW, urgent=True) == (session.id,)
    store.sessions.save(Transaction(advance(session, Event.EXPIRY_PASSED, now=NOW, writer="sweep")))
    assert due_ids(store, NOW, urgent=True) == ()


def test_asking_what_is_due_takes_one_query_a_shard_and_reads_no_session(store: Store) -> None:
    saved_many(store, 40, expires_at=NOW, history=GAVE_A_WALLET)
    store.client.calls.clear()
    assert len(due_ids(store, NOW)) == 40
    assert store.client.calls == {"query": index_keys.DUE_SHARDS}
    store.client.calls.clear()
    assert due_ids(store, NOW, urgent=True) == ()
    assert store.client.calls == {"query": index_keys.URGENT_SHARDS}


@pytest.mark.parametrize("urgent", [True, False])
def test_the_parts_of_what_is_due_are_together_the_whole(store: Store, urgent: bool) -> None:
    held = {"status": Status.PROCESSING, "check_at": NOW} if urgent else {}
    saved_many(store, 40, expires_at=NOW, history=GAVE_A_WALLET, **held)

    def due(part: ShardRange) -> tuple[str, ...]:
        found = store.sessions.due(
            NOW, urgent=urgent, limit=99, run_concurrently=run_in_turn, part=part
        )
        assert found.total == len(found.ids)
        return found.ids

    parts = [due(ShardRange(number, 8)) for number in range(8)]
    assert sorted(each for part in parts for each in part) == sorted(due(WHOLE))
    assert len(due(WHOLE)) == 40
    assert min(map(len, parts)) > 0


def test_the_parts_of_due_events_are_together_the_whole(store: Store) -> None:
    for number in range(30):
        store.events.add(an_event(id=f"evt_{number}"))
    parts = [
        store.events.due(
            NOW + DAY, limit=99, run_concurrently=run_in_turn, part=ShardRange(number, 8)
        )
        for number in range(8)
    ]
    assert len({each.id for part in parts for each in part}) == sum(map(len, parts)) == 30


def test_a_page_of_the_due_index_that_ends_early_is_gone_on_with(store: Store) -> None:
    ids = saved_many(store, 30, expires_at=NOW, history=GAVE_A_WALLET)
    short = store.with_client(ShortPages(store.client))
    assert set(due_ids(short, NOW)) == set(ids)


# --- merchants and keys ---


def test_a_merchant_is_added_with_its_key_and_found_by_id_wallet_and_key(store: Store) -> None:
    assert store.merchants.add(a_merchant(), a_key()) is None
    assert store.client.calls == {"transact_write_items": 1}
    assert store.merchants.get("mer_1") == a_merchant()
    assert store.merchants.find_by_wallet("https://w.example/shop") == a_merchant()
    assert store.api_keys.find(a_key().hash) == a_key()
    assert store.merchants.get("mer_2") is None
    assert store.merchants.find_by_wallet("https://w.example/other") is None
    assert store.api_keys.find("00" * 32) is None


def test_a_wallet_never_has_two_merchants(store: Store) -> None:
    store.merchants.add(a_merchant(), a_key())
    again = a_merchant(id="mer_2", name="Second")
    assert store.merchants.add(again, a_key(hash="00" * 32, merchant="mer_2")) == a_merchant()
    assert store.merchants.get("mer_2") is None
    assert store.api_keys.find("00" * 32) is None


def test_the_same_addition_once_more_is_the_same_merchant(store: Store) -> None:
    """As the client repeats it after a lost answer."""
    for _ in range(2):
        assert store.merchants.add(a_merchant(), a_key()) is None
    assert store.merchants.get("mer_1") == a_merchant()


def test_a_wallets_guard_row_is_no_merchant(store: Store) -> None:
    store.merchants.add(a_merchant(), a_key())
    taken = a_merchant(id="mer_1", wallet_address="https://w.example/other")
    with pytest.raises(Unavailable):
        store.merchants.add(taken, a_key(hash="00" * 32))
    assert store.merchants.find_by_wallet("https://w.example/other") is None


@ON_MOTO_TOO
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_all_merchants_are_gone_through_page_by_page_without_their_guard_rows(
    store: Store, limit: int
) -> None:
    ids = [f"mer_{number}" for number in range(5)]
    for each in ids:
        merchant = a_merchant(id=each, wallet_address=f"https://w.example/{each}")
        store.merchants.add(merchant, a_key(hash=each, merchant=each))
    page = store.merchants.page(limit=limit, after=None)
    found = [page.records]
    while page.next_key is not None:
        page = store.merchants.page(limit=limit, after=page.next_key)
        found.append(page.records)
    assert max(map(len, found)) <= limit
    assert sorted(merchant.id for page in found for merchant in page) == ids


def test_a_merchants_record_is_replaced_whole_and_never_made_so(store: Store) -> None:
    store.merchants.add(a_merchant(), a_key())
    changed = a_merchant().changed(key_id="key-2", private_key="v1.00000000.bmV1")
    store.merchants.replace(changed)
    assert store.merchants.get("mer_1") == changed
    store.merchants.replace(changed)  # as after a lost answer
    with pytest.raises(StaleMerchant) as stale:
        store.merchants.replace(a_merchant().changed(name="Another"))
    assert stale.value.current == changed
    with pytest.raises(LookupError):
        store.merchants.replace(a_merchant(id="mer_2"))


@ON_MOTO_TOO
def test_a_keys_use_is_noted_once_a_minute(store: Store) -> None:
    put_key(store.client, store.prefix, a_key())
    store.client.calls.clear()
    calls: list[int] = []
    for seconds in (0, 1, 59, 60, 61, 121):
        key = store.api_keys.find(a_key().hash)
        assert key is not None
        store.api_keys.touch(key, NOW + timedelta(seconds=seconds))
        calls.append(store.client.calls["update_item"])
    assert calls == [1, 1, 1, 2, 2, 3]


def test_of_two_who_read_a_stale_key_one_notes_its_use(store: Store) -> None:
    put_key(store.client, store.prefix, a_key())
    store.api_keys.touch(a_key(), NOW)
    store.api_keys.touch(a_key(), NOW + timedelta(seconds=30))
    key = store.api_keys.find(a_key().hash)
    assert key is not None
    assert key.last_used_at == NOW


def test_a_key_that_is_gone_is_not_made_by_its_use(store: Store) -> None:
    store.api_keys.touch(a_key(), NOW)
    assert store.api_keys.find(a_key().hash) is None


def test_ping_tells_whether_the_store_answers(store: Store) -> None:
    assert store.database.ping()
    assert store.client.calls == {"get_item": 1}
    assert not DynamoDatabase(store.client, "no-such-prefix").ping()


# --- DATABASE_URL ---


@pytest.mark.parametrize(
    ("url", "prefix", "endpoint"),
    [
        ("dynamodb:///checkout", "checkout", None),
        ("dynamodb:///shop-1_a.b", "shop-1_a.b", None),
        ("dynamodb+http://127.0.0.1:4566/checkout", "checkout", "http://127.0.0.1:4566"),
        ("dynamodb+http://localhost/x", "x", "http://localhost"),
    ],
)
def test_a_database_url_names_prefix_and_endpoint(
    url: str, prefix: str, endpoint: str | None
) -> None:
    assert parse_database_url(url) == DatabaseUrl(prefix, endpoint)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "dynamodb:///a b",
        *words("""
        checkout dynamodb:// dynamodb:/// dynamodb://host/checkout dynamodb:///a/b dynamodb:///a?b=c
        dynamodb:///a#b dynamodb:///ä dynamodb+http:///checkout dynamodb+http://:4566/checkout
        dynamodb+http://me:hunter2@127.0.0.1:4566/checkout dynamodb+http://127.0.0.1:port/checkout
        dynamodb+http://[::1/checkout dynamodb+https://127.0.0.1/checkout
        postgres://127.0.0.1/checkout
        """),
    ],
)
def test_another_database_url_is_refused_and_not_echoed(url: str) -> None:
    with pytest.raises(ValueError, match="DATABASE_URL must be dynamodb:///PREFIX") as refused:
        parse_database_url(url)
    assert "hunter2" not in str(refused.value)
