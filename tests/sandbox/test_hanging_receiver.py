"""A webhook receiver that hangs delays only its own merchant's deliveries.

Tested in the local world, with real deliveries over TLS.
"""

from __future__ import annotations

import json
import re
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox import cloud
from sandbox.demo import Demo
from sandbox.server import Answer, AsgiServer, Incoming
from sandbox.wallets import certificates
from tests.support.processes import Dev, free_base

pytestmark = pytest.mark.cloud

EVENTS = 10  # of each merchant, at least
HANGS_FOR = 10.5  # seconds; longer than the sender's timeout


class Receiver:
    """An https server that records arrivals and hangs for a while before it responds."""

    def __init__(self, world: Dev, *, hangs_for: float = 0) -> None:
        self.came: dict[str, float] = {}  # by session, the first time
        self._hangs_for = hangs_for
        self._ending = threading.Event()
        tls = certificates.ensure(world.place.wallets_folder, datetime.now(UTC))
        port = cloud.free_port()
        self.url = f"https://localhost:{port}/hooks"
        self._server = AsgiServer(port, self._answer, body_max=100_000, tls=tls)
        self._server.start()

    def _answer(self, request: Incoming) -> Answer:
        self.came.setdefault(json.loads(request.body)["id"], time.time())
        self._ending.wait(self._hangs_for)
        return Answer(200, [("connection", "close")])

    def close(self) -> None:
        self._ending.set()
        time.sleep(0.5)  # let the hanging requests finish
        self._server.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Dev]:
    running = Dev(tmp_path, free_base())
    yield running
    running.end()


def demo(world: Dev, api_key: str, say: list[str]) -> Demo:
    return Demo(world.place, api_key=api_key, wallet=world.place.customer_wallet, say=say.append)


def cancel(world: Dev, api_key: str) -> None:
    for _ in range(2 * EVENTS):
        demo(world, api_key, []).end("cancel")


@pytest.mark.first
def test_one_endpoint_that_hangs_delays_no_other_merchants_events(world: Dev) -> None:
    slow, quick = Receiver(world, hangs_for=HANGS_FOR), Receiver(world)
    wallet = f"https://localhost:{world.place.base + 201}/bob"
    slow_key = world.new_merchant("Another", wallet, world.place.wallets)
    world.cli(
        f"webhook --wallet-address {wallet} --url {slow.url} --events checkout.session.canceled"
    )
    world.cli(f"webhook --wallet-address {world.place.merchant_wallet} --url {quick.url}")
    quick_key = world.place.api_key_file.read_text()

    bought: list[str] = []
    with ThreadPoolExecutor(1) as beside:
        # The other merchant's events occur meanwhile; each can block a sender for ten seconds.
        theirs = beside.submit(cancel, world, slow_key)
        for _ in range(EVENTS):
            demo(world, quick_key, bought).run()
        theirs.result()
    ours = re.findall(r"demo: completed (cs_\w+)", "\n".join(bought))
    assert len(ours) == EVENTS
    deadline = time.monotonic() + 15
    while not set(ours) <= set(quick.came) and time.monotonic() < deadline:
        time.sleep(0.1)
    slow.close()
    quick.close()

    def completed_at(session: str) -> float:
        found = world.get(f"/api/checkout/sessions/{session}").json()["completed_at"]
        return datetime.fromisoformat(found).timestamp()

    delays = [quick.came[session] - completed_at(session) for session in ours]
    median = statistics.median(delays)
    print(
        f"{len(delays)} events delivered {median:.3f} s after completion (median; at most "
        f"{max(delays):.3f} s), while {len(slow.came)} of another merchant's hang"
    )
    assert len(slow.came) >= EVENTS
    assert median < 2
