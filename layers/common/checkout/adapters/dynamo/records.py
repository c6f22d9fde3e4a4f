"""Sessions and idempotency keys as DynamoDB items, with the attributes that their indexes need.

DynamoDB charges each write by the size of the whole item, and a checkout writes its session nine
times. So the item is small (docs/decisions/0016):

    CART       what is given at creation and hardly ever changes: one compressed attribute. Where it
               is not small, it lies in an item of its own, `cart#` and the session's id
    PAYMENT    what is known of the payment, and the history: one compressed attribute
    the rest   an attribute each: what conditions and indexes need, what is sealed, and what checks
               write. W7 is conditional on the attempt and not on the version, so it must not write
               back what a check has changed meanwhile: no check writes anything in PAYMENT.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.sharding import owned, sharded, unsharded
from checkout.adapters.dynamo.values import Item, Value, instant, milliseconds, number, text
from checkout.domain.grammar import position
from checkout.domain.retention import (
    RETENTION,
    rows_kept_until,
    session_kept_until,
)
from checkout.domain.search import metadata_keys, search_key
from checkout.domain.session import Session
from checkout.domain.shards import shard_of
from checkout.ports.sessions import Reservation

# The partitions of each lane of an index, so that none is hot. A later release may have more, since
# what is in the first ones is still found, but never fewer.
DUE_SHARDS: Final = 8
URGENT_SHARDS: Final = 16  # of the first lane of `due`, where each payment writes eight times
# The second lane of `due`, for what is not urgent, and of `uncounted`, for what the clock ends.
LATER: Final = "later-"
CLOCK: Final = "clock-"
_TTL_DELAY: Final = 86_400  # seconds; DynamoDB's TTL only cleans up, it decides nothing

CART_ROW: Final = "cart#"  # begins the id of a cart's own item
# Bytes of a cart that lies in its session's item: with more, several writes would cost two units.
CART_INSIDE_MAX: Final = 100

CART: Final = (
    "created_at",
    "amount_total",
    "currency",
    "receive",
    "line_items",
    "metadata_json",
    "success_url",
    "cancel_url",
    "locale",
    "client_reference_id",
    "echo_json",
    "link",
)
PAYMENT: Final = (
    "lease_until",
    "customer",
    "incoming_payment",
    "quote",
    "interact_url",
    "outgoing_payment",
    "problem",
    "completed_at",
    "event",
    "submissions",
    "payment_attempts",
    "history",
)

# Sealed texts are base64, which shrinks by a quarter.
_SESSION: Final = Codec(
    Session,
    names={"instruction": "attempt"},
    deflated=("grant", "token"),
    groups={"cart": CART, "payment": PAYMENT},
)
SESSION_ATTRIBUTES: Final = _SESSION.attributes  # without those that only indexes need
_RESERVATION: Final = Codec(Reservation, deflated=("body",))

reservation_from: Final = _RESERVATION.decode


def session_from(item: Item) -> Session:
    """Return the session of its item with its cart (client.py, `with_cart`). Raise KeyError."""
    return _SESSION.decode(unsharded(item))


def due_shard(record_id: str) -> str:
    """Return the partition of an index in which this record is."""
    return str(shard_of(record_id, DUE_SHARDS))


def ttl(at: datetime) -> Value:
    """Return the time to live of a record that is of no use from `at` on, in epoch seconds."""
    return number(milliseconds(at) // 1000 + _TTL_DELAY)


def session_item(session: Session, retention: timedelta = RETENTION) -> Item:
    """Return the session's item, index attributes and time to live included.

    The cart is in it unless `cart_item` makes an item of its own.
    """
    item = sharded(_SESSION.encode(session))
    if _large(item["cart"]):
        del item["cart"]
    item["created_key"] = text(position(session.created_at, session.id))
    due = session.due_at()
    if due:
        item["due_shard"] = text(
            str(shard_of(session.id, URGENT_SHARDS))
            if session.urgent
            else LATER + due_shard(session.id)
        )
        item["due_at"] = instant(due)
    # Until tallies.py has counted it and removes them; where the clock ends a session, for good.
    if session.over_at is not None:
        clock = CLOCK if session.left_to_clock else ""
        item["uncounted_shard"] = text(clock + due_shard(session.id))
        item["uncounted_at"] = instant(session.over_at)
    if session.customer:
        item["search_key"] = owned(search_key(session.merchant, session.customer.id), session.shard)
    kept_until = session_kept_until(session, retention)
    if kept_until is not None:
        item["ttl"] = ttl(kept_until)
    return item


def cart_item(session: Session, retention: timedelta = RETENTION) -> Item | None:
    """Return the item of a cart that is too large for its session's, or None."""
    cart = cart_of(session)
    if not _large(cart):
        return None
    item = {"id": text(cart_id(session.id)), "cart": cart}
    kept_until = rows_kept_until(session, retention)
    return item if kept_until is None else item | {"ttl": ttl(kept_until)}


def cart_of(session: Session) -> Value:
    """Return the session's cart as it is stored."""
    return _SESSION.encode_group("cart", session)


def cart_id(session_id: str) -> str:
    """Return the id of the item in which a session's cart lies if it is not in the session's."""
    return CART_ROW + session_id


def same_cart(one: Session, other: Session) -> bool:
    """Return whether both have the same cart, which only erasure changes."""
    return all(getattr(one, name) == getattr(other, name) for name in CART)


def _large(cart: Value) -> bool:
    return len(cart["B"]) > CART_INSIDE_MAX


def search_items(session: Session, retention: timedelta = RETENTION) -> list[Item]:
    """Return the rows by which the `by_search` index finds a session by its metadata.

    Each names the session in the place that it has in every list.
    """
    kept_until = rows_kept_until(session, retention)
    common = {"created_key": text(position(session.created_at, session.id))}
    if kept_until is not None:
        common["ttl"] = ttl(kept_until)
    return [
        {
            "id": text(f"search#{key}#{session.id}"),
            "search_key": owned(key, session.shard),
            **common,
        }
        for key in metadata_keys(session.merchant, session.metadata)
    ]


def rows_of(session: Session, retention: timedelta = RETENTION) -> list[Item]:
    """Return a session's other rows: its cart, where that is large, and those that find it."""
    cart = cart_item(session, retention)
    return [*([cart] if cart else []), *search_items(session, retention)]


def reservation_item(reservation: Reservation) -> Item:
    """Return the item, which DynamoDB removes a day after its end."""
    return _RESERVATION.encode(reservation) | {"ttl": ttl(reservation.expires_at)}
