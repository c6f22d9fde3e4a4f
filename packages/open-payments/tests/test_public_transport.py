from __future__ import annotations

import json
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tls_server import NAME, Names, TlsServer, raw, reply

from open_payments.errors import NoSuchHost, NotSent, OutcomeUnknown
from open_payments.protocol import OpenPayments
from open_payments.transports import Request, Response
from open_payments.transports.public import PublicTransport
from open_payments.urls import target_uri

pytestmark = pytest.mark.enable_socket  # to loopback

Answer = Callable[[ssl.SSLSocket, bytes], bool]
NewHttp = Callable[..., PublicTransport]
ROOM = 5  # seconds, where what is tested does not take as long, but a busy machine may


@pytest.fixture
def http(new_http: NewHttp) -> PublicTransport:
    return new_http()


@pytest.fixture
def strict(new_http: NewHttp) -> PublicTransport:
    """As deployed: no loopback."""
    return new_http(allow_loopback=False)


def get(
    http: PublicTransport, server: TlsServer, path: str = "/", *, timeout: float = ROOM
) -> Response:
    return http.send(Request("GET", f"https://{NAME}:{server.port}{path}", {}), timeout=timeout)


def post(http: PublicTransport, server: TlsServer, *, timeout: float = ROOM) -> Response:
    request = Request("POST", f"https://{NAME}:{server.port}/pay", {}, b"{}")
    return http.send(request, timeout=timeout)


# What is sent


def test_url_headers_and_body_arrive_byte_for_byte(
    http: PublicTransport, server: TlsServer
) -> None:
    path = "/a%2Fb/%7Euser//..;v=1/%e4%zz?q=%20x+y&&z=a%3D%26?/'()*![:@]$,;"
    headers = {
        "Signature-Input": 'sig1=("@method" "@target-uri");created=1',
        "signature": "sig1=:AA==:",
        "Content-Type": "application/json",
    }
    body = '{"name":"é"}'.encode()
    http.send(Request("POST", f"https://{NAME}:{server.port}{path}", headers, body), timeout=ROOM)
    assert server.requests == [
        f"POST {path} HTTP/1.1\r\n"
        f"Host: {NAME}:{server.port}\r\n"
        "User-Agent: shop/1.2.3\r\n"
        "Accept-Encoding: identity\r\n"
        "Connection: keep-alive\r\n"
        'Signature-Input: sig1=("@method" "@target-uri");created=1\r\n'
        "signature: sig1=:AA==:\r\n"
        "Content-Type: application/json\r\n"
        "Content-Length: 13\r\n"
        "\r\n".encode()
        + body
    ]


def test_a_header_of_the_request_is_not_sent_a_second_time_by_us(
    http: PublicTransport, server: TlsServer
) -> None:
    headers = {"content-length": "2", "user-agent": "mine", "accept": "application/json"}
    http.send(Request("POST", f"https://{NAME}:{server.port}/", headers, b"{}"), timeout=ROOM)
    lines = server.requests[0].lower().split(b"\r\n")
    assert [line for line in lines if line.startswith((b"content-length", b"user-agent"))] == [
        b"content-length: 2",
        b"user-agent: mine",
    ]


@pytest.mark.parametrize(("method", "length"), [("POST", True), ("GET", False), ("DELETE", False)])
def test_only_a_method_that_means_a_body_says_that_it_has_none(
    http: PublicTransport, server: TlsServer, method: str, length: bool
) -> None:
    http.send(Request(method, f"https://{NAME}:{server.port}/", {}), timeout=ROOM)
    assert (b"Content-Length: 0\r\n" in server.requests[0]) is length
    assert (b"ontent-" in server.requests[0]) is length


@pytest.mark.parametrize("path", ["/a\\b", '/"', "/<>", "/{id}", "/a b", "/a/../b", "/./a"])
def test_a_url_that_httpx_would_rewrite_is_not_sent(
    http: PublicTransport, server: TlsServer, path: str
) -> None:
    with pytest.raises(NotSent, match="not a URL that can be sent"):
        get(http, server, path)
    assert server.requests == []


@given(
    path=st.text("aB0-._~:/?[]@!$&'()*+,;=%", max_size=20),
    host=st.sampled_from(["wallet.example", "Wallet.Example", "xn--bcher-kva.example"]),
)
def test_httpx_keeps_each_url_that_can_be_signed(path: str, host: str) -> None:
    try:
        signed = target_uri(f"https://{host}/{path}")
    except ValueError:
        return
    assert str(httpx.URL(signed)) == signed


def test_an_empty_path_is_sent_as_a_slash_and_the_host_in_lower_case(
    http: PublicTransport, server: TlsServer
) -> None:
    http.send(Request("GET", f"https://Wallet.Example:{server.port}?a=1", {}), timeout=ROOM)
    start = f"GET /?a=1 HTTP/1.1\r\nHost: {NAME}:{server.port}\r\n"
    assert server.requests[0].startswith(start.encode())


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "GNAP se\r\ncret"},
        {"Authorization": "GNAP sécret"},
        {"Authorization": "GNAP secret "},
        {"Bad name": "secret"},
        {"Host": "other.example"},
        {"Transfer-Encoding": "chunked"},
        {"Content-Length": "3"},
    ],
)
def test_headers_that_cannot_be_sent_as_they_are_are_not_sent(
    http: PublicTransport, server: TlsServer, headers: dict[str, str]
) -> None:
    request = Request("POST", f"https://{NAME}:{server.port}/", headers, b"{}")
    with pytest.raises(NotSent) as caught:
        http.send(request, timeout=ROOM)
    assert server.requests == []
    assert "cret" not in _all_that_a_log_could_show(caught.value)


# What is answered


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("[::ffff:192.168.0.1]", "::ffff:192.168.0.1"),
        ("metadata.example", "169.254.169.254"),
    ],
)
def test_each_hop_of_a_wallet_address_is_judged_like_the_address_that_was_typed(
    http: PublicTransport, server: TlsServer, names: Names, host: str, address: str
) -> None:
    names.by_host = {host.strip("[]"): [address]}
    server.answer = reply(b"", status="302 Found", headers=f"Location: https://{host}/alice\r\n")
    now = datetime.now(UTC)
    client = OpenPayments(http, None, now=lambda: now, deadline=now + timedelta(seconds=5))
    with pytest.raises(NotSent, match="address refused"):
        client.get_wallet_address(f"https://{NAME}:{server.port}/pay")
    assert len(server.requests) == 1
    assert names.asked == [NAME, host.strip("[]")]  # each once, for the connection itself


def test_a_wallet_address_that_redirects_is_read_where_it_leads(
    http: PublicTransport, server: TlsServer, names: Names
) -> None:
    wallet = f"https://{NAME}:{server.port}/alice"
    document = {"id": wallet, "assetCode": "EUR", "assetScale": 2}
    document |= {"authServer": f"{wallet}/auth", "resourceServer": wallet}
    found = reply(json.dumps(document).encode())
    moved = reply(b"", status="301 Moved", headers="Location: /alice\r\n")
    server.answer = lambda connection, request: (found if b"/alice" in request else moved)(
        connection, request
    )
    now = datetime.now(UTC)
    client = OpenPayments(http, None, now=lambda: now, deadline=now + timedelta(seconds=5))
    assert client.get_wallet_address(f"https://{NAME}:{server.port}/pay").id == wallet
    assert [request.split()[1] for request in server.requests] == [b"/pay", b"/alice"]


def test_status_headers_and_body_are_handed_back(http: PublicTransport, server: TlsServer) -> None:
    server.answer = reply(b'{"a":1}', status="201 Created", headers="X-A: 1\r\nx-a: 2\r\n")
    answer = get(http, server)
    assert (answer.status, answer.body) == (201, b'{"a":1}')
    assert answer.headers == {"x-a": "1, 2", "content-length": "7"}


def test_cookies_are_not_kept(http: PublicTransport, server: TlsServer) -> None:
    server.answer = reply(b"", headers="Set-Cookie: id=1\r\n")
    get(http, server)
    get(http, server)
    assert b"cookie" not in server.requests[1].lower()


def test_a_proxy_of_the_environment_is_not_used(
    new_http: NewHttp, server: TlsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert get(new_http(), server).status == 200


def test_an_informational_answer_is_not_the_answer(
    http: PublicTransport, server: TlsServer
) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    server.answer = raw(early + b"HTTP/1.1 204 No Content\r\n\r\n", keep=True)
    assert get(http, server).status == 204


def _close_properly(connection: ssl.SSLSocket, _: bytes) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nwhole")
    connection.unwrap()
    return False


def test_an_answer_that_ends_with_the_connection_is_whole_when_tls_says_so(
    http: PublicTransport, server: TlsServer
) -> None:
    server.answer = _close_properly
    assert get(http, server).body == b"whole"


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(raw(b""), id="nothing"),
        pytest.param(raw(b"HTTP/1.1 200"), id="half a head"),
        pytest.param(raw(OK + b"Content-Length: 10\r\n\r\nhalf!"), id="half a body"),
        pytest.param(raw(OK + b"\r\nperhaps half"), id="cut off without a word from TLS"),
        pytest.param(raw(CHUNKED + b"5\r\nhalf!\r\n"), id="no last chunk"),
        pytest.param(raw(b"220 ready to serve\r\n\r\n"), id="not HTTP"),
        pytest.param(raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), id="upgrade"),
        pytest.param(raw(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"), id="gzip in transfer"),
        pytest.param(reply(b"x", headers="Content-Encoding: gzip\r\n"), id="gzip"),
        pytest.param(reply(b"x", headers="Content-Encoding: BR\r\n"), id="brotli"),
        pytest.param(raw(OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), id="two"),
    ],
)
def test_an_answer_that_is_not_whole_and_plain_leaves_the_outcome_unknown(
    http: PublicTransport, server: TlsServer, answer: Answer
) -> None:
    server.answer = answer
    with pytest.raises(OutcomeUnknown):
        post(http, server)
    assert len(server.requests) == 1


# Size


def test_a_length_over_the_cap_is_refused_before_the_body_is_read(
    http: PublicTransport, server: TlsServer
) -> None:
    server.answer = raw(OK + b"Content-Length: 262145\r\n\r\n", keep=True)
    with pytest.raises(OutcomeUnknown, match="too big"):  # not "out of time": no body ever comes
        get(http, server)


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"400\r\n" + b"x" * 1024 + b"\r\n"),
        (OK + b"\r\n", b"x" * 1024),
        (OK, b"X-Filler: " + b"x" * 1024 + b"\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40),
    ],
    ids=["chunks", "until closed", "headers", "informational answers"],
)
def test_an_answer_without_end_is_cut_off_at_the_cap(
    http: PublicTransport, server: TlsServer, start: bytes, more: bytes
) -> None:
    server.answer = lambda connection, _: server.flood(connection, start, more)
    with pytest.raises(OutcomeUnknown):
        get(http, server)
    server.close()
    assert server.flooded < 16 * 1024 * 1024  # what the sockets' buffers hold besides


def test_an_answer_just_under_the_cap_is_read(http: PublicTransport, server: TlsServer) -> None:
    body = b"x" * (255 * 1024)
    server.answer = reply(body)
    assert get(http, server).body == body


# Time


@pytest.mark.parametrize("start", [b"", OK + b"X: ", OK + b"Content-Length: 999\r\n\r\n"])
def test_a_server_that_drips_is_cut_off_at_the_deadline(
    http: PublicTransport, server: TlsServer, start: bytes
) -> None:
    server.answer = lambda connection, _: server.drip(connection, start, b"x")
    with pytest.raises(OutcomeUnknown):
        post(http, server, timeout=1)  # a busy machine needs a part of it to connect
    assert not server.outlasted


@pytest.mark.parametrize(("head", "body"), [(1, 12_000_000), (12_000_000, 1)])
def test_a_server_that_does_not_read_is_left_at_the_deadline(
    http: PublicTransport, server: TlsServer, head: int, body: int
) -> None:
    server.listen = False
    url = f"https://{NAME}:{server.port}/"
    request = Request("POST", url, {"X": "x" * head}, b"x" * body)
    with pytest.raises(OutcomeUnknown):
        http.send(request, timeout=ROOM)
    assert not server.outlasted


def test_a_server_that_accepts_and_speaks_no_tls_has_not_been_sent_anything(
    http: PublicTransport, server: TlsServer
) -> None:
    server.greet = False
    with pytest.raises(NotSent):
        post(http, server, timeout=0.2)
    assert not server.outlasted


def test_a_resolver_that_hangs_is_left_at_the_deadline(http: PublicTransport, names: Names) -> None:
    over, ended = threading.Event(), []
    names.before = lambda: ended.append(over.wait(TlsServer.PATIENCE))
    with pytest.raises(NotSent):
        http.send(Request("GET", f"https://{NAME}/", {}), timeout=0.2)
    assert ended == []
    over.set()


def test_the_time_for_the_name_is_taken_from_the_same_budget(
    new_http: NewHttp, server: TlsServer, names: Names
) -> None:
    http = new_http(monotonic=lambda: time.monotonic() + 1000.0 * len(names.asked))
    server.answer = lambda connection, _: server.hang(connection)
    with pytest.raises(OutcomeUnknown):
        post(http, server, timeout=1000.5)
    assert not server.outlasted


@pytest.mark.parametrize("timeout", [0, -1])
def test_no_time_left_means_nothing_is_tried(
    http: PublicTransport, server: TlsServer, names: Names, timeout: float
) -> None:
    with pytest.raises(NotSent, match="out of time"):
        post(http, server, timeout=timeout)
    assert names.asked == []


# Where to


@pytest.mark.parametrize(
    "url",
    [
        "http://wallet.example/", "http://127.1.example/", "ftp://wallet.example/", "https://", "",
        "HTTPS://wallet.example/", "wallet.example", "//wallet.example/", "https:/wallet.example/",
        "https://u:p@wallet.example/", "https://a@b@wallet.example/", "https://wallet.example\\@x/",
        "https://wallet.example#@evil.example/", "https://wallet.example/a\r\nX: y",
        "https://wallet.example/\x00", "https://wällét.example/", "https://wallet.example\n/",
        " https://wallet.example/", "https://wallet.example./", "https://wallet..example/",
        "https://2130706433/", "https://0x7f.1/", "https://127.0.0.1./", "https://[fe80::1%25eth0]/",
        "https://[::1/", "https://::1/", "https://[127.0.0.1]/", "https://[v1.a]/",
        "https://①②⑦.0.0.1/", "https://wallet.example:/", "https://wallet.example:0/",
        "https://wallet.example:443:443/", "https://wallet.example:x/",
    ],
)  # fmt: skip
def test_a_url_that_could_be_read_in_two_ways_is_not_even_resolved(
    http: PublicTransport, names: Names, url: str
) -> None:
    with pytest.raises(NotSent):
        http.send(Request("GET", url, {}), timeout=ROOM)
    assert names.asked == []


@pytest.mark.parametrize("port", [0, 22, 80, 8443, 65536])
def test_only_port_443_is_used_where_loopback_is_not_allowed(
    strict: PublicTransport, names: Names, port: int
) -> None:
    with pytest.raises(NotSent, match="port refused"):
        strict.send(Request("GET", f"https://{NAME}:{port}/", {}), timeout=ROOM)
    assert names.asked == []


@pytest.mark.parametrize(
    "addresses",
    [
        *(["127.0.0.1"], ["::1"], ["10.0.0.1"], ["169.254.169.254"], ["168.63.129.16"]),
        *(["fd00:ec2::254"], ["::ffff:127.0.0.1"], ["::ffff:169.254.169.254"]),
        ["8.8.8.8", "10.0.0.1"],
        ["2606:4700::1111", "8.8.8.8", "127.0.0.1"],
    ],
)
def test_a_name_with_one_address_that_is_not_public_is_refused(
    strict: PublicTransport, names: Names, addresses: list[str]
) -> None:
    names.addresses = addresses
    with pytest.raises(NotSent, match="address refused"):
        strict.send(Request("GET", f"https://{NAME}/", {}), timeout=ROOM)
    assert names.asked == [NAME]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "10.0.0.1", "192.168.0.1", "[::ffff:7f00:1]"]
)
def test_an_address_in_the_url_is_judged_like_a_resolved_one(new_http: NewHttp, host: str) -> None:
    http = new_http(allow_loopback=False, resolve=socket.getaddrinfo)
    with pytest.raises(NotSent, match="address refused"):
        http.send(Request("GET", f"https://{host}/", {}), timeout=ROOM)


def test_a_name_is_resolved_once_for_check_and_connection(
    http: PublicTransport, server: TlsServer, names: Names
) -> None:
    def rebind() -> None:
        if len(names.asked) > 1:
            names.addresses = ["192.168.0.1"]

    names.before = rebind
    assert get(http, server).status == 200
    assert get(http, server).status == 200  # on the connection that is open, to the checked address
    assert names.asked == [NAME]


def test_the_next_address_is_tried_when_one_does_not_connect(
    http: PublicTransport, server: TlsServer, names: Names
) -> None:
    names.addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.1"]  # the server listens on the last
    assert post(http, server).status == 200
    assert len(server.requests) == 1


def test_an_address_in_the_url_is_connected_to_with_its_certificate_checked(
    http: PublicTransport, server: TlsServer
) -> None:
    url = f"https://127.0.0.1:{server.port}/"
    assert http.send(Request("GET", url, {}), timeout=ROOM).status == 200


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), NoSuchHost),
        (socket.gaierror(socket.EAI_NODATA, "No address"), NoSuchHost),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), NotSent),
        (UnicodeError("label too long"), NotSent),
    ],
)
def test_a_name_that_does_not_resolve_has_not_been_sent_anything(
    http: PublicTransport, names: Names, error: Exception, kind: type[Exception]
) -> None:
    names.before = Mock(side_effect=error)
    with pytest.raises(NotSent) as caught:
        http.send(Request("GET", f"https://{NAME}/", {}), timeout=ROOM)
    assert type(caught.value) is kind


def test_a_connection_refused_has_not_been_sent_anything(
    http: PublicTransport, server: TlsServer
) -> None:
    server.close()
    with pytest.raises(NotSent, match="ConnectionRefusedError"):
        post(http, server)


# Whom to trust


def test_an_authority_that_is_not_trusted_is_refused_before_anything_is_sent(
    new_http: NewHttp, server: TlsServer
) -> None:
    with pytest.raises(NotSent, match="certificate refused"):
        post(new_http(ca_file=None), server)
    assert server.requests == []


def test_a_certificate_for_another_name_is_refused_before_anything_is_sent(
    http: PublicTransport, server: TlsServer
) -> None:
    with pytest.raises(NotSent, match="certificate refused"):
        http.send(Request("GET", f"https://other.example:{server.port}/", {}), timeout=ROOM)
    assert server.requests == []


# Connections that are used again


def test_a_connection_is_used_again(http: PublicTransport, server: TlsServer) -> None:
    server.answer = reply(b"{}")
    for _ in range(3):
        assert post(http, server).body == b"{}"
    assert (server.connections, len(server.requests)) == (1, 3)


def test_a_connection_that_the_server_has_closed_is_not_used_again(
    http: PublicTransport, server: TlsServer
) -> None:
    server.answer = raw(OK + b"Content-Length: 0\r\n\r\n")  # and closes, without having said so
    for _ in range(3):
        assert post(http, server).status == 200
        time.sleep(0.05)
    assert (server.connections, len(server.requests)) == (3, 3)


def test_a_request_lost_on_a_used_connection_is_never_sent_again(
    http: PublicTransport, server: TlsServer
) -> None:
    assert post(http, server).status == 200
    server.answer = raw(b"")  # takes the next request, and closes without an answer
    with pytest.raises(OutcomeUnknown):
        post(http, server)
    assert (server.connections, len(server.requests)) == (1, 2)
    server.answer = reply(b"")
    assert post(http, server).status == 200  # the broken connection is not used for the next one
    assert (server.connections, len(server.requests)) == (2, 3)


def test_an_idle_connection_is_not_used_beyond_its_time(
    new_http: NewHttp, server: TlsServer
) -> None:
    http = new_http(keep_alive=0.05)
    for _ in range(2):
        get(http, server)
        time.sleep(0.1)
    assert server.connections == 2


def test_a_process_that_was_frozen_does_not_use_the_connections_it_had_before(
    new_http: NewHttp, server: TlsServer
) -> None:
    wall = [0.0]
    http = new_http(wall=lambda: wall[0])
    for pause in (0.0, 2.9, 3.1):
        wall[0] += pause
        get(http, server)
    assert server.connections == 2


def test_threads_get_their_own_answers(http: PublicTransport, server: TlsServer) -> None:
    server.answer = lambda connection, said: reply(said.split()[1])(connection, said)
    paths = [f"/{number}" for number in range(60)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda path: get(http, server, path).body, paths))
    assert answers == [path.encode() for path in paths]
    assert len(server.requests) == 60
    assert server.connections <= 8


def test_servers_that_hang_hold_up_no_request_to_another(
    http: PublicTransport, server: TlsServer
) -> None:
    over = threading.Event()

    def answer(connection: ssl.SSLSocket, request: bytes) -> bool:
        if request.startswith(b"GET"):
            return reply(b"quick")(connection, request)
        over.wait(ROOM)
        return False

    server.answer = answer
    hanging = 30  # more than a pool of connections has by default

    def hang() -> None:
        with pytest.raises(OutcomeUnknown):
            post(http, server)

    with ThreadPoolExecutor(hanging) as threads:
        hung = [threads.submit(hang) for _ in range(hanging)]
        while len(server.requests) < hanging:
            time.sleep(0.01)
        assert get(http, server).body == b"quick"
        assert not any(each.done() for each in hung)
        over.set()
    for each in hung:
        each.result()


# What errors tell


def _all_that_a_log_could_show(error: BaseException) -> str:
    """The error as a log prints it, and whatever hangs on it."""
    shown = "".join(traceback.format_exception(error)) + repr(error)
    for hidden in (error.__cause__, error.__context__):
        shown += repr(hidden) if hidden else ""
    return shown


@pytest.mark.parametrize(
    "answer",
    [raw(b""), raw(b"HTTP/1.1 200 OK\r\nset-cookie secret\r\n\r\n"), raw(b"secret\r\n\r\n")],
)
def test_errors_name_the_host_and_nothing_that_was_said(
    http: PublicTransport, server: TlsServer, answer: Answer
) -> None:
    server.answer = answer
    url = f"https://{NAME}:{server.port}/secret?token=secret"
    request = Request("POST", url, {"Authorization": "GNAP secret"}, b"secret")
    with pytest.raises(OutcomeUnknown) as caught:
        http.send(request, timeout=ROOM)
    assert str(caught.value).startswith(f"{NAME}: ")
    assert "secret" not in _all_that_a_log_could_show(caught.value)


@pytest.mark.parametrize(
    "url", ["https://wallet.example:1/s3cret", "http://s3cret", "https://s3cret_"]
)
def test_errors_about_a_url_do_not_repeat_it(strict: PublicTransport, url: str) -> None:
    with pytest.raises(NotSent) as caught:
        strict.send(Request("GET", url, {}), timeout=ROOM)
    assert "s3cret" not in _all_that_a_log_could_show(caught.value)


# With `body_max` the status is what counts


def began(http: PublicTransport, server: TlsServer) -> Response:
    request = Request("POST", f"https://{NAME}:{server.port}/hooks", {}, b"{}")
    return http.send(request, timeout=ROOM, body_max=1024)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        pytest.param(reply(b"x" * 1023), b"x" * 1023, id="shorter"),
        pytest.param(reply(b"x" * 1024), b"x" * 1024, id="as long"),
        pytest.param(reply(b"x" * 1025), b"x" * 1024, id="longer"),
        pytest.param(reply(b"x" * 300_000), b"x" * 1024, id="longer than the cap"),
        pytest.param(raw(OK + b"Content-Length: 99999999\r\n\r\nhalf"), b"half", id="half"),
        pytest.param(raw(OK + b"\r\nperhaps half"), b"perhaps half", id="cut off"),
        pytest.param(raw(CHUNKED + b"5\r\nhalf!\r\n"), b"half!", id="chunk"),
        pytest.param(raw(CHUNKED + b"zz\r\n"), b"", id="no chunk"),
        pytest.param(reply(b"\x1f", headers="Content-Encoding: gzip\r\n"), b"\x1f", id="gzip"),
        pytest.param(reply(b"", status="204 No Content"), b"", id="no content"),
    ],
)
def test_an_answers_beginning_is_enough_whatever_comes_of_the_rest(
    http: PublicTransport, server: TlsServer, answer: Answer, body: bytes
) -> None:
    server.answer = answer
    found = began(http, server)
    assert 200 <= found.status < 300
    assert found.body == body
    assert len(server.requests) == 1


def test_a_body_without_end_is_not_read_beyond_the_beginning(
    http: PublicTransport, server: TlsServer
) -> None:
    server.answer = lambda connection, _: server.flood(connection, OK + b"\r\n", b"x" * 1024)
    assert began(http, server).body == b"x" * 1024
    server.close()
    assert server.flooded < 16 * 1024 * 1024  # what the sockets' buffers hold besides


def test_a_connection_whose_answer_was_not_read_to_its_end_is_not_used_again(
    http: PublicTransport, server: TlsServer
) -> None:
    server.answer = reply(b"HTTP/1.1 200 OK\r\n\r\n" * 1000)
    began(http, server)
    server.answer = reply(b"clean")
    assert began(http, server).body == b"clean"
    assert server.connections == 2
