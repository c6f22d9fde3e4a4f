"""The native shops of examples/, which need no package, against the local world."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest

from sandbox.place import Place
from tests.interop.packages import REPOSITORY
from tests.interop.test_stripe import EXAMPLES, Customer, answering, of, process
from tests.support.dev_server import local_world
from tests.support.ports import free_base

pytestmark = [pytest.mark.interop, pytest.mark.enable_socket]
LINES_MAX: Final = 95


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with local_world(tmp_path_factory.mktemp("world")) as found:
        yield found


@contextmanager
def listening(place: Place, target: str) -> Iterator[str]:
    """Run `make listen` and return the secret that it prints."""
    env = {**os.environ, "SANDBOX_PORT": str(place.base), "SANDBOX_STATE": str(place.folder.parent)}
    env["PYTHONPATH"] = os.pathsep.join(
        str(REPOSITORY / each) for each in ("layers/common", "functions", "")
    )
    command = [sys.executable, "-m", "sandbox", "listen", "--forward-to", target]
    with process(command, env, REPOSITORY) as listener:
        assert listener.stdout is not None
        yield listener.stdout.readline().split()[1]


def sells(place: Place, command: list[str], folder: Path) -> None:
    port = free_base()
    shop = f"http://localhost:{port}"
    with listening(place, f"{shop}/hooks") as secret:
        env = {**os.environ, **of(place), "WEBHOOK_SECRET": secret, "PORT": str(port)}
        with process(command, env, folder):
            assert "Buy" in answering(shop).text
            answer = httpx2.post(f"{shop}/buy", content=b"", trust_env=False)
            assert answer.status_code == 303, answer.text
            Customer(place).pay(answer.headers["location"])
            session = answer.headers["location"].rsplit("/", 1)[-1]
            for _ in range(300):
                orders = httpx2.get(f"{shop}/orders", trust_env=False).json()
                if orders:
                    break
                time.sleep(0.1)
            assert len(orders) == 1
            assert orders[0].startswith("order-")
            thanks = httpx2.get(f"{shop}/thanks", params={"session": session}, trust_env=False)
            assert thanks.text == "Paid, thank you."
            for signature in ("t=1,v1=00", "", "x"):
                forged = httpx2.post(
                    f"{shop}/hooks",
                    content=b"{}",
                    headers={"Checkout-Signature": signature},
                    trust_env=False,
                )
                assert forged.status_code == 400


def test_the_python_shop_sells(place: Place) -> None:
    folder = EXAMPLES / "native-python"
    assert len((folder / "shop.py").read_text("utf-8").splitlines()) < LINES_MAX
    sells(place, [sys.executable, "-I", "shop.py"], folder)


def test_the_node_shop_sells(place: Place, node: str) -> None:
    folder = EXAMPLES / "native-node"
    assert len((folder / "shop.mjs").read_text("utf-8").splitlines()) < LINES_MAX
    sells(place, [node, "shop.mjs"], folder)
