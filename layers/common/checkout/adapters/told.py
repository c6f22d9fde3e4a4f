"""Stores and a transport that tell the operator what happened, when it has happened: in front of
the real ones, so that flows know nothing of it.

A session's change is told once it is written, a webhook's attempt once it has ended, a provider's
answer when it is there. What is told names sessions by `telemetry.session_ref` and providers by
their host; nobody's hosts are a metric's dimension, since customers choose them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from checkout import telemetry
from checkout.domain.session import Session
from checkout.domain.transitions import Change, Event
from checkout.domain.webhooks import WebhookEvent
from checkout.open_payments.errors import OpenPaymentsError
from checkout.open_payments.transport import Request, Response, Transport
from checkout.ports import DueEvent, EventPage, Events, Reservation, SessionPage, Sessions

_COUNTED: Final = {
    Event.PREPARED: "SessionsPrepared",
    Event.PAYMENT_INTENDED: "SessionsApproved",
    Event.RECONCILED: "SessionsCompleted",
}
_FAILURES: Final = frozenset(
    {
        Event.PREPARATION_FAILED,
        Event.APPROVAL_LOST,
        Event.PAYMENT_REFUSED,
        Event.PAYMENT_DISPROVED,
    }
)
# Many to a session, and none of them news.
_DETAILS: Final = frozenset({Event.REFERENCE_STORED, Event.CHECKED})

logger = logging.getLogger(__name__)


class ToldSessions:
    """`ports.Sessions` in front of another."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def create(self, session: Session, reservation: Reservation | None) -> Reservation | None:
        held = self._sessions.create(session, reservation)
        if held is None:
            telemetry.count("SessionsCreated")
            _tell(logging.INFO, "created", session)
        return held

    def get(self, session_id: str) -> Session | None:
        return self._sessions.get(session_id)

    def save(self, change: Change, event: WebhookEvent | None = None) -> Session:
        saved = self._sessions.save(change, event)
        if change.event in _COUNTED:
            telemetry.count(_COUNTED[change.event])
        if change.event in _FAILURES:
            problem = change.after.problem
            telemetry.count("SessionsFailed", reason=problem.value if problem else change.event)
        level = logging.DEBUG if change.event in _DETAILS else logging.INFO
        _tell(level, change.event.value, saved)
        return saved

    def page(
        self,
        merchant: str,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None,
        created_before: datetime | None,
    ) -> SessionPage:
        return self._sessions.page(
            merchant,
            limit=limit,
            after=after,
            created_from=created_from,
            created_before=created_before,
        )

    def due(self, now: datetime, *, limit: int) -> tuple[str, ...]:
        return self._sessions.due(now, limit=limit)


class ToldEvents:
    """`ports.Events` in front of another. An attempt is told by the process that made it: it writes
    the attempt's lease, and then how it ended.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._leased: dict[str, datetime] = {}

    def add(self, event: WebhookEvent) -> None:
        self._events.add(event)

    def get(self, event_id: str) -> WebhookEvent | None:
        return self._events.get(event_id)

    def save(self, event: WebhookEvent) -> None:
        self._events.save(event)
        last = event.deliveries[-1] if event.deliveries else None
        if last is None:
            return
        if last.duration_ms is None:
            self._leased[event.id] = last.at
        elif self._leased.pop(event.id, None) == last.at:
            telemetry.count("WebhookAttempts")
            if not last.succeeded:
                telemetry.count("WebhookAttemptsFailed")
            logger.info(
                "webhook",
                extra={
                    "webhook_event": event.id,
                    "merchant": event.merchant,
                    "attempt": event.attempts,
                    "outcome": event.status.value,
                    "answered": last.status,
                    "milliseconds": last.duration_ms,
                },
            )

    def due(self, until: datetime, *, limit: int) -> tuple[DueEvent, ...]:
        return self._events.due(until, limit=limit)

    def put_off(self, event: DueEvent, until: datetime) -> bool:
        return self._events.put_off(event, until)

    def page(
        self,
        merchant: str,
        *,
        limit: int,
        after: str | None = None,
        created_from: datetime | None = None,
    ) -> EventPage:
        return self._events.page(merchant, limit=limit, after=after, created_from=created_from)


class ToldTransport:
    """`open_payments.Transport` in front of another. `now` gives aware times."""

    def __init__(self, transport: Transport, now: Callable[[], datetime]) -> None:
        self._transport = transport
        self._now = now

    def send(self, request: Request, *, timeout: float) -> Response:
        begun = self._now()
        try:
            response = self._transport.send(request, timeout=timeout)
        except OpenPaymentsError as error:
            telemetry.count("ProviderFailures")
            self._tell(logging.INFO, request, begun, type(error).__name__)
            raise
        if response.status >= 500:
            telemetry.count("ProviderFailures")
        self._tell(logging.DEBUG, request, begun, str(response.status))
        return response

    def _tell(self, level: int, request: Request, begun: datetime, outcome: str) -> None:
        milliseconds = round((self._now() - begun).total_seconds() * 1000)
        telemetry.count("ProviderLatency", milliseconds, unit="Milliseconds")
        logger.log(
            level,
            "provider",
            extra={
                "method": request.method,
                "host": urlsplit(request.url).netloc,
                "outcome": outcome,
                "milliseconds": milliseconds,
            },
        )


def _tell(level: int, event: str, session: Session) -> None:
    logger.log(
        level,
        "session",
        extra={
            "event": event,
            "session": telemetry.session_ref(session.id),
            "merchant": session.merchant,
            "status": session.status.value,
            "version": session.version,
            "problem": session.problem.value if session.problem else None,
        },
    )
