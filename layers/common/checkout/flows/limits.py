"""Refuse a client who causes more than a rule allows."""

from __future__ import annotations

import math
from typing import Protocol

from checkout.domain.errors import RateLimited
from checkout.domain.limits import Rule
from checkout.ports.limits import Limits


class Limited(Protocol):
    """A bag of services with limits."""

    @property
    def limits(self) -> Limits: ...


def admit(services: Limited, rule: Rule, client: str | None) -> None:
    """Count one more for `client`. Raises RateLimited. None is nobody, and has no limit."""
    wait = _wait(services, rule, client)
    if wait > 0:
        raise RateLimited(
            "There were too many requests from this network address; try again later.",
            retry_after=math.ceil(wait),
        )


def admits(services: Limited, rule: Rule, client: str | None) -> bool:
    """Count one more for `client`; return whether the rule allows it."""
    return _wait(services, rule, client) == 0


def _wait(services: Limited, rule: Rule, client: str | None) -> float:
    return services.limits.take(rule, client) if client is not None else 0
