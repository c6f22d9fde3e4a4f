"""Test that text of merchants, customers and wallets comes out as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from checkout.domain.payment.in_flight import Phase, Problem
from checkout.domain.session.record import Session, Status
from open_payments.models import Amount, Quote
from tests.support.basics import NOW
from tests.support.flows import CEDAR
from tests.support.hosted_pages import AWAITING, QUOTE, WALLET, Customer, line

pytestmark = pytest.mark.untraced

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "</title></style></script><svg onload=alert(1)>",
    "<!--",
    "]]><![CDATA[",
    "{{ 7*7 }}{% raw %}{# x #}${7*7}",
    "{0}{shop}{s.__class__}",
    "&lt;b&gt;&quot;",
    "\u202etxt.exe",
    "a\x00b\x0bc",
    "`;alert(1)//",
    "%3Cscript%3E",
]


def put(visitor: Customer, text: str, status: Status, **changes: Any) -> Session:
    """A session with `text` wherever somebody else's words end up."""
    # A browser sends no blanks or invisible characters in an address, and we make no link of such.
    address = "".join(each for each in text if each.isprintable() and each not in " \\")
    wallet = replace(WALLET, id=f"https://wallet.example/{text}")
    price = Quote(
        f"https://wallet.example/{text}",
        Amount(1853, text, 2),
        Amount(2000, text, 2),
        NOW.replace(hour=20),
    )
    fields = {
        **AWAITING,
        "customer": wallet,
        "quote": price,
        "interact_url": f"https://auth.example/?{address}",
        "line_items": (line(text, description=text), line(text)),
        "success_url": f"https://shop.example/?{address}",
        "cancel_url": f"https://shop.example/#{address}",
        "completed_at": NOW,
        "received": 2000,
    }
    return visitor.put(status, **{**fields, **changes})


STAGES: list[tuple[Status, dict[str, Any], str]] = [
    (Status.OPEN, {}, ""),
    (Status.OPEN, {"problem": Problem.PRICE_CHANGED}, ""),
    (Status.PREPARING, {"lease_until": NOW.replace(hour=20)}, ""),
    (Status.AWAITING_APPROVAL, {}, ""),
    (Status.AWAITING_APPROVAL, {}, "/grant/callback?result=grant_rejected"),
    (Status.AWAITING_APPROVAL, {"phase": Phase.PAYING}, ""),
    (Status.PROCESSING, {}, "/success"),
    (Status.COMPLETED, {}, ""),
    (Status.COMPLETED, {}, "/success"),
    (Status.EXPIRED, {}, ""),
    (Status.CANCELED, {}, ""),
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(("status", "fields", "rest"), STAGES)
def test_stored_words_come_out_as_text(
    visitor: Customer, status: Status, fields: dict[str, Any], rest: str, text: str
) -> None:
    plain = visitor.open(put(visitor, "plain", status, **fields), rest).page
    hostile = visitor.open(put(visitor, text, status, **fields), rest).page
    assert hostile.shape() == plain.shape()
    assert plain.links
    for one in hostile.all("a") + hostile.all("form"):
        target = one.attributes.get("href", one.attributes.get("action", ""))
        assert target.startswith(("https://", "/pay/"))
    names = [one for one in hostile.all("span") if one.attributes == {"dir": "auto"}]
    assert "".join(names[0].text).replace("\ufffd", "\x00") == text


@pytest.mark.parametrize("text", HOSTILE)
def test_typed_words_come_out_as_text(visitor: Customer, text: str) -> None:
    session = visitor.world.create()
    plain = visitor.form(session, "https://").page
    answer = visitor.form(session, f"https://{text}")
    assert answer.status == 424
    assert answer.page.shape() == plain.shape()
    assert answer.page.one("input", name="wallet_address").attributes["value"].endswith(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_shops_name_comes_out_as_text(visitor: Customer, text: str) -> None:
    world = visitor.world
    session = world.create()
    plain = visitor.open(session).page
    visitor.give(name=text)
    page = visitor.open(session).page
    assert page.shape() == plain.shape()
    assert page.all("p", dir="auto")[0].text[0].replace("\ufffd", "\x00") == text


@pytest.mark.parametrize("text", HOSTILE)
def test_addresses_come_out_as_text(visitor: Customer, text: str) -> None:
    plain = visitor.get("/pay/plain").page
    for path in (f"/pay/{text}", f"/pay/{text}/success", f"/{text}"):
        answer = visitor.get(quote(path))
        assert answer.status == 404
        assert answer.page.shape() == plain.shape()


@pytest.mark.parametrize("text", HOSTILE)
def test_words_in_a_query_come_out_nowhere(visitor: Customer, text: str) -> None:
    session = visitor.put(Status.AWAITING_APPROVAL, **AWAITING)
    plain = visitor.open(session, "?was=x").page
    assert (
        visitor.open(session, f"?was={quote(text)}&x={quote(text)}").page.shape() == plain.shape()
    )
    plain = visitor.open(session, "/grant/callback?result=x").page
    back = visitor.open(session, f"/grant/callback?result={quote(text)}&message={quote(text)}").page
    assert back.shape() == plain.shape()
    assert back.main == plain.main


def test_a_field_name_that_is_repeated_in_an_error_comes_out_as_text(visitor: Customer) -> None:
    session = visitor.world.create()
    answer = visitor.ask(
        "POST", f"/pay/{session.id}/wallet", data={"wallet_address": CEDAR, HOSTILE[0]: "1"}
    )
    assert answer.status == 400
    assert len(answer.page.all("script")) == 1


def test_a_debit_in_an_unknown_asset_is_still_exact(visitor: Customer) -> None:
    price = replace(QUOTE, debit=Amount(1, "X<b>", 18))
    page = visitor.open(put(visitor, "x", Status.AWAITING_APPROVAL, quote=price)).page
    assert "You pay 0.000000000000000001 X<b>" in page.main
