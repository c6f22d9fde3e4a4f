"""Payment links whose customers choose the amount, and the rows that a purchase writes."""

from __future__ import annotations

from typing import Any

from checkout.domain.links import OpenAmount, PaymentLink
from tests.support.hosted_pages import Customer
from tests.support.merchant_api import PREFIX

BOUNDS = OpenAmount(100, 500_000, (500, 1_000))


def gift(visitor: Customer, bounds: OpenAmount = BOUNDS, **fields: Any) -> PaymentLink:
    price = (*bounds.suggestions, bounds.smallest)[0]
    return visitor.world.link(**{"open_amount": bounds, "unit_amount": price, **fields})


def rows(visitor: Customer) -> int:
    tables = ("checkout_sessions", "idempotency_keys")
    return sum(len(visitor.world.dynamo.rows(f"{PREFIX}-{table}")) for table in tables)
