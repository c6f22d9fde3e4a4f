"""After ENCRYPTION_KEY was rotated: what merchants keep sealed is sealed anew under the new key.

Each merchant is written on condition that it is as it was read, so it goes on beside checkouts and
the dashboard, can be broken off at any time, and begins again without harm: what is under the new
key already is left alone. Refuses to drop anything: what does not open stays as it is, and is
counted. Sessions are left alone too: their secrets go with them within days (docs/operating.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from checkout.domain.merchant import Merchant, private_key_place
from checkout.domain.webhooks import Endpoint, secret_place
from checkout.ports.merchants import StaleMerchant
from checkout.ports.runtime import Vault
from checkout.ports.services import PayServices

PAGE: Final = 100
GIVE_WAY: Final = 5  # how often a loser of a write begins that merchant anew


@dataclass(slots=True)
class Progress:
    """`unreadable` are the merchants that hold what neither key opens; `busy` those that others
    kept changing.
    """

    looked_at: int = 0
    renewed: int = 0
    unreadable: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not self.unreadable and not self.busy


def re_encrypt(services: PayServices, *, tell: Callable[[Progress], None]) -> Progress:
    """Go through all merchants; `tell` hears of each page. Raises `errors.Unavailable`: what was
    done is done, and the next run goes on.
    """
    progress = Progress()
    after: str | None = None
    while True:
        page = services.merchants.page(limit=PAGE, after=after)
        for merchant in page.merchants:
            _deal_with(services, merchant, progress)
        tell(progress)
        if page.next_key is None:
            return progress
        after = page.next_key


def _deal_with(services: PayServices, merchant: Merchant, progress: Progress) -> None:
    progress.looked_at += 1
    for _ in range(GIVE_WAY):
        try:
            changed = _renewed(services.vault, merchant)
        except ValueError:
            progress.unreadable.append(merchant.id)
            return
        if changed is None:
            return
        try:
            services.merchants.replace(changed)
        except StaleMerchant as stale:
            merchant = stale.current
            continue
        progress.renewed += 1
        return
    progress.busy.append(merchant.id)


def _renewed(vault: Vault, merchant: Merchant) -> Merchant | None:
    """The merchant's next version, or None: all is under the newest key already. Raises ValueError
    where something does not open.
    """
    place = private_key_place(merchant.id)
    private_key = _again(vault, merchant.private_key, place)
    endpoint = _endpoint(vault, merchant)
    if (private_key, endpoint) == (merchant.private_key, merchant.endpoint):
        return None
    return merchant.changed(private_key=private_key, endpoint=endpoint)


def _endpoint(vault: Vault, merchant: Merchant) -> Endpoint | None:
    if merchant.endpoint is None:
        return None
    place = secret_place(merchant.id)
    secrets = tuple(
        replace(secret, sealed=_again(vault, secret.sealed, place))
        for secret in merchant.endpoint.secrets
    )
    return replace(merchant.endpoint, secrets=secrets)


def _again(vault: Vault, sealed: str, place: tuple[str, str, str]) -> str:
    plain = vault.open(sealed, place=place)
    return sealed if vault.is_current(sealed) else vault.seal(plain, place=place)
