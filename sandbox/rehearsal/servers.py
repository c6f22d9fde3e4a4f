"""Rehearsal of a deployment: a TLS front for the emulated HTTP API; the webhook receiver."""

from __future__ import annotations

import queue
import socket
import socketserver
import ssl
import threading
from collections import defaultdict
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

HTTPS: Final = 443
_BODY_MAX: Final = 256 * 1024


class Front(socketserver.ThreadingTCPServer):
    """TLS proxy at `host` that relays to `port` on loopback."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, tls: ssl.SSLContext, port: int) -> None:
        super().__init__((host, HTTPS), socketserver.BaseRequestHandler)
        self._tls = tls
        self._behind = ("127.0.0.1", port)

    def finish_request(self, request: Any, client_address: Any) -> None:
        with (
            self._tls.wrap_socket(request, server_side=True) as outside,
            socket.create_connection(self._behind) as inside,
        ):
            back = threading.Thread(target=_relay, args=(inside, outside), daemon=True)
            back.start()
            _relay(outside, inside)
            back.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a connection that was closed by either side."""


def _relay(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook as it arrived."""

    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """The shop's https endpoint. It stores every delivery by its path, and answers 200."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, tls: ssl.SSLContext) -> None:
        super().__init__((host, HTTPS), _Receiving)
        self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.arrived: dict[str, queue.SimpleQueue[Delivery]] = defaultdict(queue.SimpleQueue)


class _Receiving(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        length = min(int(self.headers.get("Content-Length", "0")), _BODY_MAX)
        headers = {name.lower(): value for name, value in self.headers.items()}
        delivery = Delivery(headers, self.rfile.read(length))
        self.server.arrived[self.path].put(delivery)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the rehearsal prints what arrived."""
