"""Connections to permitted public addresses, limited in time and size, for `public.py`.

This module refuses an address that is not permitted, an exchange that takes too long, and an answer
that is too large. httpx calls this transport, and httpcore, the library under httpx, handles HTTP.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpcore
import httpx

from open_payments.transports import Request
from open_payments.transports.addresses import Resolve, is_permitted, look_up
from open_payments.urls import Target

_MOST_ADDRESSES: Final = 8  # addresses that are tried for one name


class Stopped(Exception):
    """The exchange was ended here. The message contains nothing that was sent or received."""


@dataclass(slots=True)
class Call:
    """One exchange: the time and bytes that it has left, and whether anything was sent.

    This object is used as the request's `timeout`, because httpcore passes `timeout` to the backend
    and the streams without reading it. A number of seconds would start again at every read.
    """

    monotonic: Callable[[], float]
    deadline: float
    bytes_left: int
    sent: bool = False

    def seconds_left(self) -> float:
        """Return the seconds left, always more than 0. Raise Stopped."""
        left = self.deadline - self.monotonic()
        if left <= 0:
            raise Stopped("out of time")
        return left


def built(
    request: Request, to: Target, *, usual: Mapping[str, str], extensions: dict[str, Any]
) -> httpx.Request:
    """Return `request` for httpx, with each header of `usual` that `request` does not have.

    `to` is the request's parsed URL. httpx rewrites some URLs, and a signature covers the URL.
    Raises Stopped if the result differs from `request`.
    """
    given = {name.lower() for name in request.headers}
    if "host" in given or "transfer-encoding" in given:
        raise Stopped("headers refused")
    path = f"{to.path or '/'}{to.query}"  # RFC 9112 3.2.1: an empty path is sent as "/"
    made = httpx.Request(
        request.method,
        f"{to.origin}{path}",
        headers=[
            *((name, value) for name, value in usual.items() if name.lower() not in given),
            *request.headers.items(),
        ],
        content=request.body,
        extensions=extensions,
    )
    url = made.url
    if url.raw_path != path.encode() or url.raw_host != to.host.strip("[]").encode():
        raise Stopped("not a URL that can be sent as it is")
    if made.headers.get("content-length", "0") != str(len(request.body or b"")):
        raise Stopped("content-length is not the body's")
    return made


class Connections(httpx.BaseTransport):
    """Sends requests of httpx over the connections of `backend`.

    The request's extension `timeout` contains a `Call`. Raises Stopped and the errors of httpcore.
    A connection is used again if it was idle for at most `keep_alive` seconds. Thread-safe.
    """

    def __init__(
        self, backend: httpcore.NetworkBackend, tls: ssl.SSLContext, *, keep_alive: float
    ) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            max_connections=None,  # one hanging connection must not delay the others
            keepalive_expiry=keep_alive,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`, and return its answer with an unread body. The caller must close it."""
        url = request.url
        assert isinstance(request.stream, httpx.SyncByteStream)
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body of httpcore's answer, read as it arrives."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class PublicBackend(httpcore.NetworkBackend):
    """Resolves a name once, checks all its addresses, and connects to one of them.

    If the name were resolved again to connect, DNS could return a public address for the check and
    a private one for the connection (DNS rebinding). The certificate is checked against the name.
    """

    def __init__(self, resolve: Resolve, *, allow_loopback: bool) -> None:
        self._resolve = resolve
        self._allow_loopback = allow_loopback
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        call: Call = timeout
        addresses = look_up(self._resolve, host, port, call.seconds_left())
        if not addresses:
            raise Stopped("name has no address")
        if not all(is_permitted(one, allow_loopback=self._allow_loopback) for one in addresses):
            raise Stopped("address refused")
        addresses = addresses[:_MOST_ADDRESSES]
        while True:
            # Each address gets an equal share of the time, so that an address that does not answer
            # does not use up the time of the others.
            share = call.seconds_left() / len(addresses)
            try:
                return _Stream(self._sockets.connect_tcp(addresses.pop(0), port, timeout=share))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not addresses:
                    raise


class _Stream(httpcore.NetworkStream):
    """A socket, limited to the exchange's time and size. It records when sending begins."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> httpcore.NetworkStream:
        call: Call = timeout
        try:
            stream = self._stream.start_tls(ssl_context, server_hostname, call.seconds_left())
        except BaseException:
            self._stream.close()
            raise
        # If an answer ends with the connection, it is complete only if TLS was closed properly.
        stream.get_extra_info("socket").suppress_ragged_eofs = False
        return _Stream(stream)

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        call: Call = timeout
        seconds = call.seconds_left()
        call.sent = call.sent or bool(buffer)
        self._stream.write(buffer, seconds)

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        call: Call = timeout
        data = self._stream.read(max_bytes, call.seconds_left())
        call.bytes_left -= len(data)
        if call.bytes_left < 0:
            raise Stopped("answer too big")
        return data

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
