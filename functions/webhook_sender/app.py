"""The Lambda function of the event queue: make an attempt for each message.

The messages of a batch are sent concurrently, so that a slow receiver delays no other. A message is
retried if its attempt could not be made (the store or the key does not respond). It is not retried
if the attempt failed: the event's record says when the next one is due.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from aws_lambda_powertools.utilities.batch import (
    AsyncBatchProcessor,
    EventType,
    async_process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from checkout import telemetry, wiring
from checkout.adapters.queue import event_from
from checkout.flows.webhooks.deliver import Outcome

_METRICS: Final = {
    Outcome.DELIVERED: "WebhooksDelivered",
    Outcome.FAILED: "WebhooksFailed",
    Outcome.GIVEN_UP: "WebhooksGivenUp",
}


def queued(sender: Callable[[], Callable[[str], Outcome]]) -> Callable[[dict[str, Any], Any], Any]:
    """Return the Lambda handler; it returns the failed messages (SQS partial batch response)."""

    @telemetry.observed
    def handler(event: dict[str, Any], context: Any) -> Any:
        deliver = sender()
        counts: Counter[Outcome] = Counter()

        async def attempted(record: SQSRecord) -> None:
            outcome = await asyncio.to_thread(deliver, event_from(record.body))
            counts[outcome] += 1

        processor = AsyncBatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        answer = async_process_partial_response(event, attempted, processor)
        for outcome, name in _METRICS.items():
            telemetry.count(name, counts[outcome])
        return answer

    return handler


wiring.observe("webhook_sender")
wiring.build_in_lambda(wiring.webhook_sender)
handler: Final = queued(wiring.webhook_sender)
