"""TLS and HTTP listeners for a network, one per origin.

The API's origins use HTTPS. The pages use HTTPS or plain HTTP, according to the scheme of their
origin. One lock makes the network behave like a single-threaded server, but the delay of a slow
wallet happens outside the lock. Bodies of unknown length are rejected. If a wallet raises
OutcomeUnknown, the connection is closed without an answer.
"""

from __future__ import annotations

import ssl
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from sandbox.wallets.call import MAX_BODY
from sandbox.wallets.network import Network

_HTTPS: Final = 443
_IDLE: Final = 30  # seconds until an idle connection is closed


class WalletServers:
    """The listening sockets of a network; `sleeper` must be the network's `sleep`.

    If a port is taken, the constructor closes the other sockets and raises OSError.
    """

    def __init__(self, network: Network, tls: ssl.SSLContext, sleeper: Sleeper) -> None:
        self._network = network
        self._lock = threading.Lock()
        self._sleeper = sleeper
        self._changed = False
        self._taken = ""
        self._servers: list[_Listener] = []
        self._threads: list[threading.Thread] = []
        try:
            plain = network.pages_origin.startswith("http:")
            self._listen(network.pages_origin, network.handle_page, None if plain else tls)
            for provider in network.providers.values():
                self._listen(provider.origin, network.handle, tls)
                self._listen(provider.auth_origin, network.handle, tls)
        except OSError as error:
            self.close()
            raise OSError(f"{error.strerror}: {self._taken}") from None

    def start(self) -> None:
        """Serve in background threads until `close`."""
        for server in self._servers:
            thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Stop listening. Requests in progress go on until the process ends."""
        for server in self._servers:
            if self._threads:
                server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()
        self._servers, self._threads = [], []

    def changes(self) -> dict[str, Any] | None:
        """Return the network's dump, or None if there was no request since the last call."""
        with self._lock:
            changed, self._changed = self._changed, False
            return self._network.dump() if changed else None

    def _listen(
        self, origin: str, handle: Callable[[Request], Response], tls: ssl.SSLContext | None
    ) -> None:
        place = urlsplit(origin)
        assert place.hostname is not None
        self._taken = origin

        def answer(request: Request) -> Response:
            try:
                with self._lock:
                    self._changed = True
                    return handle(request)
            finally:
                self._sleeper.sleep_now()

        self._servers.append(_Listener((place.hostname, place.port or _HTTPS), origin, answer, tls))


class Sleeper:
    """A network's `sleep`: stores the seconds, so that `sleep_now` can wait outside the lock."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._local = threading.local()

    def __call__(self, seconds: float) -> None:
        self._local.seconds = seconds

    def sleep_now(self) -> None:
        seconds, self._local.seconds = getattr(self._local, "seconds", 0), 0
        if seconds:
            self._sleep(seconds)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        address: tuple[str, int],
        origin: str,
        answer: Callable[[Request], Response],
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(address, _Handler)
        self.origin = origin
        self.answer = answer
        self.tls = tls

    def finish_request(self, request: Any, client_address: Any) -> None:
        # The handshake is made in the request's own thread, so that it delays no other request.
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(_IDLE)
        try:
            encrypted = self.tls.wrap_socket(request, server_side=True)
        except OSError:
            return
        with encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that closed the connection; report any other error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError | ssl.SSLError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    # Headers and body are two writes, and Nagle's algorithm would delay the second.
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"
    server_version = "sandbox-wallets"
    sys_version = ""
    timeout = _IDLE

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_GET

    def _answer(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self.close_connection = True
            self.send_error(411)
            return
        if int(length) > MAX_BODY:
            self.close_connection = True
            self.send_error(413)
            return
        body = self.rfile.read(int(length)) or None
        request = Request(self.command, self._url(), dict(self.headers.items()), body)
        try:
            answer = self.server.answer(request)
        except OutcomeUnknown:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _url(self) -> str:
        """Return the URL that the client must have signed."""
        return self.server.origin + self.path

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests contain tokens and nonces."""
