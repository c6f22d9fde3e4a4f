"""The service under fuzzing: the real handlers, as `Doors` puts them over tables and wallets, and
what must be true of every response.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from sandbox.gateway import GatewayServer, event_of, functions
from sandbox.server import Incoming
from tests.support.doors import Doors
from tests.support.processes import free_base

# Responses of the pages, docs/pages.md and docs/dashboard.md. The routes of the API are in its
# document.
PAGES: Final = {200, 204, 303, 400, 401, 403, 404, 405, 409, 413, 415, 422, 424, 429}
API: Final = {200, 201, 400, 401, 404, 405, 409, 413, 415, 429}
MARKUP: Final = "<script>alert(1)</script>"  # what a response must not repeat as it is
_FUNCTIONS: Final = {"/api": "api", "/v1": "v1", "/pay": "pay", "/dashboard": "dashboard"}
_REQUEST_ID: Final = re.compile(r"req_[0-9A-Za-z]{22}")
_TIMEOUT: Final = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Heard:
    """A response. The gateway's own ones, such as to a path without a route, are `foreign`."""

    status: int
    headers: dict[str, str]
    body: bytes
    foreign: bool = False


def function_of(path: str) -> str | None:
    """Return the function that a path leads to, by its first segment."""
    return _FUNCTIONS.get("/" + path.lstrip("/").partition("/")[0].partition("?")[0])


def answer_of(doors: Doors, function: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return the answer, whatever it is."""
    answers: list[dict[str, Any]] = []
    doors.heard = lambda function, event, answer: answers.append(answer)
    with suppress(AssertionError):  # `problems` says so, with the request
        doors.send(function, event)
    return answers[-1]


class InProcess:
    """Hands the events of a gateway to the handlers."""

    def __init__(self, doors: Doors) -> None:
        self.doors = doors

    def ask(self, request: Incoming) -> Heard:
        function = function_of(request.target)
        if function is None:
            return Heard(404, {}, b"", foreign=True)
        answer = answer_of(self.doors, function, event_of(request, "$default", {}))
        headers = {name.lower(): str(value) for name, value in answer["headers"].items()}
        return Heard(answer["statusCode"], headers, str(answer.get("body") or "").encode())


class OverSocket:
    """Sends bytes to the local gateway, which listens on a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, request: Incoming) -> Heard:
        lines = [f"{request.method} {request.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers]
        lines += [f"Content-Length: {len(request.body)}", "Connection: close", "", ""]
        raw = "\r\n".join(lines).encode("latin-1", "replace") + request.body
        with socket.create_connection(("127.0.0.1", self._port), _TIMEOUT) as connection:
            try:
                connection.sendall(raw)
                got = b"".join(iter(lambda: connection.recv(65_536), b""))
            except ConnectionError:  # the server has said what it thinks of it, and left
                got = b""
        head, _, body = got.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        if not first:
            return Heard(400, {}, b"", foreign=True)
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in rest)
        }
        foreign = "request-id" not in headers and int(first.split()[1]) < 500
        return Heard(int(first.split()[1]), headers, body, foreign)


@contextmanager
def listening(doors: Doors) -> Iterator[OverSocket]:
    """Run the gateway of the local world on a port, with its functions over `doors`."""
    served = {"ApiFunction", "PayFunction", "DashboardFunction"}

    def handle(event: dict[str, Any], _: Any) -> Mapping[str, Any]:
        return answer_of(doors, function_of(event["rawPath"]) or "api", event)

    known = functions()
    assert served <= set(known), sorted(known)
    by_name = {
        # No function is late because this machine is busy.
        name: replace(function, handler=handle, timeout=300.0) if name in served else function
        for name, function in known.items()
    }
    port = free_base()
    server = GatewayServer(port, by_name)
    server.start()
    try:
        yield OverSocket(port)
    finally:
        server.close()


def problems(request: Incoming, heard: Heard) -> Iterator[str]:
    """Return in words what must not be of a response, whatever was asked."""
    if heard.foreign:
        return
    function = function_of(request.target)
    if heard.status >= 500:
        yield f"status {heard.status}"
    if not _REQUEST_ID.fullmatch(heard.headers.get("request-id", "")):
        yield "no Request-Id"
    if heard.headers.get("x-content-type-options") != "nosniff":
        yield "no nosniff"
    text = heard.body.decode("utf-8", "replace")
    if MARKUP in text and "json" not in heard.headers.get("content-type", ""):
        yield "markup came out as it is"
    if "Traceback (most recent" in text:
        yield "a traceback"
    if function not in ("api", "v1"):
        yield from _of_page(heard)
    elif request.method != "HEAD":  # whose responses have no body on the wire
        yield from _of_api(heard, text)


def _of_page(heard: Heard) -> Iterator[str]:
    if heard.status not in PAGES:
        yield f"the undocumented status {heard.status}"
    if "content-security-policy" not in heard.headers:
        yield "no policy"
    location = heard.headers.get("location", "/")
    if not location.startswith("/") or location.startswith(("//", "/\\")):
        yield f"a redirect to {location}"


def _of_api(heard: Heard, text: str) -> Iterator[str]:
    if heard.status not in API:
        yield f"the undocumented status {heard.status}"
    try:
        whole = json.loads(text)
    except ValueError:
        yield "no JSON"
        return
    if heard.status >= 400:
        error = whole.get("error")
        wanted = {"type", "code", "message", "doc_url", "request_id"}
        if not isinstance(error, dict) or not wanted <= set(error) <= wanted | {"param"}:
            yield "an error of another shape"
