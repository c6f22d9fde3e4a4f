"""Gateway: timer and queue pollers, in place of EventBridge Scheduler and event source mappings.

Each timer and each poller is a thread that runs until it is closed. As in Lambda, a function's
poller hands each batch to an environment of its own, so a slow batch does not delay later messages.
A failed message returns to the queue after its visibility timeout, and after several failures moves
to the dead-letter queue. Intervals are shorter than in AWS, so that a developer need not wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sandbox.gateway import Function, LambdaContext

ROUND_EVERY: Final = 3.0  # seconds; a minute in the template
_ASK_EVERY: Final = 0.05
_LONG_POLL: Final = 1  # seconds
_BATCH: Final = 5
_ENDS_WITHIN: Final = 2.0  # seconds


class Repeated:
    """Thread that calls `once` repeatedly, `pause` seconds apart. Errors are only printed."""

    def __init__(self, name: str, once: Callable[[], object], pause: float) -> None:
        self._name = name
        self._once = once
        self._pause = pause
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop before the next call. A running call is abandoned after _ENDS_WITHIN seconds."""
        self._ending.set()
        self._thread.join(_ENDS_WITHIN)

    def _run(self) -> None:
        while not self._ending.wait(self._pause):
            _survived(self._name, self._once)


class Mapping:
    """A function as the consumer of a queue, with at most `environments` batches at a time."""

    def __init__(self, function: Function, sqs: Any, queue_url: str, environments: int) -> None:
        self._function = function
        self._sqs = sqs
        self._queue_url = queue_url
        self._environments = environments
        self._busy: list[threading.Thread] = []
        self._poller = Repeated(function.name, self._poll, _ASK_EVERY)

    def close(self) -> None:
        """Stop polling. Running batches are abandoned after _ENDS_WITHIN seconds."""
        self._poller.close()
        end = time.monotonic() + _ENDS_WITHIN
        for thread in self._busy:
            thread.join(max(0.0, end - time.monotonic()))

    def _poll(self) -> None:
        self._busy = [thread for thread in self._busy if thread.is_alive()]
        if len(self._busy) >= self._environments:
            return
        answer = self._sqs.receive_message(
            QueueUrl=self._queue_url, MaxNumberOfMessages=_BATCH, WaitTimeSeconds=_LONG_POLL
        )
        if messages := answer.get("Messages"):
            name, batch = self._function.name, partial(self._handle, messages)
            thread = threading.Thread(target=_survived, args=(name, batch), name=name, daemon=True)
            thread.start()
            self._busy.append(thread)

    def _handle(self, messages: list[dict[str, Any]]) -> None:
        records = [
            {"messageId": each["MessageId"], "body": each["Body"], "eventSource": "aws:sqs"}
            for each in messages
        ]
        said = _invoke(self._function, {"Records": records})
        failed = {each["itemIdentifier"] for each in said["batchItemFailures"]}
        for each in messages:
            if each["MessageId"] not in failed:
                self._sqs.delete_message(
                    QueueUrl=self._queue_url, ReceiptHandle=each["ReceiptHandle"]
                )


def schedule(function: Function) -> Repeated:
    """Invoke the function every ROUND_EVERY seconds."""
    return Repeated(function.name, partial(_invoke, function, {}), ROUND_EVERY)


def _survived(name: str, once: Callable[[], object]) -> None:
    try:
        once()
    except Exception as error:  # noqa: BLE001 - the next call may succeed
        print(f"{name} failed: {type(error).__name__}", flush=True)


def _invoke(function: Function, event: dict[str, Any]) -> Any:
    return function.handler(event, LambdaContext(function.name, function.memory, function.timeout))
