"""Log and count the work of the session store, the wallet transport and the webhook receivers.

Each class reports an operation after the operation completes, so that flows contain no telemetry.
Log lines identify a session by `ids.session_ref`, and a wallet or receiver by its host. In metrics,
only the hosts on the operator's list are dimensions, because customers choose all other hosts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from checkout import telemetry
from checkout.adapters.dynamo import DynamoSessions
from checkout.domain.ground.ids import MANDATE, REFUND, kind_of, session_ref
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Problem
from checkout.domain.payment.mandate import Mandate
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session
from checkout.ports import Receipt, Receivers, Reservation, Transaction
from open_payments.errors import OpenPaymentsError, Refused
from open_payments.transports import Request, Response, Transport
from open_payments.urls import authority

_COUNTED: Final = {
    Event.PREPARED: "SessionsPrepared",
    Event.PAYMENT_INTENDED: "SessionsApproved",
    Event.RECONCILED: "SessionsCompleted",
    Event.ACCEPTED_AS_PAID: "SessionsCompleted",
    Event.LATE_PAYMENT: "LatePayments",
}
_FAILURES: Final = frozenset(
    {
        Event.PREPARATION_FAILED,
        Event.APPROVAL_LOST,
        Event.PAYMENT_REFUSED,
        Event.PAYMENT_DISPROVED,
    }
)
# A release that signs requests wrongly or crashes halfway causes these problems. Customers do not
# cause them.
_OUR_SIDE: Final = frozenset({Problem.MERCHANT_WALLET_ERROR, Problem.PREPARATION_INTERRUPTED})
# DynamoDB's error codes, and its reasons for a canceled transaction, that mean that a table or an
# index is throttled.
_THROTTLES: Final = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingError",
        "ThrottlingException",
    }
)
# These events of a session are so frequent that they get no log line.
_DETAILS: Final = frozenset({Event.REFERENCE_STORED, Event.CHECKED})

BUSY: Final = 429

logger = logging.getLogger(__name__)


class InstrumentedSessions(DynamoSessions):
    """The store of sessions, which also logs and counts its writes."""

    def create(self, session: Session, reservation: Reservation | None) -> Reservation | None:
        held = super().create(session, reservation)
        if held is None:
            telemetry.count("SessionsCreated")
            telemetry.share("SessionsCompleted", False)  # not completed yet
            _log_session(logging.INFO, "created", session)
        return held

    def save(self, transaction: Transaction[Any]) -> Any:
        change, saved = transaction.change, super().save(transaction)
        if kind_of(saved.id) in _LOGS:
            _LOGS[kind_of(saved.id)](change.event.value, saved)
            return saved
        if change.event in _COUNTED:
            telemetry.count(_COUNTED[Event(change.event)])
        if change.event == Event.PREPARED:
            telemetry.share("FailedOnOurSide", False)
        if change.event in _FAILURES:
            problem = change.after.problem
            telemetry.count("SessionsFailed", reason=problem.value if problem else change.event)
            if problem in _OUR_SIDE:
                telemetry.share("FailedOnOurSide", True)
        detail = change.event in _DETAILS and saved.attention is None
        level = logging.DEBUG if detail else logging.INFO
        _log_session(level, change.event.value, saved)
        return saved


class InstrumentedTransport:
    """Wraps another `open_payments.Transport`. `now` returns times with a time zone.

    Failures are counted separately for each host in `known`, and together for all other hosts.
    """

    def __init__(
        self,
        transport: Transport,
        now: Callable[[], datetime],
        *,
        known: Collection[str] = (),
    ) -> None:
        self._transport = transport
        self._now = now
        self._known = known

    def send(self, request: Request, *, timeout: float) -> Response:
        begun = self._now()
        try:
            response = self._transport.send(request, timeout=timeout)
        except OpenPaymentsError as error:
            self._failed(request)
            self._log(logging.INFO, request, begun, type(error).__name__)
            raise
        failed = response.status >= 500 or response.status == BUSY
        if failed:
            self._failed(request)
        level = logging.INFO if failed else logging.DEBUG
        self._log(level, request, begun, str(response.status))
        return response

    def _failed(self, request: Request) -> None:
        host = authority(request.url)
        telemetry.count("ProviderFailures", reason=host if host in self._known else "other")

    def _log(self, level: int, request: Request, begun: datetime, outcome: str) -> None:
        milliseconds = _milliseconds(self._now() - begun)
        telemetry.count("ProviderLatency", milliseconds, unit="Milliseconds")
        logger.log(
            level,
            "provider",
            extra={
                "method": request.method,
                "host": authority(request.url),
                "outcome": outcome,
                "milliseconds": milliseconds,
            },
        )


class InstrumentedReceivers:
    """Wraps other `ports.Receivers`. `now` returns times with a time zone."""

    def __init__(self, receivers: Receivers, now: Callable[[], datetime]) -> None:
        self._receivers = receivers
        self._now = now

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Receipt:
        begun = self._now()
        receipt = self._receivers.post(url, headers, body, now=now)
        milliseconds = _milliseconds(self._now() - begun)
        telemetry.count("WebhookAttempts")
        telemetry.count("WebhookLatency", milliseconds, unit="Milliseconds")
        logger.info(
            "webhook",
            extra={
                "event_id": headers.get("webhook-id"),
                "host": authority(url),
                "outcome": receipt.error or str(receipt.status),
                "milliseconds": milliseconds,
            },
        )
        return receipt


_KEY_SHOWN: Final = {
    True: (logging.WARNING, "the key of merchant %s was not accepted (%s): %s"),
    False: (
        logging.INFO,
        "a provider did not find the key of merchant %s, which is there (%s): %s",
    ),
    None: (logging.INFO, "the wallet of merchant %s could not be read for its key (%s): %s"),
}


def report_refusal(merchant: Merchant, refused: Refused, lacks: bool | None) -> None:
    """Log a refusal of the merchant's key, and count it if the merchant's wallet `lacks` the key.

    `lacks` is None if the wallet could not be read. Other refusals are not counted, because a
    provider also refuses a correct key if the provider could not read the merchant's wallet.
    """
    if lacks:
        telemetry.count("MerchantKeyRefused", reason=refused.reason.value)
    level, text = _KEY_SHOWN[lacks]
    logger.log(
        level,
        text,
        merchant.id,
        refused.reason.value,
        refused.answered,
        extra={
            "merchant": merchant.id,
            "key_id": merchant.key_id,
            "operation": refused.operation,
            "host": refused.host,
            "status": refused.status,
            "code": refused.code,
            "reason": refused.reason.value,
        },
    )


def count_throttle(parsed_response: Mapping[str, Any] | None = None, **event: Any) -> None:
    """Count a throttled answer of DynamoDB, even if the client tries again.

    botocore calls this function after each response. Throttled indexes are counted, too, because a
    throttled index makes the write to its table fail. DynamoDB's own metrics are separate for each
    index.
    """
    answer = parsed_response or {}
    reasons = answer.get("CancellationReasons", ())
    codes = {answer.get("Error", {}).get("Code"), *(reason.get("Code") for reason in reasons)}
    if codes & _THROTTLES:
        telemetry.count("TablesThrottled")


def _log(level: int, name: str, event: str, record: Session | Refund, **ids: str) -> None:
    logger.log(
        level,
        name,
        extra={
            "event": event,
            **ids,
            "merchant": record.merchant,
            "status": record.status.value,
            "version": record.version,
            "problem": record.problem.value if record.problem else None,
            "attention": record.attention.value if record.attention else None,
        },
    )


def _log_session(level: int, event: str, session: Session) -> None:
    _log(level, "session", event, session, session=session_ref(session.id))


def _log_refund(event: str, refund: Refund) -> None:
    ids = {"refund": refund.id, "session": session_ref(refund.session)}
    _log(logging.INFO, "refund", event, refund, **ids)


def _log_mandate(event: str, mandate: Mandate) -> None:
    logger.info(
        "mandate",
        extra={
            "event": event,
            "merchant": mandate.merchant,
            "status": mandate.status.value,
            "version": mandate.version,
        },
    )


_LOGS: Final[Mapping[str, Callable[[str, Any], None]]] = {
    REFUND: _log_refund,
    MANDATE: _log_mandate,
}


def _milliseconds(passed: timedelta) -> int:
    return passed // timedelta(milliseconds=1)
