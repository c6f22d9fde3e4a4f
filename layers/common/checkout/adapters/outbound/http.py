"""Outbound HTTP to hosts that strangers choose: wallet providers and webhook receivers.

Owns where a request may go (https, public addresses, checked on the very address that is connected
to), how long everything together may take, how much is read back, and whether a failed request may
have arrived. Follows no redirect, uses no proxy, keeps no cookie, decompresses nothing and sends
nothing twice. HTTP/1.1 only.

httpcore without httpx: httpx rewrites URLs, and the URL sent must be the URL signed.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import certifi
import httpcore

from checkout.adapters.outbound.addresses import Resolve, is_host
from checkout.adapters.outbound.connections import Call, PublicBackend, Stopped
from checkout.open_payments.errors import NoSuchHost, NotSent, OutcomeUnknown
from checkout.open_payments.transport import Request, Response
from checkout.open_payments.urls import Target, is_loopback, target

# At DEBUG the library logs answer headers, which are not ours to publish.
logging.getLogger("httpcore").setLevel(logging.INFO)

_HTTPS_PORT: Final = 443
# NXDOMAIN and "no address"; a resolver that fails has other numbers (RFC 3493 section 6.1).
_NO_SUCH_HOST: Final = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
_TAKES_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class PublicHttp:
    """`open_payments.transport.Transport` over the public internet. Thread-safe; one per process.

    `version` is the product's, for User-Agent. `ca_file` (PEM) is trusted besides the public
    authorities, and `allow_loopback` adds loopback addresses, on every port and over http: both are
    for development. `resolve` has the signature of `socket.getaddrinfo`. `max_answer_bytes` counts
    status line, headers and body together. `keep_alive` is for how many seconds an idle connection
    may be used again: less than the 5 s after which Node closes it, as a request that meets the
    closing has an unknown outcome. It is counted by `wall` too: Lambda freezes a process between
    events, and the monotonic clock with it.
    """

    def __init__(
        self,
        *,
        version: str,
        ca_file: str | None = None,
        allow_loopback: bool = False,
        resolve: Resolve = socket.getaddrinfo,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        max_answer_bytes: int = 256 * 1024,
        keep_alive: float = 3.0,
    ) -> None:
        tls = ssl.create_default_context(cafile=certifi.where())
        if ca_file is not None:
            tls.load_verify_locations(ca_file)
        self._user_agent = f"checkout-sessions/{version}"
        self._allow_loopback = allow_loopback
        self._monotonic = monotonic
        self._max_answer_bytes = max_answer_bytes
        self._wall = wall
        self._keep_alive = keep_alive
        self._lock = threading.Lock()
        self._under_way = 0
        self._last_used = wall()
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            max_connections=None,  # one that hangs is not to hold up another
            keepalive_expiry=keep_alive,
            network_backend=PublicBackend(resolve, allow_loopback=allow_loopback),
        )

    def send(self, request: Request, *, timeout: float, body_max: int | None = None) -> Response:
        """Send `request` once, byte for byte, within `timeout` seconds for everything together.

        A 3xx is an answer like any other. Raises NotSent when no byte of the request went out (URL,
        name or address refused, no connection, no TLS), as NoSuchHost when the name does not exist,
        and OutcomeUnknown for all else (no answer in time, cut short, too big, compressed, not
        HTTP).

        With `body_max`, the answer's status is what counts: of its body only so many bytes are
        read, as they come, and it may break off.
        """
        to = self._target(request.url)
        call = Call(self._monotonic, self._monotonic() + timeout, self._max_answer_bytes)
        try:
            with self._fresh_pool():
                return self._exchange(request, to, call, body_max)
        except Exception as error:  # noqa: BLE001 - whatever it was, what counts is whether it was sent
            reason = f"{_connect_to(to)}: {_reason(error)}"
            missing = isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_HOST
        # Out here, so that the library's error, which may quote a header, is not the context.
        if call.sent:
            raise OutcomeUnknown(reason)
        raise (NoSuchHost if missing else NotSent)(reason)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @contextmanager
    def _fresh_pool(self) -> Iterator[None]:
        """Close connections that have been idle for too long by the wall clock."""
        with self._lock:
            idle = self._under_way == 0 and self._wall() - self._last_used > self._keep_alive
            if idle:
                self._pool.close()
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                self._last_used = self._wall()

    def _target(self, url: str) -> Target:
        """Parse `url`. Raise NotSent unless it can be sent exactly as written."""
        try:
            found = target(url)
        except ValueError as error:
            refused = str(error)
        else:
            refused = self._refused(url, found)
        if refused:
            raise NotSent(refused)
        return found

    def _refused(self, url: str, found: Target) -> str:
        plain = self._allow_loopback and is_loopback(found.host)
        schemes = ("https://", "http://") if plain else ("https://",)
        if not url.startswith(schemes) or found.authority.endswith(":"):
            return "not an https URL that can be sent as it is"
        host = _connect_to(found)
        if not is_host(host) or found.host.startswith("[") != (":" in host):
            return "not a host name or an address"
        if found.port != _HTTPS_PORT and not self._allow_loopback:
            return f"{host}: port refused"
        return ""

    def _exchange(self, request: Request, to: Target, call: Call, body_max: int | None) -> Response:
        with self._pool.stream(
            request.method,
            httpcore.URL(
                scheme=to.scheme,
                host=_connect_to(to),
                port=to.port,
                # RFC 9112 3.2.1: an empty path is sent as "/".
                target=f"{to.path or '/'}{to.query}",
            ),
            headers=self._headers(request, to.authority),
            content=request.body,
            extensions={"timeout": {"connect": call, "write": call, "read": call}},
        ) as answer:
            headers: dict[str, str] = {}
            for raw_name, raw_value in answer.headers:
                name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1")
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
            if body_max is not None:
                return Response(answer.status, headers, _beginning(answer, body_max))
            if headers.get("content-encoding", "identity").lower() != "identity":
                raise Stopped("compressed answer")
            if int(headers.get("content-length", "0")) > self._max_answer_bytes:
                raise Stopped("answer too big")
            return Response(answer.status, headers, b"".join(answer.iter_stream()))

    def _headers(self, request: Request, authority: str) -> list[tuple[bytes, bytes]]:
        """Return our headers, then the request's, which may replace any of ours except Host."""
        given = {name.lower() for name in request.headers}
        if "host" in given or "transfer-encoding" in given:
            raise Stopped("headers refused")
        length = len(request.body or b"")
        ours = {
            "Host": authority,  # as in the URL: @target-uri is seen as it was signed
            "User-Agent": self._user_agent,
            "Accept-Encoding": "identity",
            "Connection": "keep-alive",
        }
        if request.body is not None or request.method in _TAKES_BODY:
            ours["Content-Length"] = str(length)  # RFC 9110 8.6: also 0
        headers = {name: value for name, value in ours.items() if name.lower() not in given}
        headers.update(request.headers)
        for name, value in headers.items():
            if name.lower() == "content-length" and value != str(length):
                raise Stopped("content-length is not the body's")
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


def _connect_to(to: Target) -> str:
    return to.host.strip("[]")


def _beginning(answer: httpcore.Response, size: int) -> bytes:
    """Return the first bytes of the body, as many as came."""
    body = b""
    with suppress(
        httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, Stopped
    ):
        for chunk in answer.iter_stream():
            body += chunk
            if len(body) >= size:
                break
    return body[:size]


def _reason(error: Exception) -> str:
    """Return the cause, in words that cannot hold a URL, a header or a body.

    httpcore's errors carry the socket's or TLS's own error inside.
    """
    cause = error.args[0] if error.args and isinstance(error.args[0], Exception) else error
    if isinstance(cause, Stopped):
        return str(cause)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"certificate refused: {cause.verify_message}"
    return type(cause).__name__
