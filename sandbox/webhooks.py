"""Commands for local webhook testing: `listen` forwards the shop's events, `trigger` causes one.

The local world (checkout, wallets and shop on one machine) delivers to `listen` as to any server:
over https, signed, and with retries. `listen` adds an endpoint of its own to the shop, and removes
the endpoint at the end. It returns the response of the local address unchanged, so a delivery
succeeds only if that address accepts it.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
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
from sandbox.terminal import say
from sandbox.wallets import certificates

if TYPE_CHECKING:
    from checkout.domain.merchant.record import Merchant
    from checkout.domain.webhooks.record import Endpoint
    from checkout.services import DashboardServices

EVENTS: Final = ("completed", "expired", "canceled", "refund", "ping")
_OWN: Final = "make listen"  # description of the endpoint that `listen` adds and removes
_BODY_MAX: Final = 1024 * 1024
_ANSWERED_WITHIN: Final = 9.0  # seconds; the sender's timeout is 10
# Hop-by-hop headers (RFC 9110 7.6.1), and headers that do not fit the decoded body.
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
        # Connections are not kept, because a server under development restarts at each change.
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
        say(
            f"{_now()}  {headers.get('checkout-event-type', '-'):<26}",
            headers.get("checkout-event-id", "-"),
            _id(request.body),
            f"→ {said}",
        )
        # Close the connection, so that the next delivery can reach a new listener.
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
    own = None
    try:
        own, secret = _subscribe(place)
        say(f"secret    {secret}")
        say(f"events    forwarded to {target}; press Ctrl-C to stop\n")
        threading.Event().wait()
    except KeyboardInterrupt:
        say("\nstopped; listen again for further events")
    finally:
        if own is not None:
            _unsubscribe(place, own)
        server.close()
        listener.close()
    return 0


def trigger(place: Place, event: str) -> int:
    """Cause an event of the demo shop; return the exit code. Raises CloudError, DemoFailed."""
    join(place)
    if event == "ping":
        from checkout.flows.webhooks import endpoints

        services, merchant = _shop(place)
        listening = _at(merchant, _url(place))
        to = None if listening is None else listening.id
        sent = endpoints.ping(services, merchant.id, endpoint=to)
        say(f"ping      {sent.id}")
        return 0
    demo = Demo(
        place,
        api_key=place.api_key_file.read_text("utf-8").strip(),
        wallet=place.customer_wallet,
    )
    if event in ("completed", "refund"):
        demo.run(refund="5.00" if event == "refund" else None)
    else:
        demo.end("expire" if event == "expired" else "cancel")
    return 0


def _subscribe(place: Place) -> tuple[str | None, str]:
    """Return the id of `listen`'s own endpoint of the demo shop, and the signing secret.

    The endpoint is added if no endpoint has this address. An existing endpoint at this address is
    used unchanged. If the developer has added that endpoint, None is returned as the id, so that
    the endpoint is not removed later.
    """
    from checkout.domain.webhooks.event_types import OPTIONAL
    from checkout.domain.webhooks.record import WebhookSecret
    from checkout.flows.webhooks import endpoints

    services, merchant = _shop(place)
    found = _at(merchant, _url(place))
    if found is None:
        done = endpoints.configure(
            services,
            merchant.id,
            url=_url(place),
            events=OPTIONAL,
            add=True,
            more={"description": _OWN},
        )
        merchant, found = done.merchant, done.endpoint
        identity = found.id
        # Use the same secret at every start, so that the developer's server needs no new setting.
        kept = services.vault.seal(_secret(place, done.secret), place=merchant.secret_place(found))
        secrets = (WebhookSecret(sealed=kept, created_at=services.clock.now()),)
        done = endpoints.update(services, merchant.id, {"secrets": secrets}, endpoint=identity)
        merchant, found = done.merchant, done.endpoint
    own = found.id if found.description == _OWN else None
    return own, services.vault.open(found.secrets[0].sealed, place=merchant.secret_place(found))


def _unsubscribe(place: Place, own: str) -> None:
    """Remove the endpoint. If the local world has stopped, leave it for the next `listen`."""
    from checkout.domain.ground.errors import CheckoutError
    from checkout.flows.webhooks import endpoints

    with suppress(CheckoutError):
        services, merchant = _shop(place)
        endpoints.remove(services, merchant.id, endpoint=own)


def _secret(place: Place, new: str | None) -> str:
    """Return the stored secret of `listen`. Store `new` if there is none yet."""
    kept = place.folder / "listen-secret"
    if not kept.exists():
        kept.touch(mode=0o600)
        kept.write_text(new or "", "utf-8")
    return kept.read_text("utf-8")


def _url(place: Place) -> str:
    return f"https://localhost:{place.listener_port}/"


def _at(merchant: Merchant, url: str) -> Endpoint | None:
    return next((each for each in merchant.endpoints if each.url == url), None)


def _shop(place: Place) -> tuple[DashboardServices, Merchant]:
    # Imported here, because the settings must be in the environment before.
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
    """Return the id in the body: of the session, the refund or the test event."""
    try:
        return str(json.loads(body)["id"])
    except (ValueError, KeyError, TypeError):
        return "-"


def _now() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")
