from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sandbox import triggers
from sandbox.demo import Demo
from sandbox.gateway import Function
from tests.support.processes import Dev, free_base

IN_TIME = 30  # seconds


def called(handler: Any) -> Function:
    return Function("Tried", handler, timeout=10, memory=128)


def test_a_schedule_goes_on_after_a_round_that_died(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(triggers, "ROUND_EVERY", 0.001)
    thrice = threading.Event()
    left: list[int] = []

    def handler(event: Any, context: Any) -> None:
        left.append(context.get_remaining_time_in_millis())
        if len(left) == 3:
            thrice.set()
        raise RuntimeError("sk_secret")

    schedule = triggers.schedule(called(handler))
    assert thrice.wait(5)
    schedule.close()
    rounds = len(left)
    assert all(9_000 < milliseconds <= 10_000 for milliseconds in left)
    said = capsys.readouterr().out
    assert "Tried failed: RuntimeError" in said
    assert "sk_secret" not in said
    assert len(left) == rounds


class Queue:
    """An SQS client with one batch of messages."""

    def __init__(self, *bodies: str) -> None:
        self.messages = [
            {"MessageId": body, "ReceiptHandle": f"handle-{body}", "Body": body} for body in bodies
        ]
        self.deleted: list[str] = []
        self.asked_again = threading.Event()

    def receive_message(self, **request: Any) -> dict[str, Any]:
        if self.deleted or not self.messages:
            self.asked_again.set()
            return {}
        return {"Messages": self.messages}

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> None:
        self.deleted.append(ReceiptHandle)


def test_of_a_batch_only_what_failed_stays_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "_ASK_EVERY", 0.001)
    queue = Queue("one", "two", "three")
    seen: list[str] = []

    def handler(event: Any, context: Any) -> Any:
        seen.extend(record["body"] for record in event["Records"])
        return {"batchItemFailures": [{"itemIdentifier": "two"}]}

    mapping = triggers.Mapping(called(handler), queue, "q", 1)
    assert queue.asked_again.wait(5)
    mapping.close()
    assert seen == ["one", "two", "three"]
    assert queue.deleted == ["handle-one", "handle-three"]


def test_batches_that_hang_delay_those_after_them_only_when_all_environments_are_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(triggers, "_ASK_EVERY", 0.001)
    monkeypatch.setattr(triggers, "_ENDS_WITHIN", 5)
    going_on, three = threading.Event(), threading.Semaphore(0)
    most, asked = [0], [0]

    class Busy:
        """An SQS client that never runs out of messages."""

        def receive_message(self, **request: Any) -> dict[str, Any]:
            asked[0] += 1
            body = str(asked[0])
            return {"Messages": [{"MessageId": body, "ReceiptHandle": body, "Body": body}]}

        def delete_message(self, **request: Any) -> None:
            pass

    lock, under_way = threading.Lock(), [0]

    def handler(event: Any, context: Any) -> Any:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        three.release()
        going_on.wait(5)
        with lock:
            under_way[0] -= 1
        return {"batchItemFailures": []}

    mapping = triggers.Mapping(called(handler), Busy(), "q", 3)
    for _ in range(3):
        assert three.acquire(timeout=5)
    assert not three.acquire(timeout=0.05)
    assert asked[0] == 3
    going_on.set()
    assert three.acquire(timeout=5)
    mapping.close()
    assert most[0] == 3


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Dev]:
    world = Dev(tmp_path, free_base())
    yield world
    world.end()
    assert "failed" not in world.text


@pytest.mark.first
@pytest.mark.cloud
def test_sessions_that_nobody_watches_end_as_they_should(world: Dev) -> None:
    place = world.place
    key = place.api_key_file.read_text()

    def paying(wallet: str) -> tuple[Demo, dict[str, Any], dict[str, Any]]:
        address = f"https://localhost:{place.wallets_port + 1}/{wallet}"
        demo = Demo(place, api_key=key, wallet=address, say=lambda line: None)
        session = demo._create()
        url = f"{session['url']}/wallet"
        prepared = demo._json(demo._http.post(url, json={"wallet_address": address}), 200)
        return demo, session, prepared

    def session(session_id: str) -> dict[str, Any]:
        found: dict[str, Any] = world.get(f"/api/checkout/sessions/{session_id}").json()
        return found

    def is_closed(incoming_payment: str) -> bool:
        saved = json.loads((place.folder / "wallets" / "wallets.json").read_text())
        payment = saved["state"]["incoming"][incoming_payment.rpartition("/")[2]]
        completed: bool = payment["completed"]
        return completed

    abandoned, left_alone, prepared = paying("dies-after-create")
    with closing(abandoned._http):  # and then the page is closed
        abandoned._come_back(abandoned._approve(prepared["interact_url"]))
    demo, given_up, _ = paying("alice")
    cancel = f"{place.checkout}/api/checkout/sessions/{given_up['id']}/cancel"
    with closing(demo._http):
        canceled = demo._http.post(cancel, headers={"Authorization": f"Bearer {key}"})
    assert canceled.json()["status"] == "canceled"
    within(IN_TIME, lambda: session(left_alone["id"])["status"] == "completed")
    within(IN_TIME, lambda: is_closed(session(given_up["id"])["incoming_payment"]))


def within(seconds: float, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)
