"""The return from the wallet: replayed, forged, of another session, too early and too late.

Anybody can call it. Without the one hash that only the asked server can make, nothing is redeemed,
asked or written; with it, the approval pays once.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from checkout.domain.session.record import Session, Status
from checkout.flows.session import approve
from tests.support.attack_counts import Attack
from tests.support.doors import Doors, Visitor
from tests.support.flows import CEDAR
from tests.support.hosted_pages import Answer


@dataclass(frozen=True)
class Returning:
    """A session whose customer has approved, their browser, and what the wallet gave them."""

    session: Session
    browser: Visitor
    reference: str
    hash: str
    url: str


def returning(doors: Doors) -> Returning:
    browser = Visitor()
    session, url = doors.approved(browser)
    query = parse_qs(urlsplit(url).query)
    return Returning(session, browser, query["interact_ref"][0], query["hash"][0], url)


def come_back(
    doors: Doors, session: Session, query: str, browser: Visitor | None = None, method: str = "GET"
) -> Answer:
    path = f"/{session.id}/grant/callback"
    return doors.pay(method, path, query=query, visitor=browser)


def query_of(reference: str, presented: str) -> str:
    return urlencode({"interact_ref": reference, "hash": presented})


def assert_pays_once(doors: Doors, back: Returning) -> None:
    """The true return still works, after all that was tried."""
    before = doors.world.received()
    payments = doors.world.transport.count("POST", "/outgoing-payments")
    assert doors.follow(back.url, back.browser).location == f"/pay/{back.session.id}/success"
    assert doors.world.session(back.session.id).status is Status.COMPLETED
    assert doors.world.received() - before == 2000
    assert doors.world.transport.count("POST", "/outgoing-payments") == payments + 1


def wrong_hashes(back: Returning) -> dict[str, str]:
    """Return hashes of everything that somebody without the two nonces could put together."""
    grant_url = str(back.session.interact_url).partition("/interact/")[0]
    true = base64.b64decode(back.hash)
    parts = {
        "nothing": "",
        "the reference": back.reference,
        "empty nonces": f"\n\n{back.reference}\n{grant_url}",
        "empty nonces and a slash": f"\n\n{back.reference}\n{grant_url}/",
        "no grant URL": f"\n\n{back.reference}\n",
        "the session's id as nonce": f"{back.session.id}\n\n{back.reference}\n{grant_url}",
        "both": f"{back.session.id}\n{back.session.id}\n{back.reference}\n{grant_url}",
        "the approval's address": f"\n\n{back.reference}\n{back.session.interact_url}",
    }
    found = {
        f"sha-256 of {name}": base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in parts.items()
    }
    changed = [(0, 1), (0, 128), (15, 1), (31, 1), (31, 128)]
    for place, bit in changed:
        other = bytearray(true)
        other[place] ^= bit
        found[f"bit {bit} of byte {place}"] = base64.b64encode(other).decode()
    return found | {
        "cut": base64.b64encode(true[:-1]).decode(),
        "longer": base64.b64encode(true + b"\x00").decode(),
        "half": base64.b64encode(true[:16]).decode(),
        "doubled": base64.b64encode(true + true).decode(),
        "sha-512 of it": base64.b64encode(hashlib.sha512(true).digest()).decode(),
        "hex": true.hex(),
        "base32": base64.b32encode(true).decode(),
        "in capitals": back.hash.upper(),
        "reversed": back.hash[::-1],
        "a prefix": f"sha-256:{back.hash}",
        "a scheme": f"sha-256=:{back.hash}:",
        "quoted": f'"{back.hash}"',
        "a nul": f"{back.hash}\x00",
        "a line break": f"{back.hash}\n",
        "two": f"{back.hash},{back.hash}",
        "padding before": f"={back.hash}",
        "zeros": base64.b64encode(bytes(32)).decode(),
        "a word": "true",
        "null": "null",
        "a list": f'["{back.hash}"]',
        "full width": back.hash.translate({ord("A") + n: 0xFF21 + n for n in range(26)}) + "Ａ",
        "the reference itself": back.reference,
        "the session's id": back.session.id,
        "long": "A" * 9000,
    }


def test_no_other_hash_is_taken(doors: Doors, attack: Attack) -> None:
    back = returning(doors)

    def attempt(presented: str) -> None:
        with doors.nothing_happens():
            for browser in (None, back.browser):
                answer = come_back(
                    doors, back.session, query_of(back.reference, presented), browser
                )
                assert answer.status == 400
            query = query_of(back.reference, presented)
            assert come_back(doors, back.session, query, back.browser, "POST").status == 400

    attack.each(wrong_hashes(back), attempt)
    assert_pays_once(doors, back)


def references(back: Returning) -> dict[str, str]:
    return {
        "empty": "",
        "cut": back.reference[:-1],
        "longer": f"{back.reference}0",
        "in capitals": back.reference.upper() + "X",
        "a line break and a server": f"{back.reference}\nhttps://evil.example",
        "a nul": f"{back.reference}\x00",
        "a blank": f"{back.reference} ",
        "a path": f"../{back.reference}",
        "quoted": f'"{back.reference}"',
        "an escape": f"{back.reference}\x1b",
        "of another script": f"{back.reference}é",
        "a token": f"GNAP {back.reference}",
        "long": "a" * 9000,
        "the session": back.session.id,
    }


def test_no_other_reference_is_taken(doors: Doors, attack: Attack) -> None:
    back = returning(doors)

    def attempt(reference: str) -> None:
        with doors.nothing_happens():
            query = query_of(reference, back.hash)
            assert come_back(doors, back.session, query, back.browser).status == 400

    attack.each(references(back), attempt)
    assert_pays_once(doors, back)


QUERIES = [
    *("", "interact_ref={ref}", "hash={hash}", "interact_ref={ref}&hash="),
    *("interact_ref=&hash={hash}",),
    *("interact_ref={ref}&hash={hash}&hash=x", "interact_ref={ref}&interact_ref=x&hash={hash}"),
    *("interact_ref={ref}&hash={hash}&hash={hash}", "interact_ref[]={ref}&hash[]={hash}"),
    *("Interact_Ref={ref}&Hash={hash}", "interact_ref={ref};hash={hash}", "interact%5Fref={ref}"),
    *("interact_ref%00={ref}&hash={hash}", "interact-ref={ref}&hash={hash}"),
    *("code={ref}&hash={hash}",),
    *("result=&interact_ref={ref}", "result=approved&result=approved", "state={hash}&ref={ref}"),
    *("{ref}", "{ref}&{hash}", "?interact_ref={ref}&hash={hash}"),
    *("interact_ref={ref}#&hash={hash}", "interact_ref={ref}&interact_ref={ref}&hash={hash}"),
    *("result=", "result=grant_rejected&result=grant_rejected"),
    *("interact_ref={ref}%ff&hash={hash}",),
    *("interact_ref={ref}&hash={hash}%1b", "interact_ref={ref}&hash=%F0%9F%92%B8"),
    *("interact_ref={ref}%0a&hash={hash}", "interact_ref={ref}%00&hash={hash}"),
    *("interact_ref=00000000-0000-0000-0000-000000000000&hash={hash}",),
]  # fmt: skip


def test_no_other_query_is_taken(doors: Doors, attack: Attack) -> None:
    back = returning(doors)

    def attempt(form: str) -> None:
        query = form.format(ref=quote(back.reference), hash=quote(back.hash, safe=""))
        with doors.nothing_happens():
            for method in ("GET", "POST"):
                answer = come_back(doors, back.session, query, back.browser, method)
                assert answer.status == 400, answer.status

    attack.each(QUERIES, attempt)
    assert_pays_once(doors, back)


RESULTS = [
    *("approved", "success", "completed", "true", "grant_approved", "grant_rejected", "1", "null"),
    *("<script>alert(1)</script>", "{{7*7}}", "%00", "../success", "https://evil.example"),
    *("é" * 500,),
]  # fmt: skip


def test_no_result_without_a_hash_decides_anything(doors: Doors, attack: Attack) -> None:
    """Nor is one noted, unless the browser that began the approval says that it was declined."""
    back = returning(doors)

    def attempt(result: str) -> None:
        browser = Visitor() if result in approve.RESULTS else back.browser
        with doors.nothing_happens():
            query = urlencode({"result": result})
            for method in ("GET", "POST"):
                answer = come_back(doors, back.session, query, browser, method)
                assert answer.status == 200
                assert "<script>alert" not in answer.body

    attack.each([*RESULTS, "invalid_interaction"], attempt)
    assert_pays_once(doors, back)


@pytest.mark.parametrize("result", approve.RESULTS)
def test_the_customers_own_browser_has_its_report_noted_once_and_nothing_else_happens(
    doors: Doors, result: str
) -> None:
    back = returning(doors)
    before = doors.world.session(back.session.id)
    query = urlencode({"result": result})
    come_back(doors, back.session, query, back.browser, "GET")
    noted = doors.world.session(back.session.id)
    with doors.nothing_happens():
        for method in ("GET", "POST"):
            come_back(doors, back.session, query, back.browser, method)
    changed = ("version", "writer", "updated_at", "history", "payment_attempts")
    assert replace(noted, **{name: getattr(before, name) for name in changed}) == before
    assert_pays_once(doors, back)


def test_no_callback_serves_another_session(doors: Doors, attack: Attack) -> None:
    """Every mixture of two sessions' references, hashes, addresses and browsers."""
    mine, theirs = returning(doors), returning(doors)
    mixed = [
        (at, reference.reference, presented.hash, browser)
        for at, other in ((mine, theirs), (theirs, mine))
        for reference, presented in ((other, other), (at, other), (other, at))
        for browser in (mine.browser, theirs.browser, Visitor())
    ]

    def attempt(case: tuple[Returning, str, str, Visitor]) -> None:
        at, reference, presented, browser = case
        with doors.nothing_happens():
            answer = come_back(doors, at.session, query_of(reference, presented), browser)
            assert answer.status == 400

    attack.each({str(number): case for number, case in enumerate(mixed)}, attempt)
    for back in (mine, theirs):
        assert_pays_once(doors, back)


# --- the order of things


EARLIER: dict[str, Callable[[Doors, Returning], Answer]] = {
    "paid": lambda doors, back: doors.follow(back.url, back.browser),
    "canceled": lambda doors, back: doors.call("POST", f"/{back.session.id}/cancel"),
    "expired by request": lambda doors, back: doors.call("POST", f"/{back.session.id}/expire"),
    "expired by time": lambda doors, back: doors.call("GET", f"/{back.session.id}"),
    "another wallet": lambda doors, back: doors.submit(back.session, f"{CEDAR}/carol"),
    "the wallet again": lambda doors, back: doors.submit(back.session),
    "a wallet that failed": lambda doors, back: doors.submit(back.session, f"{CEDAR}/unpeered"),
}


@pytest.mark.parametrize("before", EARLIER)
def test_a_callback_that_comes_too_late_does_nothing(
    doors: Doors, attack: Attack, before: str
) -> None:
    back = returning(doors)
    if before == "expired by time":
        doors.world.clock.pass_time(86_400)
    EARLIER[before](doors, back)
    assert doors.world.session(back.session.id) != back.session, "something has happened"
    money = doors.world.received()

    def attempt(case: tuple[str, Visitor]) -> None:
        method, browser = case
        with doors.nothing_happens():
            query = query_of(back.reference, back.hash)
            answer = come_back(doors, back.session, query, browser, method)
            assert answer.status in (303, 400), answer.status

    browsers = [back.browser, Visitor(), Visitor()]
    attack.each([(method, each) for method in ("GET", "POST") for each in browsers], attempt)
    assert doors.world.received() == money <= 2000


def test_a_callback_before_anything_was_asked_does_nothing(doors: Doors, attack: Attack) -> None:
    back = returning(doors)
    early = doors.create()

    def attempt(query: str) -> None:
        with doors.nothing_happens():
            for method in ("GET", "POST"):
                answer = come_back(doors, early, query, Visitor(), method)
                assert answer.location == f"/pay/{early.id}"

    attack.each(
        [query_of(back.reference, back.hash), query_of("x", "x"), query_of("x", back.hash)],
        attempt,
    )


def test_of_many_returns_one_pays(doors: Doors, attack: Attack) -> None:
    back = returning(doors)
    assert_pays_once(doors, back)

    def attempt(number: int) -> None:
        with doors.nothing_happens():
            browser = back.browser if number % 2 else Visitor()
            method = "POST" if number % 3 == 0 else "GET"
            query = query_of(back.reference, back.hash)
            answer = come_back(doors, back.session, query, browser, method)
            assert answer.location == f"/pay/{back.session.id}/success"

    attack.each(range(12), attempt)
