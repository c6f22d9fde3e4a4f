"""Attacks on refunds: no money is held, sent or promised that should not be.

Keys without the right, ids of others, amounts that mean two things, bombs, keys of repetition used
twice, forged and replayed callbacks, and forms of other sites.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from checkout.domain.ground.errors import AmountTooLarge, CheckoutError, RefundUnexpectedState
from checkout.domain.ground.ids import api_key_hash, new_api_key, new_key_id
from checkout.domain.merchant import doors
from checkout.domain.merchant.people import USUAL, RefundCap, Role, Scope
from checkout.domain.refund.record import Refund, RefundRef, RefundStatus
from checkout.domain.session.record import Session, Status
from checkout.flows.people import sign_in
from checkout.flows.refund import alternative_wallet
from checkout.flows.refund import request as refunds
from checkout.services import PayServices
from dashboard.app import DOORS
from tests.support import services
from tests.support.attack_counts import Attack
from tests.support.basics import NOW, between
from tests.support.dashboard_pages import Browser, dashboard_of
from tests.support.dashboard_routes import FORMS, filled
from tests.support.doors import Doors, Visitor
from tests.support.flows import CEDAR, World
from tests.support.hosted_pages import Answer as Page
from tests.support.merchant_api import PREFIX, Answer
from tests.support.refund_books import (
    BOB,
    again,
    allow,
    ask,
    balance,
    come_back,
    consent,
    fund,
    mandate,
    payments,
    prepare,
)
from tests.support.samples import PAID, a_member, an_invitation
from tests.support.stripe_api import REFUNDS as V1
from tests.support.stripe_api import StripeApi

NATIVE: Final = "/api/checkout/refunds"
SCRIPT: Final = "<script>alert(1)</script>"
Send = Callable[[], Answer]


class Shop(StripeApi):
    """A merchant with a session that was paid, and a neighbour with one of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.sold = self.store(**PAID)
        self.theirs = self.store(**PAID, merchant="mer_2")
        made = self.post(NATIVE, {"session": self.sold.id, "amount": 100}, key=self.refunder)
        self.refund = made.json["id"]
        self.held = 100

    def native(self, key: str | None = "", **body: Any) -> Answer:
        return self.post(NATIVE, {"session": self.sold.id, **body}, key=self.refunder_or(key))

    def v1(self, key: str | None = "", headers: Any = None, **values: Any) -> Answer:
        values = {"payment_intent": payment(self.sold)} | values
        return self.form(V1, values, key=self.refunder_or(key), headers=headers or {})

    def refunder_or(self, key: str | None) -> str | None:
        return self.refunder if key == "" else key

    def key_with(self, **changes: Any) -> str:
        secret = new_api_key(self.services.random_bytes)
        made = {"id": new_key_id(self.services.random_bytes), "hash": api_key_hash(secret)}
        services.put_key(self.dynamo, PREFIX, replace(self.key, **{**made, **changes}))
        return secret

    def count(self) -> int:
        return sum(row["id"]["S"].startswith("re_") for row in self.rows("checkout_sessions"))


@pytest.fixture
def shop() -> Shop:
    return Shop()


def payment(session: Session) -> str:
    return session.id.replace("cs_", "pi_")


def refused(shop: Shop, attack: Attack, send: Send) -> None:
    """Fail unless the request is refused as a client's fault, and nothing was held by it."""
    answer = send()
    attack.answered(answer.status)
    assert 400 <= answer.status < 500, answer
    assert set(answer.json) == {"error"}, answer
    assert SCRIPT not in answer.body
    assert shop.stored(shop.sold.id).refunded == shop.held, "money is held"
    assert shop.stored(shop.theirs.id).refunded == 0, "the neighbour's money is held"
    assert shop.count() == 1, "there is another refund"
    kept = shop.services.refunds.get(shop.refund)
    assert kept is not None
    assert (kept.status, kept.amount, kept.metadata) == (RefundStatus.NEEDS_APPROVAL, 100, {})


def test_a_key_without_the_right_refunds_nothing(shop: Shop, attack: Attack) -> None:
    scoped = {each: shop.key_with(scopes=(each,)) for each in (Scope.READ, Scope.WRITE)}
    every = (Scope.READ, Scope.WRITE, Scope.MANAGE)
    keys: dict[str, str | None] = {
        "none": None,
        "unknown": "sk_live_" + "0" * 43,
        "malformed": "x",
        "read": scoped[Scope.READ],
        "write": scoped[Scope.WRITE],
        "all but refund": shop.key_with(scopes=every),
        "a key of before": shop.secret,
        "revoked": shop.key_with(scopes=(*every, Scope.REFUND), revoked_at=NOW),
        "ended": shop.key_with(scopes=(*every, Scope.REFUND), ends_at=NOW - timedelta(1)),
        "a neighbour's": shop.key_with(merchant="mer_2", scopes=(*every, Scope.REFUND)),
        "two at once": f"{shop.secret}, {shop.refunder}",
        "in other letters": shop.refunder.swapcase(),
    }
    path = f"{V1}/{shop.refund}"

    def uses(key: str | None) -> dict[str, Send]:
        return {
            "native": lambda: shop.native(key),
            "v1": lambda: shop.v1(key),
            "cancel": lambda: shop.post(f"{NATIVE}/{shop.refund}/cancel", key=key),
            "cancel v1": lambda: shop.form(f"{path}/cancel", key=key),
            "metadata": lambda: shop.form(path, {"metadata[a]": "1"}, key=key),
        }

    cases: dict[str, Send] = {
        f"{name}: {use}": send for name, key in keys.items() for use, send in uses(key).items()
    }
    attack.each(cases, partial(refused, shop, attack))


def test_nobody_refunds_or_reads_what_is_a_neighbours(shop: Shop, attack: Attack) -> None:
    other = shop.key_with(merchant="mer_2", scopes=tuple(Scope))
    charge = shop.theirs.id.replace("cs_", "ch_")
    path = f"{V1}/{shop.refund}"
    cases: dict[str, Send] = {
        "their session": lambda: shop.native(session=shop.theirs.id),
        "their payment": lambda: shop.v1(payment_intent=payment(shop.theirs)),
        "their charge": lambda: shop.form(V1, {"charge": charge}, key=shop.refunder),
        "their charge for my payment": lambda: shop.v1(charge=charge),
        "in their account's name": lambda: shop.v1(headers={"Stripe-Account": "acct_2"}),
        "in their context": lambda: shop.v1(headers={"Stripe-Context": "acct_2"}),
        "read by them": lambda: shop.ask(path, key=other),
        "read by them, native": lambda: shop.get(f"{NATIVE}/{shop.refund}", key=other),
        "list behind mine": lambda: shop.ask(V1, {"starting_after": shop.refund}, key=other),
        "list of my payment": lambda: shop.ask(
            V1, {"payment_intent": payment(shop.sold)}, key=other
        ),
        "canceled by them": lambda: shop.form(f"{path}/cancel", key=other),
        "changed by them": lambda: shop.form(path, {"metadata[a]": "1"}, key=other),
    }
    attack.each(cases, partial(refused, shop, attack))
    assert shop.ask(V1, key=other).json["data"] == []


IDS: Final = (
    "cs_x", "re_" + "0" * 22, "", " ", "../refunds", "%2e%2e", "*", "null", "0", "-1", SCRIPT,
    "' OR 1=1 --", "cs_" + "0" * 22, "x" * 5000, "cs_\0", "cs_" + "٣" * 22, "{{7*7}}", "cs_~we_1",
)  # fmt: skip


@pytest.mark.parametrize("field", ["session", "payment_intent", "charge"])
def test_an_id_that_is_none_names_no_money(shop: Shop, attack: Attack, field: str) -> None:
    def attempt(named: str) -> None:
        def send() -> Answer:
            if field == "session":
                return shop.native(session=named)
            return shop.form(V1, {field: named}, key=shop.refunder)

        refused(shop, attack, send)

    attack.each(IDS, attempt)


AMOUNTS: Final[dict[str, Any]] = {
    "negative": -1, "zero": 0, "a part of a cent": 0.5, "a float": 5.0, "text": "5", "true": True,
    "a list": [5], "an object": {"value": 5}, "more than is left": 2000, "a cent more": 2001,
    "64 bits": 2**63, "a hundred digits": 10**100, "exponent": 1e3, "below": -(2**63),
}  # fmt: skip
TYPED: Final = (
    "-1", "0", "0.5", "5.0", "1e3", " 5", "5 ", "+5", "٥", "0x5", "5,00", "2000", "2001", "", "NaN",
    "Infinity", "9" * 400, "5\0", "５", SCRIPT, "null", "true", "--5", "1_0",
)  # fmt: skip


def test_an_amount_that_is_none_or_too_much_is_refused(shop: Shop, attack: Attack) -> None:
    attack.each(AMOUNTS, lambda amount: refused(shop, attack, lambda: shop.native(amount=amount)))
    attack.each(TYPED, lambda amount: refused(shop, attack, lambda: shop.v1(amount=amount)))


def test_what_means_two_things_or_too_much_is_refused(shop: Shop, attack: Attack) -> None:
    def raw(text: str) -> Send:
        return lambda: shop.post(NATIVE, text.encode(), key=shop.refunder)

    def typed(text: str) -> Send:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        whole = f"payment_intent={payment(shop.sold)}&{text}"
        return lambda: shop.send("POST", V1, raw=whole.encode(), headers=headers, key=shop.refunder)

    mine = json.dumps(shop.sold.id)
    many = {f"k{number}": "v" for number in range(51)}
    cases: dict[str, Send] = {
        "two amounts": raw(f'{{"session":{mine},"amount":1,"amount":1999}}'),
        "two sessions": raw(f'{{"session":"cs_x","session":{mine}}}'),
        "NaN": raw(f'{{"session":{mine},"amount":NaN}}'),
        "a number that is infinite": raw(f'{{"session":{mine},"amount":1e400}}'),
        "no object": raw("[]"),
        "depth": raw("[" * 5000 + "]" * 5000),
        "not UTF-8": lambda: shop.post(NATIVE, b'{"session":"\xff"}', key=shop.refunder),
        "300 KiB": raw(json.dumps({"session": shop.sold.id, "metadata": {"a": "x" * 300_000}})),
        "51 keys": lambda: shop.native(metadata=many),
        "a long value": lambda: shop.native(metadata={"a": "x" * 501}),
        "a long key": lambda: shop.native(metadata={"x" * 41: "1"}),
        "nested": lambda: shop.native(metadata={"a": {"b": "1"}}),
        "no metadata": lambda: shop.native(metadata=SCRIPT),
        "a reason with markup": lambda: shop.native(reason=SCRIPT),
        "a reason of its own": lambda: shop.native(reason="theft"),
        "a mode of its own": lambda: shop.native(amount_mode="twice"),
        "another currency": lambda: shop.native(currency="eur"),
        "an unknown field": lambda: shop.native(approved=True),
        "its own id": lambda: shop.native(id="re_" + "0" * 22),
        "its own status": lambda: shop.native(status="succeeded"),
        "v1: two amounts": typed("amount=1&amount=1999"),
        "v1: an amount in brackets": typed("amount[0]=1"),
        "v1: an encoded name": typed("amount%5B%5D=1"),
        "v1: in the query too": lambda: shop.send(
            "POST", V1, query="amount=1", raw=b"payment_intent=x", key=shop.refunder
        ),
        "v1: another currency": lambda: shop.v1(currency="eur"),
        "v1: 51 keys": lambda: shop.v1(metadata=many),
        "v1: a long value": lambda: shop.v1(metadata={"a": "x" * 501}),
        "v1: depth": typed("metadata" + "[a]" * 400 + "=1"),
        "v1: 20 001 names": typed("&".join(f"m{number}=1" for number in range(20_001))),
        "v1: a reason with markup": lambda: shop.v1(reason=SCRIPT),
        "v1: a transfer back": lambda: shop.v1(reverse_transfer="true"),
        "v1: of a fee": lambda: shop.v1(refund_application_fee="true"),
        "v1: of a balance": lambda: shop.v1(origin="customer_balance", customer="cus_1"),
        "v1: to another wallet": lambda: shop.v1(customer_wallet="https://evil.example/mallory"),
        "v1: with its own status": lambda: shop.v1(status="succeeded"),
    }
    attack.each(cases, partial(refused, shop, attack))


WALLETS: Final = (
    "javascript:alert(1)", "file:///etc/passwd", "https://",
    "https://localhost/mallory", "https://127.0.0.1/mallory", "https://169.254.169.254/latest",
    "https://[::1]/mallory", "https://user:pass@wallet.example/mallory", SCRIPT, "", " ",
    "https://wallet.example:22/mallory", "https://wallet.example/mallory#x",
    "https://wallet.example/mallory?x=1", "https://wallet.example/" + "x" * 3000,
    "https://wallet.example\\@evil.example/", "https://10.0.0.1/mallory", "data:text/html,x",
)  # fmt: skip


def test_a_wallet_that_is_none_gets_nothing(shop: Shop, attack: Attack) -> None:
    attack.each(
        WALLETS, lambda wallet: refused(shop, attack, lambda: shop.native(customer_wallet=wallet))
    )


def test_an_address_without_encryption_is_asked_with_it(shop: Shop) -> None:
    made = shop.native(customer_wallet="http://wallet.example/mallory", amount=100)
    assert made.json["customer_wallet"] == "https://wallet.example/mallory"


def test_money_that_is_not_there_is_not_refunded(shop: Shop, attack: Attack) -> None:
    states: dict[str, Any] = {
        **{
            each.value: {"status": each}
            for each in Status
            if each not in (Status.COMPLETED, Status.PREPARING)
        },
        "not certain yet": {**PAID, "check_at": NOW},
        "nothing": {**PAID, "received": 0},
        "all refunded": {**PAID, "refunds": (RefundRef("re_" + "1" * 22, 2000, 1854),)},
    }

    def attempt(changes: Any) -> None:
        session = shop.store(**changes)
        for send in (
            lambda: shop.native(session=session.id, amount=1),
            lambda: shop.v1(payment_intent=payment(session), amount=1),
        ):
            refused(shop, attack, send)
        assert shop.stored(session.id) == session

    attack.each(states, attempt)


def test_a_key_of_repetition_makes_one_refund_whoever_uses_it(shop: Shop, attack: Attack) -> None:
    once = {"Idempotency-Key": "refund-1"}
    shop.held += 500
    first = shop.v1(headers=once, amount=500)
    assert first.status == 200
    kept = shop.count
    shop.count = lambda: kept() - 1  # type: ignore[method-assign]
    other = shop.store(**PAID)
    cases: dict[str, Send] = {
        "another amount": lambda: shop.v1(headers=once, amount=501),
        "no amount": lambda: shop.v1(headers=once),
        "another payment": lambda: shop.v1(headers=once, payment_intent=payment(other), amount=500),
        "the other API": lambda: shop.post(
            NATIVE, {"session": shop.sold.id, "amount": 500}, key=shop.refunder, headers=once
        ),
        "for a cancellation": lambda: shop.form(
            f"{V1}/{shop.refund}/cancel", key=shop.refunder, headers=once
        ),
        "too long": lambda: shop.v1(headers={"Idempotency-Key": "x" * 256}, amount=1),
        "empty": lambda: shop.v1(headers={"Idempotency-Key": ""}, amount=1),
    }
    attack.each(cases, partial(refused, shop, attack))
    for _ in range(20):
        assert shop.v1(headers=once, amount=500).body == first.body
    assert shop.stored(shop.sold.id).refunded == shop.held
    assert shop.stored(other.id).refunded == 0


# --- the merchant's approval


ALICE: Final = f"{CEDAR}/alice"


@pytest.fixture
def owner(world: World) -> Iterator[Browser]:
    fund(world)
    with dashboard_of(world) as browser:
        yield browser


def unsent(world: World, refund: Refund, sent: int) -> None:
    """Fail unless the merchant's wallet has made no payment, and the refund still waits."""
    assert payments(world) == sent, "money was sent"
    assert again(world, refund).status is RefundStatus.NEEDS_APPROVAL


def test_a_callback_that_is_forged_or_anothers_sends_nothing(
    world: World, owner: Browser, attack: Attack
) -> None:
    sold, other = world.pay(world.create()), world.pay(world.create())
    refund, second = prepare(world, ask(world, sold)), prepare(world, ask(world, other))
    (reference, digest), (theirs, their_digest) = consent(world, refund), consent(world, second)
    sent = payments(world)
    path = f"/refunds/{refund.id}/callback"
    right = {"interact_ref": reference, "hash": digest}
    queries: dict[str, str] = {
        "no hash": urlencode({"interact_ref": reference}),
        "no reference": urlencode({"hash": digest}),
        "nothing": "",
        "an empty hash": urlencode(right | {"hash": ""}),
        "a wrong hash": urlencode(right | {"hash": "A" * 43 + "="}),
        "the hash in other letters": urlencode(right | {"hash": digest.swapcase()}),
        "another refund's": urlencode({"interact_ref": theirs, "hash": their_digest}),
        "another refund's reference": urlencode(right | {"interact_ref": theirs}),
        "another refund's hash": urlencode(right | {"hash": their_digest}),
        "two references": f"{urlencode(right)}&interact_ref={theirs}",
        "two hashes": f"{urlencode(right)}&hash={their_digest}",
        "markup": urlencode(right | {"hash": SCRIPT}),
        "a long hash": urlencode(right | {"hash": "x" * 5000}),
        "a long reference": urlencode(right | {"interact_ref": "x" * 5000}),
        "NUL": urlencode(right | {"hash": "\0"}),
        "a rejection": "result=grant_rejected",
        "a result of its own": "result=grant_approved",
    }

    world.clock.pass_time(10)  # then the wallet does not ask to wait

    def attempt(query: str) -> None:
        answer = owner.get(f"{path}?{query}")
        attack.answered(answer.status)
        assert answer.status < 500
        assert SCRIPT not in answer.body
        unsent(world, refund, sent)
        unsent(world, second, sent)

    attack.each(queries, attempt)
    assert come_back(world, refund, (reference, digest)).status is RefundStatus.SUCCEEDED


def test_a_callback_in_another_browser_sends_nothing(
    world: World, owner: Browser, attack: Attack
) -> None:
    refund = prepare(world, ask(world, world.pay(world.create())))
    reference, digest = consent(world, refund)
    sent = payments(world)
    query = urlencode({"interact_ref": reference, "hash": digest})
    path = f"/refunds/{refund.id}/callback?{query}"
    ways: dict[str, str] = {
        "nobody is signed in": "",
        "a planted cookie": "__Host-dashboard=x",
        "two cookies": "__Host-dashboard=x; __Host-dashboard=y",
        "a long cookie": "__Host-dashboard=" + "x" * 3000,
    }
    cookies = dict(owner.client.cookies)

    def attempt(cookie: str) -> None:
        owner.client.cookies.clear()
        answer = owner.client.get(f"/dashboard{path}", headers={"Cookie": cookie})
        attack.answered(answer.status_code)
        assert answer.status_code in (303, 401, 403)
        unsent(world, refund, sent)

    attack.each(ways, attempt)
    owner.client.cookies.update(cookies)
    assert come_back(world, refund, (reference, digest)).status is RefundStatus.SUCCEEDED


def test_an_approval_is_used_once(world: World, owner: Browser, attack: Attack) -> None:
    sold = world.pay(world.create())
    refund = prepare(world, ask(world, sold, 500))
    callback = consent(world, refund)
    assert come_back(world, refund, callback).status is RefundStatus.SUCCEEDED
    sent = payments(world)
    query = urlencode({"interact_ref": callback[0], "hash": callback[1]})
    canceled = prepare(world, ask(world, sold, 500))
    late = consent(world, canceled)
    refunds.cancel(world.services, world.key(), canceled.id)
    waiting = prepare(world, ask(world, sold, 500))
    cases = {
        **{f"again, {number}": f"{refund.id}/callback?{query}" for number in range(5)},
        "for another refund": f"{waiting.id}/callback?{query}",
        "of a canceled one": f"{canceled.id}/callback?"
        + urlencode({"interact_ref": late[0], "hash": late[1]}),
        "for a refund that is none": f"re_{'0' * 22}/callback?{query}",
        "for a session": f"{sold.id}/callback?{query}",
    }

    def attempt(path: str) -> None:
        attack.answered(owner.get(f"/refunds/{path}").status)
        assert payments(world) == sent
        assert again(world, refund).sent == 500
        unsent(world, waiting, sent)

    attack.each(cases, attempt)


def test_forms_of_other_sites_refund_and_cancel_nothing(
    world: World, owner: Browser, attack: Attack
) -> None:
    sold = world.pay(world.create())
    refund = ask(world, sold, 500)
    sent = payments(world)
    owner.get(f"/transactions/{sold.id}")
    token = owner.form_token
    forms = {
        "request": (f"/transactions/{sold.id}/refund", {"amount": "1", "mode": "as_paid"}),
        "prepare": (f"/refunds/{refund.id}/prepare", {}),
        "cancel": (f"/refunds/{refund.id}/cancel", {}),
    }
    ways: dict[str, Any] = {
        "no token": ({}, {}),
        "an empty token": ({"form_token": ""}, {}),
        "a token of its own": ({"form_token": "x" * 43}, {}),
        "two tokens": ({"form_token": ["x", token]}, {}),
        "another origin": ({"form_token": token}, {"Origin": "https://evil.example"}),
        "origin null": ({"form_token": token}, {"Origin": "null"}),
        "a cross-site request": ({"form_token": token}, {"Sec-Fetch-Site": "cross-site"}),
    }
    cases = {
        f"{form}: {way}": (path, {**fields, **more}, headers)
        for form, (path, fields) in forms.items()
        for way, (more, headers) in ways.items()
    }

    def attempt(case: Any) -> None:
        path, fields, headers = case
        answer = owner.client.post(f"/dashboard{path}", data=fields, headers=headers)
        attack.answered(answer.status_code)
        assert 400 <= answer.status_code < 500, answer.status_code
        assert world.session(sold.id).refunded == 500
        kept = again(world, refund)
        assert (kept.status, kept.interact_url) == (RefundStatus.NEEDS_APPROVAL, None)
        assert payments(world) == sent

    attack.each(cases, attempt)
    reads = {name: path for name, (path, _) in forms.items()}
    attack.each(reads, lambda path: _reads_nothing(world, owner, path, sold))


def _reads_nothing(world: World, owner: Browser, path: str, sold: Session) -> None:
    assert owner.get(path).status in (404, 405)
    assert world.session(sold.id).refunded == 500


def test_a_merchants_own_texts_are_texts(world: World, owner: Browser, attack: Attack) -> None:
    sold = world.pay(world.create(metadata_json=json.dumps({"order": SCRIPT})))
    refund = ask(world, sold, 100, metadata={SCRIPT[:40]: SCRIPT, "__proto__": "x"})
    pages = (f"/refunds/{refund.id}", f"/transactions/{sold.id}", "/audit")

    def attempt(path: str) -> None:
        page = owner.get(path)
        assert page.status == 200
        assert SCRIPT not in page.body

    attack.each(pages, attempt)


# --- rights and limits, at every door

FRIEND: Final = f"{CEDAR}/carol"  # of whoever has a limit
LIMIT: Final = RefundCap(once=2_00, day=3_00)
BY_KEY: Final = f"key: {Scope.REFUND} up to a limit"


class Staff:
    """A shop with a budget, whose owner has requested 900.00 and noted 500.00, and its actors."""

    def __init__(self) -> None:
        world = self.world = World()
        fund(world, 5000_00)
        allow(world, 1000_00)
        self.sold = world.pay(world.create(2000_00), BOB)
        self.refund = ask(world, self.sold, 900_00, by_budget=False)
        self.note = ask(world, self.sold, 500_00, elsewhere="bank transfer")
        self.budget = mandate(world)
        self.doors = Doors(world)
        world.endpoints = replace(world.endpoints, paying=lambda: world.services)
        self.people: dict[str, Visitor] = {}
        for name, role, cap in (
            ("owner", Role.OWNER, None),
            ("support", Role.SUPPORT, None),
            ("developer", Role.DEVELOPER, None),
            ("support up to a limit", Role.SUPPORT, LIMIT),
            ("developer up to a limit", Role.DEVELOPER, LIMIT),
        ):
            self.people[name] = self.joined(name, role, cap)
        self.people["key: all but refund"] = self.doors.signed_in(self.doors.key_with(*USUAL))
        self.keys = {f"key: {each}": self.doors.key_with(each) for each in Scope}
        del self.keys[f"key: {Scope.REFUND}"]
        self.keys["key: all but refund"] = self.doors.key_with(*USUAL)
        self.keys[BY_KEY] = self.doors.key_with(*Scope, refund_cap=LIMIT)

    def joined(self, name: str, role: Role, cap: RefundCap | None) -> Visitor:
        """Return the browser of a new member. Their id is `id_of(name)`."""
        now, merchant = self.world.clock.now(), self.world.merchant.id
        member = a_member(
            id=id_of(name), merchant=merchant, name=name, role=role, refund_cap=cap, created_at=now
        )
        sent = an_invitation(
            id=f"inv_{name}", hash=name, merchant=merchant, member=member.id, created_at=now,
            expires_at=now + timedelta(days=1),
        )  # fmt: skip
        store = self.world.endpoints.people
        store.invite(sent)
        assert store.join(member, replace(sent, ended_at=now))
        token = sign_in.remember(self.world.endpoints, member).token
        visitor = Visitor({"__Host-dashboard": token})
        assert self.doors.dashboard("GET", visitor=visitor).status == 200
        return visitor

    def form(self, who: str, path: str, **fields: str) -> Page:
        visitor = self.people[who]
        sent = {"form_token": visitor.form_token, **fields}
        return self.doors.dashboard("POST", path, sent, visitor=visitor)

    def untouched(self) -> None:
        """Fail if anything of the owner's is not as it was; a payment may count in the budget."""
        assert again(self.world, self.refund) == self.refund
        assert again(self.world, self.note) == self.note
        now, before = mandate(self.world), self.budget
        for name in ("status", "terms", "wanted", "asked", "grant"):
            assert getattr(now, name) == getattr(before, name), name
        members = self.world.endpoints.people.members_of(self.world.merchant.id)
        rights = {each.name: (each.role, each.refund_cap) for each in members}
        assert rights["owner"] == (Role.OWNER, None)
        assert {cap for _, cap in rights.values()} == {None, LIMIT}
        assert len(rights) == 5


def id_of(name: str) -> str:
    return "mbr_" + name.replace(" ", "0").ljust(22, "0")[:22]


def at_doors(staff: Staff) -> dict[str, Callable[[], Page]]:
    """Return what everybody but an owner tries, at each door that moves money or gives rights."""
    refund, note = f"/refunds/{staff.refund.id}", f"/refunds/{staff.note.id}"
    sold, over = f"/transactions/{staff.sold.id}", "2.01"
    forms: dict[str, dict[str, str]] = {
        f"{sold}/refund": {"amount": over, "how": "now"},
        f"{sold}/paid_elsewhere": {"amount": over, "how": "cash"},
        f"{refund}/prepare": {},
        f"{refund}/cancel": {},
        f"{refund}/claim": {},
        f"{refund}/budget": {},
        f"{note}/cancel": {},
        "/budget": {"amount": "9999"},
        "/budget/end": {},
        "/people": {"name": "Thief", "role": "owner"},
        "/people/key-sign-in": {"allowed": "no"},
        f"/people/{id_of('support')}/role": {"role": "owner"},
        f"/people/{id_of('support up to a limit')}/refunds": {"once": "900"},
        f"/people/{id_of('owner')}/revoke": {},
    }
    native, v1 = "/checkout/refunds", "/refunds"
    payment = staff.sold.id.replace("cs_", "pi_")
    bodies: dict[str, Any] = {
        native: {"session": staff.sold.id, "amount": 201},
        f"{native}: a note": {"session": staff.sold.id, "amount": 201, "paid_elsewhere": "cash"},
        f"{native}: to a friend": {
            "session": staff.sold.id, "amount": 201, "customer_wallet": "https://w.example/carol",
        },
        f"{native}/{staff.refund.id}/cancel": None,
        f"{native}/{staff.note.id}/cancel": None,
        v1: {"payment_intent": payment, "amount": 201},
        f"{v1}/{staff.refund.id}": {"metadata": {"mine": "1"}},
        f"{v1}/{staff.refund.id}/cancel": None,
        f"{v1}/{staff.note.id}/cancel": None,
    }  # fmt: skip

    def called(path: str, body: Any, key: str) -> Page:
        path = path.partition(":")[0]
        if path.startswith("/refunds"):
            return staff.doors.v1("POST", path, body, key=key)
        return staff.doors.call("POST", f"/api{path}", body, key=key)

    by_form = {
        f"{who}, {path}": partial(staff.form, who, path, **fields)
        for who in staff.people
        if who != "owner"
        for path, fields in forms.items()
    }
    by_callback = {
        f"{who}, callback": partial(
            staff.doors.dashboard,
            "GET",
            f"{refund}/callback",
            query="interact_ref=x&hash=x",
            visitor=visitor,
        )
        for who, visitor in staff.people.items()
        if who != "owner"
    }
    by_key = {
        f"{who}, {path}": partial(called, path, body, key)
        for who, key in staff.keys.items()
        for path, body in bodies.items()
    }
    return {**by_form, **by_callback, **by_key}


def test_nobody_passes_their_rights_or_their_limit_at_any_door(attack: Attack) -> None:
    staff = Staff()

    def attempt(send: Callable[[], Page]) -> None:
        with staff.doors.nothing_happens():
            assert attack.answered(send().status) == 403

    attack.each(at_doors(staff), attempt)
    assert attack.counts["cases"] > 110


def by_table(staff: Staff, who: str, chance: random.Random) -> None:
    """Send a form or a request of the tables of doors, mostly one in which a limit has a part."""
    asked_for = again(staff.world, staff.refund), again(staff.world, staff.note)
    own = [each.id for each in staff.world.session(staff.sold.id).refunds or ()]
    ids = {"refund_id": chance.choice([*(each.id for each in asked_for), *own])}
    ids["session_id"] = staff.sold.id
    amount = chance.choice((50, 1_00, 2_00, 3_00, 900_00))
    limited = chance.random() < 0.8
    if who in staff.keys:
        table = [at for at, door in doors.API.items() if door.limit or not limited]
        method, path = chance.choice([at for at in table if at[0] != "GET"])
        more = {"paid_elsewhere": "cash"} if chance.random() < 0.3 else {}
        bodies: dict[str, Any] = {
            "/api/checkout/refunds": {"session": staff.sold.id, "amount": amount} | more,
            "/v1/refunds": {
                "payment_intent": payment(staff.sold),
                "amount": amount,
            },
            "/v1/refunds/{refund_id}": {"metadata": {"mine": "1"}},
        }
        body, where = bodies.get(path), filled(path.format_map(Missing(ids)))
        key = staff.keys[who]
        if where.startswith("/v1"):
            staff.doors.v1(method, where.removeprefix("/v1"), body, key=key)
        else:
            staff.doors.call(method, where, body, key=key)
        return
    posts = [path for (method, path), door in DOORS.items()
             if method == "POST" and (door.limit or not limited)]  # fmt: skip
    path = chance.choice([each for each in posts if each != "/sign-out"])
    fields = {
        **FORMS[path],
        "amount": f"{amount / 100:.2f}",
        "how": chance.choice(("now", "price")),
    }
    answer = staff.form(who, filled(path.format_map(Missing(ids))), **fields)
    if 'id="secret"' in answer.body:
        token = answer.secret.rpartition("/")[2]
        with suppress(CheckoutError):
            alternative_wallet.take(staff.world.services, staff.sold.id, token, FRIEND, client=None)


class Missing(dict[str, str]):
    """Leaves a name without a value as it is in the pattern."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("who", ["support up to a limit", "developer up to a limit", BY_KEY])
def test_no_sequence_of_what_somebody_may_send_moves_more_than_their_limit(
    who: str, seed: int
) -> None:
    staff, chance = Staff(), random.Random(seed)
    world = staff.world
    before, theirs = balance(world, BOB), balance(world, FRIEND)
    for _ in range(40):
        by_table(staff, who, chance)
    for _ in range(10):
        world.sweep()
        world.clock.pass_time(5)
    known = {staff.refund.id, staff.note.id}
    asked = [each.id for each in world.session(staff.sold.id).refunds or ()]
    own = world.services.refunds.of(tuple(each for each in asked if each not in known))
    assert own, "nothing was tried"
    assert sum(each.amount for each in own) <= 3_00
    assert balance(world, BOB) - before <= 3_00
    assert balance(world, FRIEND) == theirs, "no owner has approved it"
    staff.untouched()


def test_requests_that_come_together_hold_no_more_than_there_is(
    world: World, attack: Attack
) -> None:
    """Another request is made between the read and the write of the first ones."""
    fund(world)

    def attempt(overtaken: int) -> None:
        sold = world.pay(world.create())
        promised: list[int] = []

        def ask_from(services: PayServices) -> None:
            asked = refunds.NewRefund(session=sold.id, amount=500)
            promised.append(refunds.create(services, world.key(), asked).amount)

        def another() -> None:
            with suppress(CheckoutError):
                ask_from(world.services)

        sessions = between(world.services.sessions, "save", another, times=overtaken)
        racing = replace(world.services, sessions=sessions)
        with suppress(AmountTooLarge, RefundUnexpectedState):
            for _ in range(5):
                ask_from(racing)
        assert sum(promised) == world.session(sold.id).refunded == 2000

    attack.each([1, 2, 12], attempt)
