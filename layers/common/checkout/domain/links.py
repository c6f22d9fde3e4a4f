"""Payment links: an item at a public address, where each purchase creates its own session.

The price of the item is fixed, or customers choose the amount. The name of a link, its price and
the bounds of the amount never change, because the link may be printed. A link can have a stock.
A new session then takes its items from the stock, and returns them once it is certain that nothing
was sold (domain/session/transitions.py, "Stock"). A large stock is stored in several rows of the
table, so that buyers do not wait for each other. Exception: if a customer can buy several items at
once, the stock has only one row (docs/decisions/0015). A till is a page of a link, opened at the
shop's counter, on which the seller enters each amount and the customer scans a code.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from base64 import b32encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.grammar import redirect_url
from checkout.domain.ground.money import to_wallet
from checkout.domain.ground.parts import part_of
from checkout.domain.ground.typed_amount import typed_amount
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.session.collect import Collect, Detail, from_json
from checkout.domain.session.record import LineItem, Session, Status

NAME_MAX: Final = 200  # characters, like the name of a line item
STOCK_MAX: Final = 1_000_000
AT_ONCE_MAX: Final = 99  # items of one purchase
ROWS: Final = 8  # of a stock that has at least SPREAD_FROM items when its link is created
SPREAD_FROM: Final = 2 * ROWS
_ROW: Final = "#"  # between a link's id and the number of a row
# A session holds items of a stock for this long, unless a payment is in flight.
HELD_FOR: Final = timedelta(minutes=30)
LASTS: Final = timedelta(days=1)  # the lifetime of a session that holds no items
AT_TILL: Final = timedelta(minutes=15)  # the lifetime of a session that began at a till
SUGGESTIONS_MAX: Final = 4
AMOUNT: Final = "amount"  # the field of a form with the typed amount
SUGGESTION: Final = "suggestion"  # the button of a suggested amount in minor units
METADATA_NAME: Final = "payment_link"
# The notes of the first step in the history.
_AT_LINK: Final = "at a payment link"
_AT_TILL: Final = "at a till"
ORDER_NAME: Final = "order_number"
_READABLE: Final = str.maketrans("ILO", "189")  # base32 has no 0, 1, 8 and 9
_QUANTITY: Final = re.compile("[0-9]{1,4}")
_NUMBER_MAX: Final = 8  # letters and digits of an order number


@dataclass(frozen=True, slots=True)
class OpenAmount:
    """The bounds of an amount that customers choose, and the suggestions, in minor units."""

    smallest: int
    largest: int
    suggestions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentLink:
    """An item for sale. `unit_amount`, its price, is in the currency's minor units.

    If customers choose the amount, `open_amount` contains its bounds. `unit_amount` is then the
    price at which an older release, which does not read `open_amount`, sells the item.

    `left` is the number of items that are neither held nor sold, or None if there is no stock
    limit; `rows` is the number of rows in which the stock is stored. If `success_url` is None,
    customers stay on the receipt page. `stopped_at` is set while the link is stopped. `asked` are
    the details that a customer is asked for; those in `required` are mandatory. If the link asks
    for anything else, `collect_json` contains the complete list (domain/session/collect.py).
    `image` is the URL of a picture. `most` is the number of items that a customer can buy at once,
    or None for one item.
    """

    id: str
    merchant: str
    created_at: datetime
    name: str
    unit_amount: int
    currency: str
    success_url: str | None = None
    left: int | None = None
    stopped_at: datetime | None = None
    asked: tuple[Detail, ...] = ()
    required: tuple[Detail, ...] = ()
    rows: int = 1
    collect_json: str | None = None
    description: str | None = None
    image: str | None = None
    most: int | None = None
    open_amount: OpenAmount | None = None

    @property
    def quantity_max(self) -> int:
        """Return how many items a customer can buy at once."""
        return self.most or 1

    @property
    def offered(self) -> int:
        """Return the largest number of items that the page offers for one purchase.

        This is `quantity_max`, or the number of items left if that is smaller but not 0.
        """
        return min(self.quantity_max, self.left or self.quantity_max)

    @property
    def collect(self) -> Collect:
        """Return what a customer is asked for."""
        if self.collect_json is not None:
            return from_json(self.collect_json)
        return Collect(frozenset(self.asked), frozenset(self.required))

    @property
    def limited(self) -> bool:
        """Return whether the link has a stock."""
        return self.left is not None

    @property
    def sells(self) -> bool:
        """Return whether a purchase may begin."""
        return self.stopped_at is None and self.left != 0

    @property
    def has_till(self) -> bool:
        """Return whether the link can be opened as a till.

        The customer's phone shows only the sale, so a link that requires details has no till. A
        link with a stock has none either: a stock limits the unpaid items of one network address,
        and all sales of a till come from one address.
        """
        return self.open_amount is not None and not self.limited and not self.collect.requires

    @property
    def row_ids(self) -> tuple[str, ...]:
        """Return the ids of the stock's rows. The first is the link's own id."""
        return (self.id, *(f"{self.id}{_ROW}{number}" for number in range(1, self.rows)))

    def chosen(self, typed: Mapping[str, str], merchant: Merchant) -> int | None:
        """Return the amount in a customer's form, in minor units; None if it is not allowed."""
        bounds, text, scale = self.open_amount, typed.get(AMOUNT, ""), merchant.asset_scale
        if bounds is None:
            return None
        if SUGGESTION in typed:
            return {str(each): each for each in bounds.suggestions}.get(typed[SUGGESTION])
        with suppress(CheckoutError):
            code = self.currency
            amount = typed_amount(text, currency=code, wallet_scale=scale, param=AMOUNT)
            to_wallet(amount, currency=code, asset_code=merchant.asset_code, asset_scale=scale)
            if bounds.smallest <= amount <= bounds.largest:
                return amount
        return None

    def opened(
        self,
        merchant: Merchant,
        *,
        session_id: str,
        writer: str,
        now: datetime,
        base_url: str,
        base_is_http: bool,
        customer_details: str | None = None,
        customer_further: str | None = None,
        customer_mark: str | None = None,
        customer_marks: tuple[str, ...] | None = None,
        quantity: int = 1,
        amount: int | None = None,
        row: str | None = None,
        at_till: bool = False,
    ) -> Session:
        """Return the new, open session of one purchase, at the price or at the chosen `amount`.

        A customer who cancels returns to the link's own page. If the link has no `success_url`, a
        customer who has paid sees the receipt page. `customer_details` and `customer_further` are
        sealed (ciphertext). `customer_mark` and `customer_marks` are hashes by which a search finds
        the session. `row` is the row of the stock from which the session takes its items. Raises
        AmountNotRepresentable or UrlInvalid if the merchant has changed the wallet or the return
        hosts since the link was made.
        """
        success_url = f"{base_url}/pay/{session_id}/success"
        if self.success_url is not None:
            success_url = redirect_url(
                self.success_url,
                session_id=session_id,
                base_is_http=base_is_http,
                param="success_url",
                hosts=merchant.return_hosts,
            )
        price = self.unit_amount if amount is None else amount
        total = price * quantity
        return Session(
            id=session_id,
            merchant=self.merchant,
            status=Status.OPEN,
            version=1,
            writer=writer,
            created_at=now,
            updated_at=now,
            expires_at=now + (AT_TILL if at_till else HELD_FOR if self.limited else LASTS),
            amount_total=total,
            currency=self.currency,
            receive=to_wallet(
                total,
                currency=self.currency,
                asset_code=merchant.asset_code,
                asset_scale=merchant.asset_scale,
            ),
            line_items=(
                LineItem(
                    self.currency,
                    self.name,
                    self.description,
                    price,
                    quantity,
                    self.image,
                ),
            ),
            metadata_json=json.dumps({METADATA_NAME: self.id, ORDER_NAME: order_of(session_id)}),
            success_url=success_url,
            cancel_url=f"{base_url}/buy/{self.id}",
            customer_details=customer_details,
            customer_further=customer_further,
            customer_mark=customer_mark,
            customer_marks=customer_marks,
            link=row,
            part=part_of(session_id, merchant.parts),
            history=(
                HistoryEntry(at=now, event="created", note=_AT_TILL if at_till else _AT_LINK),
            ),
        )


def began_at_link(session: Session) -> bool:
    """Return whether the session began at a payment link, and not by a request of a server.

    Both the history and the metadata are checked, because a long history no longer contains its
    first step, and a merchant can change the metadata.
    """
    noted = any(each.note in (_AT_LINK, _AT_TILL) for each in session.history[:1])
    return noted or (session.request_id is None and METADATA_NAME in session.metadata)


def order_of(session_id: str) -> str:
    """Return the order number of a purchase, which is easy to read aloud.

    The number is made from a digest of the session's id, so nobody can derive the id from it.
    """
    digest = hashlib.sha256(f"order\n{session_id}".encode()).digest()
    return b32encode(digest).decode()[:_NUMBER_MAX].translate(_READABLE)


def quantity_of(typed: str, most: int) -> int | None:
    """Return a typed number of items if it is from 1 to `most`; None for other texts."""
    text = "".join(str(unicodedata.decimal(each, each)) for each in typed.strip())
    return int(text) if _QUANTITY.fullmatch(text) and 1 <= int(text) <= most else None


def rows_for(left: int | None, *, most: int | None) -> int:
    """Return the number of rows for the stock of a new link.

    A purchase takes all its items from one row. If a customer can buy several items, there is only
    one row, because with several rows a purchase could be refused although all rows together have
    enough items.
    """
    return ROWS if left is not None and left >= SPREAD_FROM and most is None else 1


def shares(left: int, rows: int) -> list[int]:
    """Return the number of items for each row, as equal as possible."""
    return [left // rows + (number < left % rows) for number in range(rows)]


def link_of(row_id: str) -> str:
    """Return the id of the link that has this row."""
    return row_id.partition(_ROW)[0]
