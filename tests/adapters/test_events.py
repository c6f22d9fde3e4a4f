"""Test the store of webhook events on every DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from checkout.adapters.dynamo import codec, events
from checkout.adapters.runtime import run_in_turn
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.parts import Lists
from checkout.domain.webhooks.record import (
    FIRST_MESSAGE,
    Delivery,
    GivenUp,
    WebhookEvent,
    ended,
    given_up,
    leased,
    sent_again,
)
from checkout.ports import DueEvent, StaleEvent, Transaction
from tests.support.basics import NOW, a_session, at_once
from tests.support.samples import MS, an_event, cancel, full_event, session_id
from tests.support.stores import Store

MINUTE = timedelta(minutes=1)
SOON = NOW + FIRST_MESSAGE  # when an event of NOW is due


def event_id(number: int) -> str:
    return f"evt_{number:022d}"


def added(store: Store, event: WebhookEvent) -> WebhookEvent:
    store.events.add(event)
    return event


def due(store: Store, until: datetime) -> tuple[DueEvent, ...]:
    return store.events.due(until, limit=9, run_concurrently=run_in_turn)


def added_due(store: Store) -> tuple[WebhookEvent, DueEvent]:
    """Add an event; return it, and as the index has it."""
    event = added(store, an_event())
    [entry] = due(store, SOON)
    return event, entry


def lease(event: WebhookEvent, writer: str = "first") -> WebhookEvent:
    return leased(event, NOW, writer=writer)


def attribute(store: Store, event: WebhookEvent, name: str) -> Any:
    answer = store.client.get_item(
        TableName=f"{store.prefix}-webhook_events", Key={"id": codec.text(event.id)}
    )
    return answer["Item"].get(name)


# --- add and get ---


@pytest.mark.parametrize("event", [an_event(), full_event()], ids=["bare", "full"])
def test_an_added_event_is_read_back_whole(store: Store, event: WebhookEvent) -> None:
    assert store.events.get(event.id) is None
    added(store, event)
    assert store.events.get(event.id) == event


def test_a_taken_id_is_refused_and_its_event_left_alone(store: Store) -> None:
    first = added(store, an_event())
    with pytest.raises(Unavailable):
        store.events.add(replace(first, body="{}"))
    assert store.events.get(first.id) == first


# --- save ---


def test_every_step_of_a_life_is_written_and_read_back(store: Store) -> None:
    event = added(store, an_event())
    for step in (
        lease,
        lambda e: ended(e, Delivery(NOW, 5, 500, None, "no"), now=NOW, spread=0.123),
        lambda e: given_up(e, GivenUp.DISABLED, now=NOW),
        lambda e: sent_again(e, NOW + MINUTE),
        lease,
        lambda e: ended(e, Delivery(NOW, 5, 200, None, "yes"), now=NOW, spread=0),
    ):
        event = step(event)
        store.events.save(event)
        assert store.events.get(event.id) == event
    assert attribute(store, event, "due_at") is None
    assert attribute(store, event, "ttl") is not None


def test_sending_it_again_takes_the_broom_away(store: Store) -> None:
    event = added(store, full_event())
    store.events.save(sent_again(event, NOW))
    assert attribute(store, event, "ttl") is None
    assert attribute(store, event, "given_up") is None
    assert attribute(store, event, "due_at") == codec.instant(NOW + FIRST_MESSAGE)


def test_a_writer_with_an_old_version_changes_nothing_and_learns_the_winner(store: Store) -> None:
    before = added(store, an_event())
    winner = given_up(before, GivenUp.NO_ENDPOINT, now=NOW)
    store.events.save(winner)
    with pytest.raises(StaleEvent) as lost:
        store.events.save(lease(before))
    assert lost.value.current == winner == store.events.get(before.id)


def test_of_many_leases_at_once_one_is_taken(shared: Store) -> None:
    before = added(shared, an_event())

    def take(writer: str) -> bool:
        try:
            shared.events.save(lease(before, writer))
        except StaleEvent:
            return False
        return True

    taken = at_once([partial(take, f"sender-{number}") for number in range(20)])
    assert sum(taken) == 1
    stored = shared.events.get(before.id)
    assert stored is not None
    assert stored.writer == f"sender-{taken.index(True)}"


def test_an_event_that_does_not_exist_is_not_made_by_a_save(store: Store) -> None:
    with pytest.raises(LookupError):
        store.events.save(lease(an_event()))
    assert store.events.get("evt_1") is None


@pytest.mark.parametrize(
    "spread", [0.0, 0.123456789, -0.987654321], ids=["even", "later", "sooner"]
)
def test_a_write_whose_answer_was_lost_counts_as_written(store: Store, spread: float) -> None:
    store.client.lose = 1
    event = added(store, an_event(attempts=2))
    assert store.events.get(event.id) == event
    for step in (
        lease(event),
        ended(lease(event), Delivery(NOW, 5, 500, None, "no"), now=NOW, spread=spread),
    ):
        store.client.lose = 1
        store.events.save(step)
        assert store.events.get(event.id) == step


def test_who_lost_its_answer_and_then_the_event_learns_the_winner(store: Store) -> None:
    before = added(store, an_event())
    mine = lease(before)
    winner = given_up(mine, GivenUp.NO_ENDPOINT, now=NOW)
    other = store.with_client(store.client.client)
    store.client.meanwhile = lambda: other.events.save(winner)
    store.client.lose = 1
    with pytest.raises(StaleEvent) as lost:
        store.events.save(mine)
    assert lost.value.current == winner


# --- due ---


def test_only_a_pending_event_is_due_from_its_time_on_and_names_its_merchant(store: Store) -> None:
    added(store, an_event(id="evt_later", next_at=SOON + MS))
    added(store, full_event(id="evt_over", next_at=NOW))
    added(store, an_event(id="evt_due", merchant="mer_7"))
    entry = DueEvent("evt_due", "mer_7", at=SOON, since=SOON)
    assert due(store, SOON - MS) == ()
    assert due(store, SOON) == (entry,)
    assert [event.id for event in due(store, SOON + MS)] == ["evt_due", "evt_later"]


# --- put_off ---


def due_now(store: Store) -> list[str]:
    return [event.id for event in due(store, SOON)]


def test_what_is_put_off_is_due_again_later_and_otherwise_as_it_was(store: Store) -> None:
    event, entry = added_due(store)
    assert store.events.put_off(entry, SOON + MINUTE)
    assert store.events.get(event.id) == event
    assert due_now(store) == []
    assert not store.events.put_off(entry, SOON + 2 * MINUTE)  # as another round would
    assert due(store, SOON + MINUTE) == (replace(entry, at=SOON + MINUTE),)
    store.events.save(lease(event))  # it takes no lease from anybody
    assert store.events.get(event.id) == lease(event)


@pytest.mark.parametrize(
    "after",
    [sent_again(an_event(), NOW + MINUTE + MS), given_up(an_event(), GivenUp.NO_ENDPOINT, now=NOW)],
    ids=["sent again", "ended"],
)
def test_what_is_written_meanwhile_is_not_put_off(store: Store, after: WebhookEvent) -> None:
    _, entry = added_due(store)
    store.events.save(after)
    assert not store.events.put_off(entry, SOON + MINUTE)
    assert attribute(store, after, "due_at") == events.event_item(after).get("due_at")


def test_an_event_that_is_gone_is_not_made_by_putting_it_off(store: Store) -> None:
    assert not store.events.put_off(DueEvent("evt_gone", "mer_1", at=NOW, since=NOW), NOW + MINUTE)
    assert store.events.get("evt_gone") is None


def test_a_put_off_whose_answer_was_lost_counts_as_done(store: Store) -> None:
    _, entry = added_due(store)
    store.client.lose = 1
    assert store.events.put_off(entry, SOON + MINUTE)


def test_who_lost_its_answer_and_then_the_event_has_not_put_it_off(store: Store) -> None:
    event, entry = added_due(store)
    other = store.with_client(store.client.client)
    store.client.meanwhile = lambda: other.events.save(given_up(event, GivenUp.DISABLED, now=NOW))
    store.client.lose = 1
    assert not store.events.put_off(entry, SOON + MINUTE)


# --- pages ---


def page_ids(store: Store, **wanted: Any) -> tuple[list[str], str | None]:
    page = store.events.page(Lists("mer_1"), **{"limit": 100, **wanted})
    return [event.id for event in page.records], page.next_key


def test_pages_are_newest_first_of_one_merchant_and_skip_none_of_one_millisecond(
    store: Store,
) -> None:
    for number in range(7):
        added(store, an_event(id=event_id(number), created_at=NOW + (number // 3) * MS))
    added(store, an_event(id="evt_theirs", merchant="mer_2", created_at=NOW + MINUTE))
    seen: list[str] = []
    after = None
    for _ in range(4):
        ids, after = page_ids(store, limit=2, after=after)
        seen += ids
    assert seen == [event_id(number) for number in range(6, -1, -1)]
    assert after is None


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_last_page_says_that_it_is_the_last(store: Store, count: int) -> None:
    for number in range(count):
        added(store, an_event(id=event_id(number)))
    ids, after = page_ids(store, limit=2)
    assert len(ids) == min(count, 2)
    assert (after is None) == (count <= 2)


def test_a_page_can_begin_at_a_time_and_includes_it(store: Store) -> None:
    for number in range(4):
        added(store, an_event(id=event_id(number), created_at=NOW + number * MS))
    newest = [event_id(3), event_id(2)]
    assert page_ids(store, created_from=NOW + 2 * MS) == (newest, None)
    first, after = page_ids(store, created_from=NOW + 2 * MS, limit=1)
    assert (first, after is None) == (newest[:1], False)
    assert page_ids(store, created_from=NOW + 2 * MS, after=after) == (newest[1:], None)
    assert page_ids(store, created_from=NOW + MINUTE, after=after) == ([], None)


def test_a_page_shows_the_events_as_they_are_now_in_two_calls(store: Store) -> None:
    event = added(store, an_event())
    after = given_up(event, GivenUp.NO_ENDPOINT, now=NOW)
    store.events.save(after)
    store.client.calls.clear()
    assert store.events.page(Lists("mer_1"), limit=100).records == (after,)
    assert store.client.calls == {"query": 1, "batch_get_item": 1}


def test_an_event_of_another_kind_of_record_names_its_subject_and_no_session(store: Store) -> None:
    event = added(store, an_event(subject="re_0123456789abcdefABCDEF"))
    assert attribute(store, event, "session") == {"S": "re_0123456789abcdefABCDEF"}  # as stored
    found = store.events.get(event.id)
    assert found is not None
    assert (found.subject, found.session) == ("re_0123456789abcdefABCDEF", None)


# --- what the sessions' transaction writes is what this store reads ---


def test_both_writers_of_events_write_the_same_item(store: Store) -> None:
    before = a_session(id=session_id(9))
    store.sessions.create(before, None)
    by_session = an_event(id="evt_a", subject=before.id)
    store.sessions.save(Transaction(cancel(before), (by_session,)))
    alone = added(store, replace(by_session, id="evt_b"))
    for event in (by_session, alone):
        assert store.events.get(event.id) == event
        item = events.event_item(event)
        assert {name: attribute(store, event, name) for name in item} == item
    assert due_now(store) == ["evt_a", "evt_b"]
