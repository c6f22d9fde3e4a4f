"""Test the search: a merchant's text, and the sessions found."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.adapters.dynamo.records import search_items, session_from, session_item
from checkout.domain.ground.addresses import Address
from checkout.domain.ground.errors import Unavailable, WalletInvalid
from checkout.domain.reports.search_terms import METADATA_FOUND_MAX
from checkout.domain.session.collect import Detail
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import LineItem, Session, Status
from checkout.flows import reports
from checkout.flows.links import purchase
from checkout.flows.session import details
from checkout.flows.session.create import create_session
from checkout.flows.session.lists import ListQuery
from checkout.ports import SecretUnreadable
from tests.support.basics import seeded
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, raising
from tests.support.rows import row_text


def found(world: World, text: str, **bounds: object) -> list[str]:
    query = ListQuery(limit=100, **bounds)  # type: ignore[arg-type]
    listed = reports.find_transactions(world.services, world.key(), text, query)
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
    assert found(world, f"{CEDAR}/alice") == found(world, "alice") == []


def test_a_value_of_the_metadata_finds_its_sessions_newest_first(world: World) -> None:
    first = with_metadata(world, order="A-1", customer="Zoë Ω")
    second = with_metadata(world, order="A-2", customer="zoë ω")
    number = with_metadata(world, order=1234)
    assert found(world, "a-1") == [first.id]
    assert found(world, "ZOË Ω") == []  # nobody has given a wallet yet
    for session in (first, second):
        world.submit(session)
    assert found(world, "ZOË Ω") == [second.id, first.id]
    assert found(world, "1234") == [number.id]
    assert found(world, "A-") == [second.id, first.id]
    assert found(world, "Zo") == []


def test_a_wallet_that_cannot_be_used_makes_its_cart_found_as_well(world: World) -> None:
    session = with_metadata(world, order="A-1", customer="Zoë")
    with pytest.raises(WalletInvalid):
        world.submit(session, f"{CEDAR}/nobody")
    assert found(world, "Zoë") == found(world, "A-1") == [session.id]


def test_truth_values_nothing_and_what_comes_after_the_first_ten_are_not_found() -> None:
    world = World()
    with_metadata(world, yes=True, none=None, empty=" ")
    many = {f"key{number}": f"value{number}" for number in range(METADATA_FOUND_MAX + 1)}
    session = world.submit(with_metadata(world, **many))
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
        page = reports.find_transactions(world.services, world.key(), f"{CEDAR}/alice", query)
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


def test_amount_and_status_are_looked_for_a_bounded_number_of_pages_at_a_time(world: World) -> None:
    rare = world.create(999)
    for _ in range(250):
        world.clock.pass_time(1)
        world.create()
    world.forget()
    query = ListQuery(limit=10, amount_to=1000, rounds=2)
    page = reports.find_transactions(world.services, world.key(), "", query)
    assert page.sessions == ()
    assert page.looked_to == rare.created_at + timedelta(seconds=51)
    assert world.aws_calls().count("query") == 2
    query = ListQuery(limit=10, amount_to=1000, rounds=2, cursor=page.next_cursor)
    last = reports.find_transactions(world.services, world.key(), "", query)
    assert [session.id for session in last.sessions] == [rare.id]
    assert last.next_cursor is None


def test_creating_with_metadata_costs_one_more_call(world: World) -> None:
    key = world.key()
    world.forget()
    new = world.new(metadata_json='{"order":"A-1","cart":2}')
    create_session(world.services, key, new, "order-1")
    create_session(world.services, key, new, None)
    assert world.dynamo.calls == {"put_item": 3, "batch_write_item": 2}
    assert len(found(world, "A-1")) == 2


ORDER = "A-2026-770173"
REQUEST = "req_5dTMd0wvG8PZx5nNq2LrYb"


def held(world: World, session: Session) -> dict[str, str]:
    """Return what a support person may hold of a payment."""
    assert session.customer is not None
    assert session.incoming_payment is not None
    assert session.quote is not None
    assert session.outgoing_payment is not None
    assert session.event is not None
    wallet = session.customer.id.removeprefix("https://")
    return {
        "the session's id": session.id,
        "its page's address": f"https://pay.example/pay/{session.id}/success?lang=de",
        "the order number": ORDER,
        "a part of it": "770173",
        "the beginning of it": "a-2026-7701",
        "the wallet": f"${wallet}",
        "the wallet without $": f"https://{wallet}/",
        "the wallet's name": wallet.rsplit("/", 1)[-1],
        "the incoming payment": session.incoming_payment.id,
        "the id alone": session.incoming_payment.id.rsplit("/", 1)[-1],
        "the outgoing payment": session.outgoing_payment,
        "the quote": session.quote.id,
        "the event": session.event,
        "the request that created it": REQUEST,
        "a word of an item": "Lapsang",
    }


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.endurance)])
def test_each_thing_that_a_support_person_holds_finds_the_payment_among_many(
    world: World, count: int
) -> None:
    """In one step, with at most 8 calls to DynamoDB, each a read of a key or a bounded query."""
    for number in range(20):
        session = world.create(client_reference_id=f"B-{number}", metadata_json='{"channel":"web"}')
        world.submit(session, f"{CEDAR}/carol")
    multiply(world, count)
    item = LineItem("usd", "Lapsang Souchong", None, 2000, 1)
    created = world.create(client_reference_id=ORDER, line_items=(item,), request_id=REQUEST)
    paid = world.pay(created, f"{CEDAR}/alice")
    assert paid.status is Status.COMPLETED
    things = held(world, paid)
    assert len(things) == 15
    for name, text in things.items():
        world.forget()
        assert (name, found(world, text)) == (name, [paid.id])
        assert len(world.aws_calls()) <= 8, (name, world.aws_calls())
        assert "scan" not in world.aws_calls()
    other = World(client=world.dynamo, seed=4, shop=f"{HARBOR}/shop-jpy")
    assert [found(other, text) for text in things.values()] == [[]] * len(things)


def multiply(world: World, count: int) -> None:
    """Store copies of all sessions, with all that they are found by."""
    table = world.dynamo._tables[f"{PREFIX}-checkout_sessions"]
    rows = world.dynamo.rows(f"{PREFIX}-checkout_sessions")
    samples = [session_from(row) for row in rows if "version" in row]
    for number in range(count):
        sample = samples[number % len(samples)]
        copy = replace(
            sample,
            id=f"cs_{number:022d}",
            created_at=sample.created_at + timedelta(milliseconds=number),
            client_reference_id=f"C-2025-{number:06d}",
        )
        for row in (session_item(copy), *search_items(copy)):
            table.store(table.key(row), row)


def test_what_support_cannot_search_by_finds_nothing(world: World) -> None:
    paid = world.pay(world.create(client_reference_id=ORDER, request_id=REQUEST))
    for text in ("req_0123456789abcdefABCDEF", "2026-000", "ea", paid.id[:12]):
        assert found(world, text) == []


def bought_by(world: World, number: int, **given: Any) -> Session:
    """Begin a purchase at a payment link that asks for these details."""
    return bought_with(world, number, CustomerDetails(**given))


def bought_with(world: World, number: int, given: CustomerDetails) -> Session:
    world.clock.pass_time(1)
    link = world.link(asked=(Detail.EMAIL,))
    begun = purchase.begin(world.services, link, f"{number:022d}", "203.0.113.7", given)
    return world.session(begun.session_id)


def test_an_e_mail_address_finds_who_gave_it_once_they_can_pay(world: World) -> None:
    first = bought_by(world, 1, email="Ana@Shop.Example")
    second = bought_by(world, 2, email="ana@shop.example")
    other = bought_by(world, 3, email="bob@shop.example")
    assert found(world, "ana@shop.example") == []  # no wallet was given yet
    for session in (first, second, other):
        world.submit(session)
    assert found(world, " ANA@shop.example ") == [second.id, first.id]
    assert found(world, "bob@shop.example", status=Status.AWAITING_APPROVAL) == [other.id]
    assert found(world, "ana@shop") == []
    stored = "".join(map(row_text, world.dynamo.rows(f"{PREFIX}-checkout_sessions")))
    assert "ana@shop.example" not in stored.casefold()


def test_an_e_mail_address_that_the_shop_gave_is_found_as_one_that_was_typed(world: World) -> None:
    session = world.create(customer_email="Ana@Shop.Example")
    assert found(world, "ana@shop.example") == []  # no wallet was given yet
    world.submit(session)
    assert found(world, "ana@shop.example") == [session.id]


def test_an_e_mail_address_in_the_metadata_is_found_as_before(world: World) -> None:
    session = with_metadata(world, order="A-1", buyer="ana@shop.example")
    world.submit(session)
    assert found(world, "ana@shop.example") == [session.id]


def at(postal_code: str | None, country: str = "DE") -> Address:
    return Address(country, "Zoë Quinn", "Am Weg 1", None, None, "Berlin", None, postal_code)


def test_what_a_caller_says_of_themselves_finds_the_payment(world: World) -> None:
    zoe = bought_by(world, 1, name="Zoë Quinn", shipping=at("SE-114 55"), billing=at("10969"))
    other = bought_by(world, 2, name="Zoë Quinnly", shipping=at("10115"))
    without = bought_by(world, 3, shipping=at(None))
    assert found(world, "Zoë Quinn") == []  # no wallet was given yet
    for session in (zoe, other, without):
        world.submit(session)
    for said in ("Zoë Quinn", " zoe  QUINN ", "Zoe\u0308 Quinn", "zoë quinn."):
        assert found(world, said) == [without.id, other.id, zoe.id], said  # the addressee's name
    assert found(world, "Zoë Quinnly") == [other.id]
    for said in ("SE-114 55", "se11455", "10969"):
        assert found(world, said) == [zoe.id], said
    assert found(world, "Zoë") == found(world, "109") == found(world, "–") == []
    for session in (zoe, other):
        assert found(world, session.metadata["order_number"]) == [session.id]
    stored = "".join(map(row_text, world.dynamo.rows(f"{PREFIX}-checkout_sessions"))).casefold()
    hidden = ("zoe quinn", "zoë quinn", "zoequinn", "se-114 55")
    assert not [each for each in hidden if each in stored]


def test_a_postal_code_that_is_an_order_number_too_finds_both(world: World) -> None:
    bought = world.submit(bought_by(world, 1, shipping=at("10969")))
    ordered = with_metadata(world, order="10969-A")
    assert found(world, "10969") == [ordered.id, bought.id]
    seen: list[str] = []
    query = ListQuery(limit=1)
    for _ in range(3):
        again = world.submit(bought_by(world, 1 + len(seen), shipping=at("10115")))
        seen.append(again.id)
    while True:
        page = reports.find_transactions(world.services, world.key(), "10115", query)
        assert [each.id for each in page.sessions] == [seen.pop()]
        if page.next_cursor is None:
            break
        query = replace(query, cursor=page.next_cursor)
    assert seen == []


def test_an_order_is_found_while_the_key_for_details_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = with_metadata(world, order="10969")
    bought = world.submit(bought_by(world, 1, name="Zoë Quinn", shipping=at("10969")))
    monkeypatch.setattr(details, "_key", raising(Unavailable("The key cannot be read.")))
    assert found(world, "10969") == [ordered.id]
    with pytest.raises(Unavailable):  # otherwise it would seem that there is no such customer
        found(world, "Zoë Quinn")
    monkeypatch.setattr(details, "_key", raising(SecretUnreadable("damaged")))
    assert found(world, "10969") == [ordered.id]
    assert found(world, "Zoë Quinn") == []
    assert found(world, "alice") == [bought.id]


def test_a_sum_finds_who_was_to_pay_it_paid_it_or_has_paid_so_much(world: World) -> None:
    paid = world.pay(world.create(1700))
    assert paid.quote is not None
    debit = paid.quote.debit.decimal()  # EUR
    world.create(1600)
    for said in (
        "17.00",
        "$17.00",
        "17,00 USD",
        "17 usd",
        "$17",
        "\u2066$17.00\u2069",
        "US$ 17.00",
    ):
        assert found(world, said) == [paid.id], said
    assert found(world, f"€{debit}") == [paid.id]
    for said in ("17", "0017", "17.00 %", "Tea 17.00.3", "17.01"):
        assert found(world, said) == [], said
    part = world.settle(world.pay(world.create(2000), f"{CEDAR}/partial"))
    assert found(world, "10.00") == [part.id]
    numbered = with_metadata(world, order="17.00")
    assert found(world, "17.00") == [numbered.id], "a text that is found comes first"


def test_a_sum_is_looked_for_page_by_page(world: World) -> None:
    wanted = [world.create(1700).id]
    for number in range(120):
        world.clock.pass_time(1)
        made = world.create(1700 if number == 60 else 1600)
        wanted += [made.id] if number == 60 else []
    query, seen = ListQuery(limit=10, rounds=1), []
    while True:
        page = reports.find_transactions(world.services, world.key(), "17.00", query)
        seen += [each.id for each in page.sessions]
        if page.next_cursor is None:
            break
        query = replace(query, cursor=page.next_cursor)
    assert seen == wanted[::-1]


@pytest.mark.parametrize(
    "typed", ["#1001", "# 1001", "\u20661001\u2069", "\u200b1001\ufeff", "10\u00ad01", "\u200d1001"]
)
def test_an_order_number_is_found_as_it_is_said_and_pasted(world: World, typed: str) -> None:
    session = with_metadata(world, order="1001")
    assert found(world, typed) == [session.id]


def test_a_value_that_begins_with_a_number_sign_or_has_a_joiner_is_found_too(world: World) -> None:
    values = {"order": "#A-1001", "color": "#f0f", "name": "نمی\u200cدانم"}
    tagged = world.submit(with_metadata(world, **values))
    for typed in ("#A-1001", "#a", "1001", "#1001", "#f0f", "نمی\u200cدانم"):
        assert found(world, typed) == [tagged.id], typed
    assert found(world, "#") == []


def test_the_hash_of_an_address_is_another_one_for_each_merchant(world: World) -> None:
    merchant, vault = world.stored(), world.services.vault
    other = replace(merchant, id="mer_2", **details.new_keys(vault, None, seeded(4), "mer_2"))
    ours, theirs = (details.mark(vault, each, "a@b.example") for each in (merchant, other))
    assert ours != theirs
    assert details.spoken_mark(vault, merchant, "Ana") != details.spoken_mark(vault, other, "Ana")
    assert details.spoken_mark(vault, merchant, "a@b.example") != ours
