"""The stage of the kill tests: an AWS emulator, wallets behind sockets, one merchant, a process.

The process's children are killed. This process itself is not, and calls the wallets directly.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from checkout.adapters.dynamo.codec import text
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.parts import Lists
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import EventStatus, WebhookSecret, secret_place
from checkout.flows.merchant import api_keys, client_documents, setup
from checkout.flows.session import close, prepare
from checkout.flows.session.create import create_session
from checkout.flows.session.lookup import load
from open_payments.transports import Request, Response
from sandbox import cloud
from sandbox.wallets import certificates
from sandbox.wallets.clients import Clients
from sandbox.wallets.defaults import default_network
from sandbox.wallets.network import Network
from sandbox.wallets.server import Sleeper, WalletServers
from tests.kill.child import new_session
from tests.kill.place import BASE_URL, Aws, HeldHints, Marked, SharedClock, product, sender, vault
from tests.support.basics import come_back
from tests.support.keys import KEY_ID, new_key_pair
from tests.support.partitions import few_partitions
from tests.support.processes import free_base
from tests.support.samples import an_endpoint

ROOT: Final = Path(__file__).parents[2]
# Ahead of the real time, by which the emulator deletes what has outlived its `ttl`.
BEGINNING: Final = datetime(2100, 1, 1, tzinfo=UTC)
PLENTY: Final = 10**12


@dataclass(frozen=True)
class Ended:
    """The calls of a child before it ended; `status` is what waitpid said."""

    calls: list[str]
    errors: list[str]
    status: int


@dataclass(frozen=True)
class Direct:
    """The wallets without sockets."""

    network: Network

    def send(self, request: Request, *, timeout: float) -> Response:
        return self.network.handle(request)


class Stage:
    def __init__(
        self,
        aws: Aws,
        clock: SharedClock,
        network: Network,
        child: subprocess.Popen[str],
        got: Path,
    ) -> None:
        self.aws = aws
        self.clock = clock
        self.network = network
        self._child = child
        self._hints = HeldHints(clock)
        marks = Marked(clock)
        self.services = replace(
            product(aws, vault(), clock, Direct(network), marks), queue=self._hints
        )
        self._got = got
        self._sender = sender(aws, vault(), clock, self._hints, got, marks)
        customers, shops = (each.origin for each in network.providers.values())
        self._customers = customers
        self._shop = f"{shops}/shop"
        network.clients = Clients(network.account, self._document)
        self.merchant, self.api_key = self._join()
        for account in network.state.accounts.values():
            if account.behaviour != "no-funds":
                account.balance = PLENTY

    def _document(self, url: str) -> bytes:
        """Return what the service shows of its clients to the wallets. Raises OSError."""
        client_id, _, rest = url.removeprefix(f"{BASE_URL}/clients/").partition("/")
        merchants = self.services.merchants
        try:
            if rest == "jwks.json":
                return json.dumps(client_documents.jwks(merchants, client_id)).encode()
            return json.dumps(client_documents.document(merchants, BASE_URL, client_id)).encode()
        except CheckoutError:
            raise OSError("404") from None

    def _join(self) -> tuple[Merchant, str]:
        pem, jwk = new_key_pair(KEY_ID)
        self.network.register_key(self._shop, jwk)
        new = setup.NewMerchant(
            name="Shop", wallet_address=self._shop, key_id=KEY_ID, private_key_text=pem
        )
        done = setup.set_up(self.services, new)
        assert done.api_key is not None
        secret = self.services.vault.seal("whsec_c2VjcmV0", place=secret_place(done.merchant.id))
        endpoint = an_endpoint(
            url="https://shop.example/hooks",
            secrets=(WebhookSecret(sealed=secret, created_at=self.clock.now()),),
        )
        merchant = done.merchant.changed(endpoint=endpoint)
        self.services.merchants.replace(merchant)
        return merchant, done.api_key

    # --- the process that is killed ---

    def run(
        self, flow: str, job: dict[str, str], *, die_at: int | None = None, after: bool = False
    ) -> Ended:
        """One flow in a process of its own, until it ends or is killed."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        order = {"flow": flow, "die_at": die_at, "after": after, **job}
        self._child.stdin.write(f"{json.dumps(order)}\n")
        self._child.stdin.flush()
        calls: list[str] = []
        errors: list[str] = []
        for line in self._child.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "end":
                return Ended(calls, errors, int(rest))
            {"call": calls, "error": errors}[word].append(rest)
        raise AssertionError("the process that forks has died")

    # --- the shop and the customer ---

    def wallet(self, name: str) -> str:
        return f"{self._customers}/{name}"

    def create(self, idempotency_key: str | None = None) -> Session:
        key = api_keys.authenticate(self.services, f"Bearer {self.api_key}", "POST")
        created = create_session(self.services, key, new_session(), idempotency_key)
        return self.session(json.loads(created.body)["id"])

    def session(self, session_id: str) -> Session:
        return load(self.services, session_id)

    def submit(self, session: Session, name: str) -> Session:
        return prepare.submit_wallet(self.services, session.id, self.wallet(name))

    def approve(self, session: Session) -> dict[str, str]:
        """The customer approves: what comes back with them."""
        assert session.interact_url is not None
        query = parse_qs(urlsplit(self.network.approve(session.interact_url)).query)
        return {"interact_ref": query["interact_ref"][0], "hash": query["hash"][0]}

    def finish(self, session: Session, callback: dict[str, str]) -> Session:
        reference, presented = callback["interact_ref"], callback["hash"]
        return come_back(self.services, session.id, reference, presented).record

    def pay_from_outside(self, session: Session, value: int) -> None:
        """Have a stranger pay the session's incoming payment."""
        assert session.incoming_payment is not None
        assert self.network.pay_from_outside(session.incoming_payment.id, value)

    # --- the merchant's server ---

    def cancel(self, session: Session) -> Session:
        key = api_keys.authenticate(self.services, f"Bearer {self.api_key}", "POST")
        return close.cancel(self.services, key, session.id)

    def send_hinted(self) -> None:
        """The sender gets every message that is in the queue, each in its time."""
        while (event_id := self._hints.take()) is not None:
            self._sender(event_id)

    def got(self, session: Session) -> int:
        """Return how often the merchant's server got the session's event."""
        return self._got.read_text().split().count(str(session.event)) if session.event else 0

    def delivered(self, session: Session) -> bool:
        """Whether nothing is owed to the merchant any more."""
        if session.event is None:
            return True
        event = self.services.events.get(session.event)
        return event is not None and event.status is EventStatus.DELIVERED

    # --- what there is to see ---

    def created_since(self, begun: datetime) -> int:
        page = self.services.sessions.page(
            Lists(self.merchant.id), limit=100, after=None, created_from=begun, created_before=None
        )
        return len(page.records)

    def received(self) -> int:
        """Return the balance of the merchant's wallet."""
        self.network.advance()
        return self.network.state.accounts[self._shop].balance

    def payments(self) -> int:
        """Return how many payments have moved money."""
        return sum(1 for payment in self.network.state.outgoing.values() if payment.parts_sent)

    def stored(self, session: Session) -> dict[str, Any]:
        """The session's item as it lies in the table."""
        table = f"{self.aws.prefix}-checkout_sessions"
        answer = self.aws.dynamodb.get_item(
            TableName=table, Key={"id": text(session.id)}, ConsistentRead=True
        )
        item: dict[str, Any] = answer["Item"]
        return item

    def events(self, session: Session) -> list[str]:
        """The types of the session's events."""
        pages = self.aws.dynamodb.get_paginator("scan").paginate(
            TableName=f"{self.aws.prefix}-webhook_events",
            FilterExpression="#session = :session",
            ExpressionAttributeNames={"#session": "session"},
            ExpressionAttributeValues={":session": text(session.id)},
        )
        return [item["type"]["S"] for page in pages for item in page["Items"]]


@contextmanager
def staged(endpoint: str, folder: Path) -> Iterator[Stage]:
    prefix = f"kill-{uuid.uuid4().hex[:8]}"
    stack = cloud.create_stack(endpoint, prefix)
    clock = SharedClock(folder / "clock", BEGINNING)
    network = default_network(
        clock.now, random.Random(4).randbytes, port_base=free_base(), sleep=clock.sleep
    )
    pems = certificates.ensure(folder / "pems", datetime.now(UTC))
    servers = WalletServers(network, pems.server_context(), Sleeper())
    servers.start()
    place = {
        "endpoint": endpoint,
        "prefix": prefix,
        "events_queue_url": stack.events_queue_url,
        "tasks_queue_url": stack.tasks_queue_url,
        "clock": str(folder / "clock"),
        "ca_file": str(pems.authority),
        "got": str(folder / "got"),
    }
    (folder / "got").touch()
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.kill.child", json.dumps(place)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"layers/common{os.pathsep}functions"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with servers_of(servers), child, few_partitions():
        yield Stage(Aws.of(place), clock, network, child, folder / "got")
        assert child.stdin is not None
        child.stdin.close()


@contextmanager
def servers_of(servers: WalletServers) -> Iterator[None]:
    try:
        yield
    finally:
        servers.close()
