"""Suspend a merchant, pause all sales, or revoke an API key, as the operator.

A suspended merchant gets no new sessions. From the next request on, the merchant's API keys cannot
create sessions. Within a minute, the merchant's payment links stop. In existing sessions, customers
cannot submit a wallet. Payments that have begun are finished. A suspension has no entry in the
merchant's audit log, because the log contains only what the merchant's own keys and people have
done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from checkout.domain.ground.errors import Conflict, KeyUnexpectedState
from checkout.domain.merchant.record import ApiKey, Merchant, Ownership, Suspension
from checkout.flows import merchants
from checkout.flows.merchant.api_keys import NewKey, change_copied, successor
from checkout.flows.merchant.settings import keys_behind
from checkout.flows.people import ownership
from checkout.services import DashboardServices

PAGE: Final = 100


@dataclass(slots=True)
class Changed:
    """The number of merchants that were changed, and the ids of merchants to try again."""

    done: int = 0
    again: list[str] = field(default_factory=list)


def every(services: DashboardServices) -> Iterator[Merchant]:
    """Yield all merchants, in no particular order."""
    after: str | None = None
    while True:
        page = services.merchants.page(limit=PAGE, after=after)
        yield from page.records
        if page.next_key is None:
            return
        after = page.next_key


def suspend(services: DashboardServices, merchant_id: str) -> Merchant:
    """Suspend a merchant and its keys. Raise ResourceMissing, Conflict."""
    return _set(services, merchant_id, Suspension.ALONE, owned=Ownership.REFUSED)


def resume(services: DashboardServices, merchant_id: str) -> Merchant:
    """End a merchant's suspension, even if it was caused by a pause of all sales.

    If the merchant signed up and has not proved that the wallet is theirs, `resume` means that the
    operator confirms it. Raise as `suspend` does, and Conflict also if the wallet belongs to
    another merchant.
    """
    merchant = merchants.get(services.merchants, merchant_id)
    if merchant.ownership in (Ownership.UNPROVEN, Ownership.REFUSED):
        ownership.take_wallet(services, merchant)
    return _set(services, merchant_id, None, owned=Ownership.PROVEN)


def pause_all(services: DashboardServices) -> Changed:
    """Suspend all merchants that are not suspended. A second run does no harm."""
    return _each(services, None, Suspension.WITH_ALL)


def resume_all(services: DashboardServices) -> Changed:
    """End the suspensions by `pause_all`. Those by `suspend` continue."""
    return _each(services, Suspension.WITH_ALL, None)


def revoke(services: DashboardServices, key: ApiKey) -> NewKey | None:
    """Revoke an API key, effective with its next request.

    If the merchant has no other full-access key without an expiry date, return a new key in place
    of the revoked one. Otherwise, the merchant's server could be left without a key. Raise
    KeyUnexpectedState, Conflict.
    """
    if key.revoked_at is not None:
        raise KeyUnexpectedState("This key has already been revoked.")
    revoked = replace(key, revoked_at=services.clock.now())
    others = (each for each in services.api_keys.of(key.merchant) if each.id != key.id)
    kept = next((each for each in others if each.lasting), None)
    made = None
    if kept is not None:
        written = services.api_keys.revoke(revoked, kept)
    else:
        merchant = merchants.get(services.merchants, key.merchant)
        made = successor(services, merchant, key)
        written = services.api_keys.roll(revoked, made.key, merchant)
    if not written:
        raise Conflict("The keys have changed in the meantime: run the command again.")
    return made


def _each(
    services: DashboardServices, before: Suspension | None, after: Suspension | None
) -> Changed:
    changed = Changed()
    for merchant in every(services):
        behind = merchant.suspended is after and keys_behind(services, merchant)
        if merchant.suspended is not before and not behind:
            continue
        try:
            _set(services, merchant.id, after)
            changed.done += 1
        except Conflict:
            changed.again.append(merchant.id)
    return changed


def _set(
    services: DashboardServices,
    merchant_id: str,
    suspended: Suspension | None,
    *,
    owned: Ownership | None = None,
) -> Merchant:
    """Write the suspension; if the merchant signed up and is unproven, also write `owned`."""

    def fields(merchant: Merchant) -> dict[str, Any]:
        signed_up = merchant.ownership not in (None, Ownership.PROVEN)
        more = {"ownership": owned} if owned is not None and signed_up else {}
        return {"suspended": suspended, **more}

    merchant = change_copied(services, merchant_id, fields)
    if keys_behind(services, merchant):
        raise Conflict("An API key was created meanwhile: run the command again.")
    return merchant
