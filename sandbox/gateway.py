"""Gateway: API Gateway's HTTP API on loopback, with the routes of template.yaml.

The gateway turns HTTP requests into events of payload format 2.0 and calls the real handlers.
`Gateway` maps a request to a response without sockets; `GatewayServer` listens on a port. Limits
and error responses are those of API Gateway, and concurrency works as in Lambda. Routes are
throttled only if `throttles` are given. CORS and authorizers are missing.

Sources: the API Gateway developer guide, "Lambda proxy integrations for HTTP APIs", "Quotas" and
"Throttle requests to your HTTP APIs"; the Lambda developer guide, "Lambda function scaling".
"""

from __future__ import annotations

import base64
import importlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from sandbox.server import Answer, AsgiServer, Headers, Incoming
from sandbox.template import Route, resources, routes, template

HEADERS_MAX: Final = 10_240  # bytes of request line and headers
BODY_MAX: Final = 10 * 1024 * 1024
PAYLOAD_MAX: Final = 6 * 1024 * 1024  # an event or a response, as JSON (Lambda's limit)
ACCOUNT: Final = 100  # executions at once; an account has 1000, which would be too many threads
_SPARE: Final = 16  # threads for requests that the gateway answers itself
_API_ID: Final = "local"
_TEXT: Final = ("application/json", "application/javascript", "application/xml")

Event = dict[str, Any]
Handler = Callable[[Event, Any], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """The parts of Lambda's context object that are available here."""

    function_name: str
    memory_limit_in_mb: int
    timeout: float
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    function_version: str = "$LATEST"

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:us-east-1:000000000000:function:{self.function_name}"

    @property
    def log_group_name(self) -> str:
        return f"/local/{self.function_name}"

    @property
    def log_stream_name(self) -> str:
        return self.started_at.strftime("%Y/%m/%d/[$LATEST]local")

    def get_remaining_time_in_millis(self) -> int:
        spent = (datetime.now(UTC) - self.started_at).total_seconds()
        return max(0, int((self.timeout - spent) * 1000))


@dataclass(frozen=True, slots=True)
class Function:
    """A handler with its settings from the template. `timeout` is in seconds."""

    name: str
    handler: Handler
    timeout: float
    memory: int


def functions() -> dict[str, Function]:
    """Import and return the template's functions by logical id.

    Set the environment variables before the call, because the handlers read them when imported.
    """
    found = {}
    memory = template()["Globals"]["Function"]["MemorySize"]
    for name, properties in resources("AWS::Serverless::Function").items():
        module, _, attribute = properties["Handler"].rpartition(".")
        handler = getattr(importlib.import_module(module), attribute)
        found[name] = Function(name, handler, float(properties["Timeout"]), memory)
    return found


class Environments:
    """Lambda's concurrency: an environment is a thread that handles one event at a time.

    `account` is the total number of executions at once. A function with a number in `reserved` has
    exactly that many executions; the other functions share the rest. Further events do not wait,
    but are refused (throttled).
    """

    def __init__(self, account: int = ACCOUNT, reserved: Mapping[str, int] | None = None) -> None:
        own = reserved or {}
        self._reserved = {name: threading.BoundedSemaphore(most) for name, most in own.items()}
        self._rest = threading.BoundedSemaphore(account - sum(own.values()))
        self._threads = ThreadPoolExecutor(account, thread_name_prefix="lambda")

    def start(self, function: Function, event: Event) -> Future[Mapping[str, Any]] | None:
        """Begin to handle the event; return its result as a future, or None if throttled."""
        free = self._reserved.get(function.name, self._rest)
        if not free.acquire(blocking=False):
            return None
        return self._threads.submit(self._handle, function, event, free)

    @staticmethod
    def _handle(
        function: Function, event: Event, free: threading.BoundedSemaphore
    ) -> Mapping[str, Any]:
        # Unlike in Lambda, an execution is not stopped at its timeout and still occupies a thread.
        try:
            context = LambdaContext(function.name, function.memory, function.timeout)
            return function.handler(event, context)
        finally:
            free.release()

    def close(self) -> None:
        """Begin no further executions, and do not wait for those that still run."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Throttle:
    """A token bucket: `rate` requests a second, and `burst` at once."""

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._lock = threading.Lock()
        self._tokens, self._at = float(burst), clock()

    def admits(self) -> bool:
        """Take a token if there is one, and return whether there was."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
            self._at = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


class Gateway:
    """The HTTP API. `throttles` has the limits by route key; other routes are not limited."""

    def __init__(
        self,
        by_name: Mapping[str, Function],
        environments: Environments,
        *,
        table: Iterable[Route] | None = None,
        throttles: Mapping[str, Throttle] | None = None,
    ) -> None:
        self._functions = by_name
        self._environments = environments
        self._throttles = throttles or {}
        self._routes = sorted(
            (_Pattern.of(route) for route in (routes() if table is None else table)),
            key=lambda pattern: pattern.precedence,
        )

    def answer(self, request: Incoming) -> Answer:
        """Return the response of the best matching route's function, or API Gateway's own error."""
        line = len(request.method) + len(request.target) + len("  HTTP/1.1\r\n")
        headers = sum(len(name) + len(value) + 4 for name, value in request.headers)
        if line + headers > HEADERS_MAX:
            return _own(431, "Request Header Fields Too Large")
        if len(request.body) > BODY_MAX:
            return _own(413, "Request Entity Too Large")
        path = path_of(request)
        for pattern in self._routes:
            parameters = pattern.match(request.method, path)
            if parameters is not None:
                throttle = self._throttles.get(pattern.route.key)
                if throttle is not None and not throttle.admits():
                    return _own(429, "Too Many Requests")
                event = event_of(request, pattern.route.key, parameters)
                return self._invoke(self._functions[pattern.route.function], event)
        return _own(404, "Not Found")

    def _invoke(self, function: Function, event: Event) -> Answer:
        if len(json.dumps(event)) > PAYLOAD_MAX:
            return _own(413, "Request Entity Too Large")
        begun = self._environments.start(function, event)
        if begun is None:
            return _own(503, "Service Unavailable")
        try:
            return answer_of(begun.result(function.timeout))
        except Late:
            return _own(503, "Service Unavailable")
        except Exception as error:  # noqa: BLE001 - any failure of a function is this response
            print(f"{function.name} failed: {type(error).__name__}", flush=True)
            return _own(500, "Internal Server Error")


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A parsed route key.

    Static segments have precedence over variables, variables over `{proxy+}`, methods over ANY.
    """

    route: Route
    method: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, route: Route) -> _Pattern:
        method, _, path = route.key.partition(" ")
        return cls(route, method, tuple(path.split("/")[1:]))

    @property
    def precedence(self) -> tuple[bool, int, int, bool]:
        greedy = self.parts[-1].endswith("+}")
        variables = sum(part.startswith("{") for part in self.parts)
        return greedy, -len(self.parts), variables, self.method == "ANY"

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Return the path parameters, or None if the request does not match."""
        if self.method not in ("ANY", method):
            return None
        given = path.split("/")[1:]
        parameters: dict[str, str] = {}
        for number, part in enumerate(self.parts):
            if part.endswith("+}"):
                rest = "/".join(given[number:])
                return {**parameters, part[1:-2]: rest} if rest else None
            if number >= len(given):
                return None
            if part.startswith("{") and given[number]:
                parameters[part[1:-1]] = given[number]
            elif part != given[number]:
                return None
        return parameters if len(given) == len(self.parts) else None


def path_of(request: Incoming) -> str:
    """Return the path as HTTP APIs pass it on: percent-decoded, and cut at an encoded `?`."""
    return unquote(request.target.partition("?")[0], errors="replace").partition("?")[0]


def event_of(request: Incoming, route_key: str, parameters: Mapping[str, str]) -> Event:
    """Build the event, payload format 2.0."""
    headers, cookies = _joined(request.headers)
    query = request.target.partition("?")[2]
    now = datetime.now(UTC)
    host = headers.get("host", "localhost")
    forwarded = headers.get("x-forwarded-for")
    headers |= {
        "x-amzn-trace-id": f"Root=1-{int(now.timestamp()):08x}-{uuid.uuid4().hex[:24]}",
        "x-forwarded-for": f"{forwarded}, {request.client}" if forwarded else request.client,
        "x-forwarded-port": host.rpartition(":")[2] if ":" in host else "80",
        "x-forwarded-proto": "http",
    }
    event: Event = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path_of(request),
        "rawQueryString": query,
        "headers": headers,
        "requestContext": _context(request, route_key, host, headers.get("user-agent", ""), now),
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = cookies
    if query:
        event["queryStringParameters"] = _joined_query(query)
    if parameters:
        event["pathParameters"] = dict(parameters)
    if request.body:
        event["body"], event["isBase64Encoded"] = _body(request.body, headers)
    return event


def _context(
    request: Incoming, route_key: str, host: str, user_agent: str, now: datetime
) -> dict[str, Any]:
    return {
        "accountId": "000000000000",
        "apiId": _API_ID,
        "domainName": host.partition(":")[0],
        "domainPrefix": host.partition(".")[0].partition(":")[0],
        "http": {
            "method": request.method,
            "path": path_of(request),
            "protocol": "HTTP/1.1",
            "sourceIp": request.client,
            "userAgent": user_agent,
        },
        "requestId": uuid.uuid4().hex[:15] + "=",
        "routeKey": route_key,
        "stage": "$default",
        "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "timeEpoch": int(now.timestamp() * 1000),
    }


def answer_of(result: Any) -> Answer:
    """Convert a function's result to HTTP. Raises ValueError if API Gateway would reject it."""
    if not isinstance(result, Mapping):
        raise ValueError("the function's response is not an object")
    if len(json.dumps(result)) > PAYLOAD_MAX:
        raise ValueError("the function's response is too large")
    text = result.get("body") or ""
    body = base64.b64decode(text) if result.get("isBase64Encoded") else text.encode()
    headers: Headers = [(str(k).lower(), str(v)) for k, v in result.get("headers", {}).items()]
    headers = [pair for pair in headers if pair[0] not in ("content-length", "connection")]
    headers += [("set-cookie", cookie) for cookie in result.get("cookies", [])]
    headers.append(("apigw-requestid", uuid.uuid4().hex[:15] + "="))
    return Answer(int(result["statusCode"]), headers, body)


def _joined(pairs: Headers) -> tuple[dict[str, str], list[str]]:
    """Return the headers and the cookies. Names are in lower case, repeated headers are joined."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for name, value in pairs:
        lower = name.lower()
        if lower == "cookie":
            cookies += [each.strip() for each in value.split(";") if each.strip()]
        else:
            headers[lower] = f"{headers[lower]},{value}" if lower in headers else value
    return headers, cookies


def _joined_query(query: str) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _body(raw: bytes, headers: Mapping[str, str]) -> tuple[str, bool]:
    """Return the body and whether it is base64-encoded, as all but text media types are."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith("text/") or kind in _TEXT:
        try:
            return raw.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(raw).decode(), True


def _own(status: int, message: str) -> Answer:
    body = json.dumps({"message": message}, separators=(",", ":")).encode()
    return Answer(status, [("content-type", "application/json")], body)


class GatewayServer(AsgiServer):
    """The gateway on a loopback port.

    `account` and `reserved` are parameters of `Environments`, `throttles` of `Gateway`.
    """

    def __init__(
        self,
        port: int,
        by_name: Mapping[str, Function],
        *,
        account: int = ACCOUNT,
        reserved: Mapping[str, int] | None = None,
        throttles: Mapping[str, Throttle] | None = None,
    ) -> None:
        self._environments = Environments(account, reserved)
        gateway = Gateway(by_name, self._environments, throttles=throttles)
        super().__init__(port, gateway.answer, body_max=BODY_MAX, threads=account + _SPARE)

    def close(self) -> None:
        super().close()
        self._environments.close()
