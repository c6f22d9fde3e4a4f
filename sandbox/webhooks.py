"""Commands for local webhook testing: `listen` forwards the shop's events, `trigger` makes one.

The local world delivers to `listen` as to any server: over https, signed, and with retries. The
response of the local address is returned unchanged; `listen` itself never accepts a delivery.
"""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2

from sandbox import cloud
from sandbox.cloud import CloudError
from sandbox.demo import Demo
from sandbox.local_world import join
from sandbox.place import Place
from sandbox.server import Answer, AsgiServer, Incoming
from sandbox.wallets import certificates

if TYPE_CHECKING:
    from checkout.domain.merchant import Merchant
    from checkout.ports.services import DashboardServices

EVENTS: Final = ("completed", "expired", "canceled", "ping")
_BODY_MAX: Final = 1024 * 1024
_ANSWERED_WITHIN: Final = 9.0  # seconds; the sender's timeout is 10
# Hop-by-hop headers (RFC 9110 7.6.1), and those that do not describe the decoded body.
_NOT_FORWARDED: Final = (
    "host",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "content-encoding",
)


class Listener:
    """Webhook receiver that forwards each delivery to `target` and prints the result on a line."""

    def __init__(self, target: str) -> None:
        self._target = target
        # No connection pool: a server under development restarts at every change of its code.
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._client = httpx2.Client(trust_env=False, timeout=_ANSWERED_WITHIN, limits=limits)

    def answer(self, request: Incoming) -> Answer:
        """Forward a delivery; return the target's response, or 502 if it does not respond."""
        headers = dict(request.headers)
        began = time.monotonic()
        try:
            answer = self._client.request(
                request.method,
                self._target,
                content=request.body,
                headers=_forwarded(request.headers),
            )
        except httpx2.HTTPError as error:
            said = f"no answer ({type(error).__name__}); it will be sent again"
            status, back, body = 502, [], b"The local address does not respond."
        else:
            took = (time.monotonic() - began) * 1000
            said = f"{answer.status_code} in {took:.0f} ms{_consequence(answer.status_code)}"
            status, back, body = answer.status_code, answer.headers.multi_items(), answer.content
        _say(
            f"{_now()}  {headers.get('checkout-event-type', '-'):<26}",
            headers.get("checkout-event-id", "-"),
            _id(request.body),
            f"→ {said}",
        )
        # Close, so that the next delivery can reach a listener started after this one.
        return Answer(status, [*_forwarded(back), ("connection", "close")], body)

    def close(self) -> None:
        self._client.close()


def listen(place: Place, target: str) -> int:
    """Forward events until Ctrl-C; return the exit code. Raises CloudError."""
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CloudError(
            f"{target} is not an http or https URL, such as http://localhost:3000/hooks."
        )
    join(place)
    cloud.require_free(place.listener_port, "listening to webhooks")
    tls = certificates.ensure(place.wallets_folder, datetime.now(UTC))
    listener = Listener(target)
    server = AsgiServer(place.listener_port, listener.answer, body_max=_BODY_MAX, tls=tls)
    server.start()
    try:
        secret = _subscribe(place)
        _say(f"secret    {secret}")
        _say(f"events    forwarded to {target}; press Ctrl-C to stop\n")
        threading.Event().wait()
    except KeyboardInterrupt:
        _say("\nstopped; further events are delivered when you listen again")
    finally:
        server.close()
        listener.close()
    return 0


def trigger(place: Place, event: str) -> int:
    """Cause an event of the demo shop; return the exit code. Raises CloudError, DemoFailed."""
    join(place)
    if event == "ping":
        from checkout.flows.webhooks import endpoints

        services, merchant = _shop(place)
        sent = endpoints.ping(services, merchant.id)
        _say(f"ping      {sent.id}")
        return 0
    demo = Demo(
        place,
        api_key=place.api_key_file.read_text("utf-8").strip(),
        wallet=place.customer_wallet,
    )
    if event == "completed":
        demo.run()
    else:
        demo.end("expire" if event == "expired" else "cancel")
    return 0


def _subscribe(place: Place) -> str:
    """Point the demo shop's webhook endpoint to `listen`; return the signing secret."""
    from checkout.domain.webhooks import OPTIONAL
    from checkout.flows.webhooks import endpoints

    services, merchant = _shop(place)
    url = f"https://localhost:{place.listener_port}/"
    done = endpoints.configure(services, merchant.id, url=url, events=OPTIONAL)
    if done.secret is not None:
        return done.secret
    # Merchants see a secret only once; a developer needs the same one at every start.
    return services.vault.open(
        done.endpoint.secrets[0].sealed, place=done.merchant.secret_place(done.endpoint)
    )


def _shop(place: Place) -> tuple[DashboardServices, Merchant]:
    # Imported here, because the settings are read at the first call.
    from checkout import wiring

    services = wiring.dashboard_services()
    merchant = services.merchants.find_by_wallet(place.merchant_wallet)
    if merchant is None:
        raise CloudError("The demo shop is not set up; restart the local world.")
    return services, merchant


def _forwarded(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _NOT_FORWARDED]


def _consequence(status: int) -> str:
    if status == 410:
        return "; the endpoint is now disabled; listen again to enable it"
    return "" if 200 <= status < 300 else "; it will be sent again"


def _id(body: bytes) -> str:
    """Return the id of the session, or of the test event."""
    try:
        return str(json.loads(body)["id"])
    except (ValueError, KeyError, TypeError):
        return "-"


def _now() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")


def _say(*words: str) -> None:
    print(*words, flush=True)
