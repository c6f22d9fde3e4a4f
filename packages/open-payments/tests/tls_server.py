"""A TLS server on loopback that records requests, and answers or misbehaves as a test chooses."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from open_payments.transports.public import PublicTransport

NAME = "wallet.example"


@dataclass(frozen=True, slots=True)
class Authority:
    """A private authority (`ca_file`, PEM) and its server's TLS, for NAME and 127.0.0.1."""

    ca_file: str
    tls: ssl.SSLContext


def make_authority(folder: Path) -> Authority:
    """Write a certificate that signs itself, which is all that its clients trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    names = [x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    ca_file, key_file = folder / "ca.pem", folder / "key.pem"
    ca_file.write_bytes(certificate.public_bytes(pem))
    key_file.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(ca_file, key_file)
    return Authority(str(ca_file), tls)


class TlsServer:
    """`answer(connection, request)` is called for each request; False closes the connection.

    `connections` counts what was accepted, `dripped` the drops of `drip`, `flooded` the bytes that
    `flood` could send, `requests` holds each request as it came. `stopping` is set at the end, for
    answers that would otherwise never end. `outlasted` becomes true when a client stays for all of
    PATIENCE on an answer that does not come: no deadline was kept.
    """

    PATIENCE = 20.0  # seconds: far more than any deadline in these tests

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.answer: Callable[[ssl.SSLSocket, bytes], bool] = reply(b"")
        self.greet = True
        self.listen = True
        self.connections = 0
        self.dripped = 0
        self.flooded = 0
        self.outlasted = False
        self.requests: list[bytes] = []
        self.stopping = threading.Event()
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.02)
        self.port: int = self._socket.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self.stopping.set()
        for thread in self._threads:
            thread.join(5)
        self._socket.close()

    def hang(self, connection: ssl.SSLSocket, start: bytes = b"") -> bool:
        """Send `start`, and then nothing."""
        connection.sendall(start)
        return self._wait()

    def drip(self, connection: ssl.SSLSocket, start: bytes, drop: bytes) -> bool:
        """Send `start`, and then a drop again and again until the client hangs up."""
        connection.sendall(start)
        for _ in range(int(self.PATIENCE / 0.05)):
            if self.stopping.wait(0.05):
                return False
            connection.sendall(drop)
            self.dripped += 1
        self.outlasted = True
        return False

    def flood(self, connection: ssl.SSLSocket, start: bytes, more: bytes) -> bool:
        """Send `start`, and then `more` without end until the client hangs up."""
        connection.settimeout(2)
        connection.sendall(start)
        while not self.stopping.is_set():
            connection.sendall(more)
            self.flooded += len(more)
        return False

    def _wait(self) -> bool:
        if not self.stopping.wait(self.PATIENCE):
            self.outlasted = True
        return False

    def _accept(self) -> None:
        while not self.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._socket.accept()
                self.connections += 1
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, raw: socket.socket) -> None:
        with raw, contextlib.suppress(OSError):
            if not self.greet:
                self._wait()
                return
            with self._tls.wrap_socket(raw, server_side=True) as connection:
                connection.settimeout(0.02)
                if not self.listen:
                    self._wait()
                    return
                while (request := self._read(connection)) and self.answer(connection, request):
                    pass

    def _read(self, connection: ssl.SSLSocket) -> bytes:
        data = b""
        while not self.stopping.is_set():
            head, end, body = data.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if end and len(body) >= int(length[1] if length else 0):
                self.requests.append(data)
                return data
            with contextlib.suppress(TimeoutError):
                chunk = connection.recv(65536)
                if not chunk:
                    return b""
                data += chunk
        return b""


def reply(
    body: bytes, *, status: str = "200 OK", headers: str = ""
) -> Callable[[ssl.SSLSocket, bytes], bool]:
    """A whole answer; the connection stays open. `headers` are lines that end in CRLF."""
    head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return raw(head.encode() + body, keep=True)


def raw(data: bytes, *, keep: bool = False) -> Callable[[ssl.SSLSocket, bytes], bool]:
    """These bytes, and then the TCP connection is closed without a word from TLS, unless `keep`."""

    def answer(connection: ssl.SSLSocket, _: bytes) -> bool:
        connection.sendall(data)
        return keep

    return answer


class Names:
    """A resolver for every name: it records the names, and returns the test's addresses."""

    def __init__(self) -> None:
        self.addresses = ["127.0.0.1"]
        self.by_host: dict[str, list[str]] = {}  # in place of `addresses`
        self.asked: list[str] = []
        self.before: Callable[[], object] = lambda: None

    def __call__(self, host: str, port: int, family: int, kind: int) -> list[tuple[Any, ...]]:
        self.asked.append(host)
        self.before()
        addresses = self.by_host.get(host, self.addresses)
        return [(family, kind, 6, "", (address, port)) for address in addresses]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def server(authority: Authority) -> Iterator[TlsServer]:
    """For tests that may open sockets."""
    server = TlsServer(authority.tls)
    yield server
    server.close()


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def new_http(authority: Authority, names: Names) -> Iterator[Callable[..., PublicTransport]]:
    """Return a maker of clients that trust the test's authority; all are closed at the end."""
    usual: dict[str, Any] = {
        "user_agent": "shop/1.2.3",
        "ca_file": authority.ca_file,
        "resolve": names,
    }
    made: list[PublicTransport] = []

    def make(**options: Any) -> PublicTransport:
        made.append(PublicTransport(**(usual | {"allow_loopback": True} | options)))
        return made[-1]

    yield make
    for http in made:
        http.close()
