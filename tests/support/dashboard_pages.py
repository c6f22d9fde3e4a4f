"""A merchant's browser in front of the dashboard, over the tables of `MerchantApi`: two merchants,
so that what is whose can be tried.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self
from urllib.parse import urlsplit

from checkout.adapters import dynamo
from checkout.adapters.dynamo.people import DynamoAudit, DynamoPeople
from checkout.domain.merchant.people import Member, Role, Scope
from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.flows.people import people
from checkout.services import DashboardServices
from dashboard import dependencies
from dashboard.app import app
from tests.support import asgi, services
from tests.support.authenticator import Authenticator
from tests.support.basics import between
from tests.support.flows import (
    AnyHost,
    NotedHints,
    NotedVault,
    World,
    derived,
)
from tests.support.hosted_pages import Answer
from tests.support.merchant_api import PREFIX, SESSIONS, MerchantApi

BASE = "https://pay.example"


class Browser:
    """A browser; redirects are not followed, so that tests see each. Its forms are those of the
    last page.
    """

    def __init__(self, dashboard: Dashboard) -> None:
        self.client = asgi.Client(app, base_url=dashboard.base)
        self._dashboard = dashboard
        self.form_token = ""
        self.answers: list[Answer] = []

    def get(self, path: str = "", **options: Any) -> Answer:
        return self._ask("GET", path, **options)

    def post(self, path: str, fields: dict[str, str] | None = None, **options: Any) -> Answer:
        """A form of the page that is open, with its token and from our own origin."""
        data = {"form_token": self.form_token, **(fields or {})}
        headers = {"origin": self._dashboard.base, **options.pop("headers", {})}
        return self._ask("POST", path, data=data, headers=headers, **options)

    def sign_in(self, api_key: str) -> Self:
        self.get("/sign-in")
        assert self.post("/sign-in", {"api_key": api_key}).location == "/dashboard/overview"
        self.get()
        return self

    def join(self, link: str, device: Authenticator) -> Answer:
        """Open an invitation, and accept it with a passkey of this device."""
        path = link.partition("/dashboard")[2]
        self.get(path)
        options = json.loads(self.post(f"{path}/options").body)
        return self.post(path, {"credential": device.create(options)})

    def use(self, device: Authenticator, **changes: Any) -> Answer:
        """Sign in with the device's passkey."""
        self.get("/sign-in")
        options = json.loads(self.post("/sign-in/options").body)
        return self.post("/sign-in/passkey", {"credential": device.get(options, **changes)})

    def _ask(self, method: str, path: str, **options: Any) -> Answer:
        answer = self.client.request(method, f"/dashboard{path}", **options)
        found = Answer(answer.status_code, answer.headers, answer.text)
        self.answers.append(found)
        if answer.headers.get("content-type", "").startswith("text/html"):
            self.form_token = found.form_token or self.form_token
        return found


class Dashboard(MerchantApi):
    """`api` for calls of the merchant API beside, `browser()` for a browser of its own."""

    def __init__(self, base: str = BASE) -> None:
        super().__init__(base_url=base)
        self.base = base
        # Browsers sign in with this key as an owner; tests make keys without a scope themselves.
        self.key = replace(self.key, scopes=tuple(Scope))
        services.put_key(self.dynamo, PREFIX, self.key)
        self.dynamo.calls.clear()
        self.messages, self.hosts = NotedHints(), AnyHost()
        base_services = replace(self.services, queue=self.messages)
        vault = NotedVault(
            lambda: "11" * 32, base_services.random_bytes, clock=self.clock, derive=derived
        )
        self.services: DashboardServices = services.dashboard(
            base_services, self.dynamo, PREFIX, vault=vault, hosts=self.hosts
        )

    def browser(self) -> Browser:
        return Browser(self)

    def signed_in(self, api_key: str | None = None) -> Browser:
        """A browser of the first merchant, unless another key is given."""
        return self.browser().sign_in(api_key or self.secret)

    def tried(self, api_key: str) -> Answer:
        """The answer to a sign-in with the key in a new browser."""
        browser = self.browser()
        browser.get("/sign-in")
        return browser.post("/sign-in", {"api_key": api_key})

    def key_named(self, name: str) -> ApiKey:
        [found] = [each for each in self.services.api_keys.of("mer_1") if each.name == name]
        return found

    def invited(self, role: Role = Role.OWNER, name: str = "Ada") -> str:
        """The link of an invitation of the first merchant."""
        return people.invite_to(self.services, "mer_1", name=name, role=role).link

    def member(self, role: Role = Role.OWNER, name: str = "Ada") -> Browser:
        """A browser in which a new member of the first merchant is signed in."""
        if role is not Role.OWNER and not self.services.people.members_of("mer_1"):
            self.member(name="Olga")
        browser = self.browser()
        device = Authenticator(self.base)
        assert browser.join(self.invited(role, name), device).location == "/dashboard/overview"
        browser.get()
        return browser

    def meanwhile(self, port: str, method: str, act: Callable[[], object]) -> None:
        """Run `act` once, before the next call of the port's method."""
        changed: dict[str, Any] = {port: between(getattr(self.services, port), method, act)}
        self.services = replace(self.services, **changed)

    def merchant(self) -> Merchant:
        found = self.services.merchants.get("mer_1")
        assert found is not None
        return found

    def calls(self) -> list[str]:
        """The AWS operations since the last time, in order of first use."""
        found = list(self.dynamo.calls.elements())
        self.dynamo.calls.clear()
        return found


@contextmanager
def dashboard_of(world: World) -> Iterator[Browser]:
    """Yield the browser of the world's merchant, signed in."""
    with dashboard_over(world) as shop:
        yield shop.signed_in(world.api_key)


@contextmanager
def dashboard_over(world: World, **services: Any) -> Iterator[Dashboard]:
    """Yield the dashboard of the world's merchants, with these services in place of the usual."""
    with dashboard() as shop:
        shop.services = replace(
            shop.services,
            clock=world.clock,
            sessions=world.services.sessions,
            refunds=world.services.refunds,
            mandates=world.services.mandates,
            paying=lambda: world.services,
            merchants=dynamo.DynamoMerchants(world.dynamo, PREFIX),
            known_merchants=world.services.merchants,
            api_keys=world.core.api_keys,
            queue=world.queue,
            tasks=world.tasks,
            events=world.services.events,
            daily_totals=world.services.daily_totals,
            links=world.services.links,
            notes=world.services.notes,
            withdrawals=world.services.withdrawals,
            sign_ins=dynamo.DynamoSignIns(world.dynamo, PREFIX),
            people=DynamoPeople(world.dynamo, PREFIX),
            challenges=dynamo.DynamoChallenges(world.dynamo, PREFIX),
            audit=DynamoAudit(world.dynamo, PREFIX),
            **services,
        )
        yield shop


@contextmanager
def dashboard(base: str = BASE) -> Iterator[Dashboard]:
    found = Dashboard(base)
    outer = dict(app.dependency_overrides)

    async def given() -> DashboardServices:
        return found.services

    app.dependency_overrides[dependencies.services] = given
    try:
        yield found
    finally:
        app.dependency_overrides = outer


def upload(browser: Browser, data: bytes, **options: Any) -> Answer:
    files = {"logo": ("logo.png", data, "image/png")}
    fields = {"form_token": browser.form_token}
    answer = browser.client.post(
        "/dashboard/settings",
        data=options.pop("fields", fields),
        files=files,
        headers={"origin": BASE, **options},
    )
    return Answer(answer.status_code, answer.headers, answer.text)


def path_of(location: str) -> str:
    return urlsplit(location).path.removeprefix("/dashboard")


def wallets_page(answer: Answer) -> str:
    """The address to which the answer leads for an approval."""
    links = answer.page.all("a", **{"class": "button"})
    [link] = [each for each in links if "in your wallet" in "".join(each.text)]
    return link.attributes["href"]


def approved(world: World, answer: Answer) -> str:
    """Give the approval that the answer requests in the wallet; return the path of the wallet's
    redirect."""
    back = urlsplit(world.network.approve(wallets_page(answer)))
    world.clock.pass_time(10)  # wallets reject an earlier continuation
    return f"{path_of(back.path)}?{back.query}"


LAMBDA_MAX = 6 * 1024 * 1024


def parts(browser: Browser, path: str) -> list[Answer]:
    """All parts, as the page's script asks for them."""
    found = [browser.get(path)]
    while cursor := found[-1].headers.get("export-next"):
        join = "&" if "?" in path else "?"
        found.append(browser.get(f"{path}{join}cursor={cursor}&append=1"))
    for answer in found:
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert len(json.dumps(answer.body)) < LAMBDA_MAX
    return found


def rows(browser: Browser, path: str) -> list[dict[str, str]]:
    text = "".join(part.body for part in parts(browser, path))
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def of_api(shop: Dashboard, **query: Any) -> list[dict[str, Any]]:
    """All sessions that the merchant API lists for the query, as slowly as its limits allow."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = shop.get(SESSIONS, {"limit": 100, **query, **cursor}).json
        found += page["data"]
        if not page["has_more"]:
            return found
        cursor = {"cursor": page["next_cursor"]}
        shop.clock.pass_time(1)


def members(shop: Dashboard) -> dict[str, Member]:
    return {each.name: each for each in shop.services.people.members_of("mer_1")}


def linked(browser: Browser, name: str = "Ada", role: str = "owner") -> str:
    return browser.post("/people", {"name": name, "role": role}).secret
