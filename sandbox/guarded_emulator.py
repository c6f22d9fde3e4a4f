"""Run the AWS emulator behind a guard: `python guarded_emulator.py`.

The emulator is part of the local world (checkout, wallets and shop on one machine). It accepts any
credentials, and requests from the pages of any site. So without the guard, a site that a developer
visits meanwhile could read the emulator's secrets and tables. The guard refuses a request if a
browser sends it (it has an Origin or Fetch Metadata header), if it names another host (DNS
rebinding), or if its access key is not EMULATOR_KEY. This key of the local world is random and
stored in a private file.

The guard runs in the emulator's own virtual environment, so it imports nothing of this project.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_HEALTH = "/_ministack/health"  # shows only that the emulator runs
_BROWSERS = ("origin", "referer", "sec-fetch-site", "sec-fetch-mode")
_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/,\s]{1,128})/")


def refusal(headers: list[tuple[str, str]], path: str, *, hosts: tuple[str, ...], key: str) -> str:
    """Return the reason why a request is refused, "" if it is accepted."""
    named: dict[str, list[str]] = {}
    for name, value in headers:
        named.setdefault(name.lower(), []).append(value)
    if any(name in named for name in _BROWSERS):
        return "a browser's request"
    if named.get("host") not in [[host] for host in hosts]:
        return "another host"
    if path == _HEALTH:
        return ""
    found = _CREDENTIAL.match(" ".join(named.get("authorization", [])))
    if found is None or not hmac.compare_digest(found[1].encode(), key.encode()):
        return "other credentials"
    return ""


def guarded(app: App, *, hosts: tuple[str, ...], key: str) -> App:
    """Return `app` with the guard: a refused request gets a 403, a refused socket is closed."""

    async def guard(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        why = refusal(headers, scope["path"], hosts=hosts, key=key)
        if not why and scope["type"] == "http":
            await app(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": f"Refused: {why}.\n".encode()})
        else:
            await send({"type": "websocket.close"})

    return guard


def main() -> None:
    from ministack import app as emulator  # type: ignore[import-not-found]

    port = os.environ["GATEWAY_PORT"]
    hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
    emulator.app = guarded(emulator.app, hosts=hosts, key=os.environ["EMULATOR_KEY"])
    emulator.main()


if __name__ == "__main__":
    main()
