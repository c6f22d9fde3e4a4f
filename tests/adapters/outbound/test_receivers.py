"""Deliver over real TLS to a server that answers, misbehaves, or is where it must not be."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tls_server import NAME, Names, TlsServer, raw, reply

from checkout.adapters.outbound.hosts import ResolvedHosts
from checkout.adapters.outbound.receivers import PublicReceivers
from checkout.domain.ground.errors import UrlInvalid
from checkout.domain.ground.grammar import webhook_url
from checkout.ports import Receipt
from open_payments.transports import Response
from open_payments.transports.connections import Call, PublicBackend, Stopped
from open_payments.transports.public import PublicTransport
from tests.support.basics import NOW, words
from tests.support.protected import DELIVERY_TIMEOUT

pytestmark = pytest.mark.enable_socket  # to loopback

OK = b"HTTP/1.1 200 OK\r\n"
PUBLIC = "93.184.215.14"
BODY = '{"id":"cs_1","metadata":{"ü":"🫖"}}'.encode()
HEADERS = {"Content-Type": "application/json", "Checkout-Signature": "t=1,v1=ab"}


class Spent:
    """A monotonic clock by which the name alone takes all but `left` of the time."""

    left: float | None = None  # seconds

    def __init__(self, names: Names) -> None:
        self._names = names

    def __call__(self) -> float:
        if self.left is None or not self._names.asked:
            return 0.0
        return DELIVERY_TIMEOUT.total_seconds() - self.left


@pytest.fixture
def spent(names: Names) -> Spent:
    return Spent(names)


Post = Callable[[], Receipt]
NewHttp = Callable[..., PublicTransport]


@pytest.fixture
def post(new_http: NewHttp, spent: Spent, server: TlsServer) -> Post:
    receivers = PublicReceivers(new_http(monotonic=spent))
    url = f"https://{NAME}:{server.port}/hooks?a=%C3%BC"
    return lambda: receivers.post(url, HEADERS, BODY, now=NOW)


# --- what is sent, what is answered ---


def test_the_body_arrives_byte_for_byte_with_its_headers(post: Post, server: TlsServer) -> None:
    server.answer = reply("Käse".encode())
    assert post() == Receipt(status=200, answer="Käse")
    [request] = server.requests
    assert request.startswith(b"POST /hooks?a=%C3%BC HTTP/1.1\r\n")
    given = b"Content-Type: application/json\r\nCheckout-Signature: t=1,v1=ab\r\nContent-Length: 38"
    assert request.endswith(given + b"\r\n\r\n" + BODY)


def test_a_refusal_is_a_status_and_not_an_error(post: Post, server: TlsServer) -> None:
    for status in (400, 404, 410, 500, 503):
        server.answer = reply(b"because", status=f"{status} No")
        assert post() == Receipt(status=status, answer="because")


def test_of_a_long_answer_the_first_kibibyte_is_kept_even_if_it_cuts_a_character(
    post: Post, server: TlsServer
) -> None:
    server.answer = reply(b"x" * 1023 + "ü".encode() + b"x" * 100_000)
    assert post() == Receipt(status=200, answer="x" * 1023 + "\ufffd")


def test_what_is_no_text_is_kept_readable(post: Post, server: TlsServer) -> None:
    server.answer = reply(b'\x00\x1b[31m\xff\xfe"\r\n\tred')
    assert post() == Receipt(status=200, answer='\ufffd\ufffd[31m\ufffd\ufffd"\r\n\tred')


# --- answers that are none ---


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(raw(b""), id="nothing"),
        pytest.param(raw(b"220 smtp ready\r\n\r\n"), id="another protocol"),
        pytest.param(raw(b"HTTP/1.1 2000 OK\r\n\r\n"), id="a status of four digits"),
        pytest.param(raw(b"HTTP/1.1 \xff\xfe OK\r\n\r\n"), id="a status that is no number"),
        pytest.param(raw(b"\x00" * 1000), id="zeros"),
        pytest.param(raw(OK[:9]), id="half a status line"),
        pytest.param(raw(OK + b"X-\xff: 1\r\n\r\n"), id="a header that is no text"),
        pytest.param(raw(OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), id="two"),
        pytest.param(raw(OK + b"X-Filler: " + b"x" * 300_000), id="a head without end"),
        pytest.param(raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), id="upgrade"),
    ],
)
def test_what_is_no_answer_is_never_a_success_and_raises_nothing(
    post: Post, server: TlsServer, answer: Callable[[ssl.SSLSocket, bytes], bool]
) -> None:
    server.answer = answer
    receipt = post()
    assert receipt.status in (None, 101)
    if receipt.status is None:
        assert receipt.error is not None
        assert receipt.error.startswith(f"no answer: {NAME}: ")
    assert len(server.requests) == 1


def test_a_receiver_that_is_not_there_was_not_sent_anything(
    post: Post, server: TlsServer, names: Names
) -> None:
    names.addresses = []
    receipt = post()
    assert receipt == Receipt(error=f"not sent: {NAME}: name has no address")
    assert server.connections == 0


# --- time: ten seconds for everything together ---


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 20", OK, OK + b"X: 1"])
def test_a_head_that_stalls_is_no_answer_when_the_time_is_over(
    post: Post, server: TlsServer, spent: Spent, start: bytes
) -> None:
    spent.left = 0.5
    server.answer = lambda connection, _: server.hang(connection, start)
    receipt = post()
    assert (receipt.status, receipt.answer) == (None, None)
    assert receipt.error is not None
    assert receipt.error.startswith("no answer")
    assert not server.outlasted


@pytest.mark.parametrize(("line", "status"), [(OK, 200), (b"HTTP/1.1 500 Oops\r\n", 500)])
@pytest.mark.parametrize("came", ["", "thanks, and"])
def test_a_body_that_stalls_leaves_the_status_and_what_came_of_it(
    post: Post, server: TlsServer, spent: Spent, line: bytes, status: int, came: str
) -> None:
    spent.left = 1  # a busy machine needs a part of it to connect
    start = line + b"Content-Length: 999\r\n\r\n" + came.encode()
    server.answer = lambda connection, _: server.hang(connection, start)
    assert post() == Receipt(status=status, answer=came)


@pytest.mark.parametrize(("start", "status"), [(OK + b"X: ", None), (OK + b"\r\n", 200)])
def test_drops_do_not_prolong_the_time(
    new_http: NewHttp, server: TlsServer, start: bytes, status: int | None
) -> None:
    http = new_http(monotonic=lambda: float(server.dripped))  # a second a drop, on any machine
    server.answer = lambda connection, _: server.drip(connection, start, b"x")
    receipt = PublicReceivers(http).post(f"https://{NAME}:{server.port}/", {}, BODY, now=NOW)
    assert receipt.status == status
    assert not server.outlasted


# --- where to: no byte to what is not public ---


PRIVATE = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1"]


def test_a_name_that_is_public_when_saved_and_private_when_used_gets_no_byte(
    new_http: NewHttp, names: Names
) -> None:
    deployed = PublicReceivers(new_http(allow_loopback=False))
    hosts = ResolvedHosts(resolve=names)
    names.addresses = [PUBLIC]
    assert hosts.permitted(NAME)
    names.addresses = ["127.0.0.1"]
    receipt = deployed.post(f"https://{NAME}/", HEADERS, BODY, now=NOW)
    assert receipt == Receipt(error=f"not sent: {NAME}: address refused")
    # For the one sending, once: the checked address is connected to.
    assert names.asked == [NAME, NAME]


@pytest.mark.parametrize(("allow_loopback", "connections"), [(False, 0), (True, 1)])
def test_not_even_a_connection_is_opened_to_what_is_not_permitted(
    server: TlsServer, names: Names, allow_loopback: bool, connections: int
) -> None:
    backend = PublicBackend(names, allow_loopback=allow_loopback)
    call = Call(time.monotonic, time.monotonic() + 2, 1024)
    with suppress(Stopped):
        backend.connect_tcp(NAME, server.port, call).close()
    time.sleep(0.05)
    assert server.connections == connections


@pytest.mark.parametrize("target", ["https://127.0.0.1:{port}/inside", "http://169.254.169.254/"])
def test_a_redirect_is_a_failure_and_its_target_gets_no_byte(
    post: Post, server: TlsServer, names: Names, target: str
) -> None:
    location = f"Location: {target.format(port=server.port)}\r\n"
    statuses = [301, 302, 303, 307, 308]
    # Where a cloud keeps its secrets is not even shown.
    leads = None if "169.254." in target else target.format(port=server.port)
    for status in statuses:
        server.answer = reply(b"", status=f"{status} Over There", headers=location)
        assert post() == Receipt(status=status, error=leads, answer="")
    assert [request.split()[1] for request in server.requests] == [b"/hooks?a=%C3%BC"] * 5
    assert (names.asked, server.connections) == ([NAME], 1)


@pytest.mark.parametrize(
    ("status", "location", "leads"),
    [
        (308, "/hooks/", "https://{host}/hooks/"),
        (301, "https://www.shop.example/hooks", "https://www.shop.example/hooks"),
        (302, "not a URL", None),
        (302, "", None),
        (200, "/hooks/", None),
    ],
)
def test_a_redirect_is_noted_with_the_url_to_which_it_leads(
    post: Post, server: TlsServer, status: int, location: str, leads: str | None
) -> None:
    server.answer = reply(b"", status=f"{status} Over There", headers=f"Location: {location}\r\n")
    assert post().error == (leads and leads.format(host=f"{NAME}:{server.port}"))


# --- what may be saved is what can be sent ---


@pytest.mark.parametrize("host", ["shop.example.", "134744072", "fe80::1%eth0", ""])
def test_a_host_that_nothing_is_sent_to_is_not_even_resolved(names: Names, host: str) -> None:
    names.addresses = [PUBLIC]
    assert not ResolvedHosts(resolve=names).permitted(host)
    assert names.asked == []


@pytest.mark.parametrize("addresses", [[], *([PUBLIC, each] for each in PRIVATE)])
def test_a_host_is_permitted_only_if_all_its_addresses_are(
    names: Names, addresses: list[str]
) -> None:
    names.addresses = addresses
    assert not ResolvedHosts(resolve=names).permitted(NAME)


def test_loopback_is_permitted_in_development_alone(names: Names) -> None:
    assert ResolvedHosts(resolve=names, allow_loopback=True).permitted("localhost")
    assert not ResolvedHosts(resolve=names).permitted("localhost")


@pytest.mark.parametrize("error", [OSError("no such name"), UnicodeError("label too long")])
def test_a_resolver_that_fails_leads_nowhere(names: Names, error: Exception) -> None:
    names.before = Mock(side_effect=error)
    assert not ResolvedHosts(resolve=names).permitted(NAME)


public, private = Names(), Names()
public.addresses, private.addresses = [PUBLIC], ["10.0.0.1"]
nowhere = PublicReceivers(
    PublicTransport(user_agent="1", resolve=private)
)  # gets as far as the address


@settings(max_examples=60)
@given(
    host=st.from_regex(r"[A-Za-z0-9._:\[\]-]{1,30}", fullmatch=True),
    rest=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12),
    scheme=st.sampled_from(["https", "HTTPS", "http"]),
)
def test_whatever_may_be_saved_can_be_sent(host: str, rest: str, scheme: str) -> None:
    url = f"{scheme}://{host}/{rest}"
    try:
        saved = webhook_url(url, allow_loopback=False, param="url")
    except UrlInvalid:
        return
    if ResolvedHosts(resolve=public).permitted(saved):
        receipt = nowhere.post(url, {}, b"{}", now=NOW)
        assert receipt.error == f"not sent: {saved.lower()}: address refused"


# --- Retry-After ---


def wish(value: str) -> timedelta | None:
    busy = Mock()
    busy.send.return_value = Response(503, {"retry-after": value}, b"")
    return PublicReceivers(busy).post(f"https://{NAME}/", {}, BODY, now=NOW).retry_after


def test_the_wish_to_wait_is_read_from_the_header(post: Post, server: TlsServer) -> None:
    server.answer = reply(b"", status="503 Busy", headers="Retry-After:  7 \r\n")
    assert post() == Receipt(status=503, answer="", retry_after=timedelta(seconds=7))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("0", 0), ("120", 120), ("  7  ", 7), ("86401", 86_401)),
        ("Sun, 01 Mar 2026 12:02:00 GMT", 120),
        ("Sunday, 01-Mar-26 12:02:00 GMT", 120),
        ("Sun Mar  1 12:02:00 2026", 120),
        ("Sun, 01 Mar 2026 13:02:00 +0100", 120),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
    ],
)
def test_a_wish_to_wait_is_seconds_or_a_date(value: str, seconds: int) -> None:
    assert wish(value) == timedelta(seconds=seconds)


@pytest.mark.parametrize("digits", [9, 10, 20, 5000])
def test_a_wish_for_ever_is_longer_than_what_is_honoured(digits: int) -> None:
    found = wish("9" * digits)
    assert found is not None
    assert found > timedelta(days=1000)


@pytest.mark.parametrize(
    "value",
    [
        *("", "1, 2", *words("-5 +5 1.5 1e3 soon 0x10 ,,,")),
        "Sun, 99 Mar 2026 99:99:99 GMT",
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 01 Jan 2026 00:00:00 +99999999999999",
    ],
)
def test_what_is_neither_is_no_wish(value: str) -> None:
    assert wish(value) is None


@given(value=st.text(max_size=40) | st.from_regex(r"[A-Za-z0-9 ,:+-]{1,40}", fullmatch=True))
def test_no_wish_is_ever_an_error_or_before_now(value: str) -> None:
    found = wish(value)
    assert found is None or found >= timedelta(0)


def test_in_development_plain_http_reaches_this_machine_only(new_http: NewHttp) -> None:
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{listening.server_port}/hooks"
        dev = PublicReceivers(new_http(resolve=socket.getaddrinfo))
        assert dev.post(url, HEADERS, BODY, now=NOW).status == 204
        assert webhook_url(url, allow_loopback=True, param="url") == "127.0.0.1"
        deployed = PublicReceivers(new_http(allow_loopback=False))
        refused = [
            deployed.post(url, HEADERS, BODY, now=NOW),
            dev.post(f"http://{NAME}/", HEADERS, BODY, now=NOW),
        ]
        listening.shutdown()
    assert [each.status for each in refused] == [None, None]
    assert all("not an https URL" in (each.error or "") for each in refused)
    assert got == [BODY]
    for plain in (url, "http://shop.example/"):
        with pytest.raises(UrlInvalid):
            webhook_url(plain, allow_loopback=plain != url, param="url")
