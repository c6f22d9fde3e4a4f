"""A transport that answers from a script, for the tests of what uses this package."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from open_payments.transports import Request, Response


class Script:
    """Answers in order, or raises; keeps what was sent.

    `now` is its clock, which `sleep`, and each call by `takes`, move.
    """

    def __init__(
        self,
        *answers: Response | Exception,
        start: datetime = datetime(2026, 11, 20, 12, 0, tzinfo=UTC),
    ) -> None:
        self.answers = deque(answers)
        self.sent: list[Request] = []
        self.timeouts: list[float] = []
        self.time = start
        self.takes = timedelta()

    def send(self, request: Request, *, timeout: float) -> Response:
        """Record `request`, and return or raise the next answer."""
        self.sent.append(request)
        self.timeouts.append(timeout)
        self.time += self.takes
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def answer(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response: JSON of `body`, text as it is, or nothing for None."""
    text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    return Response(status, headers or {}, text.encode())
