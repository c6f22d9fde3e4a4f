"""Test the strip and the page of what needs somebody, and notes on sessions."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.errors import Unavailable
from checkout.domain.merchant.people import Role
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.refund.record import RefundRef
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.record import Delivery, EventStatus, GivenUp
from checkout.flows import notices
from checkout.flows.notices import Case
from checkout.flows.session import details
from dashboard.texts import NEED, NEED_NOW
from tests.support.basics import NOW
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.flows import raising
from tests.support.hosted_pages import PAID
from tests.support.merchant_api import PREFIX
from tests.support.samples import a_note, a_withdrawal, an_endpoint, an_event
from tests.support.services import put_key
from tests.support.shop_records import HOOKS, flag, mark, offer_banks, set_endpoint

AWAY = Unavailable("The store does not answer.")
LATE = "Money arrived late for 20.00 USD: "


def strip(browser: Browser) -> str:
    """The words of the strip, and of what it unfolds."""
    found = browser.get("/audit").page.all("div", **{"class": "needs"})
    return " ".join("".join(found[0].text).split()) if found else ""


def attempts(*good: bool) -> tuple[Delivery, ...]:
    return tuple(
        Delivery(NOW + timedelta(seconds=number), 5, 200 if each else 500, None, "")
        for number, each in enumerate(good)
    )


def test_there_are_words_for_every_case() -> None:
    assert set(NEED) == set(NEED_NOW) == set(Case)


def test_nothing_needs_somebody_in_a_shop_where_all_is_well(browser: Browser) -> None:
    assert strip(browser) == ""
    assert "Nothing needs you." in browser.get("/needs").page.main


def test_each_page_says_what_needs_somebody_and_leads_there(
    shop: Dashboard, browser: Browser
) -> None:
    session = flag(shop, client_reference_id="A-1")
    text, verb = "Money arrived late for 20.00 USD of order A-1", "send it back or deliver"
    assert strip(browser) == f"{text}: {verb}"
    page = browser.get("/audit").page
    [link] = [each for each in page.all("a") if "".join(each.text) == verb]
    assert link.attributes["href"] == f"/dashboard/transactions/{session.id}"
    over = flag(shop, Status.COMPLETED, attention=None, received=2002)
    assert strip(browser) == (
        f"2 things need you: {text} {text}: {verb} "
        "Too much money arrived for 20.00 USD: send the rest back "
        f"See all 2, and what to do {verb}"
    )
    assert "/dashboard/needs" in browser.get("/audit").page.links
    page = browser.get("/needs").page
    assert "20.00 USD of order A-1" in page.main
    assert f"20.00 USD {over.id}" in page.main
    assert f"/dashboard/transactions/{session.id}" in page.links
    assert "Money arrived after the session had ended" in page.main
    assert "More money has arrived than was asked for" in page.main
    assert strip(shop.signed_in(shop.other_secret)) == ""


def test_a_strip_says_less_if_the_payment_cannot_be_read_just_now(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag(shop, client_reference_id="A" * 100)
    monkeypatch.setattr(shop.services.sessions, "get", raising(AWAY))
    assert strip(browser).startswith(f"Money arrived late for a payment of order {'A' * 60}…: ")


def test_the_tab_of_payments_counts_payments_only(shop: Dashboard, browser: Browser) -> None:
    set_endpoint(shop, disabled_at=NOW)
    for _ in range(2):
        mark(shop, withdraw(shop, received=2002))
    assert strip(browser).startswith("5 things need you: ")
    page = browser.get("?status=attention").page
    assert page.one("span", **{"class": "count"}).text == ["2"]
    assert page.main.count("2 shown") == 1


def test_what_is_dealt_with_is_gone_until_more_money_comes(
    shop: Dashboard, browser: Browser
) -> None:
    session = flag(shop)
    way = f"/transactions/{session.id}"
    assert "Mark as dealt with" in browser.get(way).page.main
    assert browser.post(f"{way}/dealt-with", {"done": "yes"}).location == f"/dashboard{way}"
    assert strip(browser) == ""
    page = browser.get(way).page
    assert "Dealt with by first" in page.main
    assert "Not dealt with yet" in page.main
    assert "Marked a session as dealt with" in browser.get("/audit").page.main
    browser.post(f"{way}/dealt-with", {"done": "no"})
    assert strip(browser).startswith(LATE)
    assert "Marked a session as not dealt with" in browser.get("/audit").page.main
    case = f"{Attention.LATE_PAYMENT} 500"
    shop.services.notes.put(a_note(session=session.id, dealt_with=case, version=3))
    assert strip(browser).startswith(LATE)


def test_late_money_that_a_refund_sends_back_needs_nobody(
    shop: Dashboard, browser: Browser
) -> None:
    session = flag(shop, refunds=(RefundRef("re_1", 700),))
    assert strip(browser) == ""
    assert "Needs attention" not in browser.get(f"/transactions/{session.id}").page.main
    assert "Needs attention" not in browser.get("?status=all").page.main.split("Newest first")[1]


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("dealt-with", "This session does not need a person."),
        ("withdrawal", "There is no withdrawal from this purchase."),
    ],
)
def test_a_session_that_needs_nobody_is_not_marked(
    shop: Dashboard, browser: Browser, form: str, says: str
) -> None:
    session = shop.store(status=Status.COMPLETED, **PAID)
    refused = browser.post(f"/transactions/{session.id}/{form}", {"done": "yes"})
    assert (refused.status, says in refused.page.main) == (400, True)
    assert shop.services.notes.get(session.id) is None


def test_a_disabled_endpoint_needs_somebody_until_it_is_enabled(
    shop: Dashboard, browser: Browser
) -> None:
    set_endpoint(shop, disabled_at=NOW)
    page = browser.get("/needs").page
    assert "A webhook endpoint is disabled, because your server answered 410" in page.main
    assert HOOKS in page.main
    browser.post("/webhooks/enable")
    assert strip(browser) == ""


@pytest.mark.parametrize(
    ("made", "fails"),
    [
        ((), False),
        ((False, False), False),
        ((False, False, False), True),
        ((True, False, False, False), True),
        ((False, False, False, True), False),
        ((False, False, True, False, False), False),
    ],
)
@pytest.mark.parametrize("further", [False, True])
def test_an_endpoint_whose_last_three_attempts_failed_needs_somebody(
    shop: Dashboard, browser: Browser, made: tuple[bool, ...], fails: bool, further: bool
) -> None:
    other = an_endpoint(url="https://other.example/hooks", id="we_2", created_at=NOW)
    set_endpoint(shop, *([other] if further else []))
    event = an_event(
        id="evt_0123456789abcdefABCDEF" + ("~we_2" if further else ""),
        subject=None,
        status=EventStatus.EXHAUSTED if fails else EventStatus.DELIVERED,
        given_up=GivenUp.ATTEMPTS if fails else None,
        ended_at=NOW,
        endpoint="we_2" if further else None,
        deliveries=(*attempts(*made), Delivery(at=NOW + timedelta(minutes=1))),
    )
    shop.services.events.add(event)
    address = "https://other.example/hooks" if further else HOOKS
    told = f"The webhook endpoint {address} fails: look into it"
    assert strip(browser) == (told if fails else "")
    if fails:
        page = browser.get("/needs").page
        assert "A webhook endpoint fails" in page.main
        assert address in page.main


def test_events_from_before_the_endpoint_do_not_count(shop: Dashboard, browser: Browser) -> None:
    set_endpoint(shop, created_at=NOW + timedelta(days=1))
    shop.services.events.add(an_event(subject=None, deliveries=attempts(False, False, False)))
    assert strip(browser) == ""


def test_a_key_in_use_that_ends_within_a_week_needs_somebody(
    shop: Dashboard, browser: Browser
) -> None:
    browser.post("/keys", {"name": "Web shop", "scopes": "both", "ends": "2026-03-05"})
    assert strip(browser) == ""
    made = shop.key_named("Web shop")
    ends = NOW + timedelta(days=6)
    put_key(shop.dynamo, PREFIX, replace(made, last_used_at=NOW, ends_at=ends))
    page = browser.get("/needs").page
    assert "An API key that your server uses ends soon" in page.main
    assert "Web shop" in page.main
    shop.clock.pass_time(6 * 86_400)
    assert notices.action_items(shop.services, shop.key).found == ()


def refused_key(shop: Dashboard, at: int, event: Event, note: str | None) -> None:
    entry = HistoryEntry(NOW + timedelta(seconds=at), event, note)
    shop.store(history=(HistoryEntry(NOW, "created"), entry))


def test_a_wallet_that_refuses_the_key_needs_somebody_until_it_takes_it(
    shop: Dashboard, browser: Browser
) -> None:
    refused_key(shop, 1, Event.PREPARATION_FAILED, "wallet_unreachable: client_unknown")
    assert strip(browser) == ""
    refused_key(shop, 2, Event.PREPARATION_FAILED, "merchant_wallet_error: client_unknown (401)")
    assert strip(browser) == "A wallet provider has refused your wallet's key: see what to do"
    assert "has refused your wallet's key" in browser.get("/needs").page.main
    refused_key(shop, 3, Event.PREPARED, None)
    assert strip(browser) == ""
    refused_key(shop, 4, Event.APPROVAL_KEPT, "merchant_wallet_error: client_unknown (400)")
    assert strip(browser) == "A wallet provider has refused your wallet's key: see what to do"
    refused_key(shop, 5, Event.PAYMENT_INTENDED, None)
    assert strip(browser) == ""


def test_many_flagged_sessions_are_read_up_to_a_limit_which_is_said(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "SESSIONS_MAX", 2)
    for _ in range(7):
        flag(shop)
    found = notices.action_items(shop.services, shop.key)
    assert (len(found.found), found.more) == (6, True)
    assert "not all were read" in browser.get("/needs").page.main


def test_a_page_works_if_what_needs_somebody_cannot_be_looked_up(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop.services.api_keys, "of", raising(AWAY))
    assert strip(browser) == ""
    assert "could not be looked up just now" in browser.get("/needs").page.main


def test_a_note_and_its_tags_are_kept_and_shown_to_the_merchants_people_only(
    shop: Dashboard, browser: Browser
) -> None:
    session = shop.store()
    way = f"/transactions/{session.id}"
    typed = {"text": "  Phoned.\r\nCalls back <b>  ", "tags": "vip, late,vip", "read": "0"}
    assert browser.post(f"{way}/note", typed).location == f"/dashboard{way}"
    page = browser.get(way).page
    assert "Phoned.\nCalls back <b>" in page.one("textarea", id="text").text
    assert "Last changed by first" in page.main
    assert page.one("input", id="tags").attributes["value"] == "vip, late"
    assert "Wrote a note" in browser.get("/audit").page.main
    assert "Phoned" not in browser.get("/audit").body
    assert "Phoned" not in shop.get(f"/api/checkout/sessions/{session.id}").body


def test_who_writes_over_a_newer_note_is_told_and_keeps_what_was_typed(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = f"/transactions/{shop.store().id}"
    browser.post(f"{way}/note", {"text": "first", "tags": "", "read": "0"})
    late = browser.post(f"{way}/note", {"text": "mine", "tags": "a", "read": "0"})
    assert late.status == 409
    assert "Somebody else has changed the note in the meantime" in late.page.main
    assert "mine" in late.page.one("textarea", id="text").text
    again = {"text": "mine", "tags": "a", "read": "1"}
    with monkeypatch.context() as patched:
        patched.setattr(shop.services.notes, "put", lambda note: False)
        assert browser.post(f"{way}/note", again).status == 409
    assert browser.post(f"{way}/note", again).status == 303


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": "x" * 2001}, "at most 2,000 characters"),
        ({"tags": ",".join(map(str, range(11)))}, "at most 10 tags"),
        ({"tags": "x" * 31}, "at most 30 characters each"),
    ],
)
def test_a_note_has_its_limits(
    shop: Dashboard, browser: Browser, fields: dict[str, str], words: str
) -> None:
    session = shop.store()
    given = {"text": "", "tags": "", "read": "0", **fields}
    refused = browser.post(f"/transactions/{session.id}/note", given)
    assert refused.status == 400
    assert words in refused.page.main
    assert shop.services.notes.get(session.id) is None


def withdraw(shop: Dashboard, **changes: Any) -> Session:
    """A paid session from which its customer has withdrawn."""
    session = shop.store(status=Status.COMPLETED, **{**PAID, "received": 2000, **changes})
    merchant = shop.merchant()
    given = CustomerDetails(name="Eva <b>Muster</b>", email="eva@customer.example")
    said = details.seal_said(shop.services.vault, merchant, session.id, given)
    filed = a_withdrawal(session=session.id, merchant=merchant.id, said=said)
    assert shop.services.withdrawals.put(filed, session)
    return session


def test_a_withdrawal_needs_somebody_until_it_is_answered(
    shop: Dashboard, browser: Browser
) -> None:
    session = withdraw(shop)
    assert strip(browser).startswith("A customer withdrew from a purchase of 20.00 USD: ")
    assert "A customer has withdrawn from their purchase" in browser.get("/needs").page.main
    way = f"/transactions/{session.id}"
    page = browser.get(way).page
    assert "The customer has withdrawn from this purchase" in page.main
    assert "Eva <b>Muster</b>" in page.main
    assert "mailto:eva%40customer.example" in page.links
    assert browser.post(f"{way}/withdrawal", {"done": "yes"}).location == f"/dashboard{way}"
    assert strip(browser) == ""
    assert "Answered by first" in browser.get(way).page.main
    assert "Marked a session as dealt with" in browser.get("/audit").page.main
    browser.post(f"{way}/withdrawal", {"done": "no"})
    assert strip(browser).startswith("A customer withdrew from a purchase of 20.00 USD: ")
    assert "Marked a session as not dealt with" in browser.get("/audit").page.main


def test_a_withdrawal_names_the_order_before_the_sum(shop: Dashboard, browser: Browser) -> None:
    withdraw(shop, client_reference_id="A-1")
    assert strip(browser).startswith("A customer withdrew from order A-1 (20.00 USD): ")


PART = {"attention": Attention.PARTIAL_PAYMENT, "received": 1000}


def test_a_part_says_how_much_of_how_much_arrived_and_stays_until_it_is_decided(
    shop: Dashboard, browser: Browser
) -> None:
    session = flag(shop, Status.PROCESSING, client_reference_id="A-1", **PART)
    told = "Only 10.00 of 20.00 USD of order A-1 arrived: decide"
    assert strip(browser) == told
    assert "10.00 of 20.00 USD of order A-1" in browser.get("/needs").page.main
    way = f"/transactions/{session.id}"
    page = browser.get(way).page
    assert "Mark as dealt with" not in page.main
    assert page.all("div", **{"class": "needs"}) == [], "the page itself says what is to be done"
    browser.post(f"{way}/dealt-with", {"done": "yes"})
    assert strip(browser) == told, "a mark does not hide a decision"


def test_the_page_of_a_payment_has_one_alert_also_after_an_error(
    shop: Dashboard, browser: Browser
) -> None:
    set_endpoint(shop, disabled_at=NOW)
    session = flag(shop, Status.PROCESSING, **PART)
    tags = {"text": "", "tags": ",".join(map(str, range(99))), "read": "0"}
    answer = browser.post(f"/transactions/{session.id}/note", tags)
    assert answer.status == 400
    [alert] = answer.page.all("div", role="alert")
    assert "Needs attention" in "".join(alert.text)
    assert answer.page.all("div", **{"class": "needs"}) == []
    assert "1 other thing needs you" in answer.page.main


def test_a_withdrawal_that_is_refunded_needs_nobody(shop: Dashboard, browser: Browser) -> None:
    session = withdraw(shop, refunds=(RefundRef("re_1", 2000, 0),))
    assert strip(browser) == ""
    assert "All of it is refunded." in browser.get(f"/transactions/{session.id}").page.main


def test_a_flagged_session_with_a_withdrawal_is_two_things(
    shop: Dashboard, browser: Browser
) -> None:
    mark(shop, withdraw(shop, received=2002))
    assert strip(browser).startswith("2 things need you: Too much money arrived for ")


def test_of_two_who_answer_a_withdrawal_at_once_one_is_told(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = withdraw(shop)
    monkeypatch.setattr(type(shop.services.withdrawals), "put", lambda *_: False)
    answer = browser.post(f"/transactions/{session.id}/withdrawal", {"done": "yes"})
    assert answer.status == 409
    assert "Somebody else has changed the withdrawal" in answer.page.main


def test_support_writes_notes_and_sees_a_case_and_answers_none(shop: Dashboard) -> None:
    session = withdraw(shop, received=2002)
    mark(shop, session)
    support, way = shop.member(Role.SUPPORT), f"/transactions/{session.id}"
    page = support.get(way).page.main
    assert "The customer has withdrawn from this purchase" in page
    assert "Save the note" in page
    assert not re.search("Mark as (dealt with|answered)", page)
    assert support.post(f"{way}/note", {"text": "a", "tags": "", "read": "0"}).status == 303
    for form in ("dealt-with", "withdrawal"):
        assert support.post(f"{way}/{form}", {"done": "yes"}).status == 403


def test_the_frame_has_the_shops_letter_its_currency_and_its_provider(
    shop: Dashboard, browser: Browser
) -> None:
    def frame() -> str:
        [bar] = browser.get("/audit").page.all("p", **{"class": "shop"})
        return " ".join("".join(bar.text).split())

    assert frame() == "S Shop USD · wallet.example"
    offer_banks(shop, name="harbor")
    assert frame() == "H harbor USD · Cedar Bank"
