"""Test the search: a merchant's text, and the sessions found."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from checkout.domain.search import METADATA_FOUND_MAX
from checkout.domain.session import Session, Status
from checkout.flows.merchant import search
from checkout.flows.payment import sessions
from checkout.flows.payment.sessions import ListQuery
from tests.product import CEDAR, HARBOR, World


def found(world: World, text: str, **bounds: object) -> list[str]:
    listed = search.find(world.services, world.key(), text, ListQuery(limit=100, **bounds))  # type: ignore[arg-type]
    return [session.id for session in listed.sessions]


def with_metadata(world: World, **values: object) -> Session:
    world.clock.pass_time(1)
    return world.create(metadata_json=json.dumps(values))


@pytest.mark.parametrize("typed", [f" {CEDAR}/alice/ ", "$LOCALHOST:4101/Alice"])
def test_a_wallet_is_found_however_it_is_written(world: World, typed: str) -> None:
    paid = world.pay(world.create())
    world.submit(world.create(), f"{CEDAR}/carol")
    assert found(world, typed) == [paid.id]


def test_the_last_wallet_of_a_session_is_the_one_it_is_found_by(world: World) -> None:
    session = world.submit(world.submit(world.create()), f"{HARBOR}/bob")
    assert found(world, f"{HARBOR}/bob") == [session.id]
    assert found(world, f"{CEDAR}/alice") == []


def test_a_value_of_the_metadata_finds_its_sessions_newest_first(world: World) -> None:
    first = with_metadata(world, order="A-1", customer="Zoë Ω")
    second = with_metadata(world, order="A-2", customer="zoë ω")
    number = with_metadata(world, order=1234)
    assert found(world, "a-1") == [first.id]
    assert found(world, "ZOË Ω") == [second.id, first.id]
    assert found(world, "1234") == [number.id]
    assert found(world, "A-") == []


def test_truth_values_nothing_and_what_comes_after_the_first_ten_are_not_found() -> None:
    world = World()
    with_metadata(world, yes=True, none=None, empty=" ")
    many = {f"key{number}": f"value{number}" for number in range(METADATA_FOUND_MAX + 1)}
    session = with_metadata(world, **many)
    assert found(world, "True") == found(world, "None") == found(world, "value10") == []
    assert found(world, "value9") == [session.id]


def test_a_session_that_is_found_twice_is_shown_once_and_pages_do_not_repeat_it() -> None:
    world = World()
    ids = []
    for _ in range(5):
        session = with_metadata(world, wallet=f"{CEDAR}/alice")
        ids.append(world.submit(session).id)
    seen: list[str] = []
    cursor = None
    for expected in (2, 2, 1):
        query = ListQuery(limit=2, cursor=cursor)
        page = search.find(world.services, world.key(), f"{CEDAR}/alice", query)
        assert len(page.sessions) == expected
        seen += [session.id for session in page.sessions]
        cursor = page.next_cursor
    assert cursor is None
    assert seen == ids[::-1]


def test_an_id_finds_its_session_alone_and_within_the_bounds(world: World) -> None:
    session = world.create(2000)
    assert found(world, f" {session.id} ") == [session.id]
    assert found(world, session.id, amount_from=2001) == []
    assert found(world, session.id, status=Status.OPEN, amount_to=2000) == [session.id]
    assert found(world, session.id, created_before=session.created_at) == []


def test_nothing_of_another_merchants_is_found(world: World) -> None:
    other = World(client=world.dynamo, seed=4, shop=f"{HARBOR}/shop-jpy")
    theirs = other.submit(other.create(2000, "jpy", metadata_json='{"order":"A-1"}'))
    for text in (theirs.id, "A-1", f"{CEDAR}/alice", ""):
        assert found(world, text) == []
    assert found(other, "A-1") == [theirs.id]


def test_amount_and_status_are_looked_for_a_bounded_number_of_pages_at_a_time(world: World) -> None:
    rare = world.create(999)
    for _ in range(250):
        world.clock.pass_time(1)
        world.create()
    world.forget()
    query = ListQuery(limit=10, amount_to=1000, rounds=2)
    page = search.find(world.services, world.key(), "", query)
    assert page.sessions == ()
    assert page.looked_to == rare.created_at + timedelta(seconds=51)
    assert world.aws_calls().count("query") == 2
    query = ListQuery(limit=10, amount_to=1000, rounds=2, cursor=page.next_cursor)
    last = search.find(world.services, world.key(), "", query)
    assert [session.id for session in last.sessions] == [rare.id]
    assert last.next_cursor is None


def test_creating_with_metadata_stays_one_call(world: World) -> None:
    key = world.key()
    world.forget()
    new = world.new(metadata_json='{"order":"A-1","cart":2}')
    sessions.create(world.services, key, new, "order-1")
    sessions.create(world.services, key, new, None)
    assert world.aws_calls() == ["transact_write_items"] * 2
    assert len(found(world, "A-1")) == 2
