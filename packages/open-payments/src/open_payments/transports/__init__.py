"""Transports, which send the HTTP requests of this package.

`public.PublicTransport` is the guarded default; `httpx_client.HttpxTransport` uses a client of your
own. A transport follows no redirect, adds no signed header, and never changes the bytes of the URL
or the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """`url` and the bytes of `body` are final: they are sent as they were signed."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """`headers` has lower-case names."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Transport(Protocol):
    def send(self, request: Request, *, timeout: float) -> Response:
        """Send once. Everything together takes at most `timeout` seconds.

        Raises `errors.NotSent` if it is certain that no byte of the request reached the server
        (name not resolved, address refused, connection or TLS failed), and `errors.OutcomeUnknown`
        for all other failures.
        """
        ...
