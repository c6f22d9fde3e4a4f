"""`listen` and `trigger` with the address of a deployment; the local world stands in for one."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx2
import pytest
import stripe

from sandbox import cloud, deployed
from sandbox.__main__ import main
from sandbox.cloud import CloudError
from sandbox.deployed import Deployment, Feed, deployment, listen, trigger
from tests.support.processes import Dev, Local, free_base


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    running = Dev(tmp_path_factory.mktemp("deployed"), free_base())
    yield running
    running.end()


@pytest.mark.cloud
@pytest.mark.parametrize("form", deployed.FORMS)
def test_what_is_triggered_at_a_deployment_is_handed_to_the_local_address(
    world: Dev, form: str
) -> None:
    place = world.place
    key = place.api_key_file.read_text("utf-8").strip()
    at = Deployment(place.checkout, key, place.ca_file)
    port = cloud.free_port()
    local, said = Local(port), list[str]()
    feed = Feed(at)
    for event in ("completed", "canceled"):
        trigger(at, event, wallet=place.customer_wallet, say=lambda line: None)
    listen(feed, f"http://localhost:{port}/hooks", form=form, say=said.append, rounds=2, sleep=_no)
    local.close()
    feed.close()
    secret = said[0].split()[1]
    types = [dict(each.headers)["checkout-event-type"] for each in local.got]
    # The demo shop's endpoint asks for no other event.
    assert set(types) == {"checkout.session.completed"}
    statuses = set()
    for each in local.got:
        headers = dict(each.headers)
        name = "stripe-signature" if form == "stripe" else "checkout-signature"
        stripe.WebhookSignature.verify_header(each.body.decode(), headers[name], secret, 300)
        body = json.loads(each.body)
        assert (body["object"] == "event") is (form == "stripe")
        statuses.add(body["data"]["object"]["id"] if form == "stripe" else body["status"])
    assert len(statuses) == 1
    assert all("→ 200" in line or "only in Stripe" in line for line in said[2:])


def _no(seconds: float) -> None:
    assert seconds > 0


def an_event(number: int, kind: str = "checkout.session") -> dict[str, Any]:
    shown = {"object": kind, "id": f"cs_{number}"}
    return {"id": f"evt_{number}", "type": "checkout.session.completed", "data": {"object": shown}}


class Host:
    """A deployment with events, newest first in its lists; pages have two."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(deployed, "_PAGE", 2)
        self.events = [an_event(1)]
        self.status = 200

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        assert request.headers["authorization"] == "Bearer sk_test_1"
        if request.url.path.startswith("/api/checkout/sessions/"):
            return httpx2.Response(self.status, json={"id": request.url.path[23:]})
        asked = dict(request.url.params)
        names = [each["id"] for each in self.events]
        start = names.index(asked["ending_before"]) + 1 if "ending_before" in asked else 0
        found = self.events[start:] if start else self.events[-1:]
        page = found[: int(asked["limit"])] if start else found
        return httpx2.Response(self.status, json={"data": page[::-1]})


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def a_feed(host: Host) -> Feed:
    at = deployment("https://pay.example/")
    assert at.checkout == "https://pay.example"
    assert at.customer_wallet == "https://pay.example/test-wallets/cedar/alice"
    return Feed(at, httpx2.MockTransport(host))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "sk_test_1")


def test_events_since_the_start_come_once_and_oldest_first(host: Host) -> None:
    feed = a_feed(host)
    assert list(feed.new()) == []
    host.events += [an_event(number) for number in range(2, 7)]
    assert [each["id"] for each in feed.new()] == [f"evt_{number}" for number in range(2, 7)]
    assert list(feed.new()) == []


def test_an_object_without_a_native_form_is_named_and_left_out(host: Host) -> None:
    feed, said = a_feed(host), list[str]()
    host.events.append(an_event(2, "charge"))
    listen(feed, "http://localhost:1/", form="native", say=said.append, rounds=1, sleep=_no)
    assert "only in Stripe's form" in said[-1]


@pytest.mark.enable_socket
def test_an_address_that_does_not_answer_is_tried_five_times(host: Host) -> None:
    feed, said, slept = a_feed(host), list[str](), list[float]()
    host.events.append(an_event(2))
    port = cloud.free_port()
    listen(
        feed, f"http://localhost:{port}/", form="native", say=said.append, rounds=1,
        sleep=slept.append,
    )  # fmt: skip
    assert "no answer (ConnectError), 5 times" in said[-1]
    assert slept[:5] == [2, 4, 6, 8, 10]


@pytest.mark.parametrize("path", ["/v1/events", "/api"])
def test_a_refusal_of_the_deployment_ends_it_with_its_reason(host: Host, path: str) -> None:
    feed = a_feed(host)
    host.status = 401
    ask = partial(feed.native, an_event(1)) if path == "/api" else lambda: list(feed.new())
    with pytest.raises(CloudError, match="answered 401"):
        ask()


def test_a_deployment_that_does_not_answer_is_named(host: Host) -> None:
    feed = a_feed(host)

    def down(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    feed._http = httpx2.Client(base_url="https://pay.example", transport=httpx2.MockTransport(down))
    with pytest.raises(CloudError, match="/v1/events does not answer"):
        list(feed.new())


@pytest.mark.parametrize(
    "url",
    [
        *("pay.example", "", "https://", "ftp://pay.example", "http://pay.example"),
        *("http://localhost.evil.example", "http://localhost@evil.example", "http://a.localhost"),
        *("http://localhost:4000@evil.example", "http://localhost\\@evil.example"),
        *("https://user:secret@pay.example", "http://127.0.0.1.evil.example", "http://[::2]:4000"),
    ],
)
def test_the_key_is_sent_to_a_deployment_by_https_and_to_this_machine_alone_by_http(
    url: str,
) -> None:
    with pytest.raises(CloudError, match="is not the address"):
        deployment(url)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_this_machine_may_be_asked_by_http(host: str) -> None:
    assert deployment(f"http://{host}:4000/").checkout == f"http://{host}:4000"


def test_a_terminal_obeys_nothing_that_a_deployment_says(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile, escaped = "\x1b]0;owned\x07\x9b2J\u202e\r", r"\x1b]0;owned\x07\x9b2J\u202e\r"
    event = an_event(2, "charge") | {"id": f"evt_{hostile}", "type": f"a{hostile}"}
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        if len(asked) == 2:
            host.events.append(event)
        return host(request) if len(asked) < 3 else httpx2.Response(500, text=hostile)

    transport = httpx2.MockTransport(answer)
    monkeypatch.setattr(deployed, "Feed", partial(Feed, transport=transport))
    monkeypatch.setattr(deployed, "_PAUSE", 0.0)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    arguments = ["listen", "--at", "https://pay.example", "--forward-to", "http://localhost:1/"]
    monkeypatch.setattr(sys, "argv", ["sandbox", *arguments])
    assert main() == 1
    printed = capsys.readouterr()
    assert f"a{escaped}" in printed.out
    assert f"evt_{escaped} → only in Stripe's form" in printed.out
    assert printed.err.endswith(f"answered 500: {escaped}\n")


def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CloudError, match="send a ping in its dashboard"):
        trigger(deployment("https://pay.example"), "ping", wallet=None, say=print)
    monkeypatch.delenv("API_KEY")
    with pytest.raises(CloudError, match="Set API_KEY"):
        deployment("https://pay.example")
