"""The list of transactions and one session's page."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.domain.ground.addresses import Address
from checkout.domain.ground.errors import Unavailable
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Role
from checkout.domain.merchant.record import Footer
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import (
    Attention,
    IncomingPaymentRef,
    Instruction,
    Problem,
)
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.refund.record import RefundRef, RefundStatus
from checkout.domain.session.collect import QuestionKind
from checkout.domain.session.customer_details import Answer, CustomerDetails
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.webhooks.event_types import COMPLETED
from checkout.domain.webhooks.record import Delivery, EventStatus, GivenUp
from checkout.flows.session import details
from dashboard import texts
from open_payments.models import Amount
from tests.support.basics import NOW, a_refund
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.flows import raising
from tests.support.hosted_pages import AWAITING, STAGES, Page
from tests.support.merchant_api import PREFIX
from tests.support.outbox import Outbox
from tests.support.samples import an_event
from tests.support.services import store_refund
from tests.support.shop_records import offer_banks, paid, put, stored, story

WALLET = "https://wallet.example/alice"
SECRETS = ("SEALEDGRANT", "SEALEDTOKEN", "SECRETNONCE")


def listed(page: Page) -> list[str]:
    return [link.rsplit("/", 1)[1] for link in page.links if "/transactions/" in link]


def test_transactions_are_listed_newest_first_a_page_at_a_time(shop: Dashboard) -> None:
    browser = shop.signed_in()
    made = [shop.store(created_at=NOW + timedelta(seconds=number)) for number in range(60)]
    newest = [session.id for session in reversed(made)]
    assert "First steps" not in browser.get().page.main
    first = browser.get("?status=all").page
    assert listed(first) == newest[:25]
    assert "25 shown, and there are more." in " ".join(first.main.split())
    assert not way(first, "newer")
    second = browser.get(way(first, "cursor")).page
    assert listed(second) == newest[25:50]
    third = browser.get(way(second, "cursor")).page
    assert listed(third) == newest[50:]
    assert not way(third, "cursor")
    assert listed(browser.get(way(third, "newer")).page) == newest[25:50]
    again = browser.get(way(browser.get(way(third, "newer")).page, "newer")).page
    assert listed(again) == newest[:25]
    assert not way(again, "newer")
    assert listed(browser.get(way(again, "cursor")).page) == newest[25:50]


def way(page: Page, direction: str) -> str:
    """The path of the link to newer or older sessions, or "" without one."""
    found = [link for link in page.links if f"{direction}=" in link]
    return found[0].removeprefix("/dashboard") if found else ""


def test_payments_come_first_once_there_is_more_than_a_page(
    shop: Dashboard, browser: Browser
) -> None:
    paid_one = paid(shop, created_at=NOW)
    for number in range(3):
        shop.store(created_at=NOW + timedelta(seconds=1 + number))
    assert len(listed(browser.get().page)) == 4
    for number in range(30):
        shop.store(created_at=NOW + timedelta(seconds=9 + number))
    assert listed(browser.get().page) == [paid_one.id]
    assert listed(browser.get("?status=payments").page) == [paid_one.id]
    assert "1 shown" in browser.get().page.main


@pytest.mark.parametrize(
    ("query", "current"),
    [
        ("", ["All"]),
        ("?status=payments", ["Payments"]),
        ("?status=completed", ["Paid"]),
        ("?status=open", []),
        ("?min=1", []),
    ],
)
def test_the_usual_lists_are_one_click_away(
    browser: Browser, query: str, current: list[str]
) -> None:
    page = browser.get(query).page
    tabs = [link for link in page.links if link.startswith("/dashboard?status=")]
    shown = ["payments", "completed", "failed", "declined", "attention", "all"]
    assert tabs == [f"/dashboard?status={each}" for each in shown]
    marked = [each for each in page.all("a") if each.attributes.get("aria-current") == "page"]
    assert ["".join(each.text).strip() for each in marked] == ["Transactions", *current]


def test_a_merchant_without_transactions_is_told_so(browser: Browser) -> None:
    empty = browser.get().page.main
    assert "There are no transactions yet. Each purchase will be here" in empty
    assert "Nothing found." in browser.get("?q=nothing").page.main


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("status=completed", ["paid"]),
        ("status=expired", ["old"]),
        ("status=open", ["open"]),
        ("min=20", ["paid", "old"]),
        ("min=20.01", ["paid"]),
        ("max=20,00", ["open", "old"]),
        ("min=15&max=20", ["old"]),
        ("from=2026-03-01", ["paid", "open"]),
        ("to=2026-02-28", ["old"]),
        ("from=2026-02-01&to=2026-02-28&status=expired", ["old"]),
        ("q=A-1", ["open"]),
        ("q=a-1&status=completed", []),
        (f"q={WALLET}", ["paid"]),
        ("q=%24wallet.example/alice", ["paid"]),
        ("q=%00%ff%ed%a0%80", []),
        ("q=" + "x" * 5_000, []),
        ("q=cs_" + "0" * 22, []),
        ("max=999999999999999", ["paid", "open", "old"]),
        ("from=2000-01-01&to=2199-12-31", ["paid", "open", "old"]),
        ("status=&q=&from=&to=&min=&max=", ["paid", "open", "old"]),
        ("unknown=1", ["paid", "open", "old"]),
    ],
)
def test_search_and_filters_show_what_fits(
    shop: Dashboard, browser: Browser, query: str, expected: list[str]
) -> None:
    before = NOW - timedelta(days=9)
    made = {
        "old": shop.store(created_at=before, expires_at=before + timedelta(days=1)),
        "open": shop.store(created_at=NOW, amount_total=1000, metadata_json='{"order":"A-1"}'),
        "paid": paid(shop, created_at=NOW + timedelta(seconds=1), amount_total=2001),
    }
    found = browser.get(f"?{query}").page
    assert listed(found) == [made[name].id for name in expected]


@pytest.mark.parametrize(
    "query",
    [
        "status=none",
        "from=2026-02-30",
        "from=today",
        "to=20260301",
        "from=2026-03-02&to=2026-03-01",
        "from=2026-03-02",
        "min=ten",
        "min=-1",
        "max=1.005",
        "max=1e9",
        "min=99999999999999999999",
        "from=9999-12-31",
        "to=0001-01-01",
    ],
)
def test_what_cannot_be_understood_is_said_and_nothing_is_listed(
    shop: Dashboard, browser: Browser, query: str
) -> None:
    session = shop.store()
    answer = browser.get(f"?{query}")
    assert answer.status == 400
    assert answer.page.one("div", role="alert")
    assert session.id not in answer.body


def test_a_filter_for_what_is_rare_goes_on_further_back(shop: Dashboard, browser: Browser) -> None:
    rare = shop.store(created_at=NOW - timedelta(days=1), amount_total=77)
    for number in range(600):
        shop.store(created_at=NOW + timedelta(seconds=number))
    first = browser.get("?max=1").page
    assert listed(first) == []
    assert "Nothing found so far." in first.main
    assert listed(browser.get(way(first, "cursor")).page) == [rare.id]


def test_one_session_shows_everything_and_its_story(shop: Dashboard, browser: Browser) -> None:
    event = an_event(
        id="evt_0123456789abcdefABCDEF",
        subject=None,
        type=COMPLETED,
        status=EventStatus.DELIVERED,
        ended_at=NOW,
        deliveries=(
            Delivery(NOW, 120, 500, None, "<b>oops</b>"),
            Delivery(NOW, None),
            Delivery(NOW, 10_000, None, "timed out"),
            Delivery(NOW, 80, 200, None, "ok"),
        ),
    )
    shop.services.events.add(event)
    items = (LineItem("usd", "Tea", "Green", 1000, 2),)
    metadata = json.dumps({"order": "A-1", "gift": True, "note": None, "n": 7})
    session = paid(shop, event=event.id, line_items=items, metadata_json=metadata)
    page = browser.get(f"/transactions/{session.id}").page
    for said in (
        "20.00 USD Paid",
        "Complete: the money is in your wallet.",
        "Customer paid 18.53 EUR",
        "Received 20.00 USD",
        WALLET,
        texts.INCOMING + " https://wallet.example/in/1",
        texts.QUOTED + " https://wallet.example/q/1",
        texts.STEP[Event.PAYMENT_CREATED] + " https://wallet.example/out/1",
        "1 second later",
        "Delivered",
        "Response 500 <b>oops</b>",
        "the result is unknown",
        "No response: timed out",
        "took 80 ms",
        "2 × Tea Green 10.00 USD each, 20.00 USD",
        "order A-1 gift true note null n 7",
        f"https://pay.example/pay/{session.id}",
    ):
        assert said in page.main, said
    assert not page.all("b")


PART: dict[str, Any] = {
    **AWAITING,
    "received": 700,
    "attention": Attention.PARTIAL_PAYMENT,
    "incoming_payment": IncomingPaymentRef("https://wallet.example/in/1", NOW + timedelta(days=1)),
}
WAITS: dict[str, tuple[Status, dict[str, Any]]] = {
    **STAGES,
    "closing": (Status.PROCESSING, {**AWAITING, "closing_at": NOW, "check_at": NOW}),
    "instructed": (Status.COMPLETED, {}),
    "found": (Status.PROCESSING, {"check_at": NOW}),
    "partly_paid": (Status.PROCESSING, {**PART, "check_at": NOW}),
    "partly_paid_for_good": (Status.PROCESSING, PART),
    "short": (Status.COMPLETED, {"received": 1999}),
    "accepted": (
        Status.COMPLETED,
        {"received": 700, "history": story(Event.ACCEPTED_AS_PAID)},
    ),
    "given_up": (Status.EXPIRED, {"received": 700, "history": story(Event.GIVEN_UP)}),
    "failed": (Status.OPEN, {"problem": Problem.PAYMENT_FAILED}),
}
# Forms for the session in each of these; others have none.
FORMS = {
    "open": ["cancel", "expire"],
    "failed": ["cancel", "expire"],
    "awaiting_approval": ["cancel", "expire"],
    "paying": ["cancel"],
    "processing": ["cancel"],
    "found": ["cancel"],
    "partly_paid": ["accept_as_paid", "give_up"],
    "partly_paid_for_good": ["accept_as_paid", "give_up"],
    "completed": ["refund", "paid_elsewhere"],
    "short": ["refund", "paid_elsewhere"],
    "accepted": ["refund", "paid_elsewhere"],
    "given_up": ["refund", "refund", "paid_elsewhere"],  # the button, and the forms
}


@pytest.mark.parametrize("stage", WAITS)
def test_every_state_says_what_it_is_waiting_for_and_shows_no_secret(
    shop: Dashboard, browser: Browser, stage: str
) -> None:
    status, fields = WAITS[stage]
    session = shop.store(status=status, **fields)
    answer = browser.get(f"/transactions/{session.id}")
    assert texts.WAITING[stage] in answer.page.main
    assert not [secret for secret in SECRETS if secret in answer.body]
    actions = [form.attributes["action"] for form in answer.page.all("form")]
    ends = [action.rpartition("/")[2] for action in actions if session.id in action]
    marked = session.needs_attention and not session.partly_paid
    others = ["dealt-with"] if marked else []
    assert sorted(ends) == sorted([*FORMS.get(stage, []), *others, "note"])


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("closing", "Making certain"),
        ("partly_paid", "Part paid"),
        ("partly_paid_for_good", "Part paid"),
        ("processing", "Confirming"),
    ],
)
def test_the_status_says_what_is_known_while_a_payment_is_confirmed(
    shop: Dashboard, browser: Browser, stage: str, words: str
) -> None:
    status, fields = WAITS[stage]
    session = shop.store(status=status, **fields)
    look = "warn" if words == "Part paid" else status
    for path in ("", f"/transactions/{session.id}"):
        badges = browser.get(path).page.all("span", **{"class": f"badge {look}"})
        assert [each.text for each in badges] == [[words]]


def test_there_are_words_for_every_action_status_event_problem_and_attention() -> None:
    assert set(texts.STATUS) == set(Status)
    assert set(texts.STEP) == set(Event)
    assert set(texts.PROBLEM) == set(Problem)
    assert set(texts.ATTENTION) == set(Attention)
    assert set(texts.WAITING) == set(WAITS)


@pytest.mark.parametrize(
    ("attention", "status", "words"),
    [
        (Attention.PARTIAL_PAYMENT, Status.PROCESSING, texts.ATTENTION[Attention.PARTIAL_PAYMENT]),
        (Attention.UNDECIDED, Status.PROCESSING, texts.ATTENTION[Attention.UNDECIDED]),
        (Attention.UNDECIDED, Status.EXPIRED, texts.UNACCOUNTED),
        (Attention.LATE_PAYMENT, Status.CANCELED, texts.ATTENTION[Attention.LATE_PAYMENT]),
    ],
)
def test_what_needs_attention_is_explained_with_what_to_do(
    shop: Dashboard,
    browser: Browser,
    attention: Attention,
    status: Status,
    words: tuple[str, str],
) -> None:
    session = shop.store(status=status, **{**AWAITING, "attention": attention, "received": 700})
    page = browser.get(f"/transactions/{session.id}").page
    what, todo = words
    alert = "".join(page.one("div", role="alert").text)
    assert what.format(received="7.00 USD", asked="20.00 USD") in alert
    assert todo in alert
    assert "Received 7.00 USD 13.00 USD less than the price" in page.main
    assert "Needs attention" in browser.get().page.main


def test_money_beyond_the_price_is_flagged_with_what_to_do(
    shop: Dashboard, browser: Browser
) -> None:
    over = shop.store(status=Status.COMPLETED, received=2002)
    shop.store(status=Status.COMPLETED, received=2000)
    page = browser.get(f"/transactions/{over.id}").page
    assert "Received 20.02 USD 0.02 USD more than the price" in page.main
    alert = "".join(page.one("div", role="alert").text)
    assert "More money has arrived than was asked for: 20.02 USD of 20.00 USD." in alert
    assert "Send the rest back" in alert
    assert browser.get().page.main.count("Needs attention") == 2, "a row, and the filter's name"
    assert listed(browser.get("?status=attention").page) == [over.id]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([{"sent": 2000}], "Refunded"),
        ([{"sent": 500}], "Partly refunded"),
        ([{"sent": 500}, {"sent": 1500}], "Refunded"),
        ([{"sent": 0, "status": RefundStatus.NEEDS_APPROVAL, "amount": 2000}], None),
        ([{"sent": 700, "status": RefundStatus.FAILED}], "Partly refunded"),
        ([{"sent": 0, "status": RefundStatus.PAID_ELSEWHERE, "amount": 2000}], "Refunded"),
    ],
)
def test_a_payment_says_that_it_was_refunded_in_the_list_and_in_its_title(
    shop: Dashboard, browser: Browser, parts: list[dict[str, Any]], words: str | None
) -> None:
    session = paid(shop)
    refs = []
    for number, part in enumerate(parts):
        fields = {"status": RefundStatus.SUCCEEDED, "amount": part["sent"], **part}
        refund = a_refund(id=f"re_{number:022d}", session=session.id, **fields)
        store_refund(shop.dynamo, PREFIX, refund)
        refs.append(RefundRef(refund.id, refund.amount))
    put(shop, replace(session, refunds=tuple(refs)))
    expected = [words] if words else []
    for path in ("", f"/transactions/{session.id}"):
        found = browser.get(path).page.all("span", **{"class": "badge refunded"})
        assert [each.text[0] for each in found] == expected
    title = "".join(browser.get(f"/transactions/{session.id}").page.one("title").text)
    assert title.startswith(f"20.00 USD, Paid{', ' + words.lower() if words else ''} – ")


def test_refunds_and_customers_of_a_whole_page_are_one_read_each(
    shop: Dashboard, browser: Browser
) -> None:
    def calls() -> Counter[str]:
        shop.calls()
        browser.get("?status=all")
        return Counter(shop.calls())

    for _ in range(3):
        paid(shop)
    before = calls()
    for number in range(3):
        paid(shop, refunds=(RefundRef(f"re_{number:022d}", 500),))
    refunds = calls()
    assert refunds - before == {"batch_get_item": 1}
    for number in range(3):
        given_by(shop, name=f"Customer {number}")
    told = calls() - refunds
    assert (told["get_item"], told["query"]) == (1, 0)


@pytest.mark.parametrize(
    ("status", "fields", "certain"),
    [
        (Status.OPEN, {"problem": Problem.PAYMENT_FAILED}, True),
        (Status.OPEN, {"problem": Problem.PAYMENT_REFUSED}, False),
        (Status.PROCESSING, {**AWAITING, "closing_at": NOW, "check_at": NOW}, False),
        (Status.CANCELED, {"history": story(Event.WALLET_SUBMITTED)}, True),
        (Status.CANCELED, {"history": story(Event.WALLET_SUBMITTED), "check_at": NOW}, False),
        (Status.EXPIRED, {"received": 700, "history": story(Event.GIVEN_UP)}, False),
        (Status.EXPIRED, {"attention": Attention.UNDECIDED, **AWAITING}, False),
        (Status.EXPIRED, {}, False),  # nobody gave a wallet, so nobody asks
    ],
)
def test_that_no_money_can_arrive_is_said_only_where_it_is_certain(
    shop: Dashboard, browser: Browser, status: Status, fields: dict[str, Any], certain: bool
) -> None:
    page = browser.get(f"/transactions/{shop.store(status=status, **fields).id}").page
    assert ("No money arrived, and none can" in page.main) is certain


def told_of(browser: Browser, session: Session) -> str:
    """Return what the page says of the webhook about the session's end, "" without a section."""
    sections = browser.get(f"/transactions/{session.id}").page.all("section")
    found = [each for each in sections if each.attributes["aria-labelledby"] == "webhook"]
    return " ".join("".join(found[0].text).split()) if found else ""


def test_why_there_is_no_webhook_of_the_end_is_said_by_its_cause(
    shop: Dashboard, browser: Browser
) -> None:
    running, canceled = shop.store(), shop.store(status=Status.CANCELED, updated_at=NOW)
    gone = paid(shop, event="evt_0123456789abcdefABCDEF")
    unsent = stored(shop, deliveries=(), given_up=GivenUp.NO_ENDPOINT)
    for session in (running, canceled, gone, paid(shop, event=unsent.id)):
        assert told_of(browser, session) == "", "a shop without an endpoint asks for none"
    browser.post("/webhooks", {"url": "https://shop.example/hooks"})
    shop.clock.pass_time(61)
    assert "is sent once the session has ended" in told_of(browser, running)
    assert "no endpoint asked for it then" in told_of(browser, canceled)
    assert "is no longer stored" in told_of(browser, gone)
    browser.post("/webhooks", {"url": "https://shop.example/hooks", "canceled": "on"})
    shop.clock.pass_time(61)
    assert "is sent once" in told_of(browser, canceled), "it is made within minutes"
    shop.clock.pass_time(600)
    assert "no endpoint asked for it then" in told_of(browser, canceled)


def test_a_failed_try_is_told_with_its_reason(shop: Dashboard, browser: Browser) -> None:
    notes = story(Event.WALLET_SUBMITTED, Event.PREPARATION_FAILED, Event.WALLET_SUBMITTED)
    failed = replace(notes[2], note="wallet_unavailable: Refused")
    session = shop.store(history=(*notes[:2], failed, notes[3]), problem=Problem.WALLET_UNAVAILABLE)
    page = browser.get(f"/transactions/{session.id}").page
    assert "The preparation failed" in page.main
    why = "(the provider refused the request)"
    assert f"{texts.PROBLEM[Problem.WALLET_UNAVAILABLE]} {why}" in page.main
    assert "Attempt 2" in page.main


@pytest.mark.parametrize("reason", texts.KEY_REFUSED)
def test_a_refused_key_is_told_with_what_to_do_and_what_the_provider_answered(
    shop: Dashboard, browser: Browser, reason: str
) -> None:
    _, failed = story(Event.PREPARATION_FAILED)
    answered = "auth.wallet.example answered 400 invalid_client"
    for note in (f"merchant_wallet_error: {reason} ({answered})", f"payment_refused: {reason}"):
        session = shop.store(history=(replace(failed, note=note),))
        page = browser.get(f"/transactions/{session.id}").page
        told = texts.KEY_REFUSED[reason] + (f" ({answered})" if answered in note else "")
        assert told in page.main
        assert "Your own wallet provider refused" not in page.main


def test_a_step_of_a_later_release_has_its_own_name(shop: Dashboard, browser: Browser) -> None:
    known = story(Event.WALLET_SUBMITTED)
    refunded = HistoryEntry(NOW + timedelta(seconds=2), "exchange_requested", "too_late: Gone")
    session = shop.store(history=(*known, refunded))
    page = browser.get(f"/transactions/{session.id}").page
    assert "exchange_requested too_late: Gone" in page.main


@pytest.mark.parametrize("end", ["cancel", "expire"])
def test_a_session_is_ended_by_its_form_and_noted_in_the_audit_log(
    shop: Dashboard, browser: Browser, end: str
) -> None:
    session = shop.store()
    answer = browser.post(f"/transactions/{session.id}/{end}")
    assert answer.location == f"/dashboard/transactions/{session.id}"
    after = shop.stored(session.id)
    assert after.status is {"cancel": Status.CANCELED, "expire": Status.EXPIRED}[end]
    log = browser.get("/audit").page
    assert f"/dashboard/transactions/{session.id}" in log.links
    said = {"cancel": "Canceled a session", "expire": "Expired a session"}[end]
    assert f"{said} {session.id} first (…{shop.key.last_four})" in log.main
    again = browser.post(f"/transactions/{session.id}/{end}")
    assert again.status == 400
    assert "only while it is open" in again.page.main


def test_a_payment_under_way_cannot_be_ended(shop: Dashboard, browser: Browser) -> None:
    sent = Instruction("a", deadline=NOW)
    session = shop.store(status=Status.PROCESSING, instruction=sent, **AWAITING)
    page = browser.get(f"/transactions/{session.id}").page
    forms = [form.attributes["action"] for form in page.all("form")]
    assert [each for each in forms if session.id in each and not each.endswith("/note")] == []
    answer = browser.post(f"/transactions/{session.id}/cancel")
    assert answer.status == 409
    assert shop.stored(session.id) == session


def test_ending_a_payment_in_doubt_closes_its_incoming_payment_and_is_noted_once(
    shop: Dashboard, browser: Browser
) -> None:
    session = shop.store(
        status=Status.PROCESSING, instruction=Instruction("a", deadline=NOW), **AWAITING
    )
    shop.clock.pass_time(30)
    page = browser.get(f"/transactions/{session.id}").page
    assert "End this session…" in page.main
    assert "Close the incoming payment" in page.main
    answer = browser.post(f"/transactions/{session.id}/cancel")
    assert answer.location == f"/dashboard/transactions/{session.id}"
    after = shop.stored(session.id)
    assert (after.status, after.closing_at) == (Status.PROCESSING, shop.clock.now())
    assert texts.WAITING["closing"] in browser.get(f"/transactions/{session.id}").page.main
    again = browser.post(f"/transactions/{session.id}/cancel")
    assert again.status == 409
    assert "is being closed" in again.page.main
    log = browser.get("/audit").page.main
    assert log.count(f"{Action.CLOSING_STARTED.words} {session.id}") == 1


def test_a_part_of_the_money_is_accepted_as_paid_and_noted(
    shop: Dashboard, browser: Browser
) -> None:
    session = shop.store(status=Status.PROCESSING, **PART, check_at=NOW + timedelta(hours=1))
    page = browser.get(f"/transactions/{session.id}").page
    assert "Received 7.00 USD 13.00 USD less than the price" in page.main
    browser.post(f"/transactions/{session.id}/accept_as_paid")
    after = shop.stored(session.id)
    assert (after.status, after.received) == (Status.COMPLETED, 700)
    page = browser.get(f"/transactions/{session.id}").page
    assert texts.WAITING["accepted"] in page.main
    assert "It is still being checked how much the incoming payment has received." in page.main
    who = f"by first (…{shop.key.last_four})"
    assert f"{texts.STEP[Event.ACCEPTED_AS_PAID]} {who}" in page.main
    assert f"Accepted a session as paid {session.id}" in browser.get("/audit").page.main


def test_giving_up_first_closes_the_incoming_payment_and_then_ends_the_session(
    shop: Dashboard, browser: Browser
) -> None:
    session = shop.store(status=Status.PROCESSING, **PART, check_at=NOW + timedelta(hours=1))
    path = f"/transactions/{session.id}"
    assert "Close the incoming payment" in browser.get(path).page.main
    assert browser.post(f"{path}/give_up").location == f"/dashboard{path}"
    assert "The incoming payment is being closed." in browser.get(path).page.main
    assert shop.stored(session.id).status is Status.PROCESSING
    closed = shop.store(status=Status.PROCESSING, **PART)
    path = f"/transactions/{closed.id}"
    page = browser.get(path).page
    assert texts.WAITING["partly_paid_for_good"] in page.main
    assert "The session then ends as expired." in page.main
    browser.post(f"{path}/give_up")
    assert shop.stored(closed.id).status is Status.EXPIRED
    page = browser.get(path).page
    assert texts.WAITING["given_up"] in page.main
    assert "Received 7.00 USD 13.00 USD less than the price" in page.main
    log = browser.get("/audit").page.main
    assert f"Started to close an incoming payment {session.id}" in log
    assert f"Gave a session up {closed.id}" in log


def test_what_is_overdue_is_shown_expired(shop: Dashboard, browser: Browser) -> None:
    session = shop.store(expires_at=NOW + timedelta(seconds=1))
    shop.clock.pass_time(1)
    assert "Expired" in browser.get().page.main
    assert texts.WAITING["expired"] in browser.get(f"/transactions/{session.id}").page.main


def test_all_that_strangers_write_comes_out_as_text(shop: Dashboard, browser: Browser) -> None:
    evil = "\"><script>alert(1)</script><img src=x onerror='alert(1)'>{{ 7*7 }}"
    plain = "Tea"

    def shape(text: str) -> list[list[tuple[str, tuple[str, ...]]]]:
        item = LineItem("usd", text, text, 2000, 1)
        session = shop.store(
            line_items=(item,), metadata_json=json.dumps({text: text}), problem=None
        )
        query = "?q=" + json.dumps(text)
        answers = [browser.get(f"/transactions/{session.id}"), browser.get(query)]
        answers.append(browser.get("?min=" + text))
        assert not [answer for answer in answers if "<script>alert" in answer.body]
        return [answer.page.shape() for answer in answers]

    assert shape(plain)[0] == shape(evil)[0]
    assert shape(plain)[1] == shape(evil)[1]


def test_the_audit_log_is_paged_and_says_who(shop: Dashboard, browser: Browser) -> None:
    for _ in range(60):
        shop.clock.pass_time(1)
        session = shop.store()
        browser.post(f"/transactions/{session.id}/cancel")
    first = browser.get("/audit").page
    assert len(listed(first)) == 50
    second = browser.get(way(first, "cursor")).page
    assert len(listed(second)) == 10
    assert not set(listed(first)) & set(listed(second))
    assert "Signed in" in second.main


def test_a_webhook_event_of_another_merchant_is_not_shown(shop: Dashboard) -> None:
    browser = shop.signed_in()
    event = an_event(id="evt_0123456789abcdefABCDEF", merchant="mer_2", type=COMPLETED)
    shop.services.events.add(event)
    session = paid(shop, event=event.id)
    assert event.id not in browser.get(f"/transactions/{session.id}").body


def test_amounts_of_any_scale_are_exact(shop: Dashboard, browser: Browser) -> None:
    session = paid(shop, receive=Amount(20_000_000_001, "USD", 9), received=20_000_000_001)
    assert "Received 20.000000001 USD" in browser.get(f"/transactions/{session.id}").page.main


STEPS = (
    "Make a payment link",
    "Get paid for the first time",
    "Get an e-mail when something needs you",
    "Create a checkout session",
    "Get notified of payments",
)


def steps(page: Page) -> dict[str, bool]:
    """Return the first steps of the page, and whether each is marked as done."""
    shown = page.main.partition("First steps")[2].partition("Newest first.")[0]
    return {each: f"{each} Done" in shown for each in STEPS if each in shown}


def done(browser: Browser) -> list[str]:
    return [name for name, is_done in steps(browser.get().page).items() if is_done]


def test_a_new_merchant_sees_what_is_connected_and_begins_with_a_link(shop: Dashboard) -> None:
    browser = shop.signed_in()
    page = browser.get().page
    assert "did not answer just now" in page.main  # nobody answers in this test
    assert list(steps(page)) == [each for each in STEPS if "e-mail" not in each]  # for a person
    assert done(browser) == []
    places = [page.main.index(each) for each in ("Make a payment link", "With a server", "curl ")]
    assert places == sorted(places)
    assert steps(browser.get("?status=open").page) == {}


def test_a_step_is_done_only_by_what_it_says(shop: Dashboard) -> None:
    browser = shop.signed_in()
    link = browser.post("/links", {"name": "Tea", "amount": "20.00"}).location.rpartition("/")[2]
    assert done(browser) == ["Make a payment link"]
    assert f"https://pay.example/buy/{link}" in browser.get().page.links
    at_link = {"metadata_json": json.dumps({"payment_link": link}), "request_id": None}
    shop.store(**at_link)
    assert done(browser) == ["Make a payment link"], "no server has created a session"
    shop.store(status=Status.COMPLETED, **at_link)
    assert steps(browser.get().page) == {}, "it sells by a link, and a key gets no notices"


def test_a_shop_with_a_server_is_done_without_a_link(shop: Dashboard) -> None:
    browser = shop.signed_in()
    made = shop.store()
    assert done(browser) == ["Create a checkout session"]
    assert f"https://pay.example/pay/{made.id}" in browser.get().page.links
    browser.post("/webhooks", {"url": "https://shop.example/hooks"})
    assert done(browser) == ["Create a checkout session", "Get notified of payments"]
    shop.store(status=Status.COMPLETED)
    assert steps(browser.get().page) == {}


def test_an_owner_enters_the_address_for_notices_in_the_first_steps(
    shop: Dashboard, outbox: Outbox
) -> None:
    shop.services = replace(shop.services, mail=outbox)
    owner = shop.member(Role.OWNER)
    page = owner.get().page
    [form] = [each for each in page.all("form") if each.attributes["action"].endswith("/notices")]
    assert form.attributes["method"] == "post"
    hidden = {
        each.attributes["name"]: each.attributes["value"]
        for each in page.all("input", type="hidden")
        if not each.attributes["name"].startswith("form_")
    }
    answer = owner.post("/notices", {**hidden, "email": "ana@shop.example"})
    assert answer.location == "/dashboard/notices?saved=1"
    [letter] = outbox.letters
    assert letter.to == "ana@shop.example"
    assert "We have sent a link to ana@shop.example" in owner.get().page.main
    assert done(owner) == []
    [link] = re.findall(r"/dashboard(/notices/confirm/\w+)", letter.text)
    owner.get(link)
    owner.post(link)
    assert done(owner) == ["Get an e-mail when something needs you"]


def given_by(shop: Dashboard, **given: Any) -> Session:
    """Store a session whose customer has given these details at a payment link."""
    return shop.store_with(CustomerDetails(**given))


def test_the_customer_is_shown_as_typed(shop: Dashboard, browser: Browser) -> None:
    session = given_by(shop, email="a&b@example.com", name="Ana <b>", phone="+44 20 7946 0958")
    page = browser.get(f"/transactions/{session.id}").page
    assert "Name Ana <b>" in page.main
    assert "Phone +44 20 7946 0958" in page.main
    assert "mailto:a%26b%40example.com" in page.links
    part = given_by(shop, phone="12345")
    assert "Name" not in browser.get(f"/transactions/{part.id}").page.main
    without = browser.get(f"/transactions/{shop.store().id}").page
    assert without.all("h2", id="customer") == []
    table = browser.get(f"/export/transactions.csv?q={session.id}").body
    assert "a&b@example.com,Ana <b>,'+44 20 7946 0958" in table


def test_a_row_of_the_list_has_the_order_and_who_bought_it(
    shop: Dashboard, browser: Browser
) -> None:
    given_by(shop, email="ana@example.com", name="Ana <b>")
    given_by(shop, email="only@example.com")
    shop.store(client_reference_id="A-7")
    rows = browser.get("?status=all").page
    assert "20.00 USD Open Tea Ana <b> ana@example.com – " in rows.main
    assert "20.00 USD Open Tea only@example.com – " in rows.main
    assert "20.00 USD Open A-7 Tea – – " in rows.main
    assert not rows.all("b")


def test_the_list_is_shown_without_names_that_cannot_be_read(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    readable = given_by(shop, name="Ana Bel")
    other = given_by(shop, name="Bo Li")
    put(shop, replace(other, customer_details=readable.customer_details))
    page = browser.get("?status=all").page
    assert set(listed(page)) == {readable.id, other.id}
    assert page.main.count("Ana Bel") == 1

    monkeypatch.setattr(details, "opened", raising(Unavailable("The key cannot be read.")))
    page = browser.get("?status=all").page
    assert set(listed(page)) == {readable.id, other.id}
    assert "Ana Bel" not in page.main


def test_a_wallet_is_named_by_the_provider_that_the_page_offers(
    shop: Dashboard, browser: Browser
) -> None:
    paid(shop)
    assert "Tea – wallet.example/alice " in browser.get("?status=all").page.main
    offer_banks(shop)
    shown = browser.get("?status=all").page.main
    assert "Tea – Cedar Bank " in shown
    assert "/alice" not in shown


HOME = Address("DE", "Ana Bel", "Am Weg 1", None, None, "Berlin", None, "10115")
WORK = Address("US", "Ana Bel", "1 Main St", None, None, "Springfield", "IL", "62701")
SIZE = Answer("size", "Size <b>", QuestionKind.DROPDOWN, "l", "Large")


def test_the_merchant_packs_from_the_dashboard_alone(shop: Dashboard, browser: Browser) -> None:
    session = given_by(shop, name="Ana Bel", shipping=HOME, billing=WORK, answers=(SIZE,))
    page = browser.get(f"/transactions/{session.id}").page
    assert "Ship to Ana Bel Am Weg 1 10115 BERLIN GERMANY" in page.main
    assert "Bill to Ana Bel 1 Main St SPRINGFIELD, IL 62701 UNITED STATES" in page.main
    assert "Size <b> Large" in page.main
    slip = browser.get(f"/transactions/{session.id}/packing").page
    assert "10115 BERLIN" in slip.main
    assert "Main St" not in slip.main
    assert "Size <b> Large" in slip.main
    for item in session.line_items:
        assert f"{item.name} {item.quantity}" in slip.main
    assert "20.00" not in slip.main
    same = given_by(shop, name="Ana Bel", shipping=HOME, billing=HOME)
    assert "Bill to The same address" in browser.get(f"/transactions/{same.id}").page.main
    table = browser.get(f"/export/transactions.csv?q={session.id}").body
    assert "Ana Bel,Am Weg 1,,,Berlin,,10115,DE" in table
    assert "Ana Bel,1 Main St,,,Springfield,IL,62701,US" in table
    assert '{""Size <b>"": ""Large""}' in table


def test_a_packing_slip_without_an_address_has_the_items(shop: Dashboard, browser: Browser) -> None:
    session = shop.store()
    slip = browser.get(f"/transactions/{session.id}/packing").page
    assert session.line_items[0].name in slip.main
    assert slip.all("time") == [], "the time of another event says nothing about it"


def test_a_packing_slip_has_the_time_of_the_payment_and_the_sender(
    shop: Dashboard, browser: Browser
) -> None:
    paid_at = NOW + timedelta(seconds=15)
    session = paid(shop, completed_at=paid_at)
    slip = browser.get(f"/transactions/{session.id}/packing").page
    assert [datetime.fromisoformat(each.attributes["datetime"]) for each in slip.all("time")] == [
        paid_at
    ]
    company = Footer(company="Harbor Coffee Ltd, 1 Quay Street")
    sender = shop.merchant().changed(footer=company, contact="https://shop.example/help")
    shop.services.known_merchants.replace(sender)
    slip = browser.get(f"/transactions/{session.id}/packing").page
    assert f"{sender.name} Harbor Coffee Ltd, 1 Quay Street shop.example/help" in slip.main


@pytest.mark.parametrize("query", ["", "?status=open", "?q=order-1042"])
def test_a_damaged_record_is_named_and_hides_no_other(shop: Dashboard, query: str) -> None:
    browser = shop.signed_in()
    orders = [
        shop.store(metadata_json=json.dumps({"order": f"order-1042-{number}"}))
        for number in range(3)
    ]
    damaged, *others = sorted(orders, key=lambda each: each.id)
    shop.dynamo.update_item(
        TableName=f"{PREFIX}-checkout_sessions",
        Key={"id": {"S": damaged.id}},
        UpdateExpression="REMOVE #status",
        ExpressionAttributeNames={"#status": "status"},
    )
    answer = browser.get(query)
    assert answer.status == 200
    assert set(listed(answer.page)) == {each.id for each in others}
    named = f"The record of {damaged.id} cannot be read" in answer.page.main
    assert named is not query.startswith("?q=")  # nothing shows that this is its order number
    assert browser.get("/export").status == 200
