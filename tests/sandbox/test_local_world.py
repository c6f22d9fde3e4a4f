"""The local world as a developer uses it: in a process of its own, over HTTP."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from botocore.exceptions import ClientError

from sandbox import cloud
from sandbox.demo import Demo, DemoFailed
from sandbox.place import Place
from tests.support.processes import Dev, ended, free_base, run
from tests.support.sources import REPOSITORY

pytestmark = pytest.mark.cloud


@pytest.fixture
def base() -> int:
    return free_base()


def test_a_world_starts_serves_ends_and_goes_on(tmp_path: Path, base: int) -> None:
    first = Dev(tmp_path, base)
    place = first.place
    for address in (place.shop, f"{place.checkout}/api", place.wallets):
        assert address in first.text
    assert "ready; press Ctrl-C" in first.text
    key = place.api_key_file.read_text()
    assert key not in first.text
    for file in (place.api_key_file, place.environment_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first.get("/api/health").json()["status"] == "healthy"
    assert httpx2.get(place.shop, trust_env=False).status_code == 200
    with pytest.raises(cloud.CloudError):
        cloud.require_free(place.emulator_port, "the emulator, which runs")

    emulator = f"http://127.0.0.1:{place.emulator_port}"
    with pytest.raises(ClientError, match="403"):
        cloud.client("secretsmanager", emulator).list_secrets()
    own = re.search("AWS_ACCESS_KEY_ID='(.+)'", place.environment_file.read_text())
    assert own is not None
    assert cloud.client("secretsmanager", emulator, own[1]).list_secrets()["SecretList"]
    for foreign in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
        answer = httpx2.get(f"{emulator}/_ministack/health", headers=foreign, trust_env=False)
        assert (answer.status_code, "access-control-allow-origin" in answer.headers) == (403, False)

    again = run(tmp_path, base, "dev")
    assert again[0] == 1
    assert f"Port {base}" in again[1]
    assert "SANDBOX_PORT" in again[1]

    code, said = run(tmp_path, base, "demo")
    assert code == 0, said
    bought = re.search(r"completed (cs_\w+)", said)
    assert bought is not None

    first.end(signal.SIGINT)
    assert first.process.returncode == 0
    assert "Traceback" not in first.text
    cloud.require_free(place.emulator_port, "the emulator, which ended")

    second = Dev(tmp_path, base)
    assert place.api_key_file.read_text() == key
    found = second.get(f"/api/checkout/sessions/{bought[1]}").json()
    assert found["status"] == "completed"
    second.end(signal.SIGTERM)
    assert second.process.returncode == 0


def test_what_was_lost_of_the_folder_is_made_again(tmp_path: Path, base: int) -> None:
    Dev(tmp_path, base).end()
    folder = Place(base, tmp_path / str(base)).folder
    for lost in ("api-key", "emulator/secretsmanager.json", "ca.pem"):
        (folder / lost).unlink()
    world = Dev(tmp_path, base)
    code, said = run(tmp_path, base, "demo")
    world.end()
    assert code == 0, said


def test_damaged_wallets_say_what_to_do(tmp_path: Path, base: int) -> None:
    folder = tmp_path / str(base) / "wallets"
    folder.mkdir(parents=True)
    (folder / "wallets.json").write_text("{")
    code, said = run(tmp_path, base, "dev")
    assert code == 1
    assert "wallets.json" in said
    assert "remove" in said
    assert "Traceback" not in said


def test_an_unusable_port_says_what_to_set(tmp_path: Path) -> None:
    code, said = run(tmp_path, 70_000, "dev")
    assert (code, said) == (1, "SANDBOX_PORT must be a number from 1024 to 64969.\n")


def test_the_demo_alone_buys_one_thing_and_leaves_nothing(tmp_path: Path, base: int) -> None:
    code, said = run(tmp_path, base, "demo")
    assert code == 0, said
    last = said.splitlines()[-1]
    assert re.fullmatch(r"demo: completed cs_\w{22} debit \d+\.\d\d EUR received 20\.00 USD", last)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_refunds_a_part_as_a_shopkeeper(tmp_path: Path, base: int) -> None:
    code, said = run(tmp_path, base, "demo", "--refund", "5.00")
    assert code == 0, said
    assert "approved  the wallet sends the shopkeeper back" in said
    bought, refunded = (line for line in said.splitlines() if line.startswith("demo: "))
    assert re.fullmatch(
        r"demo: completed cs_\w{22} debit 18\.54 EUR received 20\.00 USD", bought
    ), said
    # A quarter of what the customer paid.
    assert re.fullmatch(
        r"demo: refunded re_\w{22} cost 5\.\d\d USD returned 4\.63 EUR", refunded
    ), said


def test_a_demo_that_does_not_refund_or_complete_says_why_and_fails(
    tmp_path: Path, base: int
) -> None:
    world = Dev(tmp_path, base)
    wallets = f"https://localhost:{world.place.wallets_port + 1}"
    for wallet, amount, why in (
        ("alice", "20.01", "Only 2000 USD (in its smallest unit) of this session"),
        ("alice", "much", "This is not an amount"),
        ("refund-gone", "5.00", "There is no wallet at the customer's address any more"),
    ):
        options = ("--wallet", f"{wallets}/{wallet}", "--refund", amount)
        code, said = run(tmp_path, base, "demo", *options)
        assert code == 1, said
        last = said.splitlines()[-1]
        assert last.startswith("demo: failed: ")
        assert why in last
    key, wallet = world.place.api_key_file.read_text(), f"{wallets}/never-closes"
    waiting = Demo(world.place, api_key=key, wallet=wallet, say=print, patience=8)
    with pytest.raises(DemoFailed, match="no outcome after 24 s"):
        waiting.run()
    world.end()


@pytest.mark.parametrize(
    ("wallet", "reason"),
    [
        ("decline", "not approved"),
        ("unpeered", "answered 424"),
        ("no-funds", "the payment failed: no money arrived"),
        ("one-short", "the shop's wallet received 19.99 USD, not 20.00 USD"),
    ],
)
def test_a_demo_that_does_not_pay_says_why_and_fails(
    tmp_path: Path, base: int, wallet: str, reason: str
) -> None:
    address = f"https://localhost:{base + 101}/{wallet}"
    code, said = run(tmp_path, base, "demo", "--wallet", address)
    assert code == 1
    assert "demo: failed:" in said.splitlines()[-1]
    assert reason in said.splitlines()[-1]


@pytest.fixture
def other_server(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Run another Open Payments server on loopback; yield its first port and its private CA."""
    base = free_base()
    folder = tmp_path / "other"
    command = ["-m", "sandbox.wallets", "--port-base", str(base), "--state", str(folder)]
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": "layers/common:functions"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert any(line.startswith("CA file") for line in process.stdout)
    yield base, folder / "sandbox-ca.pem"
    process.terminate()
    ended(process)


def test_wallets_of_another_server_pay_each_other_when_its_authority_is_given(
    tmp_path: Path, base: int, other_server: tuple[int, Path]
) -> None:
    other, authority = other_server
    shop = f"https://localhost:{other + 101}/shop"
    world = Dev(tmp_path, base, EXTRA_CA_FILE=str(authority))
    api_key = world.new_merchant("Other", shop, f"http://localhost:{other}")
    said: list[str] = []
    wallet = f"https://localhost:{other + 1}/alice"
    Demo(world.place, api_key=api_key, wallet=wallet, say=said.append).run()
    world.end()
    assert said[-1].endswith("received 20.00 USD")
