"""Encrypt merchants' secrets again after ENCRYPTION_KEY was rotated.

Each merchant's record is written only if it has not changed since it was read, so the run does not
disturb checkouts and the dashboard. The run can be stopped and started again, because secrets that
are already encrypted with the new key are not changed. A secret that neither the old nor the new
key can decrypt is not changed, but counted. Sessions are not changed. Some of their secrets are
removed within days (docs/operating.md); the others are encrypted with a key of their merchant,
which this run encrypts again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from checkout.domain.ground.errors import Conflict
from checkout.domain.merchant.record import (
    Identity,
    Merchant,
    ServiceKey,
    details_key_place,
    private_key_place,
)
from checkout.domain.webhooks.record import Endpoint
from checkout.flows.retry_on_conflict import retry_on_conflict
from checkout.flows.session import details
from checkout.ports import SecretUnreadable
from checkout.services import PayServices

if TYPE_CHECKING:
    from checkout.adapters.vault import AesVault

T = TypeVar("T", ServiceKey, Identity)

PAGE: Final = 100


@dataclass(slots=True)
class Progress:
    """Counts of one run.

    `renewed` counts the merchants with a secret that was encrypted again. `unreadable` merchants
    have a damaged record, or a secret that neither key can decrypt. `busy` merchants were changed
    too often by other requests during the run.
    """

    checked: int = 0
    renewed: int = 0
    unreadable: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not self.unreadable and not self.busy


def re_encrypt(services: PayServices, *, on_progress: Callable[[Progress], None]) -> Progress:
    """Encrypt the secrets of all merchants again, and call `on_progress` after each page.

    After it raises `errors.Unavailable`, another run encrypts the rest.
    """
    progress = Progress()
    after: str | None = None
    while True:
        page = services.merchants.page(limit=PAGE, after=after)
        for merchant in page.records:
            _renew(services, merchant, progress)
        progress.unreadable += page.unreadable
        on_progress(progress)
        if page.next_key is None:
            return progress
        after = page.next_key


def _renew(services: PayServices, merchant: Merchant, progress: Progress) -> None:
    progress.checked += 1
    renewed = False

    def changed(current: Merchant) -> Merchant:
        nonlocal renewed
        after = _renewed(services, current)
        renewed = after is not current
        return after

    try:
        retry_on_conflict(merchant, changed, services.merchants.replace)
    except SecretUnreadable:
        progress.unreadable.append(merchant.id)
    except Conflict:
        progress.busy.append(merchant.id)
    else:
        progress.renewed += renewed


def _renewed(services: PayServices, merchant: Merchant) -> Merchant:
    """Return the merchant with its secrets encrypted with the newest key.

    If no secret has to be encrypted again, the same object is returned.

    The API needs a copy of the merchant's key for customers' details that AWS KMS encrypts with
    DETAILS_KMS_KEY. If DETAILS_KMS_KEY was set after the merchant's setup, this copy is made now.
    Raises SecretUnreadable if a secret cannot be decrypted.
    """
    vault = services.vault
    place = private_key_place(merchant.id)
    private_key = _again(vault, merchant.private_key, place)
    first = merchant.endpoint and _endpoint(vault, merchant, merchant.endpoint)
    further = tuple(_endpoint(vault, merchant, each) for each in merchant.further_endpoints)
    details_key = _again(vault, merchant.details_key, details_key_place(merchant.id))
    after = replace(
        merchant,
        private_key=private_key,
        endpoint=first,
        further_endpoints=further,
        details_key=details_key,
        details_key_kms=details.wrapped_again(vault, services.details_keys, merchant),
        service_keys=_all_again(vault, merchant.service_keys, place),
        former=_all_again(vault, merchant.former, place),
    )
    return merchant if after == merchant else replace(after, version=merchant.version + 1)


def _endpoint(vault: AesVault, merchant: Merchant, endpoint: Endpoint) -> Endpoint:
    place = merchant.secret_place(endpoint)
    secrets = tuple(
        replace(secret, sealed=_again(vault, secret.sealed, place)) for secret in endpoint.secrets
    )
    return replace(endpoint, secrets=secrets)


def _all_again(vault: AesVault, keys: tuple[T, ...], place: tuple[str, str, str]) -> tuple[T, ...]:
    return tuple(replace(each, private_key=_again(vault, each.private_key, place)) for each in keys)


def _again(vault: AesVault, sealed: str, place: tuple[str, str, str]) -> str:
    plain = vault.open(sealed, place=place)
    return sealed if vault.is_current(sealed) else vault.seal(plain, place=place)
