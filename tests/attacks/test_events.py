"""Events that no gateway should send, at the handlers of the three functions with routes.

A Host that is none, forwarded ports that are words, bodies that are not base64, lone surrogates.

None gives a 5xx; what is refused reaches neither a table nor a wallet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import api.app
import dashboard.app
import pay.app
import pay.dependencies
from checkout.services import PayServices
from tests.support.dashboard_pages import dashboard as a_dashboard
from tests.support.flows import World
from tests.support.merchant_api import SESSIONS, MerchantApi, a_body, gateway_event

Event = dict[str, Any]
LONE = "\ud800"
PATHS = {"api": SESSIONS, "pay": "/pay/cs_0123456789abcdefABCDEF/wallet", "dashboard": "/dashboard"}

HOSTS_REFUSED = [
    *("a:b:c", "x:port", "x:-1", "x:123456", "[::1", "::1", "[", "a b", "a/b", "a?b", "a@b", ""),
    *("[::1]x", "[::1]:port", "℀.example", "pay.example\r\nX: y", "x:٣", LONE),
]
HOSTS_TAKEN = ["[::1]", "[::1]:3000", "pay.example:443", "pay.example:", "xn--nxasmq6b", "1.2.3.4"]
FORWARDED = [
    {"X-Forwarded-Port": "word"},
    {"X-Forwarded-Port": ""},
    {"x-forwarded-port": "1:2"},
    {"X-Forwarded-Proto": "//["},
    {"X-Forwarded-Proto": "javascript"},
]


class Place:
    """The three functions over tables and wallets that note every call."""

    def __init__(self, entered: ExitStack) -> None:
        self.api, self.world = MerchantApi(), World()
        entered.enter_context(self.api.installed())
        self.dashboard = entered.enter_context(a_dashboard())
        self.dashboard.calls()

        async def given() -> PayServices:
            return self.world.services

        pay.app.app.dependency_overrides[pay.dependencies.services] = given
        entered.callback(pay.app.app.dependency_overrides.clear)
        self.world.forget()

    def send(self, function: str, event: Event) -> dict[str, Any]:
        handlers = {
            "api": api.app.handler,
            "pay": pay.app.handler,
            "dashboard": dashboard.app.handler,
        }
        answer = handlers[function](event, None)
        assert answer["statusCode"] < 500
        assert answer["headers"]["request-id"].startswith("req_")
        assert answer["headers"]["cache-control"] == "no-store"
        json.dumps(answer).encode()  # as Lambda writes it
        return answer

    def assert_untouched(self) -> None:
        assert not list(self.api.dynamo.calls.elements())
        assert not self.dashboard.calls()
        assert not self.world.aws_calls()
        assert not self.world.transport.sent


@pytest.fixture
def place() -> Iterator[Place]:
    with ExitStack() as entered:
        yield Place(entered)


def an_event(place: Place, function: str, **headers: str) -> Event:
    """A creation, a submitted wallet or a visit, all as they should be but for `headers`."""
    sent = {"Host": "pay.example", "Authorization": f"Bearer {place.api.secret}"}
    sent |= {"Content-Type": "application/json", "Accept": "text/html"} | headers
    raw = json.dumps(a_body()).encode() if function == "api" else None
    method = "GET" if function == "dashboard" else "POST"
    return gateway_event(method, PATHS[function], "", sent, raw)


def assert_refused(place: Place, function: str, event: Event) -> None:
    answer = place.send(function, event)
    assert answer["statusCode"] == 400
    if function == "api":
        error = json.loads(answer["body"])["error"]
        assert (error["code"], error["type"]) == ("parameter_invalid", "invalid_request_error")
        assert error["request_id"] == answer["headers"]["request-id"]
    place.assert_untouched()


@pytest.mark.parametrize("host", HOSTS_REFUSED)
@pytest.mark.parametrize("function", PATHS)
def test_a_host_that_is_none_is_a_400(place: Place, function: str, host: str) -> None:
    assert_refused(place, function, an_event(place, function, Host=host))


@pytest.mark.parametrize("host", HOSTS_TAKEN)
def test_any_host_is_served_as_our_own_address_is_a_setting(place: Place, host: str) -> None:
    answer = place.send("api", an_event(place, "api", Host=host))
    assert answer["statusCode"] == 201
    assert json.loads(answer["body"])["url"].startswith("https://pay.example/pay/cs_")


def test_no_host_is_needed(place: Place) -> None:
    event = an_event(place, "api")
    del event["headers"]["Host"]
    assert place.send("api", event)["statusCode"] == 201


@pytest.mark.parametrize("headers", FORWARDED, ids=str)
@pytest.mark.parametrize("function", PATHS)
def test_a_forwarded_port_or_scheme_is_not_read(
    place: Place, function: str, headers: dict[str, str]
) -> None:
    expected = place.send(function, an_event(place, function))["statusCode"]
    assert place.send(function, an_event(place, function, **headers))["statusCode"] == expected


def with_path(event: Event, path: str) -> Event:
    http = event["requestContext"]["http"] | {"path": path}
    return event | {"rawPath": path, "requestContext": event["requestContext"] | {"http": http}}


MALFORMED: dict[str, Callable[[Event], Event]] = {
    "a body of half a byte": lambda event: event | {"body": "A", "isBase64Encoded": True},
    "a body of no base64": lambda event: event | {"body": "{}*~", "isBase64Encoded": True},
    "a body of other letters": lambda event: event | {"body": "äöü=", "isBase64Encoded": True},
    "a surrogate in base64": lambda event: event | {"body": LONE, "isBase64Encoded": True},
    "a surrogate in the body": lambda event: event | {"body": LONE, "isBase64Encoded": False},
    "a surrogate in the path": lambda event: with_path(event, f"/pay/{LONE}"),
    "a surrogate in the query": lambda event: event | {"rawQueryString": f"limit={LONE}"},
    "a surrogate in a cookie": lambda event: event | {"cookies": [f"a={LONE}"]},
    "a surrogate in a header": lambda event: event | {"headers": event["headers"] | {"X": LONE}},
    "a surrogate as a name": lambda event: event | {"headers": event["headers"] | {LONE: "x"}},
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("function", PATHS)
def test_an_event_that_is_no_request_is_a_400(place: Place, function: str, case: str) -> None:
    assert_refused(place, function, MALFORMED[case](an_event(place, function)))


def test_a_text_body_is_read_as_it_is(place: Place) -> None:
    event = an_event(place, "api") | {"body": json.dumps(a_body()), "isBase64Encoded": False}
    assert place.send("api", event)["statusCode"] == 201
