"""The local world's emulator answers its own world, and no page that a developer visits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sandbox.guarded_emulator import guarded

KEY = "world0123"
HOST = "127.0.0.1:4566"
SIGNED = f"AWS4-HMAC-SHA256 Credential={KEY}/20260301/us-east-1/sqs/aws4_request, Signature=x"
OWN = [("host", HOST), ("authorization", SIGNED)]


def asked(
    headers: list[tuple[str, str]], *, method: str = "POST", path: str = "/", kind: str = "http"
) -> tuple[bool, list[dict[str, Any]]]:
    """Return whether the emulator was asked, and what was sent."""
    reached: list[str] = []
    sent: list[dict[str, Any]] = []

    async def emulator(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": kind, "method": method, "path": path, "headers": raw}
    app = guarded(emulator, hosts=(HOST, "localhost:4566"), key=KEY)
    asyncio.run(app(scope, None, send))  # type: ignore[arg-type]
    return bool(reached), sent


@pytest.mark.parametrize("host", [HOST, "localhost:4566"])
def test_the_worlds_own_requests_are_let_in(host: str) -> None:
    assert asked([("host", host), ("authorization", SIGNED)]) == (True, [])


REFUSED: dict[str, list[tuple[str, str]]] = {
    "another site": [*OWN, ("origin", "https://evil.example")],
    "a page of ours": [*OWN, ("origin", "http://localhost:4000")],
    "a sandboxed frame": [*OWN, ("Origin", "null")],
    "a picture": [*OWN, ("sec-fetch-site", "cross-site")],
    "a typed address": [*OWN, ("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
    "an older browser's picture": [*OWN, ("referer", "https://evil.example/")],
    "a name that was bound to this machine": [("host", "evil.example:4566"), OWN[1]],
    "another port": [("host", "127.0.0.1:4567"), OWN[1]],
    "two hosts": [*OWN, ("host", "evil.example")],
    "no host": [OWN[1]],
    "no credentials": [("host", HOST)],
    "the usual credentials": [("host", HOST), ("authorization", SIGNED.replace(KEY, "test"))],
    "a longer key": [("host", HOST), ("authorization", SIGNED.replace(KEY, f"{KEY}4"))],
    "a shorter key": [("host", HOST), ("authorization", SIGNED.replace(KEY, KEY[:-1]))],
    "a bearer": [("host", HOST), ("authorization", f"Bearer {KEY}")],
    "two credentials": [("host", HOST), ("authorization", "x"), ("authorization", SIGNED)],
    "not ASCII": [("host", HOST), ("authorization", SIGNED.replace(KEY, "é"))],
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_all_others_are_refused_and_the_emulator_is_not_asked(case: str, method: str) -> None:
    reached, sent = asked(REFUSED[case], method=method)
    assert not reached
    assert (sent[0]["status"], sent[0]["headers"]) == (403, [])


def test_a_socket_of_a_page_is_closed() -> None:
    assert asked(REFUSED["another site"], kind="websocket") == (
        False,
        [{"type": "websocket.close"}],
    )


def test_health_needs_no_credentials_and_is_for_no_page_either() -> None:
    path = "/_ministack/health"
    assert asked([("host", HOST)], path=path)[0]
    assert not asked([("host", HOST), ("origin", "https://evil.example")], path=path)[0]
