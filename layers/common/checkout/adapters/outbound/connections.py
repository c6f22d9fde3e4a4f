"""Connections to public addresses, for `http.py`: opened where permitted, bounded, watched.

Refuses an address that is not permitted, an exchange that is over its time, and an answer that is
over its size. httpcore speaks HTTP over the connection.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import httpcore

from checkout.adapters.outbound.addresses import Resolve, is_permitted, look_up

_MOST_ADDRESSES: Final = 8  # tried for one name


class Stopped(Exception):
    """We ended the exchange. The message quotes nothing that was sent or received."""


@dataclass(slots=True)
class Call:
    """One exchange: the time and bytes it has left, and whether anything was sent.

    httpcore hands a request's `timeout` to the backend and the streams unread, so this travels
    as that timeout. A plain number would start anew at every read.
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


class PublicBackend(httpcore.NetworkBackend):
    """Resolves a name once, judges every address it has, and connects to one of those.

    Resolving anew for the connection would let a name answer a public address to the check and a
    private one to the connection (DNS rebinding). The certificate is checked against the name.
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
            # An even share of the time each: a dead address does not use up the others' time.
            share = call.seconds_left() / len(addresses)
            try:
                return _Stream(self._sockets.connect_tcp(addresses.pop(0), port, timeout=share))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not addresses:
                    raise


class _Stream(httpcore.NetworkStream):
    """A socket within the exchange's time and size, which notes when sending begins."""

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
        # An answer that ends with the connection is whole only if TLS says that it ended.
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
