"""Webhooks sent to the receivers that merchants choose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from checkout.domain.webhooks.record import ANSWER_MAX, TIMEOUT
from checkout.ports import Receipt
from open_payments.errors import NotSent, OutcomeUnknown
from open_payments.transports import Request, Response
from open_payments.transports.public import PublicTransport
from open_payments.urls import joined

# Each of these characters would take six bytes in the JSON of the delivery log.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class PublicReceivers:
    """Sends one POST in at most 10 s in total, and reads the first KiB of the response."""

    def __init__(self, http: PublicTransport) -> None:
        self._http = http

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Receipt:
        request = Request("POST", url, headers, body)
        try:
            answer = self._http.send(request, timeout=TIMEOUT.total_seconds(), body_max=ANSWER_MAX)
        except NotSent as error:
            return Receipt(error=f"not sent: {error}")
        except OutcomeUnknown as error:
            return Receipt(error=f"no answer: {error}")
        return Receipt(
            status=answer.status,
            error=_leads_to(url, answer) if 300 <= answer.status < 400 else None,
            answer=_CONTROL.sub("\ufffd", answer.body.decode("utf-8", "replace")),
            retry_after=_retry_after(answer.headers.get("retry-after", ""), now),
        )


def _leads_to(url: str, answer: Response) -> str | None:
    """Return the URL to which a redirect leads, or None if the answer has no usable URL."""
    try:
        return joined(url, answer.headers["location"])
    except (KeyError, ValueError):
        return None


def _retry_after(value: str, now: datetime) -> timedelta | None:
    """Parse Retry-After (RFC 9110 10.2.3): seconds or a date. Ignore anything else."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return timedelta(seconds=int(value[:9]))  # longer numbers are above every limit
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    return max(timedelta(0), (at if at.tzinfo else at.replace(tzinfo=UTC)) - now)
