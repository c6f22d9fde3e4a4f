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

from collections.abc import Collection
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
from checkout.domain.search import (
    last_part,
    metadata_texts,
    order_parts,
    outer_ids,
    prefix_key,
    search_key,
    wallets,
    words,
)
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

SEARCH_ROW: Final = "search#"  # begins the id of a row by which a session is found
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
    "request_id",
    "updated_at",
    "lease_until",
    "look_at",
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


def due_shards(*, urgent: bool = False) -> int:
    """Return the number of partitions of a lane of an index by time."""
    return URGENT_SHARDS if urgent else DUE_SHARDS


def due_shard(record_id: str, *, urgent: bool = False) -> str:
    """Return the partition of a lane of an index in which this record is."""
    return str(shard_of(record_id, due_shards(urgent=urgent)))


def ttl(at: datetime) -> Value:
    """Return the time to live of a record that is of no use from `at` on, in epoch seconds."""
    return number(milliseconds(at) // 1000 + _TTL_DELAY)


def changed_items(before: Session, after: Session, retention: timedelta) -> tuple[Item, Item]:
    """Return the items of before and after a change, to compare them.

    The groups that the change leaves as they are lie in neither, the others in the second only.
    """
    groups = _SESSION.changed_groups(before, after)
    return session_item(before, retention, ()), session_item(after, retention, groups)


def session_item(
    session: Session, retention: timedelta = RETENTION, groups: Collection[str] | None = None
) -> Item:
    """Return the session's item, index attributes and time to live included.

    The cart is in it unless `cart_item` makes an item of its own. Of CART and PAYMENT only
    these `groups` are in it, if any are given.
    """
    item = sharded(_SESSION.encode(session, groups))
    if "cart" in item and _large(item["cart"]):
        del item["cart"]
    item["created_key"] = text(position(session.created_at, session.id))
    due = session.due_at()
    if due:
        item["due_shard"] = text(
            due_shard(session.id, urgent=True) if session.urgent else LATER + due_shard(session.id)
        )
        item["due_at"] = instant(due)
    # For good: the walks of tallies.py pass it once.
    if session.over_at is not None:
        clock = CLOCK if session.left_to_clock else ""
        item["uncounted_shard"] = text(clock + due_shard(session.id))
        item["uncounted_at"] = instant(session.over_at)
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
    return "cart" not in _SESSION.changed_groups(one, other)


def _large(cart: Value) -> bool:
    return len(cart["B"]) > CART_INSIDE_MAX


def search_items(session: Session, retention: timedelta = RETENTION) -> list[Item]:
    """Return the rows by which the session is found (domain/search.py).

    An id elsewhere is the key of a row that names the session. All else is in the index
    `by_search`: order numbers in the order of their texts, other texts in the order of all lists.
    The rows of ids are in the index for the wallet and for words, which saves rows of their own.
    """
    merchant, place = session.merchant, position(session.created_at, session.id)
    kept_until = rows_kept_until(session, retention)
    common = {} if kept_until is None else {"ttl": ttl(kept_until)}

    def entry(key: str, at: str = place) -> Item:
        return {"search_key": owned(key, session.shard), "created_key": text(at)}

    def row(name: str, indexed: Item) -> Item:
        return {"id": text(f"{SEARCH_ROW}{name}#{session.id}"), **indexed, **common}

    rows = []
    for part in order_parts(session):
        name = search_key(merchant, f"part\n{part}")
        rows.append(row(name, entry(prefix_key(merchant, part), f"{part}#{place}")))
    texts = metadata_texts(session)
    keys = list(dict.fromkeys(search_key(merchant, last_part(each)) for each in texts))
    rows += [row(key, entry(key)) for key in keys]
    texts = [*wallets(session), *words(session)]
    later = dict.fromkeys(search_key(merchant, each) for each in texts)
    left = [key for key in later if key not in keys]
    for each in outer_ids(session):
        indexed = entry(left.pop(0)) if left else {}
        names = {"id": text(id_row(merchant, each)), "session": text(session.id)}
        rows.append({**names, **indexed, **common})
    return rows + [row(key, entry(key)) for key in left]


def id_row(merchant: str, outer_id: str) -> str:
    """Return the key of the row that names the session of an id elsewhere."""
    return SEARCH_ROW + search_key(merchant, outer_id)


def rows_of(session: Session, retention: timedelta = RETENTION) -> list[Item]:
    """Return a session's other rows: its cart, where that is large, and those that find it."""
    cart = cart_item(session, retention)
    return [*([cart] if cart else []), *search_items(session, retention)]


def reservation_item(reservation: Reservation) -> Item:
    """Return the item, which DynamoDB removes a day after its end."""
    return _RESERVATION.encode(reservation) | {"ttl": ttl(reservation.expires_at)}
