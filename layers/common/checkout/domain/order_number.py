"""The order number of a session, by which merchant and customer speak of it.

Search, dashboard, export and the customer's pages have it from here. A page may decline to show it,
and never shows another one.
"""

from __future__ import annotations

import re
from typing import Any, Final

from checkout.domain.session import Session

# Names in the metadata that say what their value is, without "-", "_", blanks and case.
_NAMES: Final = ("ordernumber", "orderno", "orderid", "order", "invoicenumber", "invoice")
_PUNCTUATION: Final = re.compile(r"[-_ ]")


def order_number(session: Session) -> str | None:
    """Return the order number: what is named so, or else the first text or number of the metadata.

    None without one.
    """
    return named_order_number(session) or next(iter(metadata_values(session)), None)


def named_order_number(session: Session) -> str | None:
    """Return the merchant's reference, or else the metadata's value whose name says so."""
    if reference := _text(session.client_reference_id):
        return reference
    named = {_PUNCTUATION.sub("", name).lower(): each for name, each in session.metadata.items()}
    return next(filter(None, (_text(named.get(name)) for name in _NAMES)), None)


def metadata_values(session: Session) -> list[str]:
    """Return the metadata's texts and numbers, in their order: no boolean, null or blank text."""
    return [text for each in session.metadata.values() if (text := _text(each))]


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None
