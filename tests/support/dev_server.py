"""The local world for tests that want all of it: shop, checkout, dashboard and wallets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from sandbox.place import Place
from tests.support.ports import free_base
from tests.support.processes import ended

REPOSITORY: Final = Path(__file__).parents[2]
READY_WITHIN: Final = 60  # seconds, of which a slow machine may use some


@contextmanager
def local_world(state: Path, *, bought: bool = False) -> Iterator[Place]:
    """As `make dev` starts it, on ports of its own; its data lies in `state`. `bought`: with one
    purchase of Alice's.
    """
    base = free_base()
    environment = {**os.environ, "SANDBOX_PORT": str(base), "SANDBOX_STATE": str(state)}
    paths = [REPOSITORY / "layers/common", REPOSITORY / "functions", REPOSITORY]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    sandbox = [sys.executable, "-m", "sandbox"]
    world = subprocess.Popen([*sandbox, "dev"], env=environment, stdout=subprocess.PIPE, text=True)
    place = Place(base, state / str(base))
    try:
        _wait_for(place.shop, world)
        if bought:
            subprocess.run([*sandbox, "demo"], env=environment, check=True, capture_output=True)
        yield place
    finally:
        world.terminate()
        ended(world)


def call(
    place: Place, path: str = "", body: Any = None, *, key: str | None = None, **query: Any
) -> httpx2.Response:
    """Ask the local world's API about its sessions; with a body or an action, by POST."""
    return httpx2.request(
        "GET" if body is None else "POST",
        f"{place.checkout}/api/checkout/sessions{path}",
        json=body,
        params=query,
        headers={"Authorization": f"Bearer {key or own_key(place)}"},
        trust_env=False,
    )


def own_key(place: Place) -> str:
    return place.api_key_file.read_text("utf-8").strip()


def _wait_for(address: str, world: subprocess.Popen[str]) -> None:
    for _ in range(READY_WITHIN * 10):
        try:
            if httpx2.get(address, trust_env=False).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        try:
            world.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError("the local world did not start")
