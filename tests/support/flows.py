"""The whole product in one process: over an in-memory DynamoDB, with the sandbox's wallets.

No sockets, no threads, no sleeping: time is the test's. Every request to a wallet provider and
every call to AWS is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from checkout.adapters.details_keys import KmsDetailsKeys
from checkout.adapters.dynamo import CachedMerchants
from checkout.adapters.dynamo.codec import inflated
from checkout.adapters.dynamo.records import session_from
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.vault import AesVault, derive
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.ids import new_link_id
from checkout.domain.links import PaymentLink
from checkout.domain.merchant.people import Scope
from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.domain.payment.in_flight import Phase
from checkout.domain.session.new import NewSession
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.webhooks.record import Endpoint, WebhookEvent
from checkout.flows.merchant import api_keys, client_documents, setup
from checkout.flows.payment import sealed
from checkout.flows.payment.approval import CallbackResult
from checkout.flows.schedule import expiries, sweep
from checkout.flows.session import approve, prepare, reconcile
from checkout.flows.session.create import create_session
from checkout.flows.webhooks import endpoints
from checkout.flows.webhooks.deliver import MessageResult, deliver
from checkout.ports import Cleanup, CompletionPolicy, QueuedEvent, Receipt
from open_payments.errors import OpenPaymentsError, OutcomeUnknown
from open_payments.transports import Request, Response
from sandbox.cloud import table_definitions
from sandbox.wallets.defaults import default_network
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Rules
from sandbox.wallets.state import IncomingPayment
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.fakes.kms import KEY_ID as KMS_KEY
from tests.fakes.kms import HandKms
from tests.support import aws_calls, services
from tests.support.basics import HandClock, a_link, come_back, seeded
from tests.support.keys import KEY_ID, new_key_pair

CEDAR = "https://localhost:4101"  # EUR customers
HARBOR = "https://localhost:4201"  # USD merchants
BASE_URL = "http://localhost:4000"
PREFIX = "test"


@dataclass
class CountingTransport:
    """`open_payments.Transport` into the sandbox's network; remembers what was sent.

    `before` may raise, to lose a request; `after` may raise, to lose an answer. `rule` sees each
    request that reaches a wallet.
    """

    network: Network
    sent: list[tuple[str, str]] = field(default_factory=list)
    before: Callable[[Request], None] = lambda request: None
    after: Callable[[Request, Response], None] = lambda request, response: None
    rule: Callable[[Request], None] = lambda request: None

    def send(self, request: Request, *, timeout: float) -> Response:
        assert timeout > 0
        self.before(request)
        self.sent.append((request.method, request.url))
        self.rule(request)
        response = self.network.handle(request)
        self.after(request, response)
        return response

    def count(self, method: str, part: str) -> int:
        return sum(1 for sent, url in self.sent if sent == method and part in url)


class NotedHints:
    """`ports.EventQueue` that records the enqueued events."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.delays: list[int] = []

    def enqueue(self, messages: Sequence[QueuedEvent]) -> None:
        if messages:
            aws_calls.note("sqs", "send_message_batch", {"QueueUrl": "EventsQueue"})
        self.messages.extend(enqueue.event for enqueue in messages)
        self.delays.extend(enqueue.delay for enqueue in messages)


class HandReceivers:
    """`ports.Receivers`: records each delivery and answers as the test chooses, by default 200."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[Receipt] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Receipt:
        self.got.append((url, dict(headers), body))
        self.meanwhile()
        return self.answers.pop(0) if self.answers else Receipt(status=200, answer="thanks")


class AnyHost:
    """`ports.Hosts` that finds every host public, but those that a test names."""

    def __init__(self) -> None:
        self.private: set[str] = set()

    def permitted(self, host: str) -> bool:
        return host not in self.private


class NotedTasks:
    """`ports.TaskQueue` that records the tasks; `rule` is called with each task first."""

    def __init__(self, rule: Callable[[Cleanup], None] = lambda cleanup: None) -> None:
        self.left: list[Cleanup] = []
        self.rule = rule

    def clean_up(self, cleanup: Cleanup) -> None:
        self.rule(cleanup)
        aws_calls.note("sqs", "send_message", {"QueueUrl": "TasksQueue"})
        self.left.append(cleanup)


class NotedVault(AesVault):
    """A process may need the key for any opening or sealing, though here one has it from before."""

    def seal(self, plain: str, *, place: tuple[str, str, str]) -> str:
        aws_calls.note("secretsmanager", "get_secret_value", {})
        return super().seal(plain, place=place)

    def open(self, sealed: str, *, place: tuple[str, str, str]) -> str:
        aws_calls.note("secretsmanager", "get_secret_value", {})
        return super().open(sealed, place=place)


class World:
    """One merchant (Harbor Coffee, USD, unless another wallet is named) and everybody's wallets."""

    def __init__(
        self,
        *,
        shop: str = f"{HARBOR}/shop",
        policy: CompletionPolicy = CompletionPolicy.RECEIVED,
        client: Any = None,
        clock: HandClock | None = None,
        rules: Rules | None = None,
        seed: int = 3,
        key_file: bool = True,
    ) -> None:
        self.clock = clock or HandClock()
        self.network = default_network(
            self.clock.now, seeded(2), sleep=self.clock.sleep, rules=rules, fetch=self._fetch
        )
        self.fetched: list[str] = []
        self.client_host_down = False
        self.transport = CountingTransport(self.network, rule=self._refuse_to_cancel_a_grant_in_use)
        self.dynamo = client or InMemoryDynamoDb(table_definitions(PREFIX), now=self.clock.now)
        write = self.dynamo.transact_write_items
        self.dynamo.transact_write_items = self._with_charges_compared(write)  # type: ignore[method-assign]
        self.queue = NotedHints()
        self.tasks = NotedTasks(self._refuse_to_leave_a_grant_in_use)
        self.keys_fetched = 0
        self.encryption_key = "11" * 32
        random_bytes = seeded(seed)
        self.vault = NotedVault(
            self._encryption_key, random_bytes, clock=self.clock, derive=derived
        )
        self.kms = HandKms()
        self.receivers = HandReceivers()
        self.hosts = AnyHost()
        self.core = services.core(
            self.dynamo,
            PREFIX,
            clock=self.clock,
            random_bytes=random_bytes,
            queue=self.queue,
            tasks=self.tasks,
            base_url=BASE_URL,
            details_keys=KmsDetailsKeys(lambda: self.kms, KMS_KEY, self.vault.inner),
        )
        self.documents = CachedMerchants(self.dynamo, PREFIX, self.clock)  # of another process
        self.services = services.pay(
            replace(self.core, allow_loopback=True),
            self.dynamo,
            PREFIX,
            vault=self.vault,
            wallets=self._wallets(),
            completion_policy=policy,
        )
        self.endpoints = services.dashboard(
            self.core, self.dynamo, PREFIX, vault=self.vault, hosts=self.hosts
        )
        self.shop = shop
        done = self.join(shop) if key_file else self.join_without_key(shop)
        self.merchant: Merchant = done.merchant
        assert done.api_key is not None
        self.api_key = done.api_key

    def _wallets(self) -> SignedWallets:
        return SignedWallets(self.transport, self.vault, self.clock, allow_loopback=True)

    def restart(self) -> None:
        """Go on in a new process, which has kept no token."""
        self.services = replace(self.services, wallets=self._wallets())

    def join(self, shop: str) -> setup.SetUp:
        """Register a new key at the wallet, and set the merchant up with it."""
        pem, jwk = new_key_pair(KEY_ID)
        self.network.register_key(shop, jwk)
        new = setup.NewMerchant(
            name="Shop",
            wallet_address=shop,
            key_id=KEY_ID,
            private_key_text=pem,
            scopes=tuple(Scope),  # the browser that signs in with it is an owner's
        )
        return setup.set_up(self.services, new)

    def join_without_key(self, shop: str = f"{HARBOR}/shop") -> setup.SetUp:
        """Set the merchant up with our own client document."""
        return setup.set_up(self.services, setup.NewMerchant("Shop", shop))

    def _with_charges_compared(self, write: Callable[..., Any]) -> Callable[..., Any]:
        """Compare what each event of a charge shows as refunded with the session that is stored."""

        def written(**request: Any) -> Any:
            answer = write(**request)
            for row in (each["Put"]["Item"] for each in request["TransactItems"] if "Put" in each):
                if row.get("type") == {"S": "charge.refunded"}:
                    refund = json.loads(_plain(row["body"]))
                    charge = json.loads(_plain(row["stripe_body"]))["data"]["object"]
                    key = {"id": {"S": refund["session"]}}
                    found: Any = self.dynamo.row(f"{PREFIX}-checkout_sessions", key)
                    refunded = session_from(found).refunded
                    assert charge["amount_refunded"] == min(refunded, charge["amount"])
            return answer

        return written

    def _refuse_to_leave_a_grant_in_use(self, cleanup: Cleanup) -> None:
        """Fail if a grant is left to the clean-up before its record is written without it."""
        for row in self.dynamo.rows(f"{PREFIX}-checkout_sessions"):
            if row.get("id") == {"S": cleanup.session}:
                held = [_plain(row[name]) for name in ("grant", "handle") if name in row]
                assert cleanup.grant not in held, f"{cleanup.session} has it"

    def _refuse_to_cancel_a_grant_in_use(self, request: Request) -> None:
        """Fail if a grant is canceled, which cannot be undone, while a record still has it."""
        if request.method != "DELETE" or "/continue/" not in request.url:
            return
        for row in self.dynamo.rows(f"{PREFIX}-checkout_sessions"):
            row_id = row.get("id", {}).get("S", "")
            # An approval of a budget that the wallet has refused is of no use any more.
            for name in ("handle",) if row_id.startswith("man_") else ("grant", "handle"):
                if name in row:
                    place = ("checkout_sessions", row_id, "grant")
                    plain = AesVault.open(self.vault, _plain(row[name]), place=place)
                    held = sealed.grant_from(plain)
                    assert held.continuation.uri != request.url, f"{row_id} has it as its {name}"

    def _fetch(self, url: str) -> bytes:
        """Return what the host of the client documents serves to wallets."""
        self.fetched.append(url)
        client_id, _, rest = url.removeprefix(f"{BASE_URL}/clients/").partition("/")
        if self.client_host_down:
            raise OSError("nobody answers")
        try:
            if rest == "jwks.json":
                return json.dumps(client_documents.jwks(self.documents, client_id)).encode()
            found = client_documents.document(self.documents, BASE_URL, client_id)
        except CheckoutError:
            raise OSError("404") from None
        return json.dumps(found).encode()

    def key(self) -> ApiKey:
        return api_keys.authenticate(self.services, f"Bearer {self.api_key}", "POST")

    def new(self, amount: int = 2000, currency: str = "usd", **changes: Any) -> NewSession:
        """Return a merchant's request: one line item of `amount` minor units."""
        asked = NewSession(
            line_items=(LineItem(currency, "Tea", None, amount, 1),),
            success_url="https://shop.example/thanks?s={CHECKOUT_SESSION_ID}",
            cancel_url="https://shop.example/basket",
        )
        return replace(asked, **changes)

    def create(
        self,
        amount: int = 2000,
        currency: str = "usd",
        *,
        request_id: str | None = None,
        **changes: Any,
    ) -> Session:
        new = self.new(amount, currency, **changes)
        created = create_session(self.services, self.key(), new, None, request_id)
        return self.session(json.loads(created.body)["id"])

    def link(self, **fields: Any) -> PaymentLink:
        """Store a payment link of the merchant: Tea for 20.00 USD, without a stock."""
        link = a_link(
            id=new_link_id(self.services.random_bytes),
            merchant=self.merchant.id,
            created_at=self.clock.now(),
            **fields,
        )
        self.services.links.add(link)
        return link

    def left(self, link: PaymentLink) -> int | None:
        """Return how many items of the link's stock are neither held nor sold."""
        found = self.services.links.get(link.id)
        assert found is not None
        return found.left

    def session(self, session_id: str) -> Session:
        found = self.services.sessions.get(session_id)
        assert found is not None
        return found

    def submit(self, session: Session, wallet: str = f"{CEDAR}/alice") -> Session:
        return prepare.submit_wallet(self.services, session.id, wallet)

    def approve(self, session: Session) -> tuple[str, str]:
        """The customer approves at their wallet: the callback's interact_ref and hash."""
        assert session.interact_url is not None
        query = parse_qs(urlsplit(self.network.approve(session.interact_url)).query)
        return query["interact_ref"][0], query["hash"][0]

    def awaiting(self, wallet: str = "alice") -> tuple[Session, tuple[str, str]]:
        """Return a session that its customer has just approved, and the callback."""
        session = self.submit(self.create(), f"{CEDAR}/{wallet}")
        return session, self.approve(session)

    def proof(self, session: Session) -> str:
        """Return the proof of the browser that was sent to the wallet."""
        grant = sealed.pending_grant(self.services.vault, session)
        assert grant is not None
        return grant.proof(session.id, sealed.Proof.BROWSER)

    def report(self, session: Session, result: str = "grant_rejected") -> Session:
        """Let the customer come back from the wallet without an approval."""
        browser = self.proof(session)
        return approve.note_reported(self.services, session, result, browser=browser)

    def in_doubt(self, wallet: str = "alice") -> Session:
        """Return a session whose payment was sent, and whose answer was lost."""
        session, callback = self.awaiting(wallet)
        self.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"))
        doubtful = self.finish(session, callback).record
        assert doubtful.phase is Phase.PAYING
        return doubtful

    def unsent(self, amount: int = 2000) -> Session:
        """Return a payment in doubt: its request was lost, and so is each one from now on."""
        session = self.submit(self.create(amount))
        callback = self.approve(session)
        lost = raising(OutcomeUnknown("lost on the way"))
        self.transport.before = on("POST", "/outgoing-payments", lost)
        return self.finish(session, callback).record

    def partly_paid(self) -> Session:
        """Return a session of which half has arrived, and no more can: the merchant decides."""
        return self.settle(self.pay(self.create(), f"{CEDAR}/partial"), seconds=120)

    def raise_prices(self) -> None:
        """Make the customers' wallets quote twice the approved price."""
        for quote in self.network.state.quotes.values():
            quote.debit = replace(quote.debit, value=quote.debit.value * 2)

    def finish(self, session: Session, callback: tuple[str, str]) -> CallbackResult[Session]:
        return come_back(self.services, session.id, *callback)

    def pay(self, session: Session, wallet: str = f"{CEDAR}/alice") -> Session:
        """Make all steps from the wallet address to the page after the callback."""
        awaiting = self.submit(session, wallet)
        callback = self.approve(awaiting)
        return self.finish(awaiting, callback).record

    def listen(self, *events: str, url: str = "https://shop.example/hooks") -> str:
        """Set the merchant's webhook endpoint; returns its secret."""
        done = endpoints.configure(self.endpoints, self.merchant.id, url=url, events=events)
        assert done.secret is not None
        return done.secret

    def event(self, event_id: str | None = None) -> WebhookEvent:
        """The event of that id, or the only one."""
        if event_id is None:
            [row] = self.events()
            event_id = row["id"]
        found = self.services.events.get(event_id)
        assert found is not None
        return found

    def deliver_hinted(self) -> list[MessageResult]:
        """The sender gets every message that is in the queue now."""
        enqueued, self.queue.messages = self.queue.messages, []
        return [self.deliver(event_id) for event_id in enqueued]

    def deliver(self, event_id: str) -> MessageResult:
        """Have the sender make the attempt that the event is due."""
        return deliver(self.core, self.vault, self.receivers, event_id)

    def settle(self, session: Session, *, seconds: int = 1200, every: int = 1) -> Session:
        """Poll as the customer's open page for `seconds`, until the payment is decided."""
        for _ in range(0, seconds, every):
            session = reconcile.advance_pending(self.services, session.id)
            if not session.payment_in_flight:
                return session
            self.clock.pass_time(every)
        return session

    def abandoned(self, **changes: Any) -> Session:
        """Return a session whose customer gave a wallet that leads nowhere, and left."""
        session = self.create(**changes)
        with suppress(CheckoutError):
            self.submit(session, "https://nowhere.example/alice")
        left = self.session(session.id)
        assert (left.status, left.incoming_payment) == (Status.OPEN, None)
        return left

    def sweep(self, *, rounds: int = 1) -> None:
        """Let the schedule run once a minute."""
        for _ in range(rounds):
            self.clock.pass_time(60)
            until = self.clock.now() + timedelta(seconds=25)
            sweep.run(self.services, until=until)
            expiries.run(self.services, until=until)

    def pay_from_outside(self, session: Session, value: int, *, ended: bool = False) -> None:
        """Have a stranger pay the session's incoming payment, `ended` or not."""
        assert session.incoming_payment is not None
        incoming = self.network.state.incoming[session.incoming_payment.id.rsplit("/", 1)[-1]]
        assert ended or incoming.is_payable(self.clock.now())
        self.network._credit(incoming, value, self.clock.now())

    def incoming(self, session: Session) -> IncomingPayment:
        """Return the session's incoming payment as the merchant's wallet has it."""
        assert session.incoming_payment is not None
        found = self.network.incoming_payment(session.incoming_payment.id)
        assert found is not None
        return found

    def stored(self) -> Merchant:
        """Return the merchant as stored."""
        found = self.core.merchants.get(self.merchant.id)
        assert found is not None
        return found

    def endpoint(self) -> Endpoint:
        """Return the merchant's webhook endpoint as stored."""
        found = self.stored().endpoint
        assert found is not None
        return found

    def received(self) -> int:
        """Return the balance of the merchant's wallet, in its own units."""
        account = self.network.account(self.shop)
        assert account is not None
        return account.balance

    def aws_calls(self) -> list[str]:
        """The operations called since `forget`, in order."""
        return list(self.dynamo.calls.elements())

    def forget(self) -> None:
        """Start counting anew."""
        self.dynamo.calls.clear()
        self.transport.sent.clear()
        self.queue.messages.clear()
        self.queue.delays.clear()
        self.tasks.left.clear()

    def _encryption_key(self) -> str:
        self.keys_fetched += 1
        return self.encryption_key

    def events(self) -> list[dict[str, str]]:
        """The webhook events as stored."""
        rows = self.dynamo.rows(f"{PREFIX}-webhook_events")
        return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: dict[str, Any]) -> Any:
    return inflated(value) if "B" in value else next(iter(value.values()))


@cache
def derived(secret: str) -> bytes:
    """Deriving takes as long as the rest of a test; every world here has the same key."""
    return derive(secret)


def client_id(merchant_id: str) -> str:
    """Return the end of the URL of a merchant's client: the id in lower-case digits."""
    return merchant_id[4:].encode().hex()


def lose_answers(part: str, error: OpenPaymentsError, *, times: int = 1) -> Any:
    """An `after` hook: the answers to requests whose URL contains `part` get lost."""
    left = [times]

    def hook(request: Request, response: Response) -> None:
        if part in request.url and left[0]:
            left[0] -= 1
            raise error

    return hook


def on(method: str, part: str, act: Callable[[], object]) -> Any:
    """Return a `before` or `after` hook: `act` at each request with `part` in its URL; "": any."""

    def hook(request: Request, *response: Response) -> None:
        if method in (request.method, "") and part in request.url:
            act()

    return hook


def raising(error: BaseException) -> Callable[..., Any]:
    """Return a function that raises the error, whatever it is called with."""

    def act(*args: object, **options: object) -> Any:
        raise error

    return act


def interrupt(world: World, operation: str, act: Callable[[], object], *, times: int = 1) -> None:
    """Let `act` happen before each of the next `times` calls of the DynamoDB operation."""
    original, left = getattr(world.dynamo, operation), [times]

    def interrupted(**request: Any) -> Any:
        if left[0]:
            left[0] -= 1
            act()
        return original(**request)

    setattr(world.dynamo, operation, interrupted)


def answering(world: World, method: str, part: str, answer: Callable[[Request], Response]) -> None:
    """Answer requests of that method with `part` in the URL by `answer` in place of the wallets."""

    def handle(request: Request) -> Response:
        asked = request.method == method and part in request.url
        return answer(request) if asked else world.network.handle(request)

    world.transport.network = type("Scripted", (), {"handle": staticmethod(handle)})()
