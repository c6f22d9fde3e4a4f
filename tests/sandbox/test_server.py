"""The network behind real sockets on loopback: certificates, responses and saved state."""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from sandbox.wallets import certificates
from sandbox.wallets.__main__ import restore, save
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Provider
from sandbox.wallets.server import Sleeper, WalletServers
from sandbox.wallets.state import Account
from tests.support.processes import free_base

NOW = datetime.now(UTC)
SLOW = 0.5  # seconds

pytestmark = pytest.mark.enable_socket


class Gate:
    """A `sleep` that lasts until the test opens it."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.reached.set()
        assert self.opened.wait(10)


class Wayward(Network):
    """A network with a wallet that hangs up and one that is slow."""

    def handle(self, request: Request) -> Response:
        if request.url.endswith("/dies"):
            raise OutcomeUnknown("the connection was closed without an answer")
        if request.url.endswith("/lingers"):
            self.sleep(SLOW)
        return super().handle(request)


def network(ports: list[int], sleeper: Sleeper) -> Network:
    pages, origin, auth = ports
    provider = Provider(
        "one", "One", f"https://localhost:{origin}", f"https://localhost:{auth}", "tenant"
    )
    found = Wayward(
        lambda: NOW,
        random.Random(3).randbytes,
        providers=[provider],
        pages_origin=f"http://localhost:{pages}",
        sleep=sleeper,
    )
    found.add_account(Account(f"{provider.origin}/alice", "Alice", "EUR", 2, 5))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def ports() -> list[int]:
    base = free_base()
    return [base, base + 1, base + 2]


def connect(folder: Path, ports: list[int]) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(folder / "sandbox-ca.pem"))
    return http.client.HTTPSConnection("localhost", ports[1], context=context, timeout=5)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def served(folder: Path, ports: list[int], gate: Gate) -> Iterator[WalletServers]:
    sleeper = Sleeper(gate)
    found = certificates.ensure(folder, NOW)
    servers = WalletServers(network(ports, sleeper), found.server_context(), sleeper)
    servers.start()
    yield servers
    servers.close()


def test_the_api_speaks_tls_that_the_private_authority_vouches_for(
    served: WalletServers, folder: Path, ports: list[int]
) -> None:
    connection = connect(folder, ports)
    for _ in range(2):  # on one connection
        connection.request("GET", "/alice", headers={"accept": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, json.load(answer)["publicName"]) == (200, "Alice")
    connection.close()
    stranger = ssl.create_default_context()
    refused = http.client.HTTPSConnection("localhost", ports[1], context=stranger, timeout=5)
    with pytest.raises(ssl.SSLCertVerificationError):
        refused.request("GET", "/alice")
    refused.close()


def test_a_wallet_that_dies_hangs_up_and_the_next_request_is_served(
    served: WalletServers, folder: Path, ports: list[int]
) -> None:
    connection = connect(folder, ports)
    connection.request("GET", "/dies")
    with pytest.raises(http.client.RemoteDisconnected):
        connection.getresponse()
    connection.close()
    connection.request("GET", "/alice")
    assert connection.getresponse().read()
    connection.close()


def test_a_slow_wallet_holds_up_nobody_else(
    served: WalletServers, folder: Path, ports: list[int], gate: Gate
) -> None:
    slow, quick = connect(folder, ports), connect(folder, ports)
    slow.connect()
    quick.connect()
    slow.request("GET", "/lingers")
    assert gate.reached.wait(10)
    quick.request("GET", "/alice")
    assert quick.getresponse().read()
    assert gate.asked == [SLOW]
    slow.sock.setblocking(False)
    with pytest.raises(ssl.SSLWantReadError):  # no response yet
        slow.sock.recv(1)
    slow.sock.settimeout(5)
    gate.opened.set()
    assert slow.getresponse().read()
    slow.close()
    quick.close()


def test_the_pages_speak_plain_http_to_a_browser(served: WalletServers, ports: list[int]) -> None:
    connection = http.client.HTTPConnection("localhost", ports[0], timeout=5)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert (answer.status, b"Alice" in answer.read()) == (200, True)
    connection.putrequest("POST", "/")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    assert connection.getresponse().status == 411
    connection.close()


def test_a_taken_port_is_told_and_nothing_stays_open(folder: Path, ports: list[int]) -> None:
    found = certificates.ensure(folder, NOW)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[2]))
        taken.listen()
        with pytest.raises(OSError, match=str(ports[2])):
            WalletServers(network(ports, Sleeper()), found.server_context(), Sleeper())
    again = WalletServers(network(ports, Sleeper()), found.server_context(), Sleeper())
    again.close()


def test_only_what_was_asked_makes_something_to_save(
    served: WalletServers, ports: list[int]
) -> None:
    assert served.changes() is None
    connection = http.client.HTTPConnection("localhost", ports[0], timeout=5)
    connection.request("GET", "/")
    connection.getresponse().read()
    connection.close()
    changed = served.changes()
    assert changed is not None
    assert changed["state"]["accounts"]
    assert served.changes() is None


def test_certificates_are_kept_until_they_are_of_no_use(folder: Path) -> None:
    first = certificates.ensure(folder, NOW)
    authority = first.authority.read_bytes()
    assert first.key.stat().st_mode & 0o077 == 0
    certificates.ensure(folder, NOW + timedelta(days=300))
    assert first.authority.read_bytes() == authority
    certificates.ensure(folder, NOW + timedelta(days=360))
    assert first.authority.read_bytes() != authority


@pytest.mark.parametrize("name", ["sandbox-ca.pem", "localhost.pem", "localhost-key.pem"])
@pytest.mark.parametrize("damage", ["missing", "nonsense", "another's"])
def test_damaged_certificates_are_made_anew(folder: Path, name: str, damage: str) -> None:
    found = certificates.ensure(folder, NOW)
    if damage == "missing":
        (folder / name).unlink()
    elif damage == "nonsense":
        (folder / name).write_text("nonsense", "utf-8")
    else:
        other = certificates.ensure(folder / "other", NOW)
        (folder / name).write_bytes((other.authority.parent / name).read_bytes())
    again = certificates.ensure(folder, NOW)
    assert again == found
    context = ssl.create_default_context(cafile=str(again.authority))
    assert context.cert_store_stats()["x509_ca"] >= 1
    again.server_context()


def test_what_is_saved_is_restored(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "wallets.json"
    before = network([1, 2, 3], Sleeper())
    before.state.accounts["https://localhost:2/alice"].balance = 77
    restore(before, path)  # nothing saved yet
    save(before.dump(), path)
    save(None, path)
    after = network([1, 2, 3], Sleeper())
    restore(after, path)
    assert after.dump() == before.dump()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"origins":[]}', '{"origins":1,"state":{}}'])
def test_a_saved_state_that_does_not_fit_says_what_to_do(tmp_path: Path, content: str) -> None:
    path = tmp_path / "wallets.json"
    path.write_text(content, "utf-8")
    with pytest.raises(ValueError, match="remove it to start afresh"):
        restore(network([1, 2, 3], Sleeper()), path)
