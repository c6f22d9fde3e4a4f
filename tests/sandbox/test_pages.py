"""The wallets' pages: accounts, keys, and the consent page with its redirect."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from open_payments.transports import Request, Response
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
