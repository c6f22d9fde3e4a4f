"""The Lambda function of the task queue: clean-up at wallets, after the response was sent.

A task cancels an abandoned grant at a wallet. The tasks in a batch run in parallel, so that a
hanging wallet does not delay the tasks at other wallets. If a task fails, only this task is
retried, until the queue moves it to the dead-letter queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from aws_lambda_powertools.utilities.batch import (
    AsyncBatchProcessor,
    EventType,
    async_process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from checkout import telemetry, wiring
from checkout.adapters.queue import cleanup_from
from checkout.domain.ground.ids import session_ref
from checkout.flows.payment.cleanup import clean_up
from checkout.services import PayServices

_log: Final = logging.getLogger(__name__)


def queued(services: Callable[[], PayServices]) -> Callable[[dict[str, Any], Any], Any]:
    """Return the Lambda handler, which returns failed messages (SQS partial batch response)."""

    @telemetry.observed
    def handler(event: dict[str, Any], context: Any) -> Any:
        ready = services()

        async def done(record: SQSRecord) -> None:
            cleanup = cleanup_from(record.body)
            try:
                await asyncio.to_thread(clean_up, ready, cleanup)
            except Exception as error:
                told = {"session": session_ref(cleanup.session)} | telemetry.failure(error)
                _log.warning("a cleanup failed, will retry", extra=told)
                raise

        processor = AsyncBatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        return async_process_partial_response(event, done, processor)

    return handler


wiring.observe("expirer")
wiring.build_in_lambda(wiring.pay_services)
handler: Final = queued(wiring.pay_services)
