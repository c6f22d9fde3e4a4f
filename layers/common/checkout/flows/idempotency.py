"""Return the first answer to a repeated request, by its `Idempotency-Key` (decisions.md).

The answer is stored, as a `Reservation`, in the same transaction as the request's change, so
neither is ever stored without the other. Exception: when a session is created, the answer may be
stored before the session (`Reservation.session`). If a request is refused, nothing is stored, and
its key can be used for another request.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from checkout.domain.ground.errors import CheckoutError, IdempotencyKeyInvalid, IdempotencyKeyReused
from checkout.ports import KeyHeld, Reservation
from checkout.services import Services

T = TypeVar("T")

LIFETIME: Final = timedelta(hours=24)
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_KEY: Final = re.compile(r"[\x20-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a POST. A replay of the idempotency key has the same `body`."""

    status: int
    body: str
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted(Generic[T]):
    """A merchant's POST: idempotency key or None, fingerprint, and the function for its result.

    The fingerprint is used only with a key. Many requests are refused when they are repeated,
    because the first one has changed the state, or because time has passed. `lasting` means that
    these two reasons cannot occur, so after a refusal no stored answer is looked for.
    """

    merchant: str
    key: str | None
    fingerprint: str
    render: Callable[[T], str]
    status: int = 200
    lasting: bool = False


# A function that makes the stored answer, which is written together with a result. The `str`
# argument is a random text that identifies the write.
Reserve = Callable[[T, str], Reservation]


class _Reply(Generic[T]):
    """The answer to a POST with a key, which is stored in the transaction of its result."""

    def __init__(self, services: Services, posted: Posted[T], place: str) -> None:
        self._services = services
        self._posted = posted
        self._place = place
        self._stored: tuple[T, str] | None = None

    def reserve(self, result: T, writer: str) -> Reservation:
        """Return the stored answer, to write together with `result`. This method is a `Reserve`."""
        now = self._services.clock.now()
        body = self._posted.render(result)
        self._stored = result, body
        return Reservation(
            key=self._place,
            fingerprint=self._posted.fingerprint,
            status=self._posted.status,
            body=body,
            writer=writer,
            created_at=now,
            expires_at=now + LIFETIME,
        )

    def body(self, result: T) -> str:
        """Return the stored body, because a newly rendered one could show a later state."""
        stored = self._stored
        return stored[1] if stored and stored[0] == result else self._posted.render(result)


def answer(services: Services, posted: Posted[T], act: Callable[[Reserve[T] | None], T]) -> Answer:
    """Return the stored answer to `posted`. If there is none, call `act`, which stores a new one.

    `act` is called with the function that makes the stored answer, or with None if there is no key.
    If `act` refuses the request because the first request has already changed the state, the first
    answer is returned. Raises IdempotencyKeyInvalid, IdempotencyKeyReused, and the errors of `act`.
    """
    if posted.key is None:
        return Answer(posted.status, posted.render(act(None)), replayed=False)
    reply = _Reply(services, posted, _place(posted.merchant, posted.key))
    try:
        result = act(reply.reserve)
    except KeyHeld as held:
        return replayed(posted.fingerprint, held.reservation)
    except CheckoutError:
        found = None if posted.lasting else stored(services, posted.merchant, posted.key)
        if found is None or (found.session and services.sessions.get(found.session) is None):
            raise
        return replayed(posted.fingerprint, found)
    return Answer(posted.status, reply.body(result), replayed=False)


def stored(services: Services, merchant: str, key: str) -> Reservation | None:
    """Return the stored answer for a key, unless it has expired. Raises IdempotencyKeyInvalid."""
    found = services.sessions.reservation(_place(merchant, key))
    live = found is not None and found.expires_at > services.clock.now()
    return found if live else None


def replayed(fingerprint: str, held: Reservation) -> Answer:
    """Return the stored answer.

    Raises IdempotencyKeyReused if the answer was stored for other parameters.
    """
    if held.fingerprint != fingerprint:
        raise IdempotencyKeyReused(
            "This Idempotency-Key was already used with other parameters. Use a new key.",
            param="Idempotency-Key",
        )
    return Answer(held.status, held.body, replayed=True)


def fingerprint_of(operation: str, parameters: Any) -> str:
    """Return SHA-256 in hex of an operation and its parameters, which are JSON values."""
    canonical = json.dumps([operation, parameters], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _place(merchant: str, key: str) -> str:
    """Return the id of the stored answer for a key. Raises IdempotencyKeyInvalid."""
    if not _KEY.fullmatch(key):
        raise IdempotencyKeyInvalid(
            "Idempotency-Key must be 1 to 255 printable ASCII characters.", param="Idempotency-Key"
        )
    # Neither part can contain a line break, so different pairs give different texts.
    return hashlib.sha256(f"{merchant}\n{key}".encode()).hexdigest()


def json_text(value: Any) -> str:
    """Return compact JSON: the response's body, which a replay repeats byte for byte."""
    return _COMPACT.encode(value)
