"""The wallets of a test stage as one function, over a table that many processes share."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from open_payments.errors import NotSent, OutcomeUnknown
from open_payments.transports import Request, Response
from sandbox.wallets import function, kept, pages
from sandbox.wallets.defaults import default_network
from sandbox.wallets.function import TestWallets as Wallets
from sandbox.wallets.function import request_of
from sandbox.wallets.kept import Conflict, Kept, Table
from sandbox.wallets.network import Network
from tests.support.wallet_client import Clock, callback, compact, content, jwk, signed

BASE = "https://pay.example/test-wallets"
SHOP = f"{BASE}/harbor/shop"
ALICE = f"{BASE}/cedar/alice"
CLIENT = "https://pay.example/clients/6d"
DOCUMENT = {
    "id": CLIENT,
    "publicName": "Tea & Co",
    "assetCode": "USD",
    "assetScale": 2,
    "authServer": f"{BASE}/harbor-auth/x",
    "resourceServer": f"{BASE}/harbor/x",
}


class ConditionalCheckFailedException(Exception):
    """The name by which boto3's clients raise it."""


class Rows:
    """A table in memory. `before` is called before each write."""

    def __init__(self) -> None:
        self.item: dict[str, Any] | None = None
        self.writes = 0
        self.before: Callable[[], None] = lambda: None

    def get_item(self, **request: Any) -> Any:
        assert request["ConsistentRead"]
        return {} if self.item is None else {"Item": self.item}

    def put_item(self, **request: Any) -> Any:
        before, self.before = self.before, lambda: None
        before()
        expected = request.get("ExpressionAttributeValues", {}).get(":version")
        if (self.item or {}).get("version") != expected:
            raise ConditionalCheckFailedException
        self.item = request["Item"]
        self.writes += 1


class Web:
    """The public internet: clients' documents by URL, an error to raise for some."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {CLIENT: DOCUMENT, f"{CLIENT}/jwks.json": {"keys": [jwk()]}}
        self.asked: list[str] = []

    def send(self, request: Request, *, timeout: float) -> Response:
        assert (request.method, timeout) == ("GET", 5.0)
        self.asked.append(request.url)
        found = self.found.get(request.url)
        if isinstance(found, Exception):
            raise found
        return Response(404 if found is None else 200, {}, json.dumps(found).encode())


class World:
    """Several processes of the function over one table."""

    def __init__(self) -> None:
        self.rows, self.web, self.clock = Rows(), Web(), Clock()
        self.slept: list[float] = []
        self.random_bytes = random.Random(60).randbytes
        self.processes = [self.process() for _ in range(3)]
        self.turn = 0

    def process(self) -> Wallets:
        return Wallets(
            BASE,
            Kept(Table(self.rows, "wallets")),
            self.web,
            now=self.clock,
            random_bytes=self.random_bytes,
            sleep=self.slept.append,
        )

    def send(self, request: Request) -> Response:
        """Send to another process than the last one."""
        self.turn += 1
        return self.processes[self.turn % 3].answer(request)

    def call(self, method: str, url: str, body: Any = None, token: str | None = None) -> Any:
        raw = None if body is None else compact(body)
        answer = self.send(signed(method, url, raw, token))
        return answer.status, content(answer)

    def wallet(self, url: str) -> dict[str, Any]:
        return dict(content(self.send(Request("GET", url, {"accept": "application/json"}))))

    def grant(self, wallet: str, kind: str, *actions: str, **more: Any) -> tuple[int, Any]:
        access = {"type": kind, "actions": list(actions), **more.pop("access", {})}
        body = {"access_token": {"access": [access]}, "client": CLIENT, **more}
        found: tuple[int, Any] = self.call("POST", self.wallet(wallet)["authServer"], body)
        return found

    def token(self, wallet: str, kind: str, *actions: str) -> str:
        status, answer = self.grant(wallet, kind, *actions)
        assert status == 200, answer
        return str(answer["access_token"]["value"])

    def incoming(self, shop: str = SHOP) -> tuple[str, Any]:
        token = self.token(shop, "incoming-payment", "create", "read", "complete")
        amount = {"value": "2000", "assetCode": "USD", "assetScale": 2}
        url = f"{self.wallet(shop)['resourceServer']}/incoming-payments"
        body = {"walletAddress": shop, "incomingAmount": amount}
        status, payment = self.call("POST", url, body, token)
        assert status == 201, payment
        return token, payment

    def quote(self, customer: str, receiver: str) -> Any:
        token = self.token(customer, "quote", "create", "read")
        url = f"{self.wallet(customer)['resourceServer']}/quotes"
        body = {"walletAddress": customer, "receiver": receiver, "method": "ilp"}
        status, quote = self.call("POST", url, body, token)
        assert status == 201, quote
        return quote

    def pay(self, customer: str, shop: str = SHOP) -> tuple[int, str, Any]:
        """Pay the shop; return the status of the payment, and what the shop reads."""
        shops, incoming = self.incoming(shop)
        quote = self.quote(customer, incoming["id"])
        limits = {"receiver": incoming["id"], "debitAmount": quote["debitAmount"]}
        finish = {"method": "redirect", "uri": "https://pay.example/back", "nonce": "n"}
        status, pending = self.grant(
            customer,
            "outgoing-payment",
            *("create", "read"),
            access={"identifier": customer, "limits": limits},
            interact={"start": ["redirect"], "finish": finish},
        )
        assert status == 200, pending
        ref = callback(self.consent(pending["interact"]["redirect"]))["interact_ref"]
        self.clock.pass_(5)
        onward = pending["continue"]
        status, granted = self.call(
            "POST", onward["uri"], {"interact_ref": ref}, onward["access_token"]["value"]
        )
        assert status == 200, granted
        url = f"{self.wallet(customer)['resourceServer']}/outgoing-payments"
        body = {"walletAddress": customer, "quoteId": quote["id"]}
        raw = compact(body)
        answer = self.send(signed("POST", url, raw, granted["access_token"]["value"]))
        _, received = self.call("GET", incoming["id"], token=shops)
        return answer.status, received["receivedAmount"]["value"], received

    def consent(self, page: str) -> str:
        """Approve in the browser; return where the wallet sends the customer."""
        shown = self.send(Request("GET", page, {}))
        assert (shown.status, b"Tea &amp; Co" in shown.body) == (200, True)
        url = page.partition("?")[0]
        assert f'action="{urlsplit(url).path}"'.encode() in shown.body
        form = {"origin": "https://pay.example"}
        chosen = self.send(Request("POST", url, form, b"choice=approve"))
        assert chosen.status == 303
        finished = self.send(Request("GET", f"https://pay.example{chosen.headers['location']}", {}))
        assert finished.status == 302
        return finished.headers["location"]


@pytest.fixture
def world() -> World:
    return World()


def test_a_customer_pays_a_shop_whose_client_is_at_any_url_through_several_processes(
    world: World,
) -> None:
    assert world.pay(ALICE)[:2] == (201, "2000")
    assert f"{CLIENT}/jwks.json" in world.web.asked
    assert all(
        str(world.wallet(ALICE)[name]).startswith(f"{BASE}/cedar")
        for name in ("id", "authServer", "resourceServer")
    )


def test_a_wallet_that_dies_has_taken_the_payment_and_answers_502(world: World) -> None:
    status, received, _ = world.pay(f"{BASE}/cedar/dies-after-create")
    assert (status, received) == (502, "2000")


def test_a_slow_wallet_is_waited_for_after_its_state_is_written(world: World) -> None:
    world.rows.before = lambda: pytest.fail("a document is read without a write")
    world.wallet(ALICE)
    assert max(world.slept) == 0
    world.wallet(f"{BASE}/cedar/slow")
    assert max(world.slept) == 3


@pytest.mark.parametrize(
    ("url", "document"),
    [
        (f"{CLIENT}/jwks.json", None),  # key gone
        (f"{CLIENT}/jwks.json", {"keys": []}),  # another key
        (f"{CLIENT}/jwks.json", NotSent("down")),
        (f"{CLIENT}/jwks.json", OutcomeUnknown("hangs")),
        (f"{CLIENT}/jwks.json", {"keys": ["x" * 70_000]}),  # endless
    ],
)
def test_a_client_whose_key_cannot_be_read_is_refused_as_at_providers(
    world: World, url: str, document: Any
) -> None:
    world.web.found[url] = document
    status, answer = world.grant(SHOP, "incoming-payment", "create")
    assert (status, answer["error"]["code"]) == (400, "invalid_client")


def test_a_request_that_meets_another_ones_write_is_handled_again_and_fetches_nothing_twice(
    world: World,
) -> None:
    _, first = world.incoming()
    world.web.asked.clear()
    url = f"{world.wallet(SHOP)['resourceServer']}/incoming-payments"
    token = world.token(SHOP, "incoming-payment", "create", "read")
    other = signed("POST", url, compact({"walletAddress": SHOP}), token)
    before = world.rows.writes
    world.web.asked.clear()
    world.rows.before = lambda: assert_created(world.process().answer(other))
    assert_created(world.send(other))
    assert world.rows.writes == before + 2
    assert world.web.asked == [f"{CLIENT}/jwks.json"] * 2, "once for each of the two requests"
    _, kept_one = world.call("GET", first["id"], token=world.incoming()[0])
    assert kept_one["id"] == first["id"]


def assert_created(answer: Response) -> None:
    assert answer.status == 201


def test_a_request_that_meets_a_write_each_time_is_a_503_and_has_no_effect(world: World) -> None:
    class Full(Kept):
        def save(self, network: Network, version: int) -> None:
            raise Conflict

    busy = Wallets(BASE, Full(Table(world.rows, "wallets")), world.web, sleep=world.slept.append)
    answer = busy.answer(Request("GET", ALICE, {"accept": "application/json"}))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert world.rows.writes == 0


def test_a_large_request_is_refused_before_anything_is_read(world: World) -> None:
    assert world.send(Request("POST", f"{BASE}/cedar-auth/x", {}, b"x" * 70_000)).status == 413


def test_people_open_a_wallet_of_their_own_and_a_shop_is_paid_there(world: World) -> None:
    page = world.send(Request("GET", BASE, {}))
    assert b"/test-wallets/accounts" in page.body
    form = b"name=Rosa%27s+Books&currency=USD"
    opened = world.send(Request("POST", f"{BASE}/accounts", {}, form))
    assert opened.status == 303
    shown = world.send(Request("GET", f"https://pay.example{opened.headers['location']}", {}))
    assert b"Rosa&#39;s Books" in shown.body
    assert b'href="/test-wallets/keys?' in shown.body
    address = callback(opened.headers["location"])["address"]
    assert world.wallet(address)["publicName"] == "Rosa's Books"
    _, payment = world.incoming(address)
    assert payment["walletAddress"] == address
    assert b"Rosa" not in world.send(Request("GET", f"{BASE}/", {})).body


@pytest.mark.parametrize("form", [b"", b"name=&currency=USD", b"name=A&currency=XXX"])
def test_a_wallet_without_a_name_or_a_currency_is_not_opened(world: World, form: bytes) -> None:
    assert world.send(Request("POST", f"{BASE}/accounts", {}, form)).status == 400


def test_a_form_of_another_site_opens_no_wallet(world: World) -> None:
    form = Request("POST", f"{BASE}/accounts", {"origin": "https://evil.example"}, b"name=A")
    assert world.send(form).status == 403


def opened(world: World) -> str:
    """Open a wallet and return its address, "" if there is no room."""
    answer = world.send(Request("POST", f"{BASE}/accounts", {}, b"name=A&currency=USD"))
    return callback(answer.headers["location"])["address"] if answer.status == 303 else ""


def sold(world: World, *wallets: str) -> None:
    network = loaded(world)
    for each in wallets:
        network.state.accounts[each].book(world.clock(), "Sold", 1)
        world.clock.pass_(1)
    Kept(Table(world.rows, "wallets")).save(network, int(world.rows.item["version"]["N"]))  # type: ignore[index]


def test_the_wallet_that_was_used_longest_ago_makes_room_for_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But none of the last hour: nobody takes a wallet from a shop that sells."""
    monkeypatch.setattr(pages, "OPENED_MAX", 2)
    assert OPENED_MAX == 300
    first, second, third = (opened(world) for _ in range(3))
    assert [loaded(world).account(each) is None for each in (first, second, third)] == [
        *(True, False, False)
    ]
    sold(world, third, second)
    assert opened(world) == ""
    world.clock.pass_(timedelta(hours=1).total_seconds())
    assert opened(world)
    assert loaded(world).account(third) is None
    assert loaded(world).account(second) is not None


def test_a_wallet_that_made_room_is_paid_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Money that arrived at a wallet that is no more would fail every later request."""
    monkeypatch.setattr(pages, "OPENED_MAX", 1)
    shop = opened(world)
    _, receiver = world.incoming(shop)
    world.pay(f"{BASE}/cedar/late", shop)
    assert opened(world) == "", "money is on its way to it"
    world.clock.pass_(timedelta(hours=2).total_seconds())
    assert opened(world)
    quote = {"walletAddress": ALICE, "receiver": receiver["id"], "method": "ilp"}
    token = world.token(ALICE, "quote", "create", "read")
    status, answer = world.call(
        "POST", f"{world.wallet(ALICE)['resourceServer']}/quotes", quote, token
    )
    assert (status, answer["error"]["description"]) == (400, "invalid receiver")


def test_wallets_with_many_keys_keep_the_record_small(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(address: str, key: dict[str, str]) -> bytes:
        form = urlencode({"jwk": json.dumps(key)}).encode()
        url = f"{BASE}/keys?{urlencode({'address': address})}"
        return world.send(Request("POST", url, {}, form)).body

    monkeypatch.setattr(kept, "MOST", 6_000)
    long = jwk() | {"kid": "x" * 60_000}
    assert b"more than 256 characters" in given(opened(world), long)
    wallets = [opened(world) for _ in range(20)]
    for address in wallets:
        for _ in range(5):
            given(address, jwk() | {"kid": world.random_bytes(60).hex()})
    assert len(world.rows.item["data"]["B"]) <= 6_000  # type: ignore[index]
    found = [loaded(world).account(each) is not None for each in wallets]
    assert found == sorted(found), "the oldest have made room"
    assert found[-1]


OPENED_MAX = pages.OPENED_MAX


def loaded(world: World) -> Network:
    network = default_network(
        world.clock,
        world.random_bytes,
        origin={
            4101: f"{BASE}/cedar",
            4102: f"{BASE}/cedar-auth",
            4201: f"{BASE}/harbor",
            4202: f"{BASE}/harbor-auth",
        }.__getitem__,
        pages_origin=BASE,
    )
    Kept(Table(world.rows, "wallets")).load(network)
    return network


def test_a_day_later_what_has_run_out_is_forgotten_and_payments_stay(world: World) -> None:
    world.pay(ALICE)
    assert loaded(world).state.quotes
    world.clock.pass_(timedelta(days=2).total_seconds())
    world.incoming()
    state = loaded(world).state
    assert (len(state.quotes), len(state.outgoing)) == (0, 1)
    assert len(state.incoming) == 2
    assert len(state.grants) == 2, "the approval's, whose token may be rotated, and the new one"


def test_a_record_stays_below_what_the_table_takes_and_the_newest_payments_stay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST", 9_000)
    newest = [world.incoming()[1]["id"] for _ in range(60)][-1]
    assert len(world.rows.item["data"]["B"]) <= 9_000  # type: ignore[index]
    state = loaded(world).state
    assert newest.rsplit("/", 1)[-1] in state.incoming
    assert len(state.incoming) < 60
    assert {each.grant_id for each in state.tokens.values()} <= state.grants.keys()


def test_money_on_its_way_is_never_forgotten(world: World) -> None:
    world.pay(f"{BASE}/cedar/late")
    network = loaded(world)
    on_its_way = [each for each in network.state.outgoing.values() if each.settles_at is not None]
    assert on_its_way
    for _ in range(5):
        kept.forget_the_oldest(network.state)
    world.clock.pass_(timedelta(hours=1).total_seconds())
    network.advance()
    [incoming] = network.state.incoming.values()
    assert incoming.received.value == 2000


def test_an_event_of_the_api_is_the_request_that_was_signed() -> None:
    event = {
        "rawPath": "/test-wallets/harbor/x/incoming-payments",
        "rawQueryString": "wallet-address=https%3A%2F%2Fa.example",
        "requestContext": {"http": {"method": "GET"}},
        "headers": {"host": "inside.example"},
    }
    found = request_of(event, BASE)
    query = "wallet-address=https%3A%2F%2Fa.example"
    assert found.url == f"{BASE}/harbor/x/incoming-payments?{query}"
    assert found.body is None
    body = {"body": base64.b64encode(b"\xff{}").decode(), "isBase64Encoded": True}
    assert request_of(event | body, BASE).body == b"\xff{}"
    assert request_of(event | {"body": "ä"}, BASE).body == "ä".encode()


def test_the_handler_answers_in_base64_with_what_the_environment_names(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_WALLETS", BASE)
    monkeypatch.setenv("WALLETS_TABLE", "wallets")
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "us-east-1")
    function._wallets.cache_clear()
    assert isinstance(function._wallets(), Wallets)
    monkeypatch.setattr(function, "_wallets", world.process)
    event = {"rawPath": "/test-wallets/cedar/alice", "requestContext": {"http": {"method": "GET"}}}
    answer = function.handler(event, None)
    assert answer["statusCode"] == 200
    assert answer["isBase64Encoded"]
    assert json.loads(base64.b64decode(answer["body"]))["id"] == ALICE


def test_an_error_of_the_table_is_no_conflict(world: World) -> None:
    def failing() -> None:
        raise ValueError("the table is away")

    world.rows.before = failing
    with pytest.raises(ValueError, match="away"):
        world.incoming()
