"""The hosted pages on a loopback port, over a whole world in one process whose clock is the test's.

The wallets' own pages are a stand-in: `Served.approve` and `decline` are what their buttons do.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, Route, ViewportSize

from checkout.domain.merchant import Merchant
from checkout.domain.session import Session
from checkout.flows.payment import sealed
from checkout.flows.payment.sealed import Proof
from pay.app import app
from sandbox.wallets.provider import Rules
from tests.hosted_pages import Customer, customer
from tests.ports import free_base
from tests.product import World

STARTS_WITHIN = 10  # seconds
PHONE = ViewportSize(width=375, height=812)
DESKTOP = ViewportSize(width=1280, height=900)
_WALLETS = re.compile(r"^https?://localhost:4[12]\d\d/")
_SHOP = re.compile(r"^https://shop\.example/")


@dataclass(frozen=True)
class Served:
    base: str
    customer: Customer

    @property
    def world(self) -> World:
        return self.customer.world

    def address(self, session: Session, rest: str = "") -> str:
        return f"{self.base}/pay/{session.id}{rest}"

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
    config = uvicorn.Config(app, port=port, log_level="warning", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    with customer(world) as asks:
        thread.start()
        try:
            for _ in range(STARTS_WITHIN * 100):
                if server.started:
                    break
                time.sleep(0.01)
            assert server.started, "the pages are not served"
            yield Served(base, asks)
        finally:
            server.should_exit = True
            thread.join()


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
    return context


def _answering(html: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=html, content_type="text/html")
