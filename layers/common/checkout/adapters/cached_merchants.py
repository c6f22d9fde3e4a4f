"""A cache of merchants, for a minute per process: a payment reads its merchant once."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.ports import Clock, MerchantPage, Merchants, Reservation

REMEMBERED: Final = timedelta(seconds=60)
MERCHANTS_MAX: Final = 1_000


class CachedMerchants:
    """`ports.Merchants` in front of another. Only `get` is cached."""

    def __init__(self, merchants: Merchants, clock: Clock) -> None:
        self._merchants = merchants
        self._clock = clock
        self._known: dict[str, tuple[datetime, Merchant]] = {}
        self._lock = threading.Lock()

    def get(self, merchant_id: str, identity: int = 0) -> Merchant | None:
        now = self._clock.now()
        with self._lock:
            known = self._known.get(merchant_id)
        if known is not None and now < known[0] and identity <= known[1].identity:
            return known[1]
        merchant = self._merchants.get(merchant_id)
        if merchant is not None:
            with self._lock:
                if len(self._known) >= MERCHANTS_MAX:
                    self._known.clear()
                self._known[merchant_id] = (now + REMEMBERED, merchant)
        return merchant

    def latest(self, merchant_id: str) -> Merchant | None:
        return self._merchants.latest(merchant_id)

    def add(self, merchant: Merchant, key: ApiKey) -> Merchant | None:
        return self._merchants.add(merchant, key)

    def replace(self, merchant: Merchant, reservation: Reservation | None = None) -> None:
        self._merchants.replace(merchant, reservation)
        with self._lock:
            self._known.pop(merchant.id, None)

    def move(self, merchant: Merchant) -> Merchant | None:
        other = self._merchants.move(merchant)
        with self._lock:
            self._known.pop(merchant.id, None)
        return other

    def find_by_wallet(self, wallet_address: str) -> Merchant | None:
        return self._merchants.find_by_wallet(wallet_address)

    def page(self, *, limit: int, after: str | None = None) -> MerchantPage:
        return self._merchants.page(limit=limit, after=after)
