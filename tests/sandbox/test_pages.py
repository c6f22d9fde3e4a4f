"""The wallets' pages: accounts, keys, and the consent page with its redirect."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from checkout.domain.merchant.people import SignUp
from checkout.flows.payment import approval
from checkout.flows.refund import budget
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from sandbox.wallets.intervals import frequency
from tests.support.dashboard_pages import dashboard_over
from tests.support.flows import World as Shop
from tests.support.flows import lose_answers
from tests.support.refund_books import again, ask, come_back, consent, fund, paid, prepare, wait
from tests.support.sign_up import signed_up, wallets_page
from tests.support.sources import REPOSITORY, files
from tests.support.wallet_client import ALICE, CEDAR, FINISH, SHOP, World, callback, jwk

PAGES = "http://localhost:4100"


def get(world: World, path: str) -> Response:
    url = path if path.startswith("http") else PAGES + path
    return world.network.handle_page(Request("GET", url, {"host": "localhost:4100"}))


def post(world: World, path: str, form: str, **headers: str) -> Response:
    url = path if path.startswith("http") else PAGES + path
    return world.network.handle_page(Request("POST", url, headers, form.encode()))


def asked(world: World, wallet: str = ALICE, **more: Any) -> tuple[dict[str, Any], str]:
    incoming = world.incoming_payment(SHOP, 2000)
    euro = {"value": "1854", "assetCode": "EUR", "assetScale": 2}
    limits = {"receiver": incoming["id"], "debitAmount": euro}
    pending = world.ask(wallet, limits, **more)
    return pending, pending["interact"]["redirect"]


def test_the_start_page_lists_every_wallet_and_what_it_does(world: World) -> None:
    page = html.unescape(get(world, "/").body.decode())
    for wallet in world.network.state.accounts:
        assert f"<code>{wallet}</code>" in page
    assert "The consent page declines, whatever the customer chooses." in page


def test_an_account_shows_that_money_moved(world: World) -> None:
    world.pay(ALICE, SHOP, 2000)
    alice = get(world, f"/account?address={quote(ALICE, safe='')}").body.decode()
    assert "9981.46 EUR" in alice
    assert "-18.54 EUR" in alice
    assert "Harbor Coffee" in alice
    shop = get(world, f"/account?address={quote(SHOP, safe='')}").body.decode()
    assert re.search(r'id="balance">20\.00 USD<', shop)


def test_the_consent_page_tells_who_is_paid_and_how_much(world: World) -> None:
    _, url = asked(world)
    answer = get(world, url)
    page = answer.body.decode()
    assert answer.status == 200
    assert "Harbor Coffee" in page
    assert 'id="most">18.54 EUR<' in page
    assert 'id="receives">20.00 USD<' in page
    assert page.count("<form") == 1
    assert "<script" not in page


@dataclass(frozen=True)
class Consent:
    """An approval that a flow of the product asks for, and what its page says of it."""

    module: str  # which asks
    page: Callable[[Shop], str | None]
    said: tuple[str, ...]


def read_again(shop: Shop) -> str | None:
    """Return the page of a refund whose result can no longer be read."""
    prepared = prepare(shop, ask(shop, paid(shop)))
    callback = consent(shop, prepared)
    shop.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"), times=9)
    come_back(shop, prepared, callback)
    shop.clock.pass_time(700)
    shop.transport.after = lose_answers("/token/", OutcomeUnknown("lost"))
    return prepare(shop, wait(shop, again(shop, prepared))).interact_url


def of_a_new_shop(shop: Shop) -> str:
    services = {"sign_up": SignUp.OPEN, "wallets": lambda: shop.services.wallets}
    with dashboard_over(shop, **services) as dashboard:
        return wallets_page(signed_up(dashboard))


READS = ("Show your payments", "may see your payments. It cannot pay.")
CONSENTS = {
    "a purchase": Consent(
        "session/prepare.py",
        lambda shop: shop.submit(shop.create()).interact_url,
        ("Approve a payment", "You pay at most, once", "18.54 EUR", "20.00 USD"),
    ),
    "a refund": Consent(
        "refund/approve.py",
        lambda shop: prepare(shop, ask(shop, paid(shop))).interact_url,
        ("Approve a payment", "You pay at most, once", "20.42 USD", "18.54 EUR"),
    ),
    "the result of a refund": Consent("refund/approve.py", read_again, READS),
    "a refund budget": Consent(
        "refund/budget.py",
        lambda shop: budget.ask(shop.services, shop.key(), 100_00).interact_url,
        ("Approve a payment", "You pay at most, each month", "100.00 USD"),
    ),
    "a sign-up": Consent("people/ownership.py", of_a_new_shop, READS),
}


@pytest.mark.parametrize("name", CONSENTS)
def test_each_approval_that_the_product_asks_for_is_told_as_what_it_allows(name: str) -> None:
    shop, asked = Shop(), CONSENTS[name]
    fund(shop)
    url = asked.page(shop)
    assert url is not None
    request = Request("GET", url, {"host": "localhost:4100"})
    page = re.sub(r"<[^>]+>", "", shop.network.handle_page(request).body.decode())
    assert [each for each in asked.said if each not in page] == []
    assert ("You pay" in page) == (asked.said != READS)
    assert "no limit" not in page


def test_no_flow_asks_for_an_approval_that_is_not_here() -> None:
    flows = Path(approval.__file__).parents[1]
    asking = {
        str(each.relative_to(flows))
        for each in files(".py", str(flows.relative_to(REPOSITORY)))
        if "approval.ask(" in each.read_text("utf-8")
    }
    assert asking == {each.module for each in CONSENTS.values()}


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ("R/2026-03-01T00:00:00Z/P1M", "each month"),
        ("R5/2026-03-01T00:00:00Z/P3M", "every 3 months"),
        ("R/2026-03-01T00:00:00Z/P1D", "each day"),
        ("2026-03-01T00:00:00Z/P14D", "every 14 days"),
        ("R/2026-03-01T00:00:00Z/PT8H", "in each period of R/2026-03-01T00:00:00Z/PT8H"),
        ("2026-03-01T00:00:00Z/2026-04-01T00:00:00Z", "in each period of 2026-03-01"),
    ],
)
def test_an_interval_is_told_in_words(interval: str, said: str) -> None:
    assert frequency(interval).startswith(said)


def test_a_grant_without_a_limit_is_told_as_one(world: World) -> None:
    url = world.ask(ALICE, {})["interact"]["redirect"]
    assert "any amount (no limit is set)" in get(world, url).body.decode()


def test_approving_in_the_browser_leads_back_with_hash_and_reference(world: World) -> None:
    pending, url = asked(world)
    path = url.split("?")[0]
    chosen = post(world, path, "choice=approve", origin=PAGES)
    assert chosen.status == 303
    back = get(world, chosen.headers["location"])
    assert back.status == 302
    found = callback(back.headers["location"])
    assert found.keys() == {"order", "hash", "interact_ref"}
    assert back.headers["location"].startswith(FINISH)
    world.clock.pass_(5)
    assert world.proceed(pending, found["interact_ref"])[0] == 200


def test_the_page_can_be_opened_again_until_something_was_chosen(world: World) -> None:
    _, url = asked(world)
    assert get(world, url).status == get(world, url).status == 200
    post(world, url.split("?")[0], "choice=decline")
    again = get(world, url)
    assert again.status == 302
    assert callback(again.headers["location"])["message"] == "invalid interaction"


def test_a_late_customer_is_told_and_can_go_back(world: World) -> None:
    _, url = asked(world)
    world.clock.pass_(600)
    page = get(world, url).body.decode()
    assert "The time to approve has run out" in page
    assert "<form" not in page
    back = get(world, url.split("?")[0] + "/finish")
    assert callback(back.headers["location"])["message"] == "interaction expired"


@pytest.mark.parametrize("wallet", [ALICE, f"{CEDAR}/no-return"])
def test_a_customer_who_is_not_sent_back_sees_thanks(world: World, wallet: str) -> None:
    _, url = asked(world, wallet, **({"finish": None} if wallet == ALICE else {}))
    chosen = post(world, url.split("?")[0], "choice=approve")
    thanks = get(world, chosen.headers["location"])
    assert thanks.status == 202
    assert "Approved." in thanks.body.decode()


def test_an_unknown_interaction_is_refused(world: World) -> None:
    _, url = asked(world)
    path = url.split("?")[0]
    assert get(world, path[:-1]).status == 400
    assert post(world, path[:-1], "choice=approve").status == 400


def test_a_form_of_another_site_is_refused(world: World) -> None:
    _, url = asked(world)
    answer = post(world, url.split("?")[0], "choice=approve", origin="https://evil.example")
    assert answer.status == 403
    assert get(world, url).status == 200


def test_names_are_escaped(world: World) -> None:
    world.network.state.accounts[SHOP].public_name = "<b>Bold & Co</b>"
    _, url = asked(world)
    for page in (get(world, "/"), get(world, url)):
        assert b"<b>" not in page.body
        assert b"&lt;b&gt;Bold &amp; Co" in page.body


def test_a_key_is_generated_and_shown_once(world: World) -> None:
    keys = f"/keys?address={quote(SHOP, safe='')}"
    page = html.unescape(post(world, keys, "do=generate").body.decode())
    kid = re.findall(r'id="key-id">([^<]+)<', page)[0]
    pem = re.findall(r"-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----", page, re.DOTALL)[0]
    private = load_pem_private_key(pem.encode(), None)
    registered = {key["kid"]: key for key in world.network.state.accounts[SHOP].keys}
    assert registered[kid] == jwk(private, kid)  # type: ignore[arg-type]
    assert "BEGIN PRIVATE KEY" not in get(world, keys).body.decode()


def test_an_own_key_is_added_and_nonsense_is_not(world: World) -> None:
    keys = f"/keys?address={quote(ALICE, safe='')}"
    for nonsense in ("{oops", "[]", "{}", json.dumps({**jwk(), "kty": "RSA"})):
        answer = post(world, keys, f"do=add&jwk={quote(nonsense)}")
        assert answer.status == 400
        assert b'role="alert"' in answer.body
    assert world.network.state.accounts[ALICE].keys == []
    assert post(world, keys, f"do=add&jwk={quote(json.dumps(jwk()))}").status == 200
    assert world.network.state.accounts[ALICE].keys == [jwk()]


@pytest.mark.parametrize("path", ["/nowhere", "/account", "/account?address=x", "/keys?address=x"])
def test_a_page_that_is_not_there_says_so(world: World, path: str) -> None:
    assert get(world, path).status == 404
