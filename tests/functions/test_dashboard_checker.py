"""/dashboard/webhooks/check: which byte, second or secret is wrong with a signature."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from checkout.domain.webhooks.event_types import COMPLETED
from checkout.domain.webhooks.signature import new_webhook_secret, signed_headers
from tests.support.basics import seeded
from tests.support.dashboard_pages import Browser, Dashboard, dashboard
from tests.support.samples import an_event

EVENT_ID = "evt_0123456789abcdefABCDEF"
BODY = '{"id":"cs_0123456789abcdefABCDEF","status":"completed","metadata":{"tea":"Grüner"}}'


@dataclass
class Desk:
    """A merchant with an endpoint and one event that was signed just now."""

    shop: Dashboard
    browser: Browser
    secret: str

    def headers(self, *, secret: str = "", body: str = BODY, ago: int = 0) -> dict[str, str]:
        now = self.shop.clock.now() - timedelta(seconds=ago)
        secrets = [secret or self.secret]
        return signed_headers(EVENT_ID, COMPLETED, body, secrets=secrets, now=now)

    def asked(self, headers: str, body: str = BODY) -> str:
        """Return the page's verdict."""
        answer = self.browser.post("/webhooks/check", {"headers": headers, "body": body})
        assert answer.status == 200, answer.page.main
        assert self.secret not in answer.body
        (said,) = [part for part in answer.page.all("section") if "made" in str(part.attributes)]
        return " ".join("".join(said.text).split())


@pytest.fixture(params=["Checkout-Signature", "Standard Webhooks"])
def scheme(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def desk() -> Iterator[Desk]:
    with dashboard() as shop:
        browser = shop.signed_in()
        answer = browser.post("/webhooks", {"url": "https://shop.example/hooks"})
        now = shop.clock.now()
        shop.services.events.add(
            an_event(id=EVENT_ID, type=COMPLETED, body=BODY, created_at=now, next_at=now)
        )
        yield Desk(shop, browser, answer.secret)


def lines(headers: dict[str, str], scheme: str) -> str:
    """Header lines as a log prints them."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    if scheme == "Checkout-Signature":
        names = ("Checkout-Signature", "Checkout-Event-Id", "Content-Type")
    return "\r\n".join(f"{name}: {headers[name]}" for name in names)


def test_a_right_signature_is_said_to_be_right(desk: Desk, scheme: str) -> None:
    said = desk.asked(lines(desk.headers(), scheme))
    assert "The signature is valid: it was made with your current secret" in said
    assert "seconds ago" not in said
    assert "is valid" in desk.asked(desk.headers()["Checkout-Signature"]), "the bare value"


def test_headers_are_understood_as_programs_print_them(desk: Desk, scheme: str) -> None:
    wanted = "webhook-" if scheme == "Standard Webhooks" else "checkout-signature"
    headers = {name.lower(): value for name, value in desk.headers().items()}
    printed = {name: value for name, value in headers.items() if name.startswith(wanted)}
    for text in (json.dumps(printed, indent=2), json.dumps(printed, indent=0).replace('"', "'")):
        assert "is valid" in desk.asked(text)


@pytest.mark.parametrize(
    ("before", "changed", "told"),
    [
        ("completed", "Completed", "we sent “c” (byte 99), you have “C” (byte 67)."),
        ('r"}}', 'x"}}', "we sent “r”"),  # after “ü”, which is two bytes
    ],
)
def test_a_body_that_is_off_by_one_byte_is_told_with_its_place(
    desk: Desk, scheme: str, before: str, changed: str, told: str
) -> None:
    place = BODY.encode().index(before.encode()) + 1
    said = desk.asked(lines(desk.headers(), scheme), BODY.replace(before, changed))
    assert "The body was changed" in said
    assert f"at byte {place}: {told}" in said


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (BODY + "\n", "spaces or line breaks around it"),
        ("  " + BODY, "spaces or line breaks around it"),
        ("\ufeff" + BODY, "byte order mark"),
        (json.dumps(json.loads(BODY)), "the same JSON, but serialized again"),
        (
            json.dumps(json.loads(BODY), separators=(",", ":")),
            "the same JSON, but serialized again",
        ),
        (BODY[:-1], "you have the end"),
    ],
)
def test_what_frameworks_do_to_a_body_is_named(
    desk: Desk, scheme: str, changed: str, told: str
) -> None:
    said = desk.asked(lines(desk.headers(), scheme), changed)
    assert "The body was changed" in said
    assert told in said


def test_a_body_that_is_known_from_no_event_is_still_understood(desk: Desk) -> None:
    body = '{"id":"cs_x","a":[1,2]}'
    value = desk.headers(body=body)["Checkout-Signature"]
    assert "is valid" in desk.asked(value, body)
    assert "serialized again" in desk.asked(value, '{"id": "cs_x", "a": [1, 2]}')
    said = desk.asked(value, body.replace("1", "3"))
    assert "The signature matches none of your secrets, and without the event" in said


@pytest.mark.parametrize("seconds", [1, -1, 600, -3600, 5 * 3600 + 1800])
def test_a_timestamp_that_is_off_is_told_with_the_seconds(
    desk: Desk, scheme: str, seconds: int
) -> None:
    headers = desk.headers()
    at = headers["webhook-timestamp"]
    wrong = {name: value.replace(at, str(int(at) + seconds)) for name, value in headers.items()}
    said = desk.asked(lines(wrong, scheme))
    assert f"The timestamp is off by {seconds} seconds" in said
    milliseconds = headers["Checkout-Signature"].replace(at, at + "000")
    assert "The timestamp is off" in desk.asked(milliseconds)


def test_a_signature_that_is_too_old_or_from_the_future_is_told(desk: Desk, scheme: str) -> None:
    assert "seconds ago" not in desk.asked(lines(desk.headers(ago=300), scheme))
    assert "This webhook was signed 301 seconds ago" in desk.asked(
        lines(desk.headers(ago=301), scheme)
    )
    said = desk.asked(lines(desk.headers(ago=-400), scheme))
    assert "400 seconds ahead of our clock" in said


def test_another_secret_is_told_apart_from_another_body(desk: Desk, scheme: str) -> None:
    foreign = new_webhook_secret(seeded(77))
    said = desk.asked(lines(desk.headers(secret=foreign), scheme))
    assert "not made with any of your secrets" in said
    assert "The body is not the one" not in said
    both = desk.asked(lines(desk.headers(secret=foreign), scheme), BODY + " ")
    assert "not made with any of your secrets" in both
    assert "The body also differs from the one that we sent" in both


def test_a_rolled_secret_is_named_while_it_signs_and_afterwards(desk: Desk, scheme: str) -> None:
    desk.browser.post("/webhooks/roll", {"overlap": "3600"})
    assert "your previous secret" in desk.asked(lines(desk.headers(), scheme))
    desk.shop.clock.pass_time(3600)
    desk.browser = desk.shop.signed_in()
    assert "no longer valid" in desk.asked(lines(desk.headers(), scheme))


def test_a_signature_with_one_wrong_character_is_told_with_its_place(
    desk: Desk, scheme: str
) -> None:
    headers = desk.headers()
    for name, start in (("Checkout-Signature", "v1="), ("webhook-signature", "v1,")):
        before, _, signature = headers[name].partition(start)
        other = "0" if signature[4] != "0" else "1"
        headers[name] = before + start + signature[:4] + other + signature[5:]
    said = desk.asked(lines(headers, scheme))
    assert "changed: character 5 is wrong" in said


def test_a_test_event_is_found_by_the_id_in_its_body(desk: Desk) -> None:
    way = desk.browser.post("/webhooks/test").location
    event = desk.shop.services.events.get(way.rpartition("/")[2])
    assert event is not None
    value = desk.headers(body=event.body)["Checkout-Signature"]
    said = desk.asked(value, event.body.replace("true", "True"))
    assert "we sent “t” (byte 116), you have “T” (byte 84)" in said


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ("t=1772366400,v0=abc", "no v1 signature"),
        ("t=yesterday,v1=abc", "not a number of seconds"),
        ("t=99999999999999,v1=abc", "not a number of seconds"),
        ("webhook-signature: v1,abc\nwebhook-timestamp: 1772366400", "webhook-id is missing"),
        ("t=1772366400,v1=é\ud7ff", "not made with any"),
    ],
)
def test_headers_that_lack_something_are_told(desk: Desk, headers: str, told: str) -> None:
    body = BODY.replace("cs_0123456789abcdefABCDEF", EVENT_ID)
    assert told in desk.asked(headers, body)


@pytest.mark.parametrize("headers", ["", "x", "Content-Type: application/json", "v1=abc", "\0"])
def test_what_is_no_signature_header_is_refused_with_what_to_paste(
    desk: Desk, headers: str
) -> None:
    fields = {"headers": headers, "body": BODY}
    answer = desk.browser.post("/webhooks/check", fields)
    assert answer.status == 400
    assert "Paste the line" in answer.page.one("div", role="alert").text[0]
    assert BODY in "".join(answer.page.one("textarea", id="body").text)


@pytest.mark.parametrize(
    "body", ["", "[" * 60_000, '{"id":"\\ud800"}', '{"id":5}', "null", "x" * 65_536, "1" * 5000]
)
def test_no_body_is_too_strange_to_be_compared(desk: Desk, body: str) -> None:
    value = desk.headers()["Checkout-Signature"]
    assert "matches none of your secrets" in desk.asked(value, body)


def test_what_is_longer_than_any_event_is_refused(desk: Desk) -> None:
    fields = {"headers": desk.headers()["Checkout-Signature"], "body": "x" * 65_537}
    assert desk.browser.post("/webhooks/check", fields).status == 400


def test_another_merchants_event_and_secret_are_never_compared_with(desk: Desk) -> None:
    other = desk.shop.signed_in(desk.shop.other_secret)
    fields = {"headers": lines(desk.headers(), "Checkout-Signature"), "body": BODY}
    assert other.post("/webhooks/check", fields).status == 400, "it has no endpoint"
    other.post("/webhooks", {"url": "https://other.example/hooks"})
    said = other.post("/webhooks/check", fields).page.main
    assert "The signature matches none of your secrets, and without the event" in said
    assert EVENT_ID not in said.partition("Headers")[0]


def test_a_check_reads_and_writes_nothing(desk: Desk) -> None:
    desk.shop.calls()
    desk.asked(lines(desk.headers(), "Checkout-Signature"))
    calls = desk.shop.calls()
    assert calls[:4] == ["get_item"] * 4  # sign-in, key, merchant, event
    # Each page asks what needs somebody, and this shop has an endpoint.
    assert calls[4:] == ["get_item", "get_item", *["query"] * 4, "batch_get_item"]
