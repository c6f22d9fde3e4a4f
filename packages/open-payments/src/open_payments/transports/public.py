"""HTTP to hosts that strangers choose: the default transport, guarded.

This module permits only https and public addresses, and checks an address when it connects. It
limits the size of the answer, and the time for all steps together. After a failure, it decides
whether the request may have arrived. It follows no redirect, uses no proxy, keeps no cookie,
decompresses nothing and sends nothing twice. It uses only HTTP/1.1.

httpx builds the request and reads its answer; `connections.Connections` sends it. An
`httpx.Client` would only add features that are forbidden here. A request that httpx has changed is
refused, because it was signed before.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final

import certifi
import httpcore
import httpx

from open_payments import __version__
from open_payments.errors import NoSuchHost, NotSent, OutcomeUnknown
from open_payments.transports import Request, Response
from open_payments.transports.addresses import Resolve, is_host
from open_payments.transports.connections import Call, Connections, PublicBackend, Stopped, built
from open_payments.urls import Target, is_loopback, target

# At the level DEBUG, httpcore would log response headers.
logging.getLogger("httpcore").setLevel(logging.INFO)

_HTTPS_PORT: Final = 443
# NXDOMAIN and "no address". If the resolver itself fails, it returns other numbers (RFC 3493
# section 6.1).
_NO_SUCH_HOST: Final = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})


class PublicTransport:
    """`open_payments.transports.Transport` over the public internet. Thread-safe; one per process.

    `user_agent` is the value of User-Agent. Two parameters are for development only: `ca_file`
    (PEM) is trusted in addition to the public authorities, and `allow_loopback` permits loopback
    addresses, on every port and over http. `resolve` has the signature of `socket.getaddrinfo`.
    `max_answer_bytes` limits status line, headers and body together.

    `keep_alive` is the number of seconds after which an idle connection is no longer used. It must
    be less than 5 s, because Node closes the connection after 5 s, and a request sent at that
    moment has an unknown outcome. The idle time is also measured by `wall`, because Lambda freezes
    a process and its monotonic clock between events.
    """

    def __init__(
        self,
        *,
        user_agent: str = f"open-payments/{__version__}",
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
        self._headers = {
            "User-Agent": user_agent,
            "Accept-Encoding": "identity",
            "Connection": "keep-alive",
        }
        self._allow_loopback = allow_loopback
        self._monotonic = monotonic
        self._max_answer_bytes = max_answer_bytes
        self._wall = wall
        self._keep_alive = keep_alive
        self._lock = threading.Lock()
        self._under_way = 0
        self._last_used = wall()
        self._connections = Connections(
            PublicBackend(resolve, allow_loopback=allow_loopback), tls, keep_alive=keep_alive
        )

    def send(self, request: Request, *, timeout: float, body_max: int | None = None) -> Response:
        """Send `request` once, byte for byte, within `timeout` seconds for all steps together.

        A 3xx is returned like any other answer. Raises NotSent if no byte of the request was sent
        (URL, name or address refused, no connection, no TLS), NoSuchHost if the name does not
        exist, and OutcomeUnknown after any other failure (no answer in time, or an answer that is
        cut short, too big, compressed or not HTTP).

        With `body_max`, only the status of the answer matters: at most `body_max` bytes of the body
        are read, and an incomplete body is no error.
        """
        to = self._target(request.url)
        call = Call(self._monotonic, self._monotonic() + timeout, self._max_answer_bytes)
        try:
            limits = {"connect": call, "write": call, "read": call}
            made = built(request, to, usual=self._headers, extensions={"timeout": limits})
            with self._fresh_connections():
                return self._exchange(made, body_max)
        except Exception as error:  # noqa: BLE001 - it only matters whether the request was sent
            reason = f"{_connect_to(to)}: {_reason(error)}"
            missing = isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_HOST
        # The new error is raised here, outside of `except`, so that its context is not the
        # library's error, which may quote a header.
        if call.sent:
            raise OutcomeUnknown(reason)
        raise (NoSuchHost if missing else NotSent)(reason)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    @contextmanager
    def _fresh_connections(self) -> Iterator[None]:
        """Close connections that, by the wall clock, have been idle for too long."""
        with self._lock:
            idle = self._under_way == 0 and self._wall() - self._last_used > self._keep_alive
            if idle:
                self._connections.close()
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

    def _exchange(self, request: httpx.Request, body_max: int | None) -> Response:
        with closing(self._connections.handle_request(request)) as answer:
            headers = dict(answer.headers.items())
            if body_max is not None:
                return Response(answer.status_code, headers, _beginning(answer, body_max))
            if headers.get("content-encoding", "identity").lower() != "identity":
                raise Stopped("compressed answer")
            if int(headers.get("content-length", "0")) > self._max_answer_bytes:
                raise Stopped("answer too big")
            return Response(answer.status_code, headers, b"".join(answer.iter_raw()))


def _connect_to(to: Target) -> str:
    return to.host.strip("[]")


def _beginning(answer: httpx.Response, size: int) -> bytes:
    """Return the first `size` bytes of the body, or fewer if no more arrive."""
    body = b""
    with suppress(
        httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, Stopped
    ):
        for chunk in answer.iter_raw():
            body += chunk
            if len(body) >= size:
                break
    return body[:size]


def _reason(error: Exception) -> str:
    """Return the cause of `error` as text that cannot contain a URL, a header or a body.

    httpcore's errors contain the original error of the socket or of TLS.
    """
    cause = error.args[0] if error.args and isinstance(error.args[0], Exception) else error
    if isinstance(cause, Stopped):
        return str(cause)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"certificate refused: {cause.verify_message}"
    return type(cause).__name__
