"""/dashboard/webhooks: the address, its secret, the log of deliveries, and sending again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.merchant.people import Scope
from checkout.domain.session.record import Status
from checkout.domain.session.transitions import TRANSITIONS
from checkout.domain.webhooks.event_types import OPTIONAL, PING, choices
from checkout.domain.webhooks.record import Delivery, EventStatus, Format, GivenUp, WebhookEvent
from checkout.flows.webhooks import endpoints
from dashboard.texts import DELIVERY
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.shop_records import stored

URL = "https://shop.example/hooks"
# The specification's body of an event.
SEVEN = [
    "id",
    "status",
    "amount_total",
    "currency",
    "metadata",
    "outgoing_payment",
    "customer_wallet",
]


def configured(browser: Browser, **fields: str) -> str:
    return browser.post("/webhooks", {"url": URL, **fields}).secret


@pytest.fixture
def hooked(browser: Browser) -> Browser:
    """A browser of a merchant who has set an address."""
    configured(browser)
    return browser


def endpoint(shop: Dashboard) -> Any:
    return shop.merchant().endpoint


def read(shop: Dashboard, event: WebhookEvent) -> WebhookEvent:
    found = shop.services.events.get(event.id)
    assert found is not None
    return found


def test_the_first_address_comes_with_a_secret_that_is_shown_once(shop: Dashboard) -> None:
    browser = shop.signed_in()
    secret = configured(browser, expired="on")
    assert secret.startswith("whsec_")
    assert endpoint(shop).events == ("checkout.session.expired",)
    later = browser.get("/webhooks")
    assert later.page.one("input", id="url").attributes["value"] == URL
    assert "checked" in later.page.one("input", name="expired").attributes
    assert "checked" not in later.page.one("input", name="canceled").attributes
    again = browser.post("/webhooks", {"url": URL + "2"})
    assert not again.page.all("code", id="secret"), "it keeps its secret"


def test_an_address_of_a_key_that_may_not_read_gets_details_once_a_person_has_saved_it(
    shop: Dashboard,
) -> None:
    blind = replace(shop.key, scopes=(Scope.MANAGE,))
    endpoints.configure(shop.services, blind.merchant, url=URL, events=(), by=blind)
    browser, says = shop.signed_in(), "its events have no details of customers"
    assert says in browser.get("/webhooks").page.main
    browser.post("/webhooks", {"url": URL, "format": "stripe"})
    assert says not in browser.get("/webhooks").page.main
    assert endpoint(shop).withheld is None


def test_each_event_that_is_always_sent_is_named_beside_the_optional_ones(
    browser: Browser,
) -> None:
    page = browser.get("/webhooks").page
    always = {row.webhook for row in TRANSITIONS.values() if row.webhook} - set(OPTIONAL)
    assert always == {"checkout.session.completed", "checkout.session.late_payment"}
    assert re.findall(r"([A-Z][a-z ]+) \(always\)", page.main) == [
        "A session was paid",
        "Money arrived after a session had ended",
    ]


def test_each_optional_event_has_a_checkbox(shop: Dashboard, browser: Browser) -> None:
    configured(browser, **dict.fromkeys(choices(), "on"))
    assert endpoint(shop).events == OPTIONAL


def test_the_form_of_the_body_is_chosen_and_shown_with_the_event(shop: Dashboard) -> None:
    browser = shop.signed_in()
    configured(browser, format="stripe")
    assert endpoint(shop).format is Format.STRIPE
    options = browser.get("/webhooks").page.all("option")
    chosen = [each.attributes["value"] for each in options if "selected" in each.attributes]
    assert "stripe" in chosen
    event = stored(shop, stripe_body='{"object":"event"}')
    shown = [each.text for each in browser.get(f"/webhooks/{event.id}").page.all("pre")]
    assert ['{"object":"event"}'] in shown
    browser.post("/webhooks", {"url": URL, "format": "native"})
    assert endpoint(shop).format is Format.NATIVE


def test_a_new_endpoint_is_asked_for_its_form_with_a_sample_of_each(browser: Browser) -> None:
    page = browser.get("/webhooks").page
    asked = [each.attributes for each in page.all("input", name="format")]
    assert [each["value"] for each in asked if "checked" in each] == ["native"]
    assert [each["value"] for each in asked] == ["native", "stripe"]
    samples = [json.loads("".join(each.text)) for each in page.all("pre")]
    assert list(samples[0]) == SEVEN
    assert samples[1]["object"] == "event"
    assert samples[1]["type"] == "checkout.session.completed"
    configured(browser, format="stripe")
    further = browser.get("/webhooks?endpoint=new").page.all("input", name="format")
    assert ["checked" in each.attributes for each in further] == [True, False]


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "http://shop.example/", "https://shop.example:8443/", "https://a@shop.example"),
        "https://inside.example/",
    ],
)
def test_an_address_that_cannot_be_used_is_said_beside_what_was_typed(
    shop: Dashboard, url: str
) -> None:
    shop.hosts.private.add("inside.example")
    answer = shop.signed_in().post("/webhooks", {"url": url, "canceled": "on"})
    assert answer.status == 400
    assert answer.page.one("div", role="alert").text
    assert answer.page.one("input", id="url").attributes["value"] == url
    assert "checked" in answer.page.one("input", name="canceled").attributes
    assert endpoint(shop) is None


def test_the_secret_rolls_with_an_overlap(shop: Dashboard, browser: Browser) -> None:
    first = configured(browser)
    answer = browser.post("/webhooks/roll", {"overlap": "86400"})
    second = answer.secret
    assert second != first
    assert "also signs until" in answer.page.main
    assert len(endpoint(shop).signing(shop.clock.now())) == 2
    assert browser.post("/webhooks/roll", {"overlap": "5"}).status == 400


def test_a_secret_that_is_rolled_by_a_form_sent_twice_still_has_its_overlap(
    shop: Dashboard, browser: Browser
) -> None:
    configured(browser)
    form = {"overlap": "86400", "form_name": "0" * 22}
    browser.post("/webhooks/roll", form)
    rolled = endpoint(shop)
    assert browser.post("/webhooks/roll", form).status == 409
    assert endpoint(shop) == rolled


def test_without_an_address_there_is_nothing_to_roll_test_or_enable(browser: Browser) -> None:
    for form in ("roll", "test", "enable"):
        answer = browser.post(f"/webhooks/{form}", {"overlap": "0"})
        assert answer.status == 400
        assert "No webhook endpoint" in answer.page.main
    assert browser.post("/webhooks/remove").status == 303


def test_a_test_event_is_written_hinted_at_and_shown(shop: Dashboard, hooked: Browser) -> None:
    way = hooked.post("/webhooks/test").location
    event_id = way.rpartition("/")[2]
    assert shop.messages.messages == [event_id]
    shown = hooked.get(way.removeprefix("/dashboard")).page.main
    assert "about to be sent" in shown
    assert "Test event" in hooked.get("/webhooks").page.main
    assert event_id in hooked.get("/audit").page.main


def test_an_endpoint_that_said_410_is_enabled_again(shop: Dashboard, hooked: Browser) -> None:
    shop.services.merchants.replace(shop.merchant().disabled(shop.clock.now()))
    assert "responded 410" in hooked.get("/webhooks").page.main
    assert hooked.post("/webhooks/test").status == 400
    assert hooked.post("/webhooks/enable").status == 303
    assert endpoint(shop).disabled_at is None
    assert "responded 410" not in hooked.get("/webhooks").page.main


def test_an_event_shows_each_attempt_with_its_answer_and_is_sent_again(
    shop: Dashboard, hooked: Browser
) -> None:
    event = stored(shop, body='{"id":"cs_<1>"}')
    page = hooked.get(f"/webhooks/{event.id}").page
    assert "Response 500" in page.main
    assert "120 ms" in page.main
    assert "out of order <b>" in page.main
    assert '{"id":"cs_<1>"}' in page.main
    assert "every attempt failed" in page.main
    assert hooked.post(f"/webhooks/{event.id}/resend").status == 303
    assert read(shop, event).status is EventStatus.PENDING
    assert shop.messages.messages == [event.id]
    again = hooked.post(f"/webhooks/{event.id}/resend")
    assert again.status == 400
    assert "still being delivered" in again.page.main


def test_an_event_for_nobody_is_no_failure(shop: Dashboard) -> None:
    stored(shop, given_up=GivenUp.NO_ENDPOINT, deliveries=(), attempts=0)
    page = shop.signed_in().get("/webhooks").page
    assert page.one("span", **{"class": "badge"}).text == ["Not sent"]
    stored(shop)
    page = shop.signed_in().get("/webhooks").page
    assert page.one("span", **{"class": "badge bad"}).text == ["Failed"]


def test_the_audit_log_and_the_session_lead_to_the_event(shop: Dashboard, hooked: Browser) -> None:
    event = hooked.post("/webhooks/test").location
    assert event in hooked.get("/audit").page.links
    session = shop.store(event=event.rpartition("/")[2], status=Status.COMPLETED)
    assert event in hooked.get(f"/transactions/{session.id}").page.links
    assert hooked.get(event.removeprefix("/dashboard")).status == 200


def test_an_event_that_waits_for_its_next_attempt_can_be_sent_now(
    shop: Dashboard, hooked: Browser
) -> None:
    later = shop.clock.now() + timedelta(hours=5)
    pending = EventStatus.PENDING
    event = stored(shop, status=pending, next_at=later, ended_at=None, given_up=None)
    assert "Send now" in hooked.get(f"/webhooks/{event.id}").page.main
    assert hooked.post(f"/webhooks/{event.id}/resend").status == 303
    assert read(shop, event).next_at == shop.clock.now()
    assert "Send again" not in hooked.get(f"/webhooks/{event.id}").page.main


def test_the_whole_kept_answer_is_shown(shop: Dashboard) -> None:
    answer = "".join(chr(0x4E00 + number) for number in range(341))  # 1023 bytes
    failed = Delivery(at=shop.clock.now(), duration_ms=1, status=500, answer=answer)
    event = stored(shop, deliveries=(failed,))
    assert answer in shop.signed_in().get(f"/webhooks/{event.id}").body


def test_a_redirect_is_told_with_the_url_that_is_to_be_set(shop: Dashboard) -> None:
    told = []
    for leads in ("https://www.shop.example/hooks", None):
        moved = Delivery(at=shop.clock.now(), duration_ms=21, status=308, error=leads)
        event = stored(shop, deliveries=(moved,))
        told.append(shop.signed_in().get(f"/webhooks/{event.id}").page.main)
    assert (
        "Response 308: redirects are not followed. It leads to https://www.shop.example/hooks: "
        "set this URL in 21 ms"
    ) in told[0]
    assert "Response 308: redirects are not followed in 21 ms" in told[1]


def test_all_failed_ones_are_sent_again_a_page_at_a_time(
    shop: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkout.flows.webhooks.endpoints.RESEND_PAGE", 2)
    browser = shop.signed_in()
    configured(browser)
    old = stored(shop, created_at=shop.clock.now() - timedelta(days=2))
    failed = [stored(shop) for _ in range(3)]
    fine = stored(shop, status=EventStatus.DELIVERED, given_up=None)
    since = shop.clock.now().date().isoformat()
    answer = browser.post("/webhooks/resend-failed", {"since": since})
    assert f"Send 3 events again to {URL}? They failed since {since}." in answer.page.main
    assert shop.messages.messages == [], "it only asks"
    answer = browser.post("/webhooks/resend-failed", {"since": since, "sure": "yes"})
    rounds = 1
    while after := answer.page.all("input", name="after"):
        fields = {"since": since, "after": after[0].attributes["value"], "sure": "yes"}
        answer = browser.post("/webhooks/resend-failed", fields)
        rounds += 1
    assert rounds == 2
    assert sorted(shop.messages.messages) == sorted(event.id for event in failed)
    assert read(shop, old).status is EventStatus.EXHAUSTED
    assert read(shop, fine).status is EventStatus.DELIVERED
    for since in ("", "x", "2026-13-01", "9999-01-01"):
        assert browser.post("/webhooks/resend-failed", {"since": since}).status == 400


def test_the_log_is_filtered_and_paged_without_a_gap_or_a_repeat(shop: Dashboard) -> None:
    browser = shop.signed_in()
    failed = []
    for number in range(60):
        shop.clock.pass_time(0.001)
        if number % 2:
            failed.append(stored(shop).id)
        else:
            stored(shop, type=PING, status=EventStatus.DELIVERED, given_up=None)
    path, seen = "/webhooks?status=exhausted", []
    while path:
        page = browser.get(path).page
        links = [link.attributes["href"] for link in page.all("a")]
        seen += [link.rpartition("/")[2] for link in links if "/webhooks/evt_" in link]
        older = [link for link in links if "cursor=" in link]
        path = older[0].removeprefix("/dashboard") if older else ""
    assert seen == failed[::-1]
    assert browser.get("/webhooks?status=nonsense").status == 200


def test_an_endpoint_that_asks_for_an_event_of_a_later_release_is_shown_with_its_type(
    shop: Dashboard, browser: Browser
) -> None:
    configured(browser, expired="on")
    added(browser, "https://other.example/hooks")
    asked = ("checkout.session.expired", "checkout.session.refunded")
    merchant = shop.merchant()
    later = merchant.changed(endpoint=replace(endpoint(shop), events=asked))
    shop.services.merchants.replace(later)
    page = browser.get("/webhooks").page
    assert "Also gets: A session expired, checkout.session.refunded." in page.main
    assert "checked" in page.one("input", name="expired").attributes


def test_an_event_of_a_later_release_is_shown_by_its_type(
    shop: Dashboard, browser: Browser
) -> None:
    event = stored(shop, type="checkout.session.refunded")
    assert "checkout.session.refunded" in browser.get("/webhooks").page.main
    assert "Event: checkout.session.refunded" in browser.get(f"/webhooks/{event.id}").page.main
    session = shop.store(event=event.id, status=Status.COMPLETED)
    assert event.type in browser.get(f"/transactions/{session.id}").page.main


def test_nothing_from_before_the_endpoint_is_sent_again(shop: Dashboard) -> None:
    stored(shop)
    shop.clock.pass_time(60)
    browser = shop.signed_in()
    configured(browser)
    since = shop.clock.now().date().isoformat()
    answer = browser.post("/webhooks/resend-failed", {"since": since})
    assert f"No event for this endpoint has failed since {since}." in answer.page.main
    late = stored(shop)
    answer = browser.post("/webhooks/resend-failed", {"since": since})
    assert "Send 1 event again" in answer.page.main
    assert "Events from before" in answer.page.main
    browser.post("/webhooks/resend-failed", {"since": since, "sure": "yes"})
    assert shop.messages.messages == [late.id]


def added(browser: Browser, url: str, **fields: str) -> str:
    """Add an endpoint in its form; return its id, which the page then names."""
    browser.get("/webhooks?endpoint=new")
    answer = browser.post("/webhooks", {"url": url, "endpoint": "new", **fields})
    assert answer.secret.startswith("whsec_")
    identity: str = answer.page.all("input", name="endpoint")[0].attributes["value"]
    return identity


def test_each_endpoint_has_its_own_form_secret_tests_and_log(
    shop: Dashboard, hooked: Browser
) -> None:
    books = added(hooked, "https://books.example/", expired="on")
    assert [each.url for each in shop.merchant().endpoints] == [URL, "https://books.example/"]
    page = hooked.get(f"/webhooks?endpoint={books}").page
    assert page.one("input", id="url").attributes["value"] == "https://books.example/"
    assert "checked" in page.one("input", name="expired").attributes
    assert "A session expired" in page.main
    way = hooked.post("/webhooks/test", {"endpoint": books}).location
    assert way.endswith(f"~{books}")
    shown = hooked.get(way.removeprefix("/dashboard")).page.main
    assert "https://books.example/" in shown
    assert way in hooked.get(f"/webhooks?endpoint={books}").page.links
    assert way not in hooked.get("/webhooks").page.links
    assert hooked.post("/webhooks/roll", {"endpoint": books, "overlap": "3600"}).secret
    assert len(shop.merchant().endpoints[1].secrets) == 2
    now, second = shop.clock.now(), shop.merchant().endpoints[1]
    shop.services.merchants.replace(shop.merchant().disabled(now, second))
    assert "Disabled" in hooked.get("/webhooks").page.main
    assert hooked.post("/webhooks/enable", {"endpoint": books}).status == 303
    assert shop.merchant().endpoints[1].disabled_at is None
    hooked.post("/webhooks", {"endpoint": books, "url": "https://books.example/2"})
    assert shop.merchant().endpoints[1].url == "https://books.example/2"
    assert hooked.post("/webhooks/remove", {"endpoint": books}).status == 303
    assert [each.url for each in shop.merchant().endpoints] == [URL]


def test_an_endpoint_that_is_not_there_is_said_so(hooked: Browser) -> None:
    assert hooked.get("/webhooks?endpoint=we_none").status == 404
    for form in ("enable", "test", "roll"):
        answer = hooked.post(f"/webhooks/{form}", {"endpoint": "we_none", "overlap": "0"})
        assert answer.status == 404
    wrong = hooked.post("/webhooks", {"endpoint": "new", "url": "x"})
    assert wrong.status == 400
    assert wrong.page.one("input", id="url").attributes["value"] == "x"
    for number in range(7):
        added(hooked, f"https://books.example/{number}")
    assert "Add another endpoint" not in hooked.get("/webhooks").page.main
    hooked.post("/webhooks/remove", {})
    assert "books.example/0" in hooked.get("/webhooks").page.main


def test_an_event_and_its_session_show_what_became_of_it_at_each_endpoint(
    shop: Dashboard, hooked: Browser
) -> None:
    books = added(hooked, "https://books.example/")
    shop.clock.pass_time(61)  # the head of each page is a minute old
    event = stored(shop, status=EventStatus.DELIVERED, given_up=None)
    copy = replace(event, id=f"{event.id}~{books}", endpoint=books, status=EventStatus.EXHAUSTED)
    shop.services.events.add(replace(copy, given_up=GivenUp.ATTEMPTS))
    session = shop.store(event=event.id, status=Status.COMPLETED)
    for path in (f"/webhooks/{event.id}", f"/transactions/{session.id}"):
        page = hooked.get(path).page
        assert f"/dashboard/webhooks/{copy.id}" in page.links
        assert "https://books.example/ Failed" in page.main
    own = hooked.get(f"/webhooks/{copy.id}").page.main
    assert "Sent to https://books.example/" in own
    assert copy.id not in own
    assert hooked.post(f"/webhooks/{copy.id}/resend").status == 303
    assert shop.messages.messages == [copy.id]


@pytest.mark.parametrize(
    ("status", "made", "look"),
    [
        (EventStatus.PENDING, (), "processing"),
        (EventStatus.PENDING, (None,), "processing"),
        (EventStatus.PENDING, (500,), "warn"),
        (EventStatus.DELIVERED, (500, 200), "completed"),
        (EventStatus.EXHAUSTED, (500,), "bad"),
    ],
)
def test_a_delivery_has_the_same_badge_in_the_log_on_its_page_and_at_its_payment(
    shop: Dashboard, status: EventStatus, made: tuple[int | None, ...], look: str, hooked: Browser
) -> None:
    now = shop.clock.now()
    deliveries = tuple(
        Delivery(at=now, duration_ms=each and 5, status=each, answer="") for each in made
    )
    ended: dict[str, Any] = {"ended_at": None if status is EventStatus.PENDING else now}
    ended |= {"given_up": GivenUp.ATTEMPTS if status is EventStatus.EXHAUSTED else None}
    event = stored(shop, status=status, deliveries=deliveries, **ended)
    session = shop.store(event=event.id, status=Status.COMPLETED)
    for path in ("/webhooks", f"/webhooks/{event.id}", f"/transactions/{session.id}"):
        page = hooked.get(path).page
        badges = [each for each in page.all("span") if each.text == [DELIVERY[status]]]
        assert [each.attributes["class"] for each in badges] == [f"badge {look}"], path


def test_the_list_of_endpoints_says_which_one_fails_and_what_came_last(
    shop: Dashboard, hooked: Browser
) -> None:
    assert f"{URL} Nothing was sent yet." in hooked.get("/webhooks").page.main
    books = added(hooked, "https://books.example/")
    second = shop.merchant().endpoints[1]
    for number in range(3):
        event = stored(shop)
        copy = replace(event, id=f"{event.id}~{second.id}", endpoint=second.id)
        good = Delivery(at=shop.clock.now(), duration_ms=90, status=204, answer="")
        shop.services.events.add(replace(copy, deliveries=(good,)))
        main = hooked.get(f"/webhooks?endpoint={books}").page.main
        assert ("Failing since 1 Mar 2026" in main) is (number == 2)
        shop.clock.pass_time(60)
    assert "Last attempt 1 Mar 2026, 12:02:00: Response 500." in main
    assert "Last attempt 1 Mar 2026, 12:02:00: Response 204." in main
    assert main.count("Failing") == 1
