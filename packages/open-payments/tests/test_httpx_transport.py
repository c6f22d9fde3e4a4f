"""Sending with an `httpx.Client` of one's own: the signed bytes, once, and errors by effect."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import httpx
import pytest

from open_payments import HttpxTransport, Request
from open_payments.errors import NotSent, OutcomeUnknown

URL = "https://wallet.example/a%2Fb/%7Euser?q=%20x+y"
REQUEST = Request("POST", URL, {"Signature": "s", "Content-Type": "application/json"}, b"{}")


def transport(
    handle: Callable[[httpx.Request], httpx.Response], **options: object
) -> HttpxTransport:
    client = httpx.Client(
        transport=httpx.MockTransport(handle),
        headers={"X-Ours": "1"},
        cookies={"session": "1"},
        auth=("user", "password"),
        follow_redirects=True,
    )
    return HttpxTransport(client, **options)  # type: ignore[arg-type]


def test_exactly_the_signed_bytes_are_sent_and_nothing_of_the_client() -> None:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, headers={"X-Answer": "a"}, content=b"{}")

    answer = transport(handle).send(REQUEST, timeout=5)
    assert (answer.status, answer.headers["x-answer"], answer.body) == (201, "a", b"{}")
    [request] = seen
    assert (str(request.url), request.read()) == (URL, b"{}")
    assert {name.lower() for name in request.headers} == {
        "host", "user-agent", "accept-encoding", "signature", "content-type", "content-length",
    }  # fmt: skip
    assert request.headers["accept-encoding"] == "identity"


def test_a_redirect_is_an_answer() -> None:
    moved = transport(lambda _: httpx.Response(302, headers={"Location": "https://x.example/"}))
    assert moved.send(REQUEST, timeout=5).status == 302


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError, NotSent),
        (httpx.ConnectTimeout, NotSent),
        (httpx.PoolTimeout, NotSent),
        (httpx.ReadTimeout, OutcomeUnknown),
        (httpx.WriteError, OutcomeUnknown),
        (httpx.RemoteProtocolError, OutcomeUnknown),
    ],
)
def test_a_failure_is_classed_by_what_may_have_happened(
    error: type[httpx.TransportError], kind: type[Exception]
) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        raise error("secret", request=request)

    with pytest.raises(kind, match=f"^{error.__name__}$") as caught:
        transport(handle).send(REQUEST, timeout=5)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "headers"),
    [("https://a b/", {}), ("https://wallet.example/%", {"Host": "x"}), ("nonsense", {})],
)
def test_what_cannot_be_sent_as_it_is_was_not_sent(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(NotSent):
        transport(lambda _: httpx.Response(200)).send(Request("GET", url, headers), timeout=5)


def test_an_answer_that_is_too_big_too_late_or_compressed_leaves_the_outcome_unknown() -> None:
    big = transport(lambda _: httpx.Response(200, content=b"x" * (256 * 1024 + 1)))
    with pytest.raises(OutcomeUnknown, match="too big"):
        big.send(REQUEST, timeout=5)
    packed = httpx.Response(
        200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(gzip.compress(b"{}"))
    )
    with pytest.raises(OutcomeUnknown, match="compressed"):
        transport(lambda _: packed).send(REQUEST, timeout=5)
    moments = iter((0.0, 5.1))
    late = transport(lambda _: httpx.Response(200, content=b"{}"), monotonic=lambda: next(moments))
    with pytest.raises(OutcomeUnknown, match="out of time"):
        late.send(REQUEST, timeout=5)
