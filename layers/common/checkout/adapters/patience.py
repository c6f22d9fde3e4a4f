"""Limit the wait for a silent store to the time that a request may take and its process has.

A request that has lost one call to AWS does not wait that long again: further calls are made once,
with short timeouts. The same holds near the end of the process's time, because Lambda kills the
process then, and nobody would get an answer. A write without an answer still has an unknown
outcome, which its condition and writer resolve (domain/session/transitions.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol

from botocore.config import Config
from botocore.exceptions import ConnectionError, HTTPClientError

from checkout.domain.ground.errors import Unavailable
from checkout.version import VERSION

# botocore would check each request against its model and build the User-Agent anew, which is a
# third of the time of a call. The requests of the stores are checked by their tests and by
# DynamoDB.
_LEAN: Final[dict[str, Any]] = {
    "parameter_validation": False,
    "user_agent": f"checkout-sessions/{VERSION}",
}
# A table answers in milliseconds; a slower call is tried again on another connection. Times are in
# seconds.
USUAL: Final = Config(
    connect_timeout=1,
    read_timeout=1.5,
    retries={"mode": "standard", "total_max_attempts": 2},
    max_pool_connections=24,  # one for each thread of the sweep (adapters/runtime.py)
    **_LEAN,
)
# For calls that nobody should wait for: health, courtesies, and tasks after the response.
BRIEF: Final = Config(
    connect_timeout=0.5,
    read_timeout=1,
    retries={"mode": "standard", "total_max_attempts": 1},
    **_LEAN,
)
# For an operator's command, which reads whole tables from a machine that may be far away.
THOROUGH: Final = Config(
    connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 5}
)
_BACKOFF: Final = 1.0  # botocore's standard mode waits up to this long before the second attempt
_TO_ANSWER: Final = 1.0  # of the process's time is reserved for the response


def longest(config: Config) -> float:
    """Return the seconds after which a call without an answer has failed."""
    options: Any = config
    attempts: int = options.retries["total_max_attempts"]
    each: float = options.connect_timeout + options.read_timeout
    return attempts * each + (attempts - 1) * _BACKOFF


_LONGEST_BRIEF: Final = longest(BRIEF)
_LONGEST_USUAL: Final = longest(USUAL)


class Context(Protocol):
    """The part of Lambda's context object that is used."""

    def get_remaining_time_in_millis(self) -> int: ...


@dataclass(slots=True)
class _Request:
    ends_at: float
    lost: bool = False


_request: ContextVar[_Request | None] = ContextVar("aws_patience", default=None)


@contextmanager
def one_request(context: Context | None) -> Iterator[None]:
    """Limit the waits within to the process's time, according to Lambda's `context`.

    Without a context, outside of Lambda, there is no end.
    """
    left = math.inf if context is None else context.get_remaining_time_in_millis() / 1000
    before = _request.set(_Request(time.monotonic() + left))
    try:
        yield
    finally:
        _request.reset(before)


class PatientClient:
    """A client of AWS in front of one of `USUAL` and one of `BRIEF`.

    Outside of `one_request` it is the usual one. Raises Unavailable if no time is left.
    """

    def __init__(self, usual: Any, brief: Any) -> None:
        self._usual = usual
        self._brief = brief

    def __getattr__(self, operation: str) -> Any:
        def call(**asked: Any) -> Any:
            request = _request.get()
            if request is None:
                return getattr(self._usual, operation)(**asked)
            try:
                return getattr(self._chosen(request), operation)(**asked)
            except (ConnectionError, HTTPClientError):
                request.lost = True
                raise

        return call

    def _chosen(self, request: _Request) -> Any:
        left = request.ends_at - time.monotonic() - _TO_ANSWER
        if left < _LONGEST_BRIEF:
            raise Unavailable("The data store is not answering.")
        return self._brief if request.lost or left < _LONGEST_USUAL else self._usual
