"""Compare the in-memory DynamoDB with the emulator: same requests, same answers, same tables.

The requests are the product's own, recorded while customers pay, fail and give up, and merchants
create, list and end sessions. They are sent in their order, and some of them again later, when
their conditions no longer hold.
"""

from __future__ import annotations

import copy
import json
import random
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from checkout.adapters.dynamo import DynamoCounters, DynamoSignIns
from checkout.adapters.dynamo.codec import inflated
from checkout.adapters.dynamo.people import DynamoAudit
from checkout.adapters.runtime import run_in_turn
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.parts import Lists
from checkout.domain.merchant.audit import Action, AuditEntry
from checkout.domain.merchant.people import SignIn
from checkout.domain.payment.events import Event
from checkout.domain.webhooks.event_types import OPTIONAL
from checkout.flows.merchant import setup
from checkout.flows.schedule import expiries, sweep
from checkout.flows.session import close, lists
from checkout.flows.session.create import create_session
from checkout.flows.webhooks import deliver, endpoints
from checkout.ports import CompletionPolicy, Receipt
from open_payments.errors import NotSent, OutcomeUnknown
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.basics import count_ends
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, lose_answers
from tests.support.stores import boto, with_tables

AGAIN: Final = 0.5  # how likely an earlier request is sent again after each
WRITES: Final = ("put_item", "update_item", "batch_write_item", "transact_write_items")
RECORDED: Final = (*WRITES, "get_item", "query", "batch_get_item")

Item = dict[str, Any]
Call = tuple[str, dict[str, Any]]


class Recorder(InMemoryDynamoDb):
    """Remembers every request as it was sent."""

    def __init__(self) -> None:
        super().__init__(table_definitions(PREFIX))
        self.requests: list[Call] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in RECORDED:
            return found

        def call(**request: Any) -> Any:
            self.requests.append((name, copy.deepcopy(request)))
            return found(**request)

        return call


def recorded() -> list[Call]:
    """Return the requests of a life with a bit of everything."""
    requests: list[Call] = []
    for policy in CompletionPolicy:
        client = Recorder()
        world = World(policy=policy, client=client)
        for wallet in ("alice", "late", "no-funds", "dies-after-create", "partial", "says-failed"):
            world.settle(world.pay(world.create(), f"{CEDAR}/{wallet}"), seconds=900)
        _trouble(world)
        for _ in range(3):
            world.clock.pass_time(3600)
            until = world.clock.now() + timedelta(minutes=1)
            sweep.run(world.services, until=until)
            world.create(expires_in_seconds=1800)
            expiries.run(world.services, until=until)
        _merchant(world)
        _webhooks(world)
        count_ends(world.services.daily_totals, world.clock)
        _dashboard(world)
        with suppress(setup.AlreadyMerchant):
            world.join(world.shop)
        requests += client.requests
    return requests


def _trouble(world: World) -> None:
    for part, error in (("/continue/", NotSent("")), ("/outgoing-payments", OutcomeUnknown(""))):
        session = world.submit(world.create())
        callback = world.approve(session)
        world.transport.after = lose_answers(part, error)
        world.settle(world.finish(session, callback).record)
    session = world.submit(world.create())
    callback = world.approve(session)
    world.transport.before = lambda request: (
        spend_limits(world) if "/outgoing-payments" in request.url else None
    )
    world.finish(session, callback)
    world.transport.before = lambda request: None
    for wallet in (f"{CEDAR}/unpeered", f"{CEDAR}/nobody"):
        with suppress(CheckoutError):
            world.submit(world.create(), wallet)
    session = world.submit(world.create())
    callback = world.approve(session)
    world.clock.pass_time(700)  # a new quote, and a token that is rotated
    world.settle(world.finish(session, callback).record)
    world.report(world.submit(world.create()))
    session = world.submit(world.submit(world.create()), f"{HARBOR}/bob")
    world.clock.pass_time(90_000)
    world.settle(session, seconds=1)
    _outside(world)


def _outside(world: World) -> None:
    """Money from outside before and after the end, and two partial payments that are decided."""
    paid = world.submit(world.create())
    world.pay_from_outside(paid, 2000)
    world.submit(paid)
    late = world.submit(world.create())
    close.cancel(world.services, world.key(), late.id)
    world.pay_from_outside(late, 700)
    for decide in (close.accept_as_paid, close.give_up):
        part = world.submit(world.create())
        world.pay_from_outside(part, 700)
        world.submit(part)
        with suppress(CheckoutError):
            close.give_up(world.services, world.key(), part.id)
        world.sweep(rounds=3)
        decide(world.services, world.key(), part.id)


def spend_limits(world: World) -> None:
    """Use up the approved limits, so that the wallet refuses to pay."""
    for grant in world.network.state.grants.values():
        for access in grant.access:
            if "limits" in access:
                access["limits"]["debitAmount"]["value"] = "1"


def _dashboard(world: World) -> None:
    client, now = world.dynamo, world.clock.now()
    sign_ins, log = DynamoSignIns(client, PREFIX), DynamoAudit(client, PREFIX)
    counters = DynamoCounters(client, PREFIX)
    new = SignIn(id="1", key_hash=world.key().hash, created_at=now, seen_at=now)
    sign_ins.add(new)
    sign_ins.seen(new, now)
    sign_ins.end(new.id)
    for _ in range(3):
        counters.attempt("here", limit=2, until=now)
    who = {"actor_id": "key_1", "actor_name": "first", "key_last_four": "1234"}
    entry = AuditEntry(id="1", merchant="m", at=now, action=Action.SIGNED_IN, **who)
    log.add(entry)
    log.page("m", limit=1, after=None)
    world.create(metadata_json='{"order":"A-1"}')
    page = lists.ListQuery(search="A-1")
    lists.list_page(world.services, world.key(), page)


def _merchant(world: World) -> None:
    services, key = world.services, world.key()
    for _ in range(2):
        create_session(services, key, world.new(), "order 1")
    for ending in (close.cancel, close.expire):
        ending(services, key, world.create().id)
    for session in (world.create(), world.submit(world.create())):
        close.cancel(services, key, session.id)
    page = lists.list_page(services, key, lists.ListQuery(limit=2))
    lists.list_page(services, key, lists.ListQuery(limit=2, cursor=page.next_cursor))
    now = world.clock.now()
    bounded = lists.ListQuery(created_from=now, created_before=now)
    lists.list_page(services, key, bounded)
    world.clock.pass_time(120)
    world.key()
    services.merchants.replace(world.merchant.changed(name="Shop 2"))
    setup.add_api_key(services, world.shop, name="Another key")


def _enqueue_due(world: World) -> None:
    events, clock = world.services.events, world.clock
    found = deliver.due_events(events, clock.now(), run_in_turn)
    until = clock.now() + timedelta(minutes=1)
    deliver.enqueue_due(events, world.queue, clock, run_in_turn, found, until=until)


def _webhooks(world: World) -> None:
    """An endpoint's life, and events that are delivered, fail, are given up and sent again."""
    hooks, merchant = world.endpoints, world.merchant.id
    world.listen(*OPTIONAL)
    for ending in (close.cancel, close.expire):
        ending(world.services, world.key(), world.create().id)
    world.clock.pass_time(600)
    _enqueue_due(world)
    world.deliver_hinted()
    world.receivers.answers = [Receipt(status=500), Receipt(status=200), Receipt(status=410)]
    for _ in range(3):
        endpoints.ping(hooks, merchant)
    _enqueue_due(world)
    world.deliver_hinted()
    world.clock.pass_time(1)
    world.deliver_hinted()
    endpoints.enable(hooks, merchant)
    endpoints.roll_secret(hooks, merchant, overlap=timedelta(hours=1))
    page = hooks.events.page(Lists(merchant), limit=1)
    hooks.events.page(Lists(merchant), limit=1, after=page.next_key)
    endpoints.resend_failed(hooks, merchant, since=world.clock.now() - timedelta(hours=1))
    world.deliver_hinted()
    endpoints.remove(hooks, merchant)


def parts(requests: list[Call]) -> Iterator[Call]:
    """Yield each request, or what it consists of where it is a transaction."""
    for name, request in requests:
        for part in request.get("TransactItems", [{name: request}]):
            yield from part.items()


def webhook_forms(requests: list[Call]) -> Counter[str]:
    """Count each kind of request to the table of events, and writes of a merchant's record."""
    found: Counter[str] = Counter()
    for kind, each in parts(requests):
        table = each.get("TableName") or next(iter(each.get("RequestItems", {"": None})))
        condition = each.get("ConditionExpression") or each.get("IndexName") or ""
        of_merchant = table.endswith("merchants") and "version" in condition
        if of_merchant or table.endswith("webhook_events"):
            found[f"{kind} {table.removeprefix(f'{PREFIX}-')} {condition}".strip()] += 1
    return found


def replay(requests: list[Call], rng: random.Random) -> Iterator[Call]:
    """Yield each request in its order, and in between earlier ones, which meet other rows now.

    A transaction that is sent again keeps its token half of the times.
    """
    recent: deque[Call] = deque(maxlen=30)
    for request in requests:
        yield request
        if request[0] != "get_item":
            recent.append(request)
        while recent and rng.random() < AGAIN:
            name, again = rng.choice(recent)
            if "ClientRequestToken" in again and rng.random() < 0.5:
                again = {**again, "ClientRequestToken": rng.randbytes(18).hex()}
            yield name, again


def asked(client: Any, name: str, request: dict[str, Any]) -> Any:
    """Return a client's answer without the transport's part."""
    try:
        answer = getattr(client, name)(**request)
    except ClientError as error:
        response = error.response
        code = response["Error"]["Code"]
        if code == "ValidationException":
            return code
        reasons = [
            {part: reason.get(part) for part in ("Code", "Item") if reason.get(part)}
            for reason in response.get("CancellationReasons", [])
        ]
        return code, response.get("Item"), reasons
    answer.pop("ResponseMetadata", None)
    if name == "batch_get_item":  # in no particular order
        for rows in answer["Responses"].values():
            rows.sort(key=as_text)
    return answer


def outcome(found: Any) -> str:
    if isinstance(found, dict):
        empty = found.get("Items") == [] or found.get("Responses") == {}
        return "answered with nothing" if empty else "answered"
    return str(found if isinstance(found, str) else found[0])


def as_set(items: list[Item]) -> list[str]:
    return sorted(as_text(item) for item in items)


def as_text(item: Item) -> str:
    return json.dumps(item, sort_keys=True, default=bytes.hex)


def _renamed(value: Any, prefix: str, other: str) -> Any:
    """Return the value with `other` for each `prefix` that a name or text in it begins with."""
    if isinstance(value, dict):
        pairs = value.items()
        return {_renamed(k, prefix, other): _renamed(v, prefix, other) for k, v in pairs}
    if isinstance(value, list):
        return [_renamed(each, prefix, other) for each in value]
    if isinstance(value, str) and value.startswith(prefix):
        return other + value.removeprefix(prefix)
    return value


class Renamed:
    """The emulator, where the tables of this test have another prefix."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            sent = _renamed(request, f"{PREFIX}-", f"{self._prefix}-")
            answer = getattr(self._client, name)(**sent)
            return _renamed(answer, f"{self._prefix}-", f"{PREFIX}-")

        return call

    def rows(self, table: str) -> list[Item]:
        name = table.replace(PREFIX, self._prefix, 1)
        pages = self._client.get_paginator("scan").paginate(TableName=name)
        return [item for page in pages for item in page["Items"]]


def test_the_collection_has_all_that_can_happen_to_a_session() -> None:
    happened = set()
    for _, write in parts(recorded()):
        payment = write.get("ExpressionAttributeValues", {}).get(":set_payment")
        written = json.loads(inflated(payment)) if payment else {"history": []}
        happened.add(written["history"][-1][1] if written["history"] else Event.CHECKED)
    erasing = {Event.ERASED}  # the operator's: tests/test_cli_erase.py does it on the emulator
    refunding = {
        Event.REFUND_REQUESTED,
        Event.PAID_ELSEWHERE,
        Event.REFUND_SETTLED,
    }  # tests/flows/refund
    annotating = {Event.METADATA_CHANGED}  # tests/flows/session/test_metadata.py
    asked = {Event.DETAILS_GIVEN}  # tests/flows/session/test_give_details.py
    stumbling = {Event.APPROVAL_KEPT}  # tests/flows/session/test_approve.py
    assert happened == set(Event) - erasing - refunding - annotating - asked - stumbling


def test_the_collection_has_every_request_that_webhooks_need() -> None:
    assert set(webhook_forms(recorded())) == {
        "Put webhook_events attribute_not_exists(#key)",  # with its session
        "put_item webhook_events attribute_not_exists(#key)",
        "get_item webhook_events",
        "put_item webhook_events #version = :read",
        "update_item webhook_events #due_at = :seen",
        "query webhook_events due",
        "query webhook_events by_merchant",
        "batch_get_item webhook_events",
        "put_item merchants #version = :read",
        "Put merchants #version = :read",  # with a further API key
    }


@pytest.mark.cloud
def test_the_same_requests_have_the_same_effect_and_answer(emulator: str) -> None:
    prefix = f"fake-{uuid.uuid4().hex[:8]}"
    real = Renamed(with_tables(boto(emulator), prefix), prefix)
    fake = InMemoryDynamoDb(table_definitions(PREFIX))
    outcomes: Counter[str] = Counter()
    for name, request in replay(recorded(), random.Random(7)):
        expected, found = asked(real, name, request), asked(fake, name, request)
        assert found == expected, (name, request)
        outcomes[f"{name} {outcome(found)}"] += 1
    for definition in table_definitions(PREFIX):
        table = definition["TableName"]
        assert as_set(fake.rows(table)) == as_set(real.rows(table))
    print(f"\n{outcomes.total()} operations, 0 differences")
    for line, count in sorted(outcomes.items()):
        print(f"  {count:5} {line}")
    for name in WRITES:  # both ways often enough to mean something
        answered = outcomes[f"{name} answered"]
        refused = sum(outcomes[line] for line in outcomes if line.startswith(name)) - answered
        conditional = name != "batch_write_item"
        assert min(answered, refused if conditional else answered) >= 50, outcomes
