"""The official Open Payments packages against our sandbox and client: neither mirrors the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.wallets import certificates
from sandbox.wallets.defaults import default_network
from sandbox.wallets.network import Network
from sandbox.wallets.server import Sleeper, WalletServers
from tests.interop import recorder
from tests.support.keys import KEY_ID, new_key_pair
from tests.support.processes import free_base

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


@pytest.mark.parametrize(
    "suite",
    [
        pytest.param(recorder.SUITE, id="all"),
        pytest.param(
            ("packages/open-payments/tests/test_protocol.py",), id="client", marks=pytest.mark.smoke
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
