"""`python -m benchmarks.official`: the wallet step and the callback, beside the official client.

Wall time against the sandbox's wallets over TLS, with 0, 20 and 100 ms of round trip: for each
request, and two for a new connection. Ours is a warm process, from the submitted address to the
stored grant, and from the callback to the completed session, over in-memory tables. The official
client (`@interledger/open-payments`, tests/interop/official.mjs) makes the calls that it needs one
after the other, and stores nothing: once with a client made anew for each purchase, once with one
that is kept. The three take turns. Needs Node. Exits with 1 above a limit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.runtime import SystemClock
from checkout.domain.session.record import Status
from checkout.version import VERSION
from open_payments.transports import Request, Response
from open_payments.transports.public import PublicTransport
from sandbox.wallets import certificates
from sandbox.wallets.provider import Rules
from sandbox.wallets.server import Sleeper, WalletServers
from tests.support.flows import CEDAR, World
from tests.support.keys import KEY_ID, new_key_pair
from tests.support.node import with_packages

ROUND_TRIPS: Final = (0.0, 0.02, 0.1)  # seconds
ROUNDS: Final = 15
HANDSHAKE: Final = 2  # round trips of a new connection: TCP, and TLS 1.3
FINISH: Final = "https://shop.example/return"
INTEROP: Final = Path(__file__).parent.parent / "tests" / "interop"
SIDES: Final = ("ours", "anew", "kept")
# A callback makes the same three calls as the official client; a tenth is tolerance for the
# machine.
LIMITS: Final = {("wallet", "anew"): 0.55, ("wallet", "kept"): 0.90, ("callback", "kept"): 1.1}

Times = dict[tuple[str, str], list[float]]


class Far:
    """A network and a TLS context with a simulated round trip of `seconds`."""

    def __init__(self, world: World, tls: Any, sleeper: Sleeper) -> None:
        self.round_trip = 0.0
        self._network, self._tls, self._sleeper = world.network, tls, sleeper

    def handle(self, request: Request) -> Response:
        self._sleeper(self.round_trip)
        return self._network.handle(request)

    def wrap_socket(self, *arguments: Any, **options: Any) -> Any:
        time.sleep(HANDSHAKE * self.round_trip)
        return self._tls.wrap_socket(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)


class Official:
    """The process with the official client."""

    def __init__(self, world: World, authority: Path, folder: Path) -> None:
        pem, jwk = new_key_pair(f"{KEY_ID}-official")
        world.network.register_key(world.shop, jwk)
        key_file = folder / "private.key"
        key_file.write_text(pem)
        self._process = subprocess.Popen(
            [with_packages(INTEROP), "official.mjs"],
            cwd=INTEROP,
            env={
                **os.environ,
                "NODE_EXTRA_CA_CERTS": str(authority),
                "MERCHANT": world.shop,
                "KEY_ID": f"{KEY_ID}-official",
                "KEY_FILE": str(key_file),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._told()

    def step(self, **asked: Any) -> dict[str, Any]:
        """Take a step. Return its milliseconds (`took`) and the page to approve on."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._told()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        told: dict[str, Any] = json.loads(self._process.stdout.readline() or "null")
        assert told is not None, "the official client failed"
        return told


@contextmanager
def served() -> Iterator[tuple[World, Far, Official]]:
    """Serve the wallets of a world on this machine, and connect its checkout with them."""
    clock: Any = SystemClock()  # the only key format of the Node client
    # A customer takes longer at the wallet than the pause that the wallet asks for.
    world, sleeper = World(clock=clock, rules=Rules(wait=0)), Sleeper()
    with tempfile.TemporaryDirectory() as name:
        found = certificates.ensure(Path(name) / "ca", world.clock.now())
        far = Far(world, found.server_context(), sleeper)
        servers = WalletServers(far, far, sleeper)  # type: ignore[arg-type]
        servers.start()
        http = PublicTransport(
            user_agent=f"checkout-sessions/{VERSION}",
            ca_file=str(found.authority),
            allow_loopback=True,
        )
        wallets = SignedWallets(http, world.vault, world.clock, allow_loopback=True)
        world.services = replace(world.services, wallets=wallets)
        official = Official(world, found.authority, Path(name))
        try:
            yield world, far, official
        finally:
            official.close()
            servers.close()


def ours(world: World, times: Times) -> None:
    """Buy once with our own client."""
    session = world.create()
    began = time.perf_counter()
    session = world.submit(session)
    times["wallet", "ours"].append((time.perf_counter() - began) * 1000)
    reference = world.approve(session)
    began = time.perf_counter()
    done = world.finish(session, reference).record
    times["callback", "ours"].append((time.perf_counter() - began) * 1000)
    assert done.status is Status.COMPLETED, done.status


def theirs(world: World, official: Official, times: Times, side: str) -> None:
    """Buy once with the official client."""
    told = official.step(customer=f"{CEDAR}/alice", finish=FINISH, anew=side == "anew")
    times["wallet", side].append(told["took"])
    back = parse_qs(urlsplit(world.network.approve(told["interact"])).query)
    told = official.step(reference=back["interact_ref"][0])
    times["callback", side].append(told["took"])


def measured(world: World, far: Far, official: Official, round_trip: float) -> Times:
    """Return the milliseconds of each step of each side."""
    far.round_trip = round_trip
    times: Times = {(step, side): [] for step in ("wallet", "callback") for side in SIDES}
    for number in range(ROUNDS + 1):
        ours(world, times)
        for side in SIDES[1:]:
            theirs(world, official, times, side)
        if number == 0:  # connections and grants
            for each in times.values():
                each.clear()
    return times


def main() -> int:
    """Print the table; return 1 if a ratio is above its limit."""
    failed = False
    print("| step | round trip, ms | ours, ms | made anew | kept | ours to anew | to kept |")
    print("|---|---|---|---|---|---|---|")
    with served() as (world, far, official):
        for round_trip in ROUND_TRIPS:
            times = measured(world, far, official, round_trip)
            for step in ("wallet", "callback"):
                own, anew, kept = (median(times[step, side]) for side in SIDES)
                ratios = {"anew": own / anew, "kept": own / kept}
                failed |= any(ratios[side] > LIMITS.get((step, side), 9) for side in ratios)
                cells = [f"{own:.0f}", f"{anew:.0f}", f"{kept:.0f}"]
                cells += [f"{ratio:.2f}" for ratio in ratios.values()]
                print(f"| {step} | {round_trip * 1000:.0f} | {' | '.join(cells)} |")
    wished = ", ".join(f"{step} to {side} {most}" for (step, side), most in LIMITS.items())
    print(f"\nat most: {wished}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
