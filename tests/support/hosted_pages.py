"""A customer's browser in front of the hosted pages, over the whole world in one process; and a
parser of their HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

from checkout.domain.ground.ids import new_session_id
from checkout.domain.payment.in_flight import Phase
from checkout.domain.session.record import LineItem, Session, Status
from checkout.services import PayServices
from open_payments.models import Amount, Quote, WalletAddress
from pay import dependencies
from pay.app import app
from tests.support import asgi, merchant_api
from tests.support.basics import NOW, a_session
from tests.support.flows import CEDAR, World

VOID = frozenset({"meta", "link", "input", "br", "img"})
INLINE = frozenset({"a", "bdi", "code", "label", "span", "strong", "time", "title"})
# Isolates, which are invisible, are around inserted texts. Sums have no-break spaces.
ISOLATES = {0x2068: None, 0x2069: None, 0xA0: " "}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    said: list[str] = field(repr=False)  # by the whole page
    begin: int
    end: int | None = None

    @property
    def text(self) -> list[str]:
        """Return its pieces of text, and those of the elements in it."""
        return self.said[self.begin : self.end]


class Page(HTMLParser):
    """The elements of a document; a document that does not nest is refused."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self._said: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, self._open[-1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"doubled attribute in {tag}"
        begin = len(self._said)
        element = Element(tag, {name: value or "" for name, value in attrs}, self._said, begin)
        self.elements.append(element)
        if tag in VOID:
            element.end = begin
        else:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        element = self._open.pop()
        assert element.tag == tag
        element.end = len(self._said)
        if tag not in INLINE:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        self._said.append(data.translate(ISOLATES))

    def all(self, tag: str, **attributes: str) -> list[Element]:
        return [
            one
            for one in self.elements
            if one.tag == tag
            and all(one.attributes.get(name) == value for name, value in attributes.items())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def main(self) -> str:
        """Return the visible text, with single blanks."""
        return " ".join("".join(self.one("main").text).split())

    @property
    def links(self) -> list[str]:
        return [one.attributes["href"] for one in self.all("a")]

    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """Tags and attribute names, in order: what injected text must not change."""
        return [(one.tag, tuple(one.attributes)) for one in self.elements]


class Answer(merchant_api.Answer):
    @cached_property
    def page(self) -> Page:
        assert self.headers["content-type"] == "text/html; charset=utf-8"
        return Page(self.body)

    @property
    def form_token(self) -> str:
        """Return the token of the page's forms, or "" without one; the page is not parsed."""
        found = re.search(r'name="form_token" value="([^"]*)"', self.body)
        return unescape(found[1]) if found else ""

    @property
    def secret(self) -> str:
        """Return the key or secret that the dashboard shows this once."""
        return self.page.one("code", id="secret").text[0]


class Customer:
    """A customer's browser; redirects are not followed, so that tests see each."""

    def __init__(self, world: World, client: asgi.Client) -> None:
        self.world = world
        self._client = client

    @property
    def cookies(self) -> dict[str, str]:
        return dict(self._client.cookies)

    def forget_cookies(self) -> None:
        self._client.cookies.clear()

    def ask(self, method: str, path: str, **options: Any) -> Answer:
        headers = {"accept": "text/html,*/*;q=0.8", **options.pop("headers", {})}
        answer = self._client.request(method, path, headers=headers, **options)
        return Answer(answer.status_code, answer.headers, answer.text)

    def get(self, path: str, **options: Any) -> Answer:
        return self.ask("GET", path, **options)

    def open(self, session: Session, rest: str = "", **options: Any) -> Answer:
        return self.get(f"/pay/{session.id}{rest}", **options)

    def form(self, session: Session, wallet: str = f"{CEDAR}/alice", **options: Any) -> Answer:
        data = {"wallet_address": wallet}
        return self.ask("POST", f"/pay/{session.id}/wallet", data=data, **options)

    def submitted(self, wallet: str = f"{CEDAR}/alice", session: Session | None = None) -> Session:
        """Return a session that awaits the approval of this browser's customer."""
        session = session or self.world.create()
        assert self.form(session, wallet).status == 303
        return self.world.session(session.id)

    def paid(self, session: Session, wallet: str = f"{CEDAR}/alice") -> Session:
        """Return the session once the customer of this browser has paid it."""
        session = self.submitted(wallet, session)
        self.back_from(self.world.network.approve(str(session.interact_url)))
        return self.world.session(session.id)

    def submit_json(self, session: Session, body: Any, **options: Any) -> Answer:
        headers = {"accept": "application/json"}
        path = f"/pay/{session.id}/wallet"
        return self.ask("POST", path, json=body, headers=headers, **options)

    def back_from(self, url: str, **options: Any) -> Answer:
        """Follow the wallet's redirect to our callback, and wait as the page requires."""
        answer = self.back_at_once(url, **options)
        if refresh := answer.headers.get("refresh"):
            self.world.clock.pass_time(int(refresh))
            answer = self.back_at_once(url, **options)
        return answer

    def back_at_once(self, url: str, **options: Any) -> Answer:
        """Follow the wallet's redirect once, as its customer was sent."""
        parts = urlsplit(url)
        return self.get(f"{parts.path}?{parts.query}", **options)

    def put(self, status: Status = Status.OPEN, **changes: Any) -> Session:
        """Store a session of the world's merchant unchanged."""
        changes.setdefault("expires_at", self.world.clock.now() + (a_session().expires_at - NOW))
        session = a_session(
            status,
            id=new_session_id(self.world.services.random_bytes),
            merchant=self.world.merchant.id,
            **changes,
        )
        self.world.services.sessions.create(session, None)
        return session

    def give(self, **looks: Any) -> None:
        """Change the merchant."""
        self.world.merchant = self.world.merchant.changed(**looks)
        self.world.services.merchants.replace(self.world.merchant)

    def put_in(self, stage: str, **changes: Any) -> Session:
        """Store a session of one of the `STAGES`."""
        status, fields = STAGES[stage]
        return self.put(status, **{**fields, **changes})


@contextmanager
def customer(
    world: World | None = None, *, services: PayServices | None = None, https: bool = True
) -> Iterator[Customer]:
    world = world or World()
    outer = dict(app.dependency_overrides)
    app.dependency_overrides[dependencies.services] = lambda: services or world.services
    base = "https://pay.example" if https else "http://localhost:4000"
    try:
        yield Customer(world, asgi.Client(app, base_url=base))
    finally:
        app.dependency_overrides = outer


WALLET = WalletAddress(
    id="https://wallet.example/alice",
    auth_server="https://auth.wallet.example",
    resource_server="https://wallet.example",
    asset_code="EUR",
    asset_scale=2,
)
QUOTE = Quote("https://wallet.example/q/1", Amount(1853, "EUR", 2), Amount(2000, "USD", 2), None)
INTERACT = "https://auth.wallet.example/interact/1/SECRETNONCE"
AWAITING: dict[str, Any] = {
    "customer": WALLET,
    "quote": QUOTE,
    "interact_url": INTERACT,
    "grant": "SEALEDGRANT",
    "token": "SEALEDTOKEN",
}

ENDED: dict[str, Any] = {**AWAITING, "interact_url": None, "grant": None, "token": None}
PAID: dict[str, Any] = {**ENDED, "outgoing_payment": "https://wallet.example/out/1"}
LATER = NOW + timedelta(minutes=5)
STAGES: dict[str, tuple[Status, dict[str, Any]]] = {
    "open": (Status.OPEN, {}),
    "preparing": (Status.PREPARING, {"lease_until": LATER}),
    "awaiting_approval": (Status.AWAITING_APPROVAL, AWAITING),
    "continuing": (
        Status.AWAITING_APPROVAL,
        {**AWAITING, "phase": Phase.CONTINUING, "lease_until": LATER},
    ),
    "paying": (Status.AWAITING_APPROVAL, {**AWAITING, "phase": Phase.PAYING, "check_at": LATER}),
    "processing": (Status.PROCESSING, {**AWAITING, "check_at": LATER}),
    "completed": (Status.COMPLETED, {**PAID, "received": 2000, "completed_at": NOW}),
    "expired": (Status.EXPIRED, ENDED),
    "canceled": (Status.CANCELED, ENDED),
}


def line(name: str, **changes: Any) -> LineItem:
    return replace(LineItem("usd", name, None, 2000, 1), **changes)


def another(first: Customer) -> Customer:
    """A browser without the cookies of the first."""
    client = asgi.Client(app, base_url="https://pay.example")
    return Customer(first.world, client)


def send_form_at_once(browser: Customer, url: str, **options: Any) -> Answer:
    parts = urlsplit(url)
    return browser.ask("POST", f"{parts.path}?{parts.query}", **options)


PHONE = ("scan", "go", "approve")


def orders(desktop: tuple[str, ...], phone: tuple[str, ...]) -> Iterator[list[tuple[str, str]]]:
    """Yield every way in which the steps of both can follow each other."""
    count = len(desktop) + len(phone)
    for places in combinations(range(count), len(phone)):
        rest, own = iter(desktop), iter(phone)
        yield [
            ("phone", next(own)) if number in places else ("desktop", next(rest))
            for number in range(count)
        ]
