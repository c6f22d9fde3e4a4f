"""The transport that this package needs: something that sends an HTTP request.

`adapters/outbound/http.py` is the real one; the sandbox's and the simulator's are in-process. A
transport follows no redirect, adds no header of its own that is signed, and never re-serialises the
URL or the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """`url` is absolute and final (the URL signed is the URL sent); so are the bytes of `body`."""

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
        """Send once, within `timeout` seconds for everything together.

        Raises `errors.NotSent` when it is certain that no byte of the request reached the server
        (name not resolved, address refused, connection or TLS failed), and `errors.OutcomeUnknown`
        for all else.
        """
        ...
