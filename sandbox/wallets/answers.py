"""Responses of a provider's three servers. Errors have Rafiki's statuses, codes and texts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from open_payments.transports import Response
from sandbox.wallets import javascript

_JSON = {"content-type": "application/json; charset=utf-8"}
_TEXT = {"content-type": "text/plain; charset=utf-8"}


class Refusal(Exception):
    """An error that ends the handling of a request. The response is `response`."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def ok(body: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(status, _JSON, javascript.stringify(body).encode())


def no_content() -> Response:
    return Response(204, {}, b"")


def text(status: int, phrase: str) -> Response:
    return Response(status, _TEXT, phrase.encode())


def gnap(status: int, code: str, description: str) -> Refusal:
    """Return an authorization server's error with an error code of GNAP."""
    return Refusal(ok({"error": {"code": code, "description": description}}, status))


def resource(
    status: int,
    description: str,
    *,
    details: Mapping[str, Any] | None = None,
    as_uri: str | None = None,
) -> Refusal:
    """Return a resource server's error.

    The error's `code` is the status as text. So errors with the same status differ only in their
    description.
    """
    error: dict[str, Any] = {"code": str(status), "description": description}
    if details is not None:
        error["details"] = dict(details)
    headers = dict(_JSON)
    if as_uri is not None:
        headers["www-authenticate"] = f"GNAP as_uri={as_uri}"
    return Refusal(Response(status, headers, javascript.stringify({"error": error}).encode()))


def plain(status: int, phrase: str) -> Refusal:
    """Return an error in plain text, like those of the web framework under Rafiki."""
    return Refusal(text(status, phrase))


def timestamp(moment: datetime) -> str:
    """Format as ISO 8601 with milliseconds and Z, like JavaScript."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='milliseconds')}Z"
