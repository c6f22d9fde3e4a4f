"""Test the headers of every answer of the hosted pages, and the error pages."""

from __future__ import annotations

import json
import logging
import re
from types import SimpleNamespace
from typing import Any
from urllib.parse import urljoin

import pytest
from fastapi.routing import APIRoute

from checkout.domain.merchant.record import Footer, Logo
from checkout.domain.session.record import Status
from pay import alternative_wallet, details, links, pages, routes, till, withdrawals
from pay.app import handler
from pay.view import paths_of
from tests.support.basics import a_session
from tests.support.cases import PICTURES
from tests.support.flows import CEDAR
from tests.support.gifts import gift
from tests.support.hosted_pages import Answer, Customer, customer, line
from tests.support.merchant_api import gateway_event

NONCE = re.compile(r"'nonce-([A-Za-z0-9+/]{22}==)'")


def some_answers(visitor: Customer) -> dict[str, Answer]:
    world = visitor.world
    paid = world.pay(world.create())
    session = world.create()
    wallet = f"/pay/{session.id}/wallet"
    return {
        "page": visitor.open(session),
        "refused form": visitor.form(session, "x y"),
        "redirect": visitor.form(session),
        "price": visitor.open(session),
        "json": visitor.submit_json(session, {"wallet_address": f"{CEDAR}/carol"}),
        "json error": visitor.submit_json(session, {}),
        "status": visitor.open(session, "/status"),
        "declined": visitor.open(session, "/grant/callback?result=grant_rejected"),
        "bad callback": visitor.open(session, "/grant/callback"),
        "confirmation": visitor.open(paid, "/success"),
        "head": visitor.ask("HEAD", f"/pay/{session.id}"),
        "prefetch": visitor.open(session, headers={"purpose": "prefetch"}),
        "missing": visitor.get("/pay/cs_0000000000000000000000"),
        "no route": visitor.get("/elsewhere"),
        "wrong method": visitor.ask("DELETE", f"/pay/{session.id}"),
        "wrong type": visitor.ask("POST", wallet, content=b"x"),
    }


def test_every_answer_carries_the_security_headers(visitor: Customer) -> None:
    nonces = set()
    identities = set()
    for name, answer in some_answers(visitor).items():
        policy = answer.headers["content-security-policy"]
        found = NONCE.findall(policy)
        assert len(set(found)) == 1, name
        nonces.add(found[0])
        identities.add(answer.headers["request-id"])
        assert NONCE.sub("NONCE", policy) == (
            "default-src 'none'; script-src NONCE; style-src NONCE; img-src 'self' data:; "
            "connect-src 'self'; frame-src 'self'; form-action 'self'; "
            "frame-ancestors 'none'; base-uri 'none'"
        )
        assert answer.headers["cache-control"] == "no-store", name
        # Nothing to other hosts, and our own forms have their real Origin.
        assert answer.headers["referrer-policy"] == "same-origin", name
        assert answer.headers["x-content-type-options"] == "nosniff", name
        assert answer.headers["x-robots-tag"] == "noindex", name
        assert answer.headers["strict-transport-security"] == "max-age=63072000", name
        assert re.fullmatch(r"req_[0-9A-Za-z]{22}", answer.headers["request-id"]), name
        # Only the browser that submits the wallet gets one.
        assert ("set-cookie" in answer.headers) == (name in ("redirect", "json")), name
        if answer.body.startswith("<!doctype"):
            inline = answer.page.all("style") + answer.page.all("script")
            assert {one.attributes["nonce"] for one in inline} == set(found), name
    assert len(nonces) == len(identities) == len(some_answers(visitor))


def test_no_page_loads_from_elsewhere_or_has_inline_handlers_or_styles(visitor: Customer) -> None:
    visitor.give(logo=Logo("image/png", PICTURES["image/png"]))
    for name, answer in some_answers(visitor).items():
        if not answer.body.startswith("<!doctype"):
            continue
        for one in answer.page.elements:
            assert one.attributes.get("src", "/pay/cs_").startswith("/pay/cs_"), name
            assert "style" not in one.attributes, name
            assert not [each for each in one.attributes if each.startswith("on")], name
        assert [one.attributes["href"] for one in answer.page.all("link")] == ["data:,"]


def test_over_http_no_transport_security_is_claimed() -> None:
    with customer(https=False) as visitor:
        answer = visitor.open(visitor.world.create())
        assert "strict-transport-security" not in answer.headers


def test_a_page_is_small_and_compressed(visitor: Customer) -> None:
    items = tuple(line(f"Item {number}", description="x" * 100) for number in range(100))
    for session in (visitor.world.create(), visitor.put(line_items=items)):
        plain = visitor.open(session, headers={"accept-encoding": "identity"})
        small = visitor.open(session, headers={"accept-encoding": "gzip"})
        assert "content-encoding" not in plain.headers
        assert small.headers["content-encoding"] == "gzip"
        assert int(small.headers["content-length"]) < 12 * 1024
        assert small.page.shape() == plain.page.shape()
        assert len(plain.page.all("li", **{"class": "item"})) == len(session.line_items)


def test_a_wrong_method_is_a_405_page_that_names_the_right_ones(visitor: Customer) -> None:
    session = visitor.world.create()
    for method, rest, allowed in (
        ("POST", "", {"GET", "HEAD"}),
        ("GET", "/wallet", {"POST"}),
        ("PUT", "/grant/callback", {"GET", "HEAD", "POST"}),
    ):
        answer = visitor.ask(method, f"/pay/{session.id}{rest}")
        assert answer.status == 405
        assert set(answer.headers["allow"].split(", ")) == allowed
        if rest != "/wallet":
            assert "cannot be opened this way" in answer.page.main


def test_the_address_of_a_form_leads_back_to_the_checkout(visitor: Customer) -> None:
    """After a reload or from the history, at every address that takes POST only."""
    taken: dict[str, set[str]] = {}
    for module in (alternative_wallet, details, links, routes, till, withdrawals):
        for route in module.router.routes:
            assert isinstance(route, APIRoute)
            taken.setdefault(route.path, set()).update(route.methods or ())
    only = sorted(path for path, methods in taken.items() if methods == {"POST"})
    assert len(only) >= 2
    at_till = gift(visitor).id
    session = visitor.put(metadata_json=json.dumps({"payment_link": at_till}))
    for path in only:
        where = path.format(session_id=session.id, link_id=at_till)
        answer = visitor.ask("GET", where, headers={"accept": "text/html,*/*;q=0.8"})
        assert (answer.status, answer.headers["allow"]) == (405, "POST"), path
        assert "cannot be opened this way" in answer.page.main
        [link] = answer.page.links
        assert visitor.ask("GET", urljoin(where, link)).status == 200


def test_the_way_back_of_an_error_page_is_right_at_every_depth(visitor: Customer) -> None:
    session = visitor.world.create()
    found = {
        "": visitor.ask("POST", f"/pay/{session.id}").page.links,
        "/success": visitor.ask("POST", f"/pay/{session.id}/success").page.links,
        "/grant/callback": visitor.open(session, "/grant/callback").page.links,
    }
    assert found == {
        "": [session.id],
        "/success": [f"../{session.id}"],
        "/grant/callback": [f"../../{session.id}"],
    }


def test_an_error_page_names_the_shop_where_it_is_known(visitor: Customer) -> None:
    footer = Footer(company="Shop Ltd", terms="https://shop.example/terms")
    visitor.give(contact="help@shop.example", footer=footer)
    session, link = visitor.put(Status.OPEN), visitor.world.link()
    foreign = visitor.open(session, "/grant/callback?interact_ref=a&hash=b&hash=c")
    too_large = visitor.ask("POST", f"/buy/{link.id}", data={"email": "x" * 40_000})
    for answer in (foreign, too_large):
        assert answer.status >= 400
        assert "mailto:help@shop.example" in answer.page.links
        assert "https://shop.example/terms" in answer.page.links
        assert "Seller: Shop Ltd" in answer.page.main
    nowhere = visitor.get("/pay/cs_0123456789abcdefABCDEX")
    assert nowhere.status == 404
    assert nowhere.page.links == []


def test_an_unforeseen_error_is_a_500_page_that_tells_nothing(
    visitor: Customer, caplog: pytest.LogCaptureFixture
) -> None:
    session = visitor.world.create()

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("SECRET")

    visitor.world.dynamo.get_item = broken  # type: ignore[method-assign]
    with caplog.at_level(logging.ERROR):
        answers = [visitor.open(session), visitor.form(session), visitor.open(session, "/status")]
    assert [one.status for one in answers] == [500, 500, 500]
    assert "Something went wrong on our side" in answers[0].page.main
    assert answers[0].headers["request-id"] in answers[0].page.main
    assert answers[2].code == "internal_error"
    for answer in answers:
        assert "SECRET" not in answer.body
        assert answer.headers["content-security-policy"]
    assert "SECRET" not in caplog.text


def test_a_base_address_with_a_path_is_kept_in_every_address() -> None:
    session = a_session()
    paths = paths_of(session, "https://shop.example/checkout")
    assert paths.page == f"/checkout/pay/{session.id}"
    assert paths.home == paths.page
    services: Any = SimpleNamespace(base_url="https://shop.example/checkout")
    request: Any = SimpleNamespace(headers={})
    answer = pages.prepared(services, request, session, was="")
    assert answer.headers["location"] == paths.page


def test_a_payment_through_lambda_events() -> None:
    with customer() as visitor:
        world = visitor.world
        session = world.create()
        headers = {
            "host": "pay.example",
            "x-forwarded-proto": "https",
            "accept": "text/html",
            "content-type": "application/x-www-form-urlencoded",
        }

        cookies: list[str] = []

        def ask(method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
            path, _, query = path.partition("?")
            event = gateway_event(method, path, query, headers, body) | {"cookies": cookies}
            answer = handler(event, None)
            cookies.extend(cookie.partition(";")[0] for cookie in answer.get("cookies", []))
            return answer

        page = ask("GET", f"/pay/{session.id}")
        assert page["statusCode"] == 200
        assert page["headers"]["strict-transport-security"]
        assert "Your wallet address" in page["body"]
        form = b"wallet_address=localhost:4101/alice"
        assert ask("POST", f"/pay/{session.id}/wallet", form)["statusCode"] == 303
        awaiting = world.session(session.id)
        assert awaiting.interact_url is not None
        _, _, back = world.network.approve(awaiting.interact_url).partition("//localhost:4000")
        world.clock.pass_time(5)  # as long as the wallet asks to wait
        assert ask("GET", back)["headers"]["location"] == f"/pay/{session.id}/success"
        status = ask("GET", f"/pay/{session.id}/status")
        assert json.loads(status["body"])["status"] == "completed"
