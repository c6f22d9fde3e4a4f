from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message

from checkout.pages import PageHeaders, nonce_of, on_success_header


def answered(path: str, *, scheme: str = "https") -> tuple[dict[str, str], list[int]]:
    """The headers of the answer to `path`, and how many random bytes were asked for."""
    asked: list[int] = []

    def noted(size: int) -> bytes:
        asked.append(size)
        return bytes(range(size))

    def show(request: Request) -> Response:
        on_success_header(request, "cache-control", "private")
        status = int(request.path_params["status"])
        return PlainTextResponse(nonce_of(request), status, {"cache-control": "no-store"})

    app = PageHeaders(
        Starlette(routes=[Route("/{status}", show)]),
        random_bytes=noted,
        policy="script-src 'nonce-{nonce}'",
        referrer="same-origin",
    )
    sent: list[Message] = []

    async def ask() -> None:
        scope = {"type": "http", "method": "GET", "path": path, "scheme": scheme, "headers": []}

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await app(scope, receive, send)

    asyncio.run(ask())
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    headers["body"] = sent[1]["body"].decode()
    return headers, asked


def test_a_nonce_has_128_random_bits_and_is_the_policys_and_the_pages() -> None:
    headers, asked = answered("/200")
    assert asked == [16]
    assert headers["content-security-policy"] == f"script-src 'nonce-{headers['body']}'"


def test_answers_without_a_page_have_the_headers_too() -> None:
    headers, _ = answered("/nowhere/at/all")
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-robots-tag"] == "noindex"


def test_what_holds_for_a_success_does_not_hold_for_an_error() -> None:
    assert answered("/200")[0]["cache-control"] == "private"
    assert answered("/404")[0]["cache-control"] == "no-store"


def test_transport_security_is_not_said_over_http() -> None:
    assert "strict-transport-security" in answered("/200")[0]
    assert "strict-transport-security" not in answered("/200", scheme="http")[0]
