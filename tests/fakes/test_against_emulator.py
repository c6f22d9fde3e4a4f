"""The in-memory DynamoDB and the emulator, asked the same: every expression that the product uses,
in thousands of random operations over a few keys, must have the same effect and the same answer.

The expressions are not copied here: they are collected from what the product sends while customers
pay, fail, give up, and merchants create, list and end sessions.
"""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from checkout.adapters.dynamo import DynamoAudit, DynamoSignIns
from checkout.domain.audit import Action, AuditEntry
from checkout.domain.errors import CheckoutError
from checkout.domain.sign_in import SignIn
from checkout.domain.transitions import Event
from checkout.domain.webhooks import OPTIONAL
from checkout.flows.merchant import setup
from checkout.flows.payment import sessions
from checkout.flows.schedule import sweep, tally
from checkout.flows.webhooks import deliver, endpoints
from checkout.open_payments.errors import NotSent, OutcomeUnknown
from checkout.ports.wallets import CompletionPolicy
from checkout.ports.webhooks import Receipt
from sandbox.cloud import table_definitions
from tests.adapters.stores import boto, with_tables
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.world import CEDAR, HARBOR, PREFIX, World, lose_answers

OPERATIONS: Final = 5_000
KEYS: Final = 4  # per table: few, so that conditions meet something
WRITES: Final = ("put_item", "update_item", "transact_write_items")
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
            self.requests.append((name, json.loads(json.dumps(request))))
            return found(**request)

        return call


def recorded() -> list[Call]:
    """What the product asks in a life with a bit of everything."""
    requests: list[Call] = []
    for policy in CompletionPolicy:
        client = Recorder()
        world = World(policy=policy, client=client)
        for wallet in ("alice", "late", "no-funds", "dies-after-create", "partial", "says-failed"):
            world.settle(world.pay(world.create(), f"{CEDAR}/{wallet}"), seconds=900)
        _trouble(world)
        for _ in range(3):
            world.clock.pass_time(3600)
            sweep.run(world.services, until=world.clock.now() + timedelta(minutes=1), limit=5)
        _merchant(world)
        _webhooks(world)
        tally.run(world.services.tallies, world.clock, until=world.clock.now() + timedelta(1))
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
        world.settle(world.finish(session, callback).session)
    session = world.submit(world.create())
    callback = world.approve(session)
    world.transport.before = lambda request: spend_limits(world)
    world.finish(session, callback)
    world.transport.before = lambda request: None
    for wallet in (f"{CEDAR}/unpeered", f"{CEDAR}/nobody"):
        with suppress(CheckoutError):
            world.submit(world.create(), wallet)
    session = world.submit(world.create())
    callback = world.approve(session)
    world.clock.pass_time(700)  # a new quote, and a token that is rotated
    world.settle(world.finish(session, callback).session)
    session = world.submit(world.submit(world.create()), f"{HARBOR}/bob")
    world.clock.pass_time(90_000)
    world.settle(session, seconds=1)


def spend_limits(world: World) -> None:
    """Whatever was approved is used up, so that the wallet refuses to pay."""
    for grant in world.network.state.grants.values():
        for access in grant.access:
            if "limits" in access:
                access["limits"]["debitAmount"]["value"] = "1"


def _dashboard(world: World) -> None:
    client, now = world.dynamo, world.clock.now()
    sign_ins, log = DynamoSignIns(client, PREFIX), DynamoAudit(client, PREFIX)
    new = SignIn(id="1", key_hash=world.key().hash, created_at=now, seen_at=now)
    sign_ins.add(new)
    sign_ins.seen(new, now)
    sign_ins.end(new.id)
    for _ in range(3):
        sign_ins.attempt("here", limit=2, until=now)
    who = {"key_id": "key_1", "key_name": "first", "key_last_four": "1234"}
    entry = AuditEntry(id="1", merchant="m", at=now, action=Action.SIGNED_IN, **who)
    log.add(entry)
    log.page("m", limit=1, after=None)
    world.create(metadata_json='{"order":"A-1"}')
    page = sessions.ListQuery(search="A-1")
    sessions.list_page(world.services, world.key(), page)


def _merchant(world: World) -> None:
    services, key = world.services, world.key()
    for _ in range(2):
        sessions.create(services, key, world.new(), "order 1")
    for ending in (sessions.cancel, sessions.expire):
        ending(services, key, world.create().id)
    for session in (world.create(), world.submit(world.create())):
        sessions.cancel(services, key, session.id)
    page = sessions.list_page(services, key, sessions.ListQuery(limit=2))
    sessions.list_page(services, key, sessions.ListQuery(limit=2, cursor=page.next_cursor))
    now = world.clock.now()
    bounded = sessions.ListQuery(created_from=now, created_before=now)
    sessions.list_page(services, key, bounded)
    world.clock.pass_time(120)
    world.key()
    services.merchants.replace(world.merchant.changed(name="Shop 2"))
    setup.add_api_key(services, world.shop, name="Another key")


def _webhooks(world: World) -> None:
    """An endpoint's life, and events that are delivered, fail, are given up and sent again."""
    hooks, merchant = world.endpoints, world.merchant.id
    world.listen(*OPTIONAL)
    for ending in (sessions.cancel, sessions.expire):
        ending(world.services, world.key(), world.create().id)
    world.clock.pass_time(600)
    deliver.enqueue_due(hooks.events, world.queue, now=world.clock.now(), limit=100)
    world.deliver_hinted()
    world.receivers.answers = [Receipt(status=500), Receipt(status=200), Receipt(status=410)]
    for _ in range(3):
        endpoints.ping(hooks, merchant)
    deliver.enqueue_due(hooks.events, world.queue, now=world.clock.now(), limit=100)
    world.deliver_hinted()
    world.clock.pass_time(1)
    world.deliver_hinted()
    endpoints.enable(hooks, merchant)
    endpoints.roll_secret(hooks, merchant, overlap=timedelta(hours=1))
    page = hooks.events.page(merchant, limit=1)
    hooks.events.page(merchant, limit=1, after=page.next_key)
    endpoints.resend_failed(hooks, merchant, since=world.clock.now() - timedelta(hours=1))
    world.deliver_hinted()
    endpoints.remove(hooks, merchant)


def webhook_forms(requests: list[Call]) -> Counter[str]:
    """How often each kind of request met the table of events or wrote a merchant's record."""
    found: Counter[str] = Counter()
    for name, request in requests:
        parts = request.get("TransactItems", [{name: request}])
        for part in parts:
            [(kind, each)] = part.items()
            table = each.get("TableName") or next(iter(each.get("RequestItems", {"": None})))
            condition = each.get("ConditionExpression") or each.get("IndexName") or ""
            if table.endswith("webhook_events") or (
                table.endswith("merchants") and "version" in condition
            ):
                found[f"{kind} {table.removeprefix(f'{PREFIX}-')} {condition}".strip()] += 1
    return found


def expressions(name: str, request: dict[str, Any]) -> tuple[str, ...]:
    """What makes two requests alike: operation and expressions, whatever the values."""
    if name == "transact_write_items":
        parts = [expressions(*next(iter(each.items()))) for each in request["TransactItems"]]
        return (name, *(text for part in parts for text in part))
    texts = [request.get(f"{kind}Expression", "") for kind in ("Update", "Condition")]
    table = request.get("TableName", "").removeprefix(f"{PREFIX}-")
    return (name, table, *texts, request.get("KeyConditionExpression", ""))


class Mixer:
    """Makes new requests of recorded ones: another key, and values that others had in that place,
    so that conditions hold and fail.
    """

    def __init__(self, requests: list[Call], rng: random.Random, fake: InMemoryDynamoDb) -> None:
        self._rng = rng
        self._fake = fake
        self._items: list[Call] = []
        self._forms: defaultdict[tuple[str, ...], list[Call]] = defaultdict(list)
        self._values: defaultdict[str, list[Any]] = defaultdict(list)
        self._tokens: list[dict[str, Any]] = []
        for name, request in requests:
            if name == "transact_write_items":
                puts = [each["Put"] for each in request["TransactItems"] if "Put" in each]
                self._items += [
                    ("put_item", {n: put[n] for n in ("TableName", "Item")}) for put in puts
                ]
            self._forms[expressions(name, request)].append((name, request))
            self._remember(request)
        self._names = sorted(self._forms)
        for values in self._values.values():  # few, so that they meet again
            kept = rng.sample(values, min(len(values), 6))
            values[:] = [*kept, kept[0]]

    @property
    def forms(self) -> int:
        return len(self._names)

    def _remember(self, request: Any) -> None:
        """By the attribute where a value belongs: an item's own, or the one it is set to."""
        if isinstance(request, list):
            for each in request:
                self._remember(each)
        if not isinstance(request, dict):
            return
        for name, value in request.items():
            if name in ("Item", "ExpressionAttributeValues", "Key"):
                for attribute, typed in value.items():
                    self._values[_home(attribute)].append(typed)
            else:
                self._remember(value)

    def calls(self, count: int) -> Iterator[Call]:
        for number in range(count):
            if number and self._tokens and self._rng.random() < 0.03:
                yield "transact_write_items", self._rng.choice(self._tokens)
                continue
            if self._rng.random() < 0.1:  # no request of the product, but other rows to meet
                name, request = self._rng.choice(self._items)
                yield name, self._mixed(request)
                continue
            # Each form in its turn, then any.
            form = self._names[number] if number < len(self._names) else self._any()
            name, request = self._rng.choice(self._forms[form])
            request = self._mixed(json.loads(json.dumps(request)))
            if name == "transact_write_items":
                request["ClientRequestToken"] = self._rng.randbytes(18).hex()
                self._tokens.append(request)
                self._tokens[:-20] = []
            yield name, request

    def _any(self) -> tuple[str, ...]:
        return self._rng.choice(self._names)

    def _mixed(self, request: Any) -> Any:
        if isinstance(request, list):
            return [self._mixed(each) for each in request]
        if not isinstance(request, dict):
            return request
        result: dict[str, Any] = {}
        for name, value in request.items():
            if name == "TableName":
                result[name] = value
            elif name == "RequestItems":
                result[name] = {table: self._batch(wanted) for table, wanted in value.items()}
            elif name == "Key":
                result[name] = {each: self._key() for each in value}
            elif name == "Item":
                result[name] = self._item(value)
            elif name == "ExpressionAttributeValues":
                result[name] = {each: self._value(each, typed) for each, typed in value.items()}
            else:
                result[name] = self._mixed(value)
        if "UpdateExpression" in result and self._rng.random() < 0.7:
            self._align(result)
        return result

    def _align(self, request: dict[str, Any]) -> None:
        """So that the condition holds, if anything can make it."""
        found = self._fake.get_item(TableName=request["TableName"], Key=request["Key"])
        row, values = found.get("Item", {}), request.get("ExpressionAttributeValues", {})
        for name, attribute in (
            ("from", "status"),
            ("read", "version"),
            ("paying", "phase"),
            ("seen", "due_at"),
        ):
            if f":{name}" in values and attribute in row:
                values[f":{name}"] = row[attribute]
        if ":attempt" in values and "attempt" in row:
            values[":attempt"] = row["attempt"]["M"]["id"]

    def _batch(self, wanted: dict[str, Any]) -> dict[str, Any]:
        [name] = wanted["Keys"][0]
        numbers = self._rng.sample(range(KEYS), self._rng.randint(1, KEYS))
        return {**wanted, "Keys": [{name: _key(number)} for number in numbers]}

    def _item(self, item: Item) -> Item:
        result = {each: self._value(each, typed) for each, typed in item.items()}
        for name in ("id", "key", "hash"):
            if name in result:
                new = self._rng.random() < 0.5
                result[name] = _key(self._rng.randrange(10**9)) if new else self._key()
        return result

    def _key(self) -> dict[str, str]:
        return _key(self._rng.randrange(KEYS))

    def _value(self, name: str, typed: Any) -> Any:
        known = [each for each in self._values[_home(name)] if set(each) == set(typed)]
        return self._rng.choice(known) if known and self._rng.random() < 0.6 else typed


def _key(number: int) -> dict[str, str]:
    return {"S": f"key-{number}"}


# The values of conditions are of the attribute that they are compared with.
_HOMES: Final = {
    "from": "status",
    "read": "version",
    "shard": "due_shard",
    "seen": "due_at",
    "until": "due_at",
    "low": "created_key",
    "high": "created_key",
}


def _home(name: str) -> str:
    plain = name.removeprefix(":").removeprefix("set_")
    return _HOMES.get(plain, plain)


def asked(client: Any, name: str, request: dict[str, Any]) -> Any:
    """What a client answers, without what only concerns the transport."""
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
            rows.sort(key=lambda row: json.dumps(row, sort_keys=True))
    return answer


def outcome(found: Any) -> str:
    if isinstance(found, dict):
        empty = found.get("Items") == [] or found.get("Responses") == {}
        return "answered with nothing" if empty else "answered"
    return str(found if isinstance(found, str) else found[0])


def as_set(items: list[Item]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


class Renamed:
    """The emulator, where the tables of this test have another prefix."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._client, name)

        def call(**request: Any) -> Any:
            return self._named(operation(**self._named(request, PREFIX, self._prefix)))

        return call

    def _named(self, value: Any, old: str = "", new: str = "") -> Any:
        """Table names, where they stand as a value or as a key."""
        old, new = old or self._prefix, new or PREFIX
        if isinstance(value, list):
            return [self._named(each, old, new) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            self._renamed(name, old, new): self._renamed(each, old, new)
            if name == "TableName"
            else self._named(each, old, new)
            for name, each in value.items()
        }

    def _renamed(self, name: str, old: str, new: str) -> str:
        return f"{new}-{name[len(old) + 1 :]}" if name.startswith(f"{old}-") else name

    def rows(self, table: str) -> list[Item]:
        found: list[Item] = []
        pages = self._client.get_paginator("scan")
        for page in pages.paginate(TableName=self._renamed(table, PREFIX, self._prefix)):
            found += page["Items"]
        return found


def test_the_collection_has_all_that_can_happen_to_a_session() -> None:
    happened = set()
    for name, request in recorded():
        parts = request["TransactItems"] if name == "transact_write_items" else [{name: request}]
        for part in parts:
            [write] = part.values()
            history = write.get("ExpressionAttributeValues", {}).get(":set_history")
            happened.add(json.loads(history["S"])[-1][1] if history else Event.CHECKED)
    assert happened == set(Event)


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
        "ConditionCheck merchants #version = :read",  # with a further API key
    }


@pytest.mark.cloud
def test_five_thousand_random_operations_have_the_same_effect_and_answer(emulator: str) -> None:
    prefix = f"fake-{uuid.uuid4().hex[:8]}"
    real = Renamed(with_tables(boto(emulator), prefix), prefix)
    fake = InMemoryDynamoDb(table_definitions(PREFIX))
    mixer = Mixer(recorded(), random.Random(7), fake)
    told: Counter[str] = Counter()
    for name, request in mixer.calls(OPERATIONS):
        expected, found = asked(real, name, request), asked(fake, name, request)
        assert found == expected, (name, request)
        told[f"{name} {outcome(found)}"] += 1
    for definition in table_definitions(PREFIX):
        table = definition["TableName"]
        assert as_set(fake.rows(table)) == as_set(real.rows(table))
    print(f"\n{mixer.forms} forms of request, {OPERATIONS} operations, 0 differences")
    for line, count in sorted(told.items()):
        print(f"  {count:5} {line}")
    for name in WRITES:  # both ways often enough to mean something
        answered = told[f"{name} answered"]
        refused = sum(told[line] for line in told if line.startswith(name)) - answered
        assert min(answered, refused) >= 50, told
