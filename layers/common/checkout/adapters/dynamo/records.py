"""Sessions and idempotency keys as DynamoDB items, with the attributes that their indexes need.

Line items and history are packed, so that the largest session that the API accepts stays well below
DynamoDB's 400 KB an item.
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
    search_rows_kept_until,
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

_SESSION: Final = Codec(
    Session,
    names={"metadata_json": "metadata", "instruction": "attempt"},
    packed=("line_items", "history", "payment_attempts"),
)
_RESERVATION: Final = Codec(Reservation)

reservation_from: Final = _RESERVATION.decode


def session_from(item: Item) -> Session:
    return _SESSION.decode(unsharded(item))


def due_shard(record_id: str) -> str:
    """Return the partition of an index in which this record is."""
    return str(shard_of(record_id, DUE_SHARDS))


def ttl(at: datetime) -> Value:
    """Return the time to live of a record that is of no use from `at` on, in epoch seconds."""
    return number(milliseconds(at) // 1000 + _TTL_DELAY)


def session_item(session: Session, retention: timedelta = RETENTION) -> Item:
    """Return the whole item, index attributes and time to live included."""
    item = sharded(_SESSION.encode(session))
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


def search_items(session: Session, retention: timedelta = RETENTION) -> list[Item]:
    """Return the rows by which the `by_search` index finds a session by its metadata.

    Each names the session in the place that it has in every list.
    """
    kept_until = search_rows_kept_until(session, retention)
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


def reservation_item(reservation: Reservation) -> Item:
    """Return the item, which DynamoDB removes a day after its end."""
    return _RESERVATION.encode(reservation) | {"ttl": ttl(reservation.expires_at)}
