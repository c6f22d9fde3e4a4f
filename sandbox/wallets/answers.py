"""The answers of the three servers, and the refusals among them with Rafiki's statuses, codes and
texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from checkout.open_payments.transport import Response
from sandbox.wallets import javascript

_JSON = {"content-type": "application/json; charset=utf-8"}
_TEXT = {"content-type": "text/plain; charset=utf-8"}


class Refusal(Exception):
    """Ends the handling of a request with `response`."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def ok(body: Any, status: int = 200) -> Response:
    return Response(status, _JSON, javascript.stringify(body).encode())


def no_content() -> Response:
    return Response(204, {}, b"")


def text(status: int, phrase: str) -> Response:
    return Response(status, _TEXT, phrase.encode())


def gnap(status: int, code: str, description: str) -> Refusal:
    """An authorization server's refusal: `code` is GNAP's."""
    return Refusal(ok({"error": {"code": code, "description": description}}, status))


def resource(
    status: int,
    description: str,
    *,
    details: Mapping[str, Any] | None = None,
    as_uri: str | None = None,
) -> Refusal:
    """A resource server's refusal: `code` is the status as text; only the description tells them
    apart.
    """
    error: dict[str, Any] = {"code": str(status), "description": description}
    if details is not None:
        error["details"] = dict(details)
    headers = dict(_JSON)
    if as_uri is not None:
        headers["www-authenticate"] = f"GNAP as_uri={as_uri}"
    return Refusal(Response(status, headers, javascript.stringify({"error": error}).encode()))


def plain(status: int, phrase: str) -> Refusal:
    """A refusal in plain text, as the web framework under Rafiki gives it."""
    return Refusal(text(status, phrase))


def timestamp(moment: datetime) -> str:
    """ISO 8601 with milliseconds and Z, as JavaScript writes it."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='milliseconds')}Z"
