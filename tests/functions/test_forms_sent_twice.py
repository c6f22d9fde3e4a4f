"""Each form of the dashboard and of the customers' pages, sent twice with the same bytes.

What it makes, it makes once. The forms are those of the routes, so one that is added is tried too.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute

from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.ground.grammar import SESSION_ID
from checkout.domain.links import OpenAmount
from checkout.domain.merchant.people import Role
from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.collect import Collect, Detail
from checkout.domain.session.record import Status
from checkout.flows.people import people
from checkout.flows.refund import alternative_wallet
from pay import alternative_wallet as claim_page
from pay import details, links, routes, till, withdrawals
from sandbox.cloud import table_definitions
from tests.support.authenticator import Authenticator
from tests.support.dashboard_pages import Browser, dashboard_over
from tests.support.dashboard_routes import FORMS, RIVAL, paths
from tests.support.flows import CEDAR, PREFIX, World
from tests.support.hosted_pages import Answer, customer
from tests.support.merchant_api import PREFIX as SHOP
from tests.support.outbox import Outbox
from tests.support.refund_books import allow, ask, fund, paid, payments

pytestmark = [pytest.mark.untraced, pytest.mark.first]

EVA = {"name": "Eva", "email": "eva@customer.example"}
# The forms of the customers' pages, and their fields.
CUSTOMERS: dict[str, dict[str, str]] = {
    "/buy/{link_id}": {},
    "/buy/{link_id}/till/{session_id}/cancel": {},
    "/pay/{session_id}/claim/{token}": {"wallet_address": f"{CEDAR}/carol"},
    "/pay/{session_id}/details": EVA,
    "/pay/{session_id}/grant/callback": {},
    "/pay/{session_id}/receipt": {"email": EVA["email"]},
    "/pay/{session_id}/wallet": {"wallet_address": f"{CEDAR}/alice"},
    "/pay/{session_id}/withdrawal": {**EVA, "confirmed": "1"},
}
# What makes a form acceptable, beside the fields of FORMS.
ALSO: dict[str, dict[str, str]] = {
    "/links": {"stock": "20"},  # in several rows
    "/notices": {"language": "en"},
    "/transactions/{session_id}/refund": {"how": "now"},
}
# They need what only a wallet or a device can sign, or a key; without it, they make nothing.
REFUSED = {
    *("/invitation/{token}", "/invitation/{token}/options", "/notices/confirm/{token}"),
    *("/sign-in", "/sign-in/passkey", "/sign-up", "/sign-up/options", "/sign-up/passkey"),
    *("/wallet/confirm", "/refunds/{refund_id}/budget"),
}
ONLY_ONCE = ("/keys", "/people", "/webhooks", "/webhooks/roll")  # such an answer has a secret
OURS = {"sec-fetch-site": "same-origin"}
LAST = ("/settings", "/people/key-sign-in", "/budget/end", "/webhooks/remove", "/sign-out")
NAMED = ("/buy/{link_id}", "/pay/{session_id}/receipt")  # of them, by a hidden field
BESIDE = {"api_keys audit", "checkout_sessions cart", "checkout_sessions search"}
KIND = re.compile(r"(?:[a-z-]+(?=[#_]))?")
KEYS = {
    table["TableName"].removeprefix(f"{PREFIX}-"): table["KeySchema"][0]["AttributeName"]
    for table in table_definitions(PREFIX)
}


class Shop:
    """A shop with something of everything, the browser of an owner, and one of a customer."""

    def __init__(self, stack: ExitStack) -> None:
        self.world, self.outbox = World(), Outbox()
        fund(self.world)
        self.world.services = replace(self.world.services, mail=self.outbox)
        self.dashboard = stack.enter_context(dashboard_over(self.world))
        self.dashboard.services = replace(self.dashboard.services, mail=self.outbox)
        self.customer = stack.enter_context(customer(self.world))
        self.customer.give(withdrawal_days=14)
        self.owner, self.fields = self.member(Role.OWNER), dict[str, str]()
        allow(self.world, 500_00)
        self.owner.post("/webhooks", {"url": "https://shop.example/hooks"})

    def member(self, role: Role) -> Browser:
        browser, shop = self.dashboard.browser(), self.world.merchant.id
        invited = people.invite_to(self.dashboard.services, shop, name="Ada", role=role)
        browser.join(invited.link, Authenticator(self.dashboard.base))
        return browser

    # --- something new for a form to change, by the names in paths

    def session_id(self, form: str) -> str:
        world, asked = self.world, form.rpartition("/")[2]
        if asked == "details":
            collect = Collect(required=frozenset({Detail.EMAIL})).to_json()
            return world.create(collect_json=collect).id
        if asked in ("expire", "cancel", "note", "wallet"):
            return world.create().id
        if asked in ("accept_as_paid", "give_up"):
            return world.partly_paid().id
        if asked == "dealt-with":
            late = {"attention": Attention.LATE_PAYMENT, "received": 700}
            return self.customer.put(Status.CANCELED, **late).id
        sold = paid(world).id
        if form == "/transactions/{session_id}/withdrawal":
            declared = CUSTOMERS["/pay/{session_id}/withdrawal"]
            self.customer.ask("POST", f"/pay/{sold}/withdrawal", data=declared, headers=OURS)
        return sold

    def refund_id(self, form: str) -> str:
        return ask(self.world, paid(self.world), by_budget=False).id

    def link_id(self, form: str) -> str:
        return self.world.link(left=3).id

    def event_id(self, form: str) -> str:
        event = self.owner.post("/webhooks/test").location.rpartition("/")[2]
        self.world.deliver(event)
        return event

    def key_id(self, form: str) -> str:
        before = self.world.core.api_keys.of(self.world.merchant.id)
        self.owner.post("/keys", {"name": "Server"})
        [made] = {*self.world.core.api_keys.of(self.world.merchant.id)} - {*before}
        return made.id

    def invitation_id(self, form: str) -> str:
        shop = self.world.merchant.id
        invited = people.invite_to(self.dashboard.services, shop, name="Eve", role=Role.OWNER)
        return invited.invitation.id

    def member_id(self, form: str) -> str:
        stored = self.dashboard.services.people
        before = stored.members_of(self.world.merchant.id)
        self.member(Role.SUPPORT)
        [made] = {*stored.members_of(self.world.merchant.id)} - {*before}
        return made.id

    def address(self, form: str) -> str:
        """Return where the form is sent."""
        if form == "/pay/{session_id}/claim/{token}":
            refund = self.refund_id(form)
            return urlsplit(
                alternative_wallet.offer(self.world.services, self.world.key(), refund).link
            ).path
        if "/till/" in form:
            link = self.world.link(open_amount=OpenAmount(100, 5_000, ()), unit_amount=100).id
            typed = hidden_in(self.customer.get(f"/buy/{link}/till")) | {"amount": "5"}
            begun = self.customer.ask("POST", f"/buy/{link}", data=typed, headers=OURS)
            return f"{begun.location}/cancel"
        if form.endswith("callback"):
            back = urlsplit(self.world.network.approve(str(self.world.awaiting()[0].interact_url)))
            self.world.clock.pass_time(10)  # the wallet wants to be asked again no earlier
            return f"{back.path}?{back.query}"
        for name in re.findall(r"\{(\w+_id)\}", form):
            form = form.replace(f"{{{name}}}", getattr(self, name)(form))
        return form.replace("{token}", "x")

    # --- sending it

    def made(self) -> Counter[str]:
        """Return how many there are of each kind of record, letter, and payment.

        An entry of the audit log tells of a request. A cart and the rows of the search find nothing
        without their session, and end with their time to live.
        """
        found = Counter({"letters": len(self.outbox.letters), "payments": payments(self.world)})
        for tables, prefix in ((self.world.dynamo, PREFIX), (self.dashboard.dynamo, SHOP)):
            for table, key in KEYS.items():
                rows = [str(row[key]["S"]) for row in tables.rows(f"{prefix}-{table}")]
                found.update(f"{table} {KIND.match(row)[0]}" for row in rows)  # type: ignore[index]
        return Counter({kind: n for kind, n in found.items() if kind not in BESIDE})

    def press(self, form: str) -> Callable[[], Answer]:
        """Return what sends the form, each time with the same bytes."""
        address = self.address(form)
        if form in CUSTOMERS:
            shows = address.replace("/receipt", "/success")
            hidden = hidden_in(self.customer.get(shows)) if form in NAMED else {}
            fields = CUSTOMERS[form] | hidden
            return lambda: self.customer.ask("POST", address, data=fields, headers=OURS)
        typed = {name: value.replace(RIVAL, "x") for name, value in FORMS[form].items()}
        typed |= ALSO.get(form, {}) | hidden_in(self.owner.get("/audit"))
        return lambda: self.owner.post(address, typed)

    def before_the_next_write(self, act: Callable[[], object]) -> list[Callable[[], object]]:
        """Let `act` happen before the next write of a record; return it until then."""
        left = [act]

        def interrupting(write: Callable[..., Any]) -> Callable[..., Any]:
            def interrupted(**request: Any) -> Any:
                if left and request.get("TableName") != f"{PREFIX}-idempotency_keys":
                    left.pop()()
                return write(**request)

            return interrupted

        for name in ("put_item", "update_item", "transact_write_items"):
            setattr(self.world.dynamo, name, interrupting(getattr(self.world.dynamo, name)))
        return left


def hidden_in(answer: Answer) -> dict[str, str]:
    """Return the hidden fields of a page's forms."""
    found = [each.attributes for each in answer.page.all("input", type="hidden")]
    return {each["name"]: each["value"] for each in found}


@dataclass(frozen=True, slots=True)
class Twice:
    """What a form made that was sent twice, what of it came with the second, and the answers."""

    made: Counter[str]
    again: Counter[str]
    answers: list[Answer]


def sent_twice(shop: Shop, form: str, *, at_once: bool) -> Twice:
    """Send the form twice: at once, the second is answered before the first has written."""
    press, answers = shop.press(form), list[Answer]()

    def send() -> None:
        answers.append(press())

    before = shop.made()
    left = shop.before_the_next_write(send) if at_once else []
    send()
    between = shop.made()
    if len(answers) == 1:
        left.clear()
        send()
    return Twice(shop.made() - before, shop.made() - between, answers)


def each_twice(*, at_once: bool) -> dict[str, Twice]:
    """Send every form twice."""
    forms = [*sorted({*FORMS, *CUSTOMERS} - {*LAST}), *LAST]
    with ExitStack() as stack:
        shop = Shop(stack)
        found = {form: sent_twice(shop, form, at_once=at_once) for form in forms}
    for answer in DynamoRecords(shop.world.dynamo, PREFIX).answers():
        assert answer is not None
        assert SESSION_ID.fullmatch(answer.body) or json.loads(answer.body), "no erasure reads it"
    return found


def test_a_form_that_is_sent_twice_makes_one_thing() -> None:
    posts = {
        route.path
        for each in (routes, details, claim_page, links, till, withdrawals)
        for route in each.router.routes
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
    }
    assert (posts, sorted(FORMS)) == (set(CUSTOMERS), paths("POST"))
    in_turn, at_once = each_twice(at_once=False), each_twice(at_once=True)
    assert {form: each.again for form, each in in_turn.items() if each.again} == {}
    more = {form: each.made - in_turn[form].made for form, each in at_once.items()}
    assert {form: made for form, made in more.items() if made} == {}
    assert {form for form, each in in_turn.items() if each.answers[0].status >= 400} == REFUSED
    for form in ONLY_ONCE:
        second = in_turn[form].answers[1]
        assert (second.status, "This form was sent twice" in second.page.main) == (409, True)
        assert second.page.all("code", id="secret") == []
    for form, each in [*in_turn.items(), *at_once.items()]:
        assert max(answer.status for answer in each.answers) < 500, form
        ways = {urlsplit(answer.location).path for answer in each.answers if answer.status == 303}
        assert len(ways) <= 1, (form, ways)
