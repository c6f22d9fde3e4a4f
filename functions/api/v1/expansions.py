"""The names that `expand` takes: those that Stripe's objects have, as far as they exist here.

An object that never exists here stays null, whatever is expanded inside of it, and one that is
always shown whole stays so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from api.v1.forms import Parsed
from checkout.domain.errors import ParameterInvalid

SESSION: Final = "checkout.session"
ITEMS: Final = "list"
PAYMENT: Final = "payment_intent"
CHARGE: Final = "charge"
REFUND: Final = "refund"
NOTHING: Final = ""  # an object that never exists here, or is always whole

_OF_CHARGE: Final = dict.fromkeys(
    (
        *("application", "application_fee", "balance_transaction", "customer", "dispute"),
        *("failure_balance_transaction", "invoice", "on_behalf_of", "payment_method", "review"),
        *("source_transfer", "transfer", "transfer_data.destination"),
    ),
    NOTHING,
)
# By the kind of the object: its fields that can be expanded, with the kind of each.
# Source: `x-expandableFields` of Stripe's OpenAPI document.
_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    SESSION: {
        "line_items": ITEMS,
        "payment_intent": PAYMENT,
        "total_details.breakdown": NOTHING,
        "shipping_cost.shipping_rate": NOTHING,
        "shipping_cost.taxes": NOTHING,
        "shipping_options.shipping_rate": NOTHING,
        "automatic_tax.liability.account": NOTHING,
        **dict.fromkeys(
            (
                *("customer", "customer_account", "discounts", "invoice", "invoice_creation"),
                *("payment_link", "setup_intent", "subscription", "optional_items"),
                *("payment_method_configuration_details", "collected_information"),
            ),
            NOTHING,
        ),
    },
    ITEMS: {"data": "item"},
    "item": {"price": "price", "discounts": NOTHING, "taxes": NOTHING, "product": NOTHING},
    "price": {"product": "product", "currency_options": NOTHING, "tiers": NOTHING},
    "product": {"default_price": NOTHING, "tax_code": NOTHING},
    PAYMENT: {
        "latest_charge": "charge of a payment",
        "transfer_data.destination": NOTHING,
        **dict.fromkeys(
            (
                *("application", "customer", "customer_account", "invoice", "on_behalf_of"),
                *("payment_method", "review", "source"),
            ),
            NOTHING,
        ),
    },
    CHARGE: {"payment_intent": PAYMENT, **_OF_CHARGE},
    "charge of a payment": _OF_CHARGE,
    REFUND: {
        "charge": CHARGE,
        "payment_intent": PAYMENT,
        **dict.fromkeys(
            (
                *("balance_transaction", "failure_balance_transaction"),
                *("source_transfer_reversal", "transfer_reversal"),
            ),
            NOTHING,
        ),
    },
    NOTHING: {},
}
DEPTH_MAX: Final = 4  # as in Stripe
# Kinds of which an object that is not expanded has the id, or nothing.
_IDS: Final = (ITEMS, PAYMENT, CHARGE, "charge of a payment", "product")


def expandable(given: Parsed, kind: str, within: str = "") -> None:
    """Raise ParameterInvalid for a name that an object of this kind cannot expand.

    In lists the names begin with `within`.
    """
    for number, name in enumerate(given.values.get("expand", ())):
        inside = name.removeprefix(within)
        deep = inside.count(".") >= DEPTH_MAX
        if not name.startswith(within) or deep or not _expands(kind, inside):
            can = ", ".join(f"`{within}{each}`" for each in _existing(kind))
            raise ParameterInvalid(
                f"This property cannot be expanded ({name[:100]}). Can be expanded: {can}.",
                param=f"expand[{number}]",
            )


def _existing(kind: str, depth: int = 1) -> Iterator[str]:
    """Yield the names of the objects that exist here, those inside of others included."""
    for name, below in _FIELDS.get(kind, {}).items():
        if below != NOTHING:
            if below in _IDS:
                yield name
            if depth < DEPTH_MAX:
                yield from (f"{name}.{each}" for each in _existing(below, depth + 1))


def _expands(kind: str, name: str) -> bool:
    """Return whether the object has a field of this name, which can be expanded."""
    for path, below in _FIELDS[kind].items():
        if name == path:
            return True
        if name.startswith(f"{path}."):
            return below == NOTHING or _expands(below, name.removeprefix(f"{path}."))
    return False
