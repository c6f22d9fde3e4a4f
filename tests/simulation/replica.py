"""A wallet provider that answers reads of incoming payments from a replica, which is behind."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from open_payments.transports import Response
from sandbox.wallets.network import Network
from sandbox.wallets.state import IncomingPayment

BEFORE: Final = datetime.min.replace(tzinfo=UTC)


class Replica:
    """Keeps what incoming payments have received and whether they are completed, over time."""

    def __init__(self, network: Network, now: Callable[[], datetime]) -> None:
        self._now = now
        self._known: dict[str, list[tuple[datetime, int, bool]]] = defaultdict(list)
        credit: Any = network._credit
        close: Any = network.close

        def credited(payment: IncomingPayment, value: int, at: datetime) -> None:
            credit(payment, value, at)
            self._note(payment, at)

        def closed(receiver: IncomingPayment) -> None:
            close(receiver)
            self._note(receiver, now())

        network._credit = credited  # type: ignore[method-assign]
        network.close = closed  # type: ignore[method-assign]

    def _note(self, payment: IncomingPayment, at: datetime) -> None:
        self._known[payment.id].append((at, payment.received.value, payment.completed))

    def behind(self, answer: Response, payment_id: str, by: int) -> Response:
        """Return the answer to a read as it was `by` milliseconds ago."""
        body = json.loads(answer.body)
        if answer.status != 200 or "receivedAmount" not in body:
            return answer
        then = self._now() - timedelta(milliseconds=by)
        known = [(BEFORE, 0, False), *self._known[payment_id]]
        _, received, completed = [each for each in known if each[0] <= then][-1]
        body["receivedAmount"]["value"] = str(received)
        body["completed"] = completed
        return replace(answer, body=json.dumps(body).encode())
