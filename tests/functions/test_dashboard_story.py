"""The story of a session by payment attempt, and failures in the list."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from checkout.domain.payment.attempt import EndedBy, Outcome
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Problem
from checkout.domain.session.attempts import Concern
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.record import Delivery
from dashboard import texts
from dashboard.timeline import AttemptGroup, span, timeline
from tests.support.attempts import PAID, after, awaiting, of, paying, processing, refused, submitted
from tests.support.basics import NOW, a_link, a_session
from tests.support.cases import ORDER_NUMBERS
from tests.support.dashboard_pages import BASE, Browser, Dashboard
from tests.support.samples import a_merchant, an_event

DECLINED = after(
    awaiting(), Event.RETURN_REPORTED, reported=Outcome.DECLINED, note=Outcome.DECLINED.value
)


def stored(shop: Dashboard, session: Session, **more: Any) -> Session:
    names = ("status", "history", "payment_attempts", "customer", "incoming_payment", "quote")
    also = ("outgoing_payment", "received", "problem", "phase", "check_at", "lease_until")
    return shop.store(**{name: getattr(session, name) for name in (*names, *also)}, **more)


def titles(chapters: tuple[AttemptGroup, ...]) -> list[str | None]:
    return [chapter.title for chapter in chapters]


CLOSED: dict[str, Any] = {"closing_at": NOW, "closed_at": NOW - timedelta(days=1)}
FIRST = [
    awaiting(),
    DECLINED,
    refused(),
    after(submitted(), Event.PREPARATION_FAILED, problem=Problem.WALLET_INVALID),
    after(replace(processing(), **CLOSED), Event.PAYMENT_DISPROVED, problem=Problem.PAYMENT_FAILED),
]


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("second", [submitted, awaiting, paying, processing, refused])
def test_no_chapter_of_the_story_shows_anything_of_another_attempt(
    first: Session, second: Callable[[Session, int], Session]
) -> None:
    session = second(first, 2)
    told = timeline(session)
    assert told.wallets_given == 2
    for chapter in told.chapters:
        shown = [chapter.facts, [(step.detail, step.resource) for step in chapter.steps]]
        named = set(re.findall(r"(?<!incoming/)of-([0-9]+)-", repr(shown)))
        number = re.match(r"Attempt ([0-9]+)", chapter.title or "")
        assert named <= {number[1] if number else "0"}  # 0: of no attempt
    steps = [step for chapter in told.chapters for step in chapter.steps]
    assert len(steps) == 1 + len(session.history)


def test_the_story_says_where_the_purchase_began() -> None:
    def begun(session: Session) -> str:
        return timeline(session).chapters[0].steps[0].text

    link = replace(a_link(), name="Rye sourdough, 1 kg")
    made: dict[str, Any] = {"session_id": f"cs_{'1' * 22}", "writer": "w", "now": NOW}
    opened = link.opened(a_merchant(), base_url=BASE, base_is_http=False, **made)
    assert begun(opened) == "Begun at your link Rye sourdough, 1 kg"
    assert begun(replace(opened, metadata_json="{}")) == begun(opened)
    assert begun(replace(opened, history=())) == begun(opened)
    assert begun(a_session()) == "Created by your server"
    named = a_session(metadata_json=opened.metadata_json, request_id="req_1")
    assert begun(named) == "Created by your server"


def test_each_attempt_has_its_chapter_with_its_own_resources() -> None:
    told = timeline(PAID)
    assert titles(told.chapters) == [
        None,
        "Attempt 1: refused by the wallet",
        "Attempt 2: paid",
    ]
    first, second = told.chapters[1:]
    assert [step.resource for step in first.steps if step.resource] == [
        of(1, "incoming"),
        of(1, "quotes"),
    ]
    assert [step.resource for step in second.steps if step.resource] == [
        of(1, "incoming"),
        of(2, "quotes"),
        of(2, "outgoing"),
    ]
    assert first.facts == (
        ("Wallet", of(1, "wallets")),
        ("Price for the customer", "0.20\N{NO-BREAK SPACE}EUR"),
        ("Ended by", "the customer's wallet provider"),
    )
    assert (first.look, second.look) == ("bad", "completed")
    assert (
        first.said
        == f"{of(1, 'wallets').removeprefix('https://')}, 0.20\N{NO-BREAK SPACE}EUR, 6 seconds"
    )


def test_an_attempt_is_one_line_that_says_how_long_it_took(
    shop: Dashboard, browser: Browser
) -> None:
    told = timeline(PAID)
    assert [each.number for each in told.chapters] == [None, 1, 2]
    assert [each.took for each in told.chapters] == [None, "6 seconds", "7 seconds"]
    shop.services.sessions.create(replace(PAID, merchant="mer_1"), None)
    folds = browser.get(f"/transactions/{PAID.id}").page.all("details", **{"class": "chapter"})
    assert ["open" in each.attributes for each in folds] == [False, False]


def test_a_step_that_follows_at_once_does_not_say_so() -> None:
    second = after(awaiting(), Event.RETURN_REPORTED, note="declined")
    at = second.history[-2].at + timedelta(milliseconds=999)
    entries = (*second.history[:-1], replace(second.history[-1], at=at))
    assert timeline(replace(second, history=entries)).chapters[-1].steps[-1].after is None


def test_what_ends_the_session_is_not_told_of_the_attempt() -> None:
    late = after(after(awaiting(), Event.CANCEL_REQUESTED), Event.CLOSED)
    told = timeline(replace(late, check_at=NOW))
    assert titles(told.chapters) == [None, "Attempt 1: canceled", None]
    assert [step.text for step in told.chapters[2].steps] == [
        texts.STEP[Event.CANCEL_REQUESTED],
        texts.STEP[Event.CLOSED],
    ]


def test_a_running_attempt_is_under_way_until_the_browser_reports_a_decline() -> None:
    assert titles(timeline(awaiting()).chapters) == [None, "Attempt 1: under way"]
    (_, chapter) = timeline(DECLINED).chapters
    assert chapter.title == f"Attempt 1: declined ({texts.NOT_PROVEN})"
    assert ("Reported by the browser", texts.REPORTED["declined"]) in chapter.facts
    assert chapter.steps[-1].detail == texts.REPORTED["declined"]
    ended = timeline(submitted(DECLINED, 2)).chapters[1]
    assert ("Ended by", "the customer, as far as their browser says") in ended.facts


def test_an_attempt_of_which_a_part_has_arrived_says_so() -> None:
    part = replace(PAID, status=Status.PROCESSING, received=1, attention=Attention.PARTIAL_PAYMENT)
    running = replace(part.payment_attempts[-1], outcome=None, ended_at=None)
    part = replace(part, payment_attempts=(*part.payment_attempts[:-1], running))
    assert titles(timeline(part).chapters)[-1] == "Attempt 2: a part has arrived"


def test_older_attempts_are_counted() -> None:
    told = timeline(replace(PAID, payment_attempts=PAID.payment_attempts[1:]))
    assert (told.older, told.wallets_given) == (1, 2)
    assert timeline(a_session()).older == 0


def test_an_erased_wallet_is_told_as_erased() -> None:
    gone: dict[str, Any] = {"typed": None, "wallet": None, "quote": None, "outgoing_payment": None}
    attempts = tuple(replace(each, **gone) for each in PAID.payment_attempts)
    ended = replace(PAID, payment_attempts=attempts, customer=None, quote=None, check_at=None)
    told = timeline(after(ended, Event.ERASED))
    assert told.chapters[1].facts[0] == ("Wallet", "erased")
    assert titles(told.chapters)[-1] is None


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(milliseconds=788), "less than a second"),
        (timedelta(seconds=1.9), "1 second"),
        (timedelta(seconds=119), "119 seconds"),
        (timedelta(seconds=120), "2 minutes"),
        (timedelta(hours=2), "2 hours"),
        (timedelta(hours=47), "47 hours"),
        (timedelta(days=2), "2 days"),
    ],
)
def test_lengths_of_time_are_in_words(length: timedelta, words: str) -> None:
    assert span(length) == words


def test_there_are_words_for_every_end_failure_and_report() -> None:
    assert set(texts.OUTCOME) == set(Outcome)
    assert set(texts.ENDED_BY) == set(EndedBy)
    assert set(texts.CONCERN) == set(Concern)
    ends = {Outcome.REPLACED, Outcome.CANCELED, Outcome.PAID, Outcome.PAID_IN_PART}
    assert set(texts.FAILURE) == set(Outcome) - ends
    assert set(texts.REPORTED) == {Outcome.DECLINED, Outcome.TIMED_OUT}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("not sent: x: ConnectionRefusedError", "was not reached: the connection was refused (x)"),
        ("not sent: x: TimeoutError", "Your server was not reached: no connection in time (x)"),
        ("no answer: x:8443: TimeoutError", "did not answer within 10 seconds (x:8443)"),
        ("no answer: x: Some", "Your server received the request but gave no answer: Some (x)"),
        ("not sent: the URL is not https", "No response: not sent: the URL is not https"),
        ("timed out", "No response: timed out"),
    ],
)
def test_errors_of_deliveries_are_in_words(
    shop: Dashboard, browser: Browser, error: str, said: str
) -> None:
    event = an_event(subject=None, deliveries=(Delivery(NOW, 80, None, error),))
    event = replace(event, id="evt_0123456789abcdefABCDEF")
    shop.services.events.add(event)
    page = browser.get(f"/webhooks/{event.id}").page
    assert said in page.main
    assert "Error" not in page.main


@pytest.mark.parametrize(
    ("note", "said"),
    [("declined", texts.REPORTED["declined"]), (None, None), ("odd", "odd")],
)
def test_a_report_of_a_later_release_is_told_as_it_is(note: str | None, said: str | None) -> None:
    session = after(awaiting(), Event.RETURN_REPORTED, reported=Outcome.DECLINED, note=note)
    assert timeline(session).chapters[-1].steps[-1].detail == said


def listed(browser: Browser, query: str) -> list[str]:
    links = browser.get(query).page.links
    return [link.rsplit("/", 1)[1] for link in links if "/transactions/" in link]


def test_failures_are_labels_and_filters_of_the_list(shop: Dashboard, browser: Browser) -> None:
    made = {
        "refused": stored(shop, refused(), created_at=NOW + timedelta(seconds=1)),
        "declined": stored(shop, DECLINED, created_at=NOW + timedelta(seconds=2)),
        "paid": stored(shop, PAID, created_at=NOW + timedelta(seconds=3)),
        "partly": shop.store(
            status=Status.PROCESSING,
            attention=Attention.PARTIAL_PAYMENT,
            created_at=NOW + timedelta(seconds=4),
        ),
    }
    assert listed(browser, "?status=failed") == [made["refused"].id]
    assert listed(browser, "?status=declined") == [made["declined"].id]
    assert listed(browser, "?status=attention") == [made["partly"].id]
    rows = [" ".join(row.text) for row in browser.get().page.all("tr")]
    (row,) = [row for row in rows if "Payment refused" in row]
    assert "Open" not in row
    assert len([row for row in rows if "Declined" in row]) == 1
    page = browser.get(f"/transactions/{made['refused'].id}").page
    assert "20.00 USD Open Payment refused" in page.main
    ended = stored(shop, after(refused(), Event.EXPIRE_REQUESTED))
    badges = browser.get(f"?q={ended.id}").page.all("span")
    said = [each.text[0] for each in badges if each.attributes.get("class", "").startswith("badge")]
    assert said == ["Payment refused"], "one badge, also after the end"


@pytest.mark.parametrize(("reference", "metadata", "number", "_"), ORDER_NUMBERS)
def test_list_search_and_export_have_the_same_order_number(
    shop: Dashboard, browser: Browser, reference: str | None, metadata: str, number: str, _: bool
) -> None:
    session = shop.store(client_reference_id=reference, metadata_json=metadata)
    (cell,) = browser.get().page.all("th", scope="row")[:1]
    assert cell.text[0] == (number or "Tea")  # else what was sold is the link to the payment
    [exported] = csv.DictReader(browser.get("/export/transactions.csv").body.splitlines())
    assert exported["order_number"] == (number or "")
    if number:
        assert listed(browser, f"?q={quote(number[:2])}") == [session.id]


def test_each_page_names_the_merchant_and_their_wallet(shop: Dashboard, browser: Browser) -> None:
    merchant = shop.merchant()
    for path in ("", "/keys", "/webhooks", "/settings", "/audit", "/export"):
        body = browser.get(path).body
        assert merchant.name in body
        assert merchant.wallet_address in body
    assert merchant.wallet_address not in shop.browser().get("/sign-in").body


def test_times_have_utc_in_the_page_and_a_script_with_the_pages_nonce(browser: Browser) -> None:
    answer = browser.get()
    assert "Times are UTC." in answer.page.main
    scripts = re.findall(r'<script nonce="([^"]+)">', answer.body)
    assert scripts
    assert all(f"'nonce-{nonce}'" in answer.headers["content-security-policy"] for nonce in scripts)


def test_an_incoming_payment_that_no_attempt_names_is_among_the_references(
    shop: Dashboard, browser: Browser
) -> None:
    session = stored(shop, replace(submitted(refused(), 2), payment_attempts=()))
    assert of(1, "incoming") in browser.get(f"/transactions/{session.id}").page.main
