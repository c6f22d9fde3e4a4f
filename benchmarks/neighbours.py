"""`python -m benchmarks.neighbours`: how slow wallets, a flood or wrong keys affect others.

It runs the real handlers behind the local gateway, with Lambda's concurrency, over an in-memory
DynamoDB and the sandbox's wallets, and prints three tables. Compare figures of one run only, on an
idle machine. Clients have loopback addresses of their own, so it needs Linux.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.client import HTTPConnection, HTTPException
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import pytest

from checkout import wiring
from checkout.adapters.limits import Allowances
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.runtime import SystemClock
from checkout.adapters.vault import AesVault
from checkout.domain.ground.limits import Rule
from checkout.domain.session.record import Session
from checkout.flows.merchant import setup
from checkout.services import Services
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from sandbox.cloud import table_definitions
from sandbox.gateway import GatewayServer, Throttle, functions
from sandbox.wallets.defaults import default_network
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Rules
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support import services
from tests.support.flows import CEDAR, HARBOR, PREFIX, AnyHost, NotedHints, NotedTasks, derived
from tests.support.keys import KEY_ID, new_key_pair
from tests.support.merchant_api import a_body
from tests.support.processes import free_base

STRANGER: Final = "https://localhost:4666"  # a wallet provider that hangs
SLOW, CALLS = 40, 60
RATE, SECONDS = 200, 12  # of the hostile client
WRONG: Final = 1_000
ACCOUNT: Final = 24  # executions at once, of a small account
FLOODED: Final = 50
_HANGS: Final = json.dumps({"wallet_address": f"{STRANGER}/mallory"})
_CALLBACK: Final = "/grant/callback?interact_ref=a&hash=b"
_TOKEN: Final = re.compile(r'name="form_token" value="([^"]+)"')


class Wallets:
    """`open_payments.Transport`: the sandbox's wallets, and the stranger's, which hang."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._one_at_a_time = threading.Lock()

    def send(self, request: Request, *, timeout: float) -> Response:
        if not request.url.startswith(STRANGER):
            with self._one_at_a_time:
                return self._network.handle(request)
        if request.method == "GET":
            document = {
                "id": request.url,
                "assetCode": "EUR",
                "assetScale": 2,
                "authServer": f"{STRANGER}/auth",
                "resourceServer": STRANGER,
            }
            return Response(200, {}, json.dumps(document).encode())
        time.sleep(timeout)
        raise OutcomeUnknown("no answer in time")


class PerEnvironment(threading.local):
    """Rate limits with a memory for each thread, which stands for a Lambda environment."""

    def __init__(self, make: Callable[[], Allowances]) -> None:
        self._own = make()

    def take(self, rule: Rule, client: str) -> float:
        return self._own.take(rule, client)

    def take_shared(self, client: str) -> float:
        return self._own.take_shared(client)

    def know(self, provider: str) -> None:
        self._own.know(provider)

    def knows(self, provider: str) -> bool:
        return self._own.knows(provider)


@dataclass
class Place:
    """A running gateway. `client` returns an HTTP client with a network address of its own."""

    port: int
    api_key: str
    network: Network
    reads: Callable[[], int]
    stored: Callable[[str], Session | None]
    _opened: list[httpx2.Client] = field(default_factory=list)

    def client(self, address: str) -> httpx2.Client:
        made = client_at(address, self.port)
        self._opened.append(made)
        return made

    def create(self, client: httpx2.Client) -> httpx2.Response:
        return client.post("/api/checkout/sessions", json=a_body(), headers=self.authorization)

    def sessions(self, count: int) -> list[str]:
        client = self.client("127.0.0.1")
        return [str(self.create(client).raise_for_status().json()["id"]) for _ in range(count)]

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"}

    def close(self) -> None:
        for client in self._opened:
            client.close()


def client_at(address: str, port: int) -> httpx2.Client:
    transport = httpx2.HTTPTransport(local_address=address)
    return httpx2.Client(base_url=f"http://127.0.0.1:{port}", transport=transport, timeout=40)


@contextmanager
def place(
    *,
    account: int,
    reserved: Mapping[str, int] | None = None,
    throttles: Mapping[str, Throttle] | None = None,
    limit: int = 30,
) -> Iterator[Place]:
    """Serve the product: `limit` is CLIENT_LIMIT."""
    clock, port = SystemClock(), free_base()
    dynamo = InMemoryDynamoDb(table_definitions(PREFIX))
    network = default_network(clock.now, os.urandom, sleep=time.sleep, rules=Rules(wait=0))
    vault = AesVault(lambda: "11" * 32, os.urandom, derive=derived)
    base = services.core(
        dynamo,
        PREFIX,
        clock=clock,
        random_bytes=os.urandom,
        queue=NotedHints(),
        tasks=NotedTasks(),
        base_url=f"http://127.0.0.1:{port}",
        allow_loopback=True,
    )
    limits: Any = PerEnvironment(lambda: services.limits(base.clock, dynamo, PREFIX, limit))
    pay = services.pay(
        base,
        dynamo,
        PREFIX,
        vault=vault,
        wallets=SignedWallets(Wallets(network), vault, clock, allow_loopback=True),
    )
    pay = replace(pay, limits=limits)
    dashboard = services.dashboard(base, dynamo, PREFIX, vault=vault, hosts=AnyHost())
    dashboard = replace(dashboard, limits=limits)
    pem, jwk = new_key_pair(KEY_ID)
    network.register_key(f"{HARBOR}/shop", jwk)
    done = setup.set_up(pay, setup.NewMerchant("Shop", f"{HARBOR}/shop", KEY_ID, pem))
    assert done.api_key is not None
    with pytest.MonkeyPatch.context() as wired:
        bags: dict[str, Services] = {"api": base, "pay": pay, "dashboard": dashboard}
        for name, bag in bags.items():
            wired.setattr(wiring, f"{name}_services", lambda bag=bag: bag)
        wired.setenv("POWERTOOLS_METRICS_DISABLED", "true")
        gateway = GatewayServer(
            port, functions(), account=account, reserved=reserved, throttles=throttles
        )
        gateway.start()
        reads = partial(dynamo.calls.__getitem__, "get_item")
        found = Place(port, done.api_key, network, reads, base.sessions.get)
        try:
            yield found
        finally:
            found.close()
            gateway.close()


@dataclass(frozen=True)
class Timed:
    """The statuses and the median milliseconds of some calls."""

    statuses: Counter[int]
    milliseconds: float

    @property
    def failed(self) -> int:
        return sum(count for status, count in self.statuses.items() if status >= 400)


def timed(calls: int, call: Callable[[], httpx2.Response]) -> Timed:
    statuses: Counter[int] = Counter()
    taken = []
    for _ in range(calls):
        begun = time.perf_counter()
        statuses[call().status_code] += 1
        taken.append((time.perf_counter() - begun) * 1000)
        time.sleep(0.01)
    return Timed(statuses, median(taken))


# --- slow wallets


def beside_slow_wallets(account: int, reserved: dict[str, int]) -> tuple[Timed, Timed, int]:
    """Time the merchant API's usual calls, and its calls beside slow submissions; count those."""
    with place(account=account, reserved=reserved) as here:
        merchant = here.client("127.0.0.1")

        def listed() -> httpx2.Response:
            return merchant.get("/api/checkout/sessions?limit=1", headers=here.authorization)

        sessions = here.sessions(SLOW)
        timed(10, listed)
        usual = timed(CALLS, listed)

        def submit(number: int) -> bool:
            """Return whether the submission ran: 424 after its whole time, not 503 at once."""
            client = here.client(f"127.0.1.{number + 1}")  # limits by client do not help here
            body = {"wallet_address": f"{STRANGER}/mallory"}
            return client.post(f"/pay/{sessions[number]}/wallet", json=body).status_code == 424

        with ThreadPoolExecutor(SLOW) as strangers:
            submissions = [strangers.submit(submit, number) for number in range(SLOW)]
            time.sleep(1)
            beside = timed(CALLS, listed)
            held = sum(each.result() for each in submissions)
    return usual, beside, held


# --- a hostile client


def flood(port: int, sessions: Sequence[str]) -> tuple[float, Counter[int]]:
    """Send RATE requests a second from one address. Return the actual rate and the statuses."""
    statuses: Counter[int] = Counter()
    own = threading.local()
    begun = time.perf_counter()

    def one(number: int) -> None:
        page = f"/pay/{sessions[number % len(sessions)]}"
        method, path, body = (
            ("POST", f"{page}/wallet", _HANGS),
            ("GET", f"{page}/status", None),
            ("GET", f"{page}{_CALLBACK}", None),
            ("GET", page, None),
        )[number % 4]
        if not hasattr(own, "line"):
            address = ("127.0.0.66", 0)
            own.line = HTTPConnection("127.0.0.1", port, timeout=40, source_address=address)
        try:
            own.line.request(method, path, body, {"Content-Type": "application/json"})
            answer = own.line.getresponse()
            answer.read()
            statuses[answer.status] += 1
        except (OSError, HTTPException):
            own.line.close()
            statuses[0] += 1

    with ThreadPoolExecutor(200) as threads:
        for number in range(RATE * SECONDS):
            time.sleep(max(0, begun + number / RATE - time.perf_counter()))
            threads.submit(one, number)
        rate = RATE * SECONDS / (time.perf_counter() - begun)
    return rate, statuses


def checkout(here: Place, customer: httpx2.Client) -> str:
    """Buy one thing. Return "" or the unexpected answer."""
    created = here.create(customer)
    if created.status_code != 201:
        return f"create {created.status_code}"
    session = created.json()["id"]
    body = {"wallet_address": f"{CEDAR}/alice"}
    submitted = customer.post(f"/pay/{session}/wallet", json=body)
    if submitted.status_code != 200:
        return f"wallet {submitted.status_code}"
    back = urlsplit(here.network.approve(submitted.json()["interact_url"]))
    returned = customer.get(f"{back.path}?{back.query}")
    if returned.status_code != 303:
        return f"callback {returned.status_code}"
    shown = customer.get(f"/pay/{session}/success").status_code
    return "" if shown == 200 else f"success {shown}"


@dataclass(frozen=True)
class Beside:
    """Checkouts before and during a flood, and the answers to the flood."""

    usual: Bought
    during: Bought
    rate: float
    statuses: Counter[int]


def beside_a_hostile_client(limit: int) -> Beside:
    with place(account=FLOODED, limit=limit) as here, ProcessPoolExecutor(1) as elsewhere:
        sessions = here.sessions(400)
        usual = checkouts(here, seconds=4)
        attack = elsewhere.submit(flood, here.port, sessions)
        time.sleep(1)
        during = checkouts(here, seconds=SECONDS - 1)
        return Beside(usual, during, *attack.result())


@dataclass
class Bought:
    """Failed checkouts by answer, and the milliseconds of the others."""

    failed: Counter[str]
    taken: list[float]

    @property
    def done(self) -> int:
        return len(self.taken)


def checkouts(here: Place, *, seconds: float) -> Bought:
    """Buy one thing after the other for `seconds`, each as a customer at another address."""
    found = Bought(Counter(), [])
    until = time.perf_counter() + seconds
    for number in itertools.count(1):
        if time.perf_counter() >= until:
            break
        customer = here.client(f"127.0.2.{number}")
        begun = time.perf_counter()
        if wrong := checkout(here, customer):
            found.failed[wrong] += 1
        else:
            found.taken.append((time.perf_counter() - begun) * 1000)
        time.sleep(0.5)
    return found


# --- wrong keys


@dataclass(frozen=True)
class Keys:
    """The answers to wrong keys and their cost; the answers to the right key from two addresses."""

    usual: Timed
    statuses: Counter[int]
    reads: int
    right: list[Timed]


def wrong_keys() -> Keys:
    with place(account=ACCOUNT) as here:
        usual = timed(5, partial(sign_in, here, "127.0.0.10"))
        stranger = here.client("127.0.0.66")
        fields, headers = form_of(here, stranger)
        before, statuses = here.reads(), Counter[int]()
        for number in range(WRONG):
            fields["api_key"] = f"sk_{number:043d}"
            sent = stranger.post("/dashboard/sign-in", data=fields, headers=headers)
            statuses[sent.status_code] += 1
        reads = here.reads() - before
        right = [timed(5, partial(sign_in, here, f"127.0.0.{last}")) for last in (66, 10)]
    return Keys(usual, statuses, reads, right)


def form_of(here: Place, client: httpx2.Client) -> tuple[dict[str, str], dict[str, str]]:
    """Return the hidden fields of the sign-in form, and the headers to send it with."""
    found = _TOKEN.search(client.get("/dashboard/sign-in").text)
    assert found is not None
    return {"form_token": found[1]}, {"Origin": f"http://127.0.0.1:{here.port}"}


def sign_in(here: Place, address: str) -> httpx2.Response:
    client = here.client(address)
    fields, headers = form_of(here, client)
    fields["api_key"] = here.api_key
    return client.post("/dashboard/sign-in", data=fields, headers=headers)


def table(title: str, columns: str, rows: Iterable[str]) -> None:
    names = [name.strip() for name in columns.split("|")]
    print(f"\n{title}\n\n| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for row in rows:
        print(f"| {row} |", flush=True)


def slow_rows() -> Iterator[str]:
    for account, api in ((100, 0), (100, 10), (ACCOUNT, 0), (ACCOUNT, 8)):
        usual, beside, held = beside_slow_wallets(account, {"ApiFunction": api} if api else {})
        ratio = beside.milliseconds / usual.milliseconds
        yield (
            f"{account}, {api} for the API | {held} | {usual.milliseconds:.1f} "
            f"| {beside.milliseconds:.1f} | {ratio:.2f} | {beside.failed} of {CALLS}"
        )


def hostile_rows() -> Iterator[str]:
    for limit in (30, 0):
        found = beside_a_hostile_client(limit)
        told = ", ".join(f"{count} × {status}" for status, count in found.statuses.most_common())
        failed = ", ".join(f"{what} × {count}" for what, count in found.during.failed.items())
        during = f"{median(found.during.taken):.0f}" if found.during.taken else "-"
        yield (
            f"{limit or 'none'} | {found.rate:.0f} | {told} | {median(found.usual.taken):.0f} "
            f"| {during} | {found.during.done} | {failed or 'none'}"
        )


def wrong_rows() -> Iterator[str]:
    found = wrong_keys()
    right = [f"{each.statuses[303]} of 5, {each.milliseconds:.0f} ms" for each in found.right]
    yield (
        f"{found.statuses[401]} × 401, {found.statuses[429]} × 429 | {found.reads} "
        f"| {found.usual.milliseconds:.0f} | {' | '.join(right)}"
    )


def main() -> None:
    """Print the three tables."""
    table(
        f"{SLOW} slow wallet submissions at once; the merchant API lists a page {CALLS} times",
        "executions | under way | usual, ms | beside, ms | times | failed",
        slow_rows(),
    )
    table(
        f"One client sends {RATE} requests a second; others buy ({FLOODED} executions)",
        "limit | a second | answered | usual, ms | beside, ms | bought | failed",
        hostile_rows(),
    )
    table(
        f"{WRONG} wrong keys from one address, then the right one",
        "answered | reads | usual, ms | right, same address | right, another address",
        wrong_rows(),
    )


if __name__ == "__main__":
    main()
