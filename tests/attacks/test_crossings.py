"""A test stage and another one side by side, and every door: 10 000 random calls cross nowhere.

Each call asks one stage for something of the other: with its API key, its browser's cookie, its
session, payment, charge, refund, event, link or client, or with a wallet of the other kind. The
same calls with a stage's own things go through, which a test shows first.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from checkout.adapters.outbound.wallets import SignedWallets, StageTransport
from checkout.domain.merchant.people import SignUp
from checkout.domain.session.record import Session
from tests.support.doors import FORM, Doors, Visitor
from tests.support.flows import World, client_id
from tests.support.hosted_pages import Answer
from tests.support.merchant_api import a_body, gateway_event

pytestmark = pytest.mark.untraced

OWN: Final = "https://pay.example/test-wallets"
WALLETS: Final = {
    "live": [
        f"{OWN}/cedar/alice",
        "https://other.example/test-wallets/harbor/shop",
        "https://other.example/x/Test-Wallets/shop",
        "https://other.example/%74est-wallets/shop",
        "$other.example/test-wallets/shop",
    ],
    "test": [
        "https://localhost:4101/alice",
        "https://wallet.example/test-wallets/alice",
        "https://pay.example/test-wallets-x/alice",
        "$ilp.gatehub.net/1",
    ],
}


class Stage:
    """All doors of a stage of a kind, over its own tables, and what a stranger may know of it."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self.doors = Doors(World(seed=seed))
        world = self.doors.world
        keyless = world.join_without_key("https://localhost:4101/shop-eur").merchant
        own = OWN if kind == "test" else ""
        guard = StageTransport(world.transport, own)
        wallets = SignedWallets(guard, world.vault, world.clock, allow_loopback=True)
        world.core = replace(world.core, test_wallets=own)
        world.services = replace(world.services, test_wallets=own, wallets=wallets)
        world.endpoints = replace(
            world.endpoints,
            test_wallets=own,
            wallets=lambda: wallets,
            paying=lambda: world.services,
            sign_up=SignUp.OPEN,
        )
        self.key = self.doors.key
        self.visitor = self.doors.signed_in()
        self.sessions = [self.doors.create() for _ in range(5)]
        self.links = [world.link().id for _ in range(2)]
        self.payable = [self.doors.create() for _ in range(3)]
        self.clients = [client_id(keyless.id)]

    def api(
        self, method: str, path: str, key: str, fields: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask either API: with JSON under /api, with a form under /v1."""
        if path.startswith("/api"):
            body = a_body() if method == "POST" and path.endswith("/sessions") else None
            return self.doors.call(method, path, body, key=key)
        raw = urlencode(fields or {}).encode() if method == "POST" else None
        headers = {"Host": "pay.example", "Authorization": f"Bearer {key}", "Content-Type": FORM}
        return self.doors.send("v1", gateway_event(method, path, "", headers, raw))

    def client(self, named: str, rest: str) -> Answer:
        headers = {"Host": "pay.example"}
        event = gateway_event("GET", f"/clients/{named}{rest}", "", headers, None)
        return self.doors.send("api", event)


@dataclass(frozen=True, slots=True)
class Try:
    """A call at a door, and whether its answer means that it went through."""

    door: str
    answer: Answer
    through: bool


Door = Callable[[random.Random, Stage, Stage], Try]


def _asked(door: str, answer: Answer) -> Try:
    return Try(door, answer, answer.status < 400)


def _led_in(door: str, answer: Answer) -> Try:
    """Of the dashboard: without a sign-in it leads to the page for that."""
    away = answer.status == 303 and str(answer.location).startswith("/dashboard/sign-in")
    return Try(door, answer, answer.status < 400 and not away)


def _session(chance: random.Random, there: Stage) -> Session:
    return chance.choice(there.sessions)


def native(chance: random.Random, here: Stage, there: Stage) -> Try:
    method, path = chance.choice(_native(_session(chance, there).id))
    return _asked("api, by id", here.api(method, path, here.key))


def _native(session: str) -> list[tuple[str, str]]:
    return [
        ("GET", f"/api/checkout/sessions/{session}"),
        ("GET", f"/api/checkout/sessions/{session}/attempts"),
        ("POST", f"/api/checkout/sessions/{session}/cancel"),
        ("POST", f"/api/checkout/sessions/{session}/give_up"),
        ("POST", f"/api/checkout/sessions/{session}/refunds"),
        ("GET", f"/api/checkout/refunds/re_{session[-22:]}"),
    ]


def native_key(chance: random.Random, here: Stage, there: Stage) -> Try:
    session = _session(chance, chance.choice([here, there])).id
    anywhere = [("GET", "/api/checkout/sessions"), ("POST", "/api/checkout/sessions")]
    method, path = chance.choice([*_native(session), *anywhere])
    return _asked("api, by key", here.api(method, path, there.key))


def _stripe(session: str) -> list[tuple[str, str]]:
    digits = session.removeprefix("cs_")
    return [
        ("GET", f"/v1/checkout/sessions/{session}"),
        ("GET", f"/v1/checkout/sessions/{session}/line_items"),
        ("POST", f"/v1/checkout/sessions/{session}/expire"),
        ("POST", f"/v1/checkout/sessions/{session}"),
        ("GET", f"/v1/payment_intents/pi_{digits}"),
        ("GET", f"/v1/charges/ch_{digits}"),
        ("GET", f"/v1/payment_methods/pm_{digits}"),
        ("GET", f"/v1/balance_transactions/txn_{digits}"),
        ("GET", f"/v1/balance_transactions/txn_re{digits[-22:]}"),
        ("GET", f"/v1/prices/price_{digits}00"),
        ("GET", f"/v1/products/prod_{digits}00"),
        ("GET", f"/v1/refunds/re_{digits[-22:]}"),
        ("GET", f"/v1/events/evt_{digits[-22:]}"),
    ]


def stripe(chance: random.Random, here: Stage, there: Stage) -> Try:
    session = _session(chance, there).id
    method, path = chance.choice([*_stripe(session), ("POST", "/v1/refunds")])
    fields = {"metadata[a]": "b"}
    if path == "/v1/refunds":
        fields = {"charge": f"ch_{session.removeprefix('cs_')}"}
    return _asked("v1, by id", here.api(method, path, here.key, fields))


def stripe_key(chance: random.Random, here: Stage, there: Stage) -> Try:
    session = _session(chance, chance.choice([here, there])).id
    listed = ("checkout/sessions", "events", "charges", "account")
    lists = [("GET", f"/v1/{each}") for each in listed]
    method, path = chance.choice([*_stripe(session), *lists])
    return _asked("v1, by key", here.api(method, path, there.key))


def hosted(chance: random.Random, here: Stage, there: Stage) -> Try:
    session = _session(chance, there)
    method, path = chance.choice(_hosted(session.id))
    fields = {"wallet_address": WALLETS[there.kind][0]} if method == "POST" else None
    return _asked("hosted page", here.doors.pay(method, path, fields))


def _hosted(session: str) -> list[tuple[str, str]]:
    return [
        ("GET", f"/{session}"),
        ("GET", f"/{session}/status"),
        ("GET", f"/{session}/success"),
        ("POST", f"/{session}/wallet"),
        ("POST", f"/{session}/cancel"),
        ("GET", f"/{session}/claim/{'a' * 43}"),
    ]


def link(chance: random.Random, here: Stage, there: Stage) -> Try:
    path = f"/buy/{chance.choice(there.links)}"
    method = chance.choice(["GET", "POST"])
    return _asked("payment link", here.doors.browse("pay", method, path, None))


def _pages(there: Stage, chance: random.Random) -> list[tuple[str, str]]:
    session, bought = _session(chance, there).id, chance.choice(there.links)
    return [
        ("GET", f"/transactions/{session}"),
        ("GET", f"/transactions/{session}/packing"),
        ("POST", f"/transactions/{session}/note"),
        ("POST", f"/transactions/{session}/cancel"),
        ("POST", f"/transactions/{session}/refund"),
        ("GET", f"/refunds/re_{session[-22:]}"),
        ("POST", f"/refunds/re_{session[-22:]}/prepare"),
        ("GET", f"/links/{bought}"),
        ("POST", f"/links/{bought}/stop"),
    ]


def dashboard(chance: random.Random, here: Stage, there: Stage) -> Try:
    method, path = chance.choice(_pages(there, chance))
    fields = {"form_token": here.visitor.form_token, "amount": "5.00", "note": "x"}
    answer = here.doors.dashboard(
        method, path, fields if method == "POST" else None, visitor=here.visitor
    )
    return _led_in("dashboard, by id", answer)


def cookie(chance: random.Random, here: Stage, there: Stage) -> Try:
    """Bring the other stage's cookie and form token."""
    visitor = Visitor(dict(there.visitor.cookies), there.visitor.form_token)
    own = [("GET", path) for path in ("", "/overview", "/keys", "/webhooks", "/people")]
    method, path = chance.choice([*_pages(chance.choice([here, there]), chance), *own])
    fields = {"form_token": visitor.form_token} if method == "POST" else None
    answer = here.doors.dashboard(method, path, fields, visitor=visitor)
    return _led_in("dashboard, by cookie", answer)


def sign_in(chance: random.Random, here: Stage, there: Stage) -> Try:
    del chance
    visitor = Visitor()
    here.doors.dashboard("GET", "/sign-in", visitor=visitor)
    fields = {"api_key": there.key, "form_token": visitor.form_token}
    answer = here.doors.dashboard("POST", "/sign-in", fields, visitor=visitor)
    return _asked("sign-in", answer)


def sign_up(chance: random.Random, here: Stage, there: Stage) -> Try:
    del there
    visitor = Visitor()
    here.doors.dashboard("GET", "/sign-up", visitor=visitor)
    wallet = chance.choice(WALLETS[here.kind])
    fields = {"wallet_address": wallet, "form_token": visitor.form_token}
    answer = here.doors.dashboard("POST", "/sign-up", fields, visitor=visitor)
    return _asked("sign-up", answer)


def wallet(chance: random.Random, here: Stage, there: Stage) -> Try:
    """Pay an own session with a wallet of the other kind."""
    del there
    answer = here.doors.submit(chance.choice(here.payable), chance.choice(WALLETS[here.kind]))
    return _asked("wallet on the hosted page", answer)


def document(chance: random.Random, here: Stage, there: Stage) -> Try:
    named, rest = chance.choice(there.clients), chance.choice(["", "/jwks.json"])
    return _asked("client document", here.client(named, rest))


DOORS: Final[list[Door]] = [
    *(native, native_key, stripe, stripe_key, hosted, link),
    *(dashboard, cookie, sign_in, sign_up, wallet, document),
]


@pytest.fixture
def stages() -> list[Stage]:
    return [Stage("live", 21), Stage("test", 22)]


def test_a_thousand_random_calls_at_all_doors_cross_nowhere(stages: list[Stage]) -> None:
    crosses_nowhere(stages, 1_000)


@pytest.mark.endurance
def test_ten_thousand_random_calls_at_all_doors_cross_nowhere(stages: list[Stage]) -> None:
    crosses_nowhere(stages, 10_000)


def crosses_nowhere(stages: list[Stage], calls: int) -> None:
    chance = random.Random(60)
    tried: Counter[str] = Counter()
    crossed: list[Any] = []
    before = [of_sessions(stage) for stage in stages]
    asked = [len(stage.doors.world.transport.sent) for stage in stages]
    for _ in range(calls):
        here, there = chance.sample(stages, 2)
        made = chance.choice(DOORS)(chance, here, there)
        tried[made.door] += 1
        if made.through:
            crossed.append((here.kind, made.door, made.answer.status, made.answer.location))
        here.doors.world.clock.pass_time(1)
    for door, number in sorted(tried.items()):
        print(f"{door:<26} {number:>5} calls, {sum(door == each[1] for each in crossed)} crossed")
    assert crossed == []
    assert min(tried.values()) > calls // len(DOORS) // 2
    assert sum(tried.values()) == calls
    assert [of_sessions(stage) for stage in stages] == before
    assert [len(stage.doors.world.transport.sent) for stage in stages] == asked, "no wallet asked"


def of_sessions(stage: Stage) -> list[Session]:
    return [stage.doors.world.session(each.id) for each in stage.sessions]


def test_the_same_calls_go_through_with_what_is_the_stages_own(stages: list[Stage]) -> None:
    """So each door is a door: 404 and 401 above are not those of a path that is none."""
    chance = random.Random(61)
    for stage in stages:
        through: Counter[str] = Counter()
        for door in DOORS:
            if door in (sign_up, wallet):
                continue  # with a wallet of one's own kind: below
            for _ in range(30):
                own = door(chance, stage, stage)
                through[own.door] += own.through
        assert set(through) == {each for each in through if through[each]}, through
        assert len(through) == len(DOORS) - 2


def test_a_wallet_of_the_own_kind_is_asked(stages: list[Stage]) -> None:
    """The wallets of a test stage themselves: tests/sandbox/test_function.py."""
    [live, _] = stages
    session = live.doors.create()
    assert live.doors.submit(session, "https://localhost:4101/alice").status == 303
