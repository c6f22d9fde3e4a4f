"""Rehearsal of a deployment: what an operator, a merchant and a customer do at a deployed stage."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import stripe

from checkout import wiring
from checkout.flows.webhooks import endpoints
from sandbox.demo import Demo
from sandbox.rehearsal import dashboard, developer, stack
from sandbox.rehearsal.servers import Delivery, Receiver
from sandbox.rehearsal.stack import RehearsalFailed

SHOP: Final = "shop.example"
MERCHANT: Final = "https://harbor.example/shop"
CUSTOMER: Final = "https://cedar.example/alice"
_PATIENCE: Final = 900.0  # seconds for an answer or a purchase on a busy machine

Say = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """The checkout's address and the CA file; implements `demo.Shopping`."""

    checkout: str
    ca_file: Path


class Shop:
    """A merchant of one stage. `sold` counts the purchases."""

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
        self._customer = CUSTOMER
        self.product: dict[str, str] = {}
        self._secret = ""
        trust = ssl.create_default_context(cafile=str(ca_file))
        self._http = httpx2.Client(verify=trust, trust_env=False, timeout=_PATIENCE)

    def open(self, operator: Mapping[str, str], key_file: Path, key_id: str) -> None:
        """Set up the merchant and its webhooks, with the operator's commands."""
        self._know(operator)
        merchant, self._api_key = set_up(self.product, key_file, key_id)
        self._secret = _want_webhooks(self.product, merchant, f"https://{SHOP}{self._path}")

    def try_out(self, operator: Mapping[str, str], say: Say) -> None:
        """Sign up at a test stage and sell there, both in Chromium, and check the webhook."""
        self._know(operator)
        self._customer = f"{self.place.checkout}/test-wallets/cedar/alice"
        with developer.at(self.place.checkout) as person:
            found = person.sign_up(f"https://{SHOP}{self._path}")
            self._api_key, self._secret = found.api_key, found.secret
            if not self._api_key.startswith("sk_test_"):
                raise RehearsalFailed("the API key of a test stage does not say so")
            session = self._create()
            person.pay(session["url"])
            self.sold += 1
            event = self._told_of_a_sale()
            if event["id"] != session["id"] or not event["id"].startswith("cs_test_"):
                raise RehearsalFailed(f"the webhook is about {event['id']}")
            say("tried out", f"{person.clicks} clicks, {person.seconds:.0f} s to the webhook")

    def _know(self, operator: Mapping[str, str]) -> None:
        outputs = stack.outputs(self._endpoint, self.stack)
        self.product = {
            **operator,
            "DATABASE_URL": outputs["DatabaseUrl"],
            "BASE_URL": outputs["BaseUrl"],
            "ENCRYPTION_KEY_SECRET": outputs["EncryptionKeySecret"],
            "DETAILS_KMS_KEY": outputs["StackKeyArn"],
            "EXTRA_CA_FILE": str(self.place.ca_file),
        }

    def wake_wallet(self) -> None:
        """Read the customer's wallet address, so that the wallets' function is already started."""
        self._http.get(self._customer, headers={"Accept": "application/json"}).raise_for_status()

    def sell(self, say: Callable[[str], None]) -> None:
        """Have the customer buy something, and check the webhook."""
        self.buyer(say)()
        event = self._told_of_a_sale()
        say(f"webhook     {event['id']} is {event['status']}, signed")

    def _told_of_a_sale(self) -> dict[str, Any]:
        """Receive the webhook of a sale, and check its signature. Raises RehearsalFailed."""
        delivery = self._take()
        header = delivery.headers["checkout-signature"]
        body = delivery.body.decode()
        try:
            # The delivery may be from a purchase during the upgrade, minutes ago.
            stripe.WebhookSignature.verify_header(body, header, self._secret, tolerance=3600)
        except stripe.SignatureVerificationError as wrong:
            raise RehearsalFailed(f"the webhook's signature is wrong: {wrong}") from None
        event: dict[str, Any] = json.loads(body)
        if event["status"] != "completed":
            raise RehearsalFailed(f"the webhook says {event['status']}")
        return event

    def buyer(self, say: Callable[[str], None] = lambda line: None) -> Callable[[], None]:
        """Return a function that makes one purchase."""

        def buy() -> None:
            Demo(
                self.place,
                api_key=self._api_key,
                wallet=self._customer,
                say=say,
                patience=_PATIENCE,
            ).run()
            self.sold += 1

        return buy

    def _take(self) -> Delivery:
        inbox = self._receiver.arrived[self._path]
        stack.until(self._endpoint, self.stack, "a webhook", lambda: not inbox.empty())
        self._told += 1
        return inbox.get()

    def told_all(self, say: Say) -> None:
        """Receive the webhooks of all purchases."""
        while self._told < self.sold:
            self._take()
        say("webhooks", f"{self._told} of {self.sold} purchases from {self.stack}")

    def look_around(self, say: Say) -> None:
        """Open every page of the merchant's dashboard."""
        trust = ssl.create_default_context(cafile=str(self.place.ca_file))
        with httpx2.Client(
            verify=trust, trust_env=False, timeout=_PATIENCE, follow_redirects=True
        ) as merchant:
            found = dashboard.look_around(
                self.place.checkout, self._api_key, merchant.get, merchant.post
            )
        say("dashboard", f"{found} pages of {self.stack}")

    def version(self) -> str:
        """Return the version that the deployed API reports."""
        answer = self._http.get(f"{self.place.checkout}/api/health").raise_for_status()
        found: str = answer.json()["version"]
        return found

    def cancel(self) -> None:
        """Cancel a session that has a wallet, so that the tasks' function cleans up at wallets."""
        session = self._create()
        wallet = {"wallet_address": self._customer}
        self._http.post(f"{session['url']}/wallet", json=wallet).raise_for_status()
        url = f"{self._sessions}/{session['id']}/cancel"
        answer = self._http.post(url, headers=self._key).raise_for_status()
        if answer.json()["status"] != "canceled":
            raise RehearsalFailed(f"a cancelled session is {answer.json()['status']}")

    @property
    def _sessions(self) -> str:
        return f"{self.place.checkout}/api/checkout/sessions"

    @property
    def _key(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._api_key}"}

    def _create(self) -> dict[str, Any]:
        """Create a session as the shop's server does; return it."""
        product = {"currency": "usd", "unit_amount": 500, "product_data": {"name": "Tea"}}
        body = {
            "mode": "payment",
            "line_items": [{"price_data": product}],
            "success_url": f"https://{SHOP}/thanks",
            "cancel_url": f"https://{SHOP}/basket",
        }
        answer = self._http.post(self._sessions, json=body, headers=self._key).raise_for_status()
        session: dict[str, Any] = answer.json()
        return session

    def settled(self) -> None:
        """Wait until both queues are empty, and check that there are no dead letters."""
        stack.until(self._endpoint, self.stack, "empty queues", self._nothing_waits)
        if self.messages("DeadLettersUrl"):
            raise RehearsalFailed(f"{self.stack} has dead letters")

    def _nothing_waits(self) -> bool:
        return not self.messages("TasksQueueUrl") and not self.messages("EventsQueueUrl")

    def messages(self, queue: str) -> int:
        """Return the number of messages, visible or not. `queue` is an output of the stack."""
        sqs = stack.client("sqs", self._endpoint)
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        url = stack.outputs(self._endpoint, self.stack)[queue]
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)

    def sweep(self, say: Say) -> None:
        """Invoke the function of the sweep (the scheduled job) once, by the scheduler's alias."""
        name = stack.functions(self._endpoint, self.stack)["ExpirerFunction"]
        client = stack.client("lambda", self._endpoint)
        answer = client.invoke(FunctionName=f"{name}:live", Payload=b"{}")
        result = answer["Payload"].read().decode()
        if "FunctionError" in answer or "SessionsChecked" not in json.loads(result):
            raise RehearsalFailed(f"the sweep of {self.stack} failed: {result[:2000]}")
        say("sweep", f"{self.stack} {result}")

    def ticked(self, say: Say) -> None:
        """Wait until the scheduler has run the sweep once more."""
        before = stack.rounds(self._endpoint, self.stack)
        stack.until(
            self._endpoint,
            self.stack,
            "a round of the sweep",
            lambda: stack.rounds(self._endpoint, self.stack) > before,
        )
        say("scheduler", f"it runs the sweep of {self.stack} by itself")


def set_up(product: Mapping[str, str], key_file: Path, key_id: str) -> tuple[str, str]:
    """Run the setup command; return the new merchant's id and API key."""
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
