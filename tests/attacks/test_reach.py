"""Whom a shop reaches: each effect that leaves us, driven through its door in each standing.

Anybody can sign up with anybody's wallet. Until its owner has confirmed it, a shop's name, e-mails
and requests reach nobody.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

import pytest

import api.app
import pay.app
from checkout.domain.ground.ids import new_event_id, subscriber_id
from checkout.domain.merchant.notices import Pace, Subscriber, Topic
from checkout.domain.merchant.people import SignUp
from checkout.domain.merchant.reach import Effect, Standing
from checkout.domain.merchant.record import Merchant
from checkout.flows.merchant import suspension
from pay.emails import notice_email
from tests.functions.receipts import ask, paid
from tests.support import services
from tests.support.attack_counts import Attack
from tests.support.dashboard_pages import Browser, Dashboard, dashboard_over
from tests.support.flows import CEDAR, PREFIX, AnyHost, World, client_id
from tests.support.hosted_pages import Customer, customer
from tests.support.merchant_api import SESSIONS
from tests.support.outbox import Outbox
from tests.support.protected import OPEN
from tests.support.samples import an_endpoint, an_event
from tests.support.sign_up import TEA, confirm, newest, signed_up
from tests.support.sources import REPOSITORY, files, parsed
from tests.support.stripe_api import StripeApi

NAME: Final = "Locked Out Tea"
CHOICE: Final = {"email": "victim@other.example", "topic-payments": "on", "language": "en"}
HOOKS: Final = "https://other.example/hooks"
EVA: Final = {"name": "Eva", "email": "eva@customer.example", "confirmed": "1"}
OURS: Final = {"sec-fetch-site": "same-origin"}
ITEM: Final = {
    "quantity": 1,
    "price_data": {"currency": "jpy", "unit_amount": 500, "product_data": {"name": "Tea"}},
}

FORM_ITEM: Final = {
    "line_items[0][quantity]": "1",
    "line_items[0][price_data][currency]": "jpy",
    "line_items[0][price_data][unit_amount]": "500",
    "line_items[0][price_data][product_data][name]": "Tea",
}
BASKET: Final = {
    "mode": "payment",
    "success_url": "https://shop.example/a",
    "cancel_url": "https://shop.example/b",
}

# By the standing: unproven, suspended, proven.
EXPECTED: Final = {
    Effect.CONFIRMATION: "no yes yes",
    Effect.NOTICE: "no yes yes",
    Effect.RECEIPT: "no yes yes",
    Effect.WITHDRAWAL: "no yes yes",
    Effect.TEST_EVENT: "no yes yes",
    Effect.EVENT: "no yes yes",
    Effect.HOST: "yes yes yes",
    Effect.LINK: "no yes yes",
    Effect.INVITATION: "no yes yes",
    Effect.NEW_LINK: "no yes yes",
    Effect.SALE: "no no yes",
    Effect.CUSTOMER: "no no yes",
    Effect.BUDGET: "no yes yes",
    Effect.OWN_WALLET: "yes yes yes",
    Effect.PROOF: "yes no no",
    Effect.CLIENT: "yes yes yes",
}


class NotedHosts(AnyHost):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def permitted(self, host: str) -> bool:
        self.asked.append(host)
        return super().permitted(host)


class Place:
    """A shop that has signed up, with all of its doors. Its records may be of an earlier release,
    which let an unproven shop make them.
    """

    def __init__(self, world: World, shop: Dashboard, visitor: Customer, hosts: NotedHosts) -> None:
        self.world, self.shop, self.visitor, self.hosts = world, shop, visitor, hosts
        self.outbox = Outbox()
        shop.services = replace(shop.services, mail=self.outbox)
        world.services = replace(world.services, mail=self.outbox, write_notice=notice_email)
        self.api = StripeApi()  # it has the native API too
        self.api.services = world.core
        self.api.documents = replace(world.core, merchants=world.documents)
        self.owner: Browser = signed_up(shop, name=NAME)
        self.changed(withdrawal_days=14)

    def bring_to(self, standing: Standing) -> None:
        if standing is not Standing.UNPROVEN:
            assert confirm(self.world, self.owner).location == "/dashboard"
        if standing is Standing.SUSPENDED:
            suspension.suspend(self.shop.services, self.merchant.id)
        self.owner.get("/keys")
        self.forget()

    @property
    def merchant(self) -> Merchant:
        return newest(self.shop, NAME)

    def changed(self, **fields: Any) -> None:
        self.world.core.merchants.replace(self.merchant.changed(**fields))
        self.forget()

    def forget(self) -> None:
        """Let processes forget the merchant as it was."""
        self.world.clock.pass_time(61)
        self.world.merchant = self.merchant

    def key(self, scopes: str) -> str:
        return self.owner.post("/keys", {"name": "Server", "scopes": scopes}).secret

    def listens(self) -> bool:
        """An endpoint is saved in each standing; return whether its host was looked up."""
        before = len(self.hosts.asked)
        assert self.owner.post("/webhooks", {"url": HOOKS}).status in (200, 303)
        self.forget()
        return len(self.hosts.asked) > before

    def delivered(self) -> bool:
        before = len(self.world.receivers.got)
        self.world.deliver_hinted()
        return len(self.world.receivers.got) > before

    def mailed(self, cause: Callable[[], object]) -> bool:
        before = len(self.outbox.letters)
        cause()
        return len(self.outbox.letters) > before

    def asked(self, beginning: str, cause: Callable[[], object]) -> bool:
        """Return whether a request to an address with this beginning went out."""
        before = len(self.world.transport.sent)
        cause()
        return any(url.startswith(beginning) for _, url in self.world.transport.sent[before:])


def a_notice(place: Place) -> bool:
    place.changed(endpoint=an_endpoint(url=HOOKS, disabled_at=place.world.clock.now()))
    [owner] = place.shop.services.people.members_of(place.merchant.id)
    subscriber = Subscriber(
        id=subscriber_id(owner.id),
        merchant=owner.merchant,
        member=owner.id,
        topics=tuple(Topic),
        pace=Pace.AT_ONCE,
        language="en",
        writer="w",
        look_at=place.world.clock.now(),
        address="owner@shop.example",
    )
    assert place.world.services.subscribers.put(subscriber)
    return place.mailed(lambda: place.world.sweep(rounds=6))


def an_acknowledgement(place: Place) -> bool:
    now = place.world.clock.now()
    session = paid(place.visitor, completed_at=now)
    path = f"/pay/{session.id}/withdrawal"
    return place.mailed(lambda: place.visitor.ask("POST", path, data=EVA, headers=OURS))


def a_receipt(place: Place) -> bool:
    session = paid(place.visitor, completed_at=place.world.clock.now())
    return place.mailed(lambda: ask(place.visitor, session))


def a_test_event(place: Place) -> bool:
    place.listens()
    place.owner.post("/webhooks/test")
    return place.delivered()


def an_old_event(place: Place) -> bool:
    place.listens()
    now: datetime = place.world.clock.now()
    event = an_event(
        id=new_event_id(place.world.services.random_bytes),
        merchant=place.merchant.id,
        type="checkout.session.completed",
        created_at=now,
        next_at=now,
    )
    place.world.core.events.add(event)
    place.world.queue.messages.append(event.id)
    return place.delivered()


def a_links_page(place: Place) -> bool:
    path = f"/buy/{place.world.link().id}"
    seen = [place.visitor.get(path), place.visitor.get(f"{path}/logo")]
    seen.append(place.visitor.ask("POST", path, data={}, headers=OURS))
    return any(NAME in each.body or "Harbor" in each.body for each in seen)


def an_invitation(place: Place) -> bool:
    made = place.owner.post("/people", {"name": "Sue", "role": "support"})
    if made.status != 200:
        return False
    return NAME in place.shop.browser().get(made.secret.partition("/dashboard")[2]).body


def a_sale(place: Place) -> bool:
    made = place.api.post(SESSIONS, {**BASKET, "line_items": [ITEM]}, key=place.key("full"))
    assert made.status in (201, 403)
    return made.status == 201


def a_customers_wallet(place: Place) -> bool:
    return place.asked(CEDAR, lambda: place.visitor.form(place.visitor.put()))


def a_budget(place: Place) -> bool:
    return place.asked("https://", lambda: place.owner.post("/budget", {"amount": "500"}))


def a_proof(place: Place) -> bool:
    return place.asked("https://", lambda: place.owner.post("/wallet/confirm"))


def a_document(place: Place) -> bool:
    read = place.api.send("GET", f"/clients/{client_id(place.merchant.id)}", key=None)
    return read.status == 200 and NAME in read.body


DOORS: Final[dict[Effect, Callable[[Place], bool]]] = {
    Effect.OWN_WALLET: lambda p: p.asked(TEA, p.owner.get),  # the first steps, while some are left
    Effect.CONFIRMATION: lambda p: p.mailed(lambda: p.owner.post("/notices", CHOICE)),
    Effect.HOST: Place.listens,
    Effect.TEST_EVENT: a_test_event,
    Effect.EVENT: an_old_event,
    Effect.NOTICE: a_notice,
    Effect.RECEIPT: a_receipt,
    Effect.WITHDRAWAL: an_acknowledgement,
    Effect.LINK: a_links_page,
    Effect.INVITATION: an_invitation,
    Effect.NEW_LINK: lambda p: p.owner.post("/links", {"name": "Tea", "amount": "5"}).status == 303,
    Effect.SALE: a_sale,
    Effect.CUSTOMER: a_customers_wallet,
    Effect.BUDGET: a_budget,
    Effect.PROOF: a_proof,
    Effect.CLIENT: a_document,
}


@contextmanager
def a_place() -> Iterator[Place]:
    world, hosts = World(), NotedHosts()
    free = services.limits(world.clock, world.dynamo, PREFIX, 0)
    wallets = world.services.wallets
    more: dict[str, Any] = {"hosts": hosts, "limits": free, "wallets": lambda: wallets}
    with dashboard_over(world, sign_up=SignUp.OPEN, **more) as shop, customer(world) as visitor:
        yield Place(world, shop, visitor, hosts)


@pytest.mark.parametrize("standing", Standing)
def test_an_effect_reaches_others_in_the_standings_of_its_row_alone(
    attack: Attack, standing: Standing
) -> None:
    assert set(DOORS) == set(EXPECTED) == set(Effect)
    column = list(Standing).index(standing)
    with a_place() as place:
        place.bring_to(standing)

        def attempt(effect: Effect) -> None:
            wanted = EXPECTED[effect].split()[column] == "yes"
            assert (standing in effect.standings) is wanted
            assert DOORS[effect](place) is wanted

        attack.each({each.name: each for each in DOORS}, attempt)


def test_an_unproven_shop_signs_in_and_keeps_its_house(attack: Attack) -> None:
    """What its people do for themselves works, and a refusal says what to do."""
    forms = {
        "/keys": {"name": "Server", "scopes": "full"},
        "/webhooks": {"url": HOOKS},
        "/settings": {"name": "Tea", "locale": "en", "contact": "me@shop.example"},
        "/webhooks/roll": {"overlap": "0"},
    }
    refused: dict[str, dict[str, str]] = {
        "/notices": CHOICE,
        "/webhooks/test": {},
        "/links": {"name": "Tea", "amount": "5"},
        "/people": {"name": "Sue", "role": "support"},
        "/budget": {"amount": "500"},
    }
    with a_place() as place:
        for path, fields in forms.items():
            assert attack.answered(place.owner.post(path, fields).status) in (200, 303), path

        def attempt(case: tuple[str, dict[str, str]]) -> None:
            answer = place.owner.post(*case)
            assert attack.answered(answer.status) == 403
            assert (
                "is not confirmed yet. Until its owner confirms it at /dashboard"
                in answer.page.main
            )

        attack.each({path: (path, fields) for path, fields in refused.items()}, attempt)
        assert "is not confirmed yet" in place.owner.get("/notices").page.main


@pytest.mark.parametrize(
    ("path", "raw", "form"),
    [
        (SESSIONS, json.dumps({**BASKET, "line_items": [ITEM]}), "application/json"),
        (
            "/v1/checkout/sessions",
            urlencode({**BASKET, **FORM_ITEM}),
            "application/x-www-form-urlencoded",
        ),
    ],
)
def test_the_api_says_that_the_wallet_is_to_be_confirmed_not_that_the_operator_acted(
    path: str, raw: str, form: str
) -> None:
    with a_place() as place:
        key, headers = place.key("full"), {"Content-Type": form}

        def error() -> Any:
            answer = place.api.send("POST", path, raw=raw.encode(), headers=headers, key=key)
            assert answer.status == 403
            return answer.json["error"]

        assert error()["code"] == "merchant_unproven"
        assert "Until its owner confirms it at /dashboard" in error()["message"]
        suspension.suspend(place.shop.services, place.merchant.id)
        assert error()["code"] == "merchant_suspended"


# Where the code leaves us, by module and function. BEGUN are what goes on with a sale.
WAYS_OUT: Final = {
    "flows/session/prepare::submit_wallet": Effect.CUSTOMER,
    "flows/session/receipt_mail::send": Effect.RECEIPT,
    "flows/session/withdrawals::acknowledge": Effect.WITHDRAWAL,
    "flows/merchant/first_steps::check": Effect.OWN_WALLET,
    "flows/notices::look": Effect.NOTICE,
    "flows/people/ownership::begin": Effect.PROOF,
    "flows/people/ownership::finish": Effect.PROOF,
    "flows/merchant/setup::_client": Effect.OWN_WALLET,
    "flows/refund/budget::ask": Effect.BUDGET,
    "flows/webhooks/deliver::_attempt": Effect.EVENT,
    "flows/webhooks/endpoints::_check": Effect.HOST,
    "functions/dashboard/notices::choose": Effect.CONFIRMATION,
}
BEGUN: Final = {
    "flows/session/approve::_claim_and_pay",
    "flows/session/reconcile::_visit",
    "flows/mailing::send",  # asks for its caller's effect
    "flows/payment/cleanup::clean_up",
    "flows/payment/mandates::step",
    "flows/payment/wallet_calls::begin",
    "flows/payment/wallet_calls::of",
    "flows/payment/wallet_calls::within",
    "flows/refund/approve::finish",
    "flows/refund/approve::prepare",
    "flows/refund/budget::_cancel",
    "flows/refund/budget::finish",
    "flows/refund/budget::pay",
    "flows/refund/alternative_wallet::take",
    "flows/refund/reconcile::step",
}
_LEAVES: Final = re.compile(
    r"\bmail(ing)?\.send$|\breceivers\.post$|\bhosts\.permitted$|\bWalletCalls\.begin$"
    r"|\bwallets(\(\))?\.(anonymous|client)$"
)


def ways_out() -> Iterator[str]:
    for path in files(".py", "layers/common/checkout/flows", "functions"):
        name = str(path.relative_to(REPOSITORY)).removeprefix("layers/common/checkout/")
        yield from _in(parsed(path), name.removesuffix(".py"), "")


def _in(node: ast.AST, module: str, function: str) -> Iterator[str]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Call) and _LEAVES.search(ast.unparse(each.func)):
            yield f"{module}::{function}"
        within = each.name if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield from _in(each, module, within)


def test_each_way_out_has_its_row_and_asks_for_it() -> None:
    assert set(ways_out()) == WAYS_OUT.keys() | BEGUN
    unasked = {Effect.HOST, Effect.OWN_WALLET}  # they happen in each standing
    for way, effect in WAYS_OUT.items():
        module = way.partition("::")[0]
        folder = "" if module.startswith("functions/") else "layers/common/checkout/"
        text = (REPOSITORY / f"{folder}{module}.py").read_text("utf-8")
        assert (f"Effect.{effect.name}" in text) is (effect not in unasked), way


def test_each_page_that_strangers_open_belongs_to_a_row() -> None:
    """SALE, LINK and CLIENT; and of the dashboard INVITATION, beside the doors to a sign-in.

    The page at the bare address is of no shop.
    """
    included: list[Any] = [*pay.app.app.routes, *api.app.app.routes]
    routers = [each.original_router for each in included]
    served = {route.path.split("/")[1] for router in routers for route in router.routes}
    assert served == {"", "pay", "buy", "clients", "api"}
    opened = {path.split("/")[1] for _, path in OPEN}
    assert opened == {"sign-in", "sign-up", "invitation"}
