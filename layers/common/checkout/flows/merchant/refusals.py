"""Keep the refused requests of an API key, and show them to its merchant.

Nothing is written for a request that succeeds, nor for one without a valid key. Each process writes
few of them, and of a key each minute gets few: a flood of wrong requests costs a read or nothing.
"""

from __future__ import annotations

from checkout.domain.ground.errors import CheckoutError, ResourceMissing
from checkout.domain.ground.limits import REFUSAL
from checkout.domain.merchant.failed_requests import Refusal
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import ApiKey
from checkout.ports.services import DashboardServices, Services


def note(services: Services, key: ApiKey, refusal: Refusal) -> None:
    """Keep a refused request, best effort: it raises nothing and fails no request."""
    if services.limits.take(REFUSAL, key.id):
        return
    try:
        after = services.refusals.of(key.id).with_one(refusal)
        if after is not None:
            services.refusals.put(after)
    except CheckoutError:
        return


def of(
    services: DashboardServices, actor: Actor, key_id: str
) -> tuple[ApiKey, tuple[Refusal, ...]]:
    """Return a key of the actor's merchant with its refused requests, newest first.

    Raise ResourceMissing.
    """
    keys = services.api_keys.of(actor.merchant)
    key = next((each for each in keys if each.id == key_id), None)
    if key is None:
        raise ResourceMissing("No such API key.")
    return key, services.refusals.of(key.id).since(services.clock.now())
