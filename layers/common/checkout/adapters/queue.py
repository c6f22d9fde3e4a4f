"""The webhook queue and the clean-up queue, on SQS.

If a message cannot be sent, the request does not fail, because nothing is lost. The sweep, which
runs each minute, finds events that were not enqueued, and grants that are not cleaned up expire.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Final, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from checkout import telemetry
from checkout.domain.ground.errors import cause
from checkout.domain.ground.grammar import DELIVERY_ID
from checkout.ports import Cleanup, QueuedEvent

_BATCH_MAX: Final = 10  # SendMessageBatch

logger = logging.getLogger(__name__)


class SqsClient(Protocol):
    """The part of boto3's SQS client that this module uses."""

    def send_message(self, **request: Any) -> dict[str, Any]: ...

    def send_message_batch(self, **request: Any) -> dict[str, Any]: ...


class SqsEventQueue:
    """`ports.EventQueue` on an SQS standard queue; a message is `{"event": id}`.

    All messages about one merchant are one message group. So the queue serves merchants in turn
    (SQS "fair queues"), and a merchant with many events does not delay other merchants' events.
    `client` creates the client. It is called only at the first message, because creating a client
    is slow and most requests send no message.
    """

    def __init__(self, client: Callable[[], SqsClient], queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def enqueue(self, messages: Sequence[QueuedEvent]) -> None:
        remaining = iter(messages)
        while batch := list(islice(remaining, _BATCH_MAX)):
            entries = [
                {
                    "Id": str(index),
                    "MessageBody": json.dumps({"event": enqueue.event}),
                    "MessageGroupId": enqueue.merchant,
                    "DelaySeconds": enqueue.delay,
                }
                for index, enqueue in enumerate(batch)
            ]
            try:
                answer = self._client().send_message_batch(
                    QueueUrl=self._queue_url, Entries=entries
                )
            except (ClientError, BotoCoreError) as error:
                _lost(len(batch), cause(error))
                continue
            if failed := answer.get("Failed"):
                _lost(len(failed), f"refused of {len(batch)}")


def event_from(body: str) -> str:
    """Return the event id in a message of the event queue.

    Raises ValueError, KeyError, TypeError if the message is not one of ours.
    """
    event = json.loads(body)["event"]
    if not DELIVERY_ID.fullmatch(event):
        raise ValueError("The message names no event.")
    return str(event)


class SqsTaskQueue:
    """`ports.TaskQueue` on an SQS standard queue; a message is `{"cleanup": {…}}`.

    `client` creates the client, at the first task.
    """

    def __init__(self, client: Callable[[], SqsClient], queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def clean_up(self, cleanup: Cleanup) -> None:
        body = json.dumps({"cleanup": asdict(cleanup)})
        try:
            self._client().send_message(QueueUrl=self._queue_url, MessageBody=body)
        except (ClientError, BotoCoreError) as error:
            telemetry.count("MessagesLost")
            logger.warning("a task was not sent: %s", cause(error), extra={"cause": cause(error)})


def _lost(messages: int, why: str) -> None:
    telemetry.count("MessagesLost", messages)
    logger.warning("events not hinted: %d, %s", messages, why, extra={"cause": why})


def cleanup_from(body: str) -> Cleanup:
    """Return the clean-up in a message of the task queue.

    Raises ValueError, KeyError, TypeError if the message is not one of ours.
    """
    task = json.loads(body)["cleanup"]
    return Cleanup(**{name: task[name] for name in Cleanup.__slots__ if name in task})


class NoQueue:
    """Stands in for a queue. Events then wait for the sweep, and grants are left to expire."""

    def enqueue(self, messages: Sequence[QueuedEvent]) -> None:
        return

    def clean_up(self, cleanup: Cleanup) -> None:
        return
