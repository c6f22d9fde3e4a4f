"""Webhooks at a developer's desk: `listen` passes the demo shop's events on to a local address, and
`trigger` makes one happen.

The world delivers to `listen` as it would to any server: over https, signed, and again until it is
accepted. What the local address answers is what the world is answered; nothing is accepted here in
its place.
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
_ANSWERED_WITHIN: Final = 9.0  # seconds; the sender waits for 10
# Of one connection (RFC 9110 7.6.1), or no longer true of what was read.
_NOT_PASSED_ON: Final = (
    "host",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "content-encoding",
)


class Listener:
    """`answer` is the whole receiver: it forwards a delivery to `target` and says what came of it,
    a line each.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        # No pool: a server that is restarted at every change of its code is met afresh.
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._client = httpx2.Client(trust_env=False, timeout=_ANSWERED_WITHIN, limits=limits)

    def answer(self, request: Incoming) -> Answer:
        headers = dict(request.headers)
        began = time.monotonic()
        try:
            answer = self._client.request(
                request.method,
                self._target,
                content=request.body,
                headers=_passed_on(request.headers),
            )
        except httpx2.HTTPError as error:
            said = f"no answer ({type(error).__name__}); it will be sent again"
            status, back, body = 502, [], b"The local address does not answer."
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
        # Not kept: the next one may be for the listener that is started after us.
        return Answer(status, [*_passed_on(back), ("connection", "close")], body)

    def close(self) -> None:
        self._client.close()


def listen(place: Place, target: str) -> int:
    """Until Ctrl-C; the exit status. Raises CloudError."""
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CloudError(
            f"{target} is not an address: it should be like http://localhost:3000/hooks."
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
        _say(f"events    of the demo shop go to {target}; Ctrl-C ends it\n")
        threading.Event().wait()
    except KeyboardInterrupt:
        _say("\nended; what happens meanwhile is kept, and comes when you listen again")
    finally:
        server.close()
        listener.close()
    return 0


def trigger(place: Place, event: str) -> int:
    """Make an event of the demo shop happen; the exit status. Raises CloudError, DemoFailed."""
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
    """Have all of the demo shop's events sent to us; the secret that signs them."""
    from checkout.domain.webhooks import OPTIONAL, secret_place
    from checkout.flows.webhooks import endpoints

    services, merchant = _shop(place)
    url = f"https://localhost:{place.listener_port}/"
    done = endpoints.configure(services, merchant.id, url=url, events=OPTIONAL)
    if done.secret is not None:
        return done.secret
    # A merchant is shown a secret once; at a desk, one that changes at every start is a nuisance.
    assert done.merchant.endpoint is not None
    return services.vault.open(
        done.merchant.endpoint.secrets[0].sealed, place=secret_place(merchant.id)
    )


def _shop(place: Place) -> tuple[DashboardServices, Merchant]:
    # Only now: the settings are read when this is first called.
    from checkout import wiring

    services = wiring.dashboard_services()
    merchant = services.merchants.find_by_wallet(place.merchant_wallet)
    if merchant is None:
        raise CloudError("The demo shop is not set up; start the local world anew.")
    return services, merchant


def _passed_on(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _NOT_PASSED_ON]


def _consequence(status: int) -> str:
    if status == 410:
        return "; the endpoint is disabled now: listen again to enable it"
    return "" if 200 <= status < 300 else "; it will be sent again"


def _id(body: bytes) -> str:
    """The session's, or the test's."""
    try:
        return str(json.loads(body)["id"])
    except (ValueError, KeyError, TypeError):
        return "-"


def _now() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")


def _say(*words: str) -> None:
    print(*words, flush=True)
