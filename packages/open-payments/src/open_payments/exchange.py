"""One request and its answer: time, signature, status, JSON.

Before an answer is read further, its status decides whether the request had an effect
(`errors.py`). Every unexpected status is refused, and so are all redirects except those of a wallet
address (`discover`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from open_payments.answers import Answer, loads
from open_payments.errors import (
    BadRedirect,
    NotSent,
    OpenPaymentsError,
    OutcomeUnknown,
    Reason,
    Refused,
    UntrustedAnswer,
)
from open_payments.models import ClientIdentity
from open_payments.signatures import canonical, sign
from open_payments.transports import Request, Response, Transport
from open_payments.urls import authority, joined, target_uri

# In seconds. Some calls are slow: a quote probes the payment network, and the creation of an
# incoming payment may wait for the wallet.
CALL: Final = 10.0
SLOW_CALL: Final = 15.0
DOCUMENT: Final = 3.5  # a wallet address document: a small public file on any server

REDIRECTS_MAX: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


# Reasons of refusals: GNAP error codes (RFC 9635, section 3.6) and the reference server's texts, as
# recorded in conformance/answers.json. What matches no row is `Reason.OTHER`.
_GRANTS: Final = ("_grant", "_token")  # the ends of the names of calls to authorization servers
_BUSY: Final = frozenset({408, 409, 425, 429})

# For authorization servers the code decides. If a code has several meanings, the text decides, and
# the first row that matches is used. An empty text matches every text.
_AT_AUTH_SERVER: Final = (
    ("too_fast", "", Reason.TOO_FAST),
    ("request_denied", "", Reason.NOT_APPROVED),
    ("invalid_continuation", "", Reason.GRANT_GONE),
    ("invalid_interaction", "", Reason.GRANT_GONE),
    ("unknown_interaction", "", Reason.GRANT_GONE),
    ("user_denied", "", Reason.GRANT_GONE),
    ("invalid_rotation", "", Reason.NOT_ROTATED),  # the code for any other failed rotation
    ("invalid_client", "invalid access token", Reason.TOKEN_GONE),
    ("invalid_client", "invalid signature", Reason.BAD_SIGNATURE),
    ("invalid_client", "jwk client identifier", Reason.OTHER),
    ("invalid_client", "", Reason.CLIENT_UNKNOWN),
)

_CODES: Final = frozenset({"invalid_request", *(row[0] for row in _AT_AUTH_SERVER)})

# A schema's error about the type of the member `client`. Rafiki's validator says
# "… body.client must be string" and "… must match exactly one schema in oneOf".
_CLIENT_FORM: Final = re.compile(
    r"\bclient\b.{0,80}\b(?:must|should|expected|object|string|type)\b"
)

# At resource servers the code only repeats the status, so the status and the text decide.
_AT_RESOURCE_SERVER: Final = (
    (403, "inactive token", Reason.TOKEN_INACTIVE),
    (401, "invalid token", Reason.TOKEN_INACTIVE),
    (403, "insufficient grant", Reason.INSUFFICIENT_GRANT),
    (403, "unauthorized", Reason.BEYOND_LIMITS),
    (401, "unauthorized", Reason.NOT_FOUND),
    (401, "signature validation error: could not", Reason.CLIENT_UNKNOWN),
    (401, "signature validation error", Reason.BAD_SIGNATURE),
    (400, "invalid quote", Reason.INVALID_QUOTE),
    (404, "unknown quote", Reason.UNKNOWN_QUOTE),
    (400, "invalid receiver", Reason.INVALID_RECEIVER),
    (400, "non-positive receive amount", Reason.AMOUNT_TOO_SMALL),
    (400, "invalid amount", Reason.INVALID_AMOUNT),
    (400, "could not get wallet address", Reason.NOT_FOUND),
    (404, "incoming payment does not exist", Reason.NOT_OURS),
    (404, "quote does not exist", Reason.NOT_OURS),
    (404, "outgoing payment does not exist", Reason.NOT_OURS),
)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with the expected status. The times are before the send and after the receipt."""

    status: int
    answer: Answer
    sent_at: datetime
    answered_at: datetime


class Exchange:
    """Sends the requests of one client until `deadline`. `now` returns aware times.

    `on_refusal` is called with each refusal (4xx) before the refusal is raised.
    """

    def __init__(
        self,
        transport: Transport,
        identity: ClientIdentity | None,
        *,
        now: Callable[[], datetime],
        deadline: datetime,
        on_refusal: Callable[[Refused], None] = lambda refused: None,
    ) -> None:
        self._transport = transport
        self._identity = identity
        self._now = now
        self._deadline = deadline
        self._on_refusal = on_refusal

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
        """Send once, and return a JSON object with status `expect`. `cap` is in seconds."""
        sent_at = self._now()
        request = self._request(operation, method, url, token=token, body=body, signed=signed)
        response = self._send(operation, request, sent_at=sent_at, cap=cap)
        self._check_status(operation, request, response, expect=expect)
        return Reply(response.status, _json(operation, response), sent_at, self._now())

    def discover(self, operation: str, url: str) -> tuple[Answer, str]:
        """Read `url` unsigned, through up to 3 redirects; return the JSON and its last URL.

        Each hop is a separate request, so the transport checks the address of each hop. All hops
        together take no longer than DOCUMENT. Raises BadRedirect.
        """
        begun_at = self._now()
        for _ in range(REDIRECTS_MAX + 1):
            sent_at = self._now()
            cap = DOCUMENT - (sent_at - begun_at).total_seconds()
            request = self._request(operation, "GET", url, token=None, body=None, signed=False)
            response = self._send(operation, request, sent_at=sent_at, cap=cap)
            if response.status not in _REDIRECTS:
                self._check_status(operation, request, response, expect=200)
                return _json(operation, response), request.url
            url = _location(operation, request.url, response)
        raise BadRedirect(f"{operation}: more than {REDIRECTS_MAX} redirects", operation=operation)

    def empty(self, operation: str, method: str, url: str, *, token: str) -> None:
        """Send once, and expect a 204 without a body."""
        request = self._request(operation, method, url, token=token, body=None, signed=True)
        response = self._send(operation, request, sent_at=self._now(), cap=CALL)
        self._check_status(operation, request, response, expect=204)

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

    def _send(self, operation: str, request: Request, *, sent_at: datetime, cap: float) -> Response:
        left = min(cap, (self._deadline - sent_at).total_seconds())
        if left <= 0:
            raise NotSent(f"{operation}: no time left", operation=operation)
        try:
            return self._transport.send(request, timeout=left)
        except OpenPaymentsError as error:
            error.operation = operation
            raise

    def _check_status(
        self, operation: str, request: Request, response: Response, *, expect: int
    ) -> None:
        """Raise the error for a status other than `expect`."""
        if response.status == expect:
            return
        if 400 <= response.status < 500:
            refused = _refusal(operation, request, response)
            self._on_refusal(refused)
            raise refused
        if response.status >= 500:
            raise OutcomeUnknown(
                f"{operation}: the server failed ({response.status})", operation=operation
            )
        raise UntrustedAnswer(
            f"{operation}: {response.status} in place of {expect}", operation=operation
        )


def _location(operation: str, url: str, response: Response) -> str:
    """Return the https URL to which a redirect of `url` leads. Raise BadRedirect."""
    try:
        found = joined(url, response.headers.get("location", ""))
    except ValueError as error:
        raise BadRedirect(f"{operation}: bad redirect: {error}", operation=operation) from None
    if not found.startswith("https://"):
        raise BadRedirect(f"{operation}: bad redirect: not https", operation=operation)
    return found


def _json(operation: str, response: Response) -> Answer:
    try:
        members = loads(response.body)
    except ValueError:
        raise UntrustedAnswer(f"{operation}: the answer is not JSON", operation=operation) from None
    return Answer(members, operation=operation)


def _refusal(operation: str, request: Request, response: Response) -> Refused:
    """Return the error.

    The error does not keep the server's text, because the server may be hostile.
    """
    code, description = _error_body(response.body)
    why = reason(operation, response.status, code, description)
    return Refused(
        f"{operation}: refused with {response.status} ({why})",
        operation=operation,
        status=response.status,
        reason=why,
        code=known_code(code),
        host=authority(request.url),
    )


def _error_body(body: bytes) -> tuple[str, str]:
    """Return code and description; each is "" if absent, because some errors are plain text."""
    try:
        outer = loads(body)
    except ValueError:
        outer = None
    inner = outer.get("error") if isinstance(outer, dict) else None
    if isinstance(inner, str):  # GNAP allows the code alone (RFC 9635, section 3.6)
        return inner, ""
    if not isinstance(inner, dict):
        return "", ""
    code, description = inner.get("code"), inner.get("description")
    return (
        code if isinstance(code, str) else "",
        description if isinstance(description, str) else "",
    )


def reason(operation: str, status: int, code: str, description: str) -> Reason:
    """Return the reason why a server refused `operation` (the client's method) with 4xx `status`.

    `code` and `description` may be "".
    """
    text = description.lower()
    if operation == "complete_incoming_payment" and status == 409 and text == "wrong state":
        return Reason.WRONG_STATE
    if operation.endswith(_GRANTS) and code == "too_fast":  # with 429, which alone is BUSY
        return Reason.TOO_FAST
    if status in _BUSY:
        return Reason.BUSY
    if operation.startswith("request_") and _CLIENT_FORM.search(text):
        return Reason.CLIENT_FORM
    if operation.endswith(_GRANTS):
        for row_code, row_text, found in _AT_AUTH_SERVER:
            if code == row_code and text.startswith(row_text):
                return found
    else:
        for row_status, row_text, found in _AT_RESOURCE_SERVER:
            if status == row_status and text.startswith(row_text):
                return found
    return Reason.NOT_FOUND if status in (404, 410) else Reason.OTHER


def known_code(code: str) -> str:
    """Return the error `code` of an authorization server if a row above has it, else ""."""
    return code if code in _CODES else ""
