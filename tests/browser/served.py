"""The hosted pages on a loopback port, over a whole world in one process whose clock is the test's.

The wallets' own pages are a stand-in: `Served.approve` and `decline` are what their buttons do.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Response,
    Route,
    ViewportSize,
)
from starlette.types import Receive, Scope, Send

from checkout.domain.ground.errors import MailRefused
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.record import Session
from checkout.flows.payment import sealed
from checkout.flows.payment.sealed import Proof
from checkout.ports import Email
from pay.app import app
from sandbox.wallets.provider import Rules
from tests.support.flows import World
from tests.support.hosted_pages import Customer, customer
from tests.support.processes import free_base
from tests.support.serving import serving

# The words of browsers for the one of two ways that the other has ended.
ABORTED = ("net::ERR_ABORTED", "is interrupted by another navigation")
PHONE = ViewportSize(width=375, height=812)
DESKTOP = ViewportSize(width=1280, height=900)
_WALLETS = re.compile(r"^https?://localhost:4[12]\d\d/")
_SHOP = re.compile(r"^https://shop\.example/")
# The host of the items' pictures; pictures with these names are missing.
PICTURES = "https://cdn.shop.example"
_MISSING = "missing"


Headers = list[tuple[bytes, bytes]]


def without_fetch_metadata(headers: Headers) -> Headers:
    """Return the headers as an older browser sends them, or a proxy that strips unknown ones."""
    return [(name, value) for name, value in headers if not name.startswith(b"sec-fetch-")]


def without_origin(headers: Headers) -> Headers:
    """Return them as a browser sends them that hides where its forms come from, too."""
    return [
        (name, b"null" if name == b"origin" else value)
        for name, value in without_fetch_metadata(headers)
    ]


class _Nowhere:
    """`ports.Mail` that takes all letters but those to `refused`."""

    def send(self, letter: Email) -> None:
        if letter.to.startswith("refused"):
            raise MailRefused("The mail service did not take the e-mail.")


class Copies:
    """ASGI app that is `pay.app`, but answers `?copy=NAME` with a page that was shown before.

    So what only a form leads to has an address that a program can open. `proxy` may change the
    headers of each request first.
    """

    def __init__(self) -> None:
        self._pages: dict[bytes, tuple[dict[str, str], bytes]] = {}
        self.proxy: Callable[[Headers], Headers] = list

    def keep(self, name: str, shown: Response) -> None:
        """Keep the body and the headers of a page; its status will be 200."""
        headers = {key: value for key, value in shown.headers.items() if key != "set-cookie"}
        headers["content-encoding"] = "gzip"
        body = gzip.compress(shown.body())
        headers["content-length"] = str(len(body))
        self._pages[f"copy={name}".encode()] = (headers, body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kept = self._pages.get(scope.get("query_string", b""))
        if kept is None:
            await app({**scope, "headers": self.proxy(scope["headers"])}, receive, send)
            return
        headers, body = kept
        sent = [(key.encode(), value.encode()) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Served:
    base: str
    customer: Customer
    copies: Copies

    @property
    def world(self) -> World:
        return self.customer.world

    def address(self, session: Session, rest: str = "") -> str:
        return f"{self.base}/pay/{session.id}{rest}"

    def reopen(self, page: Page, session: Session) -> None:
        """Open the session's page in `page`, which shows it already.

        Its script may be on the way to a new state at that moment: the browser then aborts one of
        the two.
        """
        try:
            page.goto(self.address(session))
        except Error as error:
            if not any(words in error.message for words in ABORTED):
                raise
            page.goto(self.address(session))

    def approve(self, page: Page) -> None:
        page.goto(self.world.network.approve(page.url))

    def decline(self, page: Page) -> None:
        page.goto(self.world.network.decline(page.url))

    def hand_over(self, session: Session) -> str:
        """Return the address in the QR code of the browser that submitted the wallet."""
        grant = sealed.pending_grant(self.world.services.vault, session)
        assert grant is not None
        return self.address(session, f"?device={grant.proof(session.id, Proof.DEVICE)}")

    def asked_to_wait(self) -> tuple[Session, str]:
        """A session whose wallet wants 20 s after the approval, and the callback's address."""
        providers = self.world.network.providers
        usual = providers["cedar"]
        providers["cedar"] = replace(usual, rules=replace(usual.rules, wait=20))
        try:
            session = self.world.submit(self.world.create())
            assert session.interact_url is not None
            return session, self.world.network.approve(session.interact_url)
        finally:
            providers["cedar"] = usual

    @contextmanager
    def mail(self) -> Iterator[None]:
        """For a while receipts are sent by e-mail, to nowhere."""
        before = self.world.services
        self.world.services = replace(before, mail=_Nowhere())
        try:
            yield
        finally:
            self.world.services = before

    @contextmanager
    def behind(self, proxy: Callable[[Headers], Headers]) -> Iterator[None]:
        """For a while all requests come through a proxy that changes their headers."""
        self.copies.proxy = proxy
        try:
            yield
        finally:
            self.copies.proxy = list

    @contextmanager
    def merchant(self, **changes: Any) -> Iterator[None]:
        """For a while the merchant has other looks."""
        before = self._put(self.world.merchant.changed(**changes))
        try:
            yield
        finally:
            self._put(
                self.world.merchant.changed(**{name: getattr(before, name) for name in changes})
            )

    def _put(self, merchant: Merchant) -> Merchant:
        """The one before."""
        before, self.world.merchant = self.world.merchant, merchant
        self.world.services.merchants.replace(merchant)
        return before


@contextmanager
def served() -> Iterator[Served]:
    world = World(rules=Rules(wait=0))  # its clock stands still while a browser waits
    port = free_base()
    base = f"http://localhost:{port}"
    world.services = replace(world.services, base_url=base)
    world.merchant = world.merchant.changed(name="Harbor Coffee")
    world.services.merchants.replace(world.merchant)
    copies = Copies()
    with customer(world) as asks, serving(copies, port):
        yield Served(base, asks, copies)


def new_context(
    browser: Browser,
    *,
    script: bool = True,
    scheme: str = "light",
    wide: bool = True,
    tag: str = "en",
) -> BrowserContext:
    """A customer's browser, to which only the pages are real."""
    context = browser.new_context(
        java_script_enabled=script,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport=DESKTOP if wide else PHONE,
        locale=tag,
        reduced_motion="reduce",
    )
    for elsewhere, title in ((_WALLETS, "A wallet"), (_SHOP, "A shop")):
        context.route(elsewhere, _answering(f"<!doctype html><title>{title}</title><h1>{title}"))
    context.route(f"{PICTURES}/**", _picture)
    return context


def _picture(route: Route) -> None:
    """Answer with a picture whose color is the first path segment."""
    name = route.request.url.removeprefix(f"{PICTURES}/").partition(".")[0]
    if name == _MISSING:
        route.fulfill(status=404)
        return
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8" '
        f'fill="{name}"/><circle cx="4" cy="4" r="2.5" fill="#fff8"/></svg>'
    )
    route.fulfill(body=svg, content_type="image/svg+xml")


def _answering(html: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=html, content_type="text/html")
