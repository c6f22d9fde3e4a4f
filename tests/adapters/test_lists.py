"""Lists that are spread over shards: read as one, whenever the merchant got more of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.meter import Metered
from checkout.adapters.dynamo.index_keys import due_shard, prefix_key
from checkout.adapters.dynamo.lists import page
from checkout.adapters.dynamo.records import search_items, session_item
from checkout.adapters.runtime import run_in_turn
from checkout.domain.ground.grammar import position
from checkout.domain.ground.parts import PARTS, Lists, part_of
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.reports.daily_totals import DayTotals
from checkout.domain.session.record import Session
from checkout.ports import Batch, Scan, Transaction
from open_payments.models import WalletAddress
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.basics import NOW, a_session
from tests.support.samples import DAY, MS, an_event, cancel, session_id
from tests.support.stores import Store, new_store

pytestmark = pytest.mark.untraced

WALLET = WalletAddress(
    "https://w.example/alice", "USD", 2, "https://a.example", "https://r.example"
)
FOUND = {"none": None, "wallet": "alice", "metadata": "green"}
PREPARED = (HistoryEntry(NOW, "wallet_submitted"), HistoryEntry(NOW, "prepared"))
# Of each session: its time, the merchant's shards at that time, and a wallet and a value or not.
MADE = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(PARTS[:4]), st.booleans(), st.booleans()),
    max_size=24,
)


def in_memory() -> Store:
    return new_store(InMemoryDynamoDb(table_definitions("test")), "test")


def made(number: int, time: int, shards: int, *, wallet: bool = True, tea: bool = True) -> Session:
    each = session_id(number)
    return a_session(
        id=each,
        created_at=NOW + time * MS,
        part=part_of(each, shards),
        customer=WALLET if wallet else None,
        history=PREPARED if wallet else (),
        metadata_json='{"a":"1","b":"green"}' if tea else "{}",
    )


def ordered(sessions: list[Session]) -> list[str]:
    """Return the ids newest first."""
    places = sorted((position(each.created_at, each.id) for each in sessions), reverse=True)
    return [place.partition("#")[2] for place in places]


@given(
    before=MADE,
    during=MADE,
    limit=st.integers(1, 7),
    upward=st.booleans(),
    search=st.sampled_from(sorted(FOUND)),
    bounds=st.one_of(st.none(), st.tuples(st.integers(0, 6), st.integers(5, 12))),
)
def test_a_list_has_each_session_once_and_in_order_while_shards_are_added(
    before: list[Any],
    during: list[Any],
    limit: int,
    upward: bool,
    search: str,
    bounds: tuple[int, int] | None,
) -> None:
    store = in_memory()
    most = 1

    def add(number: int, row: tuple[int, int, bool, bool]) -> Session:
        nonlocal most
        time, shards, wallet, tea = row
        most = max(most, shards)
        session = made(number, time, most, wallet=wallet, tea=tea)
        assert store.sessions.create(session, None) is None
        return session

    def wanted(sessions: list[Session]) -> list[str]:
        low, high = (NOW + time * MS for time in bounds) if bounds else (None, None)
        fits = [
            each
            for each in sessions
            if (low is None or low <= each.created_at)
            and (high is None or each.created_at < high)
            and (search != "wallet" or each.customer)
            and (search != "metadata" or (each.metadata and each.customer))
        ]
        return ordered(fits)[::-1] if upward else ordered(fits)

    old = [add(number, row) for number, row in enumerate(before)]
    new: list[Session] = []
    rows = list(during)
    seen: list[str] = []
    after: str | None = None
    while True:
        low, high = (NOW + time * MS for time in bounds) if bounds else (None, None)
        found = store.sessions.page(
            Lists("mer_1", most),
            limit=limit,
            after=after,
            created_from=low,
            created_before=high,
            search=FOUND[search],
            upward=upward,
        )
        assert len(found.records) <= limit
        seen += [each.id for each in found.records]
        after = found.next_key
        if after is None:
            break
        assert len(found.records) == limit
        if rows:
            new.append(add(100 + len(new), rows.pop()))
    assert len(seen) == len(set(seen))
    everything = wanted(old + new)
    assert seen == [each for each in everything if each in set(seen)], "in order, and none else"
    assert set(wanted(old)) <= set(seen), "none is missed that was there before"


@given(made=MADE, limit=st.integers(1, 7), upward=st.booleans())
def test_events_are_listed_as_sessions_are(made: list[Any], limit: int, upward: bool) -> None:
    store = in_memory()
    places = []
    for number, (time, shards, delivered, _) in enumerate(made):
        event = an_event(id=f"evt_{number}", created_at=NOW + time * MS)
        event = replace(event, part=part_of(event.id, shards))
        store.events.add(event)
        if delivered:  # a later write leaves it in its shard
            store.events.save(replace(event, version=2, attempts=1))
        places.append(position(event.created_at, event.id))
    seen: list[str] = []
    after: str | None = None
    while True:
        found = store.events.page(Lists("mer_1", 8), limit=limit, after=after, upward=upward)
        seen += [each.id for each in found.records]
        after = found.next_key
        if after is None:
            break
    assert seen == [each.partition("#")[2] for each in sorted(places, reverse=not upward)]


def test_what_is_due_names_the_merchant_without_its_shard(store: Store) -> None:
    store.events.add(an_event(part=3))
    [due] = store.events.due(NOW + DAY, limit=9, run_concurrently=run_in_turn)
    assert due.merchant == "mer_1"


def test_a_session_stays_in_its_shard_whatever_happens_to_it(store: Store) -> None:
    before = made(1, 0, 8)
    assert before.part
    store.sessions.create(before, None)
    after = store.sessions.save(Transaction(cancel(before), (an_event(part=before.part),)))
    assert store.sessions.get(before.id) == after
    item = session_item(after)
    assert item["merchant"] == {"S": f"mer_1#{before.part}"}
    rows = search_items(replace(before, client_reference_id="A-1"))
    key = prefix_key("mer_1", "A-1")
    assert rows[0]["search_key"] == {"S": f"{key}#{before.part}"}
    assert "shard" not in item


def test_the_first_shard_has_the_key_that_lists_had_before() -> None:
    session = replace(made(1, 0, 1), client_reference_id="A-1")
    assert session_item(session)["merchant"] == {"S": "mer_1"}
    assert search_items(session)[0]["search_key"] == {"S": prefix_key("mer_1", "A-1")}


@pytest.mark.parametrize("shards", PARTS)
def test_shards_are_filled_evenly_and_each_is_in_few_shards_of_what_is_due(shards: int) -> None:
    ids = [session_id(number) for number in range(6_400)]
    counts = Counter(part_of(each, shards) for each in ids)
    assert max(counts.values()) < 1.5 * len(ids) / shards
    places = {(part_of(each, shards), due_shard(each)) for each in ids}
    assert len(places) == max(shards, 8)


def test_counters_of_several_shards_are_one_sum(store: Store) -> None:
    day = NOW.date()
    since = None
    for number, (ended, shard) in enumerate(((1, 0), (2, 0), (3, 3))):
        part = DayTotals(merchant="mer_1", currency="usd", day=day, part=shard, ended=ended)
        to = NOW + number * DAY
        assert store.daily_totals.passed(Batch(Scan.ENDS, 0, since, to, ()), [part])
        since = to
    days = [day, (NOW + DAY).date()]
    whole, empty = store.daily_totals.days(Lists("mer_1", 4), "usd", days)
    assert (whole.ended, empty.ended) == (6, 0)
    assert store.daily_totals.days(Lists("mer_1"), "usd", days)[0].ended == 3


def test_a_page_has_one_to_a_hundred_entries(store: Store) -> None:
    for limit in (0, 101):
        with pytest.raises(ValueError, match=r"1\.\.100"):
            store.sessions.page(
                Lists("mer_1"), limit=limit, after=None, created_from=None, created_before=None
            )


def metered() -> tuple[Store, Metered]:
    tables = table_definitions("test")
    meter = Metered(InMemoryDynamoDb(tables), tables)
    return new_store(meter, "test"), meter


def listed(shards: int) -> dict[str, float]:
    """Return what 30 sessions cost to write, and a page of 20 to read."""
    store, meter = metered()
    for number in range(30):
        store.sessions.create(made(number, number, shards), None)
    written, index = meter.usage.writes, meter.usage.index_writes
    calls, reads = meter.usage.calls, meter.usage.reads
    found = store.sessions.page(
        Lists("mer_1", shards), limit=20, after=None, created_from=None, created_before=None
    )
    assert len(found.records) == 20
    return {
        "writes": written,
        "index writes": index,
        "calls": meter.usage.calls - calls,
        "reads": meter.usage.reads - reads,
    }


def test_a_list_of_one_shard_costs_what_it_has_always_cost() -> None:
    one = listed(1)
    # Of each session a unit for its row and for those of two values, its wallet and a word, and of
    # these one in the index; by_merchant, and uncounted. Read: one query of keys, 20 strong reads.
    assert one == {"writes": 30 * 5, "index writes": 30 * 6, "calls": 2, "reads": 0.5 + 20}


def test_a_shard_costs_a_query_for_a_page_and_nothing_to_write() -> None:
    one, eight = listed(1), listed(8)
    assert eight == {**one, "calls": one["calls"] + 7, "reads": one["reads"] + 7 * 0.5}


def test_no_partition_of_a_list_takes_more_than_its_share_of_the_writes() -> None:
    """The busiest index key of a merchant with 1 000 sessions a second and 8 shards."""
    store, _ = metered()
    for number in range(400):
        store.sessions.create(made(number, number, 8), None)
    for attribute in ("merchant", "search_key"):
        rows = store.client.rows("test-checkout_sessions")
        counts = Counter(row[attribute]["S"] for row in rows if attribute in row)
        assert max(counts.values()) < 0.25 * counts.total()


def test_bounds_that_hold_nothing_ask_nothing() -> None:
    store, meter = metered()
    found = page(
        store.client,
        "test-checkout_sessions",
        "by_merchant",
        "mer_1",
        shards=8,
        limit=1,
        after=None,
        created_from=NOW + DAY,
        created_before=NOW,
        upward=False,
    )
    assert (found.ids, found.next_key, meter.usage.calls) == ([], None, 0)
