"""The Lambda function of the event queue: make one delivery attempt for each message.

The messages in a batch are handled in parallel, so that a slow receiver does not delay the others.
If an attempt could not be made, because the store or the encryption key cannot be read, SQS retries
the message. If an attempt was made and failed, SQS does not retry the message, because the event's
record has the time of the next attempt. If this time is within 15 minutes, this function itself
sends a new, delayed message. Otherwise the scheduled sweep sends a new message at that time.

If no attempt of a batch could be made at all, the invocation fails. If too many invocations fail
after an upgrade, an alarm rolls the upgrade back. So only our own failures make an invocation fail,
never the failure of an endpoint.
"""

from __future__ import annotations

import asyncio
import logging
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
from checkout.flows.webhooks.deliver import MessageResult

_log: Final = logging.getLogger(__name__)
_METRICS: Final = {
    MessageResult.DELIVERED: "WebhooksDelivered",
    MessageResult.FAILED: "WebhooksFailed",
    MessageResult.GIVEN_UP: "WebhooksGivenUp",
}


class NothingAttempted(Exception):
    """Raised if no attempt of a batch could be made. The whole batch is then retried."""


def queued(
    sender: Callable[[], Callable[[str], MessageResult]],
) -> Callable[[dict[str, Any], Any], Any]:
    """Return the Lambda handler, which returns failed messages (SQS partial batch response).

    Raises NothingAttempted.
    """

    @telemetry.observed
    def handler(event: dict[str, Any], context: Any) -> Any:
        deliver = sender()
        counts: Counter[MessageResult] = Counter()
        broken: list[str] = []

        async def attempted(record: SQSRecord) -> None:
            event_id = event_from(record.body)
            try:
                outcome = await asyncio.to_thread(deliver, event_id)
            except Exception as error:
                told = {"event_id": event_id} | telemetry.failure(error)
                _log.warning("a webhook attempt could not be made, will retry", extra=told)
                broken.append(event_id)
                raise
            counts[outcome] += 1

        processor = AsyncBatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        answer = async_process_partial_response(event, attempted, processor)
        for outcome, name in _METRICS.items():
            telemetry.count(name, counts[outcome])
        if len(broken) == len(event["Records"]):
            raise NothingAttempted(f"{len(broken)} webhook attempts could not be made")
        return answer

    return handler


wiring.observe("webhook_sender")
wiring.build_in_lambda(wiring.webhook_sender)
handler: Final = queued(wiring.webhook_sender)
