"""Rehearsal: `python -m sandbox.rehearsal`, after `sam build`, deploys without an AWS account.

`sam deploy` deploys the built, unmodified template into the emulator, with the functions' roles
enforced. The setup command adds a merchant, a customer pays a checkout through the deployed HTTP
API and functions, and everything is deleted again. The exit code is 0 only if every step succeeds.
"""

from __future__ import annotations

import json
import os
import queue
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx2
import stripe
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from checkout import wiring
from checkout.flows.webhooks import endpoints
from checkout.open_payments.signatures import public_x
from sandbox import cloud
from sandbox.demo import Demo, DemoFailed
from sandbox.rehearsal import namespaces, stack
from sandbox.rehearsal.servers import Front, Receiver
from sandbox.rehearsal.stack import RehearsalFailed
from sandbox.wallets import certificates
from sandbox.wallets.defaults import PORT_BASE, default_network
from sandbox.wallets.server import Sleeper, WalletServers

CHECKOUT: Final = "checkout.example"
SHOP: Final = "shop.example"
# Addresses that count as public everywhere; in these namespaces they are loopback.
NAMES: Final = {
    CHECKOUT: "11.0.0.1",
    SHOP: "11.0.0.2",
    "wallets.example": "11.0.0.3",
    "cedar.example": "11.0.1.1",
    "auth.cedar.example": "11.0.1.2",
    "harbor.example": "11.0.2.1",
    "auth.harbor.example": "11.0.2.2",
}
_WALLETS: Final = {
    PORT_BASE + 1: "https://cedar.example",
    PORT_BASE + 2: "https://auth.cedar.example",
    PORT_BASE + 101: "https://harbor.example",
    PORT_BASE + 102: "https://auth.harbor.example",
}
_MERCHANT: Final = "https://harbor.example/shop"
_CUSTOMER: Final = "https://cedar.example/alice"
_SITE: Final = Path(__file__).parent / "site"
_SETTLED_WITHIN: Final = 30.0  # seconds
_DELIVERED_WITHIN: Final = 20.0  # by the queue; the sweep would take a minute


@dataclass(frozen=True, slots=True)
class Place:
    """Checkout address and CA file, as `demo.Shopping` requires them."""

    checkout: str
    ca_file: Path


def main() -> int:
    """Run the rehearsal. Exit codes: 0 success, 1 failure with a message."""
    try:
        if not namespaces.inside():
            namespaces.enter("sandbox.rehearsal")
        with tempfile.TemporaryDirectory(prefix="checkout-rehearsal-") as scratch:
            began = time.monotonic()
            namespaces.configure(NAMES, Path(scratch))
            _rehearse(Path(scratch))
            _say("rehearsed", f"in {time.monotonic() - began:.0f} s")
    except (
        namespaces.NamespacesUnavailable,
        RehearsalFailed,
        DemoFailed,
        cloud.CloudError,
        httpx2.HTTPError,
    ) as failed:
        print(f"rehearsal: failed: {failed}", file=sys.stderr)
        return 1
    return 0


def _rehearse(scratch: Path) -> None:
    if not stack.BUILT.exists():
        raise RehearsalFailed("Nothing is built; run `make rehearse`.")
    with ExitStack() as running:
        found = certificates.ensure(scratch / "ca", datetime.now(UTC), tuple(NAMES))
        tls, place = found.server_context(), Place(f"https://{CHECKOUT}", found.authority)
        port = cloud.free_port()
        more = {"AUTH": "true", "PYTHONPATH": str(_SITE), "REHEARSAL_CA": str(found.authority)}
        os.environ["SANDBOX_CLOUD_ENV"] = str(stack.ROOT / ".venv-rehearsal")
        endpoint = running.enter_context(cloud.running_emulator(port, more=more))
        _serve(running, Front(CHECKOUT, tls, port))
        receiver = Receiver(SHOP, tls)
        _serve(running, receiver)
        key_file, key_id = _open_wallets(running, tls, scratch)
        operator = stack.operator(endpoint, scratch)
        certificate = stack.client("acm", endpoint).request_certificate(DomainName=CHECKOUT)
        outputs = running.enter_context(
            stack.deployed(operator, _parameters(certificate["CertificateArn"]))
        )
        try:
            for line in stack.routes(endpoint):
                _say("route", line)
            product = _product(operator, outputs, place)
            merchant, api_key = _set_up(product, key_file, key_id)
            secret = _want_webhooks(product, merchant)
            Demo(place, api_key=api_key, wallet=_CUSTOMER, say=print).run()
            _take_webhook(receiver, secret)
            _cancel(place, api_key, endpoint, outputs)
            _sweep(endpoint)
        except (RehearsalFailed, DemoFailed, httpx2.HTTPError):
            print(*stack.logs(endpoint), sep="\n", file=sys.stderr)
            raise


def _parameters(certificate: str) -> dict[str, str]:
    """Return an operator's template parameters.

    They are a domain of their own, this machine's processor, and no deletion protection, since the
    stack is deleted at the end.
    """
    arch = "arm64" if os.uname().machine in ("arm64", "aarch64") else "x86_64"
    return {
        "Arch": arch,
        "DomainName": CHECKOUT,
        "CertificateArn": certificate,
        "DeletionProtection": "false",
    }


def _serve(running: ExitStack, server: Any) -> None:
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    running.callback(server.server_close)
    running.callback(server.shutdown)


def _open_wallets(running: ExitStack, tls: Any, scratch: Path) -> tuple[Path, str]:
    """Serve the wallet providers; return the merchant's key file and its registered key id."""
    sleeper = Sleeper()
    network = default_network(
        lambda: datetime.now(UTC),
        os.urandom,
        origin=_WALLETS.__getitem__,
        pages_origin="https://wallets.example",
        sleep=sleeper,
    )
    key, key_id = Ed25519PrivateKey.generate(), str(uuid4())
    jwk = {"kid": key_id, "alg": "EdDSA", "kty": "OKP", "crv": "Ed25519"}
    network.register_key(_MERCHANT, jwk | {"x": public_x(key.private_bytes_raw())})
    key_file = scratch / "private.key"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key_file.touch(0o600)
    key_file.write_bytes(pem)
    servers = WalletServers(network, tls, sleeper)
    servers.start()
    running.callback(servers.close)
    return key_file, key_id


def _product(
    operator: Mapping[str, str], outputs: Mapping[str, str], place: Place
) -> dict[str, str]:
    """Return the environment of the product's code on the operator's machine."""
    return {
        **operator,
        "DATABASE_URL": outputs["DatabaseUrl"],
        "BASE_URL": outputs["BaseUrl"],
        "ENCRYPTION_KEY_SECRET": outputs["EncryptionKeySecret"],
        "EXTRA_CA_FILE": str(place.ca_file),
    }


def _set_up(product: Mapping[str, str], key_file: Path, key_id: str) -> tuple[str, str]:
    """Run the setup command; return the first merchant's id and API key."""
    wanted = ["--name", "Harbor Coffee", "--wallet-address", _MERCHANT]
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
    _say("merchant", printed["merchant"])
    [key] = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("API key")]
    return printed["merchant"], key


def _want_webhooks(product: Mapping[str, str], merchant: str) -> str:
    """Set the merchant's webhook endpoint; return the webhook secret."""
    os.environ.update(product)
    services = wiring.dashboard_services()
    done = endpoints.configure(services, merchant, url=f"https://{SHOP}/hooks", events=())
    assert done.secret is not None
    return done.secret


def _take_webhook(receiver: Receiver, secret: str) -> None:
    """Receive the webhook of the completion and check its signature with Stripe's SDK."""
    try:
        delivery = receiver.arrived.get(timeout=_DELIVERED_WITHIN)
    except queue.Empty:
        raise RehearsalFailed("no webhook arrived") from None
    header = delivery.headers["checkout-signature"]
    try:
        stripe.WebhookSignature.verify_header(delivery.body.decode(), header, secret, tolerance=60)
    except stripe.SignatureVerificationError as wrong:
        raise RehearsalFailed(f"the webhook's signature is wrong: {wrong}") from None
    event = json.loads(delivery.body)
    if event["status"] != "completed":
        raise RehearsalFailed(f"the webhook says {event['status']}")
    _say("webhook", f"{event['id']} is {event['status']}, signed")


def _cancel(place: Place, api_key: str, endpoint: str, outputs: Mapping[str, str]) -> None:
    """Cancel a prepared session and wait until the tasks function has cleaned up at the wallets."""
    sessions = f"{place.checkout}/api/checkout/sessions"
    key = {"Authorization": f"Bearer {api_key}"}
    product = {"currency": "usd", "unit_amount": 500, "product_data": {"name": "Tea"}}
    body = {
        "mode": "payment",
        "line_items": [{"price_data": product}],
        "success_url": f"https://{SHOP}/thanks",
        "cancel_url": f"https://{SHOP}/basket",
    }
    trust = ssl.create_default_context(cafile=str(place.ca_file))
    with httpx2.Client(verify=trust, trust_env=False, timeout=30) as http:
        session = http.post(sessions, json=body, headers=key).raise_for_status().json()
        wallet = {"wallet_address": _CUSTOMER}
        http.post(f"{session['url']}/wallet", json=wallet).raise_for_status()
        answer = http.post(f"{sessions}/{session['id']}/cancel", headers=key).raise_for_status()
    if answer.json()["status"] != "canceled":
        raise RehearsalFailed(f"a cancelled session is {answer.json()['status']}")
    _wait_until_empty(stack.client("sqs", endpoint), outputs["TasksQueueUrl"])
    _say("cancelled", f"{session['id']}, and its tasks are finished")


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


def _sweep(endpoint: str) -> None:
    """Invoke the scheduled function once, as the scheduler does."""
    name = stack.functions(endpoint)["ExpirerFunction"]
    answer = stack.client("lambda", endpoint).invoke(FunctionName=name, Payload=b"{}")
    result = answer["Payload"].read().decode()
    if "FunctionError" in answer or "SessionsChecked" not in json.loads(result):
        raise RehearsalFailed(f"the sweep failed: {result[:2000]}")
    _say("sweep", result)


def _say(what: str, text: str) -> None:
    print(f"{what:<10} {text}".strip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
