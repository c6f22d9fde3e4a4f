"""Many writers at once, on what stands many threads: each race has one winner."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from checkout.adapters.dynamo import codec, records
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change
from checkout.domain.session.record import Session
from checkout.domain.session.transitions import advance
from checkout.domain.webhooks.record import WebhookEvent
from checkout.ports import StaleRecord, Transaction
from tests.support.basics import NOW, a_session, at_once
from tests.support.samples import MS, a_reservation, an_event, cancel, checked, paying, session_id
from tests.support.stores import Store

pytestmark = pytest.mark.untraced

CREATORS = 50
ROUNDS = 20


def answers_of_creators(store: Store) -> list[str]:
    """The body that each of the creators of one key hands to its caller, who tries ten times."""

    def create(number: int) -> str:
        session = a_session(id=session_id(number), writer=f"writer-{number}")
        mine = a_reservation(session.writer, body=f'{{"id":"{session.id}"}}')
        for _ in range(10):
            with suppress(Unavailable):
                held = store.sessions.create(session, mine)
                return mine.body if held is None else held.body
        raise AssertionError("unavailable")

    return at_once([partial(create, number) for number in range(CREATORS)])


def stored_ids(store: Store) -> list[str]:
    found = [store.sessions.get(session_id(number)) for number in range(CREATORS)]
    return [session.id for session in found if session is not None]


def test_fifty_creators_of_one_key_make_one_session_and_fifty_equal_answers(shared: Store) -> None:
    bodies = answers_of_creators(shared)
    [only] = stored_ids(shared)
    assert bodies == [f'{{"id":"{only}"}}'] * CREATORS


class Unreliable:
    """Conflicts before the write, or loses the answer after it, a third of the time each."""

    def __init__(self, client: Any, seed: int) -> None:
        self.client = client
        self.random = Random(seed)
        self.faults: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def transact_write_items(self, **request: Any) -> Any:
        fault = self.random.choice(("conflict", "lost", "none"))
        self.faults[fault] += 1
        if fault == "conflict":
            reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
            code = {"Code": "TransactionCanceledException", "Message": ""}
            response: Any = {"Error": code, "CancellationReasons": reasons}
            raise ClientError(response, "TransactWriteItems")
        answer = self.client.transact_write_items(**request)
        if fault == "lost" and self.random.random() < 0.5:
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
        return answer


@pytest.mark.parametrize("seed", range(3))
def test_conflicts_and_lost_answers_make_no_second_session(shared: Store, seed: int) -> None:
    unreliable = Unreliable(shared.client, seed)
    bodies = answers_of_creators(shared.with_client(unreliable))
    [only] = stored_ids(shared)
    assert bodies == [f'{{"id":"{only}"}}'] * CREATORS
    assert unreliable.faults["conflict"] > 5
    assert unreliable.faults["lost"] > 5


def outcome(
    store: Store, change: Change[Session], *events: WebhookEvent
) -> Session | StaleRecord[Session]:
    try:
        return store.sessions.save(Transaction(change, events))
    except StaleRecord as stale:
        return stale


def test_of_two_writers_one_wins_and_the_other_learns_who(shared: Store) -> None:
    winners: Counter[str] = Counter()
    for number in range(ROUNDS):
        before = a_session(id=session_id(number))
        shared.sessions.create(before, None)
        cancels = cancel(before, "canceler")
        submits = advance(before, Event.WALLET_SUBMITTED, now=NOW, writer="submitter")
        event = an_event(id=f"evt_{number}")
        results = at_once(
            [partial(outcome, shared, cancels, event), partial(outcome, shared, submits)]
        )
        [won] = [result for result in results if isinstance(result, Session)]
        [lost] = [result for result in results if isinstance(result, StaleRecord)]
        assert lost.current == won == shared.sessions.get(before.id)
        winners[won.writer] += 1
        name = f"{shared.prefix}-webhook_events"
        stored = shared.client.get_item(TableName=name, Key={"id": codec.text(event.id)})
        assert ("Item" in stored) == (won.writer == "canceler")
    assert sum(winners.values()) == ROUNDS


def test_of_many_writers_of_one_version_one_wins(shared: Store) -> None:
    before = paying()
    shared.sessions.create(before, None)
    changes = [checked(before, f"sweeper-{number}") for number in range(20)]
    results = at_once([partial(outcome, shared, change) for change in changes])
    [won] = [result for result in results if isinstance(result, Session)]
    told = {result.current.writer for result in results if isinstance(result, StaleRecord)}
    assert told == {won.writer}
    assert won.version == before.version + 1


def store_all(store: Store, sessions: list[Session]) -> None:
    """Up to 100 in one call, which is quicker than a call each."""
    table = f"{store.prefix}-checkout_sessions"
    puts = [{"TableName": table, "Item": records.session_item(session)} for session in sessions]
    store.client.transact_write_items(TransactItems=[{"Put": put} for put in puts])


def every_page(store: Store) -> list[Session]:
    """All of the merchant's sessions, by pages of 100."""
    seen: list[Session] = []
    after, pages = None, 0
    while pages == 0 or after is not None:
        page = store.sessions.page(
            Lists("mer_1"), limit=100, after=after, created_from=None, created_before=None
        )
        seen.extend(page.records)
        after, pages = page.next_key, pages + 1
    return seen


@pytest.mark.parametrize(
    ("shared", "total"),
    # Each query of the emulator looks at the whole table, so it gets fewer.
    [("memory", 3_000), pytest.param("emulator", 2_000, marks=pytest.mark.cloud)],
    indirect=["shared"],
)
def test_paging_sees_each_session_once_newest_first_while_more_are_made(
    shared: Store, total: int
) -> None:
    """All within five milliseconds, so that hundreds share each."""
    random = Random(7)
    made = [
        a_session(id=session_id(number), created_at=NOW + random.randrange(5) * MS)
        for number in random.sample(range(10**9), total)
    ]
    for start in range(0, len(made), 100):
        store_all(shared, made[start : start + 100])
    stop = threading.Event()

    def more() -> int:
        count = 0
        while not stop.is_set():
            newer = replace(a_session(), id=f"cs_x{count:021d}", created_at=NOW + 10 * MS)
            shared.sessions.create(newer, None)
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(more)
        try:
            seen = every_page(shared)
        finally:
            stop.set()
        assert creating.result() > 0
    old = [session for session in seen if session.created_at < NOW + 10 * MS]
    expected = sorted(made, key=lambda session: (session.created_at, session.id), reverse=True)
    assert [session.id for session in old] == [session.id for session in expected]
    assert len({session.id for session in seen}) == len(seen)
