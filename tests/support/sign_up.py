"""Sign up with a shop of one's own, as a person does in a browser."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from checkout.domain.merchant.record import Merchant
from checkout.flows.merchant import suspension
from tests.support.authenticator import Authenticator
from tests.support.dashboard_pages import BASE, Browser, Dashboard
from tests.support.flows import HARBOR, World
from tests.support.hosted_pages import Answer

TEA = f"{HARBOR}/shop-jpy"


def sign_up(
    browser: Browser,
    device: Authenticator | None = None,
    *,
    wallet: str = TEA,
    name: str = "Tea",
    token: str = "",
) -> Answer:
    """Go through the pages as a person does; return the last answer."""
    browser.get("/sign-in")  # any page has the form's token
    fields = {"wallet_address": wallet, **({"invitation": token} if token else {})}
    found = browser.post("/sign-up", fields)
    if found.status != 200:
        return found
    [kept] = found.page.all("input", name="wallet_address")
    fields |= {"wallet_address": kept.attributes["value"], "name": name}
    options = browser.post("/sign-up/options", fields)
    if options.status != 200:
        return options
    made = (device or Authenticator(BASE)).create(json.loads(options.body))
    return browser.post("/sign-up/passkey", {**fields, "credential": made})


def signed_up(shop: Dashboard, **fields: Any) -> Browser:
    """A browser in which a new shop has signed up."""
    browser = shop.browser()
    assert sign_up(browser, **fields).location == "/dashboard"
    browser.get()
    return browser


def wallets_page(browser: Browser) -> str:
    asked = browser.post("/wallet/confirm")
    assert asked.status == 200, asked.body
    [link] = asked.page.all("a", **{"class": "button"})
    return str(link.attributes["href"])


def returned(world: World, browser: Browser) -> str:
    """Approve in the wallet; return the path that it leads to."""
    back = urlsplit(world.network.approve(wallets_page(browser)))
    world.clock.pass_time(10)
    return f"/wallet/callback?{back.query}"


def confirm(world: World, browser: Browser) -> Answer:
    return browser.get(returned(world, browser))


def new_shops(shop: Dashboard, name: str = "Tea") -> list[Merchant]:
    return [each for each in suspension.every(shop.services) if each.name == name]


def newest(shop: Dashboard, name: str = "Tea") -> Merchant:
    [found] = new_shops(shop, name)
    return found
