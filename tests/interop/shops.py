"""Shops of other people's code in processes of their own, and who buys in them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2

from sandbox.demo import Demo
from sandbox.place import Place
from tests.interop.packages import REPOSITORY
from tests.support.processes import ended, free_base, own_key

EXAMPLES: Final = REPOSITORY / "examples"


def of(place: Place) -> dict[str, str]:
    return {"API_BASE": place.checkout, "API_KEY": own_key(place)}


class Customer(Demo):
    """Alice, who pays what others have created."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, api_key=own_key(place), wallet=place.customer_wallet, say=print)

    def pay(self, page: str) -> None:
        """Pay a session, and wait until the money is there."""
        submitted = self._http.post(f"{page}/wallet", json={"wallet_address": self._wallet})
        self._come_back(self._approve(self._json(submitted, 200)["interact_url"]))
        self._wait(page.rsplit("/", 1)[-1], page)

    def leave(self) -> None:
        self._http.close()


@contextmanager
def process(command: list[str], env: dict[str, str], cwd: Path) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, env=env, cwd=cwd, stdout=pipe, stderr=None, text=True)
    try:
        yield running
    finally:
        running.terminate()
        ended(running)


@contextmanager
def forwarding(place: Place, target: str) -> Iterator[str]:
    """Run `make listen`, which forwards the local world's deliveries; yield its secret."""
    env = {**os.environ, "SANDBOX_PORT": str(place.base), "SANDBOX_STATE": str(place.folder.parent)}
    env["PYTHONPATH"] = os.pathsep.join(
        str(REPOSITORY / each) for each in ("layers/common", "functions", "")
    )
    command = [sys.executable, "-m", "sandbox", "listen", "--forward-to", target]
    with process(command, env, REPOSITORY) as listener:
        assert listener.stdout is not None
        secret = listener.stdout.readline().split()[1]
        for line in listener.stdout:
            if line.startswith("events"):
                break
        yield secret


def answering(url: str) -> httpx2.Response:
    for _ in range(300):
        try:
            return httpx2.get(url, trust_env=False)
        except httpx2.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


def sells(place: Place, command: list[str], folder: Path, header: str, **env: str) -> None:
    """Run a shop, buy in it, pay, and wait for the shop to learn of it.

    `header` is the one with a delivery's signature. A shop refuses a delivery with another one.
    """
    port = free_base()
    shop = f"http://127.0.0.1:{port}"
    with forwarding(place, f"{shop}/hooks") as secret:
        known = {**os.environ, **of(place), "WEBHOOK_SECRET": secret, "PORT": str(port), **env}
        with process([each.replace("PORT", str(port)) for each in command], known, folder):
            assert "Buy" in answering(shop).text
            answer = httpx2.post(f"{shop}/buy", content=b"", trust_env=False)
            assert answer.status_code == 303, answer.text
            customer = Customer(place)
            customer.pay(answer.headers["location"])
            customer.leave()
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
                told = {header: signature, "Content-Type": "application/json"}
                forged = httpx2.post(f"{shop}/hooks", content=b"{}", headers=told, trust_env=False)
                assert forged.status_code == 400, signature
