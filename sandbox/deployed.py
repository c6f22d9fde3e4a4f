"""Against a deployment: `listen` forwards a shop's events, `trigger` causes one.

Both need the deployment's URL and an API key. A deployment cannot reach this machine. So `listen`
polls the deployment for new events and sends each event to a local address, signed with a secret
that `listen` generates. If the address does not accept an event, the event is sent up to five
times.
"""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import certifi
import httpx2

from checkout.domain.ground.grammar import TEST_WALLETS, is_http, link_host
from checkout.domain.webhooks.signature import new_webhook_secret, signed_headers, stripe_header
from sandbox.cloud import CloudError
from sandbox.demo import Demo

FORMS: Final = ("native", "stripe")
EVENTS: Final = ("completed", "expired", "canceled", "refund")
_PATIENCE: Final = 30.0  # seconds for an answer
_PAUSE: Final = 2.0  # seconds between two polls
_AGAIN: Final = 5  # attempts at the local address
_PAGE: Final = 100
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "[::1]")  # other names could resolve anywhere
# Path segments of the native API, by the type of the event's object.
_NATIVE: Final = {"checkout.session": "sessions", "refund": "refunds"}


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployed checkout, which implements `demo.Shopping`. `ca_file` has trusted CAs (PEM)."""

    checkout: str
    api_key: str
    ca_file: Path

    @property
    def customer_wallet(self) -> str:
        """Return the address of a customer's wallet. Only a test stage has this wallet."""
        return f"{self.checkout}{TEST_WALLETS}/cedar/alice"


def deployment(url: str) -> Deployment:
    """Return the deployment at `url`, with the API key of the environment.

    An http URL is accepted only for this machine, so that the key is never sent unencrypted over
    a network. Raises CloudError.
    """
    key = os.environ.get("API_KEY", "")
    if not key:
        raise CloudError("Set API_KEY to an API key of the deployment: export API_KEY=sk_test_…")
    host = link_host(url, base_is_http=True)
    if host is None or (is_http(url) and host not in _THIS_MACHINE):
        raise CloudError(f"{url} is not the address of a deployment, such as https://pay.example.")
    ca_file = Path(os.environ.get("EXTRA_CA_FILE") or certifi.where())
    return Deployment(url.rstrip("/"), key, ca_file)


def trigger(at: Deployment, event: str, *, wallet: str | None, say: Callable[[str], None]) -> None:
    """Cause an event at the API key's shop, which must use USD. Raises CloudError, DemoFailed."""
    if event not in EVENTS:
        raise CloudError(f"A deployment has {', '.join(EVENTS)}; send a ping in its dashboard.")
    wallet = wallet or at.customer_wallet
    demo = Demo(at, api_key=at.api_key, wallet=wallet, say=say, patience=2 * _PATIENCE)
    if event in ("completed", "refund"):
        demo.run(refund="5.00" if event == "refund" else None)
    else:
        demo.end("expire" if event == "expired" else "cancel")


class Feed:
    """The shop's events since the feed was created, oldest first, each event once."""

    def __init__(self, at: Deployment, transport: httpx2.BaseTransport | None = None) -> None:
        trust = ssl.create_default_context(cafile=str(at.ca_file))
        self._http = httpx2.Client(
            base_url=at.checkout,
            headers={"Authorization": f"Bearer {at.api_key}"},
            verify=trust,
            trust_env=False,
            timeout=_PATIENCE,
            transport=transport,
        )
        self._began = int(time.time())
        self._last = next((str(each["id"]) for each in self._page({"limit": "1"})), "")

    def close(self) -> None:
        self._http.close()

    def new(self) -> Iterator[dict[str, Any]]:
        """Yield events in Stripe's form. Raises CloudError if the deployment refuses."""
        while True:
            since = {"ending_before": self._last} if self._last else {}
            page = self._page({"limit": str(_PAGE), "created[gte]": str(self._began)} | since)
            for event in reversed(page):
                self._last = str(event["id"])
                yield event
            if len(page) < _PAGE:
                return

    def native(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return the event's object from the native API, in its present state.

        Return None if the native API has no such object.
        """
        shown = event["data"]["object"]
        kind = _NATIVE.get(str(shown.get("object")))
        if kind is None:
            return None
        found: dict[str, Any] = self._get(f"/api/checkout/{kind}/{shown['id']}", {})
        return found

    def _page(self, query: dict[str, str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("/v1/events", query)["data"]
        return found

    def _get(self, path: str, query: dict[str, str]) -> Any:
        try:
            answer = self._http.get(path, params=query)
        except httpx2.HTTPError as error:
            raise CloudError(f"{path} does not answer: {error}") from None
        if answer.status_code != 200:
            raise CloudError(f"{path} answered {answer.status_code}: {answer.text[:300]}")
        return answer.json()


def listen(
    feed: Feed,
    target: str,
    *,
    form: str,
    say: Callable[[str], None],
    rounds: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Send events to `target` until Ctrl-C, or for `rounds` polls. Raises CloudError.

    `form` is one of FORMS: the form of the bodies and signatures.
    """
    secret = new_webhook_secret(os.urandom)
    say(f"secret    {secret}")
    say(f"events    forwarded to {target}; press Ctrl-C to stop\n")
    limits = httpx2.Limits(max_keepalive_connections=0)  # a server under development restarts
    with httpx2.Client(trust_env=False, timeout=_PATIENCE, limits=limits) as local:
        while rounds is None or rounds > 0:
            rounds = None if rounds is None else rounds - 1
            for event in feed.new():
                body = event if form == "stripe" else feed.native(event)
                if body is None:
                    say(f"{event['type']:<28}{event['id']} → only in Stripe's form (FORM=stripe)")
                    continue
                said = _handed(
                    local, target, event, body, secret, stripe=form == "stripe", sleep=sleep
                )
                say(f"{event['type']:<28}{event['id']} → {said}")
            sleep(_PAUSE)


def _handed(
    local: httpx2.Client,
    target: str,
    event: dict[str, Any],
    body: dict[str, Any],
    secret: str,
    *,
    stripe: bool,
    sleep: Callable[[float], None],
) -> str:
    """Send an event until it is accepted, at most _AGAIN times; return the result as text."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    said = ""
    for attempt in range(_AGAIN):
        now = datetime.now(UTC)
        headers = signed_headers(event["id"], event["type"], text, secrets=[secret], now=now)
        if stripe:
            headers |= stripe_header(text, secrets=[secret], now=now)
        try:
            answer = local.post(target, content=text.encode(), headers=headers)
            if 200 <= answer.status_code < 300:
                return str(answer.status_code)
            said = str(answer.status_code)
        except httpx2.HTTPError as error:
            said = f"no answer ({type(error).__name__})"
        sleep(_PAUSE * (attempt + 1))
    return f"{said}, {_AGAIN} times; it is left out"
