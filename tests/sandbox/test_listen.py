"""Local webhook testing: `listen` and `trigger` beside a running local world."""

from __future__ import annotations

import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
import stripe

from sandbox import cloud, webhooks
from tests.support.processes import Dev, Local, ended, free_base, run, sandbox

pytestmark = pytest.mark.cloud


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    running = Dev(tmp_path_factory.mktemp("listen"), free_base())
    yield running
    running.end()


class Listening:
    """`python -m sandbox listen` beside a world."""

    def __init__(self, world: Dev, target: str) -> None:
        self._process = sandbox(
            world.place.folder.parent, world.place.base, "listen", "--forward-to", target
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        found = re.fullmatch(r"secret    (whsec_\S+)\n", first)
        assert found is not None, first + self._process.communicate()[0]
        self.secret = found[1]
        self._read = ""

    def until(self, words: str) -> None:
        """Wait for a line with these words."""
        assert self._process.stdout is not None
        while words not in self._read:
            line = self._process.stdout.readline()
            assert line, self._read
            self._read += line

    def end(self) -> str:
        """Stop it and return its output."""
        self._process.send_signal(signal.SIGINT)
        out = self._read + ended(self._process)
        assert self._process.returncode == 0, out
        assert "Traceback" not in out
        return out


def trigger(world: Dev, event: str) -> tuple[int, str]:
    return run(world.place.folder.parent, world.place.base, "trigger", event)


def wait_until(true: Callable[[], bool], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_all_that_is_triggered_reaches_the_local_address_as_it_was_sent(world: Dev) -> None:
    port = cloud.free_port()
    local = Local(port)
    listening = Listening(world, f"http://localhost:{port}/hooks?v=1")
    for event in webhooks.EVENTS:
        code, said = trigger(world, event)
        assert code == 0, said
    wait_until(lambda: len(local.got) >= len(webhooks.EVENTS) + 2)
    local.close()
    said = listening.end()
    assert local.types() == [
        "checkout.session.canceled",
        "checkout.session.completed",
        "checkout.session.completed",
        "checkout.session.expired",
        "ping",
        "refund.created",
        "refund.updated",
    ]
    for each in local.got:
        headers = dict(each.headers)
        assert each.target == "/hooks?v=1"
        assert headers["content-type"] == "application/json"
        assert stripe.WebhookSignature.verify_header(
            each.body, headers["checkout-signature"], listening.secret, 300
        )
        line = rf"{headers['checkout-event-type']} +{headers['checkout-event-id']} \S+ → 200 in"
        assert re.search(line, said), said


def test_an_event_that_the_local_address_does_not_take_comes_again(world: Dev) -> None:
    port = cloud.free_port()
    listening = Listening(world, f"http://localhost:{port}/")
    with ThreadPoolExecutor(1) as beside:
        triggered = beside.submit(trigger, world, "ping")
        listening.until("no answer")  # there are two more attempts within seconds
        local = Local(port, status=503)
        code, said = triggered.result()
    assert code == 0, said
    wait_until(lambda: len(local.got) >= 1)
    local.status = 200
    wait_until(lambda: len(local.got) >= 2)
    local.close()
    said = listening.end()
    assert "no answer (ConnectError); it will be sent again" in said
    assert re.search(r"→ 503 in \d+ ms; it will be sent again", said)
    assert len({each.body for each in local.got}) == 1


def test_the_secret_is_the_same_the_next_time(world: Dev) -> None:
    secrets = []
    for _ in range(2):
        listening = Listening(world, "http://localhost:9/")
        secrets.append(listening.secret)
        listening.end()
    assert secrets[0] == secrets[1]


def test_the_shops_own_endpoints_stay_as_they_are(world: Dev) -> None:
    def urls() -> list[str]:
        answer = httpx2.get(
            f"{world.place.checkout}/v1/webhook_endpoints",
            auth=(world.place.api_key_file.read_text("utf-8").strip(), ""),
            trust_env=False,
        )
        return sorted(each["url"] for each in answer.json()["data"])

    before = urls()
    assert not [url for url in before if url.endswith(f":{world.place.listener_port}/")]
    listening = Listening(world, "http://localhost:9/")
    assert urls() == sorted([*before, f"https://localhost:{world.place.listener_port}/"])
    listening.end()
    assert urls() == before


def test_a_taken_port_and_a_wrong_address_say_what_to_do(world: Dev) -> None:
    state, base = world.place.folder.parent, world.place.base
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", world.place.listener_port))
        taken.listen()
        code, said = run(state, base, "listen", "--forward-to", "http://localhost:9/")
    assert code == 1
    assert said.startswith(f"Port {world.place.listener_port}, for listening to webhooks, is taken")
    code, said = run(state, base, "listen", "--forward-to", "localhost:3000")
    assert (code, "http://localhost:3000" in said) == (1, True)


@pytest.mark.parametrize(
    "command", [("listen", "--forward-to", "http://localhost:9"), ("trigger", "ping")]
)
def test_without_a_world_both_say_how_to_start_one(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    code, said = run(tmp_path, free_base(), *command)
    assert code == 1
    assert "make dev" in said
    assert "Traceback" not in said
