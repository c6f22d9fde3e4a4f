"""Refuse a client who causes more than its share. None is nobody, and has no limit."""

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


def admit(services: Limited, rule: Rule, client: str) -> None:
    """Count one more for `client` in this process. Raises RateLimited."""
    _refuse(services.limits.take(rule, client))


def admit_work(services: Limited, rule: Rule, client: str | None, *, provider: str) -> None:
    """Count one more work at the wallets of `provider`, before it begins. Raises RateLimited.

    The first ones by `rule` at a provider that is known are not counted.
    """
    if client is None:
        return
    first = services.limits.take(rule, client) == 0
    if not (first and services.limits.knows(provider)):
        _refuse(services.limits.take_shared(client))


def admit_item(services: Limited, link: str, client: str) -> None:
    """Count one more item that `client` takes of a link's stock. Raises RateLimited."""
    _refuse(services.limits.take_item(link, client))


def admits_work(services: Limited, client: str | None) -> bool:
    """Count one more work at wallets; return whether it may begin."""
    return client is None or services.limits.take_shared(client) == 0


def _refuse(wait: float) -> None:
    if wait > 0:
        raise RateLimited(
            "There were too many requests from this network address; try again later.",
            retry_after=math.ceil(wait),
        )
