"""The names that `expand` accepts: all names that Stripe's API accepts for these objects.

To expand a field is to replace the id in the field by the whole object with this id. A field for an
object that never exists here stays null. A field that always contains the whole object does not
change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from api.v1.forms import Leaf, Parsed, parsed
from api.v1.parity import Parameter
from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.ids import kind_of
from checkout.domain.refund.record import Refund
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session
from checkout.domain.stripe.objects import (
    charge,
    charge_transaction,
    payment_intent,
    payment_method,
)
from checkout.domain.stripe.refunds import refund_object, refund_of, refund_transaction
from checkout.services import Services

Make = Callable[[str], dict[str, Any] | None]

SESSION: Final = "checkout.session"
ITEMS: Final = "list"
PAYMENT: Final = "payment_intent"
CHARGE: Final = "charge"
REFUND: Final = "refund"
METHOD: Final = "payment_method"
PRICE: Final = "price"
PRODUCT: Final = "product"
TRANSACTION: Final = "balance_transaction"
SOURCE: Final = "the charge or the refund of a balance_transaction"
NOTHING: Final = ""  # an object that never exists here, or is always whole

_OF_CHARGE: Final = {
    "balance_transaction": TRANSACTION,
    **dict.fromkeys(
        (
            *("application", "application_fee", "customer", "dispute"),
            *("failure_balance_transaction", "invoice", "on_behalf_of", "review"),
            *("source_transfer", "transfer", "transfer_data.destination"),
        ),
        NOTHING,
    ),
}
# For each kind of object: the fields that can be expanded, and the kind of object in each field.
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
    "item": {"price": PRICE, "discounts": NOTHING, "taxes": NOTHING, "product": NOTHING},
    PRICE: {"product": PRODUCT, "currency_options": NOTHING, "tiers": NOTHING},
    PRODUCT: {"default_price": NOTHING, "tax_code": NOTHING},
    PAYMENT: {
        "latest_charge": "charge of a payment",
        "payment_method": METHOD,
        "transfer_data.destination": NOTHING,
        **dict.fromkeys(
            (
                *("application", "customer", "customer_account", "invoice", "on_behalf_of"),
                *("review", "source"),
            ),
            NOTHING,
        ),
    },
    CHARGE: {"payment_intent": PAYMENT, **_OF_CHARGE},
    "charge of a payment": _OF_CHARGE,
    REFUND: {
        "balance_transaction": TRANSACTION,
        "charge": CHARGE,
        "payment_intent": PAYMENT,
        "payment_method": METHOD,
        **dict.fromkeys(
            ("failure_balance_transaction", "source_transfer_reversal", "transfer_reversal"),
            NOTHING,
        ),
    },
    METHOD: {"customer": NOTHING},
    TRANSACTION: {"source": SOURCE},
    SOURCE: {},
    NOTHING: {},
}
# For each kind of object: the prefix of its id. The rest of the id comes from the session's id.
PREFIXES: Final[Mapping[str, str]] = {
    SESSION: "cs_",
    PAYMENT: "pi_",
    CHARGE: "ch_",
    METHOD: "pm_",
    TRANSACTION: "txn_",
}
DEPTH_MAX: Final = 4  # as in Stripe
# Kinds of objects for which a field contains only the id, or null, until the field is expanded.
_IDS: Final = (
    *(ITEMS, PAYMENT, CHARGE, "charge of a payment", METHOD, PRODUCT, TRANSACTION, SOURCE),
)


def parsed_for(
    kind: str, leaves: Iterable[Leaf], rows: Sequence[Parameter], within: str = ""
) -> Parsed:
    """Return the parsed parameters for this kind of object. Raise as `parsed` and `expandable`."""
    given = parsed(leaves, rows)
    expandable(given, kind, within)
    return given


def expandable(given: Parsed, kind: str, within: str = "") -> None:
    """Raise ParameterInvalid if `expand` has a name that this kind of object cannot expand.

    In a list, each name in `expand` begins with `within`.
    """
    for number, name in enumerate(given.values.get("expand", ())):
        inside = name.removeprefix(within)
        deep = inside.count(".") >= DEPTH_MAX
        if not name.startswith(within) or deep or not _expands(kind, inside):
            can = ", ".join(f"`{within}{each}`" for each in _existing(kind))
            raise ParameterInvalid(
                f"This property cannot be expanded ({name[:100]}). You can expand: {can}.",
                param=f"expand[{number}]",
            )


def expanded(
    found: dict[str, Any], kind: str, given: Parsed, make: Make, within: str = ""
) -> dict[str, Any]:
    """Return the object `found`, and replace ids by the whole objects where `expand` asks for it.

    `kind` is the kind of `found`. `make` returns the object with a given id, or None to leave the
    id in place. In a list, each name in `expand` begins with `within`.
    """
    for name, below in _FIELDS[kind].items():
        path, named = f"{within}{name}", found.get(name)
        if below in _IDS and isinstance(named, str) and given.expands(path):
            whole = make(named)
            if whole is not None:
                found[name] = expanded(whole, below, given, make, f"{path}.")
    return found


def maker(
    services: Services,
    session: Session | None,
    details: CustomerDetails,
    refund: Refund | None = None,
) -> Make:
    """Return a function that takes an id, and returns the session's or refund's object with it."""
    base: dict[str, Any] = {"base_url": services.base_url}
    makes: dict[str, Callable[[], dict[str, Any] | None]] = {}
    if session is not None:
        seen = base | {"details": details}
        makes = {
            "pi": partial(payment_intent, session, now=services.clock.now(), **seen),
            "ch": partial(charge, session, **seen),
            "pm": partial(payment_method, session, **seen),
            "txn": partial(charge_transaction, session),
        }

    def make(named: str) -> dict[str, Any] | None:
        if refund is not None and named == refund.id:
            return refund_object(refund, **base)
        if refund is not None and refund_of(named) == refund.id:
            return refund_transaction(refund)
        made = makes.get(kind_of(named))
        return None if made is None else made()

    return make


def _existing(kind: str, depth: int = 1) -> Iterator[str]:
    """Yield the names that can be expanded here, including those of objects inside others."""
    for name, below in _FIELDS.get(kind, {}).items():
        if below != NOTHING:
            if below in _IDS:
                yield name
            if depth < DEPTH_MAX:
                yield from (f"{name}.{each}" for each in _existing(below, depth + 1))


def _expands(kind: str, name: str) -> bool:
    """Return whether this kind of object has a field with this name that can be expanded."""
    for path, below in _FIELDS[kind].items():
        if name == path:
            return True
        if name.startswith(f"{path}."):
            return below == NOTHING or _expands(below, name.removeprefix(f"{path}."))
    return False
