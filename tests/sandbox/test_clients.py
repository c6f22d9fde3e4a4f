"""How the local world's wallets read the documents of clients, and when they refuse."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sandbox.wallets.clients import Clients, fetch_on_loopback

DOCUMENTS = {"/clients/a": {"publicName": "A"}, "/clients/a/jwks.json": {"keys": []}}


class Documents(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = DOCUMENTS.get(self.path)
        assert self.headers["Accept"] == "application/json"
        self.send_response(200 if found is not None else 404)
        self.end_headers()
        self.wfile.write(json.dumps(found or {}).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Documents)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.enable_socket
def test_a_document_on_this_machine_is_read_and_one_that_is_gone_is_an_error(origin: str) -> None:
    assert json.loads(fetch_on_loopback(f"{origin}/clients/a")) == {"publicName": "A"}
    with pytest.raises(OSError, match="404"):
        fetch_on_loopback(f"{origin}/clients/gone")


@pytest.mark.enable_socket
def test_a_host_that_is_down_leaves_the_client_unknown(origin: str) -> None:
    clients = Clients(lambda _: None, fetch_on_loopback)
    assert clients.keys(f"{origin}/clients/a") == []
    assert clients.keys("http://localhost:1/clients/a") is None
    assert clients.display("http://localhost:1/clients/a") is None


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/x",
        "http://localhost.example/",
        "http://169.254.169.254/",
        "x",
        "http:",
    ],
)
def test_no_other_host_is_asked(url: str) -> None:
    with pytest.raises(OSError, match="outside this machine"):
        fetch_on_loopback(url)
