"""What starts the functions that nobody calls: a timer in place of the schedule, and a poller in
place of the mapping from queue to function. Each is a thread that ends when it is closed.

Imitates what the functions rely on: a message that failed comes again after its visibility
timeout, and then goes to the dead letters. Faster than AWS, so that nobody waits at a desk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sandbox.gateway import Function, LambdaContext

ROUND_EVERY: Final = 3.0  # seconds; the template's schedule says a minute
_ASK_EVERY: Final = 0.05
_LONG_POLL: Final = 1  # seconds
_BATCH: Final = 5
_ENDS_WITHIN: Final = 2.0  # seconds


class Repeated:
    """Calls `once` again and again in each of so many threads, `pause` seconds apart, whatever it
    dies of.
    """

    def __init__(
        self, name: str, once: Callable[[], object], pause: float, *, threads: int = 1
    ) -> None:
        self._name = name
        self._once = once
        self._pause = pause
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=name, daemon=True) for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End before the next call; one that hangs is left behind."""
        self._ending.set()
        end = time.monotonic() + _ENDS_WITHIN
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _run(self) -> None:
        while not self._ending.wait(self._pause):
            try:
                self._once()
            except Exception as error:  # noqa: BLE001 - the next time is another chance
                print(f"{self._name} failed: {type(error).__name__}", flush=True)


def schedule(function: Function) -> Repeated:
    """The function's rounds."""
    return Repeated(function.name, partial(_invoke, function, {}), ROUND_EVERY)


def mapping(function: Function, sqs: Any, queue_url: str, *, environments: int = 1) -> Repeated:
    """The function as the queue's consumer, in so many environments at once."""
    poll = partial(_poll, function, sqs, queue_url)
    return Repeated(function.name, poll, _ASK_EVERY, threads=environments)


def _poll(function: Function, sqs: Any, queue_url: str) -> None:
    answer = sqs.receive_message(
        QueueUrl=queue_url, MaxNumberOfMessages=_BATCH, WaitTimeSeconds=_LONG_POLL
    )
    handles = {each["MessageId"]: each["ReceiptHandle"] for each in answer.get("Messages", [])}
    if not handles:
        return
    records = [
        {"messageId": each["MessageId"], "body": each["Body"], "eventSource": "aws:sqs"}
        for each in answer["Messages"]
    ]
    said = _invoke(function, {"Records": records})
    failed = {each["itemIdentifier"] for each in said["batchItemFailures"]}
    for message_id, handle in handles.items():
        if message_id not in failed:
            sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=handle)


def _invoke(function: Function, event: dict[str, Any]) -> Any:
    return function.handler(event, LambdaContext(function.name, function.memory, function.timeout))
