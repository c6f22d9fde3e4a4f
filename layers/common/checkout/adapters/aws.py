"""Calls to AWS: the clients' timeouts, which errors to retry, and when to stop trying.

Three layers limit or repeat calls:

    boto3 client    retries after a lost connection, within the timeouts of its `Config`
    Persistent      repeats a call that wrote nothing because of a concurrent transaction, and
                    repeats a call without an answer once
    PatientClient   limits how long one request waits for a store that does not answer: at most
                    until shortly before its process must end

If one call of a request had no answer, all further calls of this request are made only once, with
short timeouts. Calls near the end of the process's time are treated in the same way, because Lambda
would otherwise kill the process before it can respond. The outcome of a write without an answer is
unknown, but the condition of the write, and the random `writer` in the record, show later whether
the write was made (domain/session/transitions.py).

If the code or the deployment is wrong (validation, permission, missing table), AWS's error is
raised unchanged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
)

from checkout import telemetry
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.ids import RandomBytes
from checkout.version import VERSION

Answer = dict[str, Any]

AWS_ERRORS: Final = (ClientError, BotoCoreError)

CONDITION_FAILED: Final = "ConditionalCheckFailed"
_CANCELED: Final = "TransactionCanceledException"
_CONFLICTS: Final = {
    "TransactionConflict",
    "TransactionConflictException",
    "TransactionInProgressException",
}
_OVERLOAD: Final = {
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingError",
    "ThrottlingException",
}

# The number of tries. A write that failed because of a concurrent transaction wrote nothing, so it
# is tried again after some milliseconds. After a lost connection, the client has already retried,
# so the call is tried only once more.
CONFLICT_TRIES: Final = 8
LOST_TRIES: Final = 2
_FIRST_PAUSE: Final = 0.02  # seconds
_LONGEST_PAUSE: Final = 0.2
BATCH_GET_MAX: Final = 100  # items
_BATCH_PUT_MAX: Final = 25  # items
_NO_PROGRESS_MAX: Final = 4


def code(error: ClientError) -> str:
    result: str = error.response.get("Error", {}).get("Code", "")
    return result


def reasons(error: ClientError) -> list[Answer]:
    """Return the reasons for a transaction's cancellation, one per item, or [] for other errors."""
    if code(error) != _CANCELED:
        return []
    result: list[Answer] = error.response.get("CancellationReasons", [])
    return result


def ask(operation: Callable[..., Answer], **request: Any) -> Answer:
    """Make one call. Raise Unavailable if there is no answer, or AWS's own error if AWS refuses."""
    try:
        return operation(**request)
    except AWS_ERRORS as error:
        if _tries(error) > 1:
            raise _unavailable(error) from error
        raise


class Persistent:
    """Makes calls that are safe to repeat.

    A repeated write is recognized by its condition and writer, or by its ClientRequestToken.
    """

    def __init__(self, sleep: Callable[[float], None], random_bytes: RandomBytes) -> None:
        self._sleep = sleep
        self._random_bytes = random_bytes

    def ask(self, operation: Callable[..., Answer], **request: Any) -> Answer:
        """Make one call, and repeat it after growing, random pauses. Raise as function `ask`."""
        tried = 0
        while True:
            try:
                return operation(**request)
            except AWS_ERRORS as error:
                tries = _tries(error)
                if tries == 1:
                    raise
                tried += 1
                if tried >= tries:
                    raise _unavailable(error) from error
            self.pause(tried)

    def batch_get(
        self, client: Any, table: str, ids: list[str], attributes: Iterable[str] = ()
    ) -> dict[str, Answer]:
        """Read items by `id`, strongly consistent, BATCH_GET_MAX in each call.

        Missing items are left out. With `attributes`, only these attributes are read, because
        botocore takes 10 µs to parse each attribute.
        """
        names = {f"#{name}": name for name in attributes}
        only = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        found: dict[str, Answer] = {}
        keys = [{"id": {"S": each}} for each in ids]
        without_progress = 0
        while keys:
            asked = keys[:BATCH_GET_MAX]
            request = {table: {"Keys": asked, "ConsistentRead": True, **(only if names else {})}}
            answer = ask(client.batch_get_item, RequestItems=request)
            items = answer["Responses"].get(table, [])
            found.update((item["id"]["S"], item) for item in items)
            again = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            keys = again + keys[BATCH_GET_MAX:]
            if again and not items:
                without_progress = self._wait_for_progress(without_progress)
        return found

    def batch_put(self, client: Any, table: str, items: list[Answer]) -> None:
        """Put items without a condition. Repeating this after a lost answer changes nothing."""
        left = [{"PutRequest": {"Item": item}} for item in items]
        without_progress = 0
        while left:
            sent = left[:_BATCH_PUT_MAX]
            request = {"RequestItems": {table: sent}}
            answer = self.ask(client.batch_write_item, **request)
            again = answer.get("UnprocessedItems", {}).get(table, [])
            left = again + left[_BATCH_PUT_MAX:]
            if len(again) == len(sent):
                without_progress = self._wait_for_progress(without_progress)

    def _wait_for_progress(self, times: int) -> int:
        """Pause after an answer in which DynamoDB has processed nothing of a batch.

        `times` is the number of such answers before this one. Returns `times` + 1. Raises
        Unavailable after _NO_PROGRESS_MAX such answers.
        """
        if times + 1 == _NO_PROGRESS_MAX:
            raise Unavailable("The data store is not answering.")
        self.pause(times + 1)
        return times + 1

    def pause(self, tried: int) -> None:
        longest = min(_FIRST_PAUSE * 2**tried, _LONGEST_PAUSE)
        self._sleep(longest * int.from_bytes(self._random_bytes(2), "big") / 0x10000)


def _tries(error: ClientError | BotoCoreError) -> int:
    """Return how many tries make sense in total after `error`: only 1 if AWS has refused."""
    if not isinstance(error, ClientError):
        lost = isinstance(error, ConnectionError | HTTPClientError | CredentialRetrievalError)
        return LOST_TRIES if lost else 1
    codes = {code(error)} | {reason.get("Code") for reason in reasons(error)}
    if CONDITION_FAILED in codes:  # do not retry after a failed condition, whatever else failed
        return 1
    if codes & _CONFLICTS:
        return CONFLICT_TRIES
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    overloaded = bool(codes & _OVERLOAD) or status >= 500
    return LOST_TRIES if overloaded or _key_service_failed(error) else 1


def _unavailable(error: ClientError | BotoCoreError) -> Unavailable:
    """Return Unavailable for an error without an answer. Count an unusable KMS key as a metric."""
    if isinstance(error, ClientError) and _key_service_failed(error):
        telemetry.count("KeyUnreadable")
    return Unavailable("The data store is not answering.")


def _key_service_failed(error: ClientError) -> bool:
    """Return whether a table refused the call because its KMS key cannot be used."""
    message: str = error.response.get("Error", {}).get("Message", "")
    known = ("services.kms", "KMS key", "INACCESSIBLE_ENCRYPTION_CREDENTIALS")
    return code(error).startswith("KMS") or any(each in message for each in known)


# By default, botocore checks each request against its model and builds the User-Agent each time,
# which takes a third of the time of a call. The checks are switched off, because the stores' tests
# and DynamoDB itself check the requests.
_LEAN: Final[dict[str, Any]] = {
    "parameter_validation": False,
    "user_agent": f"checkout-sessions/{VERSION}",
}
# A table answers in milliseconds, so a slower call is tried again on another connection. Times are
# in seconds.
USUAL: Final = Config(
    connect_timeout=1,
    read_timeout=1.5,
    retries={"mode": "standard", "total_max_attempts": 2},
    max_pool_connections=24,  # one for each thread of the sweep (adapters/runtime.py)
    **_LEAN,
)
# For calls that must not delay anybody: health checks, optional writes, tasks after the response.
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
_BACKOFF: Final = 1.0  # seconds: botocore's longest wait before the second attempt
_TO_ANSWER: Final = 1.0  # seconds of the process's time that are reserved for the response


def longest(config: Config) -> float:
    """Return the seconds after which a call that gets no answer has certainly failed."""
    options: Any = config
    attempts: int = options.retries["total_max_attempts"]
    each: float = options.connect_timeout + options.read_timeout
    return attempts * each + (attempts - 1) * _BACKOFF


_LONGEST_BRIEF: Final = longest(BRIEF)
_LONGEST_USUAL: Final = longest(USUAL)


class Context(Protocol):
    """The part of Lambda's context object that this product uses."""

    def get_remaining_time_in_millis(self) -> int: ...


@dataclass(slots=True)
class _Request:
    ends_at: float
    lost: bool = False


_request: ContextVar[_Request | None] = ContextVar("aws_patience", default=None)


@contextmanager
def one_request(context: Context | None) -> Iterator[None]:
    """Limit all waits in the `with` block to the time that the process has left.

    Lambda's `context` returns this time. Outside of Lambda, `context` is None, and waits have no
    limit.
    """
    left = math.inf if context is None else context.get_remaining_time_in_millis() / 1000
    before = _request.set(_Request(time.monotonic() + left))
    try:
        yield
    finally:
        _request.reset(before)


class PatientClient:
    """A client of AWS that passes each call to one of two clients: usual or brief timeouts.

    The brief one is used if a call of the request had no answer, or if little time is left. Outside
    of `one_request`, the usual one is always used. Raises Unavailable if no time is left.
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
