"""Structured logs (one JSON line per event) and CloudWatch EMF metrics, through Powertools.

Metrics have one dimension, the stack, so that the metrics of two stacks in one account do not mix.
Each line has the function's name as a field. Other modules log with Python's `logging` and count
with `count`. Before `start` (which `wiring.observe` calls in Lambda), lines follow the process's
own configuration, and counts are dropped. Secrets are redacted in every line: fields by their
names, text by its form. Of an exception, only its types and code lines are logged, not its text. A
session is logged by its reference (`ids.session_ref`), because anyone who has the session's id can
open its page. Debug lines are written for a sample of the requests.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

from checkout.domain.ground.errors import cause

if TYPE_CHECKING:  # loaded by `start` only
    from aws_lambda_powertools import Metrics

E = TypeVar("E")
C = TypeVar("C")
T = TypeVar("T")

NAMESPACE: Final = "CheckoutSessions"
# If one of these metrics increases, a person must act, so NeedsAttention, which has an alarm, is
# incremented, too.
ATTENTION: Final = "NeedsAttention"
FOR_A_PERSON: Final = frozenset(
    {"MailRefused", "MerchantKeyRefused", "MessagesLost", "WebhooksGivenUp"}
)
SAMPLE: Final = 100  # one in this many requests logs its debug lines
BLOT: Final = "***"

_LOGGERS: Final = ("checkout", "api", "pay", "dashboard", "expirer", "webhook_sender")
_SECRET_NAMES: Final = frozenset(
    {
        "api_key", "authorization", "body", "cookie", "encryption_key", "form_token", "grant",
        "hash", "interact_ref", "interact_url", "key", "nonce", "password", "private_key", "query",
        "secret", "signature", "token", "url",
    }
)  # fmt: skip
_SECRETS: Final = re.compile(
    r"sk_(?:test_|live_)?[0-9A-Za-z]{8,}"  # an API key
    r"|rk_(?:test_|live_)[0-9A-Za-z]{8,}"  # a restricted key of Stripe
    r"|cs_(?:test_)?[0-9A-Za-z]{8,}"  # a session's id, which is part of its URL
    r"|whsec_[0-9A-Za-z+/=_-]+"  # a webhook's secret
    r"|\bv1\.[0-9a-f]{8}\.[0-9A-Za-z_-]+"  # a ciphertext of the vault
    r"|\b(?:GNAP|Bearer) +\S+"
    r"|-----BEGIN [A-Z ]+-----[^-]*-----END [A-Z ]+-----"
    r"|\b[0-9A-Fa-f]{64}\b"  # ENCRYPTION_KEY
)

_request: ContextVar[str | None] = ContextVar("request_id", default=None)
_metrics: Metrics | None = None
_counting: Final = threading.Lock()
_dimensions: dict[str, str] = {}
_service = ""
_cold = True  # until the first invocation of this environment has ended


def start(service: str, stack: str = "checkout") -> None:
    """Log to standard output as JSON and emit metrics, as the function `service` of `stack`.

    A second call changes nothing.
    """
    global _cold, _dimensions, _metrics, _service
    if _metrics is not None:
        return
    _cold = True
    from aws_lambda_powertools import Metrics

    _service, _dimensions = service, {"stack": stack}
    _metrics = Metrics(namespace=NAMESPACE)
    _metrics.set_default_dimensions(**_dimensions)
    handler = _StandardOutput()
    handler.setFormatter(_formatter(service))
    handler.addFilter(_of_request)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False  # Lambda's own handler would log each line again


def stop() -> None:
    """Undo `start`, for tests."""
    global _metrics
    if _metrics is not None:
        _metrics.clear_default_dimensions()
        _metrics.clear_metrics()  # this sets default dimensions again if they are not cleared first
    _metrics = None
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


def count(name: str, value: float = 1, *, unit: str = "Count", reason: str | None = None) -> None:
    """Add `value` to metric `name`; with a `reason`, add it also with the reason as a dimension.

    Use only a few different reasons, because each reason makes a metric of its own.

    A zero is not sent, because CloudWatch charges for each hour in which it receives a metric.
    """
    if _metrics is None or not value:
        return
    _add(name, value, unit)
    if name in FOR_A_PERSON:
        _add(ATTENTION, value)
    if reason is not None:
        from aws_lambda_powertools.metrics import MetricUnit, single_metric

        own = {**_dimensions, "reason": reason}
        with single_metric(
            name, MetricUnit(unit), value, namespace=NAMESPACE, default_dimensions=own
        ) as metric:
            metric.add_metadata("service", _service)


def share(name: str, hit: bool) -> None:
    """Add 1 to metric `name` for a hit, otherwise 0: the metric's average is the share of hits.

    Use this only for rare actions of a customer, because even a zero writes a line.
    """
    _add(name, int(hit))


def _add(name: str, value: float, unit: str = "Count") -> None:
    if _metrics is not None:
        with _counting:  # the scheduled job counts in several threads
            _metrics.add_metric(name, unit, value)


def observed(handler: Callable[[E, C], T]) -> Callable[[E, C], T]:
    """Wrap a Lambda handler.

    The handler's log lines have the id of the invocation. Its metrics are flushed at the end, also
    after an error. The metrics of an environment's first invocation have the field `cold_start`.
    """

    @wraps(handler)
    def wrapped(event: E, context: C) -> T:
        try:
            with request(getattr(context, "aws_request_id", None)):
                return handler(event, context)
        finally:
            global _cold
            if _metrics is not None and _metrics.metric_set:
                _metrics.add_metadata("service", _service)
                if _cold:
                    _metrics.add_metadata("cold_start", True)
                _metrics.flush_metrics()
            _cold = False

    return wrapped


@contextmanager
def request(identity: str | None) -> Iterator[None]:
    """Add the id of this request or invocation to every line that is logged within the context."""
    before = _request.set(identity)
    try:
        yield
    finally:
        _request.reset(before)


def trace(error: BaseException) -> str:
    """Return the types and code lines of the whole chain of exceptions, without messages or values.

    The result is one text, because a log query shows only the first line of a list.
    """
    chain: list[str] = []
    below: BaseException | None = error
    while below is not None and len(chain) < 100:
        chain.append(f"{type(below).__module__}.{type(below).__qualname__}")
        frames = traceback.extract_tb(below.__traceback__)[-20:]
        chain += [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        below = below.__cause__ or below.__context__
    return "\n".join(chain)


def failure(error: BaseException) -> dict[str, Any]:
    """Return the fields of a line about a failure: its cause, and its place in the code."""
    return {"cause": cause(error), "trace": trace(error)}


def redacted(value: Any, name: str = "") -> Any:
    """Return `value` without secrets: fields are checked by name, all texts by their form."""
    if name.lower() in _SECRET_NAMES:
        return BLOT
    if isinstance(value, dict):
        return {redacted(key): redacted(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _SECRETS.sub(BLOT, str(value))


def sampled(request_id: str) -> bool:
    """Return whether this request's debug lines are logged, decided by its id."""
    digest = hashlib.sha256(request_id.encode()).digest()
    return int.from_bytes(digest[:4], "big") % SAMPLE == 0


class _StandardOutput(logging.Handler):
    """Look up sys.stdout for every record, because Lambda and pytest replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stdout.write(self.format(record) + "\n")


def _of_request(record: logging.LogRecord) -> bool:
    identity = _request.get()
    if record.levelno < logging.INFO and (identity is None or not sampled(identity)):
        return False
    if identity is not None and not hasattr(record, "request_id"):
        record.request_id = identity
    return True


def _formatter(service: str) -> logging.Formatter:
    from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

    class Redacting(LambdaPowertoolsFormatter):
        def serialize(self, log: Any) -> str:
            return super().serialize(redacted(log))

        def formatException(self, ei: Any) -> str:
            return trace(ei[1])

    return Redacting(service=service, utc=True, use_rfc3339=True, serialize_stacktrace=False)
