"""Webhooks: addresses that lead elsewhere, receivers that misbehave, forged signatures, and
messages of strangers in the queues.

A delivery goes to the merchant's own address only, proves by its signature where it came from, and
its answer changes nothing but its own event.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

import pytest
import standardwebhooks
import stripe
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.merchant.people import Scope
from checkout.domain.session.collect import Collect, Detail
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.webhooks.record import EventStatus, WebhookEvent
from checkout.domain.webhooks.signature import hex_signature, standard_signature
from checkout.flows.session import details
from checkout.flows.webhooks.deliver import deliver
from checkout.ports import Receipt
from expirer.cleanup import queued as cleans
from tests.attacks.texts import NO_LINKS
from tests.support.attack_counts import Attack
from tests.support.deliveries import Delivered, delivered
from tests.support.deployment import Context, sqs_event
from tests.support.doors import Doors, Visitor
from webhook_sender.app import queued as sends

pytestmark = pytest.mark.untraced

HOOK = "https://shop.example/hooks"
# Good for a customer's browser, and no receiver.
NO_RECEIVERS = [
    *("https://shop.example:8443/", "https://shop.example:22/", "https://shop.example:80/"),
    *("https://shop.example/#x", "HTTPS://shop.example/", "https://shop.example/thé"),
    *("https://inside.example/", "https://localhost/", "https://127.0.0.1/", "https://[::1]/"),
    *("https://10.0.0.1/", "https://192.168.0.1/", "https://172.16.0.1/", "https://0.0.0.0/"),
    *("https://0/", "https://127.1/", "https://2130706433/", "https://0x7f.1/"),
    *("https://[::ffff:127.0.0.1]/", "https://[fe80::1]/", "https://[fc00::1]/"),
    *("https://017700000001/", "https://169.254.1.1/", "https://[ff02::1]/"),
    *("https://100.64.0.1/", "https://224.0.0.1/", "https://255.255.255.255/"),
]  # fmt: skip


class Private:
    """`ports.Hosts` in production: what resolves to our own network is not permitted."""

    def permitted(self, host: str) -> bool:
        return host == "shop.example"


def test_no_address_elsewhere_is_saved(doors: Doors, attack: Attack) -> None:
    doors.world.endpoints = replace(doors.world.endpoints, hosts=Private())
    browser = doors.signed_in()

    def attempt(url: str) -> None:
        with doors.nothing_happens():
            fields = {"url": url, "form_token": browser.form_token, "completed": "on"}
            answer = doors.dashboard("POST", "/webhooks", fields, visitor=browser)
            assert answer.status == 400, answer.status
            assert not answer.page.all("code", id="secret")

    attack.each(list(dict.fromkeys([*NO_LINKS[::2], *NO_RECEIVERS])), attempt)


# --- what an address learns

THIEF = "https://thief.example/hooks"
ANA = CustomerDetails(email="ana@example.com", name="Ana Muster")
BLIND = (Scope.WRITE, Scope.MANAGE, Scope.REFUND)


def heard(doors: Doors) -> dict[str, bytes]:
    """Let a customer pay who gives details; return what is sent, by the host that it is sent to."""
    world = doors.world
    world.receivers.got.clear()
    asks = Collect(asked=frozenset({Detail.EMAIL, Detail.NAME}))
    asked = world.create(collect_json=asks.to_json())
    world.pay(details.give(world.services, asked, ANA))
    while world.queue.messages:
        world.deliver_hinted()
    found: dict[str, bytes] = {}
    for url, _, body in world.receivers.got:
        host = urlsplit(url).hostname or ""
        found[host] = found.get(host, b"") + body
    return found


def test_a_key_that_may_not_read_learns_no_details_by_an_address_of_its_own(
    doors: Doors, attack: Attack
) -> None:
    world = doors.world
    reader = doors.key_with(Scope.READ, Scope.WRITE, Scope.MANAGE)
    asked = {"url": HOOK, "enabled_events": ["*"]}
    own = doors.v1("POST", "/webhook_endpoints", asked, key=reader).json["id"]
    assert b"ana@example.com" in heard(doors)["shop.example"], "the shop's own learns them"

    def attempt(scopes: tuple[Scope, ...]) -> None:
        key, may = doors.key_with(*scopes), Scope.MANAGE in scopes
        added = doors.v1("POST", "/webhook_endpoints", asked | {"url": THIEF}, key=key)
        turned = doors.v1("POST", f"/webhook_endpoints/{own}", {"url": THIEF}, key=key)
        sent = heard(doors)
        for answer in (added, turned):
            assert attack.answered(answer.status) == (200 if may else 403)
        assert may == ("thief.example" in sent)
        for word in (b"ana@example.com", b"Ana Muster"):
            assert word not in sent.get("thief.example", b"")
        back = {"url": HOOK, "disabled": False}
        assert doors.v1("POST", f"/webhook_endpoints/{own}", back, key=reader).status == 200
        for each in world.stored().further_endpoints:
            path = f"/webhook_endpoints/{each.id}"
            answer = doors.v1("DELETE", path, key=key)
            assert attack.answered(answer.status) == 200

    several = [each for size in (1, 2, 3) for each in combinations(BLIND, size)]
    attack.each(several, attempt)
    assert b"ana@example.com" in heard(doors)["shop.example"]


# --- receivers


def sender(doors: Doors, *messages: str) -> list[dict[str, str]]:
    """Hand messages to the function that sends; return those that it failed on."""
    world = doors.world
    send = partial(deliver, world.core, world.vault, world.receivers)
    found: list[dict[str, str]] = sends(lambda: send)(sqs_event(*messages), Context())[
        "batchItemFailures"
    ]
    return found


def with_event(doors: Doors) -> WebhookEvent:
    """Return the undelivered event of a completed purchase; the merchant listens."""
    doors.world.listen()
    browser = Visitor()
    _, back = doors.approved(browser)
    doors.follow(back, browser)
    doors.world.queue.messages.clear()
    return doors.world.event()


RECEIPTS: dict[str, Receipt] = {
    **{
        f"status {status}": Receipt(status=status, answer="x")
        for status in (100, 199, 300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408,
                       409, 418, 422, 429, 451, 500, 501, 502, 503, 504, 599, 600, 999, 0, -1)
    },
    "no answer": Receipt(error="no answer: cut"),
    "nothing": Receipt(),
    "empty": Receipt(status=500, answer=""),
    "a script": Receipt(status=500, answer="<script>alert(1)</script>"),
    "a template": Receipt(status=500, answer="{{7*7}}${7*7}<%= 7*7 %>"),
    "a terminal": Receipt(status=500, answer="\x1b[31m\x07\u202e"),
    "our own event": Receipt(status=500, answer='{"type":"checkout.session.completed"}'),
    "long": Receipt(status=500, answer="x" * 1024),
    "four bytes each": Receipt(status=500, answer="💶" * 1024),
    "wait for ever": Receipt(status=503, answer="x", retry_after=timedelta(days=10_000)),
    "wait for nothing": Receipt(status=503, answer="x", retry_after=timedelta(0)),
    "an error with markup": Receipt(error="<script>alert(1)</script>"),
}  # fmt: skip


def test_no_receiver_changes_anything_but_its_own_event(doors: Doors, attack: Attack) -> None:
    event, browser = with_event(doors), doors.signed_in()
    message = json.dumps({"event": event.id})
    events = "test-webhook_events"

    def attempt(receipt: Receipt) -> None:
        world = doors.world
        pending = world.event(event.id)
        again: Any = {"next_at": world.clock.now(), "attempts": 0, "version": pending.version + 1}
        world.core.events.save(replace(pending, **again))
        before = doors.state()
        world.receivers.answers = [receipt]
        assert sender(doors, message) == []
        after = doors.state()
        [(url, _, body)] = after["delivered"][len(before["delivered"]) :]
        assert (url, json.loads(body)["id"]) == (HOOK, event.session)
        changed = {name for name in before if before[name] != after[name]}
        assert changed <= {events, "delivered", "queued"}, changed
        found = world.event(event.id)
        assert found.status is EventStatus.PENDING
        assert timedelta(0) < found.next_at - world.clock.now() <= timedelta(days=1, hours=3)
        page = doors.dashboard("GET", f"/webhooks/{event.id}", visitor=browser)
        assert page.status == 200
        assert "<script>alert" not in page.body

    attack.each(RECEIPTS, attempt)


def test_a_410_ends_no_other_merchants_webhooks(doors: Doors, attack: Attack) -> None:
    event = with_event(doors)
    doors.world.receivers.answers = [Receipt(status=410)]

    def attempt(_: str) -> None:
        theirs = doors.world.core.merchants.get(doors.other.id)
        assert sender(doors, json.dumps({"event": event.id})) == []
        assert doors.world.core.merchants.get(doors.other.id) == theirs
        assert doors.world.endpoint().disabled_at is not None

    attack.each(["410"], attempt)


MESSAGES = [
    *("", " ", "null", "[]", "1", '"x"', "{}", '{"event":null}', '{"event":1}', '{"event":[]}'),
    *('{"event":{}}', '{"event":""}', '{"event":"x"}', f'{{"event":"evt_{"0" * 22}"}}'),
    *('{"event":"evt_\\u0000"}', '{"event":"../x"}', '{"Event":"x"}', "{", "\x00", "evt_x"),
    *('{"cleanup":{}}', json.dumps({"event": "x" * 200_000}), "[" * 10_000, '{"event":"\\ud800"}'),
]  # fmt: skip


def test_no_stranger_in_the_queue_has_anything_sent(doors: Doors, attack: Attack) -> None:
    with_event(doors)

    def attempt(message: str) -> None:
        with doors.nothing_happens():
            sender(doors, message)

    attack.each(MESSAGES, attempt)


CLEANUPS = [
    *(*MESSAGES, '{"cleanup":null}', '{"cleanup":[]}', '{"cleanup":"x"}'),
    json.dumps({"cleanup": {"merchant": "mer_x", "session": "cs_x", "grant": "v1.00000000.AAAA"}}),
]


def test_no_stranger_in_the_queue_has_anything_cleaned_up(doors: Doors, attack: Attack) -> None:
    with_event(doors)

    def attempt(message: str) -> None:
        with doors.nothing_happens():
            cleans(lambda: doors.world.services)(sqs_event(message), Context())

    attack.each(CLEANUPS, attempt)


def test_a_message_that_comes_again_sends_nothing(doors: Doors, attack: Attack) -> None:
    event = with_event(doors)
    message = json.dumps({"event": event.id})
    assert sender(doors, message) == []
    assert doors.world.event(event.id).status is EventStatus.DELIVERED

    def attempt(number: int) -> None:
        with doors.nothing_happens():
            assert sender(doors, *[message] * number) == []

    attack.each([1, 2, 10], attempt)


# --- signatures

ALSO_REFUSED = (stripe.SignatureVerificationError, standardwebhooks.WebhookVerificationError)


def accepted(got: Delivered) -> list[str]:
    """Return the libraries that take the delivery for ours."""
    found = []
    verifiers: dict[str, Callable[[], object]] = {
        "stripe": lambda: stripe.WebhookSignature.verify_header(
            got.body.decode("utf-8", "surrogateescape"), got.signature, got.secret, 300
        ),
        "standardwebhooks": lambda: standardwebhooks.Webhook(got.secret).verify(
            got.body, got.headers
        ),
    }
    for name, verify in verifiers.items():
        try:
            verify()
        except (*ALSO_REFUSED, ValueError, KeyError):
            continue
        found.append(name)
    return found


@cache
def ours() -> Delivered:
    [found] = delivered()
    assert accepted(found) == ["stripe", "standardwebhooks"]
    return found


def with_both(got: Delivered, stripes: str, standard: str, **others: str) -> Delivered:
    changed = {"Checkout-Signature": stripes, "webhook-signature": standard}
    return replace(got, headers=got.headers | changed | others)


def forgeries() -> dict[str, Delivered]:
    got = ours()
    at, body = got.headers["webhook-timestamp"], got.body.decode()
    identity = got.headers["webhook-id"]
    one, two = got.signature, got.headers["webhook-signature"]
    found = {
        "no signature": with_both(got, "", ""),
        "a time alone": with_both(got, f"t={at}", "v1"),
        "an empty v1": with_both(got, f"t={at},v1=", "v1,"),
        "v0": with_both(got, one.replace("v1=", "v0="), two.replace("v1,", "v0,")),
        "v1a": with_both(got, one.replace("v1=", "v1a="), two.replace("v1,", "v1a,")),
        "none": with_both(got, f"t={at},v1=none", "v1,none"),
        "zeros": with_both(got, f"t={at},v1={'0' * 64}", f"v1,{'A' * 43}="),
        "half": with_both(got, one[:-32], two[:-22]),
        "in capitals": with_both(got, one.upper(), two.upper()),
        "a later time": with_both(
            got, one.replace(at, str(int(at) + 1)), two, **{"webhook-timestamp": str(int(at) + 1)}
        ),
        "another id": with_both(got, one.replace(at, "1"), two, **{"webhook-id": "evt_x"}),
        "no time": with_both(got, one.partition(",")[2], two, **{"webhook-timestamp": ""}),
        "a time of NaN": with_both(
            got, one.replace(at, "NaN"), two, **{"webhook-timestamp": "NaN"}
        ),
        "a blank body": replace(got, body=b" " + got.body),
        "a line more": replace(got, body=got.body + b"\n"),
        "no body": replace(got, body=b""),
        "another object": replace(got, body=got.body + got.body),
    }
    for place in range(0, len(got.body), 97):
        body_bytes = bytearray(got.body)
        body_bytes[place] ^= 1
        found[f"a bit at {place}"] = replace(got, body=bytes(body_bytes))
    secrets = {
        "another secret": "whsec_" + "A" * 43 + "=",
        "an empty secret": "whsec_",
        "the secret's name": "whsec_c2VjcmV0",
        "the secret without its prefix": "whsec_" + got.secret[6:].swapcase(),
    }
    for name, secret in secrets.items():
        found[f"signed with {name}"] = with_both(
            got,
            f"t={at},v1={hex_signature(at, body, secret)}",
            f"v1,{standard_signature(identity, at, body, secret)}",
        )
    return found


def test_no_forged_delivery_verifies(attack: Attack) -> None:
    def attempt(forged: Delivered) -> None:
        assert accepted(forged) == []

    attack.each(forgeries(), attempt)


def test_no_secret_verifies_the_deliveries_of_others(attack: Attack) -> None:
    """Each has its own, and one that was replaced at once signs no more."""
    doors = Doors()
    world = doors.world
    world.clock.pass_time(time.time() - world.clock.now().timestamp())
    mine = world.listen()
    browser = doors.signed_in(doors.other_key)
    fields = {"url": "https://mallory.example/", "form_token": browser.form_token}
    theirs = doors.dashboard("POST", "/webhooks", fields, visitor=browser).secret
    owner = doors.signed_in()
    roll = {"overlap": "0", "form_token": owner.form_token}
    rolled = doors.dashboard("POST", "/webhooks/roll", roll, visitor=owner).secret
    customer = Visitor()
    _, back = doors.approved(customer)
    doors.follow(back, customer)
    world.deliver_hinted()
    [(_, headers, body)] = world.receivers.got
    assert len({mine, theirs, rolled}) == 3
    assert accepted(Delivered(headers, body, rolled)) == ["stripe", "standardwebhooks"]

    def attempt(secret: str) -> None:
        assert accepted(Delivered(headers, body, secret)) == []

    attack.each({"replaced": mine, "of the other": theirs}, attempt)


@given(st.text(max_size=80), st.text(max_size=80), st.integers(0, 10**11))
def test_a_signature_is_of_one_time_and_one_body(body: str, other: str, at: int) -> None:
    one, two = body.encode("utf-8", "replace").decode(), other.encode("utf-8", "replace").decode()
    secret = ours().secret
    made = hex_signature(str(at), one, secret)
    assert (made == hex_signature(str(at), two, secret)) == (one == two)
    assert made != hex_signature(str(at + 1), one, secret)
