"""Sessions and idempotency keys as DynamoDB items, with the attributes that their indexes need.

DynamoDB charges each write by the size of the whole item, and a checkout writes its session nine
times. So the item is kept small (docs/decisions/0003):

    CART       the fields that are set at the creation and rarely change: one compressed attribute.
               A larger cart is a separate item, whose id is `cart#` and the session's id
    PAYMENT    the fields of the payment, and the history: one compressed attribute
    the rest   one attribute for each other field: fields that a condition or an index needs, sealed
               (encrypted) fields, and fields that most checks of a payment write (so that a check
               need not write PAYMENT again)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from datetime import timedelta
from typing import Final

from checkout.adapters.dynamo.codec import Codec, Item, Value, text
from checkout.adapters.dynamo.index_keys import (
    needing_somebody,
    of_session,
    owned,
    prefix_key,
    search_key,
    sharded,
    ttl,
    unsharded,
)
from checkout.domain.ground.grammar import position
from checkout.domain.reports.search_terms import (
    last_part,
    marks,
    metadata_texts,
    order_parts,
    outer_ids,
    texts_of_a_cart,
    wallets,
    words,
)
from checkout.domain.session.record import Purchase, Session
from checkout.domain.session.retention import (
    RETENTION,
    flag_kept_until,
    rows_kept_until,
)
from checkout.ports import Reservation

SEARCH_ROW: Final = "search#"  # prefix of the id of a search row
FLAG_ROW: Final = "flag#"  # prefix of the id of the row by which a flagged session is found
CART_ROW: Final = "cart#"  # prefix of the id of a cart's separate item
# The largest cart, in bytes, that is stored in its session's item. With a larger cart in the item,
# several of the item's writes would cost two units.
CART_INSIDE_MAX: Final = 100

CART: Final = (
    "created_at",
    "amount_total",
    "currency",
    "receive",
    *(each.name for each in fields(Purchase)),
    "link",
    "customer_details",
    "customer_further",
    "customer_mark",
    "customer_marks",
    "details_at",
)
PAYMENT: Final = (
    "request_id",
    "updated_at",
    "lease_until",
    "approve_until",
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
    "refunds",
    "identity",
    "later_json",
    "history",
)

# `deflated`: sealed texts are base64, which compression makes smaller by a quarter.
_SESSION: Final = Codec(
    Session,
    names={"instruction": "attempt", "part": "shard"},
    deflated=("grant", "token"),
    groups={"cart": CART, "payment": PAYMENT},
    later="later_json",
)
SESSION_ATTRIBUTES: Final = _SESSION.attributes  # all except the attributes that only indexes need
_RESERVATION: Final = Codec(Reservation, deflated=("body",))

reservation_from: Final = _RESERVATION.decode


def session_from(item: Item) -> Session:
    """Return the session in an item that includes its cart (`sessions.with_cart`).

    Raises as `Codec.decode` does.
    """
    return _SESSION.decode(unsharded(item))


def changed_items(before: Session, after: Session, retention: timedelta) -> tuple[Item, Item]:
    """Return the items before and after a change, to compare them.

    A group of fields that has not changed is in neither item. A changed group is only in the second
    item.
    """
    groups = _SESSION.changed_groups(before, after)
    return session_item(before, retention, ()), session_item(after, retention, groups)


def session_item(
    session: Session, retention: timedelta = RETENTION, groups: Collection[str] | None = None
) -> Item:
    """Return the session's item, including the index attributes and the time to live.

    The item includes the cart, unless `cart_item` returns a separate item. If `groups` are given,
    the item includes CART and PAYMENT only if they are among `groups`.
    """
    item = sharded(_SESSION.encode(session, groups))
    if "cart" in item and _large(item["cart"]):
        del item["cart"]
    return item | of_session(session, retention)


def cart_item(session: Session, retention: timedelta = RETENTION) -> Item | None:
    """Return the cart's separate item, or None if the cart fits into its session's item."""
    cart = cart_of(session)
    if not _large(cart):
        return None
    item = {"id": text(cart_id(session.id)), "cart": cart}
    kept_until = rows_kept_until(session, retention)
    return item if kept_until is None else item | {"ttl": ttl(kept_until)}


def cart_of(session: Session) -> Value:
    """Return the session's cart in its stored form."""
    return _SESSION.encode_group("cart", session)


def cart_id(session_id: str) -> str:
    """Return the id of the separate item for a session's cart."""
    return CART_ROW + session_id


def same_cart(one: Session, other: Session) -> bool:
    """Return whether both have the same cart. An erasure or new metadata changes a cart."""
    return "cart" not in _SESSION.changed_groups(one, other)


def _large(cart: Value) -> bool:
    return len(cart["B"]) > CART_INSIDE_MAX


def search_items(session: Session, retention: timedelta = RETENTION) -> list[Item]:
    """Return the search rows of the session (domain/reports/search_terms.py).

    The id of a payment, a quote or a request is the key of a row that contains the session's id.
    All other texts are entries of the index `by_search`: order numbers sorted by their text, and
    other texts by position, like all lists. To save rows, a row for an id is also the index entry
    of the wallet or of a word. Until a wallet is given, the session can be found only by its order
    number and payment link, because more rows for each abandoned cart would be expensive.
    """
    merchant, place = session.merchant, position(session.created_at, session.id)
    kept_until = rows_kept_until(session, retention)
    common = {} if kept_until is None else {"ttl": ttl(kept_until)}

    def entry(key: str, at: str = place) -> Item:
        return {"search_key": owned(key, session.part), "created_key": text(at)}

    def row(name: str, indexed: Item) -> Item:
        return {"id": text(f"{SEARCH_ROW}{name}#{session.id}"), **indexed, **common}

    rows = []
    for part in order_parts(session):
        name = search_key(merchant, f"part\n{part}")
        rows.append(row(name, entry(prefix_key(merchant, part), f"{part}#{place}")))
    texts = metadata_texts(session) if session.wallet_given else texts_of_a_cart(session)
    keys = list(dict.fromkeys(search_key(merchant, last_part(each)) for each in texts))
    rows += [row(key, entry(key)) for key in keys]
    texts = [*wallets(session), *marks(session), *words(session)]
    later = dict.fromkeys(search_key(merchant, each) for each in texts)
    left = [key for key in later if key not in keys]
    for each in outer_ids(session):
        indexed = entry(left.pop(0)) if left else {}
        names = {"id": text(id_row(merchant, each)), "session": text(session.id)}
        rows.append({**names, **indexed, **common})
    return rows + [row(key, entry(key)) for key in left]


def flag_item(session: Session, retention: timedelta = RETENTION) -> Item:
    """Return the row that lists a flagged session among the sessions that need a person.

    The row is the same for every flag, and stays after the flag is removed. `rows_of` does not
    return it.
    """
    return {
        "id": text(FLAG_ROW + session.id),
        **needing_somebody(session),
        "ttl": ttl(flag_kept_until(session, retention)),
    }


def id_row(merchant: str, outer_id: str) -> str:
    """Return the key of the row by which a payment's, quote's or request's id finds its session."""
    return SEARCH_ROW + search_key(merchant, outer_id)


def rows_of(session: Session, retention: timedelta = RETENTION) -> list[Item]:
    """Return a session's other rows: its cart, if the cart is large, and its search rows."""
    cart = cart_item(session, retention)
    return [*([cart] if cart else []), *search_items(session, retention)]


def reservation_item(reservation: Reservation) -> Item:
    """Return an idempotency record's item, which DynamoDB removes a day after the record ends."""
    return _RESERVATION.encode(reservation) | {"ttl": ttl(reservation.expires_at)}
