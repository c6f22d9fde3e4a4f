"""Rehearsal: a stage seen from outside, by its operator, its merchant and a customer."""

from __future__ import annotations

import json
import os
import queue
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import stripe

from checkout import wiring
from checkout.flows.webhooks import endpoints
from sandbox.demo import Demo
from sandbox.rehearsal import stack
from sandbox.rehearsal.servers import Delivery, Receiver
from sandbox.rehearsal.stack import RehearsalFailed

SHOP: Final = "shop.example"
MERCHANT: Final = "https://harbor.example/shop"
CUSTOMER: Final = "https://cedar.example/alice"
_SETTLED_WITHIN: Final = 30.0  # seconds
_DELIVERED_WITHIN: Final = 20.0  # by the queue; the sweep would take a minute
_TICKED_WITHIN: Final = 75.0  # a round each minute

Say = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Checkout address and CA file, as `demo.Shopping` requires them."""

    checkout: str
    ca_file: Path


class Shop:
    """A merchant of one stage."""

    def __init__(
        self, stage: str, stack_name: str, url: str, ca_file: Path, endpoint: str, shop: Receiver
    ) -> None:
        self.stack = stack_name
        self.place = Place(url, ca_file)
        self.sold = 0
        self._endpoint = endpoint
        self._path = f"/hooks/{stage}"
        self._receiver = shop
        self._told = 0
        self._api_key = ""
        self._secret = ""
        trust = ssl.create_default_context(cafile=str(ca_file))
        self._http = httpx2.Client(verify=trust, trust_env=False, timeout=30)

    def open(self, operator: Mapping[str, str], key_file: Path, key_id: str) -> None:
        """Set up the merchant and its webhooks, with the operator's commands."""
        outputs = stack.outputs(self._endpoint, self.stack)
        product = {
            **operator,
            "DATABASE_URL": outputs["DatabaseUrl"],
            "BASE_URL": outputs["BaseUrl"],
            "ENCRYPTION_KEY_SECRET": outputs["EncryptionKeySecret"],
            "EXTRA_CA_FILE": str(self.place.ca_file),
        }
        merchant, self._api_key = _set_up(product, key_file, key_id)
        self._secret = _want_webhooks(product, merchant, f"https://{SHOP}{self._path}")

    def sell(self, say: Callable[[str], None]) -> None:
        """Have the customer buy something, and check the webhook."""
        self.buyer(say)()
        delivery = self._take()
        header = delivery.headers["checkout-signature"]
        body = delivery.body.decode()
        try:
            # It may be one from during the upgrade, minutes ago.
            stripe.WebhookSignature.verify_header(body, header, self._secret, tolerance=3600)
        except stripe.SignatureVerificationError as wrong:
            raise RehearsalFailed(f"the webhook's signature is wrong: {wrong}") from None
        event = json.loads(body)
        if event["status"] != "completed":
            raise RehearsalFailed(f"the webhook says {event['status']}")
        say(f"webhook     {event['id']} is {event['status']}, signed")

    def buyer(self, say: Callable[[str], None] = lambda line: None) -> Callable[[], None]:
        """Return what makes one purchase."""

        def buy() -> None:
            Demo(self.place, api_key=self._api_key, wallet=CUSTOMER, say=say).run()
            self.sold += 1

        return buy

    def _take(self) -> Delivery:
        try:
            delivery = self._receiver.arrived[self._path].get(timeout=_DELIVERED_WITHIN)
        except queue.Empty:
            raise RehearsalFailed(f"a webhook of {self.stack} did not arrive") from None
        self._told += 1
        return delivery

    def told_all(self, say: Say) -> None:
        """Take the webhooks of all purchases."""
        while self._told < self.sold:
            self._take()
        say("webhooks", f"{self._told} of {self.sold} purchases from {self.stack}")

    def version(self) -> str:
        """Return the version that the deployed API says it has."""
        answer = self._http.get(f"{self.place.checkout}/api/health").raise_for_status()
        found: str = answer.json()["version"]
        return found

    def cancel(self) -> None:
        """Cancel a prepared session, and wait until the function has cleaned up at the wallets."""
        sessions = f"{self.place.checkout}/api/checkout/sessions"
        key = {"Authorization": f"Bearer {self._api_key}"}
        product = {"currency": "usd", "unit_amount": 500, "product_data": {"name": "Tea"}}
        body = {
            "mode": "payment",
            "line_items": [{"price_data": product}],
            "success_url": f"https://{SHOP}/thanks",
            "cancel_url": f"https://{SHOP}/basket",
        }
        post = self._http.post
        session = post(sessions, json=body, headers=key).raise_for_status().json()
        wallet = {"wallet_address": CUSTOMER}
        post(f"{session['url']}/wallet", json=wallet).raise_for_status()
        answer = post(f"{sessions}/{session['id']}/cancel", headers=key).raise_for_status()
        if answer.json()["status"] != "canceled":
            raise RehearsalFailed(f"a cancelled session is {answer.json()['status']}")
        url = stack.outputs(self._endpoint, self.stack)["TasksQueueUrl"]
        _wait_until_empty(stack.client("sqs", self._endpoint), url)

    def sweep(self, say: Say) -> None:
        """Invoke the scheduled function once, by the alias that the scheduler uses."""
        name = stack.functions(self._endpoint, self.stack)["ExpirerFunction"]
        client = stack.client("lambda", self._endpoint)
        answer = client.invoke(FunctionName=f"{name}:live", Payload=b"{}")
        result = answer["Payload"].read().decode()
        if "FunctionError" in answer or "SessionsChecked" not in json.loads(result):
            raise RehearsalFailed(f"the sweep of {self.stack} failed: {result[:2000]}")
        say("sweep", f"{self.stack} {result}")

    def ticked(self, say: Say) -> None:
        """Wait until the scheduler itself has run the sweep: one invocation more than ours."""
        begun = f"/{self.stack}/expirer: START"
        deadline = time.monotonic() + _TICKED_WITHIN
        while time.monotonic() < deadline:
            lines = stack.logs(self._endpoint, self.stack)
            rounds = sum(line.startswith(begun) for line in lines)
            if rounds > 1:
                say("scheduler", f"{rounds - 1} rounds of {self.stack} by itself")
                return
            time.sleep(1)
        raise RehearsalFailed(f"the scheduler does not run the sweep of {self.stack}")


def _set_up(product: Mapping[str, str], key_file: Path, key_id: str) -> tuple[str, str]:
    """Run the setup command; return the first merchant's id and API key."""
    wanted = ["--name", "Harbor Coffee", "--wallet-address", MERCHANT]
    wanted += ["--key-id", key_id, "--private-key", str(key_file)]
    done = subprocess.run(
        [sys.executable, "-m", "checkout.cli", "setup", *wanted],
        env=dict(product),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RehearsalFailed(f"the setup command failed: {done.stderr[-2000:]}")
    printed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines()[:2])
    [key] = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("API key")]
    return printed["merchant"], key


def _want_webhooks(product: Mapping[str, str], merchant: str, url: str) -> str:
    """Set the merchant's webhook endpoint; return the webhook secret."""
    os.environ.update(product)
    os.environ["AWS_DEFAULT_REGION"] = product["AWS_REGION"]
    for built in (wiring.settings, wiring.dashboard_services, wiring.api_services):
        built.cache_clear()
    wiring._dynamodb.cache_clear()
    done = endpoints.configure(wiring.dashboard_services(), merchant, url=url, events=())
    assert done.secret is not None
    return done.secret


def _wait_until_empty(sqs: Any, url: str) -> None:
    """Wait until the queue is empty; a message whose function failed stays in it for minutes."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    deadline = time.monotonic() + _SETTLED_WITHIN
    while time.monotonic() < deadline:
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        if not any(int(found[name]) for name in names):
            return
        time.sleep(0.5)
    raise RehearsalFailed("the tasks of a cancelled session are not finished")
