"""One request and its answer: time, signature, status, JSON.

Decides what an answer says about the request's effect (`errors.py`), before anybody reads what else
it says. Refuses redirects and every status that the call does not expect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.open_payments.answers import Answer, loads
from checkout.open_payments.canonical import canonical
from checkout.open_payments.errors import (
    NotSent,
    OpenPaymentsError,
    OutcomeUnknown,
    Refused,
    UntrustedAnswer,
)
from checkout.open_payments.models import ClientIdentity
from checkout.open_payments.reasons import reason
from checkout.open_payments.signatures import sign
from checkout.open_payments.transport import Request, Response, Transport
from checkout.open_payments.urls import target_uri

# Seconds. A quote probes the payment network, and an incoming payment may await its wallet.
CALL: Final = 10.0
SLOW_CALL: Final = 15.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the expected status. Times are from before sending and after receiving."""

    status: int
    answer: Answer
    sent_at: datetime
    answered_at: datetime


class Exchange:
    """Sends requests of one client until `deadline`. `now` gives aware times."""

    def __init__(
        self,
        transport: Transport,
        identity: ClientIdentity | None,
        *,
        now: Callable[[], datetime],
        deadline: datetime,
    ) -> None:
        self._transport = transport
        self._identity = identity
        self._now = now
        self._deadline = deadline

    def json(
        self,
        operation: str,
        method: str,
        url: str,
        *,
        token: str | None = None,
        body: Mapping[str, object] | None = None,
        signed: bool = True,
        expect: int = 200,
        cap: float = CALL,
    ) -> Reply:
        """Send once; the answer is a JSON object with status `expect`. `cap` is in seconds."""
        sent_at = self._now()
        request = self._request(operation, method, url, token=token, body=body, signed=signed)
        response = self._send(operation, request, sent_at=sent_at, expect=expect, cap=cap)
        try:
            members = loads(response.body)
        except ValueError:
            raise UntrustedAnswer(
                f"{operation}: the answer is not JSON", operation=operation
            ) from None
        return Reply(response.status, Answer(members, operation=operation), sent_at, self._now())

    def empty(self, operation: str, method: str, url: str, *, token: str) -> None:
        """Send once; the answer is 204 and says nothing."""
        request = self._request(operation, method, url, token=token, body=None, signed=True)
        self._send(operation, request, sent_at=self._now(), expect=204, cap=CALL)

    def _request(
        self,
        operation: str,
        method: str,
        url: str,
        *,
        token: str | None,
        body: Mapping[str, object] | None,
        signed: bool,
    ) -> Request:
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"GNAP {token}"
        try:
            content = None if body is None else canonical(dict(body))
            request = Request(method, target_uri(url), headers, content)
            if not signed:
                return request
            if self._identity is None:
                raise ValueError("the client has no identity to sign with")
            return sign(request, self._identity, created=int(self._now().timestamp()))
        except ValueError as error:
            raise NotSent(f"{operation}: {error}", operation=operation) from None

    def _send(
        self, operation: str, request: Request, *, sent_at: datetime, expect: int, cap: float
    ) -> Response:
        left = (self._deadline - sent_at).total_seconds()
        if left <= 0:
            raise NotSent(f"{operation}: no time left", operation=operation)
        try:
            response = self._transport.send(request, timeout=min(cap, left))
        except OpenPaymentsError as error:
            error.operation = operation
            raise
        if response.status == expect:
            return response
        if 400 <= response.status < 500:
            raise _refusal(operation, response)
        if response.status >= 500:
            raise OutcomeUnknown(
                f"{operation}: the server failed ({response.status})", operation=operation
            )
        raise UntrustedAnswer(
            f"{operation}: {response.status} in place of {expect}", operation=operation
        )


def _refusal(operation: str, response: Response) -> Refused:
    """Return the error. The server's words go no further: a hostile server chose them."""
    why = reason(operation, response.status, *_error_body(response.body))
    return Refused(
        f"{operation}: refused with {response.status} ({why})",
        operation=operation,
        status=response.status,
        reason=why,
    )


def _error_body(body: bytes) -> tuple[str, str]:
    """Return code and description, each "" if absent: errors also come as plain text."""
    try:
        outer = loads(body)
    except ValueError:
        outer = None
    inner = outer.get("error") if isinstance(outer, dict) else None
    if isinstance(inner, str):  # GNAP allows the bare code (RFC 9635, section 3.6)
        return inner, ""
    if not isinstance(inner, dict):
        return "", ""
    code, description = inner.get("code"), inner.get("description")
    return (
        code if isinstance(code, str) else "",
        description if isinstance(description, str) else "",
    )
