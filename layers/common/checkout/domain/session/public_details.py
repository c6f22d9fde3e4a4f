"""The details of a customer as the merchant API shows them: `customer_details` of a session."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from checkout.domain.ground.addresses import Address
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails


def public_details(details: CustomerDetails) -> dict[str, Any] | None:
    """Return the details, with null for what was not given, or None if nothing was."""
    if details == NONE_GIVEN:
        return None
    return {
        "email": details.email,
        "name": details.name,
        "phone": details.phone,
        "shipping_address": _address(details.shipping),
        "billing_address": _address(details.billing),
        "answers": [
            {"key": each.key, "label": each.label, "value": each.value, "shown": each.shown}
            for each in details.answers
        ],
    }


def _address(address: Address | None) -> dict[str, str | None] | None:
    return asdict(address) if address is not None else None
