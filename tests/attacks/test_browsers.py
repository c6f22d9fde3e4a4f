"""The approval belongs to the browser that began it, and to a phone that it was handed over to.

An attacker submits somebody's wallet address to a checkout of their own, and sends them the link to
approve at their wallet. They return to us in a browser that never saw the checkout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import pytest
import segno

from checkout.domain.ground.ids import session_ref
from checkout.domain.session.record import Session, Status
from checkout.flows.payment import sealed
from checkout.flows.payment.sealed import Proof
from sandbox.wallets.provider import Rules
from tests.support.flows import CEDAR, World
from tests.support.hosted_pages import Answer, Customer, another, customer, send_form_at_once

pytestmark = pytest.mark.untraced

ASKS = "the purchase was begun in another browser"
UNPROVEN = "Nothing has been done. Press the button again."
WAIT = 5  # seconds that the sandbox's wallets ask for


@pytest.fixture
def attacker() -> Iterator[Customer]:
    with customer() as found:
        yield found


def approved(first: Customer, wallet: str = f"{CEDAR}/alice") -> tuple[Session, str]:
    """Return a session whose approval the first browser began, and where the wallet leads back."""
    session = first.submitted(wallet)
    return session, first.world.network.approve(str(session.interact_url))


def asked(answer: Answer) -> bool:
    return answer.status == 200 and ASKS in answer.page.main


def asked_again(answer: Answer) -> bool:
    """Whether the page asks, and says why the form that was sent has done nothing."""
    return answer.status == 403 and ASKS in answer.page.main and UNPROVEN in answer.page.main


def assert_nothing_happened(world: World, session: Session, before: int) -> None:
    assert world.session(session.id) == session
    assert len(world.transport.sent) == before
    assert world.received() == 0


def send_form(browser: Customer, url: str, **options: Any) -> Answer:
    """Press the button of the page at `url`: its form has no action of its own, and no fields.

    The wallet's time to wait is over.
    """
    browser.world.clock.pass_time(WAIT)
    return send_form_at_once(browser, url, **options)


def test_the_browser_that_began_is_not_asked(attacker: Customer) -> None:
    session, back = approved(attacker)
    assert attacker.back_from(back).location == f"/pay/{session.id}/success"
    assert attacker.world.received() == 2000


def test_another_browser_is_shown_what_is_paid_and_to_whom_and_pays_nothing(
    attacker: Customer,
) -> None:
    session, back = approved(attacker)
    before = len(attacker.world.transport.sent)
    victim = another(attacker)
    for _ in range(3):
        answer = victim.back_from(back)
        assert asked(answer)
        assert "set-cookie" not in answer.headers
    page = answer.page
    for told in ("Pay €18.54 to Shop?", "Tea", "close this page"):
        assert told in page.main.replace("\xa0", " ")
    [form] = page.all("form")
    assert form.attributes["method"] == "post"
    assert "action" not in form.attributes  # this very address
    assert_nothing_happened(attacker.world, session, before)


def test_the_answer_pays_once_and_asks_no_more(attacker: Customer) -> None:
    session, back = approved(attacker)
    friend = another(attacker)
    assert asked(friend.back_from(back))
    for _ in range(3):
        assert send_form(friend, back).location == f"/pay/{session.id}/success"
    assert attacker.world.session(session.id).status is Status.COMPLETED
    assert attacker.world.received() == 2000
    assert friend.back_from(back).location == f"/pay/{session.id}/success"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_a_form_of_another_site_is_asked_again(attacker: Customer, site: str) -> None:
    session, back = approved(attacker)
    before = len(attacker.world.transport.sent)
    answer = send_form(another(attacker), back, headers={"sec-fetch-site": site})
    assert asked_again(answer)
    assert_nothing_happened(attacker.world, session, before)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "https://localhost:4000"])
def test_a_form_of_another_origin_is_asked_again(attacker: Customer, origin: str) -> None:
    session, back = approved(attacker)
    before = len(attacker.world.transport.sent)
    assert asked_again(send_form(another(attacker), back, headers={"origin": origin}))
    assert_nothing_happened(attacker.world, session, before)


def test_a_form_of_ours_is_taken_from_an_older_browser(attacker: Customer) -> None:
    session, back = approved(attacker)
    own = {"origin": "http://localhost:4000"}
    friend = another(attacker)
    assert send_form(friend, back, headers=own).location == f"/pay/{session.id}/success"


def test_a_form_that_does_not_verify_is_a_400(attacker: Customer) -> None:
    session, back = approved(attacker)
    before = len(attacker.world.transport.sent)
    for forged in (back.replace("hash=", "hash=A"), back.partition("?")[0], back + "&hash=A"):
        assert send_form(another(attacker), forged).status == 400
        assert another(attacker).back_from(forged).status == 400
    assert_nothing_happened(attacker.world, session, before)


def a_proof(world: World, session: Session, use: Proof) -> str:
    grant = sealed.pending_grant(world.services.vault, session)
    assert grant is not None
    return grant.proof(session.id, use)


COOKIES: dict[str, Callable[[World, Session, Session], str]] = {
    "empty": lambda world, mine, other: "",
    "a word": lambda world, mine, other: "x" * 32,
    "not ASCII": lambda world, mine, other: "é" * 32,
    "the link's": lambda world, mine, other: a_proof(world, mine, Proof.DEVICE),
    "another checkout's": lambda world, mine, other: a_proof(world, other, Proof.BROWSER),
    "in capitals": lambda world, mine, other: a_proof(world, mine, Proof.BROWSER).upper() + "A",
}


@pytest.mark.parametrize("case", COOKIES)
def test_a_cookie_that_proves_nothing_is_asked(attacker: Customer, case: str) -> None:
    session, back = approved(attacker)
    other = attacker.submitted()
    before = len(attacker.world.transport.sent)
    [name] = [each for each in attacker.cookies if each.endswith(session_ref(session.id))]
    value = COOKIES[case](attacker.world, session, other)
    header = {"cookie": f"{name}={value}".encode("latin-1")}
    assert asked(another(attacker).back_from(back, headers=header))
    assert_nothing_happened(attacker.world, session, before)


def test_the_cookie_of_an_earlier_try_is_asked(attacker: Customer) -> None:
    """A new submission is a new beginning: the browser before is another one now."""
    session = attacker.submitted()
    friend = another(attacker)
    session = friend.submitted(session=session)
    back = attacker.world.network.approve(str(session.interact_url))
    assert asked(attacker.back_from(back))
    assert friend.back_from(back).location == f"/pay/{session.id}/success"


def test_the_cookie_is_for_this_host_and_no_script() -> None:
    world = World()
    services = replace(world.services, base_url="https://pay.example")
    with customer(world, services=services) as browser:
        cookie = browser.form(world.create()).headers["set-cookie"]
    assert re.match(r"__Host-pay-[0-9a-f]{12}=[0-9a-f]{32}; ", cookie)
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "secure", "samesite=lax", "path=/", "max-age=86400"} == parts


def test_a_wallet_that_wants_time_does_not_ask_again() -> None:
    with customer(World(rules=Rules(wait=20))) as attacker:
        session, back = approved(attacker)
        friend = another(attacker)
        assert asked(friend.back_from(back))
        assert send_form_at_once(friend, back).headers["refresh"] == "20"
        attacker.world.clock.pass_time(20)
        assert friend.back_from(back).location == f"/pay/{session.id}/success"


# --- handed over to a phone


def scanned(browser: Customer, session: Session, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address that the page's QR code holds."""
    drawn = Mock(side_effect=segno.make_qr)
    monkeypatch.setattr(segno, "make_qr", drawn)
    assert browser.open(session, "/qr").headers["content-type"] == "image/svg+xml"
    address: str = drawn.call_args.args[0]
    return address


TYPED = {"sec-fetch-site": "none"}  # what a browser says of a code that was scanned


def follow(browser: Customer, address: str, headers: Mapping[str, str] = TYPED) -> Answer:
    """Open an address: of a scanned code, unless the headers say otherwise."""
    parts = urlsplit(address)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return browser.get(path, headers=dict(headers))


def test_a_phone_that_scans_the_code_pays_without_being_asked(
    attacker: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = attacker.submitted()
    address = scanned(attacker, session, monkeypatch)
    phone = another(attacker)
    opened = follow(phone, address)
    assert opened.location == f"/pay/{session.id}"  # the proof is in no history
    assert "Approve at" in phone.get(opened.location).page.main
    back = attacker.world.network.approve(str(session.interact_url))
    assert phone.back_from(back).location == f"/pay/{session.id}/success"
    assert attacker.world.received() == 2000


LED: dict[str, dict[str, str]] = {
    "another site": {"sec-fetch-site": "cross-site"},
    "a site of the same domain": {"sec-fetch-site": "same-site"},
    "another site, that hides where it is": {"sec-fetch-site": "cross-site", "origin": "null"},
    "two words": {"sec-fetch-site": "none, cross-site"},
    "another case": {"sec-fetch-site": "None"},
    "a browser that does not say": {},
    "one that names a page": {"referer": "https://evil.example/"},
}


@pytest.mark.parametrize("case", LED)
def test_a_link_that_another_site_opens_hands_nothing_over(
    attacker: Customer, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    session = attacker.submitted()
    victim = another(attacker)
    opened = follow(victim, scanned(attacker, session, monkeypatch), LED[case])
    assert (opened.location, "set-cookie" in opened.headers) == (f"/pay/{session.id}", False)
    before = len(attacker.world.transport.sent)
    session = attacker.world.session(session.id)
    back = attacker.world.network.approve(str(session.interact_url))
    assert asked(victim.back_from(back))
    assert_nothing_happened(attacker.world, session, before)


def test_a_link_on_a_page_of_ours_hands_over(
    attacker: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = attacker.submitted()
    phone = another(attacker)
    own = {"sec-fetch-site": "same-origin"}
    follow(phone, scanned(attacker, session, monkeypatch), own)
    back = attacker.world.network.approve(str(session.interact_url))
    assert phone.back_from(back).location == f"/pay/{session.id}/success"


def test_only_the_browser_that_began_hands_over(
    attacker: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = attacker.submitted()
    plain = f"http://localhost:4000/pay/{session.id}"
    assert scanned(another(attacker), session, monkeypatch) == plain
    assert parse_qs(urlsplit(scanned(attacker, session, monkeypatch)).query).keys() == {"device"}


def test_before_a_wallet_is_submitted_the_code_is_the_plain_address(
    attacker: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = attacker.world.create()
    assert scanned(attacker, session, monkeypatch) == f"http://localhost:4000/pay/{session.id}"


@pytest.mark.parametrize("proof", ["", "x", "%00", "é", "0" * 32])
def test_a_link_that_proves_nothing_hands_nothing_over(attacker: Customer, proof: str) -> None:
    session, back = approved(attacker)
    victim = another(attacker)
    before = len(attacker.world.transport.sent)
    answer = victim.open(session, f"?device={proof}", headers=TYPED)
    assert answer.location == f"/pay/{session.id}"
    assert "set-cookie" not in answer.headers
    assert asked(victim.back_from(back))
    assert_nothing_happened(attacker.world, session, before)


def test_the_cookies_own_proof_is_no_link(attacker: Customer) -> None:
    session, back = approved(attacker)
    victim = another(attacker)
    proof = a_proof(attacker.world, session, Proof.BROWSER)
    victim.open(session, f"?device={proof}", headers=TYPED)
    assert asked(victim.back_from(back))


@pytest.mark.parametrize(
    ("method", "headers"), [("HEAD", {}), ("GET", {"sec-purpose": "prefetch"})]
)
def test_a_preview_of_the_link_takes_nothing_over(
    attacker: Customer, monkeypatch: pytest.MonkeyPatch, method: str, headers: dict[str, str]
) -> None:
    session = attacker.submitted()
    parts = urlsplit(scanned(attacker, session, monkeypatch))
    answer = another(attacker).ask(method, f"{parts.path}?{parts.query}", headers=TYPED | headers)
    assert "set-cookie" not in answer.headers


def test_a_link_of_an_earlier_try_hands_nothing_over(
    attacker: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = attacker.submitted()
    address = scanned(attacker, session, monkeypatch)
    session = attacker.submitted(session=session)
    phone = another(attacker)
    assert "set-cookie" not in follow(phone, address).headers
    assert asked(phone.back_from(attacker.world.network.approve(str(session.interact_url))))
