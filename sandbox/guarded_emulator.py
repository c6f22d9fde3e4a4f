"""Run the AWS emulator of a local world behind a guard: `python guarded_emulator.py`.

The emulator answers any page of any site, with any credentials: a site that a developer visits
while the local world runs could read its secrets and tables. The guard refuses requests that a
browser sends (Origin, Fetch Metadata), that name another host (DNS rebinding), and that are not
signed with the one access key of this world, EMULATOR_KEY, which is random and in a private file.

It runs in the emulator's own virtual environment, so it imports nothing of ours.
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
