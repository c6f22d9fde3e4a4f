"""design.md "Budgets": calls are counted, so that they hold on any machine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkout.adapters.dynamo.index_keys import DUE_SHARDS, URGENT_SHARDS
from checkout.domain.merchant.record import ApiKey
from checkout.domain.session.record import Session, Status
from checkout.flows.merchant import setup
from checkout.flows.schedule import sweep
from checkout.flows.session import close
from checkout.services import Services
from tests.support.flows import BASE_URL, CEDAR, World, client_id
from tests.support.keys import new_key_pair

READS_OF_KEYS = 10  # in docs/performance.md


def warm() -> World:
    """A process that has served one payment already, event and all."""
    world = World()
    assert world.pay(world.create()).status is Status.COMPLETED
    world.deliver_hinted()
    world.forget()
    return world


def test_without_a_key_file_our_calls_are_the_same_and_wallets_read_our_keys_ten_times() -> None:
    world = warm()
    setup.replace_key(world.services, setup.NewMerchant("", world.shop))
    assert world.pay(world.create()).status is Status.COMPLETED
    counted = []
    for _ in range(2):
        world.forget()
        world.fetched.clear()
        session = world.create()
        assert world.pay(session).status is Status.COMPLETED
        counted.append((len(world.aws_calls()), [method for method, _ in world.transport.sent]))
        document = f"{BASE_URL}/clients/{client_id(world.merchant.id)}"
        assert world.fetched.count(document) == 1  # for the name that the customer sees
        assert world.fetched.count(f"{document}/jwks.json") == READS_OF_KEYS
    to_key_file(world)
    assert world.pay(world.create()).status is Status.COMPLETED
    world.forget()
    world.fetched.clear()
    assert world.pay(world.create()).status is Status.COMPLETED
    assert {(len(world.aws_calls()), *(method for method, _ in world.transport.sent))} == {
        (calls, *methods) for calls, methods in counted
    }
    assert world.fetched == []


def to_key_file(world: World) -> None:
    pem, jwk = new_key_pair("file")
    world.network.register_key(world.shop, jwk)
    setup.replace_key(world.services, setup.NewMerchant("", world.shop, "file", pem))


def test_submitting_a_wallet_costs_four_wallet_calls_and_six_to_aws() -> None:
    world = warm()
    session = world.create()
    world.forget()
    world.submit(session)
    assert [(method, path(url)) for method, url in world.transport.sent] == [
        ("GET", "alice"),
        ("POST", "incoming-payments"),
        ("POST", "quotes"),
        ("POST", "438fa74a-fa7d-4317-9ced-dde32ece1787"),
    ]
    assert len(world.aws_calls()) <= 6


def test_the_way_from_callback_to_confirmation_costs_three_wallet_calls_and_seven_to_aws() -> None:
    world = warm()
    session, callback = world.awaiting()
    world.clock.pass_time(5)  # an approval takes longer than the wallet asks to wait
    world.forget()
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert [method for method, _ in world.transport.sent] == ["POST", "POST", "GET"]
    world.session(session.id)  # the confirmation page
    assert len(world.aws_calls()) + len(world.queue.messages) <= 7


@pytest.mark.parametrize("end", [close.cancel, close.expire])
def test_ending_a_session_costs_three_calls_one_message_and_no_wallet(
    end: Callable[[Services, ApiKey, str], Session],
) -> None:
    world = warm()
    session = world.submit(world.create())
    world.forget()
    end(world.services, world.key(), session.id)
    assert world.aws_calls() == ["get_item", "get_item", "update_item"]
    assert len(world.tasks.left) == 1
    assert world.transport.sent == []


def test_a_round_of_the_sweep_with_nothing_due_costs_one_query_a_shard() -> None:
    world = warm()
    world.create()
    world.forget()
    counts = sweep.run(world.services, until=world.clock.now() + timedelta(seconds=50))
    assert counts == sweep.Counts()
    # Of sessions, urgent and others, and of events.
    assert world.aws_calls() == ["query"] * (URGENT_SHARDS + 2 * DUE_SHARDS)
    assert world.transport.sent == []


def test_a_payment_in_doubt_costs_two_wallet_calls_and_two_to_aws_a_look() -> None:
    world = warm()
    session = world.submit(world.create(), f"{CEDAR}/never-credits")
    callback = world.approve(session)
    world.clock.pass_time(30)
    world.finish(session, callback)
    world.clock.pass_time(15)
    world.forget()
    sweep.run(world.services, until=world.clock.now() + timedelta(seconds=50))
    assert [method for method, _ in world.transport.sent] == ["GET", "GET"]
    looked = [call for call in world.aws_calls() if call != "query"]
    assert looked == ["get_item", "update_item"]


def test_the_data_key_is_derived_once_per_process(world: World) -> None:
    for _ in range(3):
        world.pay(world.create(), f"{CEDAR}/carol")
    assert world.keys_fetched == 1


def path(url: str) -> str:
    return url.rstrip("/").rsplit("/", 1)[-1]
