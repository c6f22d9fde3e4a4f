from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from api import http
from api.app import app, handler
from sandbox.gateway import BODY_MAX, HEADERS_MAX, Environments, Function, Gateway, Throttle
from sandbox.server import Answer, Headers, Incoming
from sandbox.template import Route
from tests.support.merchant_api import MerchantApi, a_body

TABLE = [
    Route("ANY /api/{proxy+}", "api.app.handler", "Api"),
    Route("POST /api/checkout/sessions", "api.app.handler", "Api"),
    Route("ANY /pay/{proxy+}", "pay.app.handler", "Pay"),
    Route("POST /pay/{session_id}/wallet", "pay.app.handler", "Pay"),
]
OK = {"statusCode": 200, "body": "fine"}


class Lambda:
    """Two functions that record their calls and return `result`."""

    def __init__(self, environments: Environments, timeout: float = 0.3) -> None:
        self.result: Any = OK
        self.events: list[tuple[str, dict[str, Any], Any]] = []
        names = ("Api", "Pay")
        by_name = {name: Function(name, self._handler(name), timeout, 1024) for name in names}
        self.gateway = Gateway(by_name, environments, table=TABLE)

    def _handler(self, name: str) -> Callable[[dict[str, Any], Any], Mapping[str, Any]]:
        def handle(event: dict[str, Any], context: Any) -> Any:
            self.events.append((name, event, context))
            return self.result() if callable(self.result) else self.result

        return handle

    def send(
        self, method: str, target: str, headers: Headers | None = None, body: bytes = b""
    ) -> Answer:
        given = [("Host", "localhost:4000"), *(headers or [])]
        return self.gateway.answer(Incoming(method, target, given, body, "127.0.0.9"))

    @property
    def event(self) -> dict[str, Any]:
        return self.events[-1][1]


@pytest.fixture
def environments() -> Iterator[Environments]:
    found = Environments(20)
    yield found
    found.close()


@pytest.fixture
def functions(environments: Environments) -> Lambda:
    return Lambda(environments)


def test_an_event_has_the_shape_of_payload_format_2(functions: Lambda) -> None:
    functions.send("GET", "/api/things?a=1&b=x%20y&a=2", [("User-Agent", "curl/8")])
    event = functions.event
    assert event["version"] == "2.0"
    assert event["routeKey"] == "ANY /api/{proxy+}"
    assert event["rawPath"] == "/api/things"
    assert event["rawQueryString"] == "a=1&b=x%20y&a=2"
    assert event["queryStringParameters"] == {"a": "1,2", "b": "x y"}
    assert event["pathParameters"] == {"proxy": "things"}
    assert event["isBase64Encoded"] is False
    assert not {"body", "cookies"} & set(event)
    context = event["requestContext"]
    assert context["http"] == {
        "method": "GET",
        "path": "/api/things",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.9",
        "userAgent": "curl/8",
    }
    assert context["stage"] == "$default"
    assert context["domainName"] == "localhost"
    assert isinstance(context["timeEpoch"], int)


def test_header_names_are_lowered_and_repeated_ones_joined(functions: Lambda) -> None:
    functions.send("GET", "/api/x", [("Accept", "a"), ("ACCEPT", "b"), ("X-One", "1")])
    headers = functions.event["headers"]
    assert headers["accept"] == "a,b"
    assert headers["x-one"] == "1"
    assert headers["x-forwarded-for"] == "127.0.0.9"
    assert headers["x-forwarded-port"] == "4000"
    assert headers["x-forwarded-proto"] == "http"


def test_a_client_cannot_say_where_it_comes_from(functions: Lambda) -> None:
    functions.send("GET", "/api/x", [("X-Forwarded-For", "9.9.9.9")])
    assert functions.event["requestContext"]["http"]["sourceIp"] == "127.0.0.9"
    assert functions.event["headers"]["x-forwarded-for"] == "9.9.9.9, 127.0.0.9"


def test_cookies_are_listed_by_themselves(functions: Lambda) -> None:
    functions.send("GET", "/api/x", [("Cookie", "a=1; b=2"), ("Cookie", "c=3")])
    assert functions.event["cookies"] == ["a=1", "b=2", "c=3"]
    assert "cookie" not in functions.event["headers"]


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "text/x"])
def test_text_is_passed_as_text(functions: Lambda, kind: str) -> None:
    functions.send("POST", "/api/x", [("Content-Type", kind)], "{“é”}".encode())
    assert functions.event["body"] == "{“é”}"
    assert functions.event["isBase64Encoded"] is False


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "image/png", ""])
def test_anything_else_is_passed_in_base64(functions: Lambda, kind: str) -> None:
    functions.send("POST", "/api/x", [("Content-Type", kind)], b"a=\xff")
    assert base64.b64decode(functions.event["body"]) == b"a=\xff"
    assert functions.event["isBase64Encoded"] is True


def test_json_that_is_not_utf_8_is_passed_byte_for_byte(functions: Lambda) -> None:
    functions.send("POST", "/api/x", [("Content-Type", "application/json")], b'"\xff"')
    assert base64.b64decode(functions.event["body"]) == b'"\xff"'


def test_the_path_is_decoded_and_cut_at_an_encoded_question_mark(functions: Lambda) -> None:
    functions.send("GET", "/api/a%2Fb%20c%3Fadmin=1?q=2")
    assert functions.event["rawPath"] == "/api/a/b c"
    assert functions.event["rawQueryString"] == "q=2"


@pytest.mark.parametrize(
    ("method", "target", "key", "function"),
    [
        ("POST", "/api/checkout/sessions", "POST /api/checkout/sessions", "Api"),
        ("GET", "/api/checkout/sessions", "ANY /api/{proxy+}", "Api"),
        ("POST", "/api/checkout/sessions/", "ANY /api/{proxy+}", "Api"),
        ("POST", "/pay/cs_1/wallet", "POST /pay/{session_id}/wallet", "Pay"),
        ("GET", "/pay/cs_1/wallet", "ANY /pay/{proxy+}", "Pay"),
        ("POST", "/pay/cs_1/x/wallet", "ANY /pay/{proxy+}", "Pay"),
        ("HEAD", "/pay/cs_1", "ANY /pay/{proxy+}", "Pay"),
    ],
)
def test_the_most_specific_route_wins(
    functions: Lambda, method: str, target: str, key: str, function: str
) -> None:
    functions.send(method, target)
    assert functions.event["routeKey"] == key
    assert functions.events[-1][0] == function


@pytest.mark.parametrize("target", ["/", "/api", "/api/", "/other/api/x", "/payment/x"])
def test_what_no_route_matches_reaches_no_function(functions: Lambda, target: str) -> None:
    answer = functions.send("GET", target)
    assert (answer.status, answer.body) == (404, b'{"message":"Not Found"}')
    assert functions.events == []


def test_headers_beyond_10240_bytes_are_refused(functions: Lambda) -> None:
    def with_headers_of(size: int) -> int:
        used = len("GET /api/x HTTP/1.1\r\n") + len("Host: localhost:4000\r\n") + len("X: \r\n")
        return functions.send("GET", "/api/x", [("X", "a" * (size - used))]).status

    assert with_headers_of(HEADERS_MAX) == 200
    assert with_headers_of(HEADERS_MAX + 1) == 431


def test_bodies_beyond_the_limits_of_gateway_and_lambda_are_refused(functions: Lambda) -> None:
    headers = [("Content-Type", "application/json")]
    assert functions.send("POST", "/api/x", headers, b"1" * (5 * 2**20)).status == 200
    assert functions.send("POST", "/api/x", headers, b"1" * (6 * 2**20)).status == 413
    assert functions.send("POST", "/api/x", headers, b"1" * (BODY_MAX + 1)).status == 413
    assert len(functions.events) == 1


def test_an_answer_has_its_headers_cookies_and_bytes(functions: Lambda) -> None:
    functions.result = {
        "statusCode": 201,
        "headers": {"Content-Type": "image/png", "content-length": "999"},
        "cookies": ["a=1; Secure", "b=2"],
        "body": base64.b64encode(b"\x00\xff").decode(),
        "isBase64Encoded": True,
    }
    answer = functions.send("GET", "/api/x")
    assert (answer.status, answer.body) == (201, b"\x00\xff")
    assert ("content-type", "image/png") in answer.headers
    cookies = [value for name, value in answer.headers if name == "set-cookie"]
    assert cookies == ["a=1; Secure", "b=2"]
    assert "content-length" not in dict(answer.headers)


def _raise() -> Any:
    raise RuntimeError("the secret is 42")


@pytest.mark.parametrize("result", [_raise, None, "text", {"body": "no status"}])
def test_a_function_that_fails_is_a_500_that_says_nothing(functions: Lambda, result: Any) -> None:
    functions.result = result if callable(result) else lambda: result
    answer = functions.send("GET", "/api/x")
    assert (answer.status, answer.body) == (500, b'{"message":"Internal Server Error"}')


def test_a_function_that_takes_longer_than_its_timeout_is_a_503(functions: Lambda) -> None:
    release = threading.Event()
    functions.result = lambda: release.wait(10) and OK
    try:
        assert functions.send("GET", "/api/x").status == 503
    finally:
        release.set()


class Held:
    """Requests whose function does not answer before `release`."""

    def __init__(self, functions: Lambda) -> None:
        self.functions = functions
        self.started = threading.Semaphore(0)
        self._end = threading.Event()
        self._clients = ThreadPoolExecutor(20)
        self._sent: list[Any] = []
        functions.result = self._answer

    def _answer(self) -> Any:
        self.started.release()
        assert self._end.wait(20)
        return OK

    def send(self, target: str, count: int) -> None:
        """Send, and wait until all of them are being handled."""
        for _ in range(count):
            self._sent.append(self._clients.submit(self.functions.send, "GET", target))
        for _ in range(count):
            assert self.started.acquire(timeout=20)

    def release(self) -> list[int]:
        self._end.set()
        with self._clients:
            return [each.result().status for each in self._sent]


@contextmanager
def held(account: int, reserved: dict[str, int]) -> Iterator[Held]:
    environments = Environments(account, reserved)
    found = Held(Lambda(environments, timeout=20))
    try:
        yield found
    finally:
        found.release()
        environments.close()


THROTTLED = (503, b'{"message":"Service Unavailable"}')


def test_one_execution_more_than_the_account_has_is_throttled_whichever_function_it_is_of() -> None:
    with held(5, {}) as busy:
        busy.send("/pay/cs_1", 4)
        busy.send("/api/x", 1)
        for target in ("/pay/cs_1", "/api/x"):
            answer = busy.functions.send("GET", target)
            assert (answer.status, answer.body) == THROTTLED
        assert busy.release() == [200] * 5
        assert busy.functions.send("GET", "/api/x").status == 200


def test_a_reserved_share_is_kept_free_for_its_function_and_is_its_most() -> None:
    with held(5, {"Api": 2}) as busy:
        busy.send("/pay/cs_1", 3)
        answer = busy.functions.send("GET", "/pay/cs_1")
        assert (answer.status, answer.body) == THROTTLED
        busy.send("/api/x", 2)
        answer = busy.functions.send("GET", "/api/x")
        assert (answer.status, answer.body) == THROTTLED
        assert busy.release() == [200] * 5


def test_the_context_names_the_function_and_the_time_left(functions: Lambda) -> None:
    functions.send("GET", "/api/x")
    functions.send("GET", "/api/x")
    first, second = (context for _, _, context in functions.events)
    assert first.function_name == "Api"
    assert first.aws_request_id != second.aws_request_id
    assert 0 <= first.get_remaining_time_in_millis() <= 300
    assert first.memory_limit_in_mb == 1024


def test_a_throttled_route_takes_its_burst_and_then_its_rate(environments: Environments) -> None:
    now = [100.0]
    by_name = {name: Function(name, lambda *_: OK, 1, 1024) for name in ("Api", "Pay")}
    throttle = Throttle(2, 3, lambda: now[0])
    throttles = {"POST /pay/{session_id}/wallet": throttle}
    gateway = Gateway(by_name, environments, table=TABLE, throttles=throttles)

    def sent(method: str, target: str, times: int) -> list[int]:
        request = Incoming(method, target, [("Host", "localhost:4000")])
        return [gateway.answer(request).status for _ in range(times)]

    assert sent("POST", "/pay/cs_1/wallet", 5) == [200, 200, 200, 429, 429]
    now[0] += 1
    assert sent("POST", "/pay/cs_2/wallet", 3) == [200, 200, 429]
    now[0] += 60
    assert sent("POST", "/pay/cs_1/wallet", 4) == [200, 200, 200, 429]
    assert sent("GET", "/pay/cs_1/status", 9) == [200] * 9
    refused = gateway.answer(Incoming("POST", "/pay/cs_1/wallet", [("Host", "localhost:4000")]))
    assert json.loads(refused.body) == {"message": "Too Many Requests"}


def test_the_real_handler_answers_20_requests_at_once(environments: Environments) -> None:
    api = MerchantApi()
    together = threading.Barrier(20, timeout=20)

    async def services() -> Any:
        together.wait()  # nobody is answered before all are being handled
        return api.services

    gateway = Gateway({"Api": Function("Api", handler, 15, 1024)}, environments, table=TABLE[:2])

    def create(number: int) -> Any:
        body = a_body(metadata={"number": number})
        headers = [
            ("content-type", "application/json"),
            ("authorization", f"Bearer {api.secret}"),
            ("idempotency-key", str(number)),
        ]
        target = "/api/checkout/sessions"
        answer = gateway.answer(Incoming("POST", target, headers, json.dumps(body).encode()))
        return answer.status, json.loads(answer.body)["metadata"]["number"]

    app.dependency_overrides[http.services] = services
    try:
        with ThreadPoolExecutor(20) as clients:
            answers = list(clients.map(create, range(20)))
    finally:
        app.dependency_overrides.clear()
    assert answers == [(201, number) for number in range(20)]
