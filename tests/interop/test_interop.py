"""The official Open Payments packages against our sandbox and client: neither mirrors the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from checkout.flows.merchant import client_documents
from open_payments import SigningKey, WalletAddress
from sandbox.wallets import certificates
from sandbox.wallets.defaults import default_network
from sandbox.wallets.network import Network
from sandbox.wallets.server import Sleeper, WalletServers
from tests.interop import recorder
from tests.support.flows import World
from tests.support.keys import KEY_ID, new_key_pair
from tests.support.package_examples import example
from tests.support.processes import free_base
from tests.support.wallet_client import HARBOR, SHOP

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent

pytestmark = pytest.mark.interop


@dataclass(frozen=True)
class Served:
    network: Network
    authority: Path


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """The sandbox's wallets on loopback ports of their own."""
    sleeper = Sleeper()
    network = default_network(
        lambda: datetime.now(UTC), os.urandom, port_base=free_base(), sleep=sleeper
    )
    found = certificates.ensure(tmp_path / "ca", datetime.now(UTC))
    servers = WalletServers(network, found.server_context(), sleeper)
    servers.start()
    yield Served(network, found.authority)
    servers.close()


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("customer", "merchant"), [("cedar/alice", "harbor/shop"), ("harbor/bob", "harbor/shop")]
)
def test_the_official_client_pays_through_our_sandbox(
    node: str, served: Served, tmp_path: Path, customer: str, merchant: str
) -> None:
    def address(name: str) -> str:
        provider, account = name.split("/")
        return f"{served.network.providers[provider].origin}/{account}"

    pem, jwk = new_key_pair(KEY_ID)
    served.network.register_key(address(merchant), jwk)
    key_file = tmp_path / "private.key"
    key_file.write_text(pem)
    environment = {
        **os.environ,
        "NODE_EXTRA_CA_CERTS": str(served.authority),
        "MERCHANT": address(merchant),
        "CUSTOMER": address(customer),
        "KEY_ID": KEY_ID,
        "KEY_FILE": str(key_file),
    }
    done = subprocess.run(
        [node, "pay.mjs"], cwd=HERE, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    shop = served.network.account(address(merchant))
    assert shop is not None
    assert shop.balance == 2000


@pytest.mark.smoke
def test_the_official_client_reads_the_documents_of_our_clients(node: str) -> None:
    """Read the document that the checkout serves for a keyless merchant, and the package's."""
    world = World()
    merchant = world.join_without_key(f"{HARBOR}/shop-jpy").merchant
    found: dict[str, object] = {}
    served = example("jwks_server").serve(found, port=0)
    base = f"http://localhost:{served.server_port}"
    threading.Thread(target=served.serve_forever, daemon=True).start()
    id_ = client_documents.client_url("", merchant.id).rpartition("/")[2]
    url, own = client_documents.client_url(base, merchant.id), f"{base}/client"
    found[urlsplit(url).path] = client_documents.document(world.documents, base, id_)
    found[f"{urlsplit(url).path}/jwks.json"] = client_documents.jwks(world.documents, id_)
    wallet = WalletAddress(SHOP, "USD", 2, f"{HARBOR}/auth", HARBOR)
    found |= example("jwks_server").documents(own, "Tea", wallet, SigningKey.generate("kid-1"))
    try:
        done = subprocess.run(
            [node, "documents.mjs", url, own],
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        served.shutdown()
        served.server_close()
    assert done.returncode == 0, done.stdout + done.stderr
    ours, theirs = json.loads(done.stdout)
    assert (ours["wallet"]["id"], theirs["wallet"]["id"]) == (url, own)
    assert [key["kid"] for key in ours["keys"]] == [each.key_id for each in merchant.service_keys]
    assert [key["kid"] for key in theirs["keys"]] == ["kid-1"]


@pytest.mark.parametrize(
    "suite",
    [
        pytest.param(recorder.SUITE, id="all"),
        pytest.param(
            (
                "packages/open-payments/tests/test_protocol.py",
                "packages/open-payments/tests/test_client.py",
            ),
            id="client",
            marks=pytest.mark.smoke,
        ),
    ],
)
def test_every_request_of_the_suite_is_signed_and_formed_as_the_official_packages_say(
    node: str, tmp_path: Path, suite: tuple[str, ...]
) -> None:
    recorded = recorded_requests(tmp_path, suite)
    with recorded.open() as requests:
        checked = subprocess.run(
            [node, "verify.mjs"],
            cwd=HERE,
            stdin=requests,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    print(checked.stdout)
    counts = [int(line.split(" ", 1)[0]) for line in checked.stdout.splitlines()]
    assert counts
    assert min(counts) > 0, checked.stdout


def recorded_requests(tmp_path: Path, suite: tuple[str, ...]) -> Path:
    """Return the requests that all these tests made in this run of CI, or run the tests."""
    recorded = os.environ.get("RECORDED_REQUESTS")
    if recorded and suite == recorder.SUITE:
        return Path(recorded)
    record = tmp_path / "requests.jsonl"
    # The order matters to nobody, so neither do options about it.
    environment = {**os.environ, "RECORD_REQUESTS": str(record), "PYTEST_ADDOPTS": ""}
    plugins = ["-p", recorder.__name__, "-p", "no:randomly"]
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *("-c", "pyproject.toml"),  # the client's tests alone would take that of its package
            *plugins,
            "-n",
            "2" if suite == recorder.SUITE else "0",
            "-m",
            "not endurance",
            *suite,
        ],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    return record
